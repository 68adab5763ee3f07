"""A timeline in Perfetto's own format: packets of tracks and events, written by the classes of the package perfetto.

The groups and tracks, slices, marks and arrows are those of the JSON file (`Timeline.chrome`); times are nanoseconds.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headstart._core import HeadstartError

SUFFIX = ".pftrace"
SEQUENCE = 1
"""All packets have one writer."""


def library() -> Any:
    """Return the classes of Perfetto's messages.

    Raises:
        HeadstartError: They are not installed.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError as error:
        problem = f"timeline: a {SUFFIX} file needs the package perfetto"
        raise HeadstartError(f"{problem}; allowed: pip install 'headstart[perfetto]', or a .json file") from error
    return perfetto_trace_pb2


def encoded(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a timeline's `chrome()` events as a file that ui.perfetto.dev opens.

    Raises:
        HeadstartError: The package perfetto is not installed.
    """
    pb = library()
    trace = pb.Trace()
    tracks: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    arrows: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for event in events:
        match event["ph"]:
            case "M" if event["name"] == "process_name":
                group = _packet(trace).track_descriptor
                group.uuid, group.name = event["pid"], event["args"]["name"]
                group.child_ordering = pb.TrackDescriptor.EXPLICIT
            case "M" if event["name"] == "thread_name":
                track = _packet(trace).track_descriptor
                track.uuid, track.parent_uuid = _uuid(event), event["pid"]
                track.name, track.sibling_order_rank = event["args"]["name"], len(tracks)
                tracks[event["pid"], event["tid"]] = []
            case "X" | "i":
                tracks[event["pid"], event["tid"]].append(event)
            case "s" | "t" | "f":
                arrows[event["pid"], event["tid"]].append(event)
    # Events at one instant are read in file order: an arrow is issued, served, used.
    for arrow in (each for found in arrows.values() for each in found if each["ph"] == "s"):
        _write(pb, trace, {**arrow, "name": "issue"}, [arrow])
    for at, of_track in sorted(tracks.items(), reverse=True):
        ends: dict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
        for arrow in arrows[at]:
            ends[arrow["ph"], arrow["ts"]].append(arrow)
        for event in sorted(of_track, key=lambda each: each["ts"]):
            _write(pb, trace, event, list(_flows(event, ends)))
    return bytes(trace.SerializeToString())


def _flows(
    event: Mapping[str, Any], ends: Mapping[tuple[str, int], list[Mapping[str, Any]]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the arrows through an event, matched by its start time and, for a reference, also by its block."""
    phase = "t" if event["ph"] == "X" else "f"
    for arrow in ends.get((phase, event["ts"]), ()):
        if phase == "t" or arrow["args"]["blocks"] == event["args"]["blocks"]:
            yield arrow


def _write(pb: Any, trace: Any, event: Mapping[str, Any], arrows: list[Mapping[str, Any]]) -> None:
    packet = _packet(trace, event["ts"])
    packet.track_event.track_uuid = _uuid(event)
    packet.track_event.name = event["name"]
    packet.track_event.type = pb.TrackEvent.TYPE_SLICE_BEGIN if event["ph"] == "X" else pb.TrackEvent.TYPE_INSTANT
    if "cat" in event:
        packet.track_event.categories.append(event["cat"])
    for key, value in event.get("args", {}).items():
        _annotate(packet.track_event.debug_annotations.add(name=key), value)
    for arrow in arrows:
        ids = packet.track_event.terminating_flow_ids if arrow["ph"] == "f" else packet.track_event.flow_ids
        # 0 is not a valid id.
        ids.append(arrow["id"] + 1)
    if event["ph"] == "X":
        end = _packet(trace, event["ts"] + event["dur"]).track_event
        end.track_uuid, end.type = _uuid(event), pb.TrackEvent.TYPE_SLICE_END


def _annotate(annotation: Any, value: Any) -> None:
    match value:
        case None:
            annotation.string_value = "none"
        case str():
            annotation.string_value = value
        case int():
            annotation.int_value = value
        case _:
            for each in value:
                _annotate(annotation.array_values.add(), each)


def _packet(trace: Any, at_ns: int | None = None) -> Any:
    packet = trace.packet.add(trusted_packet_sequence_id=SEQUENCE)
    if at_ns is not None:
        packet.timestamp = at_ns
    return packet


def _uuid(event: Mapping[str, Any]) -> int:
    """Return the id of a track; lower ids belong to the groups."""
    return (int(event["pid"]) << 48) + int(event["tid"]) + 1

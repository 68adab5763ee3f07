"""The events of a run: references, waits, prefetch actions, requests of the disks, links, evictions.

    timeline = headstart.timelines.run("scenario.toml")
    timeline.result.elapsed_ns, timeline.events[0]
    timeline.write_chrome("run.json")       # for ui.perfetto.dev or chrome://tracing
    timeline.write_perfetto("run.pftrace")  # the same in Perfetto's own format
    timeline.write_parquet("run.parquet")

A timeline does not change the result of the run. docs/timeline.md describes the events.
"""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, cast

from headstart import _core, pftrace
from headstart.simulation import Progress, Result, Scenario, source_of

Event = dict[str, Any]
EVENTS_MAX = 1_000_000
LANES_MAX = 1 << 16
"""Maximum number of concurrent requests of a disk, or messages on a link."""
PROCESSES, DISKS, LINKS, CACHE, PROCESSORS = 1, 2, 3, 4, 5
"""Numbers of the groups of tracks."""
GROUPS = {PROCESSES: "processes", DISKS: "disks", LINKS: "links", CACHE: "cache", PROCESSORS: "processors"}
COLUMNS = (
    *("event", "start_ns", "end_ns", "time_ns", "ready_ns", "issued_ns", "process", "disk", "level"),
    *("outcome", "kind", "blocks", "sector", "sectors", "count"),
)
"""Columns of the event log."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Timeline:
    """A run and its events, in order of their start."""

    result: Result
    events: list[Event]

    def __repr__(self) -> str:
        """Return the result and the number of events."""
        return f"<headstart.Timeline: {len(self.events):,} events of {self.result!r}>"

    def names(self) -> list[str]:
        """Return the name of each block if the scenario names its blocks itself; otherwise nothing."""
        references = self.result.scenario["workload"].get("references", [])
        initial = self.result.scenario.get("cache", {}).get("initial", [])
        limit = self.result.scenario["workload"].get("limit")
        return list(dict.fromkeys([*references[:limit], *initial])) if references else []

    def of(self, kind: str) -> Iterator[Event]:
        """Return the events of a kind, such as "service"."""
        return (event for event in self.events if event["event"] == kind)

    def lanes(self) -> Iterator[tuple[Event, int]]:
        """Return the events of the disks, each with a lane of its disk that is free at that time."""
        found = (event for event in self.events if event["event"] in ("service", "unfinished"))
        return _in_lanes(found, "disk")

    def uses(self) -> Iterator[tuple[Event, Event]]:
        """Return, for each block that was prefetched and used, its request and the first reference that used it.

        A request may fetch demanded and prefetched blocks together. Blocks that no process waits for at its issue count
        as prefetched.
        """
        wanted: dict[int, list[tuple[int, int, Event]]] = {}
        until: dict[tuple[int, int], int] = {
            (each["process"], each["start_ns"]): each["end_ns"] for each in self.of("wait")
        }
        for event in self.of("reference"):
            if event["outcome"] != "hit":
                start: int = event["start_ns"]
                for block in event["blocks"]:
                    wanted.setdefault(block, []).append((start, until.get((event["process"], start), start), event))
        waiting: dict[int, Event] = {}
        # Events at the same time are ordered: a request finds blocks, then some are evicted for the others that it
        # needs, which then are issued.
        order = {"reference": 0, "eviction": 1, "service": 2}
        found = [event for event in self.events if event["event"] in order]
        for event in sorted(found, key=lambda each: (each.get("issued_ns", each["start_ns"]), order[each["event"]])):
            match event["event"]:
                case "reference":
                    for block in event["blocks"]:
                        fetch = waiting.pop(block, None)
                        if fetch is not None:
                            yield fetch, event
                case "eviction":
                    for block in event["blocks"]:
                        waiting.pop(block, None)
                case "service" if event["kind"] != "write" and event["level"] == 0:
                    at = event["issued_ns"]
                    for block in event["blocks"]:
                        by = [each for start, end, each in wanted.get(block, ()) if start <= at <= end]
                        if not by:
                            waiting[block] = event
                        elif all(each["outcome"] == "late hit" for each in by):
                            # A processor's action chose it earlier, and issues it when the action ends.
                            yield event, by[0]

    def chrome(self) -> Iterator[dict[str, Any]]:
        """Return the events of Chrome's trace event format; times are in microseconds, as the format has them."""
        names = self.names()

        def shown(blocks: Sequence[int]) -> str:
            found = [names[block] if block < len(names) else str(block) for block in blocks[:4]]
            return ", ".join(found) + (f" and {len(blocks) - 4} more" if len(blocks) > 4 else "")

        yield from self._tracks()
        gone = [0] * len(self.result.processes)
        is_open = self.result.scenario["workload"].get("arrival") == "open"
        for event in self.events:
            start, end = event["start_ns"], event["end_ns"] if "end_ns" in event else event["start_ns"]
            match event["event"]:
                case "reference":
                    args = {"blocks": event["blocks"]}
                    name = f"{event['outcome']} {shown(event['blocks'])}"
                    yield {**_at("i", PROCESSES, event["process"], start), "name": name, "s": "t", "args": args}
                case "wait":
                    process, since = event["process"], end - event["time_ns"]
                    if since > gone[process]:
                        yield {**_slice(PROCESSES, process, gone[process], since), "name": "run"}
                    gone[process] = end
                    kind = "barrier" if event["outcome"] == "barrier" else "stall"
                    args = {"since_ns": start, "outcome": event["outcome"]}
                    yield {**_slice(PROCESSES, process, since, end), "name": kind, "args": args}
                case "action":
                    ends = min(end, self.result.elapsed_ns)
                    args = {"blocks": event["blocks"], "end_ns": end}
                    name = f"prefetch {shown(event['blocks'])}"
                    yield {**_slice(PROCESSORS, event["process"], start, ends), "name": name, "args": args}
                case "hold":
                    yield {**_slice(PROCESSORS, event["process"], start, end), "name": "shared structures"}
                case "eviction":
                    args = {"blocks": event["blocks"]}
                    yield {
                        **_at("i", CACHE, 0, start),
                        "name": f"evict {shown(event['blocks'])}",
                        "s": "t",
                        "args": args,
                    }
        for index, each in enumerate(self.result.processes if not is_open else []):
            if each["elapsed_ns"] > gone[index]:
                yield {**_slice(PROCESSES, index, gone[index], each["elapsed_ns"]), "name": "run"}
        for event, lane in _in_lanes(self.of("link"), "level"):
            track = event["level"] * LANES_MAX + lane
            name, args = f"{event['count']} blocks", {"blocks": event["count"]}
            yield {**_slice(LINKS, track, event["start_ns"], event["end_ns"]), "name": name, "args": args}
        lanes = {}
        for event, lane in self.lanes():
            track = event["disk"] * LANES_MAX + lane
            if event["event"] == "unfinished":
                yield {**_slice(DISKS, track, event["start_ns"], event["end_ns"]), "name": "unfinished"}
                continue
            lanes[id(event)] = track
            kept = ("kind", "blocks", "level", "process", "sector", "sectors", "issued_ns")
            yield {
                **_slice(DISKS, track, event["start_ns"], event["end_ns"]),
                "name": f"{event['kind']} {shown(event['blocks'])}",
                "cat": event["kind"],
                "args": {key: event[key] for key in kept},
            }
        for number, (fetch, use) in enumerate(self.uses()):
            if use["start_ns"] < fetch["issued_ns"]:
                continue
            flow = {"name": "prefetch", "cat": "prefetch", "id": number}
            process = fetch["process"] if fetch["process"] is not None else use["process"]
            yield {**_at("s", PROCESSES, process, fetch["issued_ns"]), **flow}
            if fetch["start_ns"] <= use["start_ns"]:
                yield {**_at("t", DISKS, lanes[id(fetch)], fetch["start_ns"]), **flow}
            end = {**_at("f", PROCESSES, use["process"], use["start_ns"]), **flow, "bp": "e"}
            yield {**end, "args": {"blocks": use["blocks"]}}

    def _tracks(self) -> Iterator[dict[str, Any]]:
        tracks = {(PROCESSES, index): f"process {index}" for index in range(len(self.result.processes))}
        names = [level["name"] for level in self.result.levels]
        disks = ((DISKS, event["disk"], f"disk {event['disk']}", lane) for event, lane in self.lanes())
        links = (
            (LINKS, event["level"], f"above {names[event['level']]}", lane)
            for event, lane in _in_lanes(self.of("link"), "level")
        )
        for group, index, name, lane in itertools.chain(disks, links):
            tracks[group, index * LANES_MAX + lane] = name + (f", lane {lane}" if lane else "")
        tracks[CACHE, 0] = "evictions"
        for event in self.events:
            if event["event"] in ("action", "hold"):
                tracks[PROCESSORS, event["process"]] = f"processor {event['process']}"
        for group in dict.fromkeys(group for group, _ in tracks):
            yield {"ph": "M", "pid": group, "tid": 0, "name": "process_name", "args": {"name": GROUPS[group]}}
            yield {"ph": "M", "pid": group, "tid": 0, "name": "process_sort_index", "args": {"sort_index": group}}
        for (group, track), name in sorted(tracks.items()):
            yield {"ph": "M", "pid": group, "tid": track, "name": "thread_name", "args": {"name": name}}

    def chrome_json(self) -> str:
        """Return the timeline as a file that ui.perfetto.dev and chrome://tracing open."""
        events = ",\n".join(_json(event) for event in self.chrome())
        about = {
            key: getattr(self.result, key) for key in ("version", "seed", "trace_sha256", "elapsed_ns", "stall_ns")
        }
        rest = json.dumps({"otherData": about}, ensure_ascii=False)[1:]
        return f'{{"displayTimeUnit": "ns", "traceEvents": [\n{events}\n], {rest}\n'

    def write_chrome(self, target: str | PathLike[str]) -> None:
        """Write the timeline as a file that ui.perfetto.dev and chrome://tracing open."""
        Path(target).write_text(self.chrome_json(), encoding="utf-8")

    def write_perfetto(self, target: str | PathLike[str]) -> None:
        """Write the timeline in Perfetto's own format, `.pftrace`; needs `headstart[perfetto]`."""
        Path(target).write_bytes(pftrace.encoded(self.chrome()))

    def write_parquet(self, target: str | PathLike[str]) -> None:
        """Write every event as a row of a Parquet file; needs `headstart[sweep]`."""
        from headstart.sweeps.folder import pyarrow

        pa, pq = pyarrow("events")
        types = {"event": pa.string(), "outcome": pa.string(), "kind": pa.string(), "blocks": pa.list_(pa.int64())}
        schema = pa.schema([(name, types.get(name, pa.int64())) for name in COLUMNS])
        arrays = [pa.array([each.get(name) for each in self.events], type=schema.field(name).type) for name in COLUMNS]
        pq.write_table(pa.table(arrays, schema=schema), target, compression="zstd")


def _in_lanes(events: Iterable[Event], key: str) -> Iterator[tuple[Event, int]]:
    """Yield each event with a lane, among those of the same `key`, that is free at that time."""
    ends: dict[int, list[int]] = {}
    for event in events:
        lanes = ends.setdefault(event[key], [])
        lane = next((at for at, end in enumerate(lanes) if end <= event["start_ns"]), len(lanes))
        lanes[lane : lane + 1] = [event["end_ns"]]
        yield event, lane


def _at(phase: str, group: int, track: int, at_ns: int) -> dict[str, Any]:
    return {"ph": phase, "pid": group, "tid": track, "ts": at_ns}


def _slice(group: int, track: int, start_ns: int, end_ns: int) -> dict[str, Any]:
    return {**_at("X", group, track, start_ns), "dur": end_ns - start_ns}


def _json(event: Mapping[str, Any]) -> str:
    """Return an event as JSON, its times in microseconds to the nanosecond: a binary fraction would not be exact."""
    times = [f'"{key}": {event[key] // 1000}.{event[key] % 1000:03d}' for key in ("ts", "dur") if key in event]
    rest = json.dumps({key: value for key, value in event.items() if key not in ("ts", "dur")}, ensure_ascii=False)
    return "{" + ", ".join([*times, rest[1:]])


def run(
    scenario: Scenario,
    *,
    overrides: Sequence[str] = (),
    progress: Progress | None = None,
    events_max: int = EVENTS_MAX,
) -> Timeline:
    """Run a scenario as `headstart.simulate` does, and record its events, at most `events_max`.

    Raises:
        HeadstartError: As for `simulate`, or there are more events.
    """
    result, events = _core.timeline(
        **source_of(scenario), overrides=list(overrides), on_progress=progress, events_max=events_max
    )
    return Timeline(result=Result.from_json(result), events=cast("list[Event]", json.loads(events)))

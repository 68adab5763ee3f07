"""A small run as rows of text, as in Figure 1 of kimbrel96: the activity of each process and each disk over time.

A row that is wider than the terminal is cut into bands. If all times are multiples of one unit, a column is a whole
fraction of the unit and the drawing is exact. Otherwise a column is a fraction of the run, and shorter events are not
visible.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from headstart._core import HeadstartError
from headstart.timelines import Timeline

REFERENCES_MAX = 200
PROCESSES_MAX = 16
DISKS_MAX = 16
COLUMNS_MIN, COLUMNS_MAX = 64, 1_600
"""Minimum and maximum width of a whole drawing."""
LABEL = 9
"""Columns before the time axis."""
RUN, STALL, BARRIER = "·", "░", "▒"
FETCH = {"demand": "═", "prefetch": "─", "write": "~"}
UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


def check(timeline: Timeline) -> None:
    """Refuse a run that is too long or too wide to be drawn.

    Raises:
        HeadstartError: It is; the line names the limit.
    """
    result = timeline.result
    for count, most, what, how in (
        (result.references, REFERENCES_MAX, "references", "as with --set workload.limit=50"),
        (len(result.processes), PROCESSES_MAX, "processes", "or the file of simulate --timeline"),
        (len(result.devices), DISKS_MAX, "disks", "or the file of simulate --timeline"),
    ):
        if count > most:
            raise HeadstartError(f"show: the run has {count:,} {what}; allowed: at most {most}, {how}")


def drawing(timeline: Timeline, width: int) -> Iterator[str]:
    """Return the lines of the drawing, at most `width` columns wide.

    Raises:
        HeadstartError: The run is too long to be drawn.
    """
    check(timeline)
    scale = _Scale(timeline)
    rows = dict(_rows(timeline, scale))
    room = max(width - LABEL, 20)
    for begin in range(0, scale.columns, room):
        end = min(begin + room, scale.columns)
        if begin:
            yield ""
        yield f"{f'time {scale.unit}':<{LABEL}}{scale.axis(begin, end)}".rstrip()
        for label, row in rows.items():
            yield f"{label[: LABEL - 1]:<{LABEL}}{''.join(row[begin:end])}".rstrip()
    yield ""
    yield from _legend(timeline)


class _Scale:
    """Maps times to columns."""

    def __init__(self, timeline: Timeline) -> None:
        ends = [int(event.get("end_ns", 0)) for event in timeline.events]
        self.elapsed_ns = max([timeline.result.elapsed_ns, 1, *ends])
        starts: dict[int, list[int]] = {}
        for event in timeline.of("reference"):
            starts.setdefault(event["process"], []).append(event["start_ns"])
        gaps = [later - first for each in starts.values() for first, later in itertools.pairwise(each) if later > first]
        gap = min(gaps, default=self.elapsed_ns)
        name = max((len(_name(timeline, event["blocks"])) for event in timeline.of("reference")), default=1)
        times = [event[key] for event in timeline.events for key in ("start_ns", "end_ns") if key in event]
        step = math.gcd(*times, self.elapsed_ns)
        # Stretch a short run over most of a line.
        each = max(math.ceil((name + 1) * step / gap), COLUMNS_MIN * step // self.elapsed_ns)
        if self.elapsed_ns // step * each <= COLUMNS_MAX:
            self.columns = self.elapsed_ns // step * each
        else:
            self.columns = min(max(math.ceil(self.elapsed_ns / gap * (name + 1)), COLUMNS_MIN), COLUMNS_MAX)
        self.size, self.unit = next(each for each in UNITS if self.elapsed_ns >= each[0])

    def column(self, at_ns: int) -> int:
        """Return the column of a time."""
        return int(at_ns) * self.columns // self.elapsed_ns

    def axis(self, begin: int, end: int) -> str:
        """Return the numbers of a band, at least ten columns apart."""
        least = self.elapsed_ns * 8 / self.columns
        power = 10 ** math.floor(math.log10(max(least, 1)))
        step = next(each for each in (power, 2 * power, 5 * power, 10 * power) if each >= least)
        row = [" "] * (end - begin)
        for at in range(0, self.elapsed_ns + 1, step):
            place = self.column(at) - begin
            if 0 <= place < len(row):
                _write(row, place, f"{at / self.size:g}")
        return "".join(row)


def _name(timeline: Timeline, blocks: Sequence[int]) -> str:
    names = timeline.names()
    first = names[blocks[0]] if blocks[0] < len(names) else str(blocks[0])
    return first if len(blocks) == 1 else f"{first}+{len(blocks) - 1}"


def _write(row: list[str], place: int, text: str) -> None:
    for at, letter in enumerate(text[: max(len(row) - place, 0)], start=place):
        row[at] = letter


def _fill(row: list[str], begin: int, end: int, letter: str) -> None:
    row[begin:end] = letter * max(min(end, len(row)) - begin, 0)


def _rows(timeline: Timeline, scale: _Scale) -> Iterator[tuple[str, list[str]]]:
    """Return each row with its label: processes, disks, evictions."""
    result = timeline.result
    for index, process in enumerate(result.processes):
        row = [" "] * scale.columns
        _fill(row, 0, scale.column(process["elapsed_ns"]), RUN)
        for event in timeline.of("wait"):
            if event["process"] == index:
                begin = scale.column(event["end_ns"] - event["time_ns"])
                letter = BARRIER if event["outcome"] == "barrier" else STALL
                _fill(row, begin, scale.column(event["end_ns"]), letter)
        waits: dict[int, int] = {
            each["start_ns"]: each["end_ns"] for each in timeline.of("wait") if each["process"] == index
        }
        for event in timeline.of("reference"):
            if event["process"] == index:
                # A block that was waited for arrives when the wait ends.
                start: int = event["start_ns"]
                at = start if event["outcome"] == "hit" else waits.get(start, start)
                _write(row, scale.column(at), _name(timeline, event["blocks"]))
        yield ("process" if len(result.processes) == 1 else f"proc {index}"), row
    yield from _disks(timeline, scale)
    evicted = [" "] * scale.columns
    together: dict[int, list[int]] = {}
    for event in timeline.of("eviction"):
        together.setdefault(min(scale.column(event["start_ns"]), scale.columns - 1), []).extend(event["blocks"])
    for place, blocks in sorted(together.items()):
        _write(evicted, place, _name(timeline, blocks))
    if any(letter != " " for letter in evicted):
        yield "evicted", evicted


def _disks(timeline: Timeline, scale: _Scale) -> Iterator[tuple[str, list[str]]]:
    rows: dict[tuple[int, int], list[str]] = {(disk, 0): [] for disk in range(len(timeline.result.devices))}
    for event, lane in timeline.lanes():
        begin = scale.column(event["start_ns"])
        end = scale.column(event["end_ns"])
        row = rows.setdefault((event["disk"], lane), [])
        row.extend([" "] * (scale.columns - len(row)))
        if event["event"] == "unfinished":
            _fill(row, begin, end, "?")
            continue
        _fill(row, begin, max(end, begin + 1), FETCH[event["kind"]])
        # Leave the last column of a request empty, to separate it from the next one.
        if end - begin > 1:
            row[end - 1] = " " if end < len(row) and end - begin > 2 else row[end - 1]
        # The name of a short request may extend beyond its end; the next request overwrites it.
        _write(row, begin, _name(timeline, event["blocks"]))
    for (disk, lane), row in sorted(rows.items()):
        yield f"disk {disk}" + (f".{lane}" if lane else ""), row or [" "] * scale.columns


def _legend(timeline: Timeline) -> Iterator[str]:
    kinds = dict.fromkeys(event["kind"] for event in timeline.of("service"))
    waits = dict.fromkeys(event["outcome"] for event in timeline.of("wait"))
    words: Mapping[str, str] = {"demand": "demand fetch", "prefetch": "prefetch", "write": "write"}
    parts = [f"{RUN} process runs"]
    parts += [f"{STALL} stall"] if any(each != "barrier" for each in waits) else []
    parts += [f"{BARRIER} barrier"] if "barrier" in waits else []
    parts += [f"{FETCH[kind]} {words[kind]}" for kind in words if kind in kinds]
    yield "  ".join(parts)

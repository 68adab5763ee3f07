"""The stand-ins of `reproduce zhang-pfc`, each the first requests of its trace, as a trace of one file: the disk.

The simulator and `headstart play` read the same file. Units and files lie one after another, in the order of their
numbers; Web's addresses are compacted in chunks of 64 pages, as in that study. Requests are rounded outwards to pages.
Writes are reads.
"""

import dataclasses
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from headstart._core import HeadstartError
from headstart._environment import TRACES_VARIABLE
from headstart_lab.studies.zhang_pfc import _workloads
from headstart_lab.studies.zhang_pfc._workloads import CHUNK_PAGES, SOURCES, WEB_SLOWER, expanded, find

PAGE = 4096
SECTOR = 512
REQUESTS = {"OLTP": 1_000, "Web": 500, "Multi": 1_500}
"""Requests of each trace: ten seconds, for OLTP thirty."""
TIME_SCALE = {"OLTP": 1.0, "Web": WEB_SLOWER}
"""Times between requests are multiplied by this; Multi is a closed loop."""

THINK_NS = 100_000
"""Think time after each reply, if the next request waits for it.

Without it the simulator sends the next request at the very instant of a hit, and a block prefetched at the instant of
its reference counts as fetched on demand. In real time there is no such instant. Think times are in the trace, as a
constant one applies to each page in a scenario, but to each request in `headstart play`.
"""

APART_S = 0.001
"""Minimum distance of requests that are issued at their timestamps.

Half of OLTP's come at the instant of another. Which of those reaches the disk first, and so where its arm starts, is
not determined in real time.
"""

Request = tuple[float, int, int, int]
"""Time in seconds, unit or file, first page, page after the last one."""


@dataclasses.dataclass(frozen=True)
class Workload:
    """A trace for both the simulator and the servers."""

    name: str
    trace: Path
    requests: int
    footprint: int
    """Distinct pages."""
    open: bool


def workloads(folder: Path, traces: Path | None, names: list[str]) -> list[Workload]:
    """Write the named traces into `folder`.

    Raises:
        HeadstartError: A trace is absent.
    """
    made = []
    for source in (each for each in SOURCES if each.name in names):
        path = find(dataclasses.replace(source, whole=()), _workloads.folders(traces))
        if path is None:
            raise HeadstartError(f"{source.prefix}: is not there; allowed: a folder with it in ${TRACES_VARIABLE}")
        plain = expanded(path, folder)
        own = _spc if source.timed else _files
        made.append(_written(source.name, folder / f"{source.name}.csv", own(plain, REQUESTS[source.name])))
    return made


def later(workload: Workload, by_ns: int) -> Workload:
    """Return a workload whose timed requests, except the first, come this much later; none before the first."""
    trace = workload.trace.with_name(f"{workload.name}-{by_ns}.csv")
    if not trace.exists():
        header, first, *others = workload.trace.read_text(encoding="ascii").splitlines()
        begin = float(first.split(",", 1)[0])
        moved = (line.split(",", 1) for line in others)
        lines = [header, first, *(f"{max(begin, float(time) + by_ns / 1e9):.6f},{rest}" for time, rest in moved)]
        trace.write_text("\n".join([*lines, ""]), encoding="ascii")
    return dataclasses.replace(workload, trace=trace)


def _written(name: str, target: Path, requests: list[Request]) -> Workload:
    bases = _bases(requests)
    placed = [(time, bases[unit] + first, bases[unit] + end) for time, unit, first, end in requests]
    if name == "Web":
        chunks = {page // CHUNK_PAGES for _, first, end in placed for page in range(first, end)}
        new = {chunk: at * CHUNK_PAGES for at, chunk in enumerate(sorted(chunks))}
        placed = [
            (
                time,
                new[first // CHUNK_PAGES] + first % CHUNK_PAGES,
                new[(end - 1) // CHUNK_PAGES] + (end - 1) % CHUNK_PAGES + 1,
            )
            for time, first, end in placed
        ]
    scale, clock = TIME_SCALE.get(name), -APART_S
    with target.open("w", encoding="ascii") as lines:
        lines.write("offset,size,think_ns\n" if scale is None else "time,offset,size\n")
        for time, first, end in placed:
            where = f"{first * PAGE},{(end - first) * PAGE}"
            if scale is None:
                lines.write(f"{where},{THINK_NS}\n")
            else:
                clock = max(time * scale, clock + APART_S)
                lines.write(f"{clock:.6f},{where}\n")
    footprint = len({page for _, first, end in placed for page in range(first, end)})
    return Workload(name, target, len(placed), footprint, scale is not None)


def _bases(requests: list[Request]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for _, unit, _, end in requests:
        ends[unit] = max(ends.get(unit, 0), end)
    bases, base = {}, 0
    for unit in sorted(ends):
        bases[unit] = base
        base += ends[unit]
    return bases


def _spc(path: Path, count: int) -> list[Request]:
    def each(lines: IO[str]) -> Iterator[Request]:
        for line in lines:
            unit, sector, size, _, time = line.split(",")[:5]
            first = SECTOR * int(sector)
            yield float(time), int(unit), first // PAGE, -(-(first + int(size)) // PAGE)

    with path.open(encoding="ascii") as lines:
        return list(islice(each(lines), count))


def _files(path: Path, count: int) -> list[Request]:
    def each(lines: IO[str]) -> Iterator[Request]:
        header = next(lines).strip().split(",")
        at = {name: header.index(name) for name in ("time", "file", "offset", "size")}
        for line in lines:
            fields = line.strip().split(",")
            first, size = int(fields[at["offset"]]), int(fields[at["size"]])
            if size:
                yield float(fields[at["time"]]), int(fields[at["file"]]), first // PAGE, -(-(first + size) // PAGE)

    with path.open(encoding="utf-8") as lines:
        return list(islice(each(lines), count))

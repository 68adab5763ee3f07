"""The servers' own time for a request, unknown to the simulator: sockets, thread wake-ups, timers and copies.

It is measured right before each case, on the machine under its load at that time, with the policy `demand` and new
pages, so that nothing else happens. Requests come like those of the case's workload: at the times of its first ones, or
with its think time after each reply. The servers take several times longer for a request after a pause of 20 ms than
for one after 0.1 ms, because their code and data have left the processor's caches by then. The parts, all but the last
of which are means over `READS` requests:

- `near_ns`: a page that L1 has cached, from the player to L1 and back, including the lateness of the player's timer.
- `way_ns`: what L2 adds to that for a page that L1 must fetch, less the link's cost, through both servers to memory.
- `page_ns`: the same for each further page of a message.
- `disk_ns`: what a disk adds to both beside the drive's own time, which the emulated disk counts: its answer is late,
  and L2 has to wake up.
- `disk_page_ns`: the same for each further page.
- `first_ns`: how late the first request of new servers reaches the emulated disk: the time that two far pages, read in
  sequence, take longer than simulated. The platter turns from the first request on, and the second page waits for it:
  what the first reply loses on its way back is not included. It is one measurement of single requests, from which
  medians are subtracted, not means.

All cases of a workload with a disk are simulated with the medians over them, so that none and PFC are simulated on one
machine.
"""

import dataclasses
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import headstart
from headstart._core import HeadstartError
from headstart.live.core import Record
from headstart.live.play import play_trace
from headstart_lab.servestudy.cases import DISKS, FREE, Case, Way, cost_ns, link
from headstart_lab.servestudy.live import Child, at_rest, chain, image, in_process
from headstart_lab.servestudy.workloads import PAGE, THINK_NS, Workload

READS = 64
PAGES = 8
"""Pages of a longer message."""
FIRST, SECOND = 9_000, 15_244
"""Pages that are far from the arm and from each other. The second one waits for the platter of each of the study's
disks, even if it is requested up to 3 ms later.
"""
BLOCKS = READS * PAGES
"""Frames of each cache: simultaneous requests do not wait for frames."""
BACKING = "mem:32MiB"
LEVELS: list[dict[str, Any]] = [
    {"name": "L1", "blocks": BLOCKS, "policy": "demand"},
    {"name": "L2", "blocks": BLOCKS, "policy": "demand", "link": link(FREE)},
]

Reads = list[tuple[int, int]]
"""First pages, and their counts."""

_NEW: Reads = [(at, BLOCKS // 8) for at in range(0, 2 * BLOCKS, BLOCKS // 8)]
"""Fills the frames of new servers, whose memory is touched for the first time then."""


def measured_way(disk: str, workload: Workload, folder: Path) -> Way:
    """Measure the way before this disk, at the pace of this workload.

    Raises:
        HeadstartError: A request failed.
    """
    with chain(BACKING, LEVELS, folder) as (_, _, uri):
        _played(uri, folder, _NEW)
        far, longer = (
            _mean_ns(uri, folder, [(BLOCKS * (2 + pages) + PAGES * at, pages) for at in range(READS)], workload)
            for pages in (1, PAGES)
        )
        single = [(BLOCKS * (1 + PAGES) + at, 1) for at in range(0, READS * PAGES, PAGES)]
        far_p50 = int(_played(uri, folder, single).response_ns["p50"])
        _played(uri, folder, [(0, 1)])
        near_p50 = int(_played(uri, folder, [(0, 1)] * READS).response_ns["p50"])
        near = _mean_ns(uri, folder, [(0, 1)] * READS, workload)
    with chain(f"emulate:{disk},deadline:{image(folder, disk)}", LEVELS, folder) as (_, below, uri):
        _played(uri, folder, _NEW)
        on_disk, longer_on_disk = (
            _mean_ns(uri, folder, _scattered(disk, pages), workload, below) for pages in (1, PAGES)
        )
    further, further_on_disk = (
        (each[1] - each[0]) // (PAGES - 1) for each in ((far, longer), (on_disk, longer_on_disk))
    )
    own = Way(far - near, near, 0, further, on_disk - far, further_on_disk - further)
    typical = Way(max(0, far_p50 - near_p50 - cost_ns(1)), near_p50)
    return dataclasses.replace(own, first_ns=_first_ns(disk, typical, folder) - own.disk_ns)


def _scattered(disk: str, pages: int) -> Reads:
    """Return places all over a disk, different ones for each number of pages."""
    places = DISKS[disk] // (2 * PAGES * PAGE)
    return [(2 * PAGES * ((at + pages * READS) * 1_000_003 % places), pages) for at in range(READS)]


def _first_ns(disk: str, typical: Way, folder: Path) -> int:
    reads = [(FIRST, 1), (SECOND, 1)]
    with chain(f"emulate:{disk},deadline:{image(folder, disk)}", LEVELS, folder) as (_, _, uri):
        real = _played(uri, folder, reads).elapsed_ns
    trace = _trace(uri, folder, reads, None)
    case = Case(disk, "first", "ra", "H", 1.0, "none")
    scenario = case.scenario(Workload("first", trace, 2, 2, open=False), typical)
    scenario["level"] = [LEVELS[0], {**LEVELS[1], "link": link(typical)}]
    simulated = in_process(lambda: headstart.simulate(scenario).elapsed_ns, goes_first=False)
    trace.unlink()
    # The simulator ends after the last think time, and has no player.
    return int(real - (simulated - THINK_NS - typical.near_ns)) - typical.near_ns


def _mean_ns(uri: str, folder: Path, reads: Reads, workload: Workload, server: Child | None = None) -> int:
    """Return the mean response at the pace of a workload, less the link and a server's drive time."""
    before = _drive_ns(server)
    played = _played(uri, folder, reads, _times(workload))
    drive: float = (_drive_ns(server) - before) / played.requests
    crosses = cost_ns(reads[0][1]) if len(set(reads)) > 1 else 0
    return round(float(played.response_ns["mean"]) - drive) - crosses


def _drive_ns(server: Child | None) -> int:
    """Return the time from arrival to end of all reads of the drive."""
    return int(at_rest(server)["device"]["response_ns"]) if server else 0


def _times(workload: Workload) -> list[float] | None:
    """Return the times of a workload's first requests, from the first one on; `None`: each after the last reply."""
    if not workload.open:
        return None
    with workload.trace.open(encoding="ascii") as lines:
        times = [float(line.split(",", 1)[0]) for line in islice(lines, 1, READS + 1)]
    return [time - times[0] for time in times]


def _trace(uri: str, folder: Path, reads: Reads, times: list[float] | None) -> Path:
    trace = folder / f"way-{uri.replace('/', '-')}.csv"
    places = [f"{first * PAGE},{pages * PAGE}" for first, pages in reads]
    if times is None:
        lines = ["offset,size,think_ns", *(f"{place},{THINK_NS}" for place in places)]
    else:
        lines = ["time,offset,size", *(f"{time:.6f},{place}" for time, place in zip(times, places, strict=False))]
    trace.write_text("\n".join([*lines, ""]), encoding="ascii")
    return trace


def _played(uri: str, folder: Path, reads: Reads, times: list[float] | None = None) -> Record:
    trace = _trace(uri, folder, reads, times)
    arrival: Literal["closed", "open"] = "closed" if times is None else "open"
    try:
        played: Record = in_process(lambda: play_trace(trace, uri, format="csv", arrival=arrival))
    finally:
        trace.unlink()
    if played.errors:
        raise HeadstartError(f"{uri}: {played.errors} requests failed")
    return played

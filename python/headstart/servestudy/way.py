"""The servers' own time for a request, which the simulator does not know: sockets, thread wake-ups and timers.

It has three parts, measured right before each case, on the machine under its load at that time, with policies `demand`
and caches of one page, so that nothing else happens:

- `near_ns`: a page that L1 has cached, from the player to L1 and back.
- `way_ns`: what L2 adds to that for a page that L1 has to get, less the link's cost. Both are medians of single pages,
  one at a time, through both servers to memory.
- `first_ns`: how late the first request of new servers reaches the emulated disk: what two far pages, one after the
  other, take longer than the simulator says. The platter turns from the first request on, and the second page waits for
  it: what the first reply loses on its way back is not in it. Their memory is touched for the first time then.

All cases with a disk are simulated with the medians over its cases, so that none and PFC are simulated on one machine.
"""

import dataclasses
from pathlib import Path
from typing import Any

import headstart
from headstart._core import HeadstartError
from headstart.playing import Played, play_trace
from headstart.servestudy.cases import Case, cost_ns, link
from headstart.servestudy.live import chain, image, in_process
from headstart.servestudy.workloads import PAGE, THINK_NS, Workload

READS = 64
FIRST, SECOND = 9_000, 15_244
"""Pages that are far from the arm and from each other. The second one waits for the platter of each of the study's
disks, also if it is asked for up to 3 ms later.
"""
BACKING = "mem:4MiB"
LEVELS: list[dict[str, Any]] = [
    {"name": "L1", "blocks": 1, "policy": "demand"},
    {"name": "L2", "blocks": 1, "policy": "demand", "link": link()},
]


@dataclasses.dataclass(frozen=True)
class Way:
    """The servers' own time, in nanoseconds."""

    way_ns: int = 0
    """For a reply of L2, beside the link."""
    near_ns: int = 0
    """For a request of the player to L1 and its reply."""
    first_ns: int = 0
    """For the first request of new servers, beside both."""


def measured_way(disk: str, folder: Path) -> Way:
    """Measure it, before this disk.

    Raises:
        HeadstartError: A request failed.
    """
    with chain(BACKING, LEVELS, folder) as (_, _, uri):
        far = _median_ns(uri, folder, [7 * at for at in range(READS)])
        near = _median_ns(uri, folder, [0] * READS)
    own = Way(max(0, far - near - cost_ns(1)), near)
    return dataclasses.replace(own, first_ns=_first_ns(disk, own, folder))


def _first_ns(disk: str, own: Way, folder: Path) -> int:
    with chain(f"emulate:{disk},deadline:{image(folder, disk)}", LEVELS, folder) as (_, _, uri):
        real = _played(uri, folder, [FIRST, SECOND]).elapsed_ns
    trace = _trace(uri, folder, [FIRST, SECOND])
    case = Case(disk, "first", "ra", "H", 1.0, "none")
    scenario = case.scenario(Workload("first", trace, 2, 2, open=False), near_ns=own.near_ns)
    scenario["level"] = [LEVELS[0], {**LEVELS[1], "link": link(own.way_ns)}]
    simulated = in_process(lambda: headstart.simulate(scenario).elapsed_ns, goes_first=False)
    trace.unlink()
    # The simulator ends after the last think time, and knows no player.
    return int(real - (simulated - THINK_NS - own.near_ns)) - own.near_ns


def _median_ns(uri: str, folder: Path, pages: list[int]) -> int:
    return int(_played(uri, folder, pages).response_ns["p50"])


def _trace(uri: str, folder: Path, pages: list[int]) -> Path:
    trace = folder / f"way-{uri.replace('/', '-')}.csv"
    lines = [f"{page * PAGE},{PAGE},{THINK_NS}" for page in pages]
    trace.write_text("\n".join(["offset,size,think_ns", *lines, ""]), encoding="ascii")
    return trace


def _played(uri: str, folder: Path, pages: list[int]) -> Played:
    trace = _trace(uri, folder, pages)
    try:
        played: Played = in_process(lambda: play_trace(trace, uri, format="csv"))
    finally:
        trace.unlink()
    if played.errors:
        raise HeadstartError(f"{uri}: {played.errors} requests failed")
    return played

"""The servers' own time for a request, which the simulator does not know: sockets, thread wake-ups and timers.

It has three parts, measured right before each case, on the machine under its load at that time, with policies `demand`
and caches of one page, so that nothing else happens:

- `near_ns`: a page that L1 has cached, from the player to L1 and back.
- `way_ns`: what L2 adds to that for a page that L1 has to get, less the link's cost. Both are medians of single pages,
  one at a time, through both servers to memory.
- `first_ns`: what the first page of new servers takes longer than the simulator says, before the emulated disk. Their
  memory is touched for the first time then.

All cases with a disk are simulated with the medians over its cases, so that none and PFC are simulated on one machine.
"""

import dataclasses
from pathlib import Path
from typing import Any

import headstart
from headstart._core import HeadstartError
from headstart.playing import play_trace
from headstart.servestudy.cases import Case, cost_ns, link
from headstart.servestudy.live import chain, image, in_process
from headstart.servestudy.workloads import PAGE, THINK_NS, Workload

READS = 64
FIRST = 9_000
"""A page that is far from the arm at the start."""
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
        real = _median_ns(uri, folder, [FIRST])
    case = Case(disk, "first", "ra", "H", 1.0, "none")
    trace = folder / f"first-{uri.replace('/', '-')}.csv"
    trace.write_text(f"offset,size\n{FIRST * PAGE},{PAGE}\n", encoding="ascii")
    scenario = case.scenario(Workload("first", trace, 1, 1, open=False))
    scenario["level"] = [LEVELS[0], {**LEVELS[1], "link": link(own.way_ns)}]
    simulated = in_process(lambda: headstart.simulate(scenario).response_ns["mean"])
    trace.unlink()
    return int(real - simulated) - own.near_ns


def _median_ns(uri: str, folder: Path, pages: list[int]) -> int:
    trace = folder / f"way-{uri.replace('/', '-')}.csv"
    trace.write_text("\n".join(["offset,size", *(f"{page * PAGE},{PAGE}" for page in pages), ""]), encoding="ascii")
    try:
        played = in_process(lambda: play_trace(trace, uri, format="csv", arrival="closed", compute=f"{THINK_NS}ns"))
    finally:
        trace.unlink()
    if played.errors:
        raise HeadstartError(f"{uri}: {played.errors} requests failed")
    return int(played.response_ns["p50"])

"""The servers' own time for a request, which the simulator does not know: sockets, thread wake-ups and timers.

It has two parts. `near_ns` is the time of a page that L1 has cached: from the player to L1 and back. `way_ns` is what
L2 adds to that for a page that L1 has to get, less the link's cost. Both are measured right before each case, on the
machine under its load at that time: single pages, one at a time, through both servers to memory. Policies are `demand`
and caches of one page, so that nothing else happens. The median counts, as it is what most requests take. All cases
with a disk are simulated with the median over these cases, so that none and PFC are simulated on one machine.
"""

import dataclasses
from pathlib import Path
from typing import Any

from headstart._core import HeadstartError
from headstart.playing import play_trace
from headstart.servestudy.cases import THINK, cost_ns, link
from headstart.servestudy.live import chain, in_process
from headstart.servestudy.workloads import PAGE

READS = 64
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


def measured_way(folder: Path) -> Way:
    """Measure it.

    Raises:
        HeadstartError: A request failed.
    """
    with chain(BACKING, LEVELS, folder) as (_, _, uri):
        far = _median_ns(uri, folder, [7 * at for at in range(READS)])
        near = _median_ns(uri, folder, [0] * READS)
    return Way(max(0, far - near - cost_ns(1)), near)


def _median_ns(uri: str, folder: Path, pages: list[int]) -> int:
    trace = folder / f"way-{uri.replace('/', '-')}.csv"
    trace.write_text("\n".join(["offset,size", *(f"{page * PAGE},{PAGE}" for page in pages), ""]), encoding="ascii")
    try:
        played = in_process(lambda: play_trace(trace, uri, format="csv", arrival="closed", compute=THINK))
    finally:
        trace.unlink()
    if played.errors:
        raise HeadstartError(f"{uri}: {played.errors} requests failed")
    return int(played.response_ns["p50"])

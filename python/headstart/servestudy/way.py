"""The servers' own way: what a reply of L2 takes beside the link's cost, which the simulator does not know.

It is sockets, wakes of threads and timers. It is measured right before each case, on the machine as busy as it is then:
single pages, one at a time, through both servers to memory, less the link's cost and less what a page takes that L1
has. Policies are `demand` and caches of one page, so that nothing else happens. The median counts: it is what most
replies take; and of all cases with a disk their median, so that none and PFC are simulated on one machine.
"""

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


def way_ns(folder: Path) -> int:
    """Measure it.

    Raises:
        HeadstartError: A request failed.
    """
    with chain(BACKING, LEVELS, folder) as (_, _, uri):
        far = _median_ns(uri, folder, [7 * at for at in range(READS)])
        near = _median_ns(uri, folder, [0] * READS)
    return max(0, far - near - cost_ns(1))


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

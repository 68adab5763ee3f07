"""Scenarios that the paper did not print, on which the model and the simulation are held against each other.

The grid was written down, and committed, before any of its results was looked at: two drives, four sizes of files, two
of requests, six numbers of streams, three of clusters. Overhead and bus are those of the slow machine, prefetching is
up to a cluster. What differs between the two sides is the equations alone: the model gets the same file system, drive
and costs, and counts requests as the simulated file system makes them.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headstart_lab.studies.shriver99 import _platform as platform

DRIVES: Final = ("seagate-cheetah-4lp", "seagate-cheetah-9lp")
FILES_KB: Final = (32, 96, 192, 512)
REQUESTS_KB: Final = (8, 64)
STREAMS: Final = (1, 2, 3, 5, 8, 12)
CLUSTERS_KB: Final = (32, 64, 128)
SEEDS: Final = 20
"""Runs averaged for several streams."""


class Point(NamedTuple):
    """A point of the grid."""

    drive: str
    file_kb: int
    request_kb: int
    streams: int
    cluster_kb: int

    @property
    def label(self) -> str:
        """The name in rows."""
        drive = self.drive.removeprefix("seagate-")
        streams = f"{self.streams} stream" + ("s" if self.streams > 1 else "")
        return f"{drive}, {streams} of {self.file_kb} KB, requests {self.request_kb} KB, clusters {self.cluster_kb} KB"

    def scenarios(self) -> list[dict[str, Any]]:
        """Return its runs: one of many files for a single stream, `SEEDS` for several."""
        seeds = range(1, SEEDS + 1) if self.streams > 1 else (1,)
        return [
            platform.scenario(
                file_kb=self.file_kb,
                request_kb=self.request_kb,
                streams=self.streams,
                seed=seed,
                cluster_kb=self.cluster_kb,
                policy={"name": "ffs", "max": platform.size(self.cluster_kb)},
                device=platform.device(platform.SLOW_SEVERAL_MS, platform.SLOW_BUS, model=self.drive),
                costs=platform.SLOW_COSTS,
            )
            for seed in seeds
        ]


def points() -> Iterator[Point]:
    """Yield the grid's points: 288."""
    return itertools.starmap(Point, itertools.product(DRIVES, FILES_KB, REQUESTS_KB, STREAMS, CLUSTERS_KB))

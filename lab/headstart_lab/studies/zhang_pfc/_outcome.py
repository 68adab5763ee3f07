"""The part of a run of the matrix that the rows need."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

from headstart.simulation import Result

SATURATED = 0.95
"""A disk that is busy for this share of the time is marked as saturated."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one run; blocks are pages."""

    response_ms: float
    """Mean time of a request."""
    utilization: float
    """The busy share of the disk, 0 to 1."""
    disk_requests: int
    disk_blocks: int
    l1_hit_ratio: float
    l2_hit_ratio: float
    """The share of the blocks that L1 requests from L2 that are there or on their way, silently or not."""
    l2_native_hit_ratio: float
    """The same for the blocks that do not bypass L2."""
    l2_frames: int
    l2_misses: int
    l2_prefetches: int
    """Blocks, including those of readmore."""
    l2_unused: int
    """Prefetched blocks never used."""
    l2_late: int
    l2_pollution: int
    l2_wasted_service_ms: float
    """Disk time of unused prefetches."""
    silent_hits: int
    bypass_blocks: int
    bypass_fetches: int
    readmore_blocks: int

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return what the rows need of `result`."""
        upper, lower = result.levels
        return cls(
            response_ms=result.response_ns["mean"] / 1e6,
            utilization=result.utilization,
            disk_requests=sum(device["requests"] for device in result.devices),
            disk_blocks=sum(device["blocks"] for device in result.devices),
            l1_hit_ratio=_hit_ratio(upper),
            l2_hit_ratio=_hit_ratio(lower),
            l2_native_hit_ratio=_hit_ratio(
                {
                    "references": lower["references"] - lower["bypass_blocks"],
                    "misses": lower["misses"] - lower["bypass_fetches"],
                }
            ),
            l2_frames=lower["blocks"],
            l2_misses=lower["misses"],
            l2_prefetches=lower["prefetches"],
            l2_unused=lower["prefetches_wasted"],
            l2_late=lower["prefetches_late"],
            l2_pollution=lower["pollution"],
            l2_wasted_service_ms=lower["wasted_service_ns"] / 1e6,
            silent_hits=lower["silent_hits"],
            bypass_blocks=lower["bypass_blocks"],
            bypass_fetches=lower["bypass_fetches"],
            readmore_blocks=lower["readmore_blocks"],
        )

    @property
    def request_pages(self) -> float:
        """Mean length of the disk's requests."""
        return self.disk_blocks / self.disk_requests if self.disk_requests else 0.0

    @property
    def saturated(self) -> bool:
        """Whether the disk was busy nearly all the time."""
        return self.utilization >= SATURATED


def _hit_ratio(level: Mapping[str, Any]) -> float:
    references = level["references"]
    return (references - level["misses"]) / references if references else 0.0

"""The part of a run that the rows need."""

import dataclasses
from typing import Self

from headstart.simulation import Result


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one run; blocks are pages."""

    elapsed_s: float
    throughput_mb: float
    """10^6 bytes a second that processes requested."""
    utilization: float
    disk_requests: int
    disk_blocks: int
    seek_ms: float
    """Mean seek time per request of the drive."""
    prefetches: int
    wasted: int
    """Prefetched blocks never used."""
    last_read_ms: float
    """Mean time from request to completion, of the last process."""
    last_idle_s: float
    """Time between the end of the last process and the end of the run."""

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return what the rows need of `result`."""
        requests = sum(device["requests"] for device in result.devices)
        last = result.processes[-1]
        return cls(
            elapsed_s=result.elapsed_ns / 1e9,
            throughput_mb=result.throughput_bytes_per_s / 1e6,
            utilization=result.utilization,
            disk_requests=requests,
            disk_blocks=sum(device["blocks"] for device in result.devices),
            seek_ms=sum(device["seek_ns"] for device in result.devices) / 1e6 / max(requests, 1),
            prefetches=result.prefetches,
            wasted=result.prefetches_wasted,
            last_read_ms=last["read_ns_mean"] / 1e6,
            last_idle_s=last["idle_ns"] / 1e9,
        )

    @property
    def request_kb(self) -> float:
        """Mean KiB of the drive's requests."""
        return 4 * self.disk_blocks / self.disk_requests if self.disk_requests else 0.0

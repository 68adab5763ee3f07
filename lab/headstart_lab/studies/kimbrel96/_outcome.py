"""The part of a run that the rows of this study need."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

from headstart.simulation import Result
from headstart_lab.studies import _lab


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The part of a run that the rows need."""

    elapsed_s: float
    compute_s: float
    driver_s: float
    stall_s: float
    requests: int
    """Requests of the application; one may read several blocks."""
    references: int
    fetches: int
    wasted: int
    """Prefetched blocks that were never used."""
    utilization: float
    """Mean over the disks, 0 to 1."""
    service_ms: float
    """Mean service time of a disk request."""
    response_ms: float
    """Mean time of a disk request from queue to end."""
    service_parts_ms: dict[str, float]
    """Mean seek, rotation, transfer and overhead of a disk request."""

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return what the rows need of `result`."""
        requests = sum(device["requests"] for device in result.devices)

        devices: Sequence[Mapping[str, Any]] = result.devices

        def mean(key: str) -> float:
            total = sum(device[key] * device["requests"] for device in devices)
            return float(total / requests / 1e6) if requests else 0.0

        def part(key: str) -> float:
            total = sum(device[f"{key}_ns"] for device in devices)
            return float(total / requests / 1e6) if requests else 0.0

        return cls(
            elapsed_s=result.elapsed_ns / 1e9,
            compute_s=result.compute_ns / 1e9,
            driver_s=result.driver_ns / 1e9,
            stall_s=result.stall_ns / 1e9,
            requests=result.requests,
            references=result.references,
            fetches=result.fetches,
            wasted=result.prefetches_wasted,
            utilization=result.utilization,
            service_ms=mean("service_ns_mean"),
            response_ms=mean("response_ns_mean"),
            service_parts_ms={key: part(key) for key in ("seek", "rotation", "transfer", "overhead")},
        )

    @property
    def split(self) -> str:
        """The composition of the time, in words."""
        return (
            f"compute {self.compute_s:.2f}, driver {self.driver_s:.2f}, stall {self.stall_s:.2f} s; "
            f"{self.fetches} fetches, {self.wasted} wasted; disks {100 * self.utilization:.0f} % busy"
        )


Cell = _lab.Cell[Outcome]

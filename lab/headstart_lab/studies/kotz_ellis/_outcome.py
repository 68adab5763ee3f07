"""The part of a run that the rows need."""

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from headstart.simulation import Result

MS = 1e6
"""Nanoseconds of a millisecond."""


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """From one barrier to the next."""

    length_ms: float
    critical_wait_ms: float
    """How long the process that came last waited for blocks."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of a run, or the mean of several.

    Times are in milliseconds, for one process; unless stated otherwise, they are means over processes.
    """

    total_ms: float
    read_ms: float
    """Mean time of a read."""
    read_p50_ms: float
    read_max_ms: float
    references: float
    misses: float
    hits_ready: float
    hits_unready: float
    hit_wait_ms: float
    """Mean over the unready hits."""
    fetches: float
    prefetches: float
    disk_ms: float
    """Mean response time of the disks, from entry into the queue on."""
    compute_ms: float
    stall_ms: float
    barrier_ms: float
    overhead_ms: float
    """Overrun and waits for the shared structures."""
    idle_ms: float
    """After its last read, while others read on."""
    action_ms: float
    """Mean length of an action."""
    overruns: float
    overrun_ms: float
    """Mean of the overruns that there were."""
    intervals: tuple[Interval, ...]
    """For several runs, the intervals of the first."""

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return what the rows need of `result`."""
        processes = result.processes
        overruns = sum(each["overruns"] for each in processes)
        requests = sum(device["requests"] for device in result.devices)
        responses = sum(device["requests"] * device["response_ns_mean"] for device in result.devices)
        return cls(
            total_ms=result.elapsed_ns / MS,
            read_ms=result.response_ns["mean"] / MS,
            read_p50_ms=result.response_ns["p50"] / MS,
            read_max_ms=result.response_ns["max"] / MS,
            references=result.references,
            misses=result.misses,
            hits_ready=result.hits_ready,
            hits_unready=result.hits_unready,
            hit_wait_ms=result.hit_wait_ns_mean / MS,
            fetches=result.fetches,
            prefetches=result.prefetches,
            disk_ms=share(responses, requests) / MS,
            action_ms=share(_sum(processes, "action_ns"), _sum(processes, "actions")) / MS,
            overruns=overruns,
            overrun_ms=share(_sum(processes, "overrun_ns"), overruns) / MS,
            intervals=tuple(
                Interval(
                    (each["end_ns"] - each["start_ns"]) / MS,
                    (each["critical_own_io_ns"] + each["critical_other_io_ns"]) / MS,
                )
                for each in result.intervals
            ),
            **{
                f"{part}_ms": share(_sum(processes, f"{part}_ns"), len(processes)) / MS
                for part in ("compute", "stall", "barrier", "overhead", "idle")
            },
        )

    @property
    def miss_ratio(self) -> float:
        """Misses over references."""
        return share(self.misses, self.references)

    @property
    def unready_share(self) -> float:
        """The share of hits whose block was still on its way."""
        return share(self.hits_unready, self.hits_ready + self.hits_unready)


def mean(runs: Sequence[Outcome]) -> Outcome:
    """Return the mean of every figure."""
    names = [field.name for field in dataclasses.fields(Outcome) if field.name != "intervals"]
    means: dict[str, Any] = {name: statistics.fmean(getattr(run, name) for run in runs) for name in names}
    return dataclasses.replace(runs[0], **means)


def share(part: float, whole: float) -> float:
    """Return the quotient; 0 of nothing."""
    return part / whole if whole else 0.0


def _sum(processes: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(each[key] for each in processes)

"""The parts of simulations and of the model that the rows need."""

import dataclasses
import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Self

from headstart import model
from headstart.simulation import Result
from headstart_lab.studies import _lab
from headstart_lab.studies._lab import Cell
from headstart_lab.studies.shriver99 import _platform as platform

MS = 1e6
"""Nanoseconds of a millisecond."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one run, times in milliseconds: sums over the disk's requests, but the mean of the response."""

    response_ms: float
    """Mean over the application's requests, without opens: FSRT."""
    elapsed_ms: float
    disk_requests: int
    buffer_hits: int
    seek_ms: float
    rotation_ms: float
    transfer_ms: float
    overhead_ms: float

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return what the rows need of `result`."""
        disks: Sequence[Mapping[str, Any]] = result.devices
        (disk,) = disks
        times = {f"{name}_ms": disk[f"{name}_ns"] / MS for name in ("seek", "rotation", "transfer", "overhead")}
        return cls(
            response_ms=result.response_ns["mean"] / MS,
            elapsed_ms=result.elapsed_ns / MS,
            disk_requests=disk["requests"],
            buffer_hits=disk["buffer_hits"],
            **times,
        )


class Runs:
    """Runs of one workload that are averaged: one of many files, or one for each seed."""

    def __init__(self, cells: Sequence[Cell[Outcome]]) -> None:
        self._cells = cells

    @property
    def response_ms(self) -> float:
        """Mean response time of a request."""
        return statistics.fmean(cell.outcome.response_ms for cell in self._cells)

    @property
    def error_ms(self) -> float | None:
        """Standard error of that mean over the runs; `None` for one run."""
        if len(self._cells) < 2:
            return None
        deviation = statistics.stdev(cell.outcome.response_ms for cell in self._cells)
        return deviation / math.sqrt(len(self._cells))

    def mean(self, field: str) -> float:
        """Return the mean of a field over the runs."""
        return statistics.fmean(getattr(cell.outcome, field) for cell in self._cells)

    @property
    def spread(self) -> str:
        """The standard error in words, if there is one."""
        error = self.error_ms
        return "" if error is None else f", +- {error:.2f} ms over {len(self._cells)} runs"


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """One workload on both sides, in ms: a bar of a figure, or a point of the grid."""

    series: str
    x: str
    simulated_ms: float
    model_ms: float

    @property
    def error(self) -> float:
        """The model's error against the simulation, relative."""
        return self.model_ms / self.simulated_ms - 1


class Lab(_lab.Lab[Outcome]):
    """Requests the runs that rows need, and keeps the data that charts are drawn from."""

    outcome = Outcome

    @functools.cached_property
    def pairs(self) -> dict[str, list[Pair]]:
        """By item, once its runs are done."""
        return {}

    def runs(self, *, streams: int = 1, seeds: int = platform.SEEDS, **workload: Any) -> Runs:
        """Return runs of a workload (see `_platform.scenario`)."""
        numbers = range(1, seeds + 1) if streams > 1 else (1,)
        return self.of([platform.scenario(streams=streams, seed=seed, **workload) for seed in numbers])

    def of(self, scenarios: Sequence[dict[str, Any]]) -> Runs:
        """Return runs of scenarios whose results are averaged."""
        return Runs([self.ask(each) for each in scenarios])


def model_ms(
    machine: str, *, streams: int = 1, file_kb: float, request_kb: float, prefetch: bool = True, **more: Any
) -> float:
    """Return the model's response time on one of the paper's machines, as the paper computes."""
    keys: dict[str, Any] = {**model.PLATFORMS[machine], **more}
    if not prefetch:
        keys["prefetch_limit"] = 0
    found = model.file_system(
        streams=streams, file_size=platform.size(file_kb), request=platform.size(request_kb), **keys
    )
    return float(found.response_ns) / MS

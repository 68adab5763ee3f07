"""Runs each scenario once, on all cores, and keeps what the rows need.

An item asks for the cells that it needs, yields until they are done, and may then ask for more: two items that ask
for the same scenario share one run. A cell is keyed on its full scenario.
"""

import concurrent.futures
import dataclasses
import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from headstart.simulation import Result, simulate

Scenario = Mapping[str, Any]
Report = Callable[[str, float], None]

REPORT_EVERY_S = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What the rows need of a run."""

    elapsed_s: float
    compute_s: float
    driver_s: float
    stall_s: float
    requests: int
    """Of the application; one may read several blocks."""
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

        def mean(key: str) -> float:
            total = sum(device[key] * device["requests"] for device in result.devices)
            return float(total / requests / 1e6) if requests else 0.0

        def part(key: str) -> float:
            total = sum(device[f"{key}_ns"] for device in result.devices)
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
        """How the time is made up, in words."""
        return (
            f"compute {self.compute_s:.2f}, driver {self.driver_s:.2f}, stall {self.stall_s:.2f} s; "
            f"{self.fetches} fetches, {self.wasted} wasted; disks {100 * self.utilization:.0f} % busy"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """A run that was asked for."""

    _future: concurrent.futures.Future[Outcome]

    @property
    def outcome(self) -> Outcome:
        """The outcome, waiting for it if need be."""
        return self._future.result()


class Lab:
    """A pool of workers and the cells that were asked of it."""

    def __init__(self, workers: int) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(workers)
        self._cells: dict[str, Cell] = {}
        self._pending: set[concurrent.futures.Future[Outcome]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=True)

    def __len__(self) -> int:
        """Return how many different scenarios were asked for."""
        return len(self._cells)

    def cell(self, scenario: Scenario) -> Cell:
        """Ask for a scenario; the same one is run once."""
        key = json.dumps(scenario, sort_keys=True)
        if key not in self._cells:
            future = self._pool.submit(lambda: Outcome.of(simulate(scenario)))
            self._pending.add(future)
            self._cells[key] = Cell(future)
        return self._cells[key]

    def wait(self, report: Report) -> None:
        """Wait until all that was asked for is done.

        Raises:
            HeadstartError: A scenario or a trace is at fault.
        """
        while True:
            done, self._pending = concurrent.futures.wait(
                self._pending, REPORT_EVERY_S, concurrent.futures.FIRST_EXCEPTION
            )
            for future in done:
                future.result()
            total = len(self._cells)
            report(f"{total - len(self._pending)} of {total} runs", 1 - len(self._pending) / max(total, 1))
            if not self._pending:
                return

"""The model of open arrivals at a disk, compared with the simulation."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headstart import _core, simulation
from headstart.model.scenarios import RUNS, Check, compared
from headstart.simulation import Scenario


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenArrivals:
    """The mean request according to the model; times in nanoseconds."""

    response_ns: float
    """From arrival to completion: the sum of the two that follow."""
    wait_ns: float
    """In the queue."""
    service_ns: float
    """At the disk: the sum of the four that follow."""
    overhead_ns: float
    seek_ns: float
    rotation_ns: float
    transfer_ns: float
    busy: float
    """The disk's share of busy time, 0 to 1."""

    def to_dict(self) -> dict[str, float]:
        """Return it as `headstart model open --json` prints it."""
        return dataclasses.asdict(self)


def open_arrivals(scenario: Scenario, *, overrides: Sequence[str] = ()) -> OpenArrivals:
    """Return the mean response of requests that arrive at given times, in runs of contiguous ones.

    Generator `runs`, `arrival = "open"`, policy `demand`, scheduler `fcfs`, one disk: docs/model.md has the keys.

    Raises:
        HeadstartError: A key of the scenario is at fault, or one that the equations know nothing of; or requests arrive
            faster than the disk serves them.
    """
    text = _core.model_open(**simulation.source_of(scenario), overrides=list(overrides))
    return OpenArrivals(**json.loads(text))


def check_open(
    scenario: Scenario,
    *,
    overrides: Sequence[str] = (),
    runs: int = RUNS,
    progress: Callable[[float], object] | None = None,
) -> Check:
    """Return that model beside `runs` simulations of the scenario, whose seeds follow the scenario's.

    Raises:
        HeadstartError: As for `open_arrivals`, or `runs` is not positive.
    """
    found = open_arrivals(scenario, overrides=overrides)
    modelled = {"response_ns": found.response_ns, "service_ns": found.service_ns, "busy": found.busy}
    return compared(scenario, overrides, modelled, _of_run, runs=runs, progress=progress)


def _of_run(result: simulation.Result) -> dict[str, float]:
    devices: Sequence[Mapping[str, Any]] = result.devices
    [device] = devices
    return {
        "response_ns": result.response_ns["mean"],
        "service_ns": device["busy_ns"] / device["requests"],
        "busy": device["busy_ns"] / result.elapsed_ns,
    }

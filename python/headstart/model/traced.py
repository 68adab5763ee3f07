"""The file-system model of a recorded program, compared with the simulation."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headstart import _core, simulation
from headstart.model.scenarios import RUNS, Check, compared
from headstart.simulation import Scenario


@dataclasses.dataclass(frozen=True, kw_only=True)
class TraceParameters:
    """A trace in the terms of the paper's Table 2; sizes in bytes."""

    requests: int
    request: float
    """Mean size of a request."""
    data_span: int
    """All blocks that are read, each once."""
    runs: int
    """Requests that do not begin where the last one of their file ended."""
    run_length: float
    """Mean size of a run of contiguous requests of a file."""
    switches: int
    """Requests for another file than the one before."""
    writes: int
    """Requests that write; 0 where all count as reads or writes are left out."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TraceModel:
    """A recorded program according to the model; times in nanoseconds."""

    response_ns: float
    """Mean of the requests."""
    elapsed_ns: float
    """All of the trace, think times included."""
    disk_requests: int
    """Requests of the disk that have ended when the program does, as a simulation's result counts them."""
    disk_writes: int
    """Those of them that write."""
    buffer_hits: int
    """Those of them that its cache has, or takes."""
    disk: dict[str, float]
    """What all of them take: `overhead_ns`, `seek_ns`, `rotation_ns` and `transfer_ns`."""
    parameters: TraceParameters

    def to_dict(self) -> dict[str, Any]:
        """Return it as `headstart model trace --json` prints it."""
        return dataclasses.asdict(self)


def of_trace(scenario: Scenario, *, overrides: Sequence[str] = ()) -> TraceModel:
    """Return the mean response of a recorded program that reads files through the file system.

    A trace that tells files apart, placement `ffs`, policy `ffs` or `demand`, one process, a cache that holds all that
    is fetched, one disk, writes left out, as reads or written back: docs/model.md has the keys.

    Raises:
        HeadstartError: A key of the scenario or the trace is at fault, or a key that the equations know nothing of.
    """
    text = _core.model_trace(**simulation.source_of(scenario), overrides=list(overrides))
    found = json.loads(text)
    return TraceModel(**{**found, "parameters": TraceParameters(**found["parameters"])})


def check_trace(
    scenario: Scenario,
    *,
    overrides: Sequence[str] = (),
    runs: int = RUNS,
    progress: Callable[[float], object] | None = None,
) -> Check:
    """Return that model beside `runs` simulations of the scenario.

    The seeds of the simulations follow the scenario's and lay the files out anew; the model has the scenario's own
    layout.

    Raises:
        HeadstartError: As for `of_trace`, or `runs` is not positive.
    """
    found = of_trace(scenario, overrides=overrides)
    modelled: dict[str, float] = {
        "response_ns": found.response_ns,
        "disk_requests": found.disk_requests,
        "disk_writes": found.disk_writes,
        "buffer_hits": found.buffer_hits,
    }
    return compared(scenario, overrides, modelled, _of_run, runs=runs, progress=progress)


def _of_run(result: simulation.Result) -> dict[str, float]:
    devices: Sequence[Mapping[str, Any]] = result.devices
    [device] = devices
    return {
        "response_ns": result.response_ns["mean"],
        "disk_requests": device["requests"],
        "disk_writes": device["writes"],
        "buffer_hits": device["buffer_hits"],
    }

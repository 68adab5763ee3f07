"""The file-system model of a scenario, its advice, and a comparison with the simulation."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headstart import _core, simulation
from headstart.model.file_system import Response
from headstart.simulation import Scenario

RUNS = 20
"""Number of runs of `check`, each with its own seed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Advice:
    """A change to a scenario and its gain according to the model."""

    set: tuple[str, ...]
    """Settings that override keys of the scenario, in the form used by `--set`."""
    total_ns: float
    """Sum of the response times of a file's requests after the change."""
    gain: float
    """Relative reduction of this sum."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScenarioModel:
    """The model's answer for a scenario."""

    response: Response
    """The mean request, in numbers."""
    disk: dict[str, float]
    """Cost of one file for the disk, hidden or not: `overhead_ns`, `seek_ns`, `rotation_ns`, `transfer_ns`."""
    parameters: dict[str, Any]
    """The input of the equations: arguments of `file_system`, sizes in bytes, times in nanoseconds."""
    advice: tuple[Advice, ...]
    """Best first; the last may combine several changes."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as `headstart model fs --json` prints it."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """Model and simulation side by side; times in nanoseconds."""

    runs: int
    modelled: dict[str, float]
    """`response_ns` of the mean request; of a file `disk_requests`, `overhead_ns`, `seek_ns`, `rotation_ns`,
    `transfer_ns` and their sum `disk_ns`. Of open arrivals `service_ns`, at the disk, and its share `busy`."""
    simulated: dict[str, float]
    """The same, mean of the runs."""
    standard_error: dict[str, float]
    """Of the simulated means; 0 of one run."""
    relative_error: dict[str, float | None]
    """Model divided by simulation, minus 1; `None` if the simulated value is 0."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as `headstart model check --json` prints it."""
        return dataclasses.asdict(self)


def of_scenario(scenario: Scenario, *, overrides: Sequence[str] = (), advise: bool = False) -> ScenarioModel:
    """Return the file-system model's answer for a scenario, with `form="4.4bsd"`.

    Generator `files`, placement `ffs`, policy `ffs` or `demand`, one disk: docs/model.md has the keys. With `advise`
    it also tries other values of the keys that the equations know.

    Raises:
        HeadstartError: A key of the scenario is wrong, or not covered by the equations.
    """
    text = _core.model_scenario(**simulation.source_of(scenario), overrides=list(overrides), advice=advise)
    found = json.loads(text)
    advice = (Advice(**{**each, "set": tuple(each["set"])}) for each in found.pop("advice", ()))
    return ScenarioModel(**{**found, "response": Response(**found["response"])}, advice=tuple(advice))


def check(
    scenario: Scenario,
    *,
    overrides: Sequence[str] = (),
    runs: int = RUNS,
    progress: Callable[[float], object] | None = None,
) -> Check:
    """Return the model of a scenario beside `runs` simulations of it, whose seeds follow the scenario's.

    `progress` is called from time to time with the share done; an exception that it raises stops the runs.

    Raises:
        HeadstartError: As for `of_scenario`, or `runs` is not positive.
    """
    model = of_scenario(scenario, overrides=overrides)
    response = model.response
    modelled = _with_sum(
        {"response_ns": response.response_ns, "disk_requests": response.disk_requests, **model.disk},
    )
    return compared(scenario, overrides, modelled, _of_run, runs=runs, progress=progress)


def compared(
    scenario: Scenario,
    overrides: Sequence[str],
    modelled: dict[str, float],
    of_run: Callable[[simulation.Result], dict[str, float]],
    *,
    runs: int,
    progress: Callable[[float], object] | None,
) -> Check:
    """Return `modelled` with the results of `of_run` from `runs` simulations, whose seeds follow the scenario's."""
    if runs < 1:
        raise _core.HeadstartError(f"runs: {runs} is out of range; allowed: a whole number from 1")
    results: list[dict[str, float]] = []
    seed: int | None = None
    for run in range(runs):

        def tell(share: float, _: int, run: int = run) -> None:
            if progress is not None:
                progress((run + share) / runs)

        seeded = [*overrides, f"seed={seed + run}"] if seed is not None else list(overrides)
        result = simulation.simulate(scenario, overrides=seeded, progress=tell)
        seed = result.seed if seed is None else seed
        results.append(of_run(result))
    simulated = {name: math.fsum(each[name] for each in results) / runs for name in modelled}
    errors = {name: _standard_error([each[name] for each in results]) for name in modelled}
    return Check(
        runs=runs,
        modelled=modelled,
        simulated=simulated,
        standard_error=errors,
        relative_error={name: modelled[name] / value - 1.0 if value else None for name, value in simulated.items()},
    )


PARTS = ("overhead_ns", "seek_ns", "rotation_ns", "transfer_ns")


def _with_sum(values: dict[str, Any]) -> dict[str, float]:
    return {**values, "disk_ns": math.fsum(values[part] for part in PARTS)}


def _of_run(result: simulation.Result) -> dict[str, float]:
    files = result.scenario["workload"]["files"]
    devices: Sequence[Mapping[str, Any]] = result.devices
    [device] = devices
    of_file = {part: device[part] / files for part in PARTS}
    return _with_sum(
        {"response_ns": result.response_ns["mean"], "disk_requests": device["requests"] / files, **of_file}
    )


def _standard_error(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))

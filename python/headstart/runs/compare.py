"""Comparison of policies on one trace, over devices, caches, numbers of disks and coordinators between levels."""

import itertools
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headstart import custom
from headstart._core import HeadstartError
from headstart._input import listed
from headstart.runs.plan import DEFAULT_DEVICE, Plan, cache_text
from headstart.runs.rows import Setting, pandas
from headstart.simulation import explain, located
from headstart.trace import selection

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

DEFAULT_POLICIES = ("demand", "linux", "linux:read_ahead=1MiB", "demand:min", "aggressive", "forestall", "just-in-time")
"""The policies to compare if only a trace is given: those of current systems, and those that hints would allow."""

WORKLOAD = {"addresses": "auto", "writes": "back"}
"""The keys of [workload] whose default differs from a scenario's, for a trace that is given without one."""

Source = str | os.PathLike[str] | Mapping[str, Any]


def plan(
    trace: Source,
    *,
    policies: Any | Sequence[Any] | None = None,
    disks: int | Sequence[int] | None = None,
    cache: str | int | Sequence[str | int] | None = None,
    device: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    coordinators: str | Sequence[str] | None = None,
    scheduler: str | None = None,
    driver_overhead: str | None = None,
    issue: str | None = None,
    workload: Mapping[str, Any] | None = None,
    seed: int | None = None,
    overrides: str | Sequence[str] = (),
) -> Plan:
    """Return the plan that `compare` runs; the parameters are those of `compare`."""
    own = _scenario_of(trace)
    given = {} if issue is None else {"issue": issue}
    scenario: dict[str, Any] = {"seed": 1} if own is None else dict(own)
    if own is None:
        source = dict(trace) if isinstance(trace, Mapping) else {"trace": os.fspath(trace)}
        scenario["workload"] = {**WORKLOAD, **source}
    scenario["workload"] = {**scenario["workload"], **given, **(workload or {})}
    if seed is not None:
        scenario["seed"] = seed
    devices = scenario.get("device", {})
    devices = {"model": devices} if isinstance(devices, str) else dict(devices)
    if scheduler is not None:
        devices["scheduler"] = scheduler
    scenario["device"] = devices
    if driver_overhead is not None:
        scenario["host"] = {**scenario.get("host", {}), "driver_overhead": driver_overhead}
    own_device = _name_of(devices.get("model"))
    if device is None:
        device = own_device or DEFAULT_DEVICE
    if cache is None:
        levels = scenario.get("level") or scenario.get("cache", {})
        cache = cache_text(levels[0] if isinstance(levels, list) else levels)
    with_disks = disks is not None or own is None
    if disks is None:
        disks = int(devices.get("count", len(devices.get("layout", [0]))))
    defaulted = policies is None and own is None
    if defaulted:
        policies = DEFAULT_POLICIES
    if policies is not None:
        policies = [custom.text_of(policy) for policy in listed(policies)]
    overrides = listed(overrides)
    overridden = any(text.partition("=")[0].strip() == "device.model" for text in overrides)
    return Plan(
        scenario=scenario,
        settings=tuple(
            Setting(device=each, cache=str(size), disks=count)
            for each, size, count in itertools.product(
                _some("device", listed(device), "names of `headstart list devices`"),
                _some("cache", listed(cache), "sizes, numbers of blocks, shares of the distinct blocks"),
                _some("disks", listed(disks), "whole numbers from 1"),
            )
        ),
        policies=(None,) if policies is None else _some("policies", policies, "names of `headstart list policies`"),
        coordinators=(None,)
        if coordinators is None
        else _some("coordinators", listed(coordinators), "names of `headstart list coordinators`"),
        overrides=tuple(overrides),
        with_disks=with_disks,
        defaulted=defaulted,
        suits=own is None,
        default_device=device == DEFAULT_DEVICE and own_device is None and not overridden,
    )


def _scenario_of(trace: Source) -> Mapping[str, Any] | None:
    """Return the scenario that `trace` is or names: a mapping with a [workload], or a TOML file."""
    if isinstance(trace, Mapping):
        return trace if "workload" in trace else None
    path = Path(trace)
    if path.suffix != ".toml":
        return None
    # The core refuses an invalid scenario and names the line.
    explain(path)
    with path.open("rb") as file:
        scenario = tomllib.load(file)
    return {key: located(value, key, path.parent) for key, value in scenario.items()}


def _name_of(model: Any) -> str | None:
    found = model.get("name") if isinstance(model, Mapping) else model
    return None if found is None else str(found)


def _some(what: str, values: Sequence[T], allowed: str) -> tuple[T, ...]:
    """Return the values without repetitions; refuse an empty list."""
    if not values:
        raise HeadstartError(f"{what}: none given; allowed: {allowed}")
    return tuple(dict.fromkeys(values))


def compare(
    trace: Source,
    *,
    policies: Any | Sequence[Any] | None = None,
    disks: int | Sequence[int] | None = None,
    cache: str | int | Sequence[str | int] | None = None,
    device: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    coordinators: str | Sequence[str] | None = None,
    scheduler: str | None = None,
    driver_overhead: str | None = None,
    issue: str | None = None,
    workload: Mapping[str, Any] | None = None,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    seed: int | None = None,
    overrides: str | Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> "pd.DataFrame":
    """Run each policy on each device, cache size and number of disks.

    A scenario can be given instead of a trace. It then supplies the arguments that are not given. If it has several
    levels, "linux/ra" names the policies of two levels, and the runs are repeated with each of `coordinators`.

    Args:
        trace: Path of a trace; a [workload] section such as {"generator": "synth"}; or a scenario, as the path of a
            TOML file or as a mapping with a "workload".
        policies: Names of `headstart list policies`, or one name. "demand:min" also selects a replacement,
            "fixed-horizon:horizon=124" sets a key. A user-defined class (`headstart.Policy` and others) also works.
        disks: Numbers of independent disks; 1 if `None`.
        cache: Sizes ("10MiB", the default), numbers of blocks (1280), or shares of the distinct blocks ("5%"). With
            several levels, the sizes of the first level.
        device: Names of devices, or paths of profiles; "nvme" if `None`.
        coordinators: Names, for a scenario with several levels.
        scheduler: Name of a scheduler; the device's default if `None`.
        driver_overhead: Processor time per device request ("0.5ms"); that of the device's class if `None`.
        issue: How the blocks of a request are issued: "whole" (all at once, the default) or "blocks" (one by one).
        workload: Further keys of [workload], such as {"compute_total": "99.9s"}.
        path: Only requests to files that fit one of these globs ("*.parquet"; "*" also stands for "/").
        pid: Only requests of these processes or threads.
        process: Only requests of processes of these names, or globs of them.
        seed: Random seed; 1 if `None`.
        overrides: "a.b=value" settings that override keys in every case.
        jobs: Number of parallel runs; one per processor if `None`.
        progress: Called with the share done (0 to 1), from the threads that run.

    Returns:
        A data frame with one row per run: its device, cache, disks and policy, the counts and times of its result
        (times in nanoseconds), and `lower_bound_ns`, the lower bound on the elapsed time of any policy.

    Raises:
        HeadstartError: An argument or the trace is wrong, or pandas is not installed.
    """
    pandas()
    planned = plan(
        trace,
        policies=policies,
        disks=disks,
        cache=cache,
        device=device,
        coordinators=coordinators,
        scheduler=scheduler,
        driver_overhead=driver_overhead,
        issue=issue,
        workload={**selection(path, pid, process), **(workload or {})},
        seed=seed,
        overrides=overrides,
    )
    return planned.run(jobs=jobs, progress=progress).to_frame()

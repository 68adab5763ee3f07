"""A plan: one scenario, the values that differ between its cases, and the rows that its runs give."""

import dataclasses
import functools
import itertools
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from headstart import _core
from headstart._core import HeadstartError, InternalError
from headstart.policies import by_position, knows_future, of_levels, policy_keys, policy_text
from headstart.runs.rows import Comparison, Refusal, Row, Setting
from headstart.runs.runner import in_threads, run_all
from headstart.simulation import Progress, Result, Traces, _shared, explain, lower_bound, simulate, source_of

DEFAULT_DEVICE = "nvme"
"""The device if none is given."""
DEFAULT_CACHE = "10MiB"
LOOSE = 2.0
"""A lower bound says little if it is below the fastest run by more than this factor."""
SAYS_LITTLE = (
    f"the lower bound says little where it is more than {LOOSE:g} times below the fastest: it leaves out the order of "
    "reads, turns of a disk, and what a small cache fetches again"
)
AT_ONCE = (
    "the trace's processes read at once: each is replayed by itself, all from the start; "
    "--set workload.processes=merged makes them one reader"
)
BOUNDED = "linux"
"""The policy whose lower bound is computed. One that fetches many blocks with one request has the lowest bound.

One bound for all policies makes a row independent of the others."""
BASELINE = "demand"
"""The baseline of saved time: no prefetching, and the default replacement."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One run: a policy, and a coordinator if there are several levels, in a setting. `None`: as in the scenario."""

    setting: Setting
    policy: str | None
    coordinator: str | None = None


def cache_keys(size: str | int) -> dict[str, Any]:
    """Return the [cache] section that "10MiB", "1280" (blocks) or "5%" (of the distinct blocks) stands for."""
    text = str(size).strip()
    if text.endswith("%"):
        try:
            return {"footprint": float(text[:-1]) / 100}
        except ValueError:
            raise HeadstartError(f'cache: "{text}"; allowed: a share such as 5%, a size, or a number') from None
    try:
        return {"blocks": int(text)}
    except ValueError:
        if text.replace(".", "", 1).isdigit():
            problem = f"cache: {text} is no whole number of blocks"
            raise HeadstartError(
                f"{problem}; allowed: blocks such as 1280, a size such as 10MiB, a share such as 5%"
            ) from None
        return {"size": text}


def cache_text(section: Mapping[str, Any]) -> str:
    """Return the size of a [cache] or [[level]] section in the form that `cache_keys` reads."""
    if "footprint" in section:
        return f"{float(section['footprint']) * 100:g}%"
    return str(section.get("size", section.get("blocks", DEFAULT_CACHE)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The input of a comparison: a scenario, and the values that differ between its cases."""

    scenario: Mapping[str, Any]
    settings: tuple[Setting, ...]
    policies: tuple[str | None, ...]
    coordinators: tuple[str | None, ...] = (None,)
    overrides: tuple[str, ...] = ()
    with_disks: bool = True
    """Whether the caller sets the number of disks; otherwise the scenario does."""
    default_device: bool = False
    """Whether the caller gave no device."""
    defaulted: bool = False
    """Whether the caller named no policies."""
    suits: bool = False
    """Whether the workload is only a trace, to which the plan is to be adapted."""
    at_once: bool = False
    """Whether the trace's processes read concurrently, and are replayed concurrently."""
    is_fitting: bool = False
    """Whether it is known to suit the trace."""
    left_out: tuple[str, ...] = ()
    """Default policies left out because the trace has no addresses."""
    traces: Traces = dataclasses.field(default_factory=Traces, compare=False, repr=False)
    """The traces that the runs share."""

    @functools.cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every case, setting by setting, in the caller's order."""
        found = itertools.product(self.settings, self.coordinators, self.policies)
        return tuple(Case(setting=setting, policy=policy, coordinator=name) for setting, name, policy in found)

    @property
    def levels(self) -> list[dict[str, Any]]:
        """The [[level]] sections of the scenario; empty if it has a [cache]."""
        levels = self.scenario.get("level", [])
        return cast("list[dict[str, Any]]", levels if isinstance(levels, list) else [levels])

    def policy_name(self, case: Case) -> str:
        """Return the policy of a case as the caller or the scenario wrote it."""
        if case.policy is not None:
            return case.policy
        sections = [level.get("policy", {}) for level in self.levels] or [self.scenario.get("policy", {})]
        names = [policy_text(section) for section in sections]
        return names[0] if len(set(names)) == 1 else "/".join(names)

    def coordinator_name(self, case: Case) -> str | None:
        """Return the coordinator of a case, with / between those of several pairs of levels; `None` of one level."""
        if case.coordinator is not None or len(self.levels) < 2:
            return case.coordinator
        names = [policy_text(level.get("coordinator", "none")) for level in self.levels[1:]]
        return names[0] if len(set(names)) == 1 else "/".join(names)

    def run_of(self, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Return the scenario of one case, and its overrides."""
        scenario = self._scenario(case)
        overrides = [*self.overrides]
        if self.with_disks:
            overrides.append(f"device.count={case.setting.disks}")
        return scenario, overrides

    def _scenario(self, case: Case) -> dict[str, Any]:
        device = self.scenario.get("device", {})
        scenario = {**self.scenario, "device": {**device, "model": _model(device, case.setting.device)}}
        size = cache_keys(case.setting.cache)
        if not self.levels:
            scenario["cache"] = _sized(self.scenario.get("cache", {}), size)
            if case.policy is not None:
                scenario["policy"] = of_levels(case.policy, 1)[0]
            return scenario
        levels = [dict(level) for level in self.levels]
        levels[0] = _sized(levels[0], size)
        if case.policy is not None:
            for level, policy in zip(levels, of_levels(case.policy, len(levels)), strict=True):
                level.pop("replacement", None)
                level["policy"] = policy
        if case.coordinator is not None:
            for level in levels[1:]:
                level["coordinator"] = policy_keys(case.coordinator)
        scenario["level"] = levels
        return scenario

    def baseline(self, setting: Setting) -> Case:
        """Return the case that is the baseline of saved time in this setting."""
        return Case(setting=setting, policy=BASELINE, coordinator="none" if len(self.levels) > 1 else None)

    def notes(self) -> tuple[str, ...]:
        """Return the notes needed to interpret the comparison."""
        notes = []
        if self.left_out:
            notes.append(no_addresses(self.left_out))
        if self.at_once:
            notes.append(AT_ONCE)
        if self.default_device:
            notes.append(f"no device is named: {DEFAULT_DEVICE} stands for a drive of today; --device names another")
        return tuple(notes)

    @functools.cached_property
    def carries(self) -> Mapping[str, bool]:
        """What the trace or generator carries; addresses if the scenario places its blocks itself."""
        scenario, overrides = self.run_of(self.baseline(self.settings[0]))
        text = _core.carries(**source_of(scenario), overrides=_without_policy(overrides), traces=_shared(self.traces))
        found: Mapping[str, bool] = json.loads(text) or {"addresses": True}
        return found

    def fitting(self) -> "Plan":
        """Return the plan adapted to the trace.

        Default policies that need addresses are left out if the trace has none. Processes that read concurrently are
        replayed concurrently, unless the scenario says otherwise.

        Raises:
            HeadstartError: The trace has no addresses, and the caller has named a policy that needs them.
        """
        return self._side_by_side()._with_addresses()

    def _side_by_side(self) -> "Plan":
        workload = self.scenario["workload"]
        given = any(each.partition("=")[0].strip() == "workload.processes" for each in self.overrides)
        if not self.suits or given or "trace" not in workload or "processes" in workload:
            return self
        scenario, overrides = self.run_of(self.baseline(self.settings[0]))
        found = source_of(scenario)
        if not _core.reads_at_once(**found, overrides=_without_policy(overrides), traces=_shared(self.traces)):
            return self
        side_by_side = {**self.scenario, "workload": {**workload, "processes": "per-pid"}}
        return dataclasses.replace(self, scenario=side_by_side, at_once=True)

    def _with_addresses(self) -> "Plan":
        unfit = [case for case in self.cases if by_position(self.policy_name(case))]
        if not unfit or self.carries["addresses"]:
            return self
        if not self.defaulted:
            scenario, overrides = self.run_of(unfit[0])
            # The core reports the error.
            simulate(scenario, overrides=[*overrides, "workload.limit=1"], traces=self.traces)
        names = tuple(dict.fromkeys(str(case.policy) for case in unfit))
        rest = tuple(policy for policy in self.policies if policy not in names)
        return dataclasses.replace(self, policies=rest, left_out=names)

    def check(self) -> None:
        """Check all cases before the first one runs; traces are not read."""
        if self.coordinators != (None,) and len(self.levels) < 2:
            problem = "coordinators: given for a cache of one level"
            raise HeadstartError(f"{problem}; allowed: with a scenario that has several [[level]]")
        for case in self.cases:
            scenario, overrides = self.run_of(case)
            explain(scenario, overrides=overrides)

    def bound(self, setting: Setting, stop: threading.Event) -> int | None:
        """Return a lower bound of the elapsed time of the plan's policies in this setting.

        `None` if no bound is known: for several levels, several processes, open arrivals.
        """
        try:
            return self._bound(Case(setting=setting, policy=BOUNDED), stop)
        except InternalError:
            raise
        except HeadstartError:
            # The cases themselves have run.
            return None

    def _bound(self, case: Case, stop: threading.Event) -> int:
        def tell(_share: float, _references: int) -> None:
            if stop.is_set():
                raise InterruptedError("the others have been stopped")

        scenario, overrides = self.run_of(case)
        overrides = _without_policy(overrides)
        return lower_bound(scenario, overrides=overrides, progress=tell, traces=self.traces)["elapsed_ns"]

    def run(self, *, jobs: int | None = None, progress: Callable[[float], object] | None = None) -> Comparison:
        """Run every case, `jobs` at a time (one for each processor if `None`).

        `progress(share)` is called from the threads that run; if it raises, all of them stop.

        Raises:
            HeadstartError: A key of any case is wrong, or no case can run; then the reason of the first.
        """
        self.check()
        if not self.is_fitting:
            fitting = dataclasses.replace(self.fitting(), is_fitting=True)
            return fitting.run(jobs=jobs, progress=progress)
        baselines = {setting: self.baseline(setting) for setting in self.settings}
        extra = [case for case in baselines.values() if case not in self.cases]
        runs = [*((case, False) for case in self.cases), *((case, True) for case in extra)]
        stop = threading.Event()

        def outcome_of(run: tuple[Case, bool], tell: Progress) -> Result | HeadstartError:
            case, only_baseline = run
            scenario, overrides = self.run_of(case)
            if only_baseline:
                overrides = _without_policy(overrides)
            try:
                return simulate(scenario, overrides=overrides, progress=tell, traces=self.traces)
            except InternalError:
                raise
            except HeadstartError as error:
                # The error may concern only this policy, so the others continue.
                return error

        results = run_all(outcome_of, runs, jobs=jobs, stop=stop, progress=progress)
        outcomes = results[: len(self.cases)]
        errors = [outcome for outcome in outcomes if isinstance(outcome, HeadstartError)]
        if len(errors) == len(outcomes):
            raise errors[0]
        for outcome in outcomes:
            if isinstance(outcome, Result):
                refuse_writes_only(outcome.scenario["workload"], outcome.references, outcome.writes)
        ran = {case: result for (case, _), result in zip(runs, results, strict=True) if isinstance(result, Result)}
        elapsed = {setting: ran[case].elapsed_ns if case in ran else None for setting, case in baselines.items()}
        found = in_threads(lambda each: self.bound(each, stop), self.settings, jobs=jobs, stop=stop)
        bounds = dict(zip(self.settings, found, strict=True))
        fastest = _fastest(zip(self.cases, map(self.policy_name, self.cases), outcomes, strict=True))

        def compared(case: Case, outcome: Result | HeadstartError) -> Row | Refusal:
            policy, coordinator, setting = self.policy_name(case), self.coordinator_name(case), case.setting
            if isinstance(outcome, HeadstartError):
                return Refusal(policy=policy, setting=setting, coordinator=coordinator, reason=str(outcome))
            return Row(
                policy=policy,
                setting=setting,
                coordinator=coordinator,
                result=outcome,
                lower_bound_ns=bounds[setting],
                baseline_ns=elapsed[setting],
                best=outcome.elapsed_ns == fastest[setting, "all"],
                best_deployable=not knows_future(policy) and outcome.elapsed_ns == fastest[setting, "deployable"],
            )

        rows = tuple(compared(case, outcome) for case, outcome in zip(self.cases, outcomes, strict=True))
        loose = [
            bound
            for setting, bound in bounds.items()
            if bound and (setting, "all") in fastest and fastest[setting, "all"] > LOOSE * bound
        ]
        return Comparison(cases=rows, plan_notes=(*self.notes(), *([SAYS_LITTLE] if loose else [])))


def no_addresses(policies: Sequence[str]) -> str:
    """Return the note on policies that are left out."""
    return f"the trace has no addresses: left out, as they read ahead by position: {', '.join(policies)}"


def refuse_writes_only(workload: Mapping[str, Any], references: int, writes: int) -> None:
    """Refuse a workload that only writes, if writes are written back: there is nothing to compare."""
    if workload.get("writes") == "back" and references == writes:
        name = workload.get("trace") or workload.get("generator") or "the workload"
        raise HeadstartError(f"{name}: reads nothing, all requests are writes; allowed: a trace with reads")


def _fastest(outcomes: Iterable[tuple[Case, str, Result | HeadstartError]]) -> dict[tuple[Setting, str], int]:
    """Return the least elapsed time of each setting, over all policies and over those that do not know the future."""
    fastest: dict[tuple[Setting, str], int] = {}
    for case, policy, outcome in outcomes:
        if isinstance(outcome, Result):
            for among in ("all",) if knows_future(policy) else ("all", "deployable"):
                key = (case.setting, among)
                fastest[key] = min(outcome.elapsed_ns, fastest.get(key, outcome.elapsed_ns))
    return fastest


def _without_policy(overrides: Sequence[str]) -> list[str]:
    return [each for each in overrides if not each.strip().startswith("policy")]


def _sized(section: Mapping[str, Any], size: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in section.items() if key not in ("blocks", "size", "footprint")}
    return {**rest, **size}


def _model(device: Mapping[str, Any], name: str) -> Any:
    """Return the model of a device: the scenario's own section if it has this name."""
    own = device.get("model")
    return own if isinstance(own, Mapping) and own.get("name") == name else name

"""Policies side by side: one trace, several policies, several numbers of disks.

Each case is one scenario and runs on a thread of its own (the core releases the GIL); results stand in the order
of the cases, whichever ends first. Beside them stands a lower bound for each number of disks.
"""

import dataclasses
import functools
import itertools
import os
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from headstart._core import HeadstartError, InternalError, __version__
from headstart.registry import catalog
from headstart.simulation import Result, explain, lower_bound, simulate

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
"""Version of the shape of `Comparison.to_dict()`."""

COPIED = (
    *("elapsed_ns", "compute_ns", "driver_ns", "overhead_ns", "stall_ns", "requests", "references"),
    *("hits_ready", "hits_unready", "misses", "hit_wait_ns_mean", "fetches", "demand_fetches", "prefetches"),
    *("prefetches_used", "prefetches_late", "prefetches_wasted", "evictions", "throughput_bytes_per_s"),
)
"""Fields of a result that a row of a comparison repeats."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One policy on one number of disks."""

    policy: str
    """As the caller wrote it."""
    disks: int
    result: Result
    lower_bound_ns: int
    """No policy takes less on these disks."""
    best: bool
    """Nothing in the comparison is faster on these disks."""

    @property
    def above_bound(self) -> float:
        """How far elapsed time is above the bound: 0.25 is 25 % above."""
        return self.result.elapsed_ns / self.lower_bound_ns - 1 if self.lower_bound_ns else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the row without the result's details."""
        copied = {name: getattr(self.result, name) for name in COPIED}
        return {
            "policy": self.policy,
            "disks": self.disks,
            **copied,
            "utilization": self.result.utilization,
            "lower_bound_ns": self.lower_bound_ns,
            "above_bound": self.above_bound,
            "best": self.best,
            "error": None,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refusal:
    """One policy that does not run on these disks or this trace, while others do."""

    policy: str
    disks: int
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return a row without figures, and with the reason."""
        figures = dict.fromkeys((*COPIED, "utilization", "lower_bound_ns", "above_bound"))
        return {"policy": self.policy, "disks": self.disks, **figures, "best": False, "error": self.reason}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """All cases, disk count by disk count, policies in the caller's order. At least one has run."""

    cases: tuple[Row | Refusal, ...]
    plan_notes: tuple[str, ...] = ()
    """Remarks on the comparison itself, beside the notes of its runs."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The cases that have run."""
        return tuple(case for case in self.cases if isinstance(case, Row))

    def blocks(self) -> list[tuple[int, list[Row]]]:
        """Return the rows of each number of disks."""
        grouped = itertools.groupby(self.rows, key=lambda row: row.disks)
        return [(disks, list(rows)) for disks, rows in grouped]

    def refusals(self, disks: int) -> list[Refusal]:
        """Return the policies that do not run on this number of disks."""
        return [case for case in self.cases if isinstance(case, Refusal) and case.disks == disks]

    def workload(self) -> str:
        """Return the name of the workload: the trace's path or the generator's name."""
        keys = self.rows[0].result.scenario["workload"]
        return str(keys.get("trace") or keys.get("generator") or "inline references")

    def notes(self) -> list[str]:
        """Return the notes of the comparison, of all runs, and of policies that do not run, each once."""
        of_runs = (note for row in self.rows for note in row.result.notes)
        refused = (f"{case.policy} does not run: {case.reason}" for case in self.cases if isinstance(case, Refusal))
        return list(dict.fromkeys((*self.plan_notes, *of_runs, *refused)))

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as `headstart compare --json` prints it."""
        first = self.rows[0].result
        scenario = {key: value for key, value in first.scenario.items() if key != "policy"}
        device = {key: value for key, value in first.scenario["device"].items() if key != "count"}
        return {
            "schema": SCHEMA,
            "version": __version__,
            "scenario": {**scenario, "device": device},
            "trace_sha256": first.trace_sha256,
            "notes": self.notes(),
            "rows": [case.to_dict() for case in self.cases],
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a data frame.

        Raises:
            HeadstartError: pandas is not installed.
        """
        frame: pd.DataFrame = _pandas().DataFrame([case.to_dict() for case in self.cases])
        return frame


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise HeadstartError("compare: a DataFrame needs pandas; allowed: pip install 'headstart[frame]'") from error
    return pd


def policy_keys(text: str) -> dict[str, Any]:
    """Return the [policy] section that `text` stands for.

    "demand:min" is demand with replacement min, "fixed-horizon:horizon=124" sets a key of the policy.
    """
    name, *rest = (part.strip() for part in text.split(":"))
    keys: dict[str, Any] = {"name": name}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            key, value = "replacement", part
        if not key.strip() or not value.strip():
            raise HeadstartError(f'policies: "{text}"; allowed: NAME, NAME:REPLACEMENT, NAME:key=value')
        keys[key.strip()] = toml_value(value.strip())
    return keys


@functools.cache
def _families() -> tuple[dict[str, str], frozenset[str]]:
    """Return the family of each policy, and the replacements that work from hints."""
    rows = catalog()
    families = {str(entry["name"]): str(entry["family"]) for entry in rows["policies"]}
    return families, frozenset(str(entry["name"]) for entry in rows["replacements"] if entry["hinted"])


def kind(policy: str) -> str:
    """Return of which kind a policy is: "demand", "hinted", "parallel" or "read-ahead"."""
    keys = policy_keys(policy)
    families, hinted = _families()
    family = families.get(keys["name"], "demand")
    return "hinted" if family == "demand" and keys.get("replacement") in hinted else family


def toml_value(text: str) -> object:
    """Return what TOML reads in `text`; a bare word is itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


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
        return {"size": text}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What to compare: a scenario without policy and disk count, and the values of these two."""

    scenario: Mapping[str, Any]
    policies: tuple[str, ...]
    disks: tuple[int, ...]
    overrides: tuple[str, ...] = ()

    def case(self, disks: int, policy: str) -> tuple[dict[str, Any], list[str]]:
        """Return the scenario of one case, and its overrides."""
        scenario = {**self.scenario, "policy": policy_keys(policy)}
        overrides = [*self.overrides, f"device.count={disks}"]
        if self.issue is not None and kind(policy) == "demand":
            overrides.insert(0, f"workload.issue={self.issue}")
        return scenario, overrides

    @functools.cached_property
    def issue(self) -> str | None:
        """How requests are issued where a read-ahead is compared: as the core issues those of the read-ahead.

        `None` if there is no read-ahead, or if the caller says how.
        """
        read_ahead = next((policy for policy in self.policies if kind(policy) == "read-ahead"), None)
        given = any(each.partition("=")[0].strip() == "workload.issue" for each in self.overrides)
        if read_ahead is None or given or "issue" in self.scenario["workload"]:
            return None
        scenario, overrides = {**self.scenario, "policy": policy_keys(read_ahead)}, self.overrides
        issue = tomllib.loads(explain(scenario, overrides=overrides))["workload"].get("issue")
        return None if issue is None else str(issue)

    def notes(self) -> tuple[str, ...]:
        """Return the notes needed to read the comparison."""
        if self.issue != "whole":
            return ()
        hinted = [policy for policy in self.policies if kind(policy) == "hinted"]
        notes = ["a read-ahead is compared: requests are issued whole; --issue blocks issues them block by block"]
        if hinted:
            notes.append(f"hinted policies take requests block by block: {', '.join(hinted)}")
        return tuple(notes)

    def check(self) -> None:
        """Find mistakes in any case before the first one runs; traces are not read."""
        if not self.policies:
            raise HeadstartError("policies: none given; allowed: names of `headstart list policies`")
        if not self.disks:
            raise HeadstartError("disks: none given; allowed: whole numbers from 1")
        for disks, policy in itertools.product(self.disks, self.policies):
            scenario, overrides = self.case(disks, policy)
            explain(scenario, overrides=overrides)

    def _kinds(self) -> list[str]:
        """Return a policy's name for each kind of policy, block by block or read-ahead, that is compared."""
        families = [(kind(policy) == "read-ahead", policy_keys(policy)["name"]) for policy in self.policies]
        return list({reads_ahead: name if reads_ahead else "demand" for reads_ahead, name in families}.values())

    def _bound(self, disks: int, policy: str) -> int:
        scenario, overrides = self.case(disks, policy)
        bare = [each for each in overrides if not each.strip().startswith("policy")]
        return lower_bound(scenario, overrides=bare)["elapsed_ns"]

    def run(self, *, jobs: int | None = None, progress: Callable[[float], object] | None = None) -> Comparison:
        """Run every case, `jobs` at a time (one for each processor if `None`).

        `progress(share)` is called from the threads that run; if it raises, all of them stop.

        Raises:
            HeadstartError: A mistake in a key of any case, or that no case can run: the reason of the first.
        """
        self.check()
        pairs = list(itertools.product(self.disks, self.policies))
        shares = [0.0] * len(pairs)
        stop = threading.Event()

        def run_case(index: int) -> Result | HeadstartError:
            def tell(share: float, _references: int = 0) -> None:
                if stop.is_set():
                    raise InterruptedError("another case has failed")
                shares[index] = share
                if progress is not None:
                    progress(sum(shares) / len(shares))

            tell(0.0)
            scenario, overrides = self.case(*pairs[index])
            result: Result | HeadstartError
            try:
                result = simulate(scenario, overrides=overrides, progress=tell)
            except InternalError:
                raise
            except HeadstartError as error:
                # It may be this policy's alone: the others go on.
                result = error
            tell(1.0)
            return result

        def bound(disks: int) -> int:
            # The bound is the same for every policy of a kind: any name will do. Read-aheads bring many blocks with one
            # request, which takes less than as many requests; what nothing beats is the least of both bounds.
            return min(self._bound(disks, name) for name in self._kinds())

        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
            futures = [pool.submit(run_case, index) for index in range(len(pairs))]
            try:
                outcomes = [future.result() for future in futures]
                errors = [outcome for outcome in outcomes if isinstance(outcome, HeadstartError)]
                if len(errors) == len(outcomes):
                    raise errors[0]
                bounds = dict(zip(self.disks, pool.map(bound, self.disks), strict=True))
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return Comparison(cases=tuple(_cases(pairs, outcomes, bounds)), plan_notes=self.notes())


def _cases(
    pairs: Sequence[tuple[int, str]], outcomes: Sequence[Result | HeadstartError], bounds: Mapping[int, int]
) -> Iterator[Row | Refusal]:
    fastest: dict[int, int] = {}
    for (disks, _), outcome in zip(pairs, outcomes, strict=True):
        if isinstance(outcome, Result):
            fastest[disks] = min(outcome.elapsed_ns, fastest.get(disks, outcome.elapsed_ns))
    for (disks, policy), outcome in zip(pairs, outcomes, strict=True):
        if isinstance(outcome, HeadstartError):
            yield Refusal(policy=policy, disks=disks, reason=str(outcome))
        else:
            best = outcome.elapsed_ns == fastest[disks]
            yield Row(policy=policy, disks=disks, result=outcome, lower_bound_ns=bounds[disks], best=best)


def plan(
    trace: str | os.PathLike[str] | Mapping[str, Any],
    *,
    policies: Sequence[str],
    disks: Sequence[int] = (1,),
    cache: str | int = "10MiB",
    device: str = "hp97560",
    scheduler: str | None = None,
    driver_overhead: str | None = None,
    issue: str | None = None,
    workload: Mapping[str, Any] | None = None,
    seed: int = 1,
    overrides: Sequence[str] = (),
) -> Plan:
    """Return what `compare` runs; its parameters are those of `compare`."""
    source = dict(trace) if isinstance(trace, Mapping) else {"trace": os.fspath(trace)}
    devices: dict[str, Any] = {"model": device}
    if scheduler is not None:
        devices["scheduler"] = scheduler
    given = {} if issue is None else {"issue": issue}
    scenario = {
        "seed": seed,
        "workload": {"addresses": "auto", **source, **given, **(workload or {})},
        "cache": cache_keys(cache),
        "device": devices,
        "host": {} if driver_overhead is None else {"driver_overhead": driver_overhead},
    }
    unique = (tuple(dict.fromkeys(policies)), tuple(dict.fromkeys(disks)))
    return Plan(scenario=scenario, policies=unique[0], disks=unique[1], overrides=tuple(overrides))


def compare(
    trace: str | os.PathLike[str] | Mapping[str, Any],
    *,
    policies: Sequence[str],
    disks: Sequence[int] = (1,),
    cache: str | int = "10MiB",
    device: str = "hp97560",
    scheduler: str | None = None,
    driver_overhead: str | None = None,
    issue: str | None = None,
    workload: Mapping[str, Any] | None = None,
    seed: int = 1,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> "pd.DataFrame":
    """Run each policy on each number of disks; return one row for each, times in nanoseconds.

    Args:
        trace: Path of a trace, or a [workload] section such as {"generator": "synth"}.
        policies: Names; "demand:min" names a replacement too, "fixed-horizon:horizon=124" a key.
        disks: Numbers of independent disks.
        cache: A size ("10MiB"), a number of blocks (1280), or a share of the distinct blocks ("5%").
        device: Name of a device, or path of a profile.
        scheduler: Name of a scheduler; the device's default if `None`.
        driver_overhead: Processor time of each device request; by the device's class if `None`.
        issue: "whole" or "blocks"; if `None`, whole where a read-ahead is compared, else block by block.
        workload: Further keys of [workload], such as {"compute_total": "99.9s"}.
        seed: Seed of everything random.
        overrides: "a.b=value", laid over every case.
        jobs: Cases that run at a time; one for each processor if `None`.
        progress: Called with the share done, from the threads that run.

    Raises:
        HeadstartError: A mistake in the arguments or the trace, or pandas is not installed.
    """
    _pandas()
    planned = plan(
        trace,
        policies=policies,
        disks=disks,
        cache=cache,
        device=device,
        scheduler=scheduler,
        driver_overhead=driver_overhead,
        issue=issue,
        workload=workload,
        seed=seed,
        overrides=overrides,
    )
    return planned.run(jobs=jobs, progress=progress).to_frame()

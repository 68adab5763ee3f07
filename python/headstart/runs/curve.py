"""Misses and elapsed time by cache size: exact in one pass, from samples, or by runs.

The misses of replacement policies without prefetching do not depend on time. One pass of stack distances computes those
of LRU at every size. A second pass computes those of other policies, with a cache of each size. Policies that prefetch
or know the future, and policies whose time is wanted, are run at each size. Sampling makes both cheaper: passes sample
blocks, runs sample extents, which preserves sequences.
"""

import dataclasses
import functools
import itertools
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from headstart import _core
from headstart._core import HeadstartError
from headstart._input import listed, meant
from headstart.custom import is_custom
from headstart.policies import kind, knows_future, policy_keys, rows
from headstart.registry import catalog
from headstart.runs.compare import Source, plan
from headstart.runs.plan import Case, Plan
from headstart.runs.rows import Setting, pandas
from headstart.runs.runner import run_all
from headstart.simulation import Progress, Result, _shared, simulate, source_of
from headstart.trace import selection

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
DEFAULT_POLICIES = ("demand",)
DEFAULT_POINTS = 10
SMALLEST_SHARE = 1e-3
"""The smallest size by default, as a share of the distinct blocks."""
DEFAULT_SEEDS = 4
EXTENT = "1MiB"
"""Unit of a sample for runs: longer than Linux's default read-ahead, and therefore than most sequences that a policy
sees."""
MINIATURE_MIN = 16
"""Blocks of a cache below which a sampled cache is inaccurate; as in the core."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """One policy at one size of the cache."""

    policy: str
    method: str
    """"stack-distances" or "caches" (passes without time), or "runs"."""
    blocks: int | None
    """`None` if a trace's objects have sizes."""
    bytes: int
    misses: float
    """A whole number, or the mean of the estimates from samples."""
    misses_min: float
    """The smallest estimate."""
    misses_max: float
    """The largest estimate."""
    miss_ratio: float
    """Misses over references, 0 to 1."""
    miss_bytes: float
    """Bytes of the blocks or objects that miss."""
    byte_miss_ratio: float
    """`miss_bytes` over the bytes referenced, 0 to 1."""
    elapsed_ns: int | None
    """`None` without a device, or from a sample."""
    stall_ns: int | None
    fetches: int | None

    @property
    def spread(self) -> float:
        """Half the distance between the smallest and the largest estimate of the miss ratio."""
        return (self.misses_max - self.misses_min) * self.miss_ratio / self.misses / 2 if self.misses else 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curve:
    """Points of each policy, in order of the policies and then of the sizes."""

    trace: str
    requests: int
    references: int
    distinct_blocks: int
    distinct_bytes: int
    block_bytes: int | None
    device: str | None
    """`None` if no times were requested."""
    rate: float
    """Share of the blocks that were sampled, above 0; 1: all blocks."""
    seeds: int
    """Number of samples."""
    points: tuple[Point, ...]
    notes: tuple[str, ...]

    @property
    def policies(self) -> list[str]:
        """The policies in the caller's order."""
        return list(dict.fromkeys(point.policy for point in self.points))

    def of(self, policy: str) -> list[Point]:
        """Return the points of one policy."""
        return [point for point in self.points if point.policy == policy]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        fields = dataclasses.asdict(self)
        return {"schema": SCHEMA, "version": _core.__version__, **fields}

    def to_frame(self) -> "pd.DataFrame":
        """Return the points as a pandas data frame, one row each."""
        frame: pd.DataFrame = pandas().DataFrame([dataclasses.asdict(point) for point in self.points])
        return frame


@functools.cache
def _replacements() -> dict[str, bool]:
    """Return whether each replacement knows the future."""
    return {str(entry["name"]): bool(entry["hinted"]) for entry in catalog()["replacements"]}


def full_name(policy: str) -> str:
    """Return a policy by its full name: "arc" is "demand:arc"."""
    name = policy.split(":")[0].strip()
    return f"demand:{policy}" if name not in rows() and name in _replacements() else policy


def _check_name(policy: str) -> None:
    """Check that a name of one level is a replacement or a policy; the core would list only the policies."""
    name = policy_keys(policy)["name"]
    known = [*_replacements(), *rows()]
    if "/" not in policy and name not in known and not is_custom(name):
        problem = f'policies: "{name}" is neither a replacement nor a policy{meant(name, known)}'
        raise HeadstartError(f"{problem}; allowed: {', '.join(known)}")


def _without_time(policy: str) -> bool:
    """Return whether a policy is only a replacement of the registry that does not know the future."""
    if "/" in policy or kind(policy) != "demand" or knows_future(policy):
        return False
    keys = policy_keys(policy)
    replacement = keys.get("replacement", "lru")
    name = replacement.get("name") if isinstance(replacement, Mapping) else replacement
    return keys["name"] == "demand" and name in _replacements()


def _replacement(policy: str) -> tuple[str, dict[str, Any]]:
    """Return the replacement of "demand:arc", and its keys."""
    keys = policy_keys(policy)
    extra = set(keys) - {"name", "replacement"}
    if extra:
        raise HeadstartError(f'policies: "{policy}": demand has no key {min(extra)}; allowed: demand:REPLACEMENT')
    replacement = keys.get("replacement", "lru")
    own = dict(replacement) if isinstance(replacement, Mapping) else {"name": replacement}
    return str(own.pop("name", "lru")), own


def curve(
    trace: Source,
    *,
    policies: str | Sequence[str] = DEFAULT_POLICIES,
    cache: Sequence[str | int] | str | int | None = None,
    points: int = DEFAULT_POINTS,
    rate: float | None = None,
    sample_blocks: int | None = None,
    seeds: int = DEFAULT_SEEDS,
    device: str | PathLike[str] | None = None,
    admit: str | None = None,
    workload: Mapping[str, Any] | None = None,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    seed: int | None = None,
    overrides: str | Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Curve:
    """Compute the miss ratio curve of each policy: its misses by cache size. With a device, also elapsed times.

    LRU's misses at all sizes come from one pass of stack distances (Mattson et al., IBM Systems Journal 9(2), 1970).
    With `rate` or `sample_blocks`, a pass samples blocks by a hash (SHARDS: Waldspurger et al., FAST 2015) and other
    policies are run in caches of the sampled share (Waldspurger et al., USENIX ATC 2017).

    Args:
        trace: As for `compare`: the path of a trace, a [workload] section, or a scenario.
        policies: As for `compare`. The name of a replacement ("arc") means demand fetching with it.
        cache: Sizes ("10MiB"), numbers of blocks (1280), or shares of the distinct blocks ("5%").
        points: Number of sizes if `cache` is `None`: evenly spaced on a log scale from 0.1 % to 100 % of the distinct
            blocks.
        rate: Share of the blocks to sample, above 0 and at most 1.
        sample_blocks: Maximum number of blocks to sample, instead of `rate`. It bounds the memory.
        seeds: Number of samples. The result has their mean and their spread.
        device: Name of a device, or path of a profile. Every policy is then run on it at every size.
        admit: Objects larger than this ("1MiB") bypass the cache. Only for a trace whose objects have sizes.
        workload: Further keys of [workload], such as {"limit": 100000}.
        path: Only requests to files that fit one of these globs ("*.parquet"; "*" also stands for "/").
        pid: Only requests of these processes or threads.
        process: Only requests of processes of these names, or globs of them.
        seed: Random seed, except for the samples; 1 if `None`.
        overrides: "a.b=value" settings that override keys in every run.
        jobs: Number of parallel runs; one per processor if `None`.
        progress: Called with the share done (0 to 1), from the threads that run.

    Returns:
        The curve: a point for each policy and size. Ratios are 0 to 1, times are in nanoseconds.

    Raises:
        HeadstartError: An argument or the trace is wrong.
    """
    sampled = rate is not None or sample_blocks is not None
    if sampled and device is not None:
        problem = (
            "rate: given beside a device, and a sample gives no elapsed time: disks and processes see all requests"
        )
        raise HeadstartError(f"{problem}; allowed: one of rate and device")
    for name, value in (("points", points), ("seeds", seeds), ("sample_blocks", sample_blocks)):
        if value is not None and value < 1:
            raise HeadstartError(f"{name}: {value}; allowed: a whole number from 1")
    sizes = _sizes(cache, points)
    policies, overrides = listed(policies), listed(overrides)
    for policy in policies:
        _check_name(policy)
    names = list(dict.fromkeys(full_name(policy) for policy in policies))
    chosen = {**selection(path, pid, process), **(workload or {})}
    # A cache of one block is always valid; each run sets its own.
    planned = plan(
        trace,
        policies=names,
        cache=1,
        device=device,
        workload=chosen,
        seed=seed,
        overrides=overrides,
    )
    planned.check()
    in_passes = [name for name in names if device is None and _without_time(name)]
    asked = {
        "sizes": sizes,
        "rate": rate,
        "sample_blocks": sample_blocks,
        "seeds": seeds,
        "admit": admit,
        "replacements": [_replacement(name) for name in in_passes],
    }
    shares = {"passes": 0.0, "runs": 0.0}
    weight = 1.0 if len(in_passes) == len(names) else 0.1

    def tell(part: str, share: float) -> None:
        shares[part] = share
        if progress is not None:
            progress(weight * shares["passes"] + (1 - weight) * shares["runs"])

    scenario, laid_over = planned.run_of(Case(setting=planned.settings[0], policy="demand"))
    found = json.loads(
        _core.curve(
            **source_of(scenario),
            overrides=laid_over,
            asked=json.dumps(asked),
            on_progress=lambda share, _references: tell("passes", share),
            traces=_shared(planned.traces),
        )
    )
    if not found["references"]:
        raise HeadstartError(f"{_name(trace)}: reads nothing, all requests are writes; allowed: a trace with reads")
    found, left_out = _as_large_as_a_sample(found)
    by_runs = names if found["needs_runs"] else [name for name in names if name not in in_passes]
    if by_runs and found["block_bytes"] is None:
        problem = f'policies: "{by_runs[0]}" is run, and runs count objects as blocks of one size'
        raise HeadstartError(
            f"{problem}; allowed: replacements such as lru, without a device; or --set workload.block_size"
        )
    runs = _Runs(planned, found, seeds if sampled else 1, jobs, functools.partial(tell, "runs"))
    ran = runs.points(by_runs) if by_runs else {}
    passed = dict(zip(in_passes, found["lines"], strict=False))
    lines = [ran[name] if name in ran else _of_line(name, passed[name], found) for name in names]
    notes = [*found["notes"], *left_out, *runs.notes]
    if found["needs_runs"] and in_passes:
        notes.append(f"{found['needs_runs']}: every policy is run")
    return Curve(
        trace=_name(trace),
        requests=found["requests"],
        references=found["references"],
        distinct_blocks=found["distinct_blocks"],
        distinct_bytes=found["distinct_bytes"],
        block_bytes=found["block_bytes"],
        device=planned.settings[0].device if device is not None else None,
        rate=found["rate"],
        seeds=found["seeds"],
        points=tuple(point for line in lines for point in line),
        notes=tuple(dict.fromkeys(notes)),
    )


def _as_large_as_a_sample(found: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the findings without sizes below one sampled block, which samples cannot measure, and a note on them."""
    per_block = found["block_bytes"] or found["distinct_bytes"] / max(found["distinct_blocks"], 1)
    least = per_block / found["rate"]
    kept = [found["rate"] == 1.0 or size["bytes"] >= least for size in found["sizes"]]
    if all(kept):
        return dict(found), []
    said = f"{math.ceil(1 / found['rate']):,} blocks, one block of the sample"
    if not any(kept):
        raise HeadstartError(f"cache: every size is below {said}; allowed: larger sizes, or a larger rate")
    lines = [{**line, "points": list(itertools.compress(line["points"], kept))} for line in found["lines"]]
    sizes = list(itertools.compress(found["sizes"], kept))
    note = f"sizes below {said}, are left out: {len(kept) - len(sizes)}"
    return {**found, "sizes": sizes, "lines": lines}, [note]


def _sizes(cache: Sequence[str | int] | str | int | None, points: int) -> list[str]:
    if cache is None:
        steps = [index / max(points - 1, 1) for index in range(points)] if points > 1 else [1.0]
        return [f"{100 * SMALLEST_SHARE ** (1 - step):.6g}%" for step in steps]
    given = listed(cache)
    if not given:
        raise HeadstartError("cache: none given; allowed: sizes, numbers of blocks, shares of the distinct blocks")
    return list(dict.fromkeys(str(size) for size in given))


def _name(trace: Source) -> str:
    if isinstance(trace, Mapping):
        section = trace.get("workload", trace)
        return str(section.get("trace") or section.get("generator") or "references")
    return str(trace)


def _of_line(policy: str, line: Mapping[str, Any], found: Mapping[str, Any]) -> list[Point]:
    exact = found["rate"] == 1.0
    number = round if exact else float
    return [
        Point(
            policy=policy,
            method=line["method"],
            blocks=size["blocks"],
            bytes=size["bytes"],
            misses=number(point["misses"]),
            misses_min=number(point["misses_min"]),
            misses_max=number(point["misses_max"]),
            miss_ratio=point["misses"] / found["references"],
            miss_bytes=number(point["miss_bytes"]),
            byte_miss_ratio=point["miss_bytes"] / found["referenced_bytes"],
            elapsed_ns=None,
            stall_ns=None,
            fetches=None,
        )
        for size, point in _distinct(found["sizes"], line["points"])
    ]


def _distinct(sizes: Sequence[Any], values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return sizes and values without duplicates: different shares of few blocks may give the same size."""
    kept: dict[int, tuple[Any, Any]] = {}
    for size, value in zip(sizes, values, strict=True):
        kept.setdefault(size["bytes"], (size, value))
    return list(kept.values())


class _Runs:
    """Runs of policies at every size, of all blocks or of samples of the extents."""

    def __init__(
        self, planned: Plan, found: Mapping[str, Any], seeds: int, jobs: int | None, tell: Callable[[float], None]
    ) -> None:
        self._plan, self._found, self._seeds, self._jobs, self._tell = planned, found, seeds, jobs, tell
        self.notes: list[str] = []

    def points(self, policies: Sequence[str]) -> dict[str, list[Point]]:
        sizes = [size for size, _ in _distinct(self._found["sizes"], self._found["sizes"])]
        rate, seeds = self._found["rate"], range(1, self._seeds + 1)
        items = [(policy, size, seed) for policy in policies for size in sizes for seed in seeds]
        results = iter(run_all(self._run, items, jobs=self._jobs, stop=threading.Event(), progress=self._tell))
        if rate < 1.0 and any(size["blocks"] * rate < MINIATURE_MIN for size in sizes):
            self.notes.append(
                f"some sizes stand on caches of fewer than {MINIATURE_MIN} blocks: a larger sample says more of them"
            )
        if rate < 1.0:
            self.notes.append(
                f"{', '.join(policies)}: run on samples of the extents of {EXTENT}, with caches of their share"
            )
        return {
            policy: [self._point(policy, size, [next(results) for _ in seeds]) for size in sizes] for policy in policies
        }

    def _run(self, item: tuple[str, Mapping[str, int], int], tell: Progress) -> Result:
        policy, size, seed = item
        blocks, rate = size["blocks"], self._found["rate"]
        setting = Setting(**{**dataclasses.asdict(self._plan.settings[0]), "cache": str(max(round(blocks * rate), 1))})
        scenario, overrides = self._plan.run_of(Case(setting=setting, policy=policy))
        if rate < 1.0:
            sample = {"rate": rate, "seed": seed, "extent": EXTENT}
            scenario = {**scenario, "workload": {**scenario["workload"], "sample": sample}}
        return simulate(scenario, overrides=overrides, progress=tell, traces=self._plan.traces)

    def _point(self, policy: str, size: Mapping[str, int], results: Sequence[Result]) -> Point:
        rate, unit, references = self._found["rate"], self._found["block_bytes"], self._found["references"]
        number = round if rate == 1.0 else float
        estimates = [number(min((result.misses - result.write_misses) / rate, references)) for result in results]
        misses = number(sum(estimates) / len(estimates))
        only = results[0] if rate == 1.0 else None
        return Point(
            policy=policy,
            method="runs",
            blocks=size["blocks"],
            bytes=size["bytes"],
            misses=misses,
            misses_min=min(estimates),
            misses_max=max(estimates),
            miss_ratio=misses / references,
            miss_bytes=misses * unit,
            byte_miss_ratio=misses / references,
            elapsed_ns=None if only is None else only.elapsed_ns,
            stall_ns=None if only is None else only.stall_ns,
            fetches=None if only is None else only.fetches,
        )

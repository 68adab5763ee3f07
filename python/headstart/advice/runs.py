"""The runs behind advice: selects the policies to try, and runs them until the time is up.

Candidates come from the registry: every policy that does not know the future, Linux's read-ahead at several depths, and
two further settings of each other read-ahead. When the time is up, unfinished runs are abandoned and no run is started.
Results are kept, so that each run is made once.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headstart import kernels
from headstart._core import HeadstartError, InternalError
from headstart.policies import knows_future, rows
from headstart.runs.plan import Case, Plan
from headstart.runs.rows import Setting
from headstart.runs.runner import in_threads
from headstart.simulation import Result, explain, simulate
from headstart.sizes import size_bytes, size_text

LINUX = "linux"
"""The policy whose depth can be set on any Linux machine."""
DEPTHS = tuple(size_text(128 << (10 + step)) for step in range(1, 10))
"""Depths of Linux's read-ahead that are tried beside its default of 128 KiB: 256 KiB to 64 MiB."""
DEPTH_KEYS = ("depth", "max_distance", "max", "max_degree", "degree", "block_size", "effective_io_concurrency")
"""Keys for the depth of a read-ahead; the first of these that a policy has is varied."""
FORMER_KERNELS = frozenset({"linux-2.6.10", "linux-2.6.16"})
"""Read-aheads of kernels from 2004 to 2006, for comparison in li07. They cannot be deployed today."""
VARIED = 4
"""The depth of another read-ahead is tried this many times smaller and larger too."""

TOO_FEW = "too few for one run; allowed: more of them, or a shorter trace with --limit"

Told = Callable[[float, str], object]
"""Called with the share done, 0 to 1, and the current step."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One run: a policy in a setting, on the first `limit` requests (all if `None`)."""

    setting: Setting
    policy: str
    limit: int | None
    seed: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """The outcome of a run."""

    policy: str
    elapsed_ns: int
    compute_ns: int
    stall_ns: int
    wasted_bytes: int
    fetches: int
    prefetches_used: int
    prefetches_wasted: int
    coverage: float
    """Share of would-be misses that prefetching removed."""
    cache_blocks: int
    device: dict[str, Any]
    """The resolved model of the device."""
    notes: tuple[str, ...]
    trace_sha256: str

    @property
    def accurate(self) -> bool:
        """Whether at least half of what was prefetched was used."""
        return self.prefetches_used >= self.prefetches_wasted

    @property
    def waste_factor(self) -> float:
        """1 plus the share of wasted fetches: other programs wait for them, or lose cached data."""
        return 1 + self.prefetches_wasted / max(self.fetches, 1)

    @property
    def cost_ns(self) -> float:
        """The elapsed time multiplied by the waste factor."""
        return self.elapsed_ns * self.waste_factor


def _measured(policy: str, result: Result) -> Measured:
    return Measured(
        policy=policy,
        elapsed_ns=result.elapsed_ns,
        compute_ns=result.compute_ns,
        stall_ns=result.stall_ns,
        wasted_bytes=sum(int(level["wasted_bytes"]) for level in result.levels),
        fetches=result.fetches,
        prefetches_used=result.prefetches_used,
        prefetches_wasted=result.prefetches_wasted,
        coverage=float(result.levels[0]["coverage"]),
        cache_blocks=int(result.levels[0]["blocks"]),
        device=result.scenario["device"]["model"],
        notes=tuple(result.notes),
        trace_sha256=result.trace_sha256,
    )


class _OutOfTimeError(Exception):
    """The time is up."""


class Runs:
    """Runs the cases of a plan, each once, until the time is up. May be used from several threads."""

    def __init__(self, plan: Plan, *, deadline: float, jobs: int | None, told: Told | None) -> None:
        self.plan = plan
        self.deadline = deadline
        """As a time of `time.monotonic`."""
        self.longest_s = 0.0
        """Duration of the longest completed run."""
        self.jobs = jobs
        self.told = told
        version = kernels.here()
        known = version in (None, rows()[LINUX]["keys"]["version"]) or plan.levels
        self.kernel = [] if known else [f"policy.version={version}"]
        """Override of Linux's read-ahead if this machine's kernel is not the default version."""
        self.given_up: set[Run] = set()
        """Runs abandoned for lack of time."""
        self.stop = threading.Event()
        self.refused: dict[str, HeadstartError] = {}
        """Policies that do not run, and why."""
        self._done: dict[Run, Measured | None] = {}

    @property
    def out_of_time(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.deadline

    @property
    def time_for_one(self) -> bool:
        """Whether there is time for a run as long as the longest one so far."""
        return time.monotonic() + self.longest_s < self.deadline

    def measure(self, runs: Iterable[Run], *, step: str, share: tuple[float, float]) -> dict[Run, Measured]:
        """Return the outcome of each run; policies that do not run and abandoned runs are absent.

        `share` is the part of the whole progress that the step covers, from start to end.
        """
        wanted = list(dict.fromkeys(runs))
        missing = [run for run in wanted if run not in self._done]
        ended = 0

        def tell(_share: float = 0.0, _references: int = 0) -> None:
            if self.stop.is_set():
                raise InterruptedError("another run has failed")
            if self.told is not None:
                self.told(share[0] + (share[1] - share[0]) * ended / max(len(missing), 1), step)
            if self.out_of_time:
                raise _OutOfTimeError

        def one(run: Run) -> Measured | None:
            nonlocal ended
            began = time.monotonic()
            try:
                tell()
                scenario, overrides = self.plan.run_of(Case(setting=run.setting, policy=run.policy))
                limit = [] if run.limit is None else [f"workload.limit={run.limit}"]
                kernel = self.kernel if run.policy.partition(":")[0] == LINUX else []
                laid = [*overrides, *limit, *kernel, f"seed={run.seed}"]
                result = simulate(scenario, overrides=laid, progress=tell, traces=self.plan.traces)
            except _OutOfTimeError:
                self.given_up.add(run)
                return None
            except InternalError:
                raise
            except HeadstartError as error:
                self.refused.setdefault(run.policy, error)
                return None
            finally:
                ended += 1
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            return _measured(run.policy, result)

        for run, found in zip(missing, in_threads(one, missing, jobs=self.jobs, stop=self.stop), strict=True):
            self._done[run] = found
        return {run: found for run in wanted if (found := self._done[run]) is not None}


def linux(depth: str | None) -> str:
    """Return the name of Linux's read-ahead at a depth; `None` is its default."""
    return LINUX if depth is None else f"{LINUX}:read_ahead={depth}"


def linux_depth(policy: str) -> int | None:
    """Return the depth in bytes of Linux's read-ahead; 0 for demand; `None` for other policies."""
    if policy == "demand":
        return 0
    name, _, depth = policy.partition(":read_ahead=")
    if name != LINUX:
        return None
    return size_bytes(depth or str(rows()[LINUX]["keys"]["read_ahead"]))


def candidates(cache_bytes: int) -> list[str]:
    """Return the policies that can be deployed with a cache of this size: no depth exceeds half of it."""
    found = []
    for name, row in rows().items():
        if knows_future(name) or name in FORMER_KERNELS:
            continue
        found.append(name)
        if name == LINUX:
            found += [linux(depth) for depth in DEPTHS if 2 * size_bytes(depth) <= cache_bytes]
        else:
            found += _variants(name, row["keys"])
    return found


def _variants(name: str, keys: dict[str, Any]) -> list[str]:
    """Return a policy with a smaller and a larger depth, if the registry's keys allow it."""
    key = next((key for key in DEPTH_KEYS if key in keys), None)
    if key is None:
        return []
    default = keys[key]
    if isinstance(default, int):
        values = [str(max(1, default // VARIED)), str(default * VARIED)]
    else:
        depth = size_bytes(str(default))
        values = [size_text(depth // VARIED), size_text(depth * VARIED)]
    return [f"{name}:{key}={value}" for value in values if _allowed(name, key, value)]


def _allowed(name: str, key: str, value: str) -> bool:
    keys: dict[str, Any] = {"name": name, key: int(value) if value.isdigit() else value}
    try:
        explain({"workload": {"references": ["A"]}, "cache": {"blocks": 1}, "policy": keys})
    except InternalError:
        raise
    except HeadstartError:
        return False
    return True


def ceiling() -> Sequence[str]:
    """Return the policies that know the future: they show the potential of hints."""
    hinted = [name for name, row in rows().items() if knows_future(name) and row["family"] != "parallel"]
    return [*hinted, "demand:min"]

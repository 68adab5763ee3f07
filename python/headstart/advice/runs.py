"""The runs behind advice: selects the policies to try, and runs them until the time is up.

Candidates are what can be set: Linux's read-ahead at several depths, and the read-aheads of an object store's clients.
Policies that know the future show the potential of hints. When the time is up, unfinished runs are abandoned and no run
is started. Results are kept, so that each run is made once.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from headstart import kernels
from headstart._core import HeadstartError, InternalError
from headstart.policies import knows_future, rows
from headstart.runs.plan import Case, Plan
from headstart.runs.rows import Setting
from headstart.runs.runner import run_all
from headstart.simulation import Progress, Result, simulate
from headstart.sizes import size_bytes, size_text

LINUX = "linux"
"""The policy whose depth can be set on any Linux machine."""
DEPTHS = tuple(size_text(128 << (10 + step)) for step in range(1, 10))
"""Depths of Linux's read-ahead that may be tried beside its default of 128 KiB: 256 KiB to 64 MiB."""
STORES = {
    "mountpoint-s3": {"max": ("512MiB", "8GiB")},
    "fsspec-readahead": {"block_size": ("1280KiB", "20MiB")},
}
"""Policies other than Linux's that can be set for an object store, and settings beside their defaults: a quarter of
each, and four times as much."""
HINTS = "just-in-time"
"""The policy that stands for what hints can do until others are known to do more: it is the fastest in most cases."""

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
        begin, end = share

        def in_all(done: float) -> None:
            if self.told is not None:
                self.told(begin + (end - begin) * done, step)

        outcomes = run_all(self._measured, missing, jobs=self.jobs, stop=self.stop, progress=in_all)
        self._done.update(zip(missing, outcomes, strict=True))
        return {run: found for run in wanted if (found := self._done[run]) is not None}

    def _measured(self, run: Run, tell: Progress) -> Measured | None:
        began = time.monotonic()

        def in_time(share: float, references: int) -> None:
            tell(share, references)
            if self.out_of_time:
                raise _OutOfTimeError

        try:
            in_time(0.0, 0)
            scenario, overrides = self.plan.run_of(Case(setting=run.setting, policy=run.policy))
            limit = [] if run.limit is None else [f"workload.limit={run.limit}"]
            kernel = self.kernel if run.policy.partition(":")[0] == LINUX else []
            laid = [*overrides, *limit, *kernel, f"seed={run.seed}"]
            result = simulate(scenario, overrides=laid, progress=in_time, traces=self.plan.traces)
        except _OutOfTimeError:
            self.given_up.add(run)
            return None
        except InternalError:
            raise
        except HeadstartError as error:
            self.refused.setdefault(run.policy, error)
            return None
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        return _measured(run.policy, result)


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


def of_depth(depth: int) -> str:
    """Return the policy that a machine has whose read-ahead is set to so many bytes."""
    known = {linux_depth(name): name for name in ("demand", LINUX)}
    return known.get(depth) or linux(size_text(depth))


def depths(cache_bytes: int) -> list[str]:
    """Return Linux's read-ahead by depth, its default first, for a cache of this size: none exceeds half of it."""
    return [LINUX, *(linux(depth) for depth in DEPTHS if 2 * size_bytes(depth) <= cache_bytes)]


def stores(data_bytes: int) -> list[str]:
    """Return the settings of an object store's clients that differ for a trace that touches so much."""
    found = list(STORES)
    for name, settings in STORES.items():
        for key, values in settings.items():
            # A window never reaches a maximum above all of the data: then the default does what the others do.
            if key != "max" or size_bytes(values[0]) < data_bytes:
                found += [f"{name}:{key}={value}" for value in values]
    return found


def hinted(*, evicts: bool) -> list[str]:
    """Return the policies that know the future, the one that is mostly the fastest first.

    Where the cache never evicts, replacement does not matter, and reverse-aggressive does what aggressive does. The
    rule of `headstart store` is left out: it is what a service does, and not what hints could save.
    """
    known = [name for name, row in rows().items() if knows_future(name) and row["family"] != "parallel"]
    known.remove("headstart-store")
    found = [HINTS, *(name for name in known if name != HINTS), "demand:min"]
    return [name for name in found if evicts or name not in ("reverse-aggressive", "demand:min")]

"""The search: screen on a sample, confirm on the whole trace, choose, and test the reliability of the choice."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from headstart._core import HeadstartError
from headstart.advice.commands import commands, disclosures, is_remote
from headstart.advice.result import BENEFIT_MIN, Confidence, DeviceAdvice, Timed, disclosed_ns
from headstart.advice.runs import LINUX, TOO_FEW, Measured, Run, Runs, candidates, ceiling, linux, linux_depth
from headstart.policies import by_position, knows_future
from headstart.runs.plan import Plan
from headstart.runs.rows import Setting
from headstart.runs.runner import in_threads
from headstart.sizes import size_text

SAMPLE_REFERENCES = 30_000
"""References of the sample; a trace with up to twice as many is its own sample."""
NEAR = 0.01
"""Costs and times within this share of the least count as equal."""
OTHERS = 3
"""Policies besides Linux and demand that run on the whole trace."""
SWEEP_MAX = 12
"""Number of cache sizes to try, each half of the previous one."""
BLOCKS_MIN = 64
"""The smallest of them."""
SMALL = 32
"""The search for streams uses a cache of this share of the data."""
STREAMS_MIN = 0.05
"""Below this share of predicted reads a trace counts as random."""
SEEDS = 3
"""Number of seeds if the device or the workload is random."""
THIRDS = 3
REQUESTS_MIN = 30
"""A shorter trace has no thirds."""
WITHOUT_SETTING = ("no benefit", "no addresses", "disclose")
"""Verdicts that recommend no setting of the read-ahead."""
REMOTE = ("mountpoint-s3", "fsspec-readahead")
"""Policies other than Linux's that are available for an object store."""


@dataclasses.dataclass(frozen=True)
class Trace:
    """Facts about the trace that the search needs."""

    requests: int
    references: int
    blocks: int
    """Number of distinct blocks."""
    block_bytes: int | None
    limit: int | None
    """The caller's own limit on requests."""
    now_bytes: int | None = None
    """The read-ahead of the machine's device, if it is known."""
    addresses: bool = True
    """Whether the trace says where its requests lie; otherwise nothing is read ahead by position."""

    def sample(self) -> int | None:
        """Return the number of requests of the sample; `None` if it is the whole trace."""
        if self.references <= 2 * SAMPLE_REFERENCES:
            return None
        return max(1, self.requests * SAMPLE_REFERENCES // self.references)

    def bytes(self, blocks: int) -> int | None:
        """Return the size of `blocks` in bytes."""
        return None if self.block_bytes is None else blocks * self.block_bytes


def eligible(measured: Mapping[str, Measured], settable: Iterable[str], *, streams: bool) -> list[str]:
    """Return the policies that may be recommended: not slower than demand, and wasting no more than they use.

    The caller guarantees that "demand" is measured. Without `streams` these are demand and Linux's default.
    """
    demand = measured["demand"].elapsed_ns
    plain = ("demand", LINUX)
    return [
        policy
        for policy in settable
        if policy in measured
        and measured[policy].elapsed_ns <= demand
        and (policy in plain or (streams and measured[policy].accurate))
    ]


def choose(measured: Mapping[str, Measured], settable: Iterable[str], *, streams: bool) -> str:
    """Return the policy to recommend: of those that can be set, the simplest within 1 % of the least cost.

    If no policy gains 5 %, it is Linux's default, or demand if that is faster.
    """
    usable = eligible(measured, settable, streams=streams)
    least = min(measured[policy].cost_ns for policy in usable)
    if not streams or least > (1 - BENEFIT_MIN) * measured["demand"].cost_ns:
        return LINUX if LINUX in usable else "demand"
    near = [policy for policy in usable if measured[policy].cost_ns <= (1 + NEAR) * least]
    return min(near, key=lambda policy: (_complexity(policy), measured[policy].cost_ns, policy))


def _complexity(policy: str) -> tuple[int, int]:
    """Return the order in which policies of the same speed are preferred: demand, Linux by depth, others."""
    depth = linux_depth(policy)
    return (1, policy.count(":")) if depth is None else (0, depth)


def ranked(measured: Mapping[str, Measured], policies: Iterable[str]) -> list[str]:
    """Return the policies that were measured, fastest first."""
    return sorted(
        (policy for policy in policies if policy in measured), key=lambda policy: (measured[policy].elapsed_ns, policy)
    )


class SettingSearch:
    """The search for one device and cache: each step requests runs, and the next step receives their results."""

    def __init__(
        self, setting: Setting, trace: Trace, *, seed: int, cache_bytes: int, more: Sequence[str] = ()
    ) -> None:
        self.setting, self.trace, self.seed = setting, trace, seed
        now = [linux(size_text(trace.now_bytes))] if trace.now_bytes else []
        tried = [*dict.fromkeys((*candidates(cache_bytes), *now)), *(name for name in more if not knows_future(name))]
        self.names = [name for name in tried if trace.addresses or not by_position(name)]
        self.hinted = [*ceiling(), *(name for name in more if knows_future(name))]
        self.sampled: dict[str, Measured] = {}
        self.whole: dict[str, Measured] = {}
        self.wanted: list[str] = []
        self.streams = True
        self.recommended = "demand"
        self.confirmed = False
        self.bound_ns: int | None = None
        self.sweep: list[tuple[int, int]] = []
        self.thirds: tuple[bool, ...] = ()
        self.seeds: tuple[bool, ...] = ()

    def runs(self, policies: Iterable[str], limit: int | None, seed: int | None = None) -> list[Run]:
        """Return runs of policies in this setting."""
        seed = self.seed if seed is None else seed
        return [Run(setting=self.setting, policy=policy, limit=limit, seed=seed) for policy in policies]

    def to_screen(self) -> list[Run]:
        """Return the runs on the sample."""
        return self.runs([*self.names, *self.hinted], self.trace.sample() or self.trace.limit)

    def to_confirm(self) -> list[Run]:
        """Return the runs on the whole trace, the most important first."""
        of_linux = ranked(self.sampled, (name for name in self.names if linux_depth(name)))
        others = ranked(self.sampled, (name for name in self.names if linux_depth(name) is None))
        fastest = ranked(self.sampled, self.names)[0]
        near = (1 + BENEFIT_MIN) * self.sampled[fastest].elapsed_ns
        others = [name for name in others if self.sampled[name].elapsed_ns <= near or (self.remote and name in REMOTE)][
            :OTHERS
        ]
        first = dict.fromkeys(
            ("demand", *(of_linux[:1]), LINUX, *self.now[:1], *others, *ranked(self.sampled, self.hinted)[:1])
        )
        self.wanted = [name for name in dict.fromkeys((*first, *of_linux)) if name in self.sampled]
        return self.runs(self.wanted, self.trace.limit)

    @property
    def now(self) -> list[str]:
        """The machine's current policy, as a list; empty if it is not known."""
        if self.trace.now_bytes is None:
            return []
        depth = self.trace.now_bytes
        return [name for name in self.names if linux_depth(name) == depth]

    def decide(self) -> None:
        """Choose among the runs on the whole trace if these include demand and another policy, else on the sample."""
        others = any(linux_depth(policy) for policy in self.whole)
        self.confirmed = "demand" in self.whole and (others or not self.trace.addresses)
        self.recommended = choose(self.measured, self.settable, streams=self.streams)

    @property
    def measured(self) -> dict[str, Measured]:
        """The results that the choice rests on."""
        return self.whole if self.confirmed else self.sampled

    @property
    def remote(self) -> bool:
        """Whether the device is behind a network."""
        return is_remote(self.sampled["demand"].device)

    @property
    def settable(self) -> list[str]:
        """The policies that can be set on the machine today."""
        found = [name for name in self.names if linux_depth(name) is not None]
        if self.remote:
            found += [name for name in self.names if name.partition(":")[0] in REMOTE]
        return found

    def finalists(self) -> list[str]:
        """Return the policies that the recommended one is compared with in the reliability tests."""
        usable = ranked(self.measured, eligible(self.measured, self.settable, streams=self.streams))
        of_linux = [name for name in usable if linux_depth(name)]
        named = (self.recommended, "demand", LINUX, *of_linux[:2], *usable[:1])
        return [name for name in dict.fromkeys(named) if name in self.measured]

    def parts(self) -> list[int]:
        """Return the requests of one third of the trace, and of two."""
        if self.trace.requests < REQUESTS_MIN:
            return []
        return [self.trace.requests * part // THIRDS for part in range(1, THIRDS)]

    def to_divide(self) -> list[Run]:
        """Return the runs that separate the thirds of the trace."""
        if not self.confirmed:
            return []
        return [run for part in self.parts() for run in self.runs(self.finalists(), part)]

    def divide(self, found: Mapping[Run, Measured]) -> None:
        """Determine in which thirds of the trace the choice holds. A third's time is the difference of two prefixes."""
        took: list[dict[str, int]] = []
        before = dict.fromkeys(self.finalists(), 0)
        for part in (*self.parts(), None):
            until = {
                name: self.whole[name].elapsed_ns if part is None else found[run].elapsed_ns
                for name in self.finalists()
                for run in self.runs([name], part)
                if part is None or run in found
            }
            if until.keys() != before.keys():
                return
            took.append({name: until[name] - before[name] for name in until})
            before = until
        if self.confirmed and self.parts():
            self.thirds = tuple(self._holds(each) for each in took)

    def to_reseed(self) -> list[list[Run]]:
        """Return the runs with each further seed."""
        return [self.runs(self.finalists(), self.trace.limit, self.seed + more) for more in range(1, SEEDS)]

    def reseed(self, found: Sequence[Mapping[Run, Measured]]) -> None:
        """Determine with which seeds the choice holds."""
        times = [{run.policy: each.elapsed_ns for run, each in runs.items()} for runs in found]
        self.seeds = tuple(self._holds(each) for each in times if self.recommended in each and "demand" in each)

    def _holds(self, elapsed_ns: Mapping[str, int]) -> bool:
        """Return whether no other finalist saves another 5 % of the time without prefetching."""
        costs = {policy: elapsed * self.measured[policy].waste_factor for policy, elapsed in elapsed_ns.items()}
        more = costs[self.recommended] - min(costs.values())
        return more <= BENEFIT_MIN * elapsed_ns["demand"]

    def to_sweep(self, runs: Runs) -> None:
        """Try smaller and smaller caches with the recommended policy, until a larger one saves 1 %."""
        for step in range(SWEEP_MAX):
            blocks = self.trace.blocks >> step
            if step and blocks < BLOCKS_MIN:
                return
            smaller = dataclasses.replace(self.setting, cache=str(max(blocks, 1)))
            run = Run(setting=smaller, policy=self.recommended, limit=self.trace.limit, seed=self.seed)
            found = runs.measure([run], step=f"cache sizes on {self.setting.device}", share=(0.9, 1.0)).get(run)
            if found is None:
                return
            self.sweep.append((found.cache_blocks, found.elapsed_ns))
            if found.elapsed_ns > (1 + NEAR) * self.sweep[0][1]:
                return

    def enough(self) -> int | None:
        """Return the blocks of the smallest cache tried from which on a larger one saves less than 1 %."""
        if not self.sweep:
            return None
        least = min(elapsed for _, elapsed in self.sweep)
        return min(blocks for blocks, elapsed in self.sweep if elapsed <= (1 + NEAR) * least)

    def timed(self, policy: str) -> Timed:
        """Return a policy's time and its saving over demand."""
        found, demand = self.measured[policy], self.measured["demand"].elapsed_ns
        return Timed(
            policy=policy,
            elapsed_ns=found.elapsed_ns,
            saved_ns=demand - found.elapsed_ns,
            speedup=demand / found.elapsed_ns if found.elapsed_ns else 1.0,
            wasted_bytes=found.wasted_bytes,
            depth_bytes=linux_depth(policy),
            knows_future=knows_future(policy),
        )

    def advice(self, given_up: set[Run]) -> DeviceAdvice:
        """Return the advice."""
        best = self.timed(self.recommended)
        demand = self.timed("demand")
        default = self.timed(LINUX) if LINUX in self.measured else None
        deployable = ranked(self.measured, self.names)
        hinted = ranked(self.measured, self.hinted)
        model = self.measured["demand"].device
        hints = self.timed(hinted[0]) if hinted else None
        enough = self.enough()
        usable = eligible(self.measured, self.settable, streams=self.streams)
        of_linux = [policy for policy in usable if linux_depth(policy)]
        best_linux = choose(self.measured, ["demand", *of_linux], streams=self.streams)
        verdict = self._verdict(best, demand, hints)
        # Without a benefit, keep a default that costs little.
        harmless = default is None or default.elapsed_ns <= (1 + BENEFIT_MIN) * best.elapsed_ns
        # The machine's current setting needs no command.
        present = self.now or [LINUX]
        same = self.recommended in present
        unchanged = same or (verdict in WITHOUT_SETTING and harmless)
        typed = commands(self.recommended, model, unchanged=unchanged)
        if best_linux != self.recommended and not unchanged:
            typed = (*typed, *commands(best_linux, model, unchanged=best_linux in present))
        if disclosed_ns(best, hints) is not None:
            typed = (*disclosures(model), *typed)
        return DeviceAdvice(
            device=self.setting.device,
            profile=str(model["name"]),
            cache_blocks=self.measured["demand"].cache_blocks,
            cache_bytes=self.trace.bytes(self.measured["demand"].cache_blocks),
            verdict=verdict,
            recommended=best,
            demand=demand,
            linux_default=default,
            fastest_tried=self.timed(deployable[0]),
            hints=hints,
            now=next((self.timed(name) for name in self.now if name in self.measured), None),
            lower_bound_ns=self.bound_ns if self.confirmed else None,
            above_bound=best.elapsed_ns / self.bound_ns - 1 if self.bound_ns and self.confirmed else None,
            cache_enough_blocks=enough,
            cache_enough_bytes=None if enough is None else self.trace.bytes(enough),
            cache_sweep=tuple(self.sweep),
            confidence=self._confidence(given_up),
            linux=self.timed(best_linux),
            commands=typed,
            tried=tuple(self.timed(policy) for policy in ranked(self.measured, [*self.names, *self.hinted])),
        )

    def _verdict(self, best: Timed, demand: Timed, hints: Timed | None) -> str:
        if self.streams and best.saved_ns >= BENEFIT_MIN * demand.elapsed_ns:
            return "keep the default" if self.recommended == LINUX else "change"
        if disclosed_ns(best, hints) is not None:
            return "disclose"
        return "no benefit" if self.trace.addresses else "no addresses"

    def _confidence(self, given_up: set[Run]) -> Confidence:
        late = {run.policy for run in given_up if run.setting == self.setting and run.limit == self.trace.limit}
        level = "low"
        if self.confirmed and len(self.thirds) == THIRDS:
            holds = [*self.thirds, *self.seeds]
            if all(holds):
                level = "high"
            elif sum(self.thirds) >= THIRDS - 1 and all(self.seeds):
                level = "medium"
        return Confidence(
            level=level,
            confirmed=self.confirmed,
            thirds=self.thirds,
            seeds=self.seeds,
            unconfirmed=tuple(name for name in dict.fromkeys((*self.wanted, *self.names)) if name in late),
        )


def search_all(searches: Sequence[SettingSearch], plan: Plan, runs: Runs) -> float:
    """Take every search through its steps, all of them step by step, so that each gets its share of the time.

    Returns the share of reads that belong to streams.
    """

    def take(
        step: str, share: tuple[float, float], of: Callable[[SettingSearch], Sequence[Run]]
    ) -> dict[Run, Measured]:
        wanted = [of(each) for each in searches]
        # Round-robin, so that no device is left behind when the time is up.
        in_turns = (run for row in itertools.zip_longest(*wanted) for run in row if run is not None)
        return runs.measure(in_turns, step=step, share=share)

    stream_share = _stream_share(searches[0], runs) if searches[0].trace.addresses else 0.0
    found = take("screening", (0.0, 0.5), SettingSearch.to_screen)
    for each in searches:
        each.streams = stream_share >= STREAMS_MIN
        each.sampled = {run.policy: found[run] for run in each.to_screen() if run in found}
        if "demand" not in each.sampled:
            raise runs.refused.get("demand") or HeadstartError(f"seconds: {TOO_FEW}")
    found = take("confirming", (0.5, 0.75), SettingSearch.to_confirm)
    for each in searches:
        each.whole = {run.policy: found[run] for run in each.to_confirm() if run in found}
        if each.trace.sample() is None:
            each.whole = each.sampled
        each.decide()
    # The computation of a bound cannot be cut short.
    if runs.time_for_one:
        bounds = in_threads(lambda each: plan.bound(each.setting, runs.stop), searches, jobs=runs.jobs, stop=runs.stop)
        for each, bound in zip(searches, bounds, strict=True):
            each.bound_ns = bound
    found = take("thirds of the trace", (0.75, 0.85), SettingSearch.to_divide)
    for each in searches:
        each.divide(found)
    for each in searches:
        if each.confirmed and _is_random(each, runs):
            each.reseed([runs.measure(one, step="seeds", share=(0.85, 0.9)) for one in each.to_reseed()])
    in_threads(lambda each: each.to_sweep(runs), searches, jobs=runs.jobs, stop=runs.stop)
    return stream_share


def _stream_share(each: SettingSearch, runs: Runs) -> float:
    """Return the share of would-be misses that Linux's read-ahead predicts in a cache too small for chance hits.

    In a cache that holds much of the data, the neighbour of a random read is often cached, and read-ahead data is
    requested at some later time. This fills an empty cache sooner but is not a stream.
    """
    small = dataclasses.replace(each.setting, cache=str(max(BLOCKS_MIN, each.trace.blocks // SMALL)))
    share = 0.0
    for limit in dict.fromkeys((each.trace.sample() or each.trace.limit, each.trace.limit)):
        run = Run(setting=small, policy=LINUX, limit=limit, seed=each.seed)
        found = runs.measure([run], step="looking for streams", share=(0.0, 0.0)).get(run)
        share = max(share, found.coverage if found is not None else 0.0)
        if share >= STREAMS_MIN:
            break
    return share


def _is_random(each: SettingSearch, runs: Runs) -> bool:
    """Return whether another seed gives another time."""
    limit = each.trace.sample() or each.trace.limit
    (other,) = each.runs(["demand"], limit, each.seed + 1)
    found = runs.measure([other], step="seeds", share=(0.85, 0.9)).get(other)
    return found is not None and found.elapsed_ns != each.sampled["demand"].elapsed_ns

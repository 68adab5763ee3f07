"""The search: screen on a sample, confirm on the whole trace, choose, and test the reliability of the choice.

A step of the search yields runs and gets their results back, so that what it runs next rests on what it has learned. It
leaves out what the lower bound excludes, depths that are not beside a good one, and caches that bisection passes over.
"""

import dataclasses
import itertools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

from headstart._core import HeadstartError
from headstart.advice.choice import NEAR, choose, eligible, ranked
from headstart.advice.commands import commands, disclosures, is_remote
from headstart.advice.result import BENEFIT_MIN, Confidence, DeviceAdvice, Timed, disclosed_ns
from headstart.advice.runs import LINUX, TOO_FEW, Measured, Run, Runs, depths, hinted, linux_depth, of_depth, stores
from headstart.policies import by_position, knows_future
from headstart.runs.plan import Plan
from headstart.runs.rows import Setting
from headstart.runs.runner import in_threads, together
from headstart.sizes import size_bytes

BLOCK_SIZE = "8KiB"
"""The default of scenarios, so that `advise`, `compare` and `simulate` give the same times."""
SAMPLE_REFERENCES = 30_000
"""References of the sample; a trace with up to twice as many is its own sample."""
LONG = 10
"""The whole of a trace of so many samples takes long: the answer for the sample is told first."""
COARSE = 2
"""The depths are screened this many powers of two apart, from Linux's default on."""
STORES_MAX = 2
"""Clients of an object store that run on the whole trace, if the sample is not all of it."""
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
Steps = Generator[list[Run], dict[Run, Measured], None]
"""A step of a search: it yields runs, and gets the results of those that there was time for."""


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

    @property
    def unit_bytes(self) -> int:
        """The size of a block; one of unknown size counts as one of a scenario."""
        return self.block_bytes or size_bytes(BLOCK_SIZE)

    @property
    def data_bytes(self) -> int:
        """The bytes that the trace touches."""
        return self.blocks * self.unit_bytes


class SettingSearch:
    """The search for one device and cache."""

    def __init__(
        self, setting: Setting, trace: Trace, *, seed: int, cache_bytes: int, more: Sequence[str] = ()
    ) -> None:
        self.setting, self.trace, self.seed = setting, trace, seed
        self.depths = depths(cache_bytes) if trace.addresses else []
        self.stores = stores(trace.data_bytes) if trace.addresses else []
        now = [] if trace.now_bytes is None else [of_depth(trace.now_bytes)]
        self.now = [name for name in now if trace.addresses or not by_position(name)]
        self.more = [name for name in more if trace.addresses or not by_position(name)]
        self.hinted = hinted(evicts=cache_bytes < trace.data_bytes)
        self.sampled: dict[str, Measured] = {}
        self.whole: dict[str, Measured] = {}
        self.streams = True
        self.recommended = "demand"
        self.confirmed = False
        self.bound_ns: int | None = None
        """Lower bound of the elapsed time on the data of the current step."""
        self.sweep: list[tuple[int, int]] = []
        self.thirds: tuple[bool, ...] = ()
        self.seeds: tuple[bool, ...] = ()

    def runs(self, policies: Iterable[str], limit: int | None, seed: int | None = None) -> list[Run]:
        """Return runs of policies in this setting."""
        seed = self.seed if seed is None else seed
        return [Run(setting=self.setting, policy=policy, limit=limit, seed=seed) for policy in policies]

    def screen(self, stream_share: float) -> Steps:
        """Find the best hints on the sample, and the best setting if the sample is the whole trace."""
        self.streams = stream_share >= STREAMS_MIN
        sample = self.trace.sample()
        first = ["demand", *self.depths[:1], *self.now, *self.more, *self.hinted[:1]]
        yield from self._run(first, self.sampled, sample or self.trace.limit)
        if "demand" not in self.sampled:
            return
        if self._may_gain(self.sampled):
            of_store = self.stores if self.remote else []
            yield from self._run([*self.depths[::COARSE], *of_store], self.sampled, sample or self.trace.limit)
            if sample is None:
                yield from self._refine(self.sampled)
        if self._may_disclose(self.sampled):
            yield from self._run(self.hinted, self.sampled, sample or self.trace.limit)

    def confirm(self, stream_share: float) -> Steps:
        """Find the best setting on the whole trace, beginning with those that are near the best on the sample."""
        self.streams = stream_share >= STREAMS_MIN
        # The one that is mostly the fastest also where it is not so on the sample.
        with_hints = [*self.hinted[:1], *ranked(self.sampled, self.hinted)[:1]]
        first = ["demand", *self.depths[:1], *self.now, *self.more, *with_hints]
        yield from self._run(first, self.whole, self.trace.limit)
        if "demand" in self.whole and self._may_gain(self.whole):
            costs = {name: self.sampled[name].cost_ns for name in eligible(self.sampled, self.depths, streams=True)}
            near = [name for name, cost in costs.items() if cost <= (1 + BENEFIT_MIN) * min(costs.values())]
            of_store = (ranked(self.sampled, self.stores) or self.stores if self.remote else [])[:STORES_MAX]
            yield from self._run([*near, *of_store], self.whole, self.trace.limit)
            yield from self._refine(self.whole)

    def _run(self, policies: Iterable[str], into: dict[str, Measured], limit: int | None) -> Steps:
        """Run the policies that have not run, and keep their results."""
        found = yield self.runs((name for name in dict.fromkeys(policies) if name not in into), limit)
        into |= {run.policy: each for run, each in found.items()}

    def _refine(self, into: dict[str, Measured]) -> Steps:
        """Run, on the whole trace, the depths beside the best, beside the choice and beside those up to 5 % above."""
        tried = set(into)
        while of_linux := eligible(into, self.depths, streams=True):
            costs = {name: into[name].cost_ns for name in of_linux}
            least = min(costs.values())
            # Among those that cost the same as the best, the choice is the simplest: a look beside it suffices.
            centers = [name for name, cost in costs.items() if cost == least or NEAR < cost / least - 1 <= BENEFIT_MIN]
            centers.append(choose(into, ["demand", *of_linux], streams=True))
            known = {self.depths.index(name) for name in centers if name in self.depths}
            beside = sorted({at + step for at in known for step in (-1, 1)} & set(range(len(self.depths))))
            new = [self.depths[at] for at in beside if self.depths[at] not in tried]
            if not new:
                return
            tried |= set(new)
            yield from self._run(new, into, self.trace.limit)

    def _may_gain(self, measured: Mapping[str, Measured]) -> bool:
        """Return whether the lower bound allows that a depth is advised beyond Linux's default."""
        if not self.streams or not self.depths:
            return False
        demand, least = measured["demand"].elapsed_ns, self.bound_ns or 0
        default = measured.get(LINUX)
        return least <= (1 - BENEFIT_MIN) * demand and (default is None or default.cost_ns > (1 + NEAR) * least)

    def _may_disclose(self, measured: Mapping[str, Measured]) -> bool:
        """Return whether other hints than those tried can change the advice, or save another 1 % of the time."""
        demand, least = measured["demand"].elapsed_ns, self.bound_ns or 0
        hints = min((measured[name].elapsed_ns for name in self.hinted if name in measured), default=demand)
        advised = measured[choose(measured, self.settable(measured), streams=self.streams)].elapsed_ns
        return advised - least >= BENEFIT_MIN * demand and hints - least > NEAR * demand

    def decide(self) -> None:
        """Choose among the runs on the whole trace if these include demand and another policy, else on the sample."""
        if self.trace.sample() is None:
            self.whole = self.sampled
        others = any(linux_depth(policy) for policy in self.whole)
        self.confirmed = "demand" in self.whole and (others or not self.trace.addresses)
        self.recommended = choose(self.measured, self.settable(self.measured), streams=self.streams)

    @property
    def measured(self) -> dict[str, Measured]:
        """The results that the choice rests on."""
        return self.whole if self.confirmed else self.sampled

    @property
    def remote(self) -> bool:
        """Whether the device is behind a network."""
        return is_remote(self.sampled["demand"].device)

    def settable(self, measured: Mapping[str, Measured]) -> list[str]:
        """Return the policies that can be set on the machine today."""
        of_store = self.stores if self.remote else []
        return [name for name in measured if linux_depth(name) is not None or name in of_store]

    def finalists(self) -> list[str]:
        """Return the recommended policy, demand, and the best other one: the reliability tests compare them."""
        usable = eligible(self.measured, self.settable(self.measured), streams=self.streams)
        others = sorted((self.measured[name].cost_ns, name) for name in usable if name != self.recommended)
        return list(dict.fromkeys((self.recommended, "demand", *(name for _, name in others[:1]))))

    def parts(self) -> list[int]:
        """Return the requests of one third of the trace, and of two."""
        if self.trace.requests < REQUESTS_MIN:
            return []
        return [self.trace.requests * part // THIRDS for part in range(1, THIRDS)]

    def divide(self) -> Steps:
        """Determine in which thirds of the trace the choice holds. A third's time is the difference of two prefixes."""
        names, parts = self.finalists(), self.parts()
        if not self.confirmed or not parts:
            return
        found = yield [run for part in parts for run in self.runs(names, part)]
        took: list[dict[str, int]] = []
        before = dict.fromkeys(names, 0)
        for part in (*parts, None):
            ran = self.whole if part is None else {run.policy: each for run, each in found.items() if run.limit == part}
            if not ran.keys() >= set(names):
                return
            until = {name: ran[name].elapsed_ns for name in names}
            took.append({name: until[name] - before[name] for name in names})
            before = until
        self.thirds = tuple(self._holds(each) for each in took)

    def reseed(self) -> Steps:
        """Determine with which seeds the choice holds, if another seed gives another time."""
        if not self.confirmed:
            return
        limit = next(iter(self.parts()), self.trace.limit)
        seeds = [self.seed + more for more in range(SEEDS)]
        found = yield [run for seed in seeds[:2] for run in self.runs([self.recommended], limit, seed)]
        if len({each.elapsed_ns for each in found.values()}) < 2:
            return
        found = yield [run for seed in seeds[1:] for run in self.runs(self.finalists(), self.trace.limit, seed)]
        times = [{run.policy: each.elapsed_ns for run, each in found.items() if run.seed == seed} for seed in seeds[1:]]
        self.seeds = tuple(self._holds(each) for each in times if each.keys() >= set(self.finalists()))

    def _holds(self, elapsed_ns: Mapping[str, int]) -> bool:
        """Return whether no other finalist saves another 5 % of the time without prefetching."""
        costs = {policy: elapsed * self.measured[policy].waste_factor for policy, elapsed in elapsed_ns.items()}
        more = costs[self.recommended] - min(costs.values())
        return more <= BENEFIT_MIN * elapsed_ns["demand"]

    def shrink(self) -> Steps:
        """Find the smallest cache, of halves of halves, with which the recommended policy loses less than 1 %."""
        halves = [self.trace.blocks >> step for step in range(SWEEP_MAX)]
        caches = [max(blocks, 1) for step, blocks in enumerate(halves) if not step or blocks >= BLOCKS_MIN]
        elapsed: dict[int, int] = {}
        # Of caches[enough] it is known that it is large enough, of caches[less] that it is not.
        enough, less, step = 0, len(caches), 0
        while step < less:
            smaller = dataclasses.replace(self.setting, cache=str(caches[step]))
            run = Run(setting=smaller, policy=self.recommended, limit=self.trace.limit, seed=self.seed)
            found = (yield [run]).get(run)
            if found is None:
                break
            elapsed[found.cache_blocks] = found.elapsed_ns
            if found.elapsed_ns <= (1 + NEAR) * elapsed[max(elapsed)]:
                enough = step
            else:
                less = step
            # Half of all is mostly too little.
            step = 1 if step == 0 else (enough + less) // 2
            if step == enough:
                break
        self.sweep = sorted(elapsed.items(), reverse=True)

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
        everything = ranked(self.measured, self.measured)
        model = self.measured["demand"].device
        hints = next((self.timed(name) for name in everything if knows_future(name)), None)
        enough = self.enough()
        usable = eligible(self.measured, self.settable(self.measured), streams=self.streams)
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
            fastest_tried=self.timed(next(name for name in everything if not knows_future(name))),
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
            tried=tuple(self.timed(policy) for policy in everything),
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
            unconfirmed=tuple(sorted(late)),
        )


def search_all(searches: Sequence[SettingSearch], plan: Plan, runs: Runs, sampled: Callable[[float], object]) -> float:
    """Take every search through its steps; return the share of reads that belong to streams.

    If the trace is long, `sampled` is called with the share in its sample once the answer for that is known.
    """
    trace = searches[0].trace
    sample = trace.sample()
    streams = _stream_share(searches[0], runs, sample or trace.limit) if trace.addresses else 0.0
    _bound(searches, plan, runs, sample)
    play([each.screen(streams) for each in searches], runs, step="screening", share=(0.0, 0.5))
    if any("demand" not in each.sampled for each in searches):
        raise runs.refused.get("demand") or HeadstartError(f"seconds: {TOO_FEW}")
    for each in searches:
        each.decide()
    if sample is not None:
        if trace.references >= LONG * SAMPLE_REFERENCES:
            sampled(streams)
        if trace.addresses and streams < STREAMS_MIN:
            streams = max(streams, _stream_share(searches[0], runs, trace.limit))
        _bound(searches, plan, runs, None)
        play([each.confirm(streams) for each in searches], runs, step="confirming", share=(0.5, 0.75))
        for each in searches:
            each.decide()
    play([each.divide() for each in searches], runs, step="thirds of the trace", share=(0.75, 0.85))
    play([each.reseed() for each in searches], runs, step="seeds", share=(0.85, 0.9))
    play([each.shrink() for each in searches], runs, step="cache sizes", share=(0.9, 1.0))
    return streams


def play(steps: Sequence[Steps], runs: Runs, *, step: str, share: tuple[float, float]) -> None:
    """Take a step of every search to its end, all of them together, so that each gets its share of the time."""
    begin, end = share

    def answers(asked: Sequence[list[Run]]) -> list[dict[Run, Measured]]:
        nonlocal begin
        # Round-robin, so that no device is left behind when the time is up.
        in_turns = [run for row in itertools.zip_longest(*asked) for run in row if run is not None]
        middle = (begin + end) / 2
        found = runs.measure(in_turns, step=step, share=(begin, middle))
        begin = middle
        return [{run: found[run] for run in each if run in found} for each in asked]

    together(steps, answers)


def _bound(searches: Sequence[SettingSearch], plan: Plan, runs: Runs, limit: int | None) -> None:
    """Compute the lower bounds of the first `limit` requests."""
    for each in searches:
        each.bound_ns = None
    # The computation of a bound cannot be cut short.
    if not runs.time_for_one:
        return
    if limit is not None:
        plan = dataclasses.replace(plan, overrides=(*plan.overrides, f"workload.limit={limit}"))
    bounds = in_threads(lambda each: plan.bound(each.setting, runs.stop), searches, jobs=runs.jobs, stop=runs.stop)
    for each, bound in zip(searches, bounds, strict=True):
        each.bound_ns = bound


def _stream_share(each: SettingSearch, runs: Runs, limit: int | None) -> float:
    """Return the share of would-be misses that Linux's read-ahead predicts in a cache too small for chance hits.

    In a cache that holds much of the data, the neighbour of a random read is often cached, and read-ahead data is
    requested at some later time. This fills an empty cache sooner but is not a stream.
    """
    small = dataclasses.replace(each.setting, cache=str(max(BLOCKS_MIN, each.trace.blocks // SMALL)))
    run = Run(setting=small, policy=LINUX, limit=limit, seed=each.seed)
    found = runs.measure([run], step="looking for streams", share=(0.0, 0.0)).get(run)
    return found.coverage if found is not None else 0.0

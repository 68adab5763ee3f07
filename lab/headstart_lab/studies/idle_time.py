"""idle-time: what Kotz and Ellis left open of prefetching in idle time: the critical process, and more processors.

Source: Kotz and Ellis, "Prefetching in File Systems for MIMD Multiprocessors" (RAPID Transit), sections 4 and 7. "An
optimal distribution of hits is one in which each additional hit affects the critical process"; the authors were
"investigating strategies for explicitly attempting to spread benefits more globally over all the threads", and how
"these schemes scale with increasing numbers of processors is an important consideration". They print no results of
either.

The setting is that of kotz-ellis: its programs, its guesses (portions, frames), its two readings that were found by
scanning, five seeds. What is new are three keys of [process], `prefetch_for`, `idle_order` and `min_slack`, and none
of them was tuned:

- own first: a processor prefetches for its own process first, the one that is idle longest acts first (kotz-ellis).
- critical first: for the process that has most to read before its next meeting, from its next absent block on.
- slack order: of the idle processors the one acts first whose process has least to read before its next meeting.
- balance: both.
- balance, slack of 1: both, and no processor acts whose process is not at least one read ahead of the last.

Means of times are geometric. The criteria, written before the first results, on programs with processes that meet and
have strings of their own ("apart": lfp, lrp and lw, after 10 reads each or after each portion):

- critical first: the total is shorter than with own first by 1 % at least in the mean, and longer by more than 2 % in
  none.
- barriers: with critical first processes wait less at barriers than with own first in 80 % of the programs at least.
- slack order: the total is not longer than with own first in the mean.
- balance: the total is shorter than with own first by 1 % at least in the mean, and not longer than with critical
  first alone.
- slack of 1: processors that only act when they are ahead lose prefetches: the total is longer than with balance in
  the mean.
- shared strings: processes that share a string have one next block, so that critical first is own first, to the
  nanosecond. True by construction; the row checks it.
- harm: with balance no program of all takes more than 5 % longer than without prefetching, as the paper found of
  theirs.

More processors, each with a disk and 100 reads of its own, files and buffers in proportion, barriers after 10 reads
each, compute of 30 ms; look-ups that hold nothing ("free"), and for as long as in kotz-ellis ("contended"):

- free: from 20 to 160 processors the share of the total that prefetching saves changes by 10 points at most, for lfp
  and gw.
- contended: from 20 to 160 processors that share falls by half at least, for lfp and gw: look-ups one after another
  are the program then.
- imbalance: what critical first saves beside own first with lfp is more at 160 processors than at 5, for the last of
  many is later than the last of few.
"""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headstart_lab.studies._lab import Cell, Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies._study import Study
from headstart_lab.studies.kotz_ellis import _published as paper
from headstart_lab.studies.kotz_ellis._matrix import (
    CASES,
    CONTENTION_MS,
    GLOBAL,
    PINNED,
    SEEDS,
    Case,
    Lab,
    Pair,
    Variant,
)
from headstart_lab.studies.kotz_ellis._outcome import Outcome, mean

OWN: Final = "own first"
CRITICAL: Final = "critical first"
SLACK: Final = "slack order"
BALANCE: Final = "balance"
AHEAD: Final = "balance, slack of 1"
STRATEGIES: Final[Mapping[str, Mapping[str, Any]]] = {
    OWN: {},
    CRITICAL: {"prefetch_for": "critical"},
    SLACK: {"idle_order": "slack"},
    BALANCE: {"prefetch_for": "critical", "idle_order": "slack"},
    AHEAD: {"prefetch_for": "critical", "idle_order": "slack", "min_slack": 1},
}

MEETING: Final = ("10 each", "portion")
"""Synchronisations whose place in a process's own string is known beforehand."""
APART: Final = tuple(case for case in CASES if case.pattern not in GLOBAL and case.sync in MEETING)
SHARED: Final = tuple(case for case in CASES if case.pattern in GLOBAL)

GAIN: Final = 0.01
LOSS: Final = 0.02
MOST: Final = 0.8
HARM: Final = 0.05

PROCESSORS: Final = (5, 10, 20, 40, 80, 160)
EACH: Final = 100
"""Reads of a process, as in the paper: 2000 of 20."""
SCALED: Final = ("lfp", "gw")
LOOK_UPS: Final[Mapping[str, float]] = {"free": 0.0, "contended": CONTENTION_MS}
POINTS: Final = 0.10

Runs = Mapping[str, Sequence[Pair]]
"""By strategy: the programs, in one order."""


def _asked(lab: Lab, cases: Sequence[Case], names: Sequence[str], seeds: tuple[int, ...] = SEEDS) -> Runs:
    def variant(name: str) -> Variant:
        return dataclasses.replace(PINNED, process=STRATEGIES[name], seeds=seeds)

    return {name: [lab.pair(case, variant(name)) for case in cases] for name in names}


def _geometric(ratios: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def _beside(runs: Runs, name: str, other: str) -> dict[str, float]:
    """Return the totals of one strategy beside those of another, by program."""
    return {
        one.case.label: one.prefetching.total_ms / two.prefetching.total_ms
        for one, two in zip(runs[name], runs[other], strict=True)
    }


def _spread(ratios: Mapping[str, float]) -> str:
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return f"from {ratios[least] - 1:+.1%} ({least}) to {ratios[most] - 1:+.1%} ({most})"


def critical(lab: Lab) -> Steps:
    """Blocks of the process furthest behind first, and processors with slack first: totals and barriers."""
    apart, shared = _asked(lab, APART, list(STRATEGIES)), _asked(lab, SHARED, [OWN, CRITICAL])
    every = _asked(lab, CASES, [BALANCE])
    yield
    rows = [
        _critical_first(apart),
        _barriers(apart),
        _slack_order(apart),
        _balance(apart),
        _ahead(apart),
        _same(shared),
        _harm(every[BALANCE]),
    ]
    for name in STRATEGIES:
        if name != OWN:
            ratios = _beside(apart, name, OWN)
            rows.append(
                unpublished(f"{name}, total beside own first", _geometric([*ratios.values()]), note=_spread(ratios))
            )
    return rows + [
        unpublished(
            f"{pair.case.label}, total beside no prefetching, own first",
            pair.prefetching.total_ms / pair.without.total_ms,
            note=", ".join(
                f"{name} {other.prefetching.total_ms / other.without.total_ms:.3f}"
                for name, other in ((name, apart[name][at]) for name in STRATEGIES if name != OWN)
            ),
        )
        for at, pair in enumerate(apart[OWN])
    ]


def _critical_first(apart: Runs) -> Row:
    ratios = _beside(apart, CRITICAL, OWN)
    change = _geometric([*ratios.values()]) - 1
    return finding(
        "critical first: total beside own first, processes apart that meet",
        published="an additional hit is best where it affects the critical process",
        ours=f"{change:+.1%} in the mean",
        holds=change <= -GAIN and max(ratios.values()) <= 1 + LOSS,
        tolerance="shorter by 1 % in the mean, by more than 2 % longer in none",
        basis="calibrated",
        note=f"section 4; {_spread(ratios)}; shorter in {sum(each < 1 for each in ratios.values())} of {len(ratios)}",
    )


def _barriers(apart: Runs) -> Row:
    pairs = list(zip(apart[CRITICAL], apart[OWN], strict=True))
    less = [one.prefetching.barrier_ms < two.prefetching.barrier_ms for one, two in pairs]
    sums = [sum(pair.prefetching.barrier_ms for pair in apart[name]) for name in (CRITICAL, OWN)]
    return finding(
        "barriers: time that processes wait there, critical first beside own first",
        published="benefits can be spread more globally over all the threads",
        ours=f"less in {sum(less)} of {len(less)}",
        holds=sum(less) >= MOST * len(less),
        tolerance="less in 80 %",
        basis="calibrated",
        note=f"section 7; {sums[0] / sums[1] - 1:+.1%} of all of it",
    )


def _slack_order(apart: Runs) -> Row:
    ratios = _beside(apart, SLACK, OWN)
    change = _geometric([*ratios.values()]) - 1
    return finding(
        "slack order: total beside own first",
        published="processors with slack can prefetch for those without (expected)",
        ours=f"{change:+.1%} in the mean",
        holds=change <= 0,
        tolerance="not longer in the mean",
        basis="calibrated",
        note=_spread(ratios),
    )


def _balance(apart: Runs) -> Row:
    ratios, alone = _beside(apart, BALANCE, OWN), _beside(apart, BALANCE, CRITICAL)
    change, beside = _geometric([*ratios.values()]) - 1, _geometric([*alone.values()]) - 1
    return finding(
        "balance: total beside own first, and beside critical first",
        published="both together are better than either (expected)",
        ours=f"{change:+.1%} and {beside:+.1%} in the mean",
        holds=change <= -GAIN and beside <= 0,
        tolerance="shorter by 1 % than own first, not longer than critical first",
        basis="calibrated",
        note=f"beside own first {_spread(ratios)}",
    )


def _ahead(apart: Runs) -> Row:
    ratios = _beside(apart, AHEAD, BALANCE)
    change = _geometric([*ratios.values()]) - 1
    fewer = sum(pair.prefetching.prefetches for pair in apart[AHEAD])
    more = sum(pair.prefetching.prefetches for pair in apart[BALANCE])
    return finding(
        "slack of 1: total beside balance",
        published="idle time that is not used is lost (expected)",
        ours=f"{change:+.1%} in the mean",
        holds=change > 0,
        tolerance="longer in the mean",
        basis="calibrated",
        note=f"{_spread(ratios)}; prefetches {fewer / more - 1:+.1%}",
    )


def _same(shared: Runs) -> Row:
    same = [
        [cell.outcome for cell in one.cells[1]] == [cell.outcome for cell in two.cells[1]]
        for one, two in zip(shared[CRITICAL], shared[OWN], strict=True)
    ]
    return finding(
        "shared strings: critical first beside own first",
        published="one next block, whoever is behind (expected)",
        ours=f"the same runs in {sum(same)} of {len(same)} programs",
        holds=all(same),
        tolerance="every figure of every run",
        basis="identity",
        note="gfp, grp and gw; each run of each seed",
    )


def _harm(pairs: Sequence[Pair]) -> Row:
    ratios = {pair.case.label: pair.prefetching.total_ms / pair.without.total_ms for pair in pairs}
    return finding(
        "harm: total with balance beside no prefetching, all programs",
        published="slowdowns are less than 5 % (of theirs)",
        ours=f"at most {max(ratios.values()) - 1:+.1%}",
        holds=max(ratios.values()) <= 1 + HARM,
        tolerance="5 % in every program",
        basis="calibrated",
        note=f"section 6.2; {_spread(ratios)}; slower in {sum(each > 1 for each in ratios.values())} of {len(ratios)}",
    )


def _scaled(pattern: str, processors: int, look_ups: str, strategy: str | None, seed: int) -> dict[str, Any]:
    """Return the program of `pattern` for this many processors; without a strategy there is no prefetching."""
    prefetching = strategy is not None
    process = {**STRATEGIES[strategy or OWN], "contention": f"{LOOK_UPS[look_ups]:g}ms", "buffers": processors}
    variant = dataclasses.replace(PINNED, process=process)
    scenario = Case(pattern, "10 each", paper.COMPUTE_MS).scenario(prefetching=prefetching, variant=variant, seed=seed)
    reads = EACH * processors
    keys: dict[str, Any] = dict(scenario["process"])
    keys |= {"count": processors, "pattern": {**keys["pattern"], "blocks": reads, "reads": reads}}
    frames = processors * (paper.RU_SIZE + 1)
    return {
        **scenario,
        "process": keys,
        "cache": {"blocks": frames},
        "device": {**scenario["device"], "count": processors},
    }


Place = tuple[str, int, str, str | None]
"""A pattern, processors, the kind of look-ups, and a strategy or none."""


def _totals(lab: Lab, places: Sequence[Place], seeds: tuple[int, ...] = SEEDS) -> Mapping[Place, list[Cell[Outcome]]]:
    return {place: [lab.ask(_scaled(*place, seed)) for seed in seeds] for place in places}


def _total(cells: Sequence[Cell[Outcome]]) -> float:
    return mean([cell.outcome for cell in cells]).total_ms


def scaling(lab: Lab) -> Steps:
    """From 5 to 160 processors, each with a disk: what prefetching saves, and what critical first adds."""
    places: list[Place] = [
        (pattern, count, look_ups, strategy)
        for pattern in SCALED
        for count in PROCESSORS
        for look_ups in LOOK_UPS
        for strategy in (None, OWN, CRITICAL)
    ]
    cells = _totals(lab, places)
    yield
    total = {place: _total(cells[place]) for place in places}

    def saved(pattern: str, count: int, look_ups: str) -> float:
        return 1 - total[pattern, count, look_ups, OWN] / total[pattern, count, look_ups, None]

    def line(pattern: str, look_ups: str) -> str:
        return f"{pattern}: " + ", ".join(f"{count}: {saved(pattern, count, look_ups):.1%}" for count in PROCESSORS)

    def note(look_ups: str) -> str:
        return "saved by processors; " + "; ".join(line(pattern, look_ups) for pattern in SCALED)

    paper_count, most = paper.PROCESSES, PROCESSORS[-1]
    changes = {name: saved(name, most, "free") - saved(name, paper_count, "free") for name in SCALED}
    left = {name: saved(name, most, "contended") / saved(name, paper_count, "contended") for name in SCALED}
    behind = {
        count: 1 - total["lfp", count, "free", CRITICAL] / total["lfp", count, "free", OWN] for count in PROCESSORS
    }
    rows = [
        finding(
            f"free: saved at {most} beside {paper_count} processors",
            published="scaling is an important consideration; what is free of contention scales (expected)",
            ours=", ".join(f"{name} {100 * change:+.1f} points" for name, change in changes.items()),
            holds=all(abs(change) <= POINTS for change in changes.values()),
            tolerance="10 points",
            basis="calibrated",
            note=f"section 7; {note('free')}",
        ),
        finding(
            f"contended: saved at {most} beside {paper_count} processors",
            published="look-ups one after another leave nothing to prefetching (expected)",
            ours=", ".join(f"{name} {ratio:.2f} of it" for name, ratio in left.items()),
            holds=all(ratio <= 0.5 for ratio in left.values()),
            tolerance="half at most",
            basis="calibrated",
            note=note("contended"),
        ),
        finding(
            f"imbalance: saved by critical first beside own first, lfp, {most} and {PROCESSORS[0]} processors",
            published="more processors, more to balance (expected)",
            ours=f"{behind[most]:.1%} and {behind[PROCESSORS[0]]:.1%}",
            holds=behind[most] > behind[PROCESSORS[0]],
            tolerance="more",
            basis="calibrated",
            note=", ".join(f"{count}: {each:.1%}" for count, each in behind.items()),
        ),
    ]
    return rows + [
        unpublished(
            f"{pattern}, {count} processors, {look_ups} look-ups, total with own first (ms)",
            round(total[pattern, count, look_ups, OWN], 3),
            note=f"without prefetching {total[pattern, count, look_ups, None]:.0f}, critical first "
            f"{total[pattern, count, look_ups, CRITICAL]:.0f}",
        )
        for pattern in SCALED
        for look_ups in LOOK_UPS
        for count in PROCESSORS
    ]


def quick(lab: Lab) -> Steps:
    """One program with one seed under each strategy, and 5 processors: for tests."""
    runs = _asked(lab, [Case("lfp", "10 each", paper.COMPUTE_MS)], list(STRATEGIES), SEEDS[:1])
    cells = _totals(lab, [("lfp", PROCESSORS[0], "free", name) for name in (None, OWN, CRITICAL)], SEEDS[:1])
    yield
    rows = [
        unpublished(f"{pairs[0].case.label}, total with {name} (ms)", round(pairs[0].prefetching.total_ms, 3))
        for name, pairs in runs.items()
    ]
    return rows + [
        unpublished(
            f"{place[0]}, {place[1]} processors, total with {place[3] or 'no prefetching'} (ms)", round(_total(each), 3)
        )
        for place, each in cells.items()
    ]


STUDY = Study(
    name="idle-time",
    title="What Kotz and Ellis (RAPID Transit) left open of prefetching in idle time",
    seeds="1 to 5",
    lab=Lab,
    input="paper",
    steps={"critical": critical, "scaling": scaling, "quick": quick},
)

"""How much the guesses matter: each varied alone, the whole matrix and all its findings anew."""

import statistics
from collections.abc import Callable
from typing import Any

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.kotz_ellis import _published as paper
from headstart_lab.studies.kotz_ellis._matrix import CONTENTION_MS, PINNED, SEEDS, Lab, Pair, Variant
from headstart_lab.studies.kotz_ellis._reads import READS, spans
from headstart_lab.studies.kotz_ellis._totals import TOTALS


def _keys(**keys: Any) -> Variant:
    return Variant(process=keys)


VARIANTS: dict[str, Variant] = {
    "as pinned": PINNED,
    **{f"seed {seed} alone": Variant(seeds=(seed,)) for seed in SEEDS},
    "local portions of 5, global ones of 100": Variant(portion=5),
    "local portions of 20, global ones of 400": Variant(portion=20),
    "global portions of 10, as local ones": Variant(together=1),
    "lfp's processes begin on one disk": Variant(apart=100),
    **{
        f"contention {ms:g} ms": _keys(contention=f"{ms:g}ms")
        for ms in (0, 0.25, 0.5, 0.75, 1, 2)
        if ms != CONTENTION_MS
    },
    "requests enter the queue at the action's end": _keys(action_issues="end"),
    "the same, contention 0.25 ms": _keys(action_issues="end", contention="0.25ms"),
    "the same, contention 0": _keys(action_issues="end", contention="0ms"),
    "contention of look-ups and actions, on top of an action's 6 to 16 ms": _keys(contention_scope="all"),
    "the same, contention 0.5 ms": _keys(contention_scope="all", contention="0.5ms"),
    "a freed buffer goes to the processor idle for the shortest time": _keys(idle_order="shortest"),
    "a freed buffer goes to the first-numbered idle processor": _keys(idle_order="number"),
    "20 frames more": Variant(spare=20),
    "processors prefetch only what their own process reads": _keys(for_others=False),
    "actions of 1 to 2 ms": _keys(prefetch_action="uniform:1ms:2ms"),
}
"""By the name of their rows. The last two change printed values of the paper: what-if cases."""

FIGURES: dict[str, Callable[[list[Pair]], float]] = {
    "least read gain (%)": lambda pairs: min(each.read_gain for each in pairs),
    "greatest miss ratio": lambda pairs: max(each.prefetching.miss_ratio for each in pairs),
    f"share of miss ratios under {paper.MISS_RATIO_LOW} (%)": lambda pairs: (
        100 * statistics.mean(each.prefetching.miss_ratio < paper.MISS_RATIO_LOW for each in pairs)
    ),
    "mean unready share (%)": lambda pairs: 100 * statistics.mean(each.prefetching.unready_share for each in pairs),
    "mean total gain (%)": lambda pairs: statistics.mean(each.total_gain for each in pairs),
    "greatest total gain (%)": lambda pairs: max(each.total_gain for each in pairs),
    "greatest slowdown (%)": lambda pairs: -min(0.0, *(each.total_gain for each in pairs)),
    "mean overrun (ms)": lambda pairs: statistics.mean(each.prefetching.overrun_ms for each in pairs),
}
"""Figures of a matrix that rows show."""


def sensitivity(lab: Lab) -> Steps:
    """Guesses and scanned readings varied one at a time: how many findings agree, and what moves."""
    asked = {name: lab.matrix(variant) for name, variant in VARIANTS.items()}
    yield

    rows = [_row(name, pairs) for name, pairs in asked.items()]
    seeds = [asked[f"seed {seed} alone"] for seed in SEEDS]
    return rows + [_seeds(name, [of(pairs) for pairs in seeds]) for name, of in FIGURES.items()]


def _row(name: str, pairs: list[Pair]) -> Row:
    verdicts = [check(pairs) for check in (*READS, *TOTALS)]
    differ = [row.quantity for row in verdicts if row.verdict == "differs"]
    figures = ", ".join(f"{what} {of(pairs):.2f}" for what, of in FIGURES.items())
    return unpublished(
        f"{name}: findings of {len(verdicts)} that agree",
        len(verdicts) - len(differ),
        note=figures + (f"; differ: {'; '.join(differ)}" if differ else ""),
    )


def _seeds(what: str, values: list[float]) -> Row:
    return unpublished(
        f"{what}, mean of {len(values)} seeds",
        round(statistics.mean(values), 3),
        note=f"standard deviation {statistics.stdev(values):.3f}, {spans(values, 3)}",
    )

"""What the paper finds on its traces, checked on ours. A finding may agree or differ; no figure of a stand-in may.

No parameter was fitted to a finding. But PFC's `update` was decided by the paper's text after both readings had been
run: the finding whose verdict depends on it counts as calibrated, the others as predicted.
"""

import itertools

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._causes import better, worse
from headstart_lab.studies.zhang_pfc._matrix import ALGORITHMS, Lab, Runs
from headstart_lab.studies.zhang_pfc._tables import mean, spread

POINTS = 1.0
"""Hit ratios that differ by less than this many percentage points count as unaffected."""

MOST = 0.75
"""The share of cases for which "most" is granted. "All", "consistently" and what has no such word is every case."""

CLOSE = 0.1
"""Gains on other traces that differ from the paper's by no more than this share of them count as its size."""

AROUND = 0.05
"""A share of the cases that differs from a printed one ("around 77 %", "9 test cases") by no more than this is that."""

HALF = (0.4, 0.6)
"""The shares of the cases for which "about half" is granted."""


def findings(lab: Lab) -> Steps:
    """What section 4.3 finds, as verdicts on our traces."""
    runs = lab.matrix()
    yield
    rows = lab.skipped()
    if runs:
        rows += [check(runs) for check in CHECKS]
    return rows


def unjudged(quantity: str, published: str) -> Row:
    """Return the row of a finding on cases none of which was run."""
    return Row(quantity=quantity, published=published, ours=None, note="SKIPPED: there is no such case")


def improves(runs: list[Runs]) -> Row:
    """PFC improves every case."""
    held = sum(better(each) for each in runs)
    return finding(
        "PFC against none",
        published=f"improves the mean response time in all {paper.IMPROVED_CASES} cases",
        ours=f"improves it in {held} of {len(runs)}",
        cases=(held, len(runs)),
        holds=held == len(runs),
        note=f"gain (%), mean; least, quartiles, greatest: {spread([each.gain() for each in runs])}; slower in "
        f"{sum(worse(each) for each in runs)}; the paper's mean is {paper.MEAN_PERCENT} %. The item matrix says why",
    )


def size(runs: list[Runs]) -> Row:
    """The improvement is 14.6 % on average and 35 % at most."""
    gains = [each.gain() for each in runs]
    pairs = ((mean(gains), paper.MEAN_PERCENT), (max(gains), paper.GREATEST_PERCENT))
    groups: dict[str, list[float]] = {}
    for each in runs:
        groups.setdefault(each.case.workload.name, []).append(each.gain())
    return finding(
        "size of the improvement",
        published=f"up to {paper.GREATEST_PERCENT:.0f} %, on average {paper.MEAN_PERCENT} %",
        ours=f"up to {max(gains):.1f} %, on average {mean(gains):.1f} %",
        holds=all(abs(ours - theirs) <= CLOSE * theirs for ours, theirs in pairs),
        tolerance=f"both within {100 * CLOSE:.0f} % of the paper's",
        note="mean gain (%): " + ", ".join(f"{name} {mean(gains):.2f}" for name, gains in groups.items()),
    )


def beats_du(runs: list[Runs]) -> Row:
    """PFC beats DU in around 77 % of the cases."""
    held = sum(each.gain("PFC", "DU") > 0 for each in runs)
    share = held / len(runs)
    return finding(
        "PFC against DU",
        published=f"better in the majority of the cases (around {100 * paper.BETTER_THAN_DU:.0f} %)",
        ours=f"better in {held} of {len(runs)}",
        holds=abs(share - paper.BETTER_THAN_DU) <= AROUND,
        tolerance=f"within {100 * AROUND:.0f} points",
        note=f"{100 * share:.1f} %; gain over DU (%): {spread([each.gain('PFC', 'DU') for each in runs])}",
    )


def speed(runs: list[Runs]) -> Row:
    """L2's prefetching is sped up in few cases and slowed in most."""
    up = sum(each["PFC"].l2_prefetches > each["none"].l2_prefetches for each in runs)
    down = sum(each["PFC"].l2_prefetches < each["none"].l2_prefetches for each in runs)
    return finding(
        "L2 prefetching under PFC",
        published=f"sped up in {paper.SPED_UP} cases, slowed down in {paper.IMPROVED_CASES - paper.SPED_UP}",
        ours=f"sped up in {up}, slowed down in {down} of {len(runs)}",
        holds=all(
            abs(ours / len(runs) - theirs / paper.IMPROVED_CASES) <= AROUND
            for ours, theirs in ((up, paper.SPED_UP), (down, paper.IMPROVED_CASES - paper.SPED_UP))
        ),
        tolerance=f"both within {100 * AROUND:.0f} points",
        note="counted: pages that L2 prefetches in the run, those of readmore among them",
    )


def unused_sequential(runs: list[Runs]) -> Row:
    """If L2 is large and the trace sequential, there are more useless prefetches."""
    return _unused(runs, "OLTP", (2.0, 1.0), more=True)


def unused_random(runs: list[Runs]) -> Row:
    """If L2 is small and the trace random, there are fewer useless prefetches."""
    return _unused(runs, "Web", (0.1, 0.05), more=False)


def _unused(runs: list[Runs], name: str, ratios: tuple[float, float], *, more: bool) -> Row:
    group = [each for each in runs if each.case.workload.name == name and each.case.ratio in ratios]
    quantity = f"unused prefetch of L2, {name}, L2 of {100 * ratios[0]:g} and {100 * ratios[1]:g} % of L1"
    published = "more of it under PFC" if more else "less of it under PFC in most cases"
    least = len(group) if more else MOST * len(group)
    if not group:
        return unjudged(quantity, published)
    changes = [each["PFC"].l2_unused - each["none"].l2_unused for each in group]
    rising, falling = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    before, after = (sum(each[run].l2_unused for each in group) for run in ("none", "PFC"))
    return finding(
        quantity,
        published=published,
        ours=f"more in {rising}, less in {falling} of {len(group)}",
        cases=(rising if more else falling, len(group)),
        holds=(rising if more else falling) >= least,
        tolerance="all of them" if more else f"{100 * MOST:.0f} % of them",
        note=f"pages unused in all of them: {before} without, {after} with PFC",
    )


def hit_ratio(runs: list[Runs]) -> Row:
    """L2's hit ratio falls in about half of the cases, while the response time improves."""
    fell = [each for each in runs if each["PFC"].l2_hit_ratio < each["none"].l2_hit_ratio]
    improved = sum(better(each) for each in fell)
    share = improved / len(runs)
    native = sum(each["PFC"].l2_native_hit_ratio < each["none"].l2_native_hit_ratio for each in runs)
    return finding(
        "hit ratio of L2",
        published="falls in about half of the cases, while the response time improves",
        ours=f"falls in {len(fell)} of {len(runs)}, of which {improved} improve",
        holds=HALF[0] <= share <= HALF[1],
        tolerance=f"both in {100 * HALF[0]:.0f} to {100 * HALF[1]:.0f} % of the cases",
        basis="calibrated",
        note="depends on the reading of update (item sensitivity); silent hits count as hits, bypassed blocks that are "
        f"fetched as misses; of the blocks that do not bypass, it falls in {native}",
    )


def disk_work(runs: list[Runs]) -> Row:
    """Where PFC helps although L2 hits less, the disk serves fewer requests, or shorter ones."""
    fell = [each for each in runs if each["PFC"].l2_hit_ratio < each["none"].l2_hit_ratio and better(each)]
    quantity = "disk work where L2 hits less and the response time improves"
    published = "fewer requests, shorter ones, or both"
    if not fell:
        return unjudged(quantity, published)
    fewer = sum(each["PFC"].disk_requests < each["none"].disk_requests for each in fell)
    shorter = sum(each["PFC"].request_pages < each["none"].request_pages for each in fell)
    either = sum(
        each["PFC"].disk_requests < each["none"].disk_requests or each["PFC"].request_pages < each["none"].request_pages
        for each in fell
    )
    return finding(
        quantity,
        published=published,
        ours=f"in {either} of {len(fell)}",
        cases=(either, len(fell)),
        holds=either == len(fell),
        tolerance="all of those cases",
        note=f"fewer requests in {fewer}, shorter ones in {shorter}",
    )


def upper_hit_ratio(runs: list[Runs]) -> Row:
    """L1's hit ratio is hardly touched."""
    changes = [100 * abs(each["PFC"].l1_hit_ratio - each["none"].l1_hit_ratio) for each in runs]
    held = sum(change < POINTS for change in changes)
    return finding(
        "hit ratio of L1",
        published="little impact",
        ours=f"less than {POINTS:g} percentage point in {held} of {len(runs)}",
        cases=(held, len(runs)),
        holds=held == len(runs),
        tolerance="all cases",
        note=f"mean change {mean(changes):.2f}, greatest {max(changes):.2f} points",
    )


def order(runs: list[Runs]) -> Row:
    """PFC keeps the order of the algorithms."""
    groups: dict[tuple[str, str, float], list[Runs]] = {}
    for each in runs:
        groups.setdefault((each.case.workload.name, each.case.setting, each.case.ratio), []).append(each)
    kept, pairs = 0, 0
    for group in groups.values():
        for one, two in itertools.combinations(group, 2):
            before = one["none"].response_ms - two["none"].response_ms
            kept += before * (one["PFC"].response_ms - two["PFC"].response_ms) >= 0
            pairs += 1
    return finding(
        "order of the algorithms under PFC",
        published="relative performance kept under most circumstances",
        ours=f"{kept} of {pairs} pairs of algorithms in the same order",
        cases=(kept, pairs),
        holds=kept >= MOST * pairs,
        tolerance=f"{100 * MOST:.0f} % of the pairs",
        note=f"{len(groups)} groups of workload, L1 and L2 with {len(ALGORITHMS)} algorithms each",
    )


def gains_most(runs: list[Runs]) -> Row:
    """RA gains most, on every trace."""
    best, notes = {}, []
    for workload in dict.fromkeys(each.case.workload.name for each in runs):
        group = [each for each in runs if each.case.workload.name == workload]
        names = dict.fromkeys(each.case.algorithm for each in group)
        gains = {name: mean(each.gain() for each in group if each.case.algorithm == name) for name in names}
        best[workload] = max(gains, key=lambda name: gains[name])
        notes.append(f"{workload}: " + ", ".join(f"{name} {gain:.2f}" for name, gain in gains.items()))
    return finding(
        "algorithm that gains most",
        published="RA, on all traces",
        ours=", ".join(f"{name} on {workload}" for workload, name in best.items()),
        cases=(sum(name == "RA" for name in best.values()), len(best)),
        holds=set(best.values()) == {"RA"},
        tolerance="on each trace",
        note=f"mean gain (%): {'; '.join(notes)}",
    )


def single_actions(runs: list[Runs]) -> Row:
    """Both actions together beat each alone in the majority of the cases."""
    others = [each for each in runs if each.case.workload.name in ("OLTP", "Web")]
    quantity = "both actions against one alone, OLTP and Web"
    published = "together better in the majority of the cases"
    if not others:
        return unjudged(quantity, published)
    both = {name: sum(each.gain("PFC", name) > 0 for each in others) for name in ("bypass only", "readmore only")}
    held = sum(each.gain("PFC", "bypass only") > 0 and each.gain("PFC", "readmore only") > 0 for each in others)
    return finding(
        quantity,
        published=published,
        ours=f"better than either alone in {held} of {len(others)}",
        cases=(held, len(others)),
        holds=held > len(others) / 2,
        tolerance="more than half",
        note=", ".join(f"better than {name} in {count}" for name, count in both.items()),
    )


def amp(runs: list[Runs]) -> Row:
    """With AMP readmore only consistently beats both."""
    amps = [each for each in runs if each.case.algorithm == "AMP" and each.case.workload.name in ("OLTP", "Web")]
    quantity, published = "readmore only against PFC, AMP, OLTP and Web", "readmore only consistently better"
    if not amps:
        return unjudged(quantity, published)
    held = sum(each.gain("readmore only", "PFC") > 0 for each in amps)
    return finding(
        quantity,
        published=published,
        ours=f"better in {held} of {len(amps)}",
        cases=(held, len(amps)),
        holds=held == len(amps),
        tolerance="all cases",
        note=f"mean gain over PFC {mean(each.gain('readmore only', 'PFC') for each in amps):.2f} %",
    )


CHECKS = (
    improves,
    size,
    beats_du,
    speed,
    unused_sequential,
    unused_random,
    hit_ratio,
    disk_work,
    upper_hit_ratio,
    order,
    gains_most,
    single_actions,
    amp,
)
"""In the order of section 4.3, its text on Figure 4 first."""

"""Sections 6.2 to 6.4: total execution time, overhead, and differences among the patterns, checked on the matrix."""

import statistics
from collections.abc import Callable

from headstart_lab.studies._rows import Row, finding
from headstart_lab.studies.kotz_ellis import _published as paper
from headstart_lab.studies.kotz_ellis._causes import account
from headstart_lab.studies.kotz_ellis._matrix import GLOBAL, Case, Pair
from headstart_lab.studies.kotz_ellis._reads import STRONG, WEAK, correlation, counted, listed, spans, spread

GAIN = 1.0
"""A total that is shorter by more than this (%) shows an improvement."""


def total(pairs: list[Pair]) -> Row:
    """The total execution time falls in most cases."""
    gained = [each for each in pairs if each.total_gain > 0]
    return finding(
        "total execution time",
        published="reduced in most of the cases",
        ours=f"reduced in {len(gained)} of {len(pairs)}",
        holds=len(gained) > len(pairs) / 2,
        tolerance="more than half",
        note=f"{counted(pairs)}; reduced by (%) least, quartiles, greatest: "
        f"{spread([each.total_gain for each in pairs])}; by more than "
        f"{GAIN:g} % in {sum(each.total_gain > GAIN for each in pairs)}",
    )


def greatest_gain(pairs: list[Pair]) -> Row:
    """The greatest reduction is lw's, 53 %."""
    best = max(pairs, key=lambda each: each.total_gain)
    others = max((each for each in pairs if each.case.pattern != "lw"), key=lambda each: each.total_gain)
    return finding(
        "greatest reduction of the total execution time",
        published=f"up to {paper.TOTAL_GAIN:g} %, lw's",
        ours=f"{best.total_gain:.1f} %, {best.case.label}",
        holds=best.case.pattern == "lw" and abs(best.total_gain - paper.TOTAL_GAIN) <= 10,
        tolerance="lw, 10 points",
        note=f"greatest of another pattern {others.total_gain:.1f} % ({others.case.label}); lw: "
        + ", ".join(
            f"{each.case.sync}, {each.case.compute_ms:g} ms {each.total_gain:.1f} %"
            for each in pairs
            if each.case.pattern == "lw"
        )
        + ". lw without compute hangs on the time that 20 processes hold the shared structures, which is scanned, not "
        "published: see sensitivity",
    )


def slowdowns(pairs: list[Pair]) -> Row:
    """The slowdown in the other cases is less than 5 %."""
    slower = [each for each in pairs if each.total_gain < 0]
    far = [each for each in slower if each.total_gain <= -paper.SLOWDOWN]
    return finding(
        "slowdowns",
        published=f"less than {paper.SLOWDOWN:g} %",
        ours=f"less than that in {len(pairs) - len(far)} of {len(pairs)}",
        holds=not far,
        note=f"slower at all: {listed(slower, account)}" if slower else "no case is slower",
    )


def threshold(pairs: list[Pair]) -> Row:
    """The total improves only where the read time improves by 16 % at least."""
    below = [each for each in pairs if each.read_gain < paper.READ_GAIN_NEEDED]
    early = [each for each in below if each.total_gain > GAIN]
    late = [each for each in pairs if each not in below and each.total_gain <= GAIN]
    return finding(
        "improvement of the read time that the total needs",
        published=f"at least {paper.READ_GAIN_NEEDED:g} % for the total to show any improvement",
        ours=f"{len(early)} of {len(below)} cases below it improve, and {len(pairs) - len(below) - len(late)} of "
        f"{len(pairs) - len(below)} above",
        holds=not early,
        tolerance=f"no case below it; an improvement is more than {GAIN:g} %",
        note=in_step(early)
        + "; ".join(
            f"{name}: {listed(group, lambda each: f'read {each.read_gain:+.1f} %, total {each.total_gain:+.1f} %')}"
            for name, group in (("improve below it", early), ("do not improve above it", late))
            if group
        ),
    )


def in_step(early: list[Pair]) -> str:
    """Return why totals improve though read times improve little: if every process is critical, every saving counts."""
    if not early:
        return ""
    still = sum(each.case.compute_ms == 0 for each in early)
    waits = statistics.mean(100 * each.without.barrier_ms / each.without.total_ms for each in early)
    return (
        f"{still} of the {len(early)} that improve below it compute nothing. Their processes wait for each other for "
        f"{waits:.0f} % of the time without prefetching: nearly all are critical, and what reads save intervals save; "
    )


def total_by_miss_ratio(pairs: list[Pair]) -> Row:
    """The total improves with the read time, and is not directly related to the miss ratio."""
    gains = [each.total_gain for each in pairs]
    reads = correlation([each.read_gain for each in pairs], gains)
    misses = correlation([each.prefetching.miss_ratio for each in pairs], gains)
    return finding(
        "total execution time by read time and by miss ratio",
        published="improves where the read time improves much, not directly related to the miss ratio",
        ours=f"correlation of the gain {reads:.2f} with the read time's gain, {misses:.2f} with the miss ratio",
        holds=reads >= STRONG and abs(misses) <= WEAK,
        tolerance=f"at least {STRONG}, at most {WEAK}",
        note=f"{len(pairs)} cases",
    )


def synchronisation(pairs: list[Pair]) -> Row:
    """Prefetching increases the time that processes wait for each other."""
    meet = [each for each in pairs if each.case.sync != "none"]
    more = [each for each in meet if each.prefetching.barrier_ms > each.without.barrier_ms]
    changes = [each.prefetching.barrier_ms - each.without.barrier_ms for each in meet]
    return finding(
        "time spent at barriers",
        published="increased by prefetching",
        ours=f"longer in {len(more)} of {len(meet)}",
        holds=len(more) > len(meet) / 2,
        tolerance="more than half of the cases with barriers",
        note=f"change of a process's time at barriers (ms): {spread(changes, 0)}; "
        + "; ".join(
            f"{kind}: longer in {sum(each in more for each in group)} of {len(group)}"
            for kind, group in (
                ("local patterns", [each for each in meet if each.case.pattern not in GLOBAL]),
                ("global ones, in which faster processes read more", [e for e in meet if e.case.pattern in GLOBAL]),
            )
        ),
    )


def overrun(pairs: list[Pair]) -> Row:
    """The overrun is between 4 and 14 ms."""
    low, high = paper.OVERRUN_MS
    outside = [each for each in pairs if not low <= each.prefetching.overrun_ms <= high]
    few = listed(
        outside, lambda each: f"{each.prefetching.overrun_ms:.1f} ms, of {each.prefetching.overruns:g} overruns"
    )
    others = f"; outside: {few}" if outside else ""
    least, most = paper.ACTION_MS
    return finding(
        "overrun",
        published=f"between {low:g} and {high:g} ms",
        ours=f"its mean is in {len(pairs) - len(outside)} of {len(pairs)}",
        holds=not outside,
        note=f"mean of a run (ms): {spread([each.prefetching.overrun_ms for each in pairs])}; mean action "
        f"{spans([each.prefetching.action_ms for each in pairs])} ms: drawn from {least:g} to {most:g}, an input that "
        f"includes contention{others}",
    )


def lw_misses(pairs: list[Pair]) -> Row:
    """The processes of lw miss a twentieth without prefetching, and one block with it."""
    group = [each for each in pairs if each.case.pattern == "lw"]
    first = [each for each in group if each.prefetching.misses == 1]
    ratio = max(group, key=lambda each: abs(each.without.miss_ratio - paper.MISS_RATIO_LW)).without.miss_ratio
    return finding(
        "misses of lw",
        published=f"miss ratio {paper.MISS_RATIO_LW:.2f} without prefetching, a single miss with it",
        ours=f"{ratio:.3f} without, a single miss in {len(first)} of {len(group)} with it",
        holds=abs(ratio - paper.MISS_RATIO_LW) < 0.005 and len(first) == len(group),
        tolerance="0.005, every case",
        note=listed(group, lambda each: f"{each.without.misses:g} to {each.prefetching.misses:g} misses"),
    )


def random_portions(pairs: list[Pair]) -> Row:
    """That of lrp stands out when it synchronises on every portion: long delays."""
    meet = [each for each in pairs if each.case.sync != "none"]
    ordered = sorted(meet, key=lambda each: -each.prefetching.barrier_ms)
    first = {each.case.compute_ms: each for each in reversed(ordered)}
    return finding(
        "longest synchronisation delays",
        published="lrp's, synchronising on every portion",
        ours=", ".join(f"{each.case.pattern}, {each.case.sync} ({ms:g} ms)" for ms, each in sorted(first.items())),
        holds=all((each.case.pattern, each.case.sync) == ("lrp", "portion") for each in first.values()),
        tolerance="without compute and with it",
        note="time of a process at barriers without and with prefetching: "
        + listed(ordered[:6], lambda each: f"{each.without.barrier_ms:.0f} to {each.prefetching.barrier_ms:.0f} ms"),
    )


def balance(pairs: list[Pair]) -> Row:
    """Synchronising after 200 in all takes less time than after 10 each."""
    by_case = {each.case: each for each in pairs}
    gains = {}
    for case, pair in by_case.items():
        other = by_case.get(Case(case.pattern, "200 in all", case.compute_ms))
        if case.sync == "10 each" and other is not None:
            for kind in ("without", "prefetching"):
                each, all_ms = getattr(pair, kind).total_ms, getattr(other, kind).total_ms
                gains[f"{case.pattern}, {case.compute_ms:g} ms, {kind}"] = 100 * (each - all_ms) / each
    held = sum(gain > GAIN for gain in gains.values())
    slower = [f"{name} ({gain:.1f} %)" for name, gain in gains.items() if gain < -GAIN]
    return finding(
        f"synchronising after {paper.ALL} in all beside after {paper.EACH} each",
        published="reduces the execution time",
        ours=f"reduces it in {held} of {len(gains)}, increases it in {len(slower)}",
        holds=held > len(gains) / 2 and not slower,
        tolerance=f"more than half, no increase; by more than {GAIN:g} %",
        note=f"by (%): {spread(list(gains.values()))}"
        + (f"; increases: {'; '.join(slower)}" if slower else "")
        + ". Without compute all processes go in step, and there is little to balance",
    )


def groups(pairs: list[Pair]) -> Row:
    """The miss ratio falls into four groups by pattern, the local portioned patterns' the highest."""
    ranges = {}
    for name in dict.fromkeys(each.case.pattern for each in pairs):
        ratios = [each.prefetching.miss_ratio for each in pairs if each.case.pattern == name]
        ranges[name] = (min(ratios), max(ratios), statistics.mean(ratios))
    ordered = sorted(ranges, key=lambda name: ranges[name][2])
    found: list[list[str]] = []
    top = -1.0
    for name in sorted(ranges, key=lambda name: ranges[name][0]):
        if ranges[name][0] > top:
            found.append([])
        found[-1].append(name)
        top = max(top, ranges[name][1])
    highest = set(ordered[-2:]) == {"lfp", "lrp"}
    return finding(
        "miss ratio by pattern",
        published=f"{paper.GROUPS} distinct groups, those of the local portioned patterns the highest",
        ours=f"{len(found)} groups, the highest those of {' and '.join(ordered[-2:])}",
        holds=highest and len(found) == paper.GROUPS,
        tolerance="ranges that do not overlap",
        note="ranges: "
        + ", ".join(f"{name} {low:.3f} to {high:.3f} (mean {mean:.3f})" for name, (low, high, mean) in ranges.items())
        + f"; groups: {' | '.join(' '.join(group) for group in found)}. Programs that compute and programs that do not "
        "are in one range",
    )


TOTALS: tuple[Callable[[list[Pair]], Row], ...] = (
    total,
    greatest_gain,
    slowdowns,
    threshold,
    total_by_miss_ratio,
    synchronisation,
    overrun,
    lw_misses,
    random_portions,
    balance,
    groups,
)

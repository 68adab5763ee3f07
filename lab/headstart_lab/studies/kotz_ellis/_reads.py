"""Section 6.1: what prefetching does to read times, miss ratios, hit-wait times and disks, checked on the matrix."""

import statistics
from collections.abc import Callable, Sequence

from headstart_lab.studies._rows import Row, finding
from headstart_lab.studies.kotz_ellis import _published as paper
from headstart_lab.studies.kotz_ellis._matrix import Pair
from headstart_lab.studies.kotz_ellis._outcome import share

AGAIN = (
    "Every block that is prefetched is read: what is added is fetched again, because it was replaced between two "
    "readers. Blocks that local portions share by coincidence go after the first reader, lw's once the slowest process "
    "is further behind than the frames reach"
)

NEARLY_HALF, HALF = (0.40, 0.50), (0.45, 0.55)
"""What "nearly half" and "half" of the cases may be."""

MOST = 0.75
"""The share of cases for which "most", "generally" and "tend to" are granted."""

LITTLE, SOME = 2.0, 5.0
"""Changes up to the first (%) are negligible, above the second significant, "little" or "slight" between them."""

MUCH = 0.5
"""A time "much smaller" than another is at most this share of it."""

STRONG, WEAK = 0.6, 0.4
"""Correlations that a "very rough linear relation" must exceed, and that "no obvious relationship" must not; a tendency
must exceed the second."""


def read_time(pairs: list[Pair]) -> Row:
    """The mean read time falls significantly in every case."""
    rose = [each for each in pairs if each.read_gain <= SOME]
    return finding(
        "mean read time",
        published="significantly reduced in all cases",
        ours=f"reduced by more than {SOME:g} % in {len(pairs) - len(rose)} of {len(pairs)}",
        holds=not rose,
        tolerance=f"every case, by more than {SOME:g} %",
        note=f"{counted(pairs)}; reduced by (%) least, quartiles, greatest: "
        + spread([each.read_gain for each in pairs])
        + (f"; not in {listed(rose, lambda each: f'{each.read_gain:+.1f} %')}" if rose else ""),
    )


def shorter_reads(pairs: list[Pair]) -> Row:
    """Figure 3: the largest improvements are in the shorter read times."""
    before = [each.without.read_ms for each in pairs]
    found = correlation(before, [each.read_gain for each in pairs])
    largest = sorted(pairs, key=lambda each: -each.read_gain)[:6]
    return finding(
        "where the read time improves most",
        published="in the shorter read times",
        ours=f"correlation {found:.2f} of the reduction (%) with the read time without prefetching",
        holds=found <= -WEAK,
        tolerance=f"at most -{WEAK}",
        note=f"read times without prefetching (ms): {spread(before)}; largest reductions: "
        + listed(largest, lambda each: f"{each.without.read_ms:.1f} to {each.prefetching.read_ms:.1f} ms"),
    )


def distribution(pairs: list[Pair]) -> Row:
    """With prefetching there are more very short reads and a few very long ones."""
    short = sum(each.prefetching.hits_ready > each.without.hits_ready for each in pairs)
    long = sum(each.prefetching.read_max_ms > each.without.read_max_ms for each in pairs)
    return finding(
        "distribution of read times",
        published="more very short reads and a few very long ones",
        ours=f"more ready hits in {short}, a longer longest read in {long} of {len(pairs)}",
        holds=min(short, long) >= MOST * len(pairs),
        tolerance=f"{100 * MOST:.0f} % of the cases each",
        note="longest read without, with prefetching (ms), mean over the cases: "
        f"{statistics.mean(each.without.read_max_ms for each in pairs):.1f}, "
        f"{statistics.mean(each.prefetching.read_max_ms for each in pairs):.1f}",
    )


def miss_ratio(pairs: list[Pair]) -> Row:
    """With prefetching every miss ratio is under 0.60."""
    over = [each for each in pairs if each.prefetching.miss_ratio >= paper.MISS_RATIO_MOST]
    return finding(
        "miss ratio with prefetching",
        published=f"under {paper.MISS_RATIO_MOST:.2f} in every case",
        ours=f"under it in {len(pairs) - len(over)} of {len(pairs)}",
        holds=not over,
        note=f"least, quartiles, greatest: {spread([each.prefetching.miss_ratio for each in pairs], 3)}"
        + (f"; not in {listed(over, lambda each: f'{each.prefetching.miss_ratio:.3f}')}" if over else ""),
    )


def low_miss_ratio(pairs: list[Pair]) -> Row:
    """Nearly half of the miss ratios are under 0.08."""
    low = [each for each in pairs if each.prefetching.miss_ratio < paper.MISS_RATIO_LOW]
    groups = {name: [each for each in pairs if each.case.pattern == name] for name in _patterns(pairs)}
    means = {name: statistics.mean(each.prefetching.miss_ratio for each in group) for name, group in groups.items()}
    return finding(
        f"miss ratios with prefetching under {paper.MISS_RATIO_LOW}",
        published="nearly half of the cases",
        ours=f"{len(low)} of {len(pairs)}",
        holds=NEARLY_HALF[0] <= len(low) / len(pairs) <= NEARLY_HALF[1],
        tolerance=f"{100 * NEARLY_HALF[0]:.0f} to {100 * NEARLY_HALF[1]:.0f} %",
        note=f"median {statistics.median(each.prefetching.miss_ratio for each in pairs):.3f}; mean by pattern: "
        + ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        + ". How many of them are grp's and gfp's hangs on the portions' length, a guess: see sensitivity",
    )


def demand_miss_ratio(pairs: list[Pair]) -> Row:
    """Without prefetching most miss ratios are 1.0; where processes read the same blocks they are lower."""
    full = [each for each in pairs if each.without.miss_ratio >= 0.995]
    others = [each for each in pairs if each not in full]
    return finding(
        "miss ratio without prefetching",
        published="1.0 in most cases, less where there is interprocess locality, as in lw",
        ours=f"1.0 in {len(full)} of {len(pairs)}",
        holds=len(full) > len(pairs) / 2 and all(each not in full for each in pairs if each.case.pattern == "lw"),
        tolerance="rounded to two digits; more than half",
        note="less in "
        + ", ".join(
            f"{name} ({spans([each.without.miss_ratio for each in others if each.case.pattern == name], 3)})"
            for name in _patterns(others)
        ),
    )


def unready(pairs: list[Pair]) -> Row:
    """Unready hits are 50 to 60 % of all hits."""
    hits = sum(each.prefetching.hits_ready + each.prefetching.hits_unready for each in pairs)
    pooled = share(sum(each.prefetching.hits_unready for each in pairs), hits)
    shares = [each.prefetching.unready_share for each in pairs]
    low, high = paper.UNREADY_SHARE
    return finding(
        "unready hits as a share of all hits",
        published=f"about {100 * low:.0f} to {100 * high:.0f} %",
        ours=f"{100 * pooled:.0f} % of the hits of all cases together",
        holds=low <= pooled <= high,
        tolerance="within the range",
        note=f"mean of the cases {100 * statistics.mean(shares):.0f} %; by case least, quartiles, greatest (%): "
        f"{spread([100 * each for each in shares], 0)}; without compute "
        f"{100 * _mean_unready(pairs, 0):.0f} %, with {100 * _mean_unready(pairs, paper.COMPUTE_MS):.0f} %",
    )


def hit_wait(pairs: list[Pair]) -> Row:
    """Half of the mean hit-wait times are under the disk's 30 ms."""
    under = sum(each.prefetching.hit_wait_ms < paper.DISK_MS for each in pairs)
    return finding(
        f"mean hit-wait time under {paper.DISK_MS:g} ms",
        published="half of the cases",
        ours=f"{under} of {len(pairs)}",
        holds=HALF[0] <= under / len(pairs) <= HALF[1],
        tolerance=f"{100 * HALF[0]:.0f} to {100 * HALF[1]:.0f} %",
        note=f"over the unready hits of a run (ms): {spread([each.prefetching.hit_wait_ms for each in pairs])}. "
        "A prefetch is waited for from later on than it was begun: waits beyond the disk's time need a queue. Mean "
        f"response of the disks (ms): {spread([each.prefetching.disk_ms for each in pairs])}",
    )


def hit_wait_and_miss(pairs: list[Pair]) -> Row:
    """The hit-wait time is generally much smaller than a miss's."""
    ratios = [share(each.prefetching.hit_wait_ms, each.prefetching.disk_ms) for each in pairs]
    held = sum(ratio <= MUCH for ratio in ratios)
    return finding(
        "hit-wait time beside the wait of a miss",
        published="generally much smaller",
        ours=f"at most {100 * MUCH:.0f} % of it in {held} of {len(pairs)}, at the median "
        f"{100 * statistics.median(ratios):.0f} %",
        holds=held >= MOST * len(pairs),
        tolerance=f"at most {100 * MUCH:.0f} % of it in {100 * MOST:.0f} % of the cases",
        note=f"over the mean response time of the disks in the same run: {spread(ratios, 2)}",
    )


def read_time_by_hit_wait(pairs: list[Pair]) -> Row:
    """The read time depends on the hit-wait time, roughly linearly, and not on the miss ratio."""
    reads = [each.prefetching.read_ms for each in pairs]
    waits = correlation([each.prefetching.hit_wait_ms for each in pairs], reads)
    misses = correlation([each.prefetching.miss_ratio for each in pairs], reads)
    portioned = [each for each in pairs if each.case.pattern != "lw"]
    inner = correlation(
        [each.prefetching.hit_wait_ms for each in portioned], [each.prefetching.read_ms for each in portioned]
    )
    return finding(
        "read time with prefetching, by hit-wait time and by miss ratio",
        published="very rough linear relation to the hit-wait time, no obvious one to the miss ratio",
        ours=f"correlation {waits:.2f} with the hit-wait time, {misses:.2f} with the miss ratio",
        holds=waits >= STRONG and abs(misses) <= WEAK,
        tolerance=f"at least {STRONG}, at most {WEAK}",
        note=f"without lw's cases {inner:.2f} with the hit-wait time",
    )


def disk_response(pairs: list[Pair]) -> Row:
    """The disks respond more slowly."""
    fell = [each for each in pairs if each.prefetching.disk_ms <= each.without.disk_ms]
    changes = [100 * share(each.prefetching.disk_ms - each.without.disk_ms, each.without.disk_ms) for each in pairs]
    better = listed(fell, lambda each: f"{each.without.disk_ms:.1f} to {each.prefetching.disk_ms:.1f} ms")
    return finding(
        "mean response time of the disks",
        published="worsens",
        ours=f"worsens in {len(pairs) - len(fell)} of {len(pairs)}",
        holds=not fell,
        tolerance="every case",
        note=f"change (%): {spread(changes)}" + (f"; not in {better}" if fell else ""),
    )


def fetches(pairs: list[Pair]) -> Row:
    """No fetch is added."""
    more = [each for each in pairs if each.prefetching.fetches > each.without.fetches]
    return finding(
        "blocks fetched",
        published="no more with prefetching than without",
        ours=f"no more in {len(pairs) - len(more)} of {len(pairs)}",
        holds=not more,
        note="more in "
        + listed(more, lambda each: f"{each.without.fetches:g} to {each.prefetching.fetches:g}")
        + f". {AGAIN}"
        if more
        else "no case fetches a block more",
    )


READS: tuple[Callable[[list[Pair]], Row], ...] = (
    read_time,
    shorter_reads,
    distribution,
    miss_ratio,
    low_miss_ratio,
    demand_miss_ratio,
    unready,
    hit_wait,
    hit_wait_and_miss,
    read_time_by_hit_wait,
    disk_response,
    fetches,
)


def counted(pairs: list[Pair]) -> str:
    """Return how many cases there are, and how many different programs they are."""
    programs = len({(each.without, each.prefetching) for each in pairs})
    return f"{len(pairs)} cases, {programs} different programs: the others read and meet as one of them does"


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return least, quartiles and greatest."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    return ", ".join(f"{each:.{digits}f}" for each in (min(values), low, middle, high, max(values)))


def spans(values: Sequence[float], digits: int = 1) -> str:
    """Return least and greatest, or the one that there is."""
    low, high = (f"{each:.{digits}f}" for each in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def listed(pairs: list[Pair], of: Callable[[Pair], str]) -> str:
    """Return the cases with a figure each."""
    return "; ".join(f"{each.case.label} ({of(each)})" for each in pairs)


def correlation(one: Sequence[float], two: Sequence[float]) -> float:
    """Return Pearson's coefficient; 0 where one of them does not vary."""
    if len(one) < 2 or min(one) == max(one) or min(two) == max(two):
        return 0.0
    return statistics.correlation(one, two)


def _patterns(pairs: list[Pair]) -> list[str]:
    return list(dict.fromkeys(each.case.pattern for each in pairs))


def _mean_unready(pairs: list[Pair], compute_ms: float) -> float:
    shares = [each.prefetching.unready_share for each in pairs if each.case.compute_ms == compute_ms]
    return statistics.mean(shares) if shares else 0.0

"""Sections 6.3 and 6.5: the minimum prefetch time, the buffers, the compute time and the minimum lead, one at a time.

The paper does not say which programs it varied them on: ours synchronise after 10 reads each.
"""

import dataclasses
import statistics
from collections.abc import Iterable
from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies.kotz_ellis import _published as paper
from headstart_lab.studies.kotz_ellis._matrix import COMPUTES, GLOBAL, PATTERNS, PINNED, Case, Lab, Pair, Variant
from headstart_lab.studies.kotz_ellis._reads import LITTLE, MOST, SOME, spread

SYNC: Final = "10 each"

MIN_TIMES_MS: Final = (0, 2, 5, 10, 15, 20, 25)
BUFFERS: Final = (20, 40, 60, 100, 200)
COMPUTES_MS: Final = (0, 5, 10, 20, 30, 60, 100, 200, 400, 800)
LEADS: Final = (0, 5, 10, 20, 30, 40, 60, 80)


def _with(**keys: Any) -> Variant:
    return dataclasses.replace(PINNED, process=keys)


def min_time(lab: Lab) -> Steps:
    """No action unless the idle time left is estimated to be long enough: total and read time (section 6.3)."""
    programs = [Case(name, SYNC, compute) for name in PATTERNS for compute in COMPUTES]
    asked = {least: [lab.pair(case, _with(min_time=f"{least}ms")) for case in programs] for least in MIN_TIMES_MS}
    yield
    base = asked[0]
    rows = [_line(f"minimum prefetch time {least} ms", pairs) for least, pairs in asked.items()]
    totals = [100 * (b.prefetching.total_ms / a.prefetching.total_ms - 1) for a, b in _against(base, asked)]
    reads = [100 * (b.prefetching.read_ms / a.prefetching.read_ms - 1) for a, b in _against(base, asked)]
    held = sum(abs(change) <= LITTLE for change in totals)
    slight = -SOME <= statistics.median(reads) < 0
    rows.append(
        finding(
            "effect of the minimum prefetch time",
            published="on the total negligible, on the read time a very slight improvement",
            ours=f"total within {LITTLE:g} % in {held} of {len(totals)} runs; at the median "
            f"{statistics.median(totals):+.1f} %, read time {statistics.median(reads):+.1f} %",
            holds=held >= MOST * len(totals) and slight,
            tolerance=f"total within {LITTLE:g} % in {100 * MOST:.0f} % of the runs, median read time down by at most "
            f"{SOME:g} %",
            note=f"change of the total against 0 (%): mean {statistics.mean(totals):+.1f}, {spread(totals)}; of the "
            f"read time: mean {statistics.mean(reads):+.1f}, {spread(reads)}. The estimate of the idle time is ours",
        )
    )
    return rows


def buffers(lab: Lab) -> Steps:
    """More buffers for prefetched blocks than one for each process (section 6.5)."""
    programs = [Case(name, SYNC, compute) for name in PATTERNS for compute in COMPUTES]
    asked = {count: [lab.pair(case, _with(buffers=count)) for case in programs] for count in BUFFERS}
    yield
    base = asked[BUFFERS[0]]
    rows = [_line(f"{count} buffers", pairs) for count, pairs in asked.items()]
    gains = {
        each.case.label: max(100 * (1 - other.prefetching.total_ms / each.prefetching.total_ms) for other in others)
        for each, *others in zip(base, *(asked[count] for count in BUFFERS[1:]), strict=True)
    }
    held = sum(gain <= SOME for gain in gains.values())
    ratios = ", ".join(
        f"{few.case.pattern} {few.case.compute_ms:g} ms "
        f"{few.prefetching.miss_ratio:.2f} and {many.prefetching.miss_ratio:.2f}"
        for few, many in zip(base, asked[BUFFERS[-1]], strict=True)
        if few.case.pattern in ("lfp", "lrp")
    )
    more = "; ".join(f"{label} {gain:.1f} %" for label, gain in gains.items() if gain > SOME)
    rows.append(
        finding(
            "more prefetch buffers",
            published="little performance improvement",
            ours=f"at most {SOME:g} % of the total in {held} of {len(gains)} programs, at the best number of buffers",
            holds=held >= MOST * len(gains),
            tolerance=f"{100 * MOST:.0f} % of the programs",
            note=f"best gain over {BUFFERS[0]} buffers (%): {spread(list(gains.values()))}. The limit binds in local "
            f"patterns: their miss ratio with {BUFFERS[0]} and {BUFFERS[-1]} buffers: {ratios}"
            + (f"; more: {more}" if more else ""),
        )
    )
    return rows


def compute(lab: Lab) -> Steps:
    """Between I/O-bound and compute-bound: gains, read, hit-wait and disk response times (section 6.5)."""
    asked = {ms: [lab.pair(Case(name, SYNC, ms)) for name in PATTERNS] for ms in COMPUTES_MS}
    yield
    rows = [_computed(each) for pairs in asked.values() for each in pairs]
    by_pattern = {name: [pairs[at] for pairs in asked.values()] for at, name in enumerate(PATTERNS)}
    others = {name: pairs for name, pairs in by_pattern.items() if name != "lw"}
    return [*rows, _tails(by_pattern), _read_left(others), _relief(others)]


def _computed(pair: Pair) -> Row:
    before, after = pair.without, pair.prefetching
    return unpublished(
        f"{pair.case.pattern}, {pair.case.compute_ms:g} ms of compute: total reduced by (%)",
        round(pair.total_gain, 2),
        note=f"read time {before.read_ms:.1f} to {after.read_ms:.1f} ms, hit-wait {after.hit_wait_ms:.1f} ms, disk "
        f"response {before.disk_ms:.1f} to {after.disk_ms:.1f} ms",
    )


def _tails(by_pattern: dict[str, list[Pair]]) -> Row:
    """The gain grows with the compute time, then tails off."""
    tops = {name: max(range(len(pairs)), key=lambda at: pairs[at].total_gain) for name, pairs in by_pattern.items()}
    held = [name for name, at in tops.items() if 0 < at < len(COMPUTES_MS) - 1]
    return finding(
        "total reduced by, as compute grows",
        published="grows, then tails off",
        ours=f"greatest inside the range for {len(held)} of {len(tops)} patterns",
        holds=len(held) >= MOST * len(tops),
        tolerance=f"{100 * MOST:.0f} % of the patterns",
        note="greatest at: "
        + ", ".join(
            f"{name} {COMPUTES_MS[at]} ms ({by_pattern[name][at].total_gain:.1f} %)" for name, at in tops.items()
        ),
    )


def _read_left(others: dict[str, list[Pair]]) -> Row:
    """The read time falls to nearly 75 % of its value without prefetching."""
    left = {name: [each.prefetching.read_ms / each.without.read_ms for each in pairs] for name, pairs in others.items()}
    least = {name: min(values) for name, values in left.items()}
    mean = [statistics.mean(values[at] for values in left.values()) for at in range(len(COMPUTES_MS))]
    best = min(range(len(mean)), key=mean.__getitem__)
    return finding(
        "read time left by prefetching, at the compute time that suits best",
        published=f"nearly {100 * paper.READ_LEFT:.0f} %",
        ours=f"{100 * mean[best]:.0f} % at {COMPUTES_MS[best]} ms, mean of the patterns but lw",
        holds=abs(mean[best] - paper.READ_LEFT) <= 0.10,
        tolerance="10 points",
        note="mean by compute time (%): "
        + ", ".join(f"{ms} ms {100 * value:.0f}" for ms, value in zip(COMPUTES_MS, mean, strict=True))
        + "; least of each: "
        + ", ".join(f"{name} {100 * value:.0f}" for name, value in least.items())
        + f". What is left at {COMPUTES_MS[best]} ms (ms a read): "
        + ", ".join(_left(pairs[best]) for pairs in others.values()),
    )


def _left(pair: Pair) -> str:
    """Return the parts of a read with prefetching: waiting for its block, and overrun and look-up."""
    run = pair.prefetching
    reads = run.references / paper.PROCESSES
    return f"{pair.case.pattern} waiting {run.stall_ms / reads:.1f} + overrun and look-up {run.overhead_ms / reads:.1f}"


def _relief(others: dict[str, list[Pair]]) -> Row:
    """Hit-wait and disk response times fall as compute grows."""
    ends = {
        name: [(pairs[at].prefetching.hit_wait_ms, pairs[at].prefetching.disk_ms) for at in (0, len(pairs) - 1)]
        for name, pairs in others.items()
    }
    held = [name for name, (first, last) in ends.items() if last[0] < first[0] and last[1] < first[1]]
    return finding(
        "hit-wait time and disk response with prefetching, as compute grows",
        published="both fall",
        ours=f"both lower at {COMPUTES_MS[-1]} ms than at 0 for {len(held)} of {len(ends)} patterns but lw",
        holds=len(held) == len(ends),
        note="hit-wait and response at both ends (ms): "
        + ", ".join(
            f"{name} {first[0]:.1f} and {first[1]:.1f} to {last[0]:.1f} and {last[1]:.1f}"
            for name, (first, last) in ends.items()
        ),
    )


def min_lead(lab: Lab) -> Steps:
    """Blocks that will be used soon are left to demand: hit-wait, misses, read and total time (section 6.5)."""
    programs = [Case(name, SYNC, compute) for name in PATTERNS for compute in COMPUTES]
    asked = {lead: [lab.pair(case, _with(min_lead=lead)) for case in programs] for lead in LEADS}
    yield
    rows = [_led(lead, each) for lead, pairs in asked.items() for each in pairs]
    by_case = {case: [pairs[at] for pairs in asked.values()] for at, case in enumerate(programs)}
    return [*rows, _waits(by_case), _lw_waits(by_case), *_misses(by_case), _worse(by_case)]


def _led(lead: int, pair: Pair) -> Row:
    run = pair.prefetching
    return unpublished(
        f"{pair.case.label}, lead {lead}: miss ratio with prefetching",
        round(run.miss_ratio, 4),
        note=f"hit-wait {run.hit_wait_ms:.1f} ms, read {run.read_ms:.1f} ms, total {run.total_ms:.0f} ms, ready "
        f"{100 * (1 - run.unready_share):.0f} % of the hits",
    )


def _waits(by_case: dict[Case, list[Pair]]) -> Row:
    """Hit-wait falls considerably, except for lw."""
    others = {case: pairs for case, pairs in by_case.items() if case.pattern != "lw"}
    falls = {
        case: 1 - _least_wait(pairs) / max(pairs[0].prefetching.hit_wait_ms, 1e-9) for case, pairs in others.items()
    }
    held = [case for case, fall in falls.items() if fall >= 0.25]
    return finding(
        "hit-wait time with a minimum lead, all patterns but lw",
        published="reduced considerably",
        ours=f"by a quarter at least in {len(held)} of {len(falls)} programs",
        holds=len(held) >= MOST * len(falls),
        tolerance=f"{100 * MOST:.0f} % of the programs",
        note="reduced at the best lead by (%): "
        + ", ".join(f"{case.pattern} {case.compute_ms:g} ms {100 * fall:.0f}" for case, fall in falls.items()),
    )


def _lw_waits(by_case: dict[Case, list[Pair]]) -> Row:
    """The hit-wait of lw increases."""
    rises = {
        case: (pairs[0].prefetching.hit_wait_ms, max(each.prefetching.hit_wait_ms for each in pairs[1:]))
        for case, pairs in by_case.items()
        if case.pattern == "lw"
    }
    return finding(
        "hit-wait time with a minimum lead, lw",
        published="increases",
        ours="increases" if all(after > before for before, after in rises.values()) else "does not increase everywhere",
        holds=all(after > before for before, after in rises.values()),
        note="at lead 0 and at its greatest (ms): "
        + ", ".join(f"{case.compute_ms:g} ms {before:.1f}, {after:.1f}" for case, (before, after) in rises.items()),
    )


def _misses(by_case: dict[Case, list[Pair]]) -> list[Row]:
    """The miss ratio climbs to nearly 0.80 for the global patterns and to nearly 0.90 for lfp."""
    rows = []
    for what, names, climbs in (
        ("global patterns", GLOBAL, paper.LEAD_MISS_GLOBAL),
        ("lfp", ("lfp",), paper.LEAD_MISS_LFP),
    ):
        tops = {
            case: max(each.prefetching.miss_ratio for each in pairs)
            for case, pairs in by_case.items()
            if case.pattern in names
        }
        top = statistics.mean(tops.values())
        rows.append(
            finding(
                f"miss ratio with a minimum lead, {what}",
                published=f"climbs to nearly {climbs:.2f}",
                ours=f"climbs to {top:.2f}, mean of {len(tops)} programs at the lead that suits best",
                holds=abs(top - climbs) <= 0.10,
                tolerance="0.10",
                note=", ".join(f"{case.pattern} {case.compute_ms:g} ms {value:.2f}" for case, value in tops.items())
                + f"; leads up to {LEADS[-1]}: how far the paper went is not said",
            )
        )
    return rows


def _worse(by_case: dict[Case, list[Pair]]) -> Row:
    """Read times rise slightly and totals are not significantly affected, if anything worsened."""
    reads = [100 * (e.prefetching.read_ms / p[0].prefetching.read_ms - 1) for p in by_case.values() for e in p[1:]]
    totals = [100 * (e.prefetching.total_ms / p[0].prefetching.total_ms - 1) for p in by_case.values() for e in p[1:]]
    return finding(
        "read and total time with a minimum lead",
        published="read time slightly up, total not significantly affected, if anything worse",
        ours=f"at the median read time {statistics.median(reads):+.1f} %, total {statistics.median(totals):+.1f} %",
        holds=0 < statistics.median(reads) <= SOME and 0 <= statistics.median(totals) <= LITTLE,
        tolerance=f"medians: read time up by at most {SOME:g} %, total by 0 to {LITTLE:g} %",
        note=f"read time (%): {spread(reads)}; total (%): {spread(totals)}, over all programs and leads against lead 0",
    )


def _least_wait(pairs: list[Pair]) -> float:
    return min(each.prefetching.hit_wait_ms for each in pairs[1:])


def _against(base: list[Pair], asked: dict[int, list[Pair]]) -> Iterable[tuple[Pair, Pair]]:
    """Return each run beside that of the first setting."""
    return [pair for pairs in list(asked.values())[1:] for pair in zip(base, pairs, strict=True)]


def _line(setting: str, pairs: list[Pair]) -> Row:
    gains = [each.total_gain for each in pairs]
    return unpublished(
        f"{setting}: total reduced by, mean of {len(pairs)} programs (%)",
        round(statistics.mean(gains), 2),
        note=f"{spread(gains)}; mean read time with prefetching "
        f"{statistics.mean(each.prefetching.read_ms for each in pairs):.2f} ms, overrun "
        f"{statistics.mean(each.prefetching.overrun_ms for each in pairs):.2f} ms, actions "
        f"{sum(each.prefetching.prefetches for each in pairs):.0f}",
    )

"""Findings on the algorithms against each other (sections 1.4, 4.1, 4.3 and 5.1)."""

import math
import statistics

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._lab import (
    DEMAND,
    PRACTICAL,
    SCAN_BATCHES,
    SCAN_NOTE,
    SCAN_SERVICE_MS,
    Lab,
    Policy,
    best,
    saved_percent,
)
from headstart_lab.studies.kimbrel96._outcome import Outcome
from headstart_lab.studies.kimbrel96._populations import ROUNDING, Place, Population, at, few, spread


def against_demand(lab: Lab, population: Population) -> Steps:
    """All four algorithms significantly outperform demand fetching with optimal replacement."""
    demand = {place: lab.cell(place[0], DEMAND, place[1]) for place in population}
    cells = {
        name: {place: lab.cell(place[0], policy(place[1]), place[1]) for place in population}
        for name, policy in PRACTICAL.items()
    }
    scans = {place: lab.reverse_scan(*place) for place in population}
    yield
    times = {name: {place: cell.outcome for place, cell in by.items()} for name, by in cells.items()}
    times["reverse aggressive"] = {place: best(scan)[1] for place, scan in scans.items()}
    told, little = [], []
    for name, by_place in times.items():
        saved = {
            place: saved_percent(run.elapsed_s, demand[place].outcome.elapsed_s) for place, run in by_place.items()
        }
        told.append(f"{name} saves {spread(saved)}")
        little += [
            f"{name}: {at(place)} ({percent:.1f} %)"
            for place, percent in saved.items()
            if percent <= paper.SIGNIFICANT_PERCENT
        ]
    runs = sum(map(len, times.values()))
    return [
        finding(
            f"prefetching against optimal demand fetching, {population.label}",
            published="all four algorithms significantly outperform it",
            ours=f"significantly in {runs - len(little)} of {runs} runs",
            cases=(runs - len(little), runs),
            holds=not little,
            tolerance=f"more than {paper.SIGNIFICANT_PERCENT:g} % in each: what section 1.4 calls not significant",
            note=f"{population.size}. {'; '.join(told)}. {SCAN_NOTE}" + (f". Less: {few(little)}" if little else ""),
        )
    ]


def forestall_range(lab: Lab, population: Population) -> Steps:
    """Forestall is between 2 % worse and 5.8 % better than the better of aggressive and fixed horizon."""
    cells = {
        place: {name: lab.cell(place[0], policy(place[1]), place[1]) for name, policy in PRACTICAL.items()}
        for place in population
    }
    yield
    gain = {
        place: saved_percent(
            by["forestall"].outcome.elapsed_s,
            min(by["aggressive"].outcome.elapsed_s, by["fixed horizon"].outcome.elapsed_s),
        )
        for place, by in cells.items()
    }
    last = min(gain, key=gain.__getitem__)
    words = f"section 5.1; on {at(last)}, its worst, " + ", ".join(
        f"{name}: {cell.outcome.elapsed_s:.2f} s ({cell.outcome.split})" for name, cell in cells[last].items()
    )
    return _range("forestall", population, gain, paper.FORESTALL_PERCENT, words)


def reverse_range(lab: Lab, population: Population) -> Steps:
    """Reverse aggressive is between 3.6 % worse and 10.7 % better than the better of the two."""
    two = ("aggressive", "fixed horizon")
    cells = {place: [lab.cell(place[0], PRACTICAL[name](place[1]), place[1]) for name in two] for place in population}
    scans = {place: lab.reverse_scan(*place) for place in population}
    yield
    gain = {
        place: saved_percent(best(scans[place])[1].elapsed_s, min(cell.outcome.elapsed_s for cell in pair))
        for place, pair in cells.items()
    }
    apart = {place: value for place, value in gain.items() if place[0].stand_in.stands_for == "cscope3"}
    rest = {place: value for place, value in gain.items() if place not in apart}
    words = f"section 4.3; {SCAN_NOTE}"
    if apart:
        words += f"; the stand-in for cscope3 apart, as in the paper: {spread(apart)}"
    return _range("reverse aggressive", population, rest, paper.REVERSE_PERCENT, words)


def _range(
    name: str, population: Population, gain: dict[Place, float], limits: tuple[float, float], words: str
) -> list[Row]:
    if not gain:
        return []
    worst, most = limits
    note = f"{words}; ours: {spread(gain)}"
    beyond = [place for place, value in gain.items() if value < worst - ROUNDING]
    if beyond:
        note += f"; further behind than the paper's worst in {len(beyond)} of {len(gain)} configurations"
    quantity = f"{name} against the better of aggressive and fixed horizon, {population.label}"
    return [
        finding(
            f"{quantity}: at worst",
            published=f"at most {-worst:g} % worse",
            ours=f"at most {max(0.0, -min(gain.values())):.1f} % worse",
            cases=(len(gain) - len(beyond), len(gain)),
            holds=min(gain.values()) >= worst - ROUNDING,
            tolerance="no further behind than published",
            note=note,
        ),
        finding(
            f"{quantity}: at best",
            published=f"at most {most:g} % better",
            ours=f"at most {max(0.0, max(gain.values())):.1f} % better",
            holds=max(gain.values()) <= most + ROUNDING,
            tolerance="no further ahead than published",
            note=note,
        ),
    ]


STALLS_MUCH = 0.25
STALLS_LITTLE = 0.05
"""Ours: fixed horizon's stalls as a share of its time, above which a run is I/O-bound, below which compute-bound."""

CLOSE = 2.0
"""Percent behind the best of the three that still count as having the best performance: as far as the paper's own
forestall is behind (section 5.1)."""


def regimes(lab: Lab, population: Population) -> Steps:
    """Fixed horizon and forestall are best when compute-bound, aggressive and forestall when I/O-bound."""
    cells = {
        place: {name: lab.cell(place[0], policy(place[1]), place[1]) for name, policy in PRACTICAL.items()}
        for place in population
    }
    yield
    runs = {place: {name: cell.outcome for name, cell in by.items()} for place, by in cells.items()}

    def stalls(place: Place) -> float:
        run = runs[place]["fixed horizon"]
        return run.stall_s / run.elapsed_s

    bound = [place for place in runs if stalls(place) > STALLS_MUCH]
    free = [place for place in runs if stalls(place) < STALLS_LITTLE]
    rows = []
    for words, places, name in (("I/O-bound", bound, "aggressive"), ("compute-bound", free, "fixed horizon")):
        shares = {each: _share_best([runs[place] for place in places], each) for each in PRACTICAL}
        if not places:
            continue
        rows.append(
            finding(
                f"the best in {words} situations, {population.label}",
                published=f"{name} and forestall",
                ours=" and ".join(each for each, share in shares.items() if share == 1) or "none throughout",
                holds={each for each, share in shares.items() if share == 1} == {name, "forestall"},
                tolerance=f"these two, and they alone, within {CLOSE:g} % of the best of the three in each",
                note=f"section 1.4; {len(places)} configurations in which fixed horizon stalls "
                + (f"more than {100 * STALLS_MUCH:g} %" if places is bound else f"less than {100 * STALLS_LITTLE:g} %")
                + " of its time (our line); within reach of the best: "
                + ", ".join(f"{each} in {100 * share:.0f} %" for each, share in shares.items()),
            )
        )
    return rows


def _share_best(runs: list[dict[str, Outcome]], name: str) -> float:
    """Return in what share of `runs` the algorithm is close to the best."""
    if not runs:
        return 0.0
    close = [by[name].elapsed_s <= (1 + CLOSE / 100) * min(other.elapsed_s for other in by.values()) for by in runs]
    return sum(close) / len(close)


APART = math.sqrt(2)
"""Ours: the factor by which means over traces must differ, half a step of the scan."""


def reverse_parameters(lab: Lab, population: Population) -> Steps:
    """A smaller F and a larger batch benefit a more I/O-bound application."""
    fewest, most = min(population.disks), max(population.disks)
    scans = {place: lab.reverse_scan(*place) for place in population if place[1] in (fewest, most)}
    yield

    def means(disks: int) -> tuple[float, float]:
        found: list[tuple[Policy, float]] = [
            (best(scan)[0], SCAN_SERVICE_MS / place[0].compute_ms_mean)
            for place, scan in scans.items()
            if place[1] == disks
        ]
        ratio = statistics.geometric_mean([policy["fetch_ratio"] / unit for policy, unit in found])
        return ratio, statistics.geometric_mean([policy["batch_size"] for policy, _ in found])

    (ratio_few, batch_few), (ratio_many, batch_many) = means(fewest), means(most)
    smaller, larger = ratio_many >= APART * ratio_few, batch_few >= APART * batch_many
    return [
        finding(
            f"reverse aggressive's best F and batch, {population.label}",
            published="smaller F and larger batches when more I/O-bound",
            ours=f"F {'smaller' if smaller else 'not smaller'} and "
            f"batches {'larger' if larger else 'not larger'} with the fewest disks",
            holds=smaller and larger,
            tolerance="means apart by half a step of the scan, a factor of 1.41; ours",
            note=f"section 4.4; geometric means over {len(population.workloads)} traces: F "
            f"{ratio_few:.2f} times {SCAN_SERVICE_MS:g} ms over the mean think time and batch {batch_few:.0f} with "
            f"{fewest} disk(s), {ratio_many:.2f} and {batch_many:.0f} with {most}; batches {SCAN_BATCHES} were tried, "
            "F in steps of a factor of 2",
        )
    ]

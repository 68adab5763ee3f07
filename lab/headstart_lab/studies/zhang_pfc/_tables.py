"""The matrix case by case, Table 1, and Web run in other ways."""

import collections
import statistics
from collections.abc import Iterable

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._causes import account, better, cause, worse
from headstart_lab.studies.zhang_pfc._matrix import SMALL, Case, Lab, Runs, cases
from headstart_lab.studies.zhang_pfc._workloads import WEB_SLOWER, variant

GAIN = "gain of PFC (%)"
"""The quantity in a row of a case."""

TOLERANCE = "2 points"
"""For a cell of Table 1, if the paper's own trace was run."""

TOLERANCE_POINTS = 2.0


def matrix(lab: Lab) -> Steps:
    """The 96 cases: by how much PFC shortens the mean response time (its gain), or why it does not."""
    runs = lab.matrix()
    yield
    rows = lab.skipped()
    if runs:
        rows += [*summary(runs), *flagged(runs), *causes(runs)]
    return rows + [_case(each) for each in runs]


def summary(runs: list[Runs], where: str = "") -> list[Row]:
    """Return how often and by how much each coordinator helps, over all and by workload and algorithm.

    `where` goes to the end of each quantity.
    """
    rows = []
    for coordinator in [name for name in runs[0].cells if name != "none"]:
        gains = [each.gain(coordinator) for each in runs]
        rows.append(_counted(f"cases of {len(runs)} in which {coordinator} beats none{where}", gains))
    for coordinator in [name for name in runs[0].cells if name not in ("none", "PFC")]:
        gains = [each.gain("PFC", coordinator) for each in runs]
        rows.append(_counted(f"cases of {len(runs)} in which PFC beats {coordinator}{where}", gains))
    groups: dict[str, list[Runs]] = collections.defaultdict(list)
    for each in runs:
        groups[each.case.workload.name].append(each)
    for each in runs:
        groups[each.case.algorithm].append(each)
    for name, group in groups.items():
        if len(group) == len(runs):
            continue
        gains = [each.gain() for each in group]
        rows.append(_counted(f"cases of {len(group)} in which PFC beats none, {name}{where}", gains))
    sound = [each for each in runs if not (each.small or each.saturated)]
    if sound and len(sound) < len(runs):
        gains = [each.gain() for each in sound]
        rows.append(_counted(f"cases of {len(sound)} without a flag in which PFC beats none{where}", gains))
    return rows


def flagged(runs: list[Runs]) -> list[Row]:
    """Return how many cases carry which flag, and which they are."""
    flags = {
        f"whose L2 holds fewer than {SMALL} pages": [each for each in runs if each.small],
        "whose disk is saturated": [each for each in runs if each.saturated],
    }
    return [
        unpublished(
            f"cases of {len(runs)} {flag}",
            len(those),
            note="; ".join(
                f"{name}: {sum(each.case.workload.name == name for each in those)}"
                for name in dict.fromkeys(each.case.workload.name for each in runs)
            )
            + "; marked in the notes of their rows",
        )
        for flag, those in flags.items()
    ]


def causes(runs: list[Runs]) -> list[Row]:
    """Return how often which mechanism makes PFC slower than none."""
    found = collections.Counter(cause(each) for each in runs if worse(each))
    faster = [each for each in runs if better(each)]
    missing = [each for each in faster if each["PFC"].l2_misses > each["none"].l2_misses]
    served = sum(each["PFC"].disk_requests < each["none"].disk_requests for each in missing)
    read = sum(each["PFC"].disk_blocks < each["none"].disk_blocks for each in missing)
    unused = sum(each["PFC"].l2_unused < each["none"].l2_unused for each in missing)
    return [
        unpublished(
            f"cases in which PFC is slower because of {name}",
            count,
            note="the action that is slowest by itself, and the first of L2 misses, unused prefetches, disk requests, "
            f"late prefetches that grew in its run. L2 misses grow in {len(missing)} of the {len(faster)} faster cases "
            f"too; of these the disk serves fewer requests in {served} and reads less in {read}, and less is unused in "
            f"{unused}",
        )
        for name, count in sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def table1(lab: Lab) -> Steps:
    """Table 1: by how much PFC shortens the mean response time (its gain), 48 cells, and their distribution."""
    asked: dict[tuple[str, float, str, str], Runs] = {}
    for (name, ratio, setting), cells in paper.TABLE_1.items():
        for workload in lab.workloads.named(name):
            for algorithm in cells:
                asked[name, ratio, setting, algorithm] = lab.runs(Case(workload, algorithm, setting, ratio))
    yield
    rows = lab.skipped()
    for (name, ratio, setting, algorithm), runs in asked.items():
        rows.append(_cell(runs, paper.TABLE_1[name, ratio, setting][algorithm]))
    published = [value for cells in paper.TABLE_1.values() for value in cells.values()]
    groups = {"all 48 cells": published}
    gains = {"all 48 cells": [runs.gain() for runs in asked.values()]}
    for name in dict.fromkeys(key[0] for key in paper.TABLE_1):
        groups[name] = [value for key, cells in paper.TABLE_1.items() if key[0] == name for value in cells.values()]
        gains[name] = [runs.gain() for key, runs in asked.items() if key[0] == name]
    for algorithm in ("AMP", "SARC", "RA", "Linux"):
        groups[algorithm] = [cells[algorithm] for cells in paper.TABLE_1.values()]
        gains[algorithm] = [runs.gain() for key, runs in asked.items() if key[3] == algorithm]
    for name, values in groups.items():
        if gains[name]:
            rows.append(
                unpublished(
                    f"{name}: {PARTS}",
                    spread(gains[name]),
                    note=f"the paper's {len(values)} cells: {spread(values)}; ours: {len(gains[name])} cells",
                )
            )
    return rows


PARTS = "mean; least, quartiles, greatest gain (%)"


def spread(values: list[float]) -> str:
    """Return the distribution in words, as `PARTS` names them."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    parts = (min(values), low, middle, high, max(values))
    return f"{statistics.mean(values):.2f}; " + ", ".join(f"{part:.2f}" for part in parts)


def web(lab: Lab) -> Steps:
    """Web in three ways, 32 cases each: its clock slowed as in the matrix, its own clock (saturates), and closed."""
    ways = {}
    for workload in lab.workloads.named("Web"):
        own = variant(workload, time_scale=1.0)
        closed = variant(workload, arrival=None, time_scale=None, compute="0ns")
        for way, changed in ((f"clock {WEB_SLOWER:g} times slower", workload), ("own clock", own), ("closed", closed)):
            ways[way] = [lab.runs(case) for case in cases([changed])]
    yield
    rows = lab.skipped("Web")
    for way, runs in ways.items():
        rows += summary(runs, f"; {way}")
        busy = [each["none"].utilization for each in runs]
        rows.append(
            unpublished(
                f"cases of {len(runs)} whose disk is saturated; {way}",
                sum(each.saturated for each in runs),
                note=f"uncoordinated, the disk is busy {100 * min(busy):.0f} to {100 * max(busy):.0f} % of the time"
                + ("; a closed loop is never marked" if way == "closed" else ""),
            )
        )
    return rows


def _counted(quantity: str, gains: list[float]) -> Row:
    held = sum(gain > 0 for gain in gains)
    spans = f"mean {statistics.mean(gains):.2f} %, least {min(gains):.2f} %, greatest {max(gains):.2f} %"
    note = f"{spans} of the mean response time"
    return unpublished(quantity, held, note=note)


def _case(runs: Runs) -> Row:
    times = ", ".join(f"{name} {cell.outcome.response_ms:.3f}" for name, cell in runs.cells.items())
    note = f"mean response (ms): {times}; {runs.case.workload.label}{runs.flags}"
    if worse(runs):
        note += f". Slower by {cause(runs)}: {account(runs)}"
    elif not better(runs):
        note += ". No difference"
    return unpublished(f"{runs.case.label}: {GAIN}", round(runs.gain(), 2), note=note)


def _cell(runs: Runs, published: float) -> Row:
    quantity = f"{runs.case.label}: {GAIN}"
    ours = round(runs.gain(), 2)
    if not runs.case.workload.whole:
        note = (
            f"the paper has {published:.2f} % on its trace; ours is a stand-in: {runs.case.workload.label}{runs.flags}"
        )
        return unpublished(quantity, ours, note=note)
    agrees = abs(ours - published) <= TOLERANCE_POINTS
    return Row(
        quantity=quantity,
        published=published,
        ours=ours,
        difference=(ours - published) / published,
        tolerance=TOLERANCE,
        verdict="agrees" if agrees else "differs",
        note=f"{runs.case.workload.label}{runs.flags}",
        input="paper",
    )


def mean(values: Iterable[float]) -> float:
    """Return the mean; 0 of nothing."""
    values = list(values)
    return statistics.mean(values) if values else 0.0

"""Section 4.3's findings and Table 1 on the rebuilt workloads, on each of three draws.

The criteria, written before any run of a policy on these traces:

- A finding holds on a draw if the 96 cases of it meet the criterion that they have on stand-ins (`_findings`).
- A row agrees if the finding holds on `ENOUGH` of the draws: one that depends on what is not told should not count, nor
  should one draw decide.
- A cell of Table 1 agrees if it lies within the spread of the draws, from the least to the greatest, widened by
  `WIDER` points on both sides for what else we do not know. Of a workload's 16 cells, `USUALLY` must.
"""

from typing import Final

from headstart.trace import trace_info
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, number
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._draws_reasons import WHY
from headstart_lab.studies.zhang_pfc._findings import CHECKS
from headstart_lab.studies.zhang_pfc._matrix import Lab, Runs, cases
from headstart_lab.studies.zhang_pfc._rebuilt import RANGES, SEEDS, WEB_CUT, workload
from headstart_lab.studies.zhang_pfc._workloads import Workload

ENOUGH: Final = 0.75
"""The share of draws on which a finding must hold."""
USUALLY: Final = 0.75
"""The share of Table 1's cells that must lie within the spread."""
WIDER: Final = 5.0
"""By how many points the spread is widened."""
RANDOM_POINTS: Final = 2.5
"""Accepted error of a draw's share of random requests, in points: in Multi, two programs may meet in a file."""


def rebuilt(lab: Lab) -> Steps:
    """The findings and Table 1 on workloads rebuilt from their printed footprints and random shares, three draws."""
    drawn = {seed: [workload(name, seed, lab.scratch) for name in RANGES] for seed in SEEDS}
    runs = {seed: [lab.runs(case) for case in cases(workloads)] for seed, workloads in drawn.items()}
    yield
    return [
        *(row for name in RANGES for row in _told([each for of in drawn.values() for each in of if each.name == name])),
        *judged(runs),
        *(table(name, list(runs.values())) for name in RANGES),
    ]


def _told(draws: list[Workload]) -> list[Row]:
    """Return the figures that a workload was rebuilt from, as measured on its draws."""
    name, infos = draws[0].name, [trace_info(each.section["trace"], block_size="4KiB") for each in draws]
    told = "; ".join(each.label for each in draws)
    cut = WEB_CUT if name == "Web" else 1
    footprints = {round(cut * info["distinct_blocks"] * info["block_bytes"] / 1e6) for info in infos}
    shares = [100 * (1 - info["sequential_share"]) for info in infos]
    theirs = paper.RANDOM_PERCENT[name]
    return [
        number(
            f"rebuilt {name}: footprint (MB)",
            published=paper.FOOTPRINT_MB[name],
            ours=footprints.pop() if len(footprints) == 1 else min(footprints),
            basis="input",
            note=(f"an eighth of it, times {cut}; " if cut > 1 else "") + told,
        ),
        finding(
            f"rebuilt {name}: random requests",
            published=f"{theirs} %",
            ours=f"{min(shares):.1f} to {max(shares):.1f} %",
            holds=all(abs(share - theirs) <= RANDOM_POINTS for share in shares),
            tolerance=f"{RANDOM_POINTS:g} points in each draw",
            basis="input",
            note="the generators correct the length of runs for it",
        ),
    ]


def judged(runs: dict[int, list[Runs]]) -> list[Row]:
    """Return each finding, tried on each draw."""
    rows = []
    for check in CHECKS:
        trials = {seed: check(of) for seed, of in runs.items()}
        held = sum(row.verdict == "agrees" for row in trials.values())
        first = next(iter(trials.values()))
        told = "; ".join(f"seed {seed}: {row.ours} ({row.note})" for seed, row in trials.items())
        holds = held >= ENOUGH * len(trials)
        rows.append(
            finding(
                f"rebuilt: {first.quantity}",
                published=str(first.published),
                ours=f"holds in {held} of {len(trials)} draws",
                holds=holds,
                tolerance=f"on a draw: {first.tolerance or 'as published'}; in {100 * ENOUGH:.0f} % of the draws",
                basis=first.basis,
                note=told if holds else ". ".join(filter(None, (WHY.get(first.quantity), told))),
                cases=(held, len(trials)),
            )
        )
    return rows


def table(name: str, draws: list[list[Runs]]) -> Row:
    """Return how many of a workload's cells of Table 1 lie within the spread of the draws."""
    inside, told = 0, []
    cells = {
        (ratio, setting, algorithm): printed
        for (workload_name, ratio, setting), row in paper.TABLE_1.items()
        if workload_name == name
        for algorithm, printed in row.items()
    }
    for (ratio, setting, algorithm), printed in cells.items():
        gains = [
            each.gain()
            for draw in draws
            for each in draw
            if (each.case.workload.name, each.case.ratio, each.case.setting, each.case.algorithm)
            == (name, ratio, setting, algorithm)
        ]
        inside += min(gains) - WIDER <= printed <= max(gains) + WIDER
        told.append(f"{algorithm}, {100 * ratio:g}%-{setting} {printed:g}: {min(gains):.1f} to {max(gains):.1f}")
    holds = inside >= USUALLY * len(cells)
    return finding(
        f"rebuilt {name}: Table 1, gain of PFC (%)",
        published=f"{min(cells.values()):g} to {max(cells.values()):g} in {len(cells)} cells",
        ours=f"{inside} of {len(cells)} within the spread of the draws",
        holds=holds,
        tolerance=f"{100 * USUALLY:.0f} % of them within the spread, widened by {WIDER:g} points",
        note=("" if holds else f"{WHY[f'Table 1, {name}']}. ") + "Printed: ours; " + "; ".join(told),
        cases=(inside, len(cells)),
    )

"""Findings on the size of the cache (section 4.4 and Table 7)."""

import itertools
from collections.abc import Mapping

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._lab import PRACTICAL, Lab, fixed_horizon, saved_percent, slower_percent
from headstart_lab.studies.kimbrel96._populations import ROUNDING, Population, at, few
from headstart_lab.studies.kimbrel96._traces import Workload


def larger_caches(lab: Lab, population: Population) -> Steps:
    """As the cache grows, all algorithms improve."""
    sizes = paper.CACHE_BLOCKS_VARIED
    cells = {
        (place, name, frames): lab.cell(place[0], policy(place[1]), place[1], frames=frames)
        for place in population
        if place[1] in paper.TABLE_7_DISKS and place[0].distinct > sizes[-1]
        for name, policy in PRACTICAL.items()
        for frames in sizes
    }
    yield
    failed: list[str] = []
    saved: dict[str, list[float]] = {name: [] for name in PRACTICAL}
    for place, name, frames in cells:
        if frames == sizes[0]:
            runs = [cells[place, name, each].outcome for each in sizes]
            times = [run.elapsed_s for run in runs]
            saved[name].append(saved_percent(times[-1], times[0]))
            for index, (small, large) in enumerate(itertools.pairwise(runs)):
                percent = slower_percent(large.elapsed_s, small.elapsed_s)
                if percent >= 0:
                    step = f"{sizes[index]} to {sizes[index + 1]} blocks"
                    why = f"{percent:.1f} %, fetches {small.fetches} to {large.fetches}"
                    failed.append(f"{name}, {at(place)}, {step} ({why})")
    steps = len(cells) // len(sizes) * (len(sizes) - 1)
    return [
        finding(
            f"caches of {', '.join(map(str, sizes))} blocks, {population.label}",
            published="as the cache grows, all algorithms improve",
            ours=f"faster in {steps - len(failed)} of {steps} steps",
            cases=(steps - len(failed), steps),
            holds=not failed,
            tolerance="less time in each step",
            note="section 4.4; traces with more distinct blocks than the largest cache; saved from the smallest to the "
            "largest, mean: "
            + ", ".join(f"{name} {sum(each) / len(each):.1f} %" for name, each in saved.items() if each)
            + (f"; not faster: {few(failed)}" if failed else ""),
        )
    ]


def table7_relation(lab: Lab, workload: Workload) -> Steps:
    """A larger cache favours aggressive when I/O-bound, fixed horizon when compute-bound."""
    sizes = paper.CACHE_BLOCKS_VARIED
    asked = {
        (frames, disks): (
            lab.cell(workload, fixed_horizon(), disks, frames=frames),
            lab.cell(workload, PRACTICAL["aggressive"](disks), disks, frames=frames),
        )
        for frames in sizes
        for disks in paper.TABLE_7_DISKS
    }
    yield
    cells = {key: (fixed.outcome, greedy.outcome) for key, (fixed, greedy) in asked.items()}
    margin = {key: slower_percent(fixed.elapsed_s, greedy.elapsed_s) for key, (fixed, greedy) in cells.items()}
    bound, free = paper.TABLE_7_DISKS[:2], paper.TABLE_7_DISKS[-2:]

    def change(disks: int) -> float:
        return margin[sizes[-1], disks] - margin[sizes[0], disks]

    # Table 7 prints one decimal: what rounds to nothing is no gain.
    more, less = all(change(disks) > ROUNDING for disks in bound), all(change(disks) < -ROUNDING for disks in free)
    return [
        _relation(
            workload, f"{bound[0]} and {bound[1]} disks", "aggressive gains more from a larger cache", more, margin
        ),
        _relation(
            workload, f"{free[0]} and {free[1]} disks", "fixed horizon gains slightly on aggressive", less, margin
        ),
    ]


def _relation(
    workload: Workload, where: str, published: str, holds: bool, margin: Mapping[tuple[int, int], float]
) -> Row:
    told = "; ".join(
        f"{frames} blocks: " + ", ".join(f"{margin[frames, disks]:.1f} on {disks}" for disks in paper.TABLE_7_DISKS)
        for frames in paper.CACHE_BLOCKS_VARIED
    )
    return finding(
        f"cache of 640 against 1920 blocks on {where}, {workload.label}",
        published=published,
        ours="so" if holds else "not so",
        holds=holds,
        note=f"section 4.4, Table 7; percent by which fixed horizon is slower: {told}; the trace has "
        f"{workload.distinct} distinct blocks",
    )

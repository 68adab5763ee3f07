"""The rebuilt traces, and rows of findings that are tried on every draw of them.

The nine generators `kimbrel96-dinero` to `kimbrel96-xds` have the reads, distinct blocks and compute of Table 3 and the
structure that section 3.1 tells; what neither tells they draw from ranges, by seed (their files in crates/sim/trace
state them). Every finding is tried on 20 draws, seeds 1 to 20, files at random places in groups as in section 3.2.

The criteria, written before any run of a policy on these traces:

- A finding holds on a draw if it meets the criterion that it has on stand-ins, taken to each trace alone where the
  paper speaks of each trace ("in any given configuration"), or to the nine traces of one seed together where it speaks
  of all ("at most 6.8 % worse over all traces").
- A row agrees if the finding holds on `ENOUGH` of the draws. The paper has one trace of each kind, we have 20 that all
  fit its description: a finding that depends on what is not told should not count, nor should one draw decide.
- A printed figure agrees if it lies within the spread of the draws, from the least to the greatest, widened by
  `WIDER` on both sides for what else we do not know (the drive's read-ahead, the place of files). Of a row of a printed
  table, three quarters of the figures must (`USUALLY`, as elsewhere in this study).

Scans, static values of F' and other batches are run on 1, 2, 4 and 8 disks (`FEW`), in which the nine traces go from
I/O-bound to compute-bound; all else on the paper's eleven arrays. Reverse aggressive's scan has 4 values of F and 2
batches. Both keep the study within an hour.
"""

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from headstart_lab.studies._rows import Basis, Row, finding
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._outcome import Cell, Outcome

SEEDS: Final = range(1, 21)
PROGRAMS: Final = tuple(name for name in paper.TABLE_3 if name != "synth")
FEW: Final = (1, 2, 4, 8)
SWAPPED: Final = {"postgres-join": "postgres-select", "postgres-select": "postgres-join"}
"""The trace whose think times are used if the two rows of Table 3 are swapped, as Table 4 suggests (item table4)."""

SCAN: Final = ((0.25, 0.5, 1.0, 2.0), (8, 40))
"""Reverse aggressive's F, as multiples of 10 ms over the mean think time, and batches."""

ENOUGH: Final = 0.75
"""The share of draws on which a finding must hold."""
USUALLY: Final = 0.75
"""The share of a table's printed figures that must lie within the spread."""
WIDER: Final = 0.05
"""By how much the spread is widened: a share of a time or a count, of a utilisation, 5 points of a percentage."""


@dataclasses.dataclass(frozen=True)
class Draw:
    """A rebuilt trace, drawn by a seed."""

    program: str
    seed: int
    swapped: bool = False
    """Whether it has the think times of the other postgres trace."""

    @property
    def label(self) -> str:
        """The name of the trace in rows."""
        return f"rebuilt {self.program}" + (", think times of the two postgres rows swapped" if self.swapped else "")

    @property
    def compute_s(self) -> float:
        """The sum of its think times."""
        return paper.TABLE_3[SWAPPED[self.program] if self.swapped else self.program].compute_s

    @property
    def compute_ms_mean(self) -> float:
        """Milliseconds a read."""
        return 1000 * self.compute_s / paper.TABLE_3[self.program].reads

    @property
    def frames(self) -> int:
        """Blocks of cache by the rule of section 3.1."""
        few = paper.TABLE_3[self.program].distinct < paper.CACHE_BLOCKS
        return paper.CACHE_BLOCKS_SMALL if few else paper.CACHE_BLOCKS

    def section(self, speed: int) -> dict[str, Any]:
        """Return `[workload]` for a processor `speed` times as fast."""
        return {
            "generator": f"kimbrel96-{self.program}",
            "placement": "random-groups",
            "compute_total": f"{round(self.compute_s * 1e9 / speed)}ns",
        }


def draws(*programs: str, swapped: bool = False) -> list[Draw]:
    """Return every draw of these programs."""
    return [Draw(program, seed, swapped) for program in programs for seed in SEEDS]


def of_seed(seed: int) -> list[Draw]:
    """Return the nine traces of one seed."""
    return [Draw(program, seed) for program in PROGRAMS]


@dataclasses.dataclass(frozen=True)
class Trial:
    """The result of a finding on one draw."""

    holds: bool
    figure: float
    """The figure that the finding is about."""


def row(
    quantity: str,
    published: str,
    trials: Sequence[Trial],
    unit: str,
    *,
    tolerance: str,
    note: str,
    basis: Basis = "predicted",
) -> Row:
    """Return the row of a finding that was tried on every draw, with the spread of its figure."""
    held = sum(trial.holds for trial in trials)
    return finding(
        quantity,
        published=published,
        ours=f"holds in {held} of {len(trials)} draws; {spread([trial.figure for trial in trials], unit)}",
        holds=held >= ENOUGH * len(trials),
        tolerance=f"{tolerance}; in {100 * ENOUGH:.0f} % of the draws",
        note=note,
        basis=basis,
        cases=(held, len(trials)),
        input="rebuilt",
    )


def spread(figures: Iterable[float], unit: str) -> str:
    """Return least, median and greatest."""
    values = sorted(figures)
    return f"{values[0]:.4g} to {values[-1]:.4g} {unit}, median {statistics.median(values):.4g}"


def within(printed: float, figures: Sequence[float], wider: float) -> bool:
    """Whether a printed figure lies in the spread, widened by `wider` on both sides."""
    return min(figures) - wider <= printed <= max(figures) + wider


def printed(
    quantity: str, published: float, figures: Sequence[float], unit: str, *, note: str, basis: Basis = "predicted"
) -> Row:
    """Return the row of one printed time or count."""
    values = list(figures)
    return finding(
        quantity,
        published=f"{published:g} {unit}",
        ours=spread(values, unit),
        holds=min(values) * (1 - WIDER) <= published <= max(values) * (1 + WIDER),
        tolerance=f"within the spread of the draws, widened by {100 * WIDER:.0f} %",
        note=note,
        basis=basis,
        input="rebuilt",
    )


def table(
    quantity: str, published: Mapping[int, float], figures: Mapping[int, Sequence[float]], wider: float, *, note: str
) -> Row:
    """Return the row of a printed table's row, by disks."""
    inside = [disks for disks, there in published.items() if within(there, figures[disks], wider)]
    told = "; ".join(
        f"{disks}: printed {there:g}, {spread(figures[disks], '')}".replace(" ,", ",")
        for disks, there in published.items()
    )
    return finding(
        quantity,
        published=", ".join(f"{there:g}" for there in published.values()),
        ours=f"{len(inside)} of {len(published)} within the spread of the draws",
        holds=len(inside) >= USUALLY * len(published),
        tolerance=f"{100 * USUALLY:.0f} % of them within the spread, widened by {wider:g}",
        note=f"{note}; by disks: {told}",
        cases=(len(inside), len(published)),
        input="rebuilt",
    )


def outcomes(cells: Mapping[Any, Cell]) -> dict[Any, Outcome]:
    """Return the outcomes of the runs."""
    return {key: cell.outcome for key, cell in cells.items()}

"""Figures 2 to 10 on synth and on the stand-ins, in our own numbers.

The paper draws them without printing values, so there is nothing to compare with: each row is one bar or point.
"""

import dataclasses
from collections.abc import Callable, Sequence

from headstart_lab.studies._lab import item
from headstart_lab.studies._rows import Input, Row, unpublished
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._lab import (
    DEMAND,
    PRACTICAL,
    SCAN_NOTE,
    Lab,
    Policy,
    aggressive,
    best,
    chosen,
    count,
    fixed_horizon,
)
from headstart_lab.studies.kimbrel96._outcome import Cell, Outcome
from headstart_lab.studies.kimbrel96._traces import Workload

FEW = (1, 2, 3, 4)
"""Disks of Figures 3 and 8 (left)."""

CURVE_DISKS = (1, 2, 3, 4, 5)
"""Disks of Figures 6 and 7, as far as the text says."""

BATCHES = (4, 8, 16, 40, 80, 160, 320, 640, 1280)
"""Batch sizes of Figure 6: the text names 4, 160 and 1280, Table 6 the rest up to 80."""

HORIZONS = (16, 32, 62, 64, 128, 256, 512, 1024, 2048)
"""Horizons of Figure 7: the text names 64, 512 and 2048."""

PREFETCHERS = ("fixed horizon", "aggressive", "reverse aggressive")

Bars = dict[tuple[Workload | None, int, str], Cell | list[tuple[Policy, Cell]]]
"""By workload (`None` is synth), disks and algorithm: a run, or a scan of which the best counts."""
Curve = dict[tuple[Workload, int, int], Cell]
"""By workload, disks and value of the parameter."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BarFigure:
    """Elapsed time by disks and algorithm."""

    line: str
    """The line that describes it."""
    of: str
    """The trace of Table 3 whose stand-ins are run."""
    names: Sequence[str] = PREFETCHERS
    disks: Sequence[int] = paper.DISKS
    synth: bool = False
    """Whether synth is run too, on `FEW` disks."""

    def bars(self, lab: Lab) -> Bars:
        """Ask for the bars."""
        bars = _bars(lab, [None], FEW, self.names) if self.synth else {}
        return bars | _bars(lab, lab.traces.standing_for(self.of), self.disks, self.names)

    def ask(self, lab: Lab) -> Callable[[], list[Row]]:
        """Ask for the bars, and return what makes rows of them."""
        bars = self.bars(lab)
        return lambda: _rows(bars) + lab.skipped(self.of)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurveFigure:
    """Elapsed time by a parameter of an algorithm, and disks."""

    line: str
    """The line that describes it."""
    of: Sequence[str]
    """The traces of Table 3 whose stand-ins are run."""
    name: str
    """The name of the algorithm and its parameter."""
    policy: Callable[[int], Policy]
    values: Sequence[int]

    def curve(self, lab: Lab) -> Curve:
        """Ask for the points."""
        return curve(lab, lab.traces.standing_for(*self.of), self.values, self.policy)

    def ask(self, lab: Lab) -> Callable[[], list[Row]]:
        """Ask for the points, and return what makes rows of them."""
        cells = self.curve(lab)
        return lambda: _points(self.name, cells) + lab.skipped(*self.of)


FIGURES: dict[str, BarFigure | CurveFigure] = {
    "figure2": BarFigure(
        line="Figure 2: three prefetchers against optimal demand, on our stand-in for postgres-select.",
        of="postgres-select",
        names=("optimal demand", *PREFETCHERS),
    ),
    "figure3": BarFigure(
        line="Figure 3: the three algorithms on synth and on our stand-ins for cscope1.",
        of="cscope1",
        disks=FEW,
        synth=True,
    ),
    "figure4": BarFigure(line="Figure 4: the three algorithms on our stand-in for ld.", of="ld"),
    "figure5": BarFigure(line="Figure 5: the three algorithms on our stand-in for cscope3.", of="cscope3"),
    "figure6": CurveFigure(
        line="Figure 6: aggressive by batch size, on our stand-in for cscope2.",
        of=("cscope2",),
        name="aggressive, batch",
        policy=aggressive,
        values=BATCHES,
    ),
    "figure7": CurveFigure(
        line="Figure 7: fixed horizon by horizon, on our stand-ins for cscope1 and cscope2.",
        of=("cscope1", "cscope2"),
        name="fixed horizon, H",
        policy=fixed_horizon,
        values=HORIZONS,
    ),
    "figure8": BarFigure(
        line="Figure 8: the three practical algorithms on synth and on our stand-in for xds.",
        of="xds",
        names=tuple(PRACTICAL),
        synth=True,
    ),
    "figure9": BarFigure(
        line="Figure 9: the three practical algorithms on our stand-in for cscope2.",
        of="cscope2",
        names=tuple(PRACTICAL),
    ),
    "figure10": BarFigure(
        line="Figure 10: the three practical algorithms on our stand-ins for glimpse.",
        of="glimpse",
        names=tuple(PRACTICAL),
    ),
}
"""By item."""

STEPS = {name: item(figure.line, figure.ask) for name, figure in FIGURES.items()}
"""The items."""


def _bars(lab: Lab, workloads: Sequence[Workload | None], disks: Sequence[int], names: Sequence[str]) -> Bars:
    bars: Bars = {}
    for workload in workloads:
        for each in disks:
            for name in names:
                if name == "reverse aggressive":
                    bars[workload, each, name] = lab.reverse_scan(workload, each)
                    continue
                policy = DEMAND if name == "optimal demand" else PRACTICAL[name](each)
                cell = lab.synth(policy, each) if workload is None else lab.cell(workload, policy, each)
                bars[workload, each, name] = cell
    return bars


def finished(bar: Cell | list[tuple[Policy, Cell]]) -> tuple[Outcome, str]:
    """Return the outcome of a bar, and how it was chosen if it is the best of a scan."""
    if not isinstance(bar, list):
        return bar.outcome, ""
    policy, outcome = best(bar)
    return outcome, f"; {chosen(policy)}: {SCAN_NOTE}"


def label(workload: Workload | None) -> str:
    """Return the name of a workload in rows and panels."""
    return "synth" if workload is None else workload.label


def _rows(bars: Bars) -> list[Row]:
    rows = []
    for (workload, disks, name), bar in bars.items():
        outcome, words = finished(bar)
        quantity = f"{label(workload)}, {count(disks)}, {name}: elapsed (s)"
        rests_on: Input = "paper" if workload is None else "stand-in"
        rows.append(unpublished(quantity, outcome.elapsed_s, note=outcome.split + words, input=rests_on))
    return rows


def curve(lab: Lab, workloads: Sequence[Workload], values: Sequence[int], policy: Callable[[int], Policy]) -> Curve:
    """Ask for a curve: by workload, disks and value of the parameter."""
    return {
        (workload, disks, value): lab.cell(workload, policy(value), disks)
        for workload in workloads
        for disks in CURVE_DISKS
        for value in values
    }


def _points(name: str, cells: Curve) -> list[Row]:
    return [
        unpublished(
            f"{workload.label}, {count(disks)}, {name} {value}: elapsed (s)",
            cell.outcome.elapsed_s,
            note=f"{cell.outcome.split}; {cell.outcome.service_ms:.2f} ms a request",
        )
        for (workload, disks, value), cell in cells.items()
    ]

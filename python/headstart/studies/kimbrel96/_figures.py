"""Figures 2 to 10 on synth and on the stand-ins, in our own numbers.

The paper draws them without printing values, so there is nothing to compare with: each row is one bar or point.
"""

from collections.abc import Callable, Sequence

from headstart.studies._lab import Steps
from headstart.studies._rows import Row, number
from headstart.studies.kimbrel96 import _published as paper
from headstart.studies.kimbrel96._lab import Cell
from headstart.studies.kimbrel96._study import (
    DEMAND,
    PRACTICAL,
    SCAN_NOTE,
    Policy,
    Study,
    aggressive,
    best,
    chosen,
    count,
    fixed_horizon,
)
from headstart.studies.kimbrel96._traces import Workload

FEW = (1, 2, 3, 4)
"""Disks of Figures 3 and 8 (left)."""

CURVE_DISKS = (1, 2, 3, 4, 5)
"""Disks of Figures 6 and 7, as far as the text tells."""

BATCHES = (4, 8, 16, 40, 80, 160, 320, 640, 1280)
"""Batch sizes of Figure 6: the text names 4, 160 and 1280, Table 6 the rest up to 80."""

HORIZONS = (16, 32, 62, 64, 128, 256, 512, 1024, 2048)
"""Horizons of Figure 7: the text names 64, 512 and 2048."""

PREFETCHERS = ("fixed horizon", "aggressive", "reverse aggressive")

Bars = dict[tuple[Workload | None, int, str], Cell | list[tuple[Policy, Cell]]]
"""By workload (`None` is synth), disks and algorithm: a run, or a scan of which the best counts."""


def _bars(study: Study, workloads: Sequence[Workload | None], disks: tuple[int, ...], names: Sequence[str]) -> Bars:
    bars: Bars = {}
    for workload in workloads:
        for each in disks:
            for name in names:
                if name == "reverse aggressive":
                    bars[workload, each, name] = study.reverse_scan(workload, each)
                    continue
                policy = DEMAND if name == "optimal demand" else PRACTICAL[name](each)
                cell = study.synth(policy, each) if workload is None else study.cell(workload, policy, each)
                bars[workload, each, name] = cell
    return bars


def _rows(item: str, bars: Bars) -> list[Row]:
    rows = []
    for (workload, disks, name), bar in bars.items():
        if not isinstance(bar, list):
            outcome, words = bar.outcome, ""
        else:
            policy, outcome = best(bar)
            words = f"; {chosen(policy)}: {SCAN_NOTE}"
        label = "synth" if workload is None else workload.label
        quantity = f"{label}, {count(disks)}, {name}: elapsed (s)"
        rows.append(number(item, quantity, published=None, ours=outcome.elapsed_s, note=outcome.split + words))
    return rows


def figure2(study: Study) -> Steps:
    """Figure 2: three prefetchers against optimal demand, on our stand-in for postgres-select."""
    workloads = study.traces.standing_for("postgres-select")
    bars = _bars(study, workloads, paper.DISKS, ("optimal demand", *PREFETCHERS))
    yield
    return _rows("figure2", bars) + study.skipped("figure2", "pg_select")


def figure3(study: Study) -> Steps:
    """Figure 3: the three algorithms on synth and on our stand-ins for cscope1."""
    bars = _bars(study, [None, *study.traces.standing_for("cscope1")], FEW, PREFETCHERS)
    yield
    return _rows("figure3", bars) + study.skipped("figure3", "cscope1", "cs")


def figure4(study: Study) -> Steps:
    """Figure 4: the three algorithms on our stand-in for ld."""
    bars = _bars(study, study.traces.standing_for("ld"), paper.DISKS, PREFETCHERS)
    yield
    return _rows("figure4", bars) + study.skipped("figure4", "ld")


def figure5(study: Study) -> Steps:
    """Figure 5: the three algorithms on our stand-in for cscope3."""
    bars = _bars(study, study.traces.standing_for("cscope3"), paper.DISKS, PREFETCHERS)
    yield
    return _rows("figure5", bars) + study.skipped("figure5", "cscope3")


def curve(
    study: Study, workloads: Sequence[Workload], values: Sequence[int], policy: Callable[[int], Policy]
) -> dict[tuple[Workload, int, int], Cell]:
    """Ask for a curve: by workload, disks and value of the parameter."""
    return {
        (workload, disks, value): study.cell(workload, policy(value), disks)
        for workload in workloads
        for disks in CURVE_DISKS
        for value in values
    }


def _points(item: str, name: str, cells: dict[tuple[Workload, int, int], Cell]) -> list[Row]:
    return [
        number(
            item,
            f"{workload.label}, {count(disks)}, {name} {value}: elapsed (s)",
            published=None,
            ours=cell.outcome.elapsed_s,
            note=f"{cell.outcome.split}; {cell.outcome.service_ms:.2f} ms a request",
        )
        for (workload, disks, value), cell in cells.items()
    ]


def figure6(study: Study) -> Steps:
    """Figure 6: aggressive by batch size, on our stand-in for cscope2."""
    cells = curve(study, study.traces.standing_for("cscope2"), BATCHES, aggressive)
    yield
    return _points("figure6", "aggressive, batch", cells) + study.skipped("figure6", "cscope2")


def figure7(study: Study) -> Steps:
    """Figure 7: fixed horizon by horizon, on our stand-ins for cscope1 and cscope2."""
    cells = curve(study, study.traces.standing_for("cscope1", "cscope2"), HORIZONS, fixed_horizon)
    yield
    return _points("figure7", "fixed horizon, H", cells) + study.skipped("figure7", "cscope1", "cscope2", "cs")


def figure8(study: Study) -> Steps:
    """Figure 8: the three practical algorithms on synth and on our stand-in for xds."""
    bars = _bars(study, [None], FEW, tuple(PRACTICAL))
    bars |= _bars(study, study.traces.standing_for("xds"), paper.DISKS, tuple(PRACTICAL))
    yield
    return _rows("figure8", bars) + study.skipped("figure8", "ml_slice")


def figure9(study: Study) -> Steps:
    """Figure 9: the three practical algorithms on our stand-in for cscope2."""
    bars = _bars(study, study.traces.standing_for("cscope2"), paper.DISKS, tuple(PRACTICAL))
    yield
    return _rows("figure9", bars) + study.skipped("figure9", "cscope2")


def figure10(study: Study) -> Steps:
    """Figure 10: the three practical algorithms on our stand-ins for glimpse."""
    bars = _bars(study, study.traces.standing_for("glimpse"), paper.DISKS, tuple(PRACTICAL))
    yield
    return _rows("figure10", bars) + study.skipped("figure10", "glimpse", "gli")

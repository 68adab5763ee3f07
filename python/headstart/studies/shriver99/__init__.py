"""shriver99: why file-system prefetching works, measured, in equations and simulated.

Source: E. Shriver, C. Small and K. A. Smith, Why does file system prefetching work?, USENIX 1999: Tables 3 to 5,
Figures 1 to 6, the summary of section 5 and the proposals of section 6. Each table's row is held against both of our
halves: the model against the paper's computed column, whose form was fitted to these very columns, and the simulated
file system against the measured one. There the disk overhead, the bus rate and the processor's costs are the paper's
and all else is the drive's extracted file; one reading, and one overhead, was settled by the tables (`_tables._basis`).
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from headstart.report.charts import altair
from headstart.studies._lab import Lab, Report, Steps, chosen, described
from headstart.studies._rows import Row
from headstart.studies.shriver99 import _compared, _findings, _sensitivity, _tables, _traces
from headstart.studies.shriver99._charts import DRAWN, drawn
from headstart.studies.shriver99._runs import Outcome, Study

if TYPE_CHECKING:
    from headstart.studies import Draw

__all__ = ["ITEMS", "SEEDS", "TITLE", "run"]

TITLE = "Shriver, Small and Smith, Why does file system prefetching work?"

SEEDS = "1; 1 to 200 where several files are read at once, 1 to 20 on the grid"

_ITEMS: dict[str, Callable[[Study], Steps]] = {
    "table3": _tables.table3,
    "table4": _tables.table4,
    "table5": _tables.table5,
    **_findings.ITEMS,
    "grid": _compared.grid,
    "sensitivity": _sensitivity.sensitivity,
    "traces": _traces.traces,
}

ITEMS: dict[str, str] = described(_ITEMS)


def run(items: list[str], report: Report, draw: "Draw | None" = None) -> list[Row]:
    """Compute the rows of `items` in their order, of all items if the list is empty; hand their charts to `draw`.

    Raises:
        HeadstartError: There is no such item, or charts are asked for and `headstart[report]` is not installed.
    """
    asked = chosen("shriver99", _ITEMS, items)
    if draw is not None and not DRAWN.isdisjoint(asked):
        altair("--html")
    with Lab(os.cpu_count() or 1, Outcome.of) as lab:
        study = Study(lab)
        done = lab.finish({item: _ITEMS[item](study) for item in asked}, report)
    if draw is not None:
        for item in asked:
            if item in DRAWN:
                draw(item, drawn(item, study.pairs[item]))
    return [row for item in asked for row in done[item]]

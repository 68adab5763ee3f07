"""kotz-ellis: prefetching for parallel programs on the RAPID Transit testbed, case by case.

Source: Kotz and Ellis, Prefetching in File Systems for MIMD Multiprocessors (RAPID Transit), sections 5 and 6: six
access patterns, four synchronisations, with and without compute, each without and with prefetching in idle time.

The paper prints few figures: nearly all rows are findings, held against ours. What it does not print is a guess (the
portions' lengths and places, the frames of the cache) or was found by scanning for the findings as a whole: requests
enter the disks' queues at the start of an action (`_matrix.ACTION_ISSUES`), and each look-up holds the shared
structures for a time (`_matrix.CONTENTION_MS`). Every row depends on these two, so every row is calibrated. The item
`sensitivity` varies all of them.
"""

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from headstart.report.charts import altair
from headstart.studies._lab import Lab, Report, Steps, chosen, described
from headstart.studies._rows import Basis, Row
from headstart.studies.kotz_ellis import _figures, _sensitivity, _sweeps
from headstart.studies.kotz_ellis._charts import DRAWN, drawn
from headstart.studies.kotz_ellis._matrix import Study
from headstart.studies.kotz_ellis._outcome import Outcome
from headstart.studies.kotz_ellis._reads import READS
from headstart.studies.kotz_ellis._totals import TOTALS

if TYPE_CHECKING:
    from headstart.studies import Draw

__all__ = ["ITEMS", "SEEDS", "TITLE", "run"]

TITLE = "Kotz and Ellis, Prefetching in File Systems for MIMD Multiprocessors (RAPID Transit)"

SEEDS = "1; 1 to 5 in the rows of sensitivity that say so"
BASIS: Basis = "calibrated"
"""Of every row: see the two readings above that were found by scanning."""


def _findings(study: Study) -> Steps:
    """What sections 6.1 to 6.4 find, as verdicts on the matrix."""
    pairs = study.matrix()
    yield
    return [check(pairs) for check in (*READS, *TOTALS)]


_ITEMS: dict[str, Callable[[Study], Steps]] = {
    "matrix": _figures.matrix,
    "figure3": _figures.figure3,
    "figure4": _figures.figure4,
    "figure5": _figures.figure5,
    "figure6": _figures.figure6,
    "figure7": _figures.figure7,
    "figure8": _figures.figure8,
    "findings": _findings,
    "min-time": _sweeps.min_time,
    "buffers": _sweeps.buffers,
    "compute": _sweeps.compute,
    "min-lead": _sweeps.min_lead,
    "sensitivity": _sensitivity.sensitivity,
}

ITEMS: dict[str, str] = described(_ITEMS)


def run(items: list[str], report: Report, draw: "Draw | None" = None) -> list[Row]:
    """Compute the rows of `items` in their order, of all items if the list is empty; hand their charts to `draw`.

    Raises:
        HeadstartError: There is no such item, or charts are asked for and `headstart[report]` is not installed.
    """
    asked = chosen("kotz-ellis", _ITEMS, items)
    if draw is not None and not DRAWN.isdisjoint(asked):
        altair("--html")
    with Lab(os.cpu_count() or 1, Outcome.of) as lab:
        study = Study(lab)
        done = lab.finish({item: _ITEMS[item](study) for item in asked}, report)
        if draw is not None and not DRAWN.isdisjoint(asked):
            charts = drawn(study.matrix())
            for item in asked:
                if item in charts:
                    draw(item, charts[item])
    return [dataclasses.replace(row, basis=BASIS) for item in asked for row in done[item]]

"""zhang-pfc: the PreFetching Coordinator between two levels of cache, case by case.

Source: Zhang, Lee, Ma and Zhou, PFC: Transparent Optimization of Existing Prefetching Strategies for Multi-level
Storage Systems, ICDCS 2008, section 4. 96 cases, each with no coordinator, DU, PFC, bypass only and readmore only.
The paper's three traces are not to be had whole: their first requests and a recorded program stand in, in our own
numbers ("not published"), and what the paper *found* is checked on ours. Where a user has the whole SPC files they
are taken (`_workloads`), and OLTP's cells of Table 1 are compared.

Finished runs are kept in $HEADSTART_CACHE (or the user's cache folder): a study that was broken off goes on.
"""

import os
from collections.abc import Callable

from headstart import temporary
from headstart._environment import cache_folder
from headstart.report.charts import altair
from headstart.studies import Draw
from headstart.studies._lab import Lab, Report, Steps, Store, chosen, described
from headstart.studies._rows import Row
from headstart.studies.zhang_pfc import _charts, _figures, _findings, _sensitivity, _stand_ins, _tables
from headstart.studies.zhang_pfc._matrix import Study
from headstart.studies.zhang_pfc._outcome import Outcome
from headstart.studies.zhang_pfc._workloads import Workloads

__all__ = ["ITEMS", "SEEDS", "TITLE", "run"]

TITLE = "Zhang, Lee, Ma and Zhou, PFC: Transparent Optimization of Existing Prefetching Strategies, ICDCS 2008"

SEEDS = "1"

_ITEMS: dict[str, Callable[[Study], Steps]] = {
    "traces": _stand_ins.traces,
    "matrix": _tables.matrix,
    "table1": _tables.table1,
    "figure4": _figures.figure4,
    "figure5": _figures.figure5,
    "figure6": _figures.figure6,
    "figure7": _figures.figure7,
    "findings": _findings.findings,
    "web": _tables.web,
    "sensitivity": _sensitivity.sensitivity,
}

ITEMS: dict[str, str] = described(_ITEMS)


def run(items: list[str], report: Report, draw: Draw | None = None) -> list[Row]:
    """Compute the rows of `items` in their order; of all items if the list is empty; draw those that are figures.

    Raises:
        HeadstartError: There is no such item, or figures are to be drawn and `headstart[report]` is not installed.
    """
    asked = chosen("zhang-pfc", _ITEMS, items)
    pictures = [item for item in asked if item in _charts.PICTURES] if draw is not None else []
    if pictures:
        altair("reproduce zhang-pfc --html")
    store = Store(cache_folder() / "zhang-pfc", "zhang-pfc 1")
    lab = Lab(os.cpu_count() or 1, Outcome.of, store=store, revive=Outcome.revived)
    with temporary.folder() as scratch, lab:
        study = Study(lab, Workloads(scratch))
        done = lab.finish({item: _ITEMS[item](study) for item in asked}, report)
        for item in pictures:
            if draw is not None and (chart := _charts.PICTURES[item](study)) is not None:
                draw(item, chart)
    return [row for item in asked for row in done[item]]

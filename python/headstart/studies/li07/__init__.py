"""li07: competitive prefetching, figure by figure.

Source: Li, Shen and Papathanasiou, Competitive Prefetching for Concurrent Sequential I/O, EuroSys 2007. Its figures are
pictures without numbers; what the text says of them is compared, by criteria that were written before the results
(`_published`). Of each workload every run stands in a row of its own, with CP's throughput as a share of the oracle's.

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
from headstart.studies.li07 import (
    _charts,
    _drives,
    _latency,
    _sensitivity,
    _servers,
    _summary,
    _theory,
    _tools,
    _traces,
)
from headstart.studies.li07._outcome import Outcome
from headstart.studies.li07._system import Study

__all__ = ["ITEMS", "SEEDS", "TITLE", "run"]

TITLE = "Li, Shen and Papathanasiou, Competitive Prefetching for Concurrent Sequential I/O, EuroSys 2007"

SEEDS = "1; 2 in the row of sensitivity that says so"

_ITEMS: dict[str, Callable[[Study], Steps]] = {
    "theory": _theory.theory,
    "figure4": _drives.figure4,
    "figure6": _servers.figure6,
    "figure7": _tools.figure7,
    "figure8": _servers.figure8,
    "figure9": _tools.figure9,
    "figure10": _tools.figure10,
    "figure11": _servers.figure11,
    "figure12": _tools.figure12,
    "figure13": _latency.figure13,
    "programs": _traces.programs,
    "summary": _summary.summary,
    "sensitivity": _sensitivity.sensitivity,
}

ITEMS: dict[str, str] = described(_ITEMS)


def run(items: list[str], report: Report, draw: Draw | None = None) -> list[Row]:
    """Compute the rows of `items` in their order, of all items if the list is empty; draw those that are figures.

    Raises:
        HeadstartError: There is no such item, or figures are to be drawn and `headstart[report]` is not installed.
    """
    asked = chosen("li07", _ITEMS, items)
    pictures = [item for item in asked if item in _charts.PICTURES] if draw is not None else []
    if pictures:
        altair("reproduce li07 --html")
    store = Store(cache_folder() / "li07", "li07 1")
    lab = Lab(os.cpu_count() or 1, Outcome.of, store=store, revive=Outcome.revived)
    with temporary.folder() as scratch, lab:
        study = Study(lab, scratch)
        done = lab.finish({item: _ITEMS[item](study) for item in asked}, report)
        for item in pictures:
            if draw is not None:
                draw(item, _charts.PICTURES[item](study))
    return [row for item in asked for row in done[item]]

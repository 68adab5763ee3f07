"""kimbrel96: hinted prefetching and caching on parallel disks, figure by figure.

Source: Kimbrel, Tomkins, Patterson, Bershad, Cao, Felten, Gibson, Karlin and Li, OSDI 1996. Figure 1's instance, the
drive of Table 1 and the synthetic trace can be computed as published. The nine application traces are lost: their
tables and figures are given for stand-ins, in our own numbers ("not published"), and what the paper *found* on its
traces is checked on ours.

Each item asks for the runs that it needs; all items share them (`_lab`).
"""

import os
from collections.abc import Callable

from headstart import temporary
from headstart.studies import Draw
from headstart.studies._lab import Steps, chosen, described
from headstart.studies._rows import Row
from headstart.studies.kimbrel96 import _basics, _figures, _findings, _synth, _tables
from headstart.studies.kimbrel96._lab import Lab, Report
from headstart.studies.kimbrel96._study import Study

__all__ = ["ITEMS", "SEEDS", "TITLE", "run"]

TITLE = "Kimbrel et al., A Trace-Driven Comparison of Algorithms for Parallel Prefetching and Caching, OSDI 1996"

SEEDS = "1; 1 to 10 in the rows of Table 2 for the CMU simulator"

_ITEMS: dict[str, Callable[[Study], Steps]] = {
    "figure1": _basics.figure1,
    "table1": _basics.table1,
    "table2": _synth.table2,
    "synth": _synth.synth,
    "table3": _tables.table3,
    "figure2": _figures.figure2,
    "figure3": _figures.figure3,
    "figure4": _figures.figure4,
    "figure5": _figures.figure5,
    "table4": _tables.table4,
    "table5": _tables.table5,
    "figure6": _figures.figure6,
    "figure7": _figures.figure7,
    "table7": _tables.table7,
    "figure8": _figures.figure8,
    "figure9": _figures.figure9,
    "figure10": _figures.figure10,
    "table8": _tables.table8,
    "findings": _findings.findings,
}

ITEMS: dict[str, str] = described(_ITEMS)


def run(items: list[str], report: Report, draw: Draw | None = None) -> list[Row]:
    """Compute the rows of `items` in their order; of all items if the list is empty. None of them has a picture.

    Raises:
        HeadstartError: There is no such item.
    """
    asked = chosen("kimbrel96", _ITEMS, items)
    with temporary.folder() as scratch, Lab(os.cpu_count() or 1) as lab:
        study = Study(lab, scratch, report)
        done = lab.finish({item: _ITEMS[item](study) for item in asked}, report)
    return [row for item in asked for row in done[item]]

"""kimbrel96: hinted prefetching and caching on parallel disks, figure by figure.

Source: Kimbrel, Tomkins, Patterson, Bershad, Cao, Felten, Gibson, Karlin and Li, OSDI 1996. Figure 1's instance, the
drive of Table 1 and the synthetic trace can be computed as published. The nine application traces are lost: their
tables and figures are given for stand-ins, in our own numbers ("not published"), and what the paper *found* on its
traces is checked on ours, and once more on traces rebuilt from what it tells of them (`_draws`).

Each item asks for the runs that it needs; all items share them (`studies/_lab.py`).
"""

from headstart_lab.studies._study import Study
from headstart_lab.studies.kimbrel96 import (
    _basics,
    _charts,
    _figures,
    _findings,
    _rebuilt,
    _rebuilt_tables,
    _synth,
    _tables,
)
from headstart_lab.studies.kimbrel96._lab import Lab

STUDY = Study(
    name="kimbrel96",
    title="Kimbrel et al., A Trace-Driven Comparison of Algorithms for Parallel Prefetching and Caching, OSDI 1996",
    seeds="1; 1 to 10 in the rows of Table 2 for the CMU simulator, 1 to 20 on rebuilt traces",
    lab=Lab,
    input="paper",
    inputs=dict.fromkeys((*_figures.FIGURES, "table3", "table4", "table5", "table7", "table8", "findings"), "stand-in"),
    steps={
        "figure1": _basics.figure1,
        "table1": _basics.table1,
        "table2": _synth.table2,
        "synth": _synth.synth,
        "table3": _tables.table3,
        "figure2": _figures.STEPS["figure2"],
        "figure3": _figures.STEPS["figure3"],
        "figure4": _figures.STEPS["figure4"],
        "figure5": _figures.STEPS["figure5"],
        "table4": _tables.table4,
        "table5": _tables.table5,
        "figure6": _figures.STEPS["figure6"],
        "figure7": _figures.STEPS["figure7"],
        "table7": _tables.table7,
        "figure8": _figures.STEPS["figure8"],
        "figure9": _figures.STEPS["figure9"],
        "figure10": _figures.STEPS["figure10"],
        "table8": _tables.table8,
        "findings": _findings.findings,
        "rebuilt": _rebuilt.findings,
        "rebuilt-tables": _rebuilt_tables.tables,
    },
    figures=_charts.PICTURES,
)

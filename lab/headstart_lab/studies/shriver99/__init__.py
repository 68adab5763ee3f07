"""shriver99: why file-system prefetching works, measured, in equations and simulated.

Source: E. Shriver, C. Small and K. A. Smith, Why does file system prefetching work?, USENIX 1999: Tables 3 to 5,
Figures 1 to 6, the summary of section 5 and the proposals of section 6. Each table's row is held against both of our
halves: the model against the paper's computed column, whose form was fitted to these very columns, and the simulated
file system against the measured one. There the disk overhead, the bus rate and the processor's costs are the paper's
and all else is the drive's extracted file; one reading, and one overhead, was settled by the tables (`_tables._basis`).
"""

from headstart_lab.studies._study import Study
from headstart_lab.studies.shriver99 import _charts, _compared, _findings, _readings, _sensitivity, _tables, _traces
from headstart_lab.studies.shriver99._runs import Lab

STUDY = Study(
    name="shriver99",
    title="Shriver, Small and Smith, Why does file system prefetching work?",
    seeds="1; 1 to 200 where several files are read at once, 1 to 20 on the grid",
    lab=Lab,
    input="paper",
    inputs={"traces": "stand-in"},
    steps={
        "table3": _tables.table3,
        "table4": _tables.table4,
        "table5": _tables.table5,
        **_findings.ITEMS,
        "readings": _readings.readings,
        "grid": _compared.grid,
        "sensitivity": _sensitivity.sensitivity,
        "traces": _traces.traces,
    },
    figures=_charts.PICTURES,
)

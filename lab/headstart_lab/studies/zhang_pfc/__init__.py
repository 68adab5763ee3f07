"""zhang-pfc: the PreFetching Coordinator between two levels of cache, case by case.

Source: Zhang, Lee, Ma and Zhou, PFC: Transparent Optimization of Existing Prefetching Strategies for Multi-level
Storage Systems, ICDCS 2008, section 4. 96 cases, each with no coordinator, DU, PFC, bypass only and readmore only.
The paper's three traces are not available whole: their first requests and a recorded program stand in, in our own
numbers ("not published"), and what the paper *found* is checked on ours. Where a user has the whole SPC files they
are taken (`_workloads`), and OLTP's cells of Table 1 are compared. The item `rebuilt` has generators in their place,
made of the footprints and shares of random accesses that the paper prints (`_rebuilt`).

Finished runs are kept in $HEADSTART_CACHE (or the user's cache folder): a study that was broken off goes on.
"""

from headstart_lab.studies._study import Study
from headstart_lab.studies.zhang_pfc import (
    _actions,
    _charts,
    _draws,
    _figures,
    _findings,
    _sensitivity,
    _stand_ins,
    _tables,
)
from headstart_lab.studies.zhang_pfc._matrix import Lab

STUDY = Study(
    name="zhang-pfc",
    title="Zhang, Lee, Ma and Zhou, PFC: Transparent Optimization of Existing Prefetching Strategies, ICDCS 2008",
    seeds="1; 1 to 3 of the rebuilt workloads",
    lab=Lab,
    input="stand-in",
    inputs={"rebuilt": "rebuilt"},
    steps={
        "traces": _stand_ins.traces,
        "matrix": _tables.matrix,
        "table1": _tables.table1,
        "figure4": _figures.figure4,
        "figure5": _figures.figure5,
        "figure6": _figures.figure6,
        "figure7": _figures.figure7,
        "findings": _findings.findings,
        "rebuilt": _draws.rebuilt,
        "actions": _actions.actions,
        "web": _tables.web,
        "sensitivity": _sensitivity.sensitivity,
    },
    figures=_charts.PICTURES,
)

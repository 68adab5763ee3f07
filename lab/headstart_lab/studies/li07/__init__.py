"""li07: competitive prefetching, figure by figure.

Source: Li, Shen and Papathanasiou, Competitive Prefetching for Concurrent Sequential I/O, EuroSys 2007. Its figures are
pictures without numbers; what the text says of them is compared, by criteria that were written before the results
(`_published`). Of each workload every run stands in a row of its own, with CP's throughput as a share of the oracle's.

Finished runs are kept in $HEADSTART_CACHE (or the user's cache folder): a study that was broken off goes on.
"""

from headstart_lab.studies._study import Study
from headstart_lab.studies.li07 import (
    _charts,
    _drives,
    _gap,
    _kernels,
    _latency,
    _raid5,
    _remedies,
    _sensitivity,
    _servers,
    _summary,
    _theory,
    _tools,
    _traces,
)
from headstart_lab.studies.li07._system import Lab

STUDY = Study(
    name="li07",
    title="Li, Shen and Papathanasiou, Competitive Prefetching for Concurrent Sequential I/O, EuroSys 2007",
    seeds="1; 2 in the row of sensitivity that says so",
    lab=Lab,
    input="paper",
    inputs={"programs": "stand-in"},
    steps={
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
        "remedies": _remedies.remedies,
        "raid5": _raid5.raid5,
        "kernels": _kernels.kernels,
        "baselines": _kernels.baselines,
        "gap": _gap.gap,
        "programs": _traces.programs,
        "summary": _summary.summary,
        "sensitivity": _sensitivity.sensitivity,
    },
    figures=_charts.PICTURES,
)

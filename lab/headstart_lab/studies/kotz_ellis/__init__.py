"""kotz-ellis: prefetching for parallel programs on the RAPID Transit testbed, case by case.

Source: Kotz and Ellis, Prefetching in File Systems for MIMD Multiprocessors (RAPID Transit), sections 5 and 6: six
access patterns, four synchronisations, with and without compute, each without and with prefetching in idle time.

The paper prints few figures: nearly all rows are findings, held against ours. What it does not print is a guess (the
portions' lengths and places, the frames of the cache) or was found by scanning for the findings as a whole: requests
enter the disks' queues at the start of an action (`_matrix.ACTION_ISSUES`), and each look-up holds the shared
structures for a time (`_matrix.CONTENTION_MS`). Every row depends on these two, so every row is calibrated. The item
`sensitivity` varies all of them.
"""

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._study import Study
from headstart_lab.studies.kotz_ellis import _charts, _figures, _sensitivity, _sweeps
from headstart_lab.studies.kotz_ellis._matrix import Lab
from headstart_lab.studies.kotz_ellis._reads import READS
from headstart_lab.studies.kotz_ellis._totals import TOTALS


def _findings(lab: Lab) -> Steps:
    """What sections 6.1 to 6.4 find, as verdicts on the matrix."""
    pairs = lab.matrix()
    yield
    return [check(pairs) for check in (*READS, *TOTALS)]


STUDY = Study(
    name="kotz-ellis",
    title="Kotz and Ellis, Prefetching in File Systems for MIMD Multiprocessors (RAPID Transit)",
    seeds="1; 1 to 5 in the rows of sensitivity that say so",
    lab=Lab,
    input="paper",
    steps={
        "matrix": _figures.matrix,
        **_figures.FIGURES,
        "findings": _findings,
        "min-time": _sweeps.min_time,
        "buffers": _sweeps.buffers,
        "compute": _sweeps.compute,
        "min-lead": _sweeps.min_lead,
        "sensitivity": _sensitivity.sensitivity,
    },
    figures=_charts.PICTURES,
    # See the two readings above that were found by scanning.
    basis="calibrated",
)

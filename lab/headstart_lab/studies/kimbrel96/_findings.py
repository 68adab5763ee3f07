"""The paper's findings, each checked on the stand-ins.

Once with think times scaled to the means of Table 3 (with the buffer-cache traces, which have no times of their own)
and once as recorded. Today's processors think 13 to 336 us a read: as recorded nearly everything is I/O-bound.
"""

import dataclasses
from collections.abc import Callable

from headstart_lab.studies._lab import Steps
from headstart_lab.studies.kimbrel96._caches import larger_caches, table7_relation
from headstart_lab.studies.kimbrel96._comparisons import (
    against_demand,
    forestall_range,
    regimes,
    reverse_parameters,
    reverse_range,
)
from headstart_lab.studies.kimbrel96._lab import Lab, together
from headstart_lab.studies.kimbrel96._parameters import batch_curve, horizon_curve, static_ratio, table6_batches
from headstart_lab.studies.kimbrel96._populations import Population
from headstart_lab.studies.kimbrel96._systems import (
    crossovers,
    faster_processor,
    least_load,
    response_estimate,
    scheduler,
    utilization_order,
)
from headstart_lab.studies.kimbrel96._traces import Think, Workload

ON_ALL: tuple[Callable[[Lab, Population], Steps], ...] = (
    against_demand,
    regimes,
    forestall_range,
    reverse_range,
    reverse_parameters,
    static_ratio,
    table6_batches,
    crossovers,
    faster_processor,
    scheduler,
    least_load,
    larger_caches,
    response_estimate,
)
"""Checked on each kind of think time."""

ON_ONE: tuple[tuple[Callable[[Lab, Workload], Steps], tuple[str, ...]], ...] = (
    (utilization_order, ("postgres-select",)),
    (batch_curve, ("cscope2",)),
    (horizon_curve, ("cscope1", "cscope2")),
    (table7_relation, ("glimpse",)),
)
"""Checked on the stand-in for one trace."""


def population(lab: Lab, think: Think) -> Population:
    """Return the stand-ins with one kind of think time."""
    return Population(think, [each for each in lab.traces.workloads if each.think == think])


def _with_caveat(steps: Steps, caveat: str) -> Steps:
    """Add to each row that differs what distinguishes the stand-ins."""
    rows = yield from steps
    return [dataclasses.replace(row, note=f"{row.note}. {caveat}") if row.verdict == "differs" else row for row in rows]


def findings(lab: Lab) -> Steps:
    """Each finding of the paper as a verdict on the stand-ins."""
    parts: list[Steps] = []
    populations = [population(lab, think) for think in ("scaled", "as recorded")]
    for check in ON_ALL:
        parts += [_with_caveat(check(lab, each), each.caveat) for each in populations if each.workloads]
    parts.append(crossovers(lab, population(lab, "scaled, rows swapped")))
    for check_one, names in ON_ONE:
        parts += [check_one(lab, workload) for workload in lab.traces.standing_for(*names)]
    rows = yield from together(parts)
    return rows + lab.skipped()

"""Readings of Algorithms 1 and 2, tried for one under which two findings of Figure 7 come back.

Section 4.3 finds of OLTP and Web that both actions together beat each alone in the majority of the cases, and that with
AMP readmore only consistently beats both. The readings are those that the coordinator's keys offer, in combination, and
with some of them what the paper does not say of the system. Each row has three counts: cases in which both actions beat
each alone, AMP's cases in which readmore only beats both, and cases in which PFC beats none.
"""

import dataclasses
import itertools
from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.zhang_pfc._causes import NOISE_PERCENT, better
from headstart_lab.studies.zhang_pfc._matrix import COORDINATORS, Case, Lab, Runs, cases
from headstart_lab.studies.zhang_pfc._sensitivity import EVERY_CASE, SCHEDULERS, WORKLOADS
from headstart_lab.studies.zhang_pfc._tables import mean
from headstart_lab.studies.zhang_pfc._workloads import Workload, variant

UPDATES: Final[dict[str, dict[str, Any]]] = {
    "": {},
    "update only without a cache hit": {"update": "miss"},
    "update only without a cache hit, large from 0.5": {"update": "miss", "large": 0.5},
}
CONTEXTS: Final[dict[str, dict[str, Any]]] = {"": {}, "lengths and queues for each file": {"context": "file"}}
OTHERS: Final[dict[str, dict[str, Any]]] = {
    "ahead test from the next block": {"ahead": "next"},
    "window from the next block": {"window": "next"},
    "queues of 5 % of L2": {"queue": 0.05},
    "queues of 20 % of L2": {"queue": 0.2},
}

SEPARATE: Final = "demand and prefetch as separate disk requests, not merged"
SYSTEMS: Final = (
    "Web's clock 4 times slower",
    "Web's clock 16 times slower",
    "OLTP closed",
)
"""Of `WORKLOADS`: what else may decide, each with the pinned readings."""


def actions(lab: Lab) -> Steps:
    """Readings of the two algorithms tried for Figure 7: both actions against one alone, readmore only with AMP."""
    found = lab.workloads.named("OLTP", "Web")
    asked = {words: _ask(lab, found, keys, fields) for words, (keys, fields) in tried().items()}
    for name in SYSTEMS:
        changed = [variant(each, **WORKLOADS[name].get(each.name, {})) for each in found]
        asked[name] = _ask(lab, changed, {}, {})
    yield
    return lab.skipped("OLTP", "Web") + [_row(words, runs) for words, runs in asked.items() if runs]


def tried() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the readings: keys of the coordinator, and fields of each case."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for update, context in itertools.product(UPDATES, CONTEXTS):
        words = ", ".join(filter(None, (update, context))) or "as pinned"
        found[words] = (UPDATES[update] | CONTEXTS[context], {})
    found |= {words: (keys, {}) for words, keys in OTHERS.items()}
    _, fields = EVERY_CASE[SEPARATE]
    for update, keys in UPDATES.items():
        found[", ".join(filter(None, (SEPARATE, update)))] = (keys, fields)
    blind = "anticipatory scheduler"
    found[blind] = ({}, {"scheduler": SCHEDULERS[blind]})
    return found


def _ask(lab: Lab, workloads: list[Workload], keys: dict[str, Any], fields: dict[str, Any]) -> list[Runs]:
    names = ("none", "PFC", "bypass only", "readmore only")
    coordinators = {name: COORDINATORS[name] | (keys if name != "none" else {}) for name in names}
    changed: list[Case] = [dataclasses.replace(case, **fields) for case in cases(workloads)]
    return [lab.runs(case, coordinators) for case in changed]


def _row(words: str, runs: list[Runs]) -> Row:
    bypass, readmore = ([each.gain("PFC", name) > 0 for each in runs] for name in ("bypass only", "readmore only"))
    both = sum(one and other for one, other in zip(bypass, readmore, strict=True))
    alike = sum(abs(each.gain("PFC", "bypass only")) <= NOISE_PERCENT for each in runs)
    amp = [each.gain("readmore only", "PFC") > 0 for each in runs if each.case.algorithm == "AMP"]
    return unpublished(
        f"{words}: both better than each alone; readmore only better with AMP; PFC better than none",
        f"{both} of {len(runs)}; {sum(amp)} of {len(amp)}; {sum(map(better, runs))} of {len(runs)}",
        note=f"better than bypass only in {sum(bypass)} (within {NOISE_PERCENT:g} % of it in {alike}), than readmore "
        f"only in {sum(readmore)}; mean gain of PFC over none {mean(each.gain() for each in runs):.2f} %",
    )

"""How much the readings matter, one at a time: the weightiest on all cases, the others on a subset of the matrix.

The readings are those of PFC that the paper leaves open, of the algorithms, of the scheduler, and of the workloads,
including our own choices of Web's clock and chunks.
"""

import dataclasses
from typing import Any

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.zhang_pfc._causes import better
from headstart_lab.studies.zhang_pfc._matrix import ALGORITHMS, COORDINATORS, Case, Lab, Runs, cases
from headstart_lab.studies.zhang_pfc._tables import mean
from headstart_lab.studies.zhang_pfc._workloads import Workload, variant

SUBSET = (("H", 2.0), ("H", 0.1))
"""Settings of the subset: a large and a small L2, with every workload and algorithm."""

EVERY_CASE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as pinned": ({}, {}),
    "queues of 5 % of L2": ({"queue": 0.05}, {}),
    "readmore update only without a cache hit": ({"update": "miss"}, {}),
    "demand and prefetch as separate disk requests, not merged": (
        {},
        {"separate": True, "scheduler": {"name": "deadline", "merge": False}},
    ),
}
"""Keys of the coordinator, and fields of each case."""

ACTIONS = ("none", "PFC", "bypass only")
"""The coordinators of each of `EVERY_CASE`: they show PFC's gain, and whether both actions beat the single one."""

READINGS: dict[str, dict[str, Any]] = {
    "as pinned": {},
    "large from 0.5 of the average, as the text has it": {"large": 0.5},
    "ahead test from end_u + 1": {"ahead": "next"},
    "readmore window from end_pfc + 1": {"window": "next"},
    "readmore update only without a cache hit, large from 0.5 of the average": {"update": "miss", "large": 0.5},
    "queues of 20 % of L2": {"queue": 0.2},
    "lengths and queues for each file": {"context": "file"},
}
"""Keys of the coordinator."""

ALGORITHM_KEYS: dict[str, tuple[str, dict[str, Any]]] = {
    "Linux prefetches throughout its window, as section 2.2 has it": ("Linux", {"trigger": "window"}),
    "SARC's p 4 and g 2": ("SARC", {"degree": 4, "trigger": 2}),
    "SARC's p 16 and g 8": ("SARC", {"degree": 16, "trigger": 8}),
}
"""Keys of the policy on both levels, of one algorithm."""

SCHEDULERS: dict[str, str | dict[str, Any]] = {
    "anticipatory scheduler": "anticipatory-blind",
    "deadline scheduler without merging": {"name": "deadline", "merge": False},
}

WORKLOADS: dict[str, dict[str, dict[str, Any]]] = {
    "writes left out": {"OLTP": {"writes": "skip"}, "Web": {"writes": "skip"}, "Multi": {"writes": "skip"}},
    "requests block by block, closed": {
        name: {"issue": "blocks", "arrival": None, "time_scale": None, "compute": "0ns"} for name in ("OLTP", "Web")
    },
    "Web's clock 4 times slower": {"Web": {"time_scale": 4.0}},
    "Web's clock 16 times slower": {"Web": {"time_scale": 16.0}},
    "Web in chunks of 16 pages": {"Web": {"addresses": "compact-chunks", "chunk_blocks": 16}},
    "Web without the pages that nobody asks for": {"Web": {"addresses": "compact", "chunk_blocks": None}},
    "OLTP closed": {"OLTP": {"arrival": None, "compute": "0ns"}},
    "Multi with its think times": {"Multi": {"compute": "trace"}},
}
"""Keys of the workload, by workload."""


def sensitivity(lab: Lab) -> Steps:
    """How much each reading and choice of ours matters, one at a time: on all cases, or on 24 of them."""
    every: dict[str, list[Runs]] = {}
    for name, (keys, fields) in EVERY_CASE.items():
        coordinators = {each: COORDINATORS[each] | (keys if each != "none" else {}) for each in ACTIONS}
        changed_cases = [dataclasses.replace(case, **fields) for case in cases(lab.workloads.found)]
        every[name] = [lab.runs(case, coordinators) for case in changed_cases]
    pair = {name: COORDINATORS[name] for name in ("none", "PFC")}
    asked: dict[str, list[Runs]] = {}
    for name, keys in READINGS.items():
        coordinators = pair | {"PFC": COORDINATORS["PFC"] | keys}
        asked[name] = [lab.runs(case, coordinators) for case in _subset(lab.workloads.found)]
    for name, (algorithm, keys) in ALGORITHM_KEYS.items():
        asked[name] = [
            lab.runs(dataclasses.replace(case, keys=keys), pair)
            for case in _subset(lab.workloads.found)
            if case.algorithm == algorithm
        ]
    for name, scheduler in SCHEDULERS.items():
        scheduled = [dataclasses.replace(case, scheduler=scheduler) for case in _subset(lab.workloads.found)]
        asked[name] = [lab.runs(case, pair) for case in scheduled]
    for name, by_workload in WORKLOADS.items():
        changed = [variant(each, **by_workload[each.name]) for each in lab.workloads.found if each.name in by_workload]
        asked[name] = [lab.runs(case, pair) for case in _subset(changed)]
    yield
    rows = lab.skipped()
    pinned = {_key(each.case): each.gain() for each in asked["as pinned"]}
    rows += [row for name, runs in every.items() if runs for row in _of_every_case(name, runs)]
    return rows + [_row(name, runs, pinned) for name, runs in asked.items() if runs]


def _of_every_case(name: str, runs: list[Runs]) -> list[Row]:
    """Return in how many cases PFC helps, by how much, and in how many L2's hit ratio falls."""
    gains = [each.gain() for each in runs]
    both = sum(each.gain("PFC", "bypass only") > 0 for each in runs)
    fell = [each for each in runs if each["PFC"].l2_hit_ratio < each["none"].l2_hit_ratio]
    figures: dict[str, tuple[float, str]] = {
        f"cases of {len(runs)} in which PFC beats none": (
            sum(map(better, runs)),
            f"both actions beat bypass alone in {both}",
        ),
        f"mean gain of PFC over none, {len(runs)} cases (%)": (
            round(mean(gains), 2),
            f"least {min(gains):.2f}, greatest {max(gains):.2f}",
        ),
        f"cases of {len(runs)} in which L2's hit ratio falls": (
            len(fell),
            f"the response time improves in {sum(map(better, fell))} of them",
        ),
    }
    return [unpublished(f"{name}: {quantity}", ours, note=note) for quantity, (ours, note) in figures.items()]


def _subset(workloads: list[Workload]) -> list[Case]:
    return [Case(each, name, *setting) for each in workloads for name in ALGORITHMS for setting in SUBSET]


def _key(case: Case) -> tuple[str, str, str, float]:
    return case.workload.name, case.algorithm, case.setting, case.ratio


def _row(name: str, runs: list[Runs], pinned: dict[tuple[str, str, str, float], float]) -> Row:
    gains = [each.gain() for each in runs]
    moves = {each.case.label: each.gain() - pinned[_key(each.case)] for each in runs}
    label = max(moves, key=lambda label: abs(moves[label]))
    by_workload = {
        workload: mean(each.gain() for each in runs if each.case.workload.name == workload)
        for workload in dict.fromkeys(each.case.workload.name for each in runs)
    }
    before = "" if name == "as pinned" else f"as pinned {mean(pinned[_key(each.case)] for each in runs):.2f}; "
    return unpublished(
        f"{name}: mean gain of PFC over none, {len(runs)} cases (%)",
        round(mean(gains), 2),
        note=f"{before}better in {sum(gain > 0 for gain in gains)}, least {min(gains):.2f}, greatest {max(gains):.2f}; "
        + ", ".join(f"{workload} {gain:.2f}" for workload, gain in by_workload.items())
        + (f"; the disk is saturated in {saturated}" if (saturated := sum(each.saturated for each in runs)) else "")
        + ("" if name == "as pinned" else f"; greatest move of a case {moves[label]:+.2f} points ({label})"),
    )

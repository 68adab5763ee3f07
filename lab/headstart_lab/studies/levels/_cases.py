"""The cases of the study: workloads, levels, clients and servers."""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from headstart.simulation import Result
from headstart_lab.studies import _lab
from headstart_lab.studies._lab import Cell
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.tip2 import joined
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._matrix import ALGORITHMS
from headstart_lab.studies.zhang_pfc._workloads import Workloads

NONE: Final = "none"
DUEL: Final = "duel"
LOSS_PERCENT: Final = 1.0
"""By how much `duel` may be slower than none."""
CONTEXTS: Final[Mapping[str, dict[str, Any]]] = {
    "PFC": {"name": "pfc"},
    "PFC by client": {"name": "pfc", "context": "client"},
    "PFC by file": {"name": "pfc", "context": "file"},
}
COORDINATORS: Final[Mapping[str, dict[str, Any]]] = {
    NONE: {"name": "none"},
    "DU": {"name": "du"},
    **CONTEXTS,
    DUEL: {"name": DUEL},
}
FIRST: Final = {"footprint": 0.05}
SIZES: Final = ((1.0, 1.0), (2.0, 2.0), (0.1, 10.0))
"""L2 over L1 and L3 over L2, for three levels."""
EQUAL: Final = SIZES[0]
RATIOS: Final = (2.0, 0.1)
CLIENTS: Final = (
    ("cscope2", "glimpse"),
    ("ml_slice", "pg_select"),
    ("cscope1", "ml_folder"),
    ("cscope2", "glimpse", "pg_select", "ml_slice"),
    ("cscope1", "cscope3", "ml_folder", "pg_select"),
)
"""Recorded programs that ship with headstart; each group shares a server."""
SERVERS: Final = 4
STRIPE: Final = "64KiB"
FILE_SERVERS: Final = 2
GENERATORS: Final = ("random", "zipf", "sequential", "loop", "files")
"""With their defaults."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The part of a run that the rows need: mean response time, and by level the prefetched blocks never used."""

    response_ms: float
    wasted: list[int]
    disk_requests: int

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return the outcome of a result."""
        return cls(
            response_ms=result.response_ns["mean"] / 1e6,
            wasted=[level["prefetches_wasted"] for level in result.levels],
            disk_requests=sum(device["requests"] for device in result.devices),
        )


class Lab(_lab.Lab[Outcome]):
    """The laboratory with the workloads."""

    outcome = Outcome
    kept = "levels 1"

    @functools.cached_property
    def workloads(self) -> Workloads:
        """The workloads of zhang-pfc."""
        return Workloads(self.scratch, self.folders.traces)

    def absent(self) -> list[Row]:
        """Return a row for each workload whose trace is absent."""
        return [
            unpublished(each.name, None, note=f"SKIPPED: {each.prefix} is absent; HEADSTART_TRACES names a folder")
            for each in self.workloads.missing
        ]

    @functools.cached_property
    def shared(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """`[workload]` of each group of programs that share a server."""
        section = {"block_size": "4KiB", "issue": "whole", "placement": "table-order", "processes": "per-pid"}
        return {group: {"trace": str(joined(group, self.scratch)), **section} for group in CLIENTS}


def _lower(name: str, algorithm: str, above: str, ratio: float, coordinator: str, clients: int = 1) -> dict[str, Any]:
    level = {
        "name": name,
        "size": {"level": above, "ratio": ratio},
        "link": dict(paper.LINK),
        "coordinator": dict(COORDINATORS[coordinator]),
        **ALGORITHMS[algorithm],
    }
    return level | ({"clients": clients} if clients > 1 else {})


def ask(lab: Lab, workload: Mapping[str, Any], levels: list[dict[str, Any]]) -> Cell[Outcome]:
    return lab.ask(
        {
            "workload": dict(workload),
            "level": levels,
            "device": {"model": paper.DRIVE, "scheduler": "deadline"},
            "host": {"driver_overhead": "0s"},
        }
    )


def first_level(algorithm: str) -> dict[str, Any]:
    return {"name": "L1", **FIRST, **ALGORITHMS[algorithm]}


Cases = Mapping[str, Mapping[str, Cell[Outcome]]]
"""By case and coordinator."""


def two_levels(lab: Lab) -> dict[tuple[str, str], Cell[Outcome]]:
    """Ask for L2 of the size of L1, by workload and algorithm, uncoordinated."""
    return {
        (workload.name, algorithm): ask(
            lab, workload.section, [first_level(algorithm), _lower("L2", algorithm, "L1", EQUAL[0], NONE)]
        )
        for workload, algorithm in itertools.product(lab.workloads.found, ALGORITHMS)
    }


LOWER: Final = "PFC below L2 alone"
BOTH: Final = "PFC"


def three_levels(lab: Lab) -> dict[str, dict[str, Cell[Outcome]]]:
    pairs = {NONE: (NONE, NONE), "DU": ("DU", "DU"), BOTH: ("PFC", "PFC"), LOWER: (NONE, "PFC"), DUEL: (DUEL, DUEL)}
    cases = {}
    for workload, algorithm, (second, third) in itertools.product(lab.workloads.found, ALGORITHMS, SIZES):
        case = f"{workload.name}, {algorithm}, L2 {second:g} of L1, L3 {third:g} of L2"
        cases[case] = {
            name: ask(
                lab,
                workload.section,
                [
                    first_level(algorithm),
                    _lower("L2", algorithm, "L1", second, upper),
                    _lower("L3", algorithm, "L2", third, lower),
                ],
            )
            for name, (upper, lower) in pairs.items()
        }
    return cases


def mixed_algorithms(lab: Lab, coordinators: Sequence[str]) -> dict[str, dict[str, Cell[Outcome]]]:
    return {
        f"{workload.name}, {upper} above {lower}, L2 {ratio:g} of L1": {
            name: ask(lab, workload.section, [first_level(upper), _lower("L2", lower, "L1", ratio, name)])
            for name in coordinators
        }
        for workload, (upper, lower), ratio in itertools.product(
            lab.workloads.found, itertools.permutations(ALGORITHMS, 2), RATIOS
        )
    }


def of_clients(lab: Lab, groups: Sequence[tuple[str, ...]]) -> dict[str, dict[str, Cell[Outcome]]]:
    return {
        f"{' and '.join(group)}, {algorithm}, server {ratio:g} of the clients": {
            name: ask(
                lab,
                lab.shared[group],
                [first_level(algorithm), _lower("L2", algorithm, "L1", ratio * len(group), name, len(group))],
            )
            for name in COORDINATORS
        }
        for group, algorithm, ratio in itertools.product(groups, ALGORITHMS, RATIOS)
    }


def _on_servers(level: dict[str, Any], servers: int, unit: str) -> dict[str, Any]:
    """Return the level as `servers` servers, which together hold the same."""
    size = {**level["size"], "ratio": level["size"]["ratio"] / servers}
    return {**level, "size": size, "servers": servers, "unit": unit}


def one_client(lab: Lab, servers: int, coordinators: Sequence[str]) -> dict[str, dict[str, Cell[Outcome]]]:
    def lower(algorithm: str, ratio: float, coordinator: str) -> dict[str, Any]:
        level = _lower("L2", algorithm, "L1", ratio, coordinator)
        return _on_servers(level, servers, STRIPE) if servers > 1 else level

    return {
        f"{workload.name}, {algorithm}, servers {ratio:g} of L1": {
            name: ask(lab, workload.section, [first_level(algorithm), lower(algorithm, ratio, name)])
            for name in coordinators
        }
        for workload, algorithm, ratio in itertools.product(lab.workloads.found, ALGORITHMS, RATIOS)
    }


def clients_on_servers(
    lab: Lab, groups: Sequence[tuple[str, ...]], coordinators: Sequence[str]
) -> dict[str, dict[str, Cell[Outcome]]]:
    def lower(algorithm: str, ratio: float, coordinator: str, clients: int) -> dict[str, Any]:
        level = _lower("L2", algorithm, "L1", ratio * clients, coordinator, clients)
        return _on_servers(level, FILE_SERVERS, "file")

    return {
        f"{' and '.join(group)}, {algorithm}, servers {ratio:g} of the clients": {
            name: ask(lab, lab.shared[group], [first_level(algorithm), lower(algorithm, ratio, name, len(group))])
            for name in coordinators
        }
        for group, algorithm, ratio in itertools.product(groups, ALGORITHMS, RATIOS)
    }


def generated(lab: Lab, coordinators: Sequence[str]) -> dict[str, dict[str, Cell[Outcome]]]:
    section = {"limit": 20_000, "compute": "0ns", "issue": "whole"}
    return {
        f"{generator}, {algorithm}, L2 {ratio:g} of L1": {
            name: ask(
                lab,
                {"generator": generator, **section},
                [first_level(algorithm), _lower("L2", algorithm, "L1", ratio, name)],
            )
            for name in coordinators
        }
        for generator, algorithm, ratio in itertools.product(GENERATORS, ALGORITHMS, RATIOS)
    }

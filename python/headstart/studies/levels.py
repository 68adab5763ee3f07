"""levels: what zhang-pfc's authors say of more than one client, more than two levels and mixed algorithms.

Source: the sentences of Zhang, Lee, Ma and Zhou (ICDCS 2008) that their evaluation leaves untested: "when multiple
such uncoordinated software layers are stacked together, there is a compounding effect causing overly aggressive
prefetching" and PFC "enables coordinated prefetching across more than two levels, and potentially the stacking of
different prefetching algorithms" (section 1); "PFC can be easily extended to work with both multi-client systems and
multi-stream workloads" and "it is easy to extend PFC to maintain per-client or per-file contexts, in order to better
handle multiple access streams" (section 3). Workloads, algorithms, drive and links are those of zhang-pfc; a first
level holds 5 % of the footprint.

- Stacked: the same algorithm on two levels and on three of one size, and on three with L2 and L3 of other sizes.
- Mixed: each ordered pair of two different algorithms on two levels, L2 of 200 and of 10 % of L1.
- Clients: two or four recorded programs, each a process with a first level of its own, over one server whose cache is
  twice or a tenth of all first levels together; PFC with one context, one for each client, one for each file.

The gain of a coordinator is the share of the mean response time that it saves beside none in the same case.

The criteria, written before the first results:

- compounding: without a coordinator, three levels of one size waste more prefetched blocks (of all levels) than the
  first two of them do as two levels, summed over the workloads, for each of the four algorithms.
- three levels: PFC between both pairs of levels gains in the mean, and in more than half of the cases.
- lower pair: PFC between both pairs gains more in the mean than PFC between L2 and L3 alone.
- mixed: PFC gains in the mean of the mixed pairs, and in more than half of the cases.
- clients: PFC with one context gains in the mean of the cases of several clients, and in more than half of them.
- contexts by client, contexts by file: each gains more in the mean than one context there. A row each.

A coordinator of our own, `duel`, has criteria of its own: those of the task that it was written for, older than the
coordinator. Its constants were scanned on the 96 cases of zhang-pfc and on the cases of several clients, so that rows
of these are calibrated. On mixed algorithms earlier values had been run, but none was chosen by them; generators and
three levels were run once, with the final values.

- safe: in no case is the mean response time more than 1 % above that of none. A row for each of five sets of cases.
- better than PFC: a greater gain in the mean of the 96 cases. The same of the other sets.

No row says anything of a client of several servers (`servers` of a `[[level]]`).
"""

import dataclasses
import functools
import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from headstart.simulation import Result
from headstart.studies import _lab
from headstart.studies._lab import Cell, Steps
from headstart.studies._rows import Basis, Row, finding, unpublished
from headstart.studies._study import Study
from headstart.studies.tip2 import joined
from headstart.studies.zhang_pfc import _published as paper
from headstart.studies.zhang_pfc._matrix import ALGORITHMS
from headstart.studies.zhang_pfc._matrix import cases as zhang_pfc_cases
from headstart.studies.zhang_pfc._workloads import Workloads

NONE: Final = "none"
DUEL: Final = "duel"
LOSS_PERCENT: Final = 1.0
"""By so much `duel` may be slower than none."""
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
"""L2 over L1 and L3 over L2, of three levels."""
EQUAL: Final = SIZES[0]
RATIOS: Final = (2.0, 0.1)
CLIENTS: Final = (
    ("cscope2", "glimpse"),
    ("ml_slice", "pg_select"),
    ("cscope1", "ml_folder"),
    ("cscope2", "glimpse", "pg_select", "ml_slice"),
    ("cscope1", "cscope3", "ml_folder", "pg_select"),
)
"""Recorded programs that ship with headstart; each group has a server."""
GENERATORS: Final = ("random", "zipf", "sequential", "loop", "files")
"""In their defaults."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the rows need of a run: mean response time, and by level the prefetched blocks never used."""

    response_ms: float
    wasted: list[int]
    disk_requests: int

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return it of a result."""
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
        """zhang-pfc's."""
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


def _ask(lab: Lab, workload: Mapping[str, Any], levels: list[dict[str, Any]]) -> Cell[Outcome]:
    return lab.ask(
        {
            "workload": dict(workload),
            "level": levels,
            "device": {"model": paper.DRIVE, "scheduler": "deadline"},
            "host": {"driver_overhead": "0s"},
        }
    )


def _first(algorithm: str) -> dict[str, Any]:
    return {"name": "L1", **FIRST, **ALGORITHMS[algorithm]}


Cases = Mapping[str, Mapping[str, Cell[Outcome]]]
"""By case and coordinator."""


def _gains(cases: Cases, coordinator: str) -> dict[str, float]:
    """Return the percent of the mean response time that the coordinator saves, by case."""
    gains = {}
    for case, cells in cases.items():
        before = cells[NONE].outcome.response_ms
        gains[case] = 100 * (before - cells[coordinator].outcome.response_ms) / before if before else 0.0
    return gains


def _told(gains: Mapping[str, float]) -> str:
    worst, best = (choose(gains, key=gains.__getitem__) for choose in (min, max))
    better = sum(gain > 0 for gain in gains.values())
    return (
        f"{statistics.fmean(gains.values()):.1f} % in the mean, better in {better} of {len(gains)}; "
        f"{gains[worst]:+.1f} % ({worst}) to {gains[best]:+.1f} % ({best})"
    )


def _gain(quantity: str, cases: Cases, coordinator: str, published: str, note: str = "") -> Row:
    """Return the finding that the coordinator gains in the mean and in more than half of the cases."""
    gains = _gains(cases, coordinator)
    mean, better = statistics.fmean(gains.values()), sum(gain > 0 for gain in gains.values())
    return finding(
        quantity,
        published=published,
        ours=f"{mean:.1f} % in the mean, better in {better} of {len(gains)}",
        holds=mean > 0 and 2 * better > len(gains),
        tolerance="a gain in the mean and in more than half of the cases",
        note=_told(gains) + note,
    )


def _more(quantity: str, cases: Cases, one: str, other: str, published: str) -> Row:
    """Return the finding that `one` gains more than `other` in the mean."""
    means = {name: statistics.fmean(_gains(cases, name).values()) for name in (one, other)}
    return finding(
        quantity,
        published=published,
        ours=f"{one} {means[one]:.1f} %, {other} {means[other]:.1f} %",
        holds=means[one] > means[other],
        tolerance="a greater mean gain",
        note="; ".join(f"{name}: {_told(_gains(cases, name))}" for name in (one, other)),
    )


def _table(cases: Cases, coordinators: Sequence[str]) -> list[Row]:
    return [
        unpublished(case, ", ".join(f"{name} {_gains({case: cells}, name)[case]:+.1f} %" for name in coordinators))
        for case, cells in cases.items()
    ]


LOWER: Final = "PFC below L2 alone"
BOTH: Final = "PFC"


def _three(lab: Lab) -> dict[str, dict[str, Cell[Outcome]]]:
    pairs = {NONE: (NONE, NONE), "DU": ("DU", "DU"), BOTH: ("PFC", "PFC"), LOWER: (NONE, "PFC"), DUEL: (DUEL, DUEL)}
    cases = {}
    for workload, algorithm, (second, third) in itertools.product(lab.workloads.found, ALGORITHMS, SIZES):
        case = f"{workload.name}, {algorithm}, L2 {second:g} of L1, L3 {third:g} of L2"
        cases[case] = {
            name: _ask(
                lab,
                workload.section,
                [
                    _first(algorithm),
                    _lower("L2", algorithm, "L1", second, upper),
                    _lower("L3", algorithm, "L2", third, lower),
                ],
            )
            for name, (upper, lower) in pairs.items()
        }
    return cases


def stacked(lab: Lab) -> Steps:
    """Three levels: what they waste uncoordinated beside two, and what PFC gains."""
    if absent := lab.absent():
        return absent
    cases = _three(lab)
    two = {
        (workload.name, algorithm): _ask(
            lab, workload.section, [_first(algorithm), _lower("L2", algorithm, "L1", EQUAL[0], NONE)]
        )
        for workload, algorithm in itertools.product(lab.workloads.found, ALGORITHMS)
    }
    yield
    rows = []
    for algorithm in ALGORITHMS:
        of_two = sum(sum(cell.outcome.wasted) for (_, name), cell in two.items() if name == algorithm)
        of_three = sum(
            sum(cases[f"{each.name}, {algorithm}, L2 1 of L1, L3 1 of L2"][NONE].outcome.wasted)
            for each in lab.workloads.found
        )
        rows.append(
            finding(
                f"compounding: prefetched blocks never used, {algorithm}",
                published="stacked uncoordinated layers compound to overly aggressive prefetching",
                ours=f"{of_three:,} on three levels, {of_two:,} on two",
                holds=of_three > of_two,
                tolerance="more on three levels",
                note="section 1; all levels together, levels of one size, three workloads",
            )
        )
    rows.append(
        _gain(
            "three levels: gain of PFC", cases, BOTH, "PFC enables coordinated prefetching across more than two levels"
        )
    )
    rows.append(_more("lower pair", cases, BOTH, LOWER, "coordination between all levels (our reading)"))
    return rows + _table(cases, ("DU", BOTH, LOWER))


def mixed(lab: Lab) -> Steps:
    """Two levels of different algorithms: what PFC gains."""
    if absent := lab.absent():
        return absent
    cases = _mixed(lab, (NONE, "DU", "PFC"))
    yield
    published = "and potentially the stacking of different prefetching algorithms"
    first = _gain("mixed algorithms: gain of PFC", cases, "PFC", published, f"; DU: {_told(_gains(cases, 'DU'))}")
    return [first, *_table(cases, ("DU", "PFC"))]


def _mixed(lab: Lab, coordinators: Sequence[str]) -> dict[str, dict[str, Cell[Outcome]]]:
    return {
        f"{workload.name}, {upper} above {lower}, L2 {ratio:g} of L1": {
            name: _ask(lab, workload.section, [_first(upper), _lower("L2", lower, "L1", ratio, name)])
            for name in coordinators
        }
        for workload, (upper, lower), ratio in itertools.product(
            lab.workloads.found, itertools.permutations(ALGORITHMS, 2), RATIOS
        )
    }


def _of_clients(lab: Lab, groups: Sequence[tuple[str, ...]]) -> dict[str, dict[str, Cell[Outcome]]]:
    return {
        f"{' and '.join(group)}, {algorithm}, server {ratio:g} of the clients": {
            name: _ask(
                lab,
                lab.shared[group],
                [_first(algorithm), _lower("L2", algorithm, "L1", ratio * len(group), name, len(group))],
            )
            for name in COORDINATORS
        }
        for group, algorithm, ratio in itertools.product(groups, ALGORITHMS, RATIOS)
    }


def clients(lab: Lab) -> Steps:
    """Several clients of one server: what PFC gains, with one context, one for each client, one for each file."""
    cases = _of_clients(lab, CLIENTS)
    yield
    published = "PFC can be easily extended to work with multi-client systems"
    rows = [
        _gain("clients: gain of PFC", cases, "PFC", published, f"; DU: {_told(_gains(cases, 'DU'))}"),
        *(
            _more(f"contexts: {name}", cases, name, "PFC", "contexts handle multiple access streams better")
            for name in CONTEXTS
            if name != "PFC"
        ),
    ]
    return rows + _table(cases, ("DU", *CONTEXTS, DUEL))


def quick(lab: Lab) -> Steps:
    """Two clients of one server, as in the item clients."""
    cases = _of_clients(lab, CLIENTS[2:3])
    yield
    return _table(cases, ("DU", *CONTEXTS, DUEL))


def _duels(name: str, cases: Cases, basis: Basis) -> list[Row]:
    """Return the findings that `duel` is safe in these cases, and better than PFC in their mean."""
    gains = _gains(cases, DUEL)
    slower = sum(gain < -LOSS_PERCENT for gain in gains.values())
    safe = finding(
        f"duel: safe, {name}",
        published=f"no case more than {LOSS_PERCENT:g} % slower than none (ours)",
        ours=f"{slower} of {len(gains)} more than {LOSS_PERCENT:g} % slower, the worst {min(gains.values()):+.1f} %",
        holds=slower == 0,
        tolerance="all cases",
        basis=basis,
        note=_told(gains),
    )
    better = _more(f"duel: against PFC, {name}", cases, DUEL, "PFC", "a greater gain than PFC's (ours)")
    return [safe, dataclasses.replace(better, basis=basis)]


def _generated(lab: Lab, coordinators: Sequence[str]) -> dict[str, dict[str, Cell[Outcome]]]:
    section = {"limit": 20_000, "compute": "0ns", "issue": "whole"}
    return {
        f"{generator}, {algorithm}, L2 {ratio:g} of L1": {
            name: _ask(
                lab,
                {"generator": generator, **section},
                [_first(algorithm), _lower("L2", algorithm, "L1", ratio, name)],
            )
            for name in coordinators
        }
        for generator, algorithm, ratio in itertools.product(GENERATORS, ALGORITHMS, RATIOS)
    }


def duel(lab: Lab) -> Steps:
    """The coordinator `duel` on the 96 cases, several clients, mixed algorithms, three levels and generators."""
    if absent := lab.absent():
        return absent
    three = (NONE, "PFC", DUEL)
    sets: dict[str, tuple[Cases, Basis]] = {
        "96 cases": (
            {
                case.label: {name: lab.ask(case.scenario(COORDINATORS[name])) for name in three}
                for case in zhang_pfc_cases(lab.workloads.found)
            },
            "calibrated",
        ),
        "clients": (_of_clients(lab, CLIENTS), "calibrated"),
        "mixed algorithms": (_mixed(lab, three), "predicted"),
        "three levels": (_three(lab), "predicted"),
        "generators": (_generated(lab, three), "predicted"),
    }
    yield
    rows = [row for name, (cases, basis) in sets.items() for row in _duels(name, cases, basis)]
    return rows + [row for cases, _ in sets.values() for row in _table(cases, ("PFC", DUEL))]


STUDY = Study(
    name="levels",
    title="More clients, more levels and mixed algorithms, as zhang-pfc's authors expect them",
    seeds="1; nothing is random",
    lab=Lab,
    steps={"stacked": stacked, "mixed": mixed, "clients": clients, "duel": duel, "quick": quick},
)

"""The matrix: 3 workloads x 4 algorithms x {H, L} x 4 ratios, each with five coordinators; its scenarios and runs.

Both levels run the same algorithm, requests are issued whole, replacement is LRU except where SARC brings its
own. RA prefetches after each hit and each miss; Linux after each that begins in its current group, which is how its
kernels do it and not what section 2.2 says word for word (`linux_2_6.rs` has the reasons, the item sensitivity what it
matters). The paper prints neither SARC's p and g nor AMP's first p: they are the defaults of our policies. A cell whose
L2 holds fewer than `SMALL` pages is flagged: Linux' largest window does not fit into it.
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import Any

from headstart._environment import TRACES_VARIABLE
from headstart_lab.studies import _lab
from headstart_lab.studies._lab import Cell
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._outcome import Outcome
from headstart_lab.studies.zhang_pfc._workloads import Workload, Workloads

SMALL = 32
"""Pages of L2 below which a cell is flagged: the largest window of Linux 2.6."""

ALGORITHMS: dict[str, dict[str, Any]] = {
    "AMP": {"policy": "amp", "replacement": "lru"},
    "SARC": {"policy": "sarc"},
    "RA": {"policy": {"name": "ra", "degree": paper.RA_DEGREE}, "replacement": "lru"},
    "Linux": {"policy": "linux-2.6", "replacement": "lru"},
}
"""In the order of Table 1."""

COORDINATORS: dict[str, dict[str, Any]] = {
    "none": {"name": "none"},
    "DU": {"name": "du"},
    "PFC": {"name": "pfc"},
    "bypass only": {"name": "pfc", "actions": "bypass"},
    "readmore only": {"name": "pfc", "actions": "readmore"},
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One of the 96 cases."""

    workload: Workload
    algorithm: str
    setting: str
    """"H" or "L"."""
    ratio: float
    """L2 over L1."""
    keys: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False, compare=False)
    """Keys of the algorithm's policy, beyond those of `ALGORITHMS`."""
    scheduler: str | Mapping[str, Any] = dataclasses.field(default="deadline", hash=False, compare=False)
    """In place of the paper's own imitation of Linux 2.6: our choice."""
    separate: bool = dataclasses.field(default=False, hash=False, compare=False)
    """Whether what L2 prefetches behind a demand is a disk request of its own."""

    @property
    def label(self) -> str:
        """The name in rows: "OLTP, RA, 200%-H"."""
        return f"{self.workload.name}, {self.algorithm}, {100 * self.ratio:g}%-{self.setting}"

    def scenario(self, coordinator: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scenario with a coordinator."""
        algorithm = dict(ALGORITHMS[self.algorithm])
        if self.keys:
            policy = algorithm["policy"]
            algorithm["policy"] = ({"name": policy} if isinstance(policy, str) else policy) | dict(self.keys)
        size = {"level": "L1", "ratio": self.ratio}
        lower = {"name": "L2", "size": size, "link": dict(paper.LINK), "coordinator": dict(coordinator), **algorithm}
        if self.separate:
            lower["separate_prefetch"] = True
        return {
            "workload": dict(self.workload.section),
            "level": [{"name": "L1", "footprint": paper.SHARES[self.setting], **algorithm}, lower],
            "device": {"model": paper.DRIVE, "scheduler": self.scheduler},
            # The paper states no cost of the driver.
            "host": {"driver_overhead": "0s"},
        }


@dataclasses.dataclass(frozen=True)
class Runs:
    """The runs of one case, by coordinator."""

    case: Case
    cells: dict[str, Cell[Outcome]]

    def __getitem__(self, coordinator: str) -> Outcome:
        return self.cells[coordinator].outcome

    def gain(self, coordinator: str = "PFC", against: str = "none") -> float:
        """By how many percent `coordinator` shortens the mean response time of `against`."""
        before = self[against].response_ms
        return 100 * (before - self[coordinator].response_ms) / before if before else 0.0

    @property
    def small(self) -> bool:
        """Whether L2 holds fewer pages than a window of read-ahead."""
        return self["none"].l2_frames < SMALL

    @property
    def saturated(self) -> bool:
        """Whether the disk of an open-loop run is busy nearly all the time; a closed loop keeps it so by itself."""
        timed = self.case.workload.section.get("arrival") == "open"
        return timed and any(cell.outcome.saturated for cell in self.cells.values())

    @property
    def flags(self) -> str:
        """Caveats that a reader must know."""
        flags = [f"L2 of {self['none'].l2_frames} pages, under {SMALL}"] if self.small else []
        flags += ["disk saturated"] if self.saturated else []
        return f" [{'; '.join(flags)}]" if flags else ""


class Lab(_lab.Lab[Outcome]):
    """The laboratory with the workloads, and cases made of both."""

    outcome = Outcome
    kept = "zhang-pfc 1"

    @functools.cached_property
    def workloads(self) -> Workloads:
        """The workloads that exist."""
        return Workloads(self.scratch, self.folders.traces)

    def runs(self, case: Case, coordinators: Mapping[str, Mapping[str, Any]] = COORDINATORS) -> Runs:
        """Ask for a case with each coordinator."""
        return Runs(case, {name: self.ask(case.scenario(keys)) for name, keys in coordinators.items()})

    def matrix(self, *names: str) -> list[Runs]:
        """Ask for the whole matrix, of these workloads only if any is named."""
        found = self.workloads.named(*names) if names else self.workloads.found
        return [self.runs(case) for case in cases(found)]

    def skipped(self, *names: str) -> list[Row]:
        """Return a row for each workload (of these, if any is named) whose trace is absent."""
        return [
            unpublished(
                each.name,
                None,
                note=f"SKIPPED: the trace is absent. Put {' or '.join((*each.whole[:1], each.prefix))} into the folder "
                f"that ${TRACES_VARIABLE} names",
            )
            for each in self.workloads.missing
            if not names or each.name in names
        ]


def cases(workloads: list[Workload]) -> list[Case]:
    """Return the cases of these workloads, in the paper's order."""
    parts = itertools.product(workloads, ALGORITHMS, paper.SHARES, paper.RATIOS)
    return [Case(*part) for part in parts]

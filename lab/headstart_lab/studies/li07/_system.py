"""The systems that are run: policies, drives, workloads as scenarios, and how much is asked for.

Linux, CP and AP differ in their greatest depth alone, as in the paper, whose kernels differ in nothing else: detection
of streams and slow start are those of `fixed-depth` for all. CP does not shrink its depth when memory is short: the
paper's prototype did not (section 7). OPT is `oracle-depth` with requests as long as the others' may be; the paper has
it for the microbenchmarks only, we run it everywhere.

Not printed, and ours: pages of 4 KiB; files in the order of their table; 1500 MiB of page cache (the machine has 2 GB);
the array's unit of 64 KiB; requests that a run asks for (`REQUESTS`); where the generators' headers say so, theirs.
Found by scanning for what the paper prints: `APART`, and the number of lists of index-search (its header): cases with
either are `calibrated`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from headstart_lab.studies import _lab
from headstart_lab.studies._lab import Cell
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._outcome import Outcome

Keys = Mapping[str, Any]

POLICIES: Final[dict[str, Keys]] = {
    "Linux": {"name": "fixed-depth", "depth": paper.LINUX},
    "CP": {"name": "competitive", "shrink": False},
    "AP": {"name": "fixed-depth", "depth": paper.AGGRESSIVE},
    "OPT": {"name": "oracle-depth", "max_request": "1280KiB"},
}

LINUX_2_6_10: Final[Keys] = {"name": "linux-2.6.10", "read_ahead": paper.LINUX}
"""The read-ahead of the paper's kernel, and of its virtual machines (section 6.3), as they were: item `kernels`."""
LINUX_2_6_16: Final[Keys] = {"name": "linux-2.6.16", "read_ahead": paper.LINUX}

CACHE: Final = "1500MiB"

APART: Final = "2GiB"
"""Distance between two files of cp, diff and TPC-H. Found by scanning 0 B to 4 GiB for the 34 % of 2diff50 on the IBM
drive."""

IBM: Final[dict[str, Any]] = {"model": "ibm-36gb-10k"}
FREE_BUS: Final[dict[str, Any]] = IBM | {"bus": {"bytes_per_second": 160_000_000}}
"""On Linux 2.6.16, section 6.3: no limit by software. 160 MB/s, that of Ultra160 SCSI, is a guess above all zones."""
SEAGATE: Final[dict[str, Any]] = {"model": "seagate-146gb-10k"}
RAID0: Final[dict[str, Any]] = SEAGATE | {
    "count": 2,
    "array": "raid0",
    "stripe_unit": "64KiB",
    "bus": {"bytes_per_second": 40_450_000},
}
"""Two drives alone would give 111 MB/s; half of the printed 80.9 each is for a controller that holds them back."""
DEVICES: Final[dict[str, Keys]] = {"IBM": IBM, "Seagate": SEAGATE, "RAID0": RAID0}

AWARE: Final = "anticipatory"
BLIND: Final = "anticipatory-blind"

REQUESTS: Final[dict[str, int]] = {
    "one-whole": 1024,
    "one-rand": 1024,
    "two-rand": 1024,
    "four-64kb": 4096,
    "media-server": 4096,
    "index-search": 512,
    "kernel-build": 300,
    "tpc-h": 21,
}
"""Requests of all clients of a run together: at least 16 each (index-search 8) with 64 clients."""

GUESSED: Final = ("media-server", "index-search", "kernel-build", "tpc-h")
"""Generators of programs that the paper names without the data to run them as they were."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One workload on one system."""

    name: str
    """The name in rows."""
    workload: Keys = dataclasses.field(hash=False)
    device: Keys = dataclasses.field(default_factory=lambda: IBM, hash=False)
    scheduler: str | Keys = AWARE
    seed: int = 1
    cache: str = CACHE

    @property
    def calibrated(self) -> bool:
        """Whether a parameter of the workload was found by scanning for figures of the paper."""
        return "apart" in self.workload or self.workload.get("generator") == "index-search"

    @property
    def stands_in(self) -> bool:
        """Whether another program is run in place of the paper's, most of whose numbers are guesses."""
        return self.workload.get("generator") in GUESSED

    def scenario(self, policy: Keys) -> dict[str, Any]:
        """Return the scenario with a policy."""
        workload = {"block_size": "4KiB", "placement": "table-order", "issue": "whole", "processes": "per-pid"}
        return {
            "seed": self.seed,
            "workload": {**workload, **self.workload},
            "cache": {"size": self.cache},
            "policy": dict(policy),
            "device": {**self.device, "scheduler": self.scheduler},
            # The paper states no cost of the driver.
            "host": {"driver_overhead": "0s"},
        }


def server(generator: str, clients: int = 1, **more: Any) -> dict[str, Any]:
    """Return the workload of a server with `clients` simultaneous clients."""
    workload = {"generator": generator, "concurrency": clients, "requests": max(REQUESTS[generator], clients), **more}
    return workload | ({"apart": APART} if generator == "tpc-h" else {})


def tools(size_mb: int, *, copies: int = 0, diffs: int = 0) -> dict[str, Any]:
    """Return the workload of `copies` cp and `diffs` diff side by side, on files of `size_mb` MiB."""
    workload = {"generator": "cp", "copies": copies, "diffs": diffs, "size": f"{size_mb}MiB", "apart": APART}
    return workload | ({"writes": "back"} if copies else {})


@dataclasses.dataclass(frozen=True)
class Runs:
    """The runs of one case, by policy."""

    case: Case
    cells: dict[str, Cell[Outcome]]

    def __getitem__(self, policy: str) -> Outcome:
        return self.cells[policy].outcome

    def gain(self, policy: str = "CP", over: str = "Linux") -> float:
        """By how many percent `policy` raises the throughput of `over`."""
        return 100 * (self[over].elapsed_s / self[policy].elapsed_s - 1)

    def cut(self, policy: str = "CP", over: str = "Linux") -> float:
        """By how many percent `policy` shortens the time of `over`."""
        return 100 * (1 - self[policy].elapsed_s / self[over].elapsed_s)

    def of_oracle(self, policy: str = "CP") -> float:
        """The throughput of `policy` as a share of OPT's."""
        return self["OPT"].elapsed_s / self[policy].elapsed_s

    def apart(self, *policies: str) -> float:
        """How far the slowest of these is behind the fastest, as a share of its throughput."""
        times = [self[policy].elapsed_s for policy in policies]
        return 1 - min(times) / max(times)


class Lab(_lab.Lab[Outcome]):
    """Asks for the runs that items need."""

    outcome = Outcome
    kept = "li07 1"

    def runs(self, case: Case, policies: Mapping[str, Keys] | None = None) -> Runs:
        """Ask for a case with each policy."""
        asked = POLICIES if policies is None else policies
        return Runs(case, {name: self.one(case, keys) for name, keys in asked.items()})

    def one(self, case: Case, policy: Keys) -> Cell[Outcome]:
        """Ask for a case with one policy."""
        return self.ask(case.scenario(policy))

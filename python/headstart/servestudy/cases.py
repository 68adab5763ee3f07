"""The cases, and their scenarios: the simulator runs the whole, each server its level of it."""

import dataclasses
import itertools
from typing import Any

from headstart.servestudy.workloads import THINK_NS, Workload
from headstart.studies.zhang_pfc import _published as paper
from headstart.studies.zhang_pfc._matrix import ALGORITHMS

DISKS = {"seagate-cheetah-9lp": 9_100_000_000, "ibm-36gb-10k": 36_400_000_000}
"""Profiles, and bytes of the image: not more than the drive holds."""
NAMES = {"ra": "RA", "linux": "Linux", "sarc": "SARC", "amp": "AMP"}
SETTINGS = tuple(paper.SHARES)
RATIOS = (2.0, 1.0, 0.1)
COORDINATORS = ("none", "du", "pfc")
LINK_NS = (6_000_000, 30_000)
"""The paper's link in nanoseconds: for a reply, and for each of its pages."""


def link(way_ns: int = 0) -> dict[str, str]:
    """Return the paper's link, which takes `way_ns` longer for each reply."""
    link = dict(paper.LINK)
    if way_ns:
        link["alpha"] = f"{cost_ns(0) + way_ns}ns"
    return link


def cost_ns(pages: int) -> int:
    """Return what the paper's link takes for a reply of so many pages."""
    return LINK_NS[0] + pages * LINK_NS[1]


@dataclasses.dataclass(frozen=True)
class Case:
    """One run."""

    disk: str
    workload: str
    algorithm: str
    setting: str
    """"H" or "L"."""
    ratio: float
    """L2 over L1."""
    coordinator: str

    @property
    def group(self) -> str:
        """How findings call it, whatever its coordinator."""
        return f"{self.disk}, {self.workload}, {self.algorithm}, {self.setting}, {self.ratio:.0%}"

    @property
    def label(self) -> str:
        """How rows call it."""
        return f"{self.group}, {self.coordinator}"

    def levels(self, footprint: int, way_ns: int = 0) -> list[dict[str, Any]]:
        """Return the levels for a trace of so many distinct pages; the link takes `way_ns` longer for each reply."""
        algorithm = ALGORITHMS[NAMES[self.algorithm]]
        upper = max(1, round(paper.SHARES[self.setting] * footprint))
        lower = max(1, round(self.ratio * upper))
        return [
            {"name": "L1", "blocks": upper, **algorithm},
            {"name": "L2", "blocks": lower, **algorithm, "link": link(way_ns), "coordinator": self.coordinator},
        ]

    def scenario(self, workload: Workload, way_ns: int = 0, near_ns: int = 0) -> dict[str, Any]:
        """Return the scenario of the whole, with a link that takes `way_ns` longer.

        Where the next request waits for a reply, it comes to L1 `near_ns` after the think time.
        """
        section: dict[str, Any] = {
            "trace": str(workload.trace),
            "format": "csv",
            "block_size": "4KiB",
            "issue": "whole",
            "placement": "address",
        }
        section |= {"arrival": "open"} if workload.open else {"compute_scale": (THINK_NS + near_ns) / THINK_NS}
        return {
            "workload": section,
            "level": self.levels(workload.footprint, way_ns),
            "device": {"model": self.disk, "scheduler": "deadline"},
            "host": {"driver_overhead": "0s"},
        }


def cases(disks: list[str], workloads: list[str], *, quick: bool) -> list[Case]:
    """Return the matrix in order; `quick`: two algorithms, H, L2 as large as L1, none and PFC."""
    algorithms = ("ra", "linux") if quick else tuple(NAMES)
    settings, ratios = (("H",), (1.0,)) if quick else (SETTINGS, RATIOS)
    coordinators = ("none", "pfc") if quick else COORDINATORS
    return [Case(*each) for each in itertools.product(disks, workloads, algorithms, settings, ratios, coordinators)]

"""The cases and their scenarios: the simulator runs the whole scenario, each server its own level of it."""

import dataclasses
import itertools
from typing import Any

from headstart_lab.servestudy.workloads import THINK_NS, Workload
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._matrix import ALGORITHMS

DISKS = {"seagate-cheetah-9lp": 9_100_000_000, "ibm-36gb-10k": 36_400_000_000}
"""Profiles, and the size of the image in bytes: at most the drive's capacity."""
NAMES = {"ra": "RA", "linux": "Linux", "sarc": "SARC", "amp": "AMP"}
SETTINGS = tuple(paper.SHARES)
RATIOS = (2.0, 1.0, 0.1)
COORDINATORS = ("none", "du", "pfc")
LINK_NS = (6_000_000, 30_000)
"""The paper's link in nanoseconds: for a reply, and for each of its pages."""


@dataclasses.dataclass(frozen=True)
class Way:
    """The servers' own time in nanoseconds, as measured by `way`."""

    way_ns: int = 0
    """Per reply of L2, beside the link."""
    near_ns: int = 0
    """Per request of the player to L1, with its reply."""
    first_ns: int = 0
    """For the first request of new servers, beside the others."""
    page_ns: int = 0
    """Per further page of a reply of L2, beside the link."""
    disk_ns: int = 0
    """Per read of the disk, beside the drive."""
    disk_page_ns: int = 0
    """Per further page of such a read."""


FREE = Way()
"""No time."""


def link(way: Way) -> dict[str, str]:
    """Return the paper's link, with the servers' own time added to each reply."""
    if way == FREE:
        return dict(paper.LINK)
    return _times(LINK_NS[0] + way.way_ns - way.page_ns, LINK_NS[1] + way.page_ns)


def to_disk(way: Way) -> list[dict[str, Any]]:
    """Return a level that keeps nothing, whose link adds the servers' own time to each disk read; or no level."""
    if max(way.disk_ns, way.disk_page_ns) <= 0:
        return []
    cost = _times(way.disk_ns - way.disk_page_ns, way.disk_page_ns)
    return [{"name": "disk", "blocks": 0, "policy": "demand", "link": cost}]


def _times(alpha_ns: int, beta_ns: int) -> dict[str, str]:
    """Return a link. A time measured in one case may be below zero, as the difference of two means."""
    return {"alpha": f"{max(0, alpha_ns)}ns", "beta": f"{max(0, beta_ns)}ns"}


def cost_ns(pages: int) -> int:
    """Return the time of the paper's link for a reply of `pages` pages."""
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
    """The size of L2 over that of L1."""
    coordinator: str

    @property
    def group(self) -> str:
        """The name in findings, without the coordinator."""
        return f"{self.disk}, {self.workload}, {self.algorithm}, {self.setting}, {self.ratio:.0%}"

    @property
    def label(self) -> str:
        """The name in rows."""
        return f"{self.group}, {self.coordinator}"

    def levels(self, footprint: int, way: Way = FREE) -> list[dict[str, Any]]:
        """Return both levels for a trace of `footprint` distinct pages, with the servers' time added to the link."""
        algorithm = ALGORITHMS[NAMES[self.algorithm]]
        upper = max(1, round(paper.SHARES[self.setting] * footprint))
        lower = max(1, round(self.ratio * upper))
        return [
            {"name": "L1", "blocks": upper, **algorithm},
            {"name": "L2", "blocks": lower, **algorithm, "link": link(way), "coordinator": self.coordinator},
        ]

    def scenario(self, workload: Workload, way: Way = FREE) -> dict[str, Any]:
        """Return the whole scenario, with the servers' own time added to the links.

        If the next request waits for a reply, it reaches L1 `near_ns` after the think time.
        """
        section: dict[str, Any] = {
            "trace": str(workload.trace),
            "format": "csv",
            "block_size": "4KiB",
            "issue": "whole",
            "placement": "address",
        }
        section |= {"arrival": "open"} if workload.open else {"compute_scale": (THINK_NS + way.near_ns) / THINK_NS}
        return {
            "workload": section,
            "level": self.levels(workload.footprint, way) + to_disk(way),
            "device": {"model": self.disk, "scheduler": "deadline"},
            "host": {"driver_overhead": "0s"},
        }


def cases(disks: list[str], workloads: list[str], *, quick: bool) -> list[Case]:
    """Return the matrix in order; `quick`: two algorithms, H, L2 as large as L1, none and PFC."""
    algorithms = ("ra", "linux") if quick else tuple(NAMES)
    settings, ratios = (("H",), (1.0,)) if quick else (SETTINGS, RATIOS)
    coordinators = ("none", "pfc") if quick else COORDINATORS
    return [Case(*each) for each in itertools.product(disks, workloads, algorithms, settings, ratios, coordinators)]

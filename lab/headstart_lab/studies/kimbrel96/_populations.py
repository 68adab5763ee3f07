"""The populations that findings are checked on, and the words for their figures."""

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence

from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._lab import count
from headstart_lab.studies.kimbrel96._traces import Think, Workload

Place = tuple[Workload, int]
"""A configuration: a workload and a number of disks."""

ROUNDING = 0.05
"""The paper prints one decimal of a percent: what rounds to its figure agrees."""


@dataclasses.dataclass(frozen=True)
class Population:
    """Workloads with one kind of think time, on the arrays of the paper."""

    think: Think
    workloads: Sequence[Workload]
    disks: Sequence[int] = paper.DISKS

    @property
    def label(self) -> str:
        """The name in rows."""
        return f"stand-ins with think times {self.think}"

    def __iter__(self) -> Iterator[Place]:
        return ((workload, disks) for workload in self.workloads for disks in self.disks)

    @property
    def caveat(self) -> str:
        """What distinguishes them from the paper's traces."""
        if self.think == "as recorded":
            means = [1000 * workload.compute_ms_mean for workload in self.workloads]
            return (
                f"As recorded a read computes {min(means):.0f} to {max(means):.0f} us on the mean, less than the "
                f"{paper.DRIVER_OVERHEAD_MS} ms of driver overhead of the paper's machine: programs of one age on a "
                "machine of another, nearly always I/O-bound, where an extra fetch costs more than it can hide"
            )
        return (
            "Stand-ins have the paper's mean think time, not its distribution, placement or pattern; a request of "
            "several blocks reads them without computing in between"
        )

    @property
    def size(self) -> str:
        """The number of configurations in words."""
        total = len(self.workloads) * len(self.disks)
        return f"{total} configurations, {len(self.workloads)} traces on {len(self.disks)} arrays"


def few(names: Sequence[str]) -> str:
    """Return the first of these names, and how many others there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} others" if len(names) > 5 else "")


def at(place: Place) -> str:
    """Return a configuration in words."""
    workload, disks = place
    return f"{workload.stand_in.name} on {count(disks)}"


def spread(values: Mapping[Place, float]) -> str:
    """Return least, median and greatest of a figure in percent, and where."""
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return (
        f"{values[low]:.1f} % ({at(low)}), median {statistics.median(values.values()):.1f} %, "
        f"{values[high]:.1f} % ({at(high)})"
    )

"""What the items share: scenarios by workload, policy and disks, the scan of reverse aggressive, and phrases.

Settings of the paper unless a row says otherwise: HP 97560 drives, CSCAN, stripe unit of one block, 0.5 ms of driver
overhead a request, cache and disks of section 3, H = 62, batches of Table 6.

A processor twice as fast halves the think times and the driver overhead: both are processor time. The paper speaks
of the processor only; that the overhead halves too is our reading.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headstart._environment import TRACES_VARIABLE
from headstart_lab.studies import _lab
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._draws import Draw
from headstart_lab.studies.kimbrel96._outcome import Cell, Outcome
from headstart_lab.studies.kimbrel96._traces import Traces, Workload

Policy = dict[str, Any]

DEMAND: Policy = {"name": "demand", "replacement": "min"}

SCAN_RATIOS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Reverse aggressive's F in our scan, as multiples of 10 ms over the mean think time."""

SCAN_SERVICE_MS = 10.0
"""A typical service time of the drive on these traces, used only as the middle of the scan."""

SCAN_BATCHES = (4, 16, 40, 80)
"""Reverse aggressive's batches in our scan, backwards and forwards alike."""

SCAN_NOTE = (
    f"F and batch are scanned: the best of {len(SCAN_RATIOS)} x {len(SCAN_BATCHES)}; the paper does not print its own"
)

STALL_SHARE = 0.001
"""Ours: stalls of at most this share of the elapsed time are "eliminated"; the first fetch is always waited for."""

SYNTH_COMPUTE_MS = 1.0
"""Mean think time of synth (section 3.1)."""


def fixed_horizon(horizon: int = paper.HORIZON) -> Policy:
    """Return fixed horizon with H."""
    return {"name": "fixed-horizon", "horizon": horizon}


def aggressive(batch: int) -> Policy:
    """Return aggressive with a batch size."""
    return {"name": "aggressive", "batch_size": batch}


def reverse_aggressive(ratio: float, batch: int) -> Policy:
    """Return reverse aggressive with F and a batch size for both passes."""
    return {"name": "reverse-aggressive", "fetch_ratio": ratio, "batch_size": batch}


def forestall(batch: int, ratio: float | str = "dynamic") -> Policy:
    """Return forestall with a batch size and F'."""
    return {"name": "forestall", "batch_size": batch, "fetch_ratio": ratio}


PRACTICAL: dict[str, Callable[[int], Policy]] = {
    "fixed horizon": lambda _disks: fixed_horizon(),
    "aggressive": lambda disks: aggressive(paper.table6(disks)),
    "forestall": lambda disks: forestall(paper.table6(disks)),
}
"""The three practical algorithms, by disks."""


class Lab(_lab.Lab[Outcome]):
    """The laboratory with the traces, and scenarios made of both."""

    outcome = Outcome

    @functools.cached_property
    def traces(self) -> Traces:
        """The stand-ins; looked for when an item first needs them."""
        return Traces(self)

    def cell(
        self,
        workload: Workload | Draw,
        policy: Policy,
        disks: int,
        *,
        frames: int | None = None,
        scheduler: str = "cscan",
        speed: int = 1,
    ) -> Cell:
        """Ask for a run on a stand-in or a rebuilt trace."""
        section = workload.section(speed)
        scenario = _scenario(section, policy, disks, frames or workload.frames, scheduler, speed)
        if isinstance(workload, Draw):
            scenario["seed"] = workload.seed
        return self.ask(scenario)

    def synth(self, policy: Policy, disks: int, drive: Mapping[str, Any] | None = None, seed: int = 1) -> Cell:
        """Ask for a run on synth, with the think times of Table 3, on HP 97560s or other drives.

        `seed` draws the think times.
        """
        total = f"{paper.TABLE_3['synth'].compute_s}s"
        section = {"generator": "synth", "compute_total": total}
        scenario = _scenario(section, policy, disks, paper.CACHE_BLOCKS, "cscan", 1)
        if drive is not None:
            scenario["device"]["model"] = dict(drive)
        scenario["seed"] = seed
        return self.ask(scenario)

    def reverse_scan(
        self,
        workload: Workload | Draw | None,
        disks: int,
        ratios: Sequence[float] = SCAN_RATIOS,
        batches: Sequence[int] = SCAN_BATCHES,
    ) -> list[tuple[Policy, Cell]]:
        """Ask for every F and batch of the scan, on a stand-in, a rebuilt trace or (`None`) on synth."""
        mean_ms = SYNTH_COMPUTE_MS if workload is None else workload.compute_ms_mean
        policies = [
            reverse_aggressive(_three_digits(ratio * SCAN_SERVICE_MS / mean_ms), batch)
            for ratio, batch in itertools.product(ratios, batches)
        ]
        if workload is None:
            return [(policy, self.synth(policy, disks)) for policy in policies]
        return [(policy, self.cell(workload, policy, disks)) for policy in policies]

    def skipped(self, *traces: str) -> list[Row]:
        """Return a row for each absent stand-in, of those for these traces of Table 3 if any is named."""
        return [
            unpublished(
                f"{each.folder}/{each.name}",
                None,
                note=f"SKIPPED: the trace is absent. Put it in {each.folder}/ of the folder that "
                f"${TRACES_VARIABLE} names",
            )
            for each in self.traces.missing
            if not traces or each.stands_for in traces
        ]


def together(parts: list[Steps]) -> Steps:
    """Advance several parts of an item together; their rows follow one another."""
    done: dict[int, list[Row]] = {}
    while len(done) < len(parts):
        for index, part in enumerate(parts):
            if index not in done:
                try:
                    next(part)
                except StopIteration as end:
                    done[index] = end.value
        yield
    return [row for index in range(len(parts)) for row in done[index]]


def best(scan: list[tuple[Policy, Cell]]) -> tuple[Policy, Outcome]:
    """Return the fastest of a scan, the first of equals."""
    policy, cell = min(scan, key=lambda pair: pair[1].outcome.elapsed_s)
    return policy, cell.outcome


def chosen(policy: Policy) -> str:
    """Return F and batch of a scanned policy in words."""
    return f"F {policy['fetch_ratio']:g}, batch {policy['batch_size']}"


def slower_percent(ours: float, other: float) -> float:
    """Return by how many percent `ours` takes longer than `other`."""
    return 100 * (ours - other) / other


def saved_percent(ours: float, other: float) -> float:
    """Return what share of `other` is saved, in percent."""
    return 100 * (other - ours) / other


def count(disks: int) -> str:
    """Return "1 disk" or "n disks"."""
    return "1 disk" if disks == 1 else f"{disks} disks"


def _three_digits(value: float) -> float:
    return round(value, 2 - math.floor(math.log10(value)))


def _scenario(
    section: Mapping[str, Any], policy: Policy, disks: int, frames: int, scheduler: str, speed: int
) -> dict[str, Any]:
    return {
        # The paper's traces are of single blocks.
        "workload": {"issue": "blocks", **section},
        "cache": {"blocks": frames},
        "policy": policy,
        "device": {"model": "hp97560", "count": disks, "scheduler": scheduler},
        "host": {"driver_overhead": f"{paper.DRIVER_OVERHEAD_MS / speed}ms"},
    }

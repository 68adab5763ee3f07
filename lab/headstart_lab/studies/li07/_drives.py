"""Figure 4: rate and seek time of the drives, measured as a program would, on the simulated drives.

The rate at a place is that of a read of 128 MiB there, in one command: the drive's own, without the turns that reads
one after another lose between them (a row says what of 1 MiB each comes to; how long the paper's commands were is
not printed). The seek time by distance is the profile's curve. That the array's seek is the drive's is the paper's
assumption too.
"""

import dataclasses
import statistics
from typing import Final

import headstart
from headstart.devices import survey
from headstart_lab.studies._lab import Cell, Steps
from headstart_lab.studies._rows import Row, finding, number, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._outcome import Outcome
from headstart_lab.studies.li07._system import DEVICES, FREE_BUS, IBM, Case, Keys, Lab

SPAN: Final = 128 << 20
"""Bytes read at a place."""
SHORT: Final = 1 << 20
"""Bytes of each read, for sequential reads."""
PLACES: Final = 16
"""Number of places, evenly over the drive, both ends included."""
MEASURED: Final[dict[str, Keys]] = {
    "IBM": IBM,
    "IBM, Linux 2.6.16": FREE_BUS,
    "Seagate": DEVICES["Seagate"],
    "RAID0": DEVICES["RAID0"],
}
PRINTED: Final = {"IBM": "ibm", "Seagate": "seagate", "RAID0": "raid0"}


@dataclasses.dataclass(frozen=True)
class Curve:
    """Rates of a device by place."""

    name: str
    places_gb: list[float]
    cells: list[Cell[Outcome]]

    @property
    def rates_mb(self) -> list[float]:
        """10^6 bytes a second, by place."""
        return [cell.outcome.throughput_mb for cell in self.cells]

    @property
    def mean_mb(self) -> float:
        """The mean over places."""
        return statistics.fmean(self.rates_mb)


def figure4(lab: Lab) -> Steps:
    """Figure 4: sequential rate by place and seek time of two drives and an array."""
    curves = rates(lab)
    short = [rate_curve(lab, name, DEVICES[name], SHORT) for name in PRINTED]
    yield
    rows = [
        number(
            f"sequential rate, {curve.name} (MB/s)",
            published=paper.RATE_MB[PRINTED[curve.name]],
            ours=round(curve.mean_mb, 1),
            tolerance=paper.ARRAY if curve.name == "RAID0" else paper.PROFILE,
            basis="input" if curve.name == "RAID0" else "calibrated",
            note=f"measured at {PLACES} places: {_ends(curve)}",
        )
        for curve in curves
        if curve.name in PRINTED
    ]
    rows += [
        unpublished(
            f"rate of 1 MiB reads one after another, {curve.name} (MB/s)",
            round(curve.mean_mb, 1),
            note="the next command comes when the last one is answered",
        )
        for curve in short
    ]
    rows += [_seek(name) for name in ("IBM", "Seagate")]
    rows.append(_limit(*curves[:2]))
    depth = curves[-1].mean_mb * (paper.SEEK_MS["raid0"])
    rows.append(
        number(
            "depth of the array, from its measured rate (KB)",
            published=paper.DEPTH_KB["raid0"],
            ours=round(depth, 1),
            tolerance=paper.ARRAY,
            basis="input",
            note="with the printed switch of 7.98 ms; the paper takes the drive's for the array's",
        )
    )
    return rows


def rates(lab: Lab) -> list[Curve]:
    """Ask for the rates of all devices by place."""
    return [rate_curve(lab, name, device, SPAN) for name, device in MEASURED.items()]


def rate_curve(lab: Lab, name: str, device: Keys, read: int, data_drives: int | None = None) -> Curve:
    """Ask for the rates of a device by place; it holds what `data_drives` drives do, or all of its drives."""
    drive = headstart.device(str(device["model"]))
    capacity = int(drive.capacity_bytes or 0) * (data_drives or int(device.get("count", 1)))
    last = capacity - SPAN
    starts = [last * place // (PLACES - 1) // SHORT * SHORT for place in range(PLACES)]
    cells = [lab.one(Case(name, sequential(lab, start, read), device), {"name": "demand"}) for start in starts]
    return Curve(name, [start / 1e9 for start in starts], cells)


def _ends(curve: Curve) -> str:
    return f"{curve.rates_mb[0]:.1f} at the start, {curve.rates_mb[-1]:.1f} at the end"


def _seek(name: str) -> Row:
    mechanics = headstart.device(str(DEVICES[name]["model"])).mechanics
    seek_ms = mechanics.seek_ns.mean / 1e6 if mechanics else 0.0
    printed = paper.SEEK_MS[PRINTED[name]]
    whole = name != "IBM"
    return number(
        f"average {'switch' if whole else 'seek'} between two random places, {name} (ms)",
        published=printed,
        ours=round(seek_ms + (paper.ROTATION_MS if whole else 0.0), 2),
        tolerance=paper.PROFILE,
        basis="input",
        note="printed as the seek; its depth fits it only with the rotation of 3.00 ms in it (see theory)"
        if whole
        else "",
    )


def _limit(ibm: Curve, free: Curve) -> Row:
    flat = max(ibm.rates_mb)
    return finding(
        "the IBM drive's rate on Linux 2.6.10",
        published=f"held at {paper.RATE_LIMIT_MB} MB/s by software, not on 2.6.16",
        ours=f"{flat:.1f} MB/s at most, without the limit {max(free.rates_mb):.1f}",
        holds=abs(flat / paper.RATE_LIMIT_MB - 1) <= paper.PROFILE and max(free.rates_mb) > flat * (1 + paper.BETTER),
        tolerance="as printed within 1 %, and above it without the limit",
        basis="input",
        note=f"2.6.10: {_ends(ibm)}; 2.6.16: {_ends(free)}; the profile's bus is the limit, its media are guesses",
    )


def seek_curve(name: str) -> list[tuple[float, float]]:
    """Return share of the cylinders crossed and seek time in ms."""
    drive = str(DEVICES[name]["model"])
    points = survey(drive).seek
    most = max(point["distance_cylinders"] for point in points)
    return [(point["distance_cylinders"] / most, point["ns"] / 1e6) for point in points]


def sequential(lab: Lab, start: int, read: int) -> dict[str, object]:
    """Return a workload of reads one after another from byte `start` on; its trace is written if need be."""
    path = lab.scratch / f"sequential-{start}-{read}.csv"
    if not path.exists():  # Else a run of another device may be reading it.
        lines = [f"{at},{read}\n" for at in range(start, start + SPAN, read)]
        path.write_text("".join(["offset,size\n", *lines]), encoding="utf-8")
    return {"trace": str(path), "placement": "address", "processes": "merged", "block_size": "64KiB"}

"""The array that the paper measured and left out: RAID5 of five Seagate drives (section 5), beside RAID0 of two.

Each drive's bus is what it is in our RAID0, half of the printed 80.9 MB/s; the work of the controller on parity, to
which the paper puts down the lower rate, is not modelled, and nothing of it is printed. Units are those of the RAID0.
"""

from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07 import _reasons as why
from headstart_lab.studies.li07._claims import half_of_oracle, noted, rate_row, time_row
from headstart_lab.studies.li07._drives import SPAN, Curve, rate_curve
from headstart_lab.studies.li07._servers import NAMES
from headstart_lab.studies.li07._system import DEVICES, RAID0, Case, Lab, Runs, server, tools

DRIVES: Final = 5
RAID5: Final[dict[str, Any]] = RAID0 | {"count": DRIVES, "array": "raid5"}


def raid5(lab: Lab) -> Steps:
    """Section 5: rate of a RAID5 of five drives, and what CP brings on it, beside the RAID0 of two."""
    rates = {name: rate_curve(lab, name, device, SPAN, data) for name, (device, data) in _ARRAYS.items()}
    servers = [_server(lab, generator) for generator in ("two-rand", "index-search")]
    diffs = [lab.runs(Case(f"{name} on RAID5", tools(size, diffs=2), RAID5)) for name, size in _DIFFS]
    yield
    return [
        *(_rate(each) for each in rates.values()),
        _lower(rates["RAID5"], rates["RAID0"]),
        _deeper(rates["RAID5"]),
        *(rate_row(each) for each in servers),
        *(time_row(each) for each in diffs),
        half_of_oracle("Two-Rand-0 on RAID5: CP beside OPT", servers[:1]),
    ]


_ARRAYS: Final = {"RAID0": (DEVICES["RAID0"], 2), "RAID5": (RAID5, DRIVES - 1)}
"""By name: the device, and how many drives' worth of data it holds."""
_DIFFS: Final = (("2diff5", 5), ("2diff50", 50))


def _server(lab: Lab, generator: str) -> Runs:
    return lab.runs(Case(f"{NAMES[generator]} on RAID5", server(generator, paper.FIGURE_11_CLIENTS), RAID5))


def _rate(found: Curve) -> Row:
    return unpublished(f"sequential rate, {found.name} (MB/s)", round(found.mean_mb, 1))


def _lower(array: Curve, beside: Curve) -> Row:
    return finding(
        "rate of RAID5 of five drives beside RAID0 of two",
        published="a lower transfer rate, by the overhead of RAID5 processing",
        ours=f"{array.mean_mb:.1f} beside {beside.mean_mb:.1f} MB/s",
        holds=array.mean_mb < beside.mean_mb,
        tolerance="lower",
        note=noted("16 places", why.PARITY, array.mean_mb < beside.mean_mb),
    )


def _deeper(array: Curve) -> Row:
    depth = array.mean_mb * paper.SEEK_MS["raid0"]
    alone = paper.DEPTH_KB["seagate"]
    return finding(
        "depth of the RAID5, from its rate (KB)",
        published="arrays often desire larger depths than a drive",
        ours=f"{depth:.0f} beside {alone:g} of the drive",
        holds=depth > alone,
        tolerance="larger",
        note="with the printed switch of 7.98 ms",
    )

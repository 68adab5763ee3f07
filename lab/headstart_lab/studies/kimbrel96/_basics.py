"""Figure 1's instance and the drive of Table 1."""

from typing import Any

from headstart.registry import catalog
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, number, unpublished
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._lab import DEMAND, Lab, Policy
from headstart_lab.studies.kimbrel96._outcome import Outcome

UNIT_MS = 1.0
"""Milliseconds that stand for one time unit of the theory."""

PAPER_FIGURE_1 = "Figure 1 and section 1.2"
FIGURE_1: dict[str, tuple[Policy, float, str]] = {
    "aggressive": ({"name": "aggressive", "batch_size": 1}, 7, f"{PAPER_FIGURE_1}, schedule (a)"),
    "fixed horizon, H = F": (
        {"name": "fixed-horizon", "horizon": 2},
        7,
        f"{PAPER_FIGURE_1}: fixed horizon behaves as aggressive here",
    ),
    "optimum": ({"name": "optimum"}, 6, f"{PAPER_FIGURE_1}: schedule (b), which evicts d first"),
}
"""Time units as printed."""

FIGURE_1_MORE: dict[str, Policy] = {
    "demand with optimal replacement": DEMAND,
    "fixed horizon, H = 1": {"name": "fixed-horizon", "horizon": 1},
    "forestall, F' = F, horizon 0": {"name": "forestall", "fetch_ratio": 2, "batch_size": 1, "horizon": 0},
    "reverse aggressive, F = 2": {"name": "reverse-aggressive", "fetch_ratio": 2, "batch_size": 1},
}
"""On the same instance, not in the figure."""


def _figure1_scenario(policy: Policy) -> dict[str, Any]:
    return {
        "workload": {"references": ["A", "b", "C", "d", "E", "F"], "compute": f"{UNIT_MS}ms"},
        "cache": {"blocks": 4, "initial": ["A", "b", "d", "F"]},
        "policy": policy,
        "device": {"model": "uniform", "fetch_time": f"{2 * UNIT_MS}ms", "layout": [["A", "C", "E", "F"], ["b", "d"]]},
    }


def figure1(lab: Lab) -> Steps:
    """Time units that each algorithm takes on Figure 1's instance."""
    printed = {name: lab.ask(_figure1_scenario(policy)) for name, (policy, _, _) in FIGURE_1.items()}
    more = {name: lab.ask(_figure1_scenario(policy)) for name, policy in FIGURE_1_MORE.items()}
    yield
    rows = [
        number(
            f"{name}: elapsed (time units)",
            published=FIGURE_1[name][1],
            ours=1000 * cell.outcome.elapsed_s / UNIT_MS,
            note=FIGURE_1[name][2],
        )
        for name, cell in printed.items()
    ]
    for name, cell in more.items():
        units = 1000 * cell.outcome.elapsed_s / UNIT_MS
        quantity = f"{name}: elapsed (time units)"
        rows.append(unpublished(quantity, units, note="same instance, not in the figure"))
    return rows


ACCESS_REQUESTS = 20_000
"""Random reads that measure the mean access time."""

ACCESS_TOLERANCE = 0.05

SECTOR_BYTES = paper.TABLE_1["sector (bytes)"]


def table1(lab: Lab) -> Steps:
    """The HP 97560: what its profile holds, and the mean access time that comes of it."""
    drive = next(row for row in catalog()["devices"] if row["name"] == "hp97560")["keys"]
    (zone,) = drive["zones"]
    cylinder_blocks = drive["surfaces"] * zone["sectors_per_track"] * SECTOR_BYTES / 8192
    access = lab.ask(
        {
            "workload": {
                "generator": "random",
                "requests": ACCESS_REQUESTS,
                "blocks": int(zone["cylinders"] * cylinder_blocks),
                "compute": "100ms",
            },
            "cache": {"blocks": 1},
            "policy": "demand",
            "device": {"model": "hp97560", "count": 1},
            "host": {"driver_overhead": "0s"},
        }
    )
    yield
    held = {
        "sectors of a track": zone["sectors_per_track"],
        "tracks of a cylinder": drive["surfaces"],
        "cylinders": zone["cylinders"],
        "rotational speed (rpm)": drive["rpm"],
        "disk cache (KiB)": float(drive["buffer"]["size"].removesuffix("KiB")),
        "bus (MB/s)": drive["bus"]["bytes_per_second"] / 1e6,
    }
    note = "an input: the drive's profile holds what this table says"
    rows = [
        number(name, published=paper.TABLE_1[name], ours=value, basis="input", note=note)
        for name, value in held.items()
    ]
    constant_ms, root_ms = (float(time.removesuffix("ms")) for time in drive["seek"]["root"])
    derived = {
        "blocks of 8 KB in 100 cylinders (section 3.2)": (paper.GROUP_BLOCKS, 100 * cylinder_blocks),
        "longest seek within 100 cylinders (ms; section 3.2)": (paper.GROUP_SEEK_MS, constant_ms + root_ms * 10),
    }
    for name, (published, ours) in derived.items():
        rows.append(
            number(
                name, published=published, ours=ours, tolerance=1e-9, basis="identity", note="follows from the profile"
            )
        )
    rows.append(_access(access.outcome))
    return rows


def _access(run: Outcome) -> Row:
    parts = run.service_parts_ms
    told = ", ".join(f"{name} {parts[name]:.2f}" for name in parts)
    return number(
        "mean access time of 8 KB (ms)",
        published=paper.ACCESS_8K_MS,
        ours=run.service_ms,
        tolerance=ACCESS_TOLERANCE,
        note=f"simulated: {ACCESS_REQUESTS} reads at random over the whole drive, 100 ms apart: {told} ms. The paper "
        "takes its figure from the makers' sheet and says neither over which distances nor with which overhead: "
        f"without ours it would be {run.service_ms - parts['overhead']:.2f} ms, without the transfer "
        f"{run.service_ms - parts['transfer']:.2f} ms. The tolerance is ours",
    )

"""What each shipped device makes of plain reads, beside its data sheet: the table in docs/devices.md.

Sequential: 64 MiB from the outer edge in requests of 64 KiB, the next issued when the last is done. Random: 2,000 reads
of 4 KiB at even places of the whole device, one at a time. Both through the simulator, by demand and by Linux's
read-ahead (as the registry has it), with a cache of 8 MiB and without any host cost.
"""

from dataclasses import dataclass
from typing import Any

import headstart

SEQUENTIAL_BYTES = 64 << 20
BLOCK_BYTES = 4096
BLOCKS_MAX = (1 << 32) - 2
"""As a workload may have; on a larger device the random reads, and their places, are of 8 KiB."""
REQUEST_BLOCKS = 16
RANDOM_READS = 2_000
POLICIES = ("demand", "linux")
LEFT_OUT = {"uniform"}
"""It has neither data sheet nor place, and its time is a key."""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """What is published. `None`: nothing at hand."""

    mb_per_s: float | None = None
    random_ms: float | None = None
    average: bool = False
    """The rate is the mean over the drive, not that of its outer edge."""
    source: str


MEASURED_BUS = Sheet(source="none at hand; extracted over a bus of about 5 MB/s, which limits the rate")
SHEETS = {
    "hp97560": Sheet(source="none at hand; Ruemmler and Wilkes 1994 print its parts"),
    "seagate-cheetah-9lp": MEASURED_BUS,
    "seagate-cheetah-4lp": MEASURED_BUS,
    "seagate-barracuda-st32171w": MEASURED_BUS,
    "quantum-atlas-10k": MEASURED_BUS,
    "ibm-0661": Sheet(source="none at hand"),
    "ibm-36gb-10k": Sheet(
        mb_per_s=37.3, random_ms=10.53, average=True, source="li07 section 5: rate, seek and half a turn"
    ),
    "seagate-146gb-10k": Sheet(mb_per_s=55.8, random_ms=7.98, average=True, source="li07 section 5, the same"),
    "seagate-exos-x20": Sheet(mb_per_s=285, source="Seagate's data sheet: at most, sustained"),
    "nvme": Sheet(
        mb_per_s=7450, random_ms=1e3 / 22_000, source="Samsung 990 PRO data sheet: queues full; queue depth 1"
    ),
    "nvme-gen5": Sheet(mb_per_s=14_000, random_ms=0.06, source="Micron 9550 MAX, 2024: queues full; typical latency"),
    "sata-ssd": Sheet(mb_per_s=560, random_ms=1e3 / 13_000, source="Samsung 870 EVO data sheet, the same"),
    "object-store": Sheet(
        mb_per_s=90, random_ms=150, source="S3 User Guide: 85 to 90 MB/s a connection; 100 to 200 ms"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One device; pairs are by demand and by Linux's read-ahead."""

    name: str
    mb_per_s: tuple[float, float]
    random_ms: tuple[float, float]
    ceiling_mb_per_s: float
    """What the slower of media and bus, or all channels at once, can give at the outer edge."""
    mean_mb_per_s: float | None
    """The mean of outer and inner zone, no more than the bus gives."""
    arm_ms: float | None
    """Mean seek and half a turn, of a drive with an arm."""
    turn_ms: float
    sheet: Sheet


def measured() -> list[Row]:
    """Return a row for each shipped device, in the registry's order."""
    names = [entry["name"] for entry in headstart.catalog()["devices"]]
    return [_row(name) for name in names if name not in LEFT_OUT]


def _row(name: str) -> Row:
    device = headstart.device(name)
    block_bytes = BLOCK_BYTES
    while (device.capacity_bytes or 0) // block_bytes > BLOCKS_MAX:
        block_bytes *= 2
    blocks = (device.capacity_bytes or 1 << 40) // block_bytes
    sequential = {
        "generator": "sequential",
        "blocks": SEQUENTIAL_BYTES // BLOCK_BYTES,
        "request_blocks": REQUEST_BLOCKS,
    }
    random = {"generator": "random", "blocks": blocks, "requests": RANDOM_READS, "block_size": f"{block_bytes}B"}
    rates = [SEQUENTIAL_BYTES * 1e3 / _elapsed_ns(name, policy, sequential) for policy in POLICIES]
    times = [_elapsed_ns(name, policy, random) / RANDOM_READS / 1e6 for policy in POLICIES]
    limits = device.sequential_bytes_per_s
    bus = _bus(device.keys.get("bus"))
    outer = limits.get("outer", limits.get("all_in_parallel", 0)) / 1e6
    drive = device.mechanics
    return Row(
        name=name,
        mb_per_s=(rates[0], rates[1]),
        random_ms=(times[0], times[1]),
        ceiling_mb_per_s=min(outer, bus),
        mean_mb_per_s=min((outer + limits["inner"] / 1e6) / 2, bus) if drive else None,
        arm_ms=(drive.seek_ns.mean + drive.revolution_ns / 2) / 1e6 if drive else None,
        turn_ms=drive.revolution_ns / 1e6 if drive else 0.0,
        sheet=SHEETS[name],
    )


def _elapsed_ns(name: str, policy: str, workload: dict[str, Any]) -> int:
    scenario = {
        "workload": {"block_size": f"{BLOCK_BYTES}B", "issue": "whole", "compute": "0s", **workload},
        "cache": {"size": "8MiB"},
        "policy": {"name": policy},
        "device": {"model": name, "scheduler": "fcfs"},
        "host": {"driver_overhead": "0s"},
    }
    return headstart.simulate(scenario).elapsed_ns


def _bus(keys: Any) -> float:
    """Return the rate of the bus in MB/s; infinite where a device has none of its own."""
    if not keys:
        return float("inf")
    if "bytes_per_second" in keys:
        return float(keys["bytes_per_second"]) / 1e6
    text = str(keys["sector_time"])
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    unit = next(unit for unit in units if text.endswith(unit))
    return 512 / (float(text.removesuffix(unit)) * units[unit]) / 1e6


def implausible(row: Row) -> list[str]:
    """Return what is wrong with a row, in sentences.

    Nothing reads faster than media and bus let it (2 % for what the buffer holds at the end). A drive with an arm that
    is read in order loses no more than 30 % of that by demand, where one without a buffer waits for the turn behind a
    request, and 20 % with read-ahead. Read-ahead costs a sequential or random reader no more than 2 %. A random read
    takes the mean seek and half a turn, and beyond that the controller and 4 KiB: less than a quarter of a turn and
    3 ms. A data sheet's rate is met within 5 % by the mean over the drive where it says that, else never exceeded by
    2 %; its random time is met within 15 %, which is what it leaves out (overhead, transfer) or rounds. The object
    store's guide gives a range, 100 to 200 ms: within a third of its middle.
    """
    sheet, (demand, linux), (random, random_linux) = row.sheet, row.mb_per_s, row.random_ms
    claims = {
        "faster than media and bus": max(demand, linux) <= 1.02 * row.ceiling_mb_per_s,
        "read-ahead slows a sequential reader": linux >= 0.98 * demand,
        "read-ahead slows a random reader": random_linux <= 1.02 * random,
    }
    if row.arm_ms is not None:
        claims["far below media and bus by demand"] = demand >= 0.7 * row.ceiling_mb_per_s
        claims["far below media and bus with read-ahead"] = linux >= 0.8 * row.ceiling_mb_per_s
        # 2,000 random places leave some 1 % to chance.
        claims["random reads without an arm's time"] = random >= 0.97 * row.arm_ms
        claims["random reads too slow"] = random <= row.arm_ms + row.turn_ms / 4 + 3
    if sheet.mb_per_s is not None and sheet.average and row.mean_mb_per_s is not None:
        claims["not the data sheet's mean rate"] = abs(row.mean_mb_per_s / sheet.mb_per_s - 1) <= 0.05
    elif sheet.mb_per_s is not None:
        claims["faster than the data sheet"] = max(demand, linux) <= 1.02 * sheet.mb_per_s
    if sheet.random_ms is not None:
        limit = 0.15 if row.name != "object-store" else 0.34
        claims["not the data sheet's random time"] = abs(random / sheet.random_ms - 1) <= limit
    return [f"{row.name}: {claim}" for claim, holds in claims.items() if not holds]


def cells(row: Row) -> tuple[str, ...]:
    """Return the row as the docs show it."""
    sheet = row.sheet
    rate = "" if sheet.mb_per_s is None else f"{sheet.mb_per_s:,g}{' on average' if sheet.average else ''}"
    random = "" if sheet.random_ms is None else f"{sheet.random_ms:.3g}"
    numbers = [f"{each:,.3g}" if each < 1_000 else f"{each:,.0f}" for each in (*row.mb_per_s, row.ceiling_mb_per_s)]
    return (f"`{row.name}`", *numbers, rate, *(f"{each:.3g}" for each in row.random_ms), random, sheet.source)


HEADER = (
    "device",
    "sequential MB/s, demand",
    "linux",
    "media and bus",
    "published",
    "random 4 KiB ms, demand",
    "linux",
    "published",
    "source",
)

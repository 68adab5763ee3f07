"""Finds the prefetch depth that removes the stall of data-parallel training.

Eight ranks share the samples of an epoch, know the sampler's order beforehand, and meet after each step:

    python examples/training.py

For each trace, device and think time: the share of the time that is lost to I/O with fixed-horizon prefetching 1, 2,
4, ... 1024 references of all ranks ahead, and with aggressive and forestall; the least depth that loses under 1 %; and
the depth that a line of arithmetic predicts (`predicted`). docs/training.md says what the figures depend on.
"""

import argparse
import dataclasses
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import headstart

ROOT = Path(__file__).resolve().parent.parent
DLIO = ROOT.parent / "shared/traces/third-party/files/dlio_unet3d.csv.xz"
DEPTHS = [2**power for power in range(11)]
OTHERS = ["aggressive", "forestall"]
LOST_MAX = 0.01
RANKS = 8
LIMIT_MIN = 600


@dataclasses.dataclass(frozen=True)
class Training:
    """A trace, and what ranks read of it without thinking in between."""

    name: str
    scenario: dict[str, Any]
    burst: int
    """References of all ranks."""
    new_share: float
    """How many of an epoch's references are a block's first."""
    thinks: dict[str, dict[str, Any]]
    """What a step's think time is, and the keys of `[workload]` that say so."""


def folder_of_images() -> Training:
    """Return a folder of images, of which each rank reads one, thinks, reads the next."""
    scenario = tomllib.loads((ROOT / "examples/training.toml").read_text(encoding="utf-8"))
    scenario["workload"]["trace"] = str(ROOT / scenario["workload"]["trace"])
    return Training("ml_folder", scenario, RANKS, 1.0, {each: {"compute": each} for each in ("20ms", "10ms")})


def volumes() -> Training:
    """Return UNet3D: each rank reads 4 volumes of 147 MB (26 references each), thinks, and meets the others."""
    workload = {"trace": str(DLIO), "processes": "per-pid", "block_size": "8MiB", "writes": "skip"}
    process = {"barrier": {"every": 4 * 26}}
    scenario = {"workload": workload, "process": process, "cache": {"size": "10GiB"}}
    scenario["host"] = {"driver_overhead": "0s"}
    thinks = {"recorded": {"compute_scale": 1}, "4 x recorded": {"compute_scale": 4}}
    return Training("dlio_unet3d", scenario, RANKS * 4 * 26, 18 / 26, thinks)


def run(base: dict[str, Any], think: dict[str, Any], policy: dict[str, Any] | str, device: Any) -> headstart.Result:
    """Run one scenario."""
    # Block by block: depths and the period of the barrier count blocks.
    workload = {**base["workload"], **think, "issue": "blocks"}
    return headstart.simulate({**base, "workload": workload, "policy": policy, "device": device})


def after_first_step(result: headstart.Result) -> int:
    """Return the time from the first meeting on: nothing can hide the wait for the first blocks."""
    first: int = result.intervals[0]["end_ns"]
    return result.elapsed_ns - first


def nanoseconds(text: str) -> float:
    """Return a time of a scenario."""
    for unit, factor in (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)


def response(device: dict[str, Any], block: int) -> tuple[float, float]:
    """Return how long a block takes, in seconds, and how many a second the device gives, by the device's own keys.

    Of an object store the time is one that 99 of 100 requests keep, since the slowest rank holds up all.
    """
    if device["name"] == "object-store":
        transfer = block / device["connection_bytes_per_second"]
        median = nanoseconds(device["latency"]) / 1e9
        rate = device["connections"] / (median + transfer)
        return nanoseconds(device["latency_p99"]) / 1e9 + transfer, min(rate, device["reads_per_second"] or rate)
    first = (nanoseconds(device["read_overhead"]) + nanoseconds(device["read_time"])) / 1e9
    return first + block / device["link_bytes_per_second"], device["link_bytes_per_second"] / block


def predicted(training: Training, free: headstart.Result, device: dict[str, Any], block: int) -> int | None:
    """Return the depth by Little's law: what is read at one go, and what is used up while a block is on its way.

    None where the device cannot deliver new blocks as fast as they are used up: then no depth is enough.
    """
    used_per_second = free.references / (free.elapsed_ns / 1e9)
    seconds, delivered_per_second = response(device, block)
    if used_per_second * training.new_share > delivered_per_second:
        return None
    return training.burst + round(used_per_second * seconds)


def rows(training: Training, depths: Sequence[int], limit: int | None) -> Iterable[list[str]]:
    """Yield the table's rows."""
    base = training.scenario
    if limit:
        base = {**base, "workload": {**base["workload"], "limit": limit}}
    block = {"128KiB": 128 << 10, "8MiB": 8 << 20}[base["workload"]["block_size"]]
    policies: list[dict[str, Any] | str] = [{"name": "fixed-horizon", "horizon": depth} for depth in depths]
    for think, keys in training.thinks.items():
        free = run(base, keys, "demand", {"model": "uniform", "fetch_time": "1ns"})
        for device in ("object-store", "nvme"):
            results = [
                run(base, keys, policy, {"model": device, "scheduler": "fcfs"}) for policy in [*policies, *OTHERS]
            ]
            lost = [1 - after_first_step(free) / after_first_step(result) for result in results]
            enough = next((at for at in range(len(depths)) if lost[at] < LOST_MAX), None)
            depth = None if enough is None else depths[enough]
            shown = results[len(depths) - 1 if enough is None else enough]
            prediction = predicted(training, free, shown.scenario["device"]["model"], block)
            stall = shown.stall_ns / (len(shown.processes) * shown.elapsed_ns)
            yield [
                training.name,
                think,
                device,
                *(f"{100 * max(share, 0):.1f}" for share in lost),
                "none" if depth is None else str(depth),
                "none" if prediction is None else str(prediction),
                f"{100 * stall:.1f}",
                f"{shown.prefetches * block / 1e9:.2f}",
                f"{100 * shown.prefetches_late / max(shown.prefetches, 1):.0f}",
            ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depths", default=",".join(map(str, DEPTHS)), help="references ahead, a,b,c")
    parser.add_argument("--limit", type=int, help="requests of a trace at most")
    parser.add_argument("--markdown", action="store_true", help="a table for docs/training.md")
    given = parser.parse_args(arguments)
    if given.limit is not None and given.limit < LIMIT_MIN:
        parser.error(f"argument --limit: {given.limit} requests hold no two steps; allowed: from {LIMIT_MIN}")
    depths = [int(depth) for depth in given.depths.split(",")]
    trainings = [folder_of_images()]
    if DLIO.exists():
        trainings.append(volumes())
    else:
        print(f"dlio_unet3d is left out: {DLIO} does not exist", file=sys.stderr)
    header = ["trace", "think time", "device", *map(str, depths), *OTHERS]
    header += ["enough", "predicted", "stall %", "prefetched GB", "late %"]
    found = [row for training in trainings for row in rows(training, depths, given.limit)]
    if given.markdown:
        lines = [header, ["---"] * 3 + ["---:"] * (len(header) - 3), *found]
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
        return
    table = Table(title="% of the time lost to I/O after the first step, by prefetch depth")
    for at, name in enumerate(header):
        table.add_column(name, justify="left" if at < 3 else "right")
    for row in found:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 200).print(table)


if __name__ == "__main__":
    main()

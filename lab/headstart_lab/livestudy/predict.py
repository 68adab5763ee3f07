"""The simulator's prediction for the same workload: the same reads, places of files and drive."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headstart
from headstart import kernels
from headstart_lab.livestudy.image import BLOCK, Placed
from headstart_lab.livestudy.measure import Host
from headstart_lab.livestudy.workloads import Workload

CACHE = "2GiB"
"""More than any workload reads: the kernel's page cache is also as large as needed."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The expected result of a run."""

    elapsed_ns: int
    requests: int
    bytes: int
    busy_ns: int


def table(files: Sequence[Placed]) -> list[tuple[str, int]]:
    """Return the disk as consecutive files, each with a start block: names and bytes. Gaps have no name."""
    rows: list[tuple[str, int]] = []
    at = 0
    for file in sorted(files, key=lambda each: each.first_block):
        if file.first_block > at:
            rows.append(("", (file.first_block - at) * BLOCK))
        rows.append((file.name, file.size))
        at = file.first_block + -(-file.size // BLOCK)
    return rows


def write_trace(path: Path, workload: Workload, files: Sequence[Placed]) -> None:
    """Write the reads to `path`, NAME.csv, and the table of the files' places beside it."""
    rows = table(files)
    number = {name: index for index, (name, _) in enumerate(rows) if name}
    lines = ["pid,file,offset,size"]
    for pid, reads in enumerate(workload.readers):
        lines += [f"{pid},{number[read.file]},{read.offset},{read.size}" for read in reads]
    path.write_text("\n".join([*lines, ""]), encoding="ascii")
    places = ["file,max_offset,disk_size,path"]
    places += [f"{index},{size},{size},{name}" for index, (name, size) in enumerate(rows)]
    path.with_suffix(".files.csv").write_text("\n".join([*places, ""]), encoding="ascii")


def read_ahead(read_ahead_kb: int, release: str, max_request_kb: int) -> dict[str, Any]:
    """Return the policy that reads ahead like a kernel of that release."""
    depth, most = f"{read_ahead_kb}KiB", f"{max_request_kb}KiB"
    return {"name": "linux", "version": kernels.version(release), "read_ahead": depth, "max_request": most}


def scenario(trace: Path, profile: str, policy: dict[str, Any], host: Host) -> dict[str, Any]:
    """Return the scenario for a trace of `write_trace`: a page cache, the way to the drive, a drive that takes turns.

    The way is a level without blocks: it passes requests on and adds the cost of its link.
    """
    return {
        "workload": {
            "trace": str(trace),
            "block_size": f"{BLOCK}B",
            "processes": "per-pid",
            "issue": "whole",
            "compute": "0us",
            "placement": "table-order",
        },
        "level": [
            {"name": "page cache", "size": CACHE, "policy": policy},
            {"name": "way to the drive", "blocks": 0, "link": {"alpha": f"{host.request_ns}ns", "beta": "0us"}},
        ],
        "device": {"model": profile, "scheduler": "fcfs"},
        "host": {
            # Included in the way to the drive.
            "driver_overhead": "0s",
            "system_call": f"{host.system_call_ns}ns",
            "copy_per_kib": f"{host.copy_per_kib_ns}ns",
        },
    }


def predict(found: dict[str, Any]) -> Prediction:
    """Simulate a scenario of `scenario`."""
    result = headstart.simulate(found).to_dict()
    (device,) = result["devices"]
    return Prediction(
        elapsed_ns=result["elapsed_ns"],
        requests=device["requests"],
        bytes=device["blocks"] * BLOCK,
        busy_ns=device["busy_ns"],
    )

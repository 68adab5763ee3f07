"""The runs of headstart by simulation, beside what was measured.

A scenario has what is known before a run: the order, the time of computing, the cache, and the settings of the proxy.
Nothing of it is fitted to a measurement. As in a run, the order goes on after the last step.

    python benches/store/predict.py --data /var/tmp/store --results results.jsonl
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caches import STEPS_AHEAD
from rig import SUPPLIES, Supply
from workloads import COLD_STEPS, COMPUTE_S, NEED_BYTES_PER_S, RUN_STEPS, Workload, load

import headstart

BLOCK_BYTES = 1024
"""Ranges are rounded up to blocks: half a block of 128 KiB."""
TOLD_STEPS = 512
"""Steps that are simulated, of up to 3200: with those after the last one that runs, what is kept for later is known."""
REQUESTS = 64
"""The store's `--requests`."""
FAST = 1_000_000_000
"""Bytes a second of one connection: the loopback. The proxy limits all of them together."""


@dataclass(frozen=True)
class Run:
    """Times of the steady part, and bytes until its end."""

    steady_s: float
    moved_bytes: float


def write_trace(workload: Workload, folder: Path) -> Path:
    """Write the order as a trace: a file an object, and a think time after the last range of each step."""
    numbers: dict[str, int] = {}
    ends: dict[str, int] = defaultdict(int)
    lines = ["time,op,file,offset,size,think"]
    for number, step in enumerate(workload.steps[:TOLD_STEPS]):
        for place, item in enumerate(workload.items[index] for index in step):
            file = numbers.setdefault(item.key, len(numbers))
            ends[item.key] = max(ends[item.key], item.offset + item.length)
            think = COMPUTE_S if place == len(step) - 1 else 0
            lines.append(f"{number * COMPUTE_S},R,{file},{item.offset},{item.length},{think}")
    table = ["file,max_offset,disk_size,path", *(f"{numbers[key]},{end},{end},{key}" for key, end in ends.items())]
    (folder / f"{workload.name}.files.csv").write_text("\n".join(table) + "\n")
    trace = folder / f"{workload.name}.csv"
    trace.write_text("\n".join(lines) + "\n")
    return trace


def scenario(workload: Workload, supply: Supply, trace: Path) -> dict[str, Any]:
    """Return the run as a scenario."""
    store = {
        "name": "object-store",
        "latency": f"{supply.median_ms}ms",
        "latency_p99": f"{supply.p99_ms}ms",
        "connection_bytes_per_second": FAST,
        "connections": REQUESTS,
        "reads_per_second": 0,
        "network_bytes_per_second": int(supply.of_need * NEED_BYTES_PER_S),
    }
    ahead = int(STEPS_AHEAD * COMPUTE_S * NEED_BYTES_PER_S)
    return {
        "workload": {"trace": str(trace), "block_size": f"{BLOCK_BYTES}B"},
        "cache": {"size": f"{workload.cache_bytes + ahead}B"},
        "policy": "headstart-store",
        "device": {"model": store, "scheduler": "fcfs"},
        # The daemon sends the requests, not the reader.
        "host": {"driver_overhead": "0s"},
    }


def predict(workload: Workload, supply: Supply, folder: Path) -> Run:
    """Simulate a run."""
    run = headstart.timelines.run(scenario(workload, supply, write_trace(workload, folder)))
    first = blocks_before(workload)
    begins: dict[int, int] = {}
    read = 0
    for event in run.of("reference"):
        begins.setdefault(read, event["start_ns"])
        read += len(event["blocks"])
    end = begins[first[RUN_STEPS]]
    moved = sum(len(event["blocks"]) * arrived(event, end) for event in run.of("service"))
    return Run((end - begins[first[COLD_STEPS]]) / 1e9, moved * BLOCK_BYTES)


def blocks_before(workload: Workload) -> list[int]:
    """Return the number of blocks that are read before each step."""
    found = [0]
    for step in workload.steps[:TOLD_STEPS]:
        ranges = [workload.items[index] for index in step]
        found.append(
            found[-1] + sum(1 + (r.offset + r.length - 1) // BLOCK_BYTES - r.offset // BLOCK_BYTES for r in ranges)
        )
    return found


def arrived(event: dict[str, Any], end_ns: int) -> float:
    """Return the share of a request that has arrived, as if it came evenly: the proxy counts bytes as they pass."""
    return min(max((end_ns - event["start_ns"]) / (event["end_ns"] - event["start_ns"]), 0.0), 1.0)


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of run.py")
    parser.add_argument("--results", type=Path, required=True, help="what run.py wrote")
    told = parser.parse_args()
    measured: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in told.results.read_text().splitlines():
        row = json.loads(line)
        if row["system"] == "headstart" and "error" not in row:
            measured[row["supply"], row["workload"]].append(row)
    print("| supply | workload | steady s | predicted s | % | bytes, MB | predicted | % |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    workloads = load(told.data)
    with tempfile.TemporaryDirectory() as folder:
        for (supply, name), rows in measured.items():
            run = predict(workloads[name], SUPPLIES[supply], Path(folder))
            steady = statistics.median(row["steady_s"] for row in rows)
            moved = statistics.median(row["bytes"] for row in rows)
            print(
                f"| {supply} | {name} | {steady:.2f} | {run.steady_s:.2f} | {100 * (run.steady_s / steady - 1):+.1f} | "
                f"{moved / 1e6:.1f} | {run.moved_bytes / 1e6:.1f} | {100 * (run.moved_bytes / moved - 1):+.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""One reader: takes all steps of a workload from one system, computes for each, and tells how long it waited.

Runs as a process of its own, which `run.py` starts; writes JSON into its scratch folder.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
import zlib
from pathlib import Path
from typing import Any

import rig
from systems import SYSTEMS
from workloads import COLD_STEPS, COMPUTE_S, Workload, load

RESULT = "result.json"
ENOUGH = 1e-6
"""Shares of a step add up to whole steps but for rounding."""


def check(workload: Workload, step: int, bodies: list[Any]) -> None:
    """End the run unless these are the bytes of the step."""
    for item, body in zip(workload.steps[step], bodies, strict=True):
        if zlib.crc32(body) != workload.items[item].crc:
            raise SystemExit(f"{workload.items[item].key}: step {step} got other bytes")


def read(workload: Workload, system: Any, port: int) -> dict[str, Any]:
    """Take the steps; times in seconds. Each pair has the cold part first, then the steady one."""
    took, stalled = [0.0, 0.0], [0.0, 0.0]
    first_s: list[float] = []
    cold_bytes = 0
    rig.reset(port)
    for number, steps in enumerate(workload.epochs()):
        done, place = float(steps.start), steps.start
        before = time.perf_counter()
        batches = iter(system.epoch(number, steps))
        while done < steps.stop - ENOUGH:
            share, bodies = next(batches, (0.0, None))
            if not share:
                raise SystemExit(f"epoch {number} ended {steps.stop - done:.2f} steps early")
            got = time.perf_counter()
            if bodies is not None:
                check(workload, place, bodies)
                place += 1
            if done == steps.start:
                first_s.append(got - before)
            steady = done >= COLD_STEPS
            time.sleep(COMPUTE_S * min(share, steps.stop - done))
            done += share
            after = time.perf_counter()
            took[steady] += after - before
            stalled[steady] += got - before
            before = after
            if not cold_bytes and done >= COLD_STEPS - ENOUGH:
                cold_bytes = rig.counters(port)["bytes"]
                before = time.perf_counter()
    return {
        "cold_s": took[0],
        "steady_s": took[1],
        "stall_s": stalled[1],
        "first_s": first_s,
        "cold_bytes": cold_bytes,
        "report": system.report() if hasattr(system, "report") else None,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        **rig.counters(port),
    }


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("system")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    told = parser.parse_args()
    os.environ.update(rig.KEYS, AWS_DEFAULT_REGION=rig.KEYS["AWS_REGION"])
    workload = load(told.data)[told.workload]
    system = SYSTEMS[told.system].open(workload, told.port, told.scratch)
    (told.scratch / RESULT).write_text(json.dumps(read(workload, system, told.port)))
    # Threads and workers of some systems do not end by themselves.
    os._exit(0)


if __name__ == "__main__":
    main()

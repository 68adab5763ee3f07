"""The store's prototype beside its peers: six workloads, each system, in front of a store that is slow.

Needs Linux, some 10 GB of disk, nginx with its slice module, curl, a Python environment with the packages that the
README beside this file lists, and versitygw (`go install github.com/versity/versitygw/cmd/versitygw@latest`).

    python benches/store/run.py --versitygw ~/go/bin/versitygw --data /var/tmp/store --results results.jsonl
    python benches/store/run.py --results results.jsonl --table
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import data
import table
from reader import RESULT
from rig import HERE, SUPPLIES, options_of, s3_server, slow_store
from systems import SYSTEMS
from workloads import NEED_BYTES_PER_S, load, optimum

Run = tuple[str, str, str, int]
"""Supply, workload, system, round."""
TIMEOUT_S = 240


def measure(run: Run, upstream: int, told: argparse.Namespace) -> dict[str, Any]:
    """Let one reader read through a slow store of its own."""
    supply, workload, system, seed = run
    scratch = told.data / "scratch" / "-".join(map(str, run))
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    options = [*options_of(SUPPLIES[supply], NEED_BYTES_PER_S, seed), f"--refused={told.refused}"]
    with slow_store(upstream, *options) as port:
        command = [sys.executable, str(HERE / "reader.py"), workload, system, "--port", str(port)]
        command += ["--data", str(told.data), "--scratch", str(scratch)]
        with (scratch / "errors").open("w") as errors:
            reader = subprocess.Popen(command, stdout=errors, stderr=errors, start_new_session=True, cwd=scratch)
            with contextlib.suppress(subprocess.TimeoutExpired):
                reader.wait(TIMEOUT_S)
            # Its workers, and nginx, are of its session.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(reader.pid, signal.SIGKILL)
            reader.wait()
        result = scratch / RESULT
        why = (scratch / "errors").read_text()[-600:]
        found: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {"error": why or "no answer"}
    shutil.rmtree(scratch, ignore_errors=True)
    return {"supply": supply, "workload": workload, "system": system, "round": seed, **found}


def main() -> None:
    """Read the options, run what is not in the results yet, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versitygw", default="versitygw", help="the server of S3")
    parser.add_argument("--data", type=Path, help="folder for the store's objects and scratch files")
    parser.add_argument("--results", type=Path, required=True, help="a line of JSON for each run; is added to")
    parser.add_argument("--supply", nargs="*", default=list(SUPPLIES), choices=list(SUPPLIES))
    parser.add_argument("--workload", nargs="*", help="default: all")
    parser.add_argument("--system", nargs="*", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--rounds", nargs="*", type=int, default=[1, 2, 3], help="seeds of the delays")
    parser.add_argument("--jobs", type=int, default=3, help="runs at a time, each before a store of its own")
    parser.add_argument("--refused", type=float, default=0.0, help="share of the requests that get 503")
    parser.add_argument("--table", action="store_true", help="only print the table")
    told = parser.parse_args()
    if not told.table:
        told.data = told.data.resolve()
        run_all(told)
    print(table.text([json.loads(line) for line in told.results.read_text().splitlines()]))


def run_all(told: argparse.Namespace) -> None:
    """Run what is not in the results yet."""
    done = set()
    if told.results.exists():
        for line in told.results.read_text().splitlines():
            row = json.loads(line)
            done.add((row["supply"], row["workload"], row["system"], row["round"]))
    with s3_server(told.versitygw, told.data) as upstream:
        data.fill(upstream, told.data)
        if any(SYSTEMS[system].group == "converted" for system in told.system):
            importlib.import_module("convert").convert(upstream, told.data)
        workloads = load(told.data)
        least = {name: optimum(workload) for name, workload in workloads.items()}
        runs: list[Run] = [
            (supply, workload, system, seed)
            for seed in told.rounds
            for supply in told.supply
            for workload in told.workload or workloads
            for system in told.system
            if workload in SYSTEMS[system].workloads and (supply, workload, system, seed) not in done
        ]
        lock = Lock()

        def one(run: Run) -> None:
            began = time.monotonic()
            row = measure(run, upstream, told)
            row["optimum_bytes"] = least[run[1]]
            with lock, told.results.open("a") as results:
                results.write(json.dumps(row) + "\n")
            tail = row.get("error") or f"steady {row['steady_s']:.2f} s, stall {row['stall_s']:.3f} s"
            print(*run, f"{time.monotonic() - began:.0f} s:", tail, flush=True)

        with ThreadPoolExecutor(told.jobs) as pool:
            list(pool.map(one, runs))


if __name__ == "__main__":
    main()

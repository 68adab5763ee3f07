"""References per second and peak memory, each beside its goal, in one run on one machine.

Every figure is measured in a process of its own: wall time of the simulation as a user starts it (reading the trace,
hashing it and making the result included), peak resident memory of that process. Times are the best of several
rounds, taken in turn, because other work on the machine only ever adds to them. Compare figures of one run only.

Goals: LRU demand at least twice libcachesim's `process_trace` on the same 20-million-request trace; forestall and
aggressive 2 million references a second, reverse aggressive 0.5 million, on `synth` lengthened to 2 million references
on 4 HP 97560 drives. Run with `make bench`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import headstart

ZIPF_REQUESTS = 20_000_000
ZIPF_OBJECTS = 1_000_000
ZIPF_CACHE = 100_000
SYNTH_PASSES = 1_000
SYNTH_REFERENCES = SYNTH_PASSES * 2_000
PEER = "libcachesim"


@dataclass(frozen=True)
class Measurement:
    """One round of one benchmark: references, wall seconds, peak resident bytes, and a figure to check it by."""

    references: int
    seconds: float
    peak_bytes: int
    check: int


def lru(trace: str) -> tuple[int, int]:
    """Demand fetching under LRU of the zipf trace; returns (references, misses)."""
    scenario = {
        "workload": {"trace": trace, "format": "oracleGeneral", "block_size": "object", "compute": "0s"},
        "cache": {"blocks": ZIPF_CACHE},
        "policy": {"name": "demand", "replacement": "lru"},
        "device": {"model": "uniform", "fetch_time": "1ms", "scheduler": "fcfs"},
    }
    result = headstart.simulate(scenario).to_dict()
    return result["references"], result["misses"]


def peer(trace: str) -> tuple[int, int]:
    """The same by libcachesim."""
    import libcachesim  # type: ignore[import-not-found, import-untyped, unused-ignore]

    parameters = libcachesim.ReaderInitParam(ignore_obj_size=True)
    kind = libcachesim.TraceType.ORACLE_GENERAL_TRACE
    reader = libcachesim.TraceReader(trace=trace, trace_type=kind, reader_init_params=parameters)
    miss_ratio, _ = libcachesim.LRU(cache_size=ZIPF_CACHE).process_trace(reader)
    return ZIPF_REQUESTS, round(miss_ratio * ZIPF_REQUESTS)


def synth(policy: dict[str, Any]) -> tuple[int, int]:
    """A hinted policy on `synth`, 2 million references, 4 HP 97560 drives; returns (references, fetches)."""
    scenario = {
        "workload": {"generator": "synth", "passes": SYNTH_PASSES},
        "cache": {"blocks": 1280},
        "policy": policy,
        "device": {"model": "hp97560", "count": 4},
        "host": {"driver_overhead": "0.5ms"},
    }
    result = headstart.simulate(scenario).to_dict()
    return result["references"], result["fetches"]


SYNTH_POLICIES: dict[str, tuple[dict[str, Any], float]] = {
    "forestall": ({"name": "forestall"}, 2e6),
    "aggressive": ({"name": "aggressive"}, 2e6),
    # F and batch: the pair that our scan found best on three disks.
    "reverse-aggressive": ({"name": "reverse-aggressive", "fetch_ratio": 40, "batch_size": 4}, 0.5e6),
    "fixed-horizon": ({"name": "fixed-horizon"}, 0.0),
}


def measure_here(name: str, trace: str) -> Measurement:
    """Runs one benchmark in this process."""
    start = time.perf_counter()
    if name == "lru":
        references, check = lru(trace)
    elif name == PEER:
        references, check = peer(trace)
    else:
        references, check = synth(SYNTH_POLICIES[name][0])
    seconds = time.perf_counter() - start
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measurement(references, seconds, peak_bytes, check)


def measure(name: str, trace: str) -> Measurement:
    """Runs one benchmark in a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--trace", trace]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    # The peer prints to stdout too: the measurement is the last line.
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


def show(best: dict[str, Measurement]) -> None:
    """Prints the table."""
    table = Table(title="References per second (best round) and peak memory")
    for column in ("benchmark", "references", "seconds", "million/s", "goal", "peak MiB", "check"):
        table.add_column(column, justify="left" if column == "benchmark" else "right")
    ours = best["lru"]
    for name, each in best.items():
        rate = each.references / each.seconds
        goal = "-"
        if name == "lru" and PEER in best:
            ratio = best[PEER].seconds / ours.seconds
            goal = f"{ratio:.2f} x {PEER} (goal 2)"
        elif SYNTH_POLICIES.get(name, ({}, 0.0))[1]:
            goal = f"{SYNTH_POLICIES[name][1] / 1e6:g}"
        label = f"{name} (zipf trace)" if name in ("lru", PEER) else f"{name} (synth, 4 disks)"
        check = f"{each.check:,} {'misses' if name in ('lru', PEER) else 'fetches'}"
        peak = f"{each.peak_bytes / 2**20:.0f}"
        table.add_row(label, f"{each.references:,}", f"{each.seconds:.2f}", f"{rate / 1e6:.2f}", goal, peak, check)
    Console(width=120).print(table)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the best of each counts (default 3)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--trace", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(vars(measure_here(arguments.one, arguments.trace))))
        return
    names = ["lru", *SYNTH_POLICIES]
    if importlib.util.find_spec(PEER):
        names.insert(1, PEER)
    else:
        print(f"{PEER} is not installed: no ratio (pip install '.[bench]')", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder) / "zipf.oracleGeneral.bin")
        keys = {"requests": ZIPF_REQUESTS, "blocks": ZIPF_OBJECTS, "alpha": 1.0, "compute": "0s"}
        generate(trace, keys)
        best: dict[str, Measurement] = {}
        rounds = [(turn, name) for turn in range(arguments.rounds) for name in names]
        for _, name in track(rounds, description="measuring", console=Console(stderr=True)):
            each = measure(name, trace)
            if name not in best or each.seconds < best[name].seconds:
                best[name] = each
    show(best)


def generate(trace: str, keys: dict[str, Any]) -> None:
    """Writes the zipf trace."""
    from headstart import _core

    _core.trace_generate("zipf", trace, to="oracleGeneral", keys=json.dumps(keys), seed=1)


if __name__ == "__main__":
    main()

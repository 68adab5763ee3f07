"""Peak memory over the length of a trace: it has to stay flat.

    python benches/memory.py --requests 20000000,200000000

Traces are oracleGeneral, 24 bytes a request, of 100,000 objects that are drawn with a skew; each is written, read by
each command in a process of its own, and removed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

COMMAND = Path(sys.executable).with_name("headstart")
OBJECTS = 100_000
CHUNK = 1 << 20
RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
SCENARIO = """
workload = {trace = "trace.bin", format = "oracleGeneral", block_size = "object", compute = "0s"}
cache = {blocks = 10_000}
device = {model = "uniform", fetch_time = "1ms"}
"""
COMMANDS = {
    "simulate": "simulate one.toml --json simulate.json",
    "trace info": "trace info trace.bin --format oracleGeneral --json info.json",
    "curve": "curve trace.bin --format oracleGeneral --block-size object --policies lru --points 3 --json curve.json",
}


def generate(path: Path, requests: int) -> None:
    """Write a trace whose objects are the cubes of uniform numbers: the first ones are read most."""
    drawn = np.random.default_rng(1)
    with path.open("wb") as file:
        for first in range(0, requests, CHUNK):
            records = np.zeros(min(CHUNK, requests - first), RECORD)
            records["time"] = (np.arange(first, first + len(records)) // 1000).astype("<u4")
            records["id"] = (drawn.random(len(records)) ** 3 * OBJECTS).astype("<u8")
            records["size"] = 4096
            records["next"] = -1
            records.tofile(file)


def measure(words: list[str], folder: Path) -> tuple[float, int]:
    """Return the seconds and the peak memory in bytes of a command."""
    began = time.monotonic()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(words)}: ended with status {status}")
    return time.monotonic() - began, used.ru_maxrss * 1024


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", default="2000000,20000000", help="lengths (default 2000000,20000000)")
    parser.add_argument("--folder", type=Path, help="where the traces are written; by default the temporary folder")
    given = parser.parse_args()
    table = Table(title="Peak memory over the length of a trace")
    for column in ("command", "requests", "seconds", "MiB"):
        table.add_column(column, justify="left" if column == "command" else "right")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        (folder / "one.toml").write_text(SCENARIO, encoding="utf-8")
        for requests in map(int, given.requests.split(",")):
            generate(folder / "trace.bin", requests)
            for label, words in COMMANDS.items():
                took_s, peak_bytes = measure([str(COMMAND), *words.split()], folder)
                table.add_row(label, f"{requests:,}", f"{took_s:.1f}", f"{peak_bytes / 2**20:,.0f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

"""Sweeps: how much of two processors they use, and what they save against one command for each run.

Both are ratios of times of one run of this program, the best of several rounds taken in turn. Goals: at least 95 % of
twice one worker's rate with two workers; a grid of 100 cases on one trace at least 3 times as fast as 100 `simulate`
commands. Run with `make bench`, or alone: `python benches/sweep.py`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headstart import sweeps

ROOT = Path(__file__).resolve().parent.parent
TRACE = ROOT / "examples" / "traces" / "cscope2.csv.xz"
COMMAND = Path(sys.executable).with_name("headstart")
COMMANDS = 20
"""Of the 100 commands, those that are timed."""
LONG = {
    "workload": {"generator": "zipf", "requests": 5_000_000, "blocks": 100_000, "compute": "0s"},
    "device": {"model": "uniform", "fetch_time": "1ms"},
    "grid": {"cache.blocks": list(range(10_000, 10_040))},
}
"""40 runs of half a second."""
SHORT = {
    "workload": {"trace": str(TRACE), "addresses": "compact-chunks"},
    "grid": {"cache.blocks": list(range(300, 1300, 100)), "policy.name": ["demand", "linux"], "seed": [1, 2, 3, 4, 5]},
}
"""100 runs of one trace."""


def user_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def seconds(grid: dict[str, Any], folder: Path, workers: int | None) -> float:
    """The time of a sweep into a folder of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder) as out:
        sweeps.run(sweeps.read(grid), Path(out), workers=workers)
    return time.monotonic() - began


def commands(folder: Path) -> float:
    """The time that 100 commands would take, of some of them."""
    scenario = folder / "scenario.toml"
    scenario.write_text(f'workload = {{trace = "{TRACE}", addresses = "compact-chunks"}}\n', encoding="utf-8")
    words = [str(COMMAND), "simulate", str(scenario), "--set", "cache.blocks=640", "--json", str(folder / "out.json")]
    began = time.monotonic()
    for _ in range(COMMANDS):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic() - began) * 100 / COMMANDS


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the best of each counts (default 3)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measures = {
            "one": lambda: seconds(LONG, folder, 1),
            "two": lambda: seconds(LONG, folder, 2),
            "grid": lambda: seconds(SHORT, folder, None),
            "commands": lambda: commands(folder),
        }
        best = dict.fromkeys(measures, float("inf"))
        user = dict.fromkeys(measures, float("inf"))
        for _ in range(rounds):
            for each, measure in measures.items():
                before = user_seconds()
                best[each] = min(best[each], measure())
                user[each] = min(user[each], user_seconds() - before)
    table = Table(title="Sweeps (best round)")
    for column in ("benchmark", "seconds", "against", "ratio", "goal"):
        table.add_column(column, justify="left" if column == "benchmark" else "right")
    ratios = {
        "40 long runs, 2 workers": (best["two"], f"{best['one']:.2f} with 1", best["one"] / best["two"] / 2, "95%"),
        "100 runs of one trace": (best["grid"], f"{best['commands']:.2f} as commands", None, "3 x"),
    }
    for label, (took, against, share, goal) in ratios.items():
        ratio = f"{best['commands'] / best['grid']:.1f} x" if share is None else f"{share:.1%}"
        table.add_row(label, f"{took:.2f}", against, ratio, goal)
    console = Console(width=110)
    console.print(table)
    console.print(f"user time of the long runs: {user['one']:.2f} s with 1 worker, {user['two']:.2f} s with 2")


if __name__ == "__main__":
    main()

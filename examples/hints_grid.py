"""Compares a hinted policy with every other one over a grid of traces, devices and think times, by fixed criteria.

    python examples/hints_grid.py grid.jsonl                  # run what is missing, then judge
    python examples/hints_grid.py grid.jsonl --sample 200     # 200 cases drawn from the grid
    python examples/hints_grid.py grid.jsonl --judge          # judge what there is

The grid: every recorded program (those of `examples/traces`, and of `--traces DIR`) x seven devices, of 1990 to today
x 1, 4 and 16 of them x think times as recorded, ten times longer and ten times shorter x hints complete or a window of
1,000 references. Every other policy also runs with eight settings and counts with its best one in each case: nobody
could tune it so well.

Criteria, set down before the policy was written. In each case, by elapsed time, the policy is

- never more than 1 % slower than demand fetching with LRU and Linux's read-ahead as Linux has it (128 KiB);
- within 3 % of the best of all other policies in 95 % of the cases, and within 10 % in all of them;
- and over all cases at least 3 % faster than forestall as it is by default, in the geometric mean.

Each run is one line of the file, written when it is done: what has run is not run again.
"""

import argparse
import dataclasses
import itertools
import json
import random
import statistics
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import headstart

ROOT = Path(__file__).resolve().parent.parent
DEVICES = [
    "hp97560",
    "seagate-cheetah-9lp",
    "seagate-exos-x20",
    "ibm-36gb-10k",
    "sata-ssd",
    "nvme",
    "object-store",
]
COUNTS = [1, 4, 16]
THINKS = [1.0, 10.0, 0.1]
WINDOWS: list[int | None] = [None, 1000]
CACHE = "10MiB"
LINUX = "linux"
FORESTALL = "forestall"
BATCHES = [1, 4, 16, 40, 80, 160, 320, 640]
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "demand": [],
    "linux": [{"read_ahead": f"{2**power}KiB"} for power in range(5, 13)],
    "fixed-horizon": [{"horizon": horizon} for horizon in (8, 16, 32, 62, 128, 256, 512, 1024)],
    "aggressive": [{"batch_size": size} for size in BATCHES],
    "forestall": [{"batch_size": size} for size in BATCHES],
    "reverse-aggressive": [{"fetch_ratio": ratio} for ratio in (1, 2, 4, 8, 16, 32, 64, 128)],
}
"""By policy: the settings of which the best counts. Beside them every policy runs as it is by default."""
HINTED = {"fixed-horizon", "aggressive", "forestall", "reverse-aggressive"}

SLOWER_THAN_LINUX = 0.01
CLOSE, CLOSE_SHARE, CLOSE_ALL = 0.03, 0.95, 0.10
AHEAD_OF_FORESTALL = 0.03


@dataclasses.dataclass(frozen=True)
class Case:
    """One workload on one machine."""

    trace: str
    device: str
    count: int
    think: float
    window: int | None

    def scenario(self, path: Path, policy: dict[str, Any], limit: int | None) -> dict[str, Any]:
        """Return the scenario of this case under `policy`."""
        hinted = policy["name"] not in ("demand", LINUX)
        workload: dict[str, Any] = {"trace": str(path), "addresses": "auto", "compute_scale": self.think}
        workload["issue"] = "blocks" if hinted else "whole"
        if limit is not None:
            workload["limit"] = limit
        if hinted and self.window is not None:
            policy = {**policy, "hints": {"window": self.window}}
        device = {"model": self.device, "count": self.count}
        return {"workload": workload, "policy": policy, "cache": {"size": CACHE}, "device": device}

    def __str__(self) -> str:
        """A name for tables and files."""
        return f"{self.trace} {self.count}x{self.device} think*{self.think:g} window={self.window or 'all'}"


def traces(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the recorded programs by name."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.csv.xz")):
            name = path.name.removesuffix(".csv.xz")
            if not name.endswith(".files"):
                found.setdefault(name, path)
    return found


def cases(names: Iterable[str]) -> list[Case]:
    """Return the grid over these traces."""
    return [Case(*each) for each in itertools.product(names, DEVICES, COUNTS, THINKS, WINDOWS)]


def runs(policy: str) -> Iterator[dict[str, Any]]:
    """Return every run of a case: the policy that is judged, and the others with their settings."""
    yield {"name": policy}
    for name, settings in SETTINGS.items():
        for keys in itertools.chain([{}], settings):
            yield {"name": name, **keys}


def key(case: Case, policy: dict[str, Any]) -> str:
    """Return what names a run in the file. A window says nothing to policies without hints."""
    window = case.window if policy["name"] in HINTED or policy["name"] not in SETTINGS else None
    return json.dumps([*dataclasses.astuple(dataclasses.replace(case, window=window)), policy], sort_keys=True)


def read(path: Path) -> dict[str, int]:
    """Return the elapsed times in the file by run; a last line that is not whole does not count."""
    elapsed: dict[str, int] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                run, time = json.loads(line)
            except json.JSONDecodeError:
                continue
            elapsed[json.dumps(run, sort_keys=True)] = time
    return elapsed


def fill(grid: Sequence[Case], paths: dict[str, Path], arguments: argparse.Namespace) -> None:
    """Run what is missing."""
    done = read(arguments.file)
    wanted = arguments.run
    todo: dict[str, tuple[Case, dict[str, Any]]] = {}
    for case in grid:
        for policy in runs(arguments.policy):
            run = key(case, policy)
            if run not in done and (wanted is None or policy["name"] in wanted):
                todo.setdefault(run, (case, policy))
    lock = threading.Lock()
    with arguments.file.open("a", encoding="utf-8") as file, ThreadPoolExecutor(arguments.jobs) as pool:

        def one(item: tuple[str, tuple[Case, dict[str, Any]]]) -> None:
            run, (case, policy) = item
            result = headstart.simulate(case.scenario(paths[case.trace], policy, arguments.limit))
            with lock:
                file.write(f"[{run}, {result.elapsed_ns}]\n")
                file.flush()

        for _ in track(
            pool.map(one, todo.items()), total=len(todo), description="runs", disable=not sys.stderr.isatty()
        ):
            pass


@dataclasses.dataclass(frozen=True)
class Verdict:
    """How the judged policy did in one case, as ratios of elapsed times: below 1 it is faster."""

    case: Case
    to_linux: float
    to_best: float
    best: str
    to_forestall: float


def verdicts(grid: Iterable[Case], elapsed: dict[str, int], policy: str) -> list[Verdict]:
    """Return the verdict of each case whose runs are all there."""
    found = []
    for case in grid:
        times = {json.dumps(each): elapsed.get(key(case, each)) for each in runs(policy)}
        mine = times.pop(json.dumps({"name": policy}))
        if mine is None or any(time is None for time in times.values()):
            continue
        others = {name: time for name, time in times.items() if time is not None}
        best = min(others, key=others.__getitem__)
        linux, forestall = others[json.dumps({"name": LINUX})], others[json.dumps({"name": FORESTALL})]
        found.append(Verdict(case, mine / linux, mine / others[best], best, mine / forestall))
    return found


def judge(found: Sequence[Verdict], console: Console, *, worst: int) -> bool:
    """Print how the criteria are met, by device and in all; return whether they are."""
    table = Table("device", "cases", "slower than Linux", "worst", "within 3 %", "within 10 %", "worst", "to forestall")
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in found:
        groups[verdict.case.device].append(verdict)
    for device, members in [*((name, groups[name]) for name in DEVICES if name in groups), ("all", list(found))]:
        to_best = [verdict.to_best for verdict in members]
        forestall = statistics.geometric_mean(verdict.to_forestall for verdict in members)
        table.add_row(
            device,
            str(len(members)),
            str(sum(verdict.to_linux > 1 + SLOWER_THAN_LINUX for verdict in members)),
            f"{max(verdict.to_linux for verdict in members):.3f}",
            f"{100 * statistics.mean(ratio <= 1 + CLOSE for ratio in to_best):.1f} %",
            f"{100 * statistics.mean(ratio <= 1 + CLOSE_ALL for ratio in to_best):.1f} %",
            f"{max(to_best):.3f}",
            f"{forestall:.3f}",
        )
    console.print(table)
    for verdict in sorted(found, key=lambda each: -each.to_best)[:worst]:
        console.print(f"{verdict.to_best:.3f} of {verdict.best}; {verdict.to_linux:.3f} of Linux: {verdict.case}")
    ratios = [verdict.to_best for verdict in found]
    return (
        all(verdict.to_linux <= 1 + SLOWER_THAN_LINUX for verdict in found)
        and statistics.mean(ratio <= 1 + CLOSE for ratio in ratios) >= CLOSE_SHARE
        and max(ratios) <= 1 + CLOSE_ALL
        and statistics.geometric_mean(verdict.to_forestall for verdict in found) <= 1 - AHEAD_OF_FORESTALL
    )


def main() -> int:
    """Run the grid and judge it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where elapsed times are kept, a line a run")
    parser.add_argument("--policy", default="just-in-time", help="the policy that is judged")
    parser.add_argument("--traces", type=Path, action="append", default=[], help="a folder of more traces")
    parser.add_argument("--sample", type=int, help="so many cases, drawn from the grid")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing")
    parser.add_argument("--limit", type=int, help="requests of each trace at most")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--run", action="append", help="run these policies only")
    parser.add_argument("--judge", action="store_true", help="run nothing")
    parser.add_argument("--worst", type=int, default=10, help="cases to list")
    arguments = parser.parse_args()
    paths = traces([ROOT / "examples/traces", *arguments.traces])
    grid = cases(paths)
    random.Random(arguments.seed).shuffle(grid)
    grid = grid[: arguments.sample]
    if not arguments.judge:
        fill(grid, paths, arguments)
    found = verdicts(sorted(grid, key=str), read(arguments.file), arguments.policy)
    if not found:
        print("no case has all of its runs", file=sys.stderr)
        return 2
    return 0 if judge(found, Console(), worst=arguments.worst) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The whole study: each command in each way on each disk, the requirements, and what must not become slower."""

import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from headstart import forecasting
from headstart._core import HeadstartError
from headstart_lab.hintstudy import disks, guards, ways
from headstart_lab.hintstudy.commands import Tree, commands
from headstart_lab.hintstudy.guards import SLOWER
from headstart_lab.hintstudy.ways import POLICIES, Job
from headstart_lab.livestudy import platform
from headstart_lab.measured import required
from headstart_lab.studies._rows import Row

OWN = "own"
DISKS = (*disks.BYTES, OWN)
OURS = f"run {POLICIES[0]}"
ORACLES = ("sorted", "access order")
"""Orders of the whole list, which is read while the command runs."""
HALF, ORACLE, FORECAST = 0.5, 1.15, 0.15
"""Requirements: half of plain in the geometric mean, this share of the better oracle, this error of a forecast."""

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """A command in one way: the median of its runs."""

    disk: str
    command: str
    way: str
    elapsed_ns: int
    spread: float
    """The longest run minus the shortest, over the median."""
    read_bytes: int
    """By the disk's own count."""
    plain_ns: int
    forecast_ns: int | None = None
    prefetched_bytes: int | None = None
    used_bytes: int | None = None
    late_bytes: int | None = None
    stopped: str | None = None


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """Something that must not become slower."""

    disk: str
    case: str
    plain_ns: int
    run_ns: int
    spread: float = 0.0
    """The interquartile range of the runs with `run`, over the median of plain."""
    slower: float = SLOWER
    """The accepted share of plain time."""
    problem: str | None = None
    """Why it could not be measured."""


@dataclass
class Timings:
    """The results of the study."""

    machine: str
    repeats: int
    rows: list[Timing] = field(default_factory=list)
    guarded: list[Guarded] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """By command: why it was omitted."""


def study(
    names: Iterable[str],
    *,
    only: Iterable[str] = (),
    repeats: int = 1,
    own_repeats: int = 5,
    guard: bool = True,
    compare: bool = True,
    folder: Path = Path("/var/tmp"),
    tell: Tell = lambda text: None,
) -> Timings:
    """Measure the commands `only`, or all, on the disks `names`, with their files below `folder`.

    `compare`: measure all ways; `guard`: measure what must not become slower.

    Raises:
        HeadstartError: The machine does not behave as required, or a command fails.
    """
    wanted = [each for each in commands() if not only or each.name in only]
    found = Timings(platform.machine(), repeats)
    with disks.files_on(folder) as root, tempfile.TemporaryDirectory() as hints:
        tree = Tree(root)
        tree.make(tell)
        reasons = {each.name: tree.why_not(each) for each in wanted}
        found.left_out = {name: why for name, why in reasons.items() if why is not None}
        for name in names:
            opened: AbstractContextManager[disks.Disk]
            opened = disks.own(root) if name == OWN else disks.emulated(name, root)
            with opened as disk:
                jobs = [
                    Job(each, disk, Path(hints) / f"{name}-{number}.hints")
                    for number, each in enumerate(wanted)
                    if each.name not in found.left_out
                ]
                for job in jobs:
                    tell(f"{name}: {job.command.name}: record")
                    job.record()
                times = own_repeats if name == OWN else repeats
                if compare:
                    found.rows += measure(jobs, times, tell)
                if guard and len(jobs) > 1:
                    found.guarded += guarded(jobs, Path(hints), times, tell)
    return found


def measure(jobs: list[Job], repeats: int, tell: Tell) -> list[Timing]:
    """Return a row for each job and way; the runs of all ways of a job are in random order."""
    rows = []
    for job in jobs:
        known = ways.ways()
        runs: dict[str, list[ways.Run]] = defaultdict(list)
        order = [name for name in known for _ in range(repeats)]
        random.Random(job.command.name).shuffle(order)
        for number, name in enumerate(order):
            tell(f"{job.disk.name}: {job.command.name}: {name} ({number + 1} of {len(order)})")
            runs[name].append(known[name](job))
        forecasts = forecast(job)
        plain_ns = int(median(run.elapsed_ns for run in runs["plain"]))
        rows += [row(job, name, runs[name], plain_ns, forecasts.get(name)) for name in known]
    return rows


def row(job: Job, way: str, runs: list[ways.Run], plain_ns: int, forecast_ns: int | None) -> Timing:
    """Return the row of a way's runs."""
    middle = sorted(runs, key=lambda run: run.elapsed_ns)[len(runs) // 2]
    elapsed = [run.elapsed_ns for run in runs]
    report = middle.report or {}
    return Timing(
        disk=job.disk.name,
        command=job.command.name,
        way=way,
        elapsed_ns=middle.elapsed_ns,
        spread=(max(elapsed) - min(elapsed)) / middle.elapsed_ns,
        read_bytes=middle.read_bytes,
        plain_ns=plain_ns,
        forecast_ns=forecast_ns,
        prefetched_bytes=report.get("prefetched_bytes"),
        used_bytes=report.get("used_bytes"),
        late_bytes=report.get("late_bytes"),
        stopped=report.get("stopped"),
    )


def forecast(job: Job) -> dict[str, int]:
    """Return the forecast times by way, with the whole budget; only for emulated drives."""
    if job.disk.profile is None:
        return {}
    found = forecasting.forecast(job.hints, device=job.disk.profile, policies=POLICIES)
    most = max((each.budget_bytes or 0 for each in found.rows), default=0)
    times = {f"run {each.policy}": each.elapsed_ns for each in found.rows if each.budget_bytes == most}
    trusted = forecasting.forecast(
        job.hints, device=job.disk.profile, policies=POLICIES[:1], budgets=[most], trusted=True
    )
    return {"plain": found.plain.elapsed_ns, **times, ways.TRUSTED: trusted.rows[0].elapsed_ns}


def guarded(jobs: list[Job], folder: Path, repeats: int, tell: Tell) -> list[Guarded]:
    """Return what must not become slower, measured plain and with `run`."""
    found = []
    for case in guards.cases(jobs[:4], folder):
        tell(f"{jobs[0].disk.name}: {case.name}")
        name = jobs[0].disk.name
        order = [case.plain, case.ours] * repeats
        random.Random(case.name).shuffle(order)
        times: dict[Callable[[], int], list[int]] = defaultdict(list)
        try:
            for work in order:
                times[work].append(work())
        except HeadstartError as problem:
            found.append(Guarded(disk=name, case=case.name, plain_ns=0, run_ns=0, problem=str(problem)))
            continue
        plain_ns, run_ns = (int(median(times[work])) for work in (case.plain, case.ours))
        ours = sorted(times[case.ours])
        spread = (ours[3 * (repeats - 1) // 4] - ours[(repeats - 1) // 4]) / plain_ns
        found.append(
            Guarded(disk=name, case=case.name, plain_ns=plain_ns, run_ns=run_ns, spread=spread, slower=case.slower)
        )
        tell(f"  {plain_ns / 1e9:.3f} s plain, {run_ns / plain_ns:.2f} by run, spread {spread:.2f}")
    return found


def findings(study: Timings) -> list[Row]:
    """Return the requirements for each disk, beside the results."""
    found = []
    for disk in dict.fromkeys(row.disk for row in study.rows):
        rows = [row for row in study.rows if row.disk == disk]
        ours = {row.command: row for row in rows if row.way == OURS}
        found.append(at_most(f"{disk}: of plain, geometric mean", HALF, mean_share(ours.values())))
        trusted = [row for row in rows if row.way == ways.TRUSTED]
        if trusted:
            found.append(at_most(f"{disk}: of plain with --trust, geometric mean", HALF, mean_share(trusted)))
        worst = max(ours.values(), key=lambda row: row.elapsed_ns / row.plain_ns)
        found.append(
            at_most(f"{disk}: of plain, the worst: {worst.command}", SLOWER, worst.elapsed_ns / worst.plain_ns)
        )
        times = {(row.command, row.way): row.elapsed_ns for row in rows}
        oracle = {name: min(times[name, way] for way in ORACLES) for name in ours}
        worst = max(ours.values(), key=lambda row: row.elapsed_ns / oracle[row.command])
        share = worst.elapsed_ns / oracle[worst.command]
        if disk in disks.BYTES:
            found.append(
                at_most(f"{disk}: of the better order of the whole list, the worst: {worst.command}", ORACLE, share)
            )
        apart = [(abs(row.forecast_ns / row.elapsed_ns - 1), row) for row in rows if row.forecast_ns is not None]
        if apart:
            near = sum(each <= FORECAST for each, _ in apart)
            what = f"{disk}: forecasts within {FORECAST:.0%}"
            found.append(required(what, f"all of {len(apart)}", f"{near}", near == len(apart)))
    found += [judged(each) for each in study.guarded]
    return found


def mean_share(rows: Iterable[Timing]) -> float:
    """Return the geometric mean of what rows took of plain."""
    return statistics.geometric_mean(row.elapsed_ns / row.plain_ns for row in rows)


def judged(each: Guarded) -> Row:
    """Return whether something has not become slower."""
    what = f"{each.disk}: {each.case}"
    if each.problem is not None:
        return required(what, f"at most {each.slower:.2f}", each.problem, holds=False)
    return at_most(what, each.slower, each.run_ns / each.plain_ns)


def at_most(what: str, limit: float, share: float) -> Row:
    """Return the finding that a share is at most so much."""
    return required(what, f"at most {limit:.2f}", f"{share:.2f}", share <= limit)


def check_disks(names: Iterable[str]) -> None:
    """Check the names of disks.

    Raises:
        HeadstartError: One is not known.
    """
    for name in names:
        if name not in DISKS:
            raise HeadstartError(f"--disk: {name}: no such disk; allowed: {', '.join(DISKS)}")

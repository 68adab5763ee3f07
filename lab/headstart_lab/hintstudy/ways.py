"""The ways to start a command: plain, by `run` with each policy, and with its list replayed without a policy."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headstart import recording
from headstart._core import HeadstartError
from headstart_lab.hintstudy import replay
from headstart_lab.hintstudy.commands import Command
from headstart_lab.hintstudy.disks import Disk

PATIENCE_S = 600.0
TRUSTED = "run --trust"
POLICIES = ("just-in-time", "fixed-horizon", "aggressive", "forestall")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a command."""

    elapsed_ns: int
    read_bytes: int
    """By the disk's own count, including reads that went on after the command."""
    report: dict[str, Any] | None = None
    """The report of `headstart run`."""


@dataclass
class Job:
    """A command on a disk, with the recording of its reads."""

    command: Command
    disk: Disk
    hints: Path
    prefix: list[str] = field(default_factory=list)
    """The prefix that starts the command."""

    def words(self) -> list[str]:
        """Return the command's program and arguments, with its environment."""
        environment = self.command.environment(self.disk.root)
        assignments = [f"{key}={value}" for key, value in environment.items()]
        return [*(["env", *assignments] if assignments else []), *self.command.words(self.disk.root)]

    def record(self) -> None:
        """Record the command with cold caches."""
        self.disk.cold()
        self.timed([*HEADSTART, "record", "-o", str(self.hints), "--", *self.words()])

    def timed(self, words: list[str]) -> int:
        """Start `words` and return how long it took.

        Raises:
            HeadstartError: The command fails.
        """
        begun = time.monotonic_ns()
        done = subprocess.run(
            [*self.prefix, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
            check=False,
        )
        took = time.monotonic_ns() - begun
        if done.returncode not in self.command.codes:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise HeadstartError(f"{self.command.name}: exit status {done.returncode}: {said[-1:] or 'says nothing'}")
        return took

    def measured(self, work: Callable[[], int]) -> Run:
        """Run `work` with cold caches; it returns its duration."""
        self.disk.cold()
        before = self.disk.read_bytes()
        return Run(elapsed_ns=work(), read_bytes=self.disk.read_bytes() - before)


Way = Callable[[Job], Run]


def plain(job: Job) -> Run:
    """Start the command without help."""
    return job.measured(lambda: job.timed(job.words()))


@dataclass(frozen=True)
class ByRun:
    """The way of `headstart run` with a policy and further options."""

    policy: str = POLICIES[0]
    options: tuple[str, ...] = ()

    def line(self, job: Job) -> list[str]:
        """Return the command line."""
        options = ["--hints", str(job.hints), "--policy", self.policy, "--report", str(self.report(job))]
        return [*runner(), *options, *self.options, "--", *job.words()]

    def report(self, job: Job) -> Path:
        """Return where the report goes."""
        return job.hints.with_suffix(".json")

    def __call__(self, job: Job) -> Run:
        """Run the command with cold caches."""
        line = self.line(job)
        run = job.measured(lambda: job.timed(line))
        return replace(run, report=json.loads(self.report(job).read_text(encoding="utf-8")))


def listed(job: Job, *, ordered: bool, first: bool) -> Run:
    """Read the whole list, sorted or in access order, before the command or while it runs."""
    job.disk.cold()
    found = replay.pieces(recording.show(job.hints), job.disk.root, job.disk.device)
    wanted = replay.in_order(found) if ordered else found

    def work() -> int:
        begun = time.monotonic_ns()
        reading = replay.Replay(wanted)
        if first:
            reading.wait()
        try:
            job.timed(job.words())
            return time.monotonic_ns() - begun
        finally:
            reading.stop()

    return job.measured(work)


def vmtouch(job: Job) -> Run:
    """First load all files that the command reads into the page cache, whole, with vmtouch."""
    files = [file["path"] for file in recording.show(job.hints)["files"] if file["kind"] == "regular" and file["path"]]
    chosen = [path for path in files if path.startswith(f"{job.disk.root}/")]
    list_file = job.hints.with_suffix(".files")
    list_file.write_text("".join(f"{path}\n" for path in chosen), encoding="utf-8")

    def work() -> int:
        begun = time.monotonic_ns()
        subprocess.run(["vmtouch", "-q", "-t", "-b", str(list_file)], check=False, timeout=PATIENCE_S)
        job.timed(job.words())
        return time.monotonic_ns() - begun

    return job.measured(work)


def ways() -> dict[str, Way]:
    """Return all ways by name."""
    found: dict[str, Way] = {"plain": plain}
    found |= {f"run {policy}": ByRun(policy) for policy in POLICIES}
    found[TRUSTED] = ByRun(options=("--trust",))
    found["sorted first"] = lambda job: listed(job, ordered=True, first=True)
    found["sorted"] = lambda job: listed(job, ordered=True, first=False)
    found["access order"] = lambda job: listed(job, ordered=False, first=False)
    if shutil.which("vmtouch") is not None:
        found["vmtouch"] = vmtouch
    return found


HEADSTART = [sys.executable, "-m", "headstart"]


def runner() -> list[str]:
    """Return the prefix that runs a command with its hints: the native program if it is installed."""
    native = Path(sys.executable).with_name("headstart-run")
    return [str(native)] if native.exists() else [*HEADSTART, "run"]

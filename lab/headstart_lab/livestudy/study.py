"""Each workload at each depth, measured and predicted, and the findings."""

import os
import statistics as averages
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from headstart import model
from headstart_lab.livestudy import image, measure, platform, predict, workloads
from headstart_lab.measured import required
from headstart_lab.studies._rows import Row, Verdict

PROFILE = "ibm-36gb-10k"
DISK_BYTES = 36_400_000_000
"""The drive's capacity: a distance in the image is a distance on the drive."""
DEFAULT_KB, AGGRESSIVE_KB = 128, 800
"""Linux's default, and AP of li07, section 6.2."""
DEEP_KB = 3384
"""The competitive depth of a modern drive, seagate-exos-x20."""
MEMORY = Path("/dev/shm")
STATE = "tune.json"
"""The state file of `tune --watch`, beside the image."""

TOLERANCE = 0.15
"""The accepted difference between simulator and kernel."""
FASTER, STREAM, RUNS = 0.30, 0.02, 0.05
"""The competitive depth's minimum gain for alternating readers, and its maximum losses for a stream and short runs."""
LATE_NS = 1_000_000
"""If more than one answer in a hundred is later than this, the machine itself was measured."""
ATTEMPTS = 2

Tell = Callable[[str, float], None]


@dataclass(frozen=True)
class Setting:
    """A depth, and how it is set."""

    name: str
    read_ahead_kb: int | None
    """`None`: `tune --watch` sets it."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """A workload at a depth: the kernel, and the simulator."""

    workload: str
    setting: str
    read_ahead_kb: int
    """The device's read-ahead when the readers opened their files, the median."""
    measured_ns: int
    """The median of the runs."""
    spread: float
    """The longest run minus the shortest, over the median."""
    predicted_ns: int
    difference: float
    """(predicted - measured) / measured."""
    verdict: Verdict
    measured_requests: int
    predicted_requests: int
    measured_bytes: int
    predicted_bytes: int
    lateness_p99_ns: int
    note: str


@dataclass(frozen=True, kw_only=True)
class Timings:
    """The results of the study."""

    machine: str
    profile: str
    quick: bool
    repeats: int
    host: measure.Host
    rows: list[Timing]
    findings: list[Row]
    notes: list[str]


def settings(*, watch: bool, mapped: bool = False) -> list[Setting]:
    """Return the depths: Linux's, the competitive one of the drive, an aggressive one, and the one that `tune` sets.

    For `mapped` files also a very deep one, whose cost they show.
    """
    pages = model.competitive(PROFILE).average.mean.depth_pages
    fixed = [
        Setting(f"{DEFAULT_KB} KiB", DEFAULT_KB),
        Setting("competitive", pages * image.BLOCK // 1024),
        Setting(f"{AGGRESSIVE_KB} KiB", AGGRESSIVE_KB),
        *([Setting(f"{DEEP_KB:,} KiB", DEEP_KB)] if mapped else []),
    ]
    return [*fixed, Setting("tune --watch", None)] if watch else fixed


@contextmanager
def disk(folder: Path, file: Path) -> Iterator[tuple[Path, Path, Path]]:
    """A fresh emulated disk over the image `file`: its mount point, its loop device, and a folder for its files."""
    mount, files = folder / "drive", folder / "files"
    mount.mkdir(exist_ok=True)
    files.mkdir(exist_ok=True)
    with platform.emulated(PROFILE, file, mount) as slow, platform.loop_device(slow) as loop:
        yield mount, loop, files


def study(*, quick: bool = False, repeats: int = 3, tell: Tell = lambda text, share: None) -> Timings:
    """Measure and predict everything; `quick` with shorter files and fewer reads, each once.

    Raises:
        HeadstartError: The machine does not behave as required.
    """
    scale, repeats = (0.1, 1) if quick else (1.0, repeats)
    planned = workloads.files(scale)
    with ExitStack() as stack:
        name = f"headstart-live-{os.getpid()}-"
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=name, dir=MEMORY)))
        file = folder / "disk.img"
        placed = image.make(file, DISK_BYTES, planned)
        with disk(folder, file) as (mount, loop, files), platform.mounted(loop, files):
            host = measure.calibrate(files, planned[0].name, mount)
            no_watch = platform.why_no_watch(loop, PROFILE, folder / STATE)
        bench = Bench(folder, file, placed, host, repeats)
        cases = [
            (each, way)
            for each in workloads.workloads(planned, scale)
            for way in settings(watch=no_watch is None, mapped=each.mapped)
        ]
        rows = []
        for done, (workload, way) in enumerate(cases):
            tell(f"{workload.name}, {way.name}", done / len(cases))
            rows.append(bench.row(workload, way))
    return Timings(
        machine=platform.machine(),
        profile=PROFILE,
        quick=quick,
        repeats=repeats,
        host=host,
        rows=rows,
        findings=findings(rows),
        notes=[] if no_watch is None else [f"tune --watch: skipped: {no_watch}"],
    )


@dataclass(frozen=True)
class Bench:
    """The common parameters of all rows."""

    folder: Path
    file: Path
    placed: list[image.Placed]
    host: measure.Host
    repeats: int

    def row(self, workload: workloads.Workload, way: Setting) -> Timing:
        """Measure and predict one row; repeat it if the machine was late."""
        for _ in range(ATTEMPTS):
            runs, depths_kb, request_kb = self.runs(workload, way)
            late = runs[-1].drive.lateness_ns.p99
            if late <= LATE_NS:
                break
        # `tune --watch` may set another depth for each run.
        each = {depth: self.predicted(workload, depth, request_kb) for depth in set(depths_kb)}
        predictions = [each[depth] for depth in depths_kb]
        elapsed = [run.elapsed_ns for run in runs]
        measured, predicted = median(elapsed), median(one.elapsed_ns for one in predictions)
        difference = predicted / measured - 1
        return Timing(
            workload=workload.name,
            setting=way.name,
            read_ahead_kb=median(depths_kb),
            measured_ns=measured,
            spread=(max(elapsed) - min(elapsed)) / measured,
            predicted_ns=predicted,
            difference=difference,
            verdict="agrees" if abs(difference) <= TOLERANCE else "differs",
            measured_requests=median(run.requests for run in runs),
            predicted_requests=median(one.requests for one in predictions),
            measured_bytes=median(run.bytes for run in runs),
            predicted_bytes=median(one.bytes for one in predictions),
            lateness_p99_ns=late,
            note="" if late <= LATE_NS else "the machine was busy: answers came late",
        )

    def predicted(self, workload: workloads.Workload, depth_kb: int, request_kb: int) -> predict.Prediction:
        """Predict at a depth. The simulator has no mapped files: a fault becomes one read of that length."""
        policy = predict.read_ahead(depth_kb, os.uname().release, request_kb)
        if workload.mapped:
            (size,) = (placed.size for placed in self.placed if placed.name == "large")
            workload, policy = workloads.around(workload, depth_kb, size), {"name": "demand"}
        trace = self.folder / "reads.csv"
        predict.write_trace(trace, workload, self.placed)
        return predict.predict(predict.scenario(trace, PROFILE, policy, self.host))

    def runs(self, workload: workloads.Workload, way: Setting) -> tuple[list[measure.Run], list[int], int]:
        """Run with cold caches for all repeats; also return the depths and the longest request, in KiB."""
        runs, depths = [], []
        with ExitStack() as stack:
            mount, loop, files = stack.enter_context(disk(self.folder, self.file))
            if way.read_ahead_kb is None:
                stack.enter_context(platform.watched(loop, PROFILE, self.folder / STATE))
            else:
                stack.enter_context(platform.setting(loop, "read_ahead_kb", str(way.read_ahead_kb)))
            request_kb = int(platform.queue(loop, "max_sectors_kb"))
            for _ in range(self.repeats):
                with platform.mounted(loop, files):
                    runs.append(
                        measure.measure(workload, files, mount, lambda: depths.append(platform.read_ahead_kb(loop)))
                    )
        return runs, depths, request_kb


def median(values: Iterable[int]) -> int:
    """Return the median as an integer."""
    return int(averages.median(values))


def findings(rows: list[Timing]) -> list[Row]:
    """Return what the competitive depth gains and costs, as far as there are rows for it."""
    measured = {(row.workload, row.setting): row.measured_ns for row in rows}
    default, aggressive = f"{DEFAULT_KB} KiB", f"{AGGRESSIVE_KB} KiB"
    found = []
    for way in ("competitive", "tune --watch"):
        for workload, other, most, condition in (
            ("alternating", default, -FASTER, f"at least {FASTER:.0%} less than at {default}"),
            ("stream", default, STREAM, f"at most {STREAM:.0%} more than at {default}"),
            ("stream", aggressive, STREAM, f"at most {STREAM:.0%} more than at {aggressive}"),
            ("short runs", aggressive, RUNS, f"at most {RUNS:.0%} more than at {aggressive}"),
        ):
            ours, base = measured.get((workload, way)), measured.get((workload, other))
            if ours is not None and base is not None:
                change = ours / base - 1
                what = f"{workload}, {way}: elapsed"
                found.append(required(what, condition, f"{change:+.1%}", change <= most))
    return found

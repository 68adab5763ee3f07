"""The live study on the machine: what it sets up, what ends it, and that it restores the machine."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headstart
from headstart_lab.livestudy import image, measure, platform, workloads
from headstart_lab.livestudy.image import MB, Planned
from headstart_lab.livestudy.study import MEMORY, settings
from headstart_lab.livestudy.workloads import Read, Workload
from tests.machines import PATIENCE_S, wait_until

COMMAND = [sys.executable, "-m", "headstart", "reproduce", "li07-live"]
STUDY_S = 1200.0
"""A quick study takes one or two minutes."""
KERNEL_DEFAULT_KB = "128"
"""The default for a non-rotational device without a preferred size."""

REASON = platform.why_not()
lives = pytest.mark.skipif(REASON is not None, reason=f"SKIPPED: no live study here: {REASON}")
TOOLLESS = image.missing_tools()
makes = pytest.mark.skipif(bool(TOOLLESS), reason=f"SKIPPED: no image can be made: {', '.join(TOOLLESS)} not installed")


@makes
def test_the_image_holds_files_in_one_piece_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "disk.img"
    planned = workloads.files(0.01)
    placed = image.make(path, 36_400_000_000, planned)
    assert [(file.name, file.size) for file in placed] == [(file.name, file.size) for file in planned]
    ends = [file.first_block + file.breaks + -(-file.size // image.BLOCK) for file in placed]
    gaps = [after.first_block - end for end, after in zip(ends, placed[1:], strict=False)]
    assert all(0 <= gap <= 1 for gap in gaps), gaps
    assert all(file.breaks <= 1 for file in placed)
    assert path.stat().st_blocks * 512 < 4 * MB, "nothing is written but the file system itself"
    subprocess.run(["e2fsck", "-fn", str(path)], check=True, capture_output=True)
    stat = subprocess.run(["debugfs", "-R", "ex large", str(path)], check=True, capture_output=True, text=True).stdout
    assert "Uninit" not in stat


@makes
def test_an_image_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(headstart.HeadstartError, match="debugfs"):
        image.make(tmp_path / "disk.img", 10 * MB, [Planned("too-large", 50 * MB)])


@pytest.mark.parametrize(
    ("name", "found", "kept"), [("read_ahead_kb", "128\n", "128"), ("scheduler", "[none] bfq\n", "none")]
)
def test_what_was_found_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, found: str, kept: str
) -> None:
    monkeypatch.setattr(platform, "BLOCK_DEVICES", tmp_path)
    path = tmp_path / "loop77" / "queue" / name
    path.parent.mkdir(parents=True)
    path.write_text(found, encoding="ascii")
    with pytest.raises(KeyboardInterrupt), platform.setting(Path("/dev/loop77"), name, "new"):
        assert path.read_text(encoding="ascii") == "new"
        raise KeyboardInterrupt
    assert path.read_text(encoding="ascii") == kept


INTERRUPTED = """
import signal, sys
from headstart_lab.livestudy import platform

sent = signal.Signals[sys.argv[1]]
signal.signal(signal.SIGHUP, signal.SIG_DFL)
before = [signal.getsignal(each) for each in platform.SIGNALS]
try:
    with platform.unwinding_on_signals():
        try:
            with platform.undisturbed():
                signal.raise_signal(sent)
                print("undone", flush=True)
            print("gone on")
        finally:
            for each in platform.SIGNALS:
                signal.raise_signal(each)
            print("undone too")
except KeyboardInterrupt:
    print("interrupted")
assert [signal.getsignal(each) for each in platform.SIGNALS] == before
"""


@pytest.mark.parametrize("sent", platform.SIGNALS, ids=lambda each: each.name)
def test_an_interrupt_waits_for_what_is_undone_and_further_ones_do_no_harm(sent: signal.Signals) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, sent.name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "undone\nundone too\ninterrupted\n", "")


def test_without_a_terminal_it_goes_on() -> None:
    program = """
import signal
from headstart_lab.livestudy import platform

signal.signal(signal.SIGHUP, signal.SIG_IGN)
with platform.unwinding_on_signals():
    signal.raise_signal(signal.SIGHUP)
print("gone on")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "gone on\n", "")


def a_reader(lasts_s: float) -> Any:
    """A substitute for the reader: it reads nothing and takes this long."""

    def reader(folder: Path, reads: object, mapped: bool, delay_s: float, barrier: Any, sender: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        barrier.wait()
        barrier.wait()
        time.sleep(lasts_s)
        sender.send((0, 1))

    return reader


@pytest.mark.parametrize(
    ("lasts_s", "limit", "problem"),
    [
        (PATIENCE_S, "RUN_S", "a reader failed: it has not ended after 0.1 s"),
        (0.0, "REST_S", "drive: 3 reads are outstanding after 0.1 s without a reader"),
    ],
)
def test_nothing_is_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, lasts_s: float, limit: str, problem: str
) -> None:
    monkeypatch.setattr(measure, "_reader", a_reader(lasts_s))
    monkeypatch.setattr(measure, "statistics", lambda drive: SimpleNamespace(outstanding=3))
    monkeypatch.setattr(measure, limit, 0.1)
    one = Workload("one", "", ((Read("a", 0, 4096),),))
    with pytest.raises(headstart.HeadstartError, match=problem):
        measure.measure(one, Path("files"), Path("drive"))
    assert multiprocessing.active_children() == []


def test_a_watch_is_waited_for_where_its_number_stands_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits until the state file says that the value is its own; the command is not run."""
    monkeypatch.setattr(platform, "BLOCK_DEVICES", tmp_path)
    file = tmp_path / "loop77" / "queue" / "read_ahead_kb"
    file.parent.mkdir(parents=True)
    file.write_text("384\n", encoding="ascii")
    state = tmp_path / "tune.json"
    seen = []

    @contextmanager
    def background(*words: str, ready: Any, within: object) -> Iterator[None]:
        for entries in (None, [], [{"ours_kb": [392]}], [{"ours_kb": [392, 384]}]):
            if entries is not None:
                state.write_text(json.dumps({"entries": entries}), encoding="ascii")
            seen.append(ready())
        yield

    monkeypatch.setattr(platform, "background", background)
    with platform.watched(Path("/dev/loop77"), "ibm-36gb-10k", state):
        assert seen == [False, False, False, True]


def test_an_interrupt_waits_for_a_program_that_changes_the_machine(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    # Interrupts us while it is still running.
    program = f"kill -INT {os.getpid()}; sleep 0.5; touch {mounted}"
    with pytest.raises(KeyboardInterrupt):
        platform.run("sh", "-c", program)
    assert mounted.exists()


def test_where_it_cannot_be_done_it_says_so_in_one_line() -> None:
    program = "import os, runpy; os.geteuid = lambda: 1000; runpy.run_module('headstart', run_name='__main__')"
    words = [sys.executable, "-c", program, "reproduce", "li07-live"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("headstart: li07-live: cannot run here: not root; allowed: Linux, as root")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("reproduce", "li07", "--quick"), "li07: --quick, --repeats and --docs are only for li07-live"),
        (("reproduce", "li07-live", "figure6"), "li07-live: item figure6: it runs as a whole; allowed: no item"),
    ],
)
def test_options_and_items_are_for_their_own_study(words: tuple[str, ...], problem: str) -> None:
    done = subprocess.run([*COMMAND[:3], *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"headstart: {problem}\n")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--repeats", "0"), "headstart reproduce: Invalid value for '--repeats'"),
        (("--json", "missing/study.json"), "headstart: missing/study.json: cannot be written"),
        (("--docs", "page.md"), "headstart: page.md: has no marks; allowed: a file with"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    (tmp_path / "page.md").write_text("# No marks\n", encoding="utf-8")
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(problem), done.stderr


def read_aheads() -> dict[str, str]:
    """The read-aheads of all loop devices, by name."""
    return {path.name: platform.queue(path, "read_ahead_kb") for path in Path("/sys/block").glob("loop*")}


def leftovers(study: subprocess.Popen[str]) -> list[str]:
    """Loop devices, mounts and files of a study; other studies may run."""
    loops = platform.run("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").splitlines()
    mounts = [f"at {line}" for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    files = [f"in {path}" for path in MEMORY.iterdir()]
    return [line for line in [*loops, *mounts, *files] if f"headstart-live-{study.pid}-" in line]


@contextmanager
def studying(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A quick study; when the block is left, it has ended and cleaned up."""
    line = [*COMMAND, "--quick", *words]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            yield process
        finally:
            # If the test failed.
            process.terminate()
            process.communicate(timeout=PATIENCE_S)


@lives
def test_a_quick_study_measures_every_row_and_leaves_nothing(tmp_path: Path) -> None:
    with studying(tmp_path, "--json", "-") as process:
        out, errors = process.communicate(timeout=STUDY_S)
    assert (process.returncode, leftovers(process)) == (0, []), errors
    rows = json.loads(out)
    studied = workloads.workloads(workloads.files(0.1), 0.1)
    skipped = "tune --watch: skipped" in next(row["note"] for row in rows if row["item"] == "conditions")
    ways = [(each.name, way.name) for each in studied for way in settings(watch=not skipped, mapped=each.mapped)]
    times = [row["quantity"] for row in rows if row["item"] == "times"]
    assert times == [f"{name}, {way}: elapsed (s)" for name, way in ways]
    figures = {row["quantity"]: tuple(map(int, row["ours"].split(", "))) for row in rows if row["item"] == "drive"}
    asked = {workload.name: workload.size for workload in studied}
    for name, way in ways:
        requests, sizes = (figures[f"{name}, {way}: {what} measured, predicted"] for what in ("requests", "bytes"))
        assert sizes[0] >= asked[name], (name, way)
        if name == "random faults":
            # The kernel may split a read around a fault.
            assert sizes[0] == sizes[1], (name, way)
        elif name.startswith("random"):
            # One request each, of the requested size, whatever else the machine does.
            assert (requests[0], sizes[0]) == (requests[1], sizes[1]), (name, way)
    found = {row["quantity"].split(",")[0] for row in rows if row["item"] == "findings"}
    assert found == {"alternating", "stream", "short runs"}


@lives
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_an_interrupt_leaves_nothing_and_a_second_one_does_no_harm(tmp_path: Path, sent: signal.Signals) -> None:
    # The study takes the first free device, which exists from now on.
    platform.run("losetup", "--find")
    before = read_aheads()
    with studying(tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "  0% alternating, 128 KiB\n"
        wait_until(lambda: any(line.startswith("/dev/loop") for line in leftovers(process)))
        (loop,) = (Path(line.split()[0]).name for line in leftovers(process) if line.startswith("/dev/loop"))
        process.send_signal(sent)
        process.send_signal(sent)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, leftovers(process), "Traceback" in errors) == (130, [], False), errors
    # The kernel may set the device to its default when a file is attached: the earlier value may be another file's.
    assert read_aheads()[loop] in {before[loop], KERNEL_DEFAULT_KB}

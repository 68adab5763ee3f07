"""`headstart tune --watch` on loop devices of this machine: what it follows, what ends it, what it leaves behind."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import machines
from tests.conftest import COMMAND
from tests.machines import PATIENCE_S, running, wait_until
from tests.test_bad_input import one_line
from tests.test_tune import (
    AS_NOBODY,
    BLOCK,
    CAPACITY,
    Loop,
    loop,
    loops,
    nobody_may,
    reported,
    tune,
)

__all__ = ["loop"]

PROFILE = ("--profile", "ibm-36gb-10k")
INSTANCES = Path("/sys/kernel/tracing/instances")
TRACES = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    'test -d /sys/kernel/tracing/events || mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"',
    "sh",
]
"""A private tracefs, whether or not the machine has one mounted: the content is the same."""
NO_TRACES = ["unshare", "--mount", "sh", "-c", 'umount --all --types tracefs; exec "$@"', "sh"]


INSTANCES_OF_ONE = 2
"""One of requests, one of faults; the latter takes Linux 6.12."""


def why_not() -> str | None:
    """Why nothing can be watched here, if so."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "neither root nor unshare"
    event = "/sys/kernel/tracing/events/block/block_rq_complete"
    found = subprocess.run([*TRACES, "test", "-d", event], capture_output=True, text=True, check=False)
    return None if found.returncode == 0 else f"no block tracepoints: {found.stderr.strip()}"


RATE = "the rate of this profile is that of the bus of the host on which the drive was measured"
"""The start of the note on the drive of these tests."""
REASON = why_not()
watches = pytest.mark.skipif(REASON is not None, reason=f"SKIPPED, tests of watches: {REASON}")
pytestmark = [loops, watches]


def instances(pid: int) -> list[str]:
    """The instances of a process; others may have some, too."""
    words = [*TRACES, "ls", str(INSTANCES)]
    names = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if name.startswith(f"headstart-{pid}-")]


@contextmanager
def watched(loop: Loop, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command once it has written its first value; ended when the block is left."""
    line = [*TRACES, str(COMMAND), "tune", loop.path, *PROFILE, "--watch", "--state", str(loop.state), *words]
    with running(line) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(RATE)
        line_of_start = process.stderr.readline()
        assert (
            line_of_start == f"{Path(loop.path).name} ({number(loop)}), {loop.image}: 128 KiB, now 384 and followed\n"
        )
        yield process


def number(loop: Loop) -> str:
    device = Path(loop.path).stat().st_rdev
    return f"{os.major(device)}:{os.minor(device)}"


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    status: dict[str, Any] = json.loads(out)
    rate, *others = status["notes"]
    assert rate.startswith(RATE) and others == errors.splitlines()
    return {**status, "notes": others}


def counted(metrics: Path, name: str) -> int:
    """The value of a counter in a file of metrics; 0 if the file does not exist yet."""
    text = metrics.read_text(encoding="utf-8") if metrics.exists() else ""
    found = re.search(rf"^{name}\{{.*\}} (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def read_in_turn(device: str, places: tuple[int, ...], until: Callable[[], object]) -> None:
    """Read at these places of a device in turn, advancing in each."""
    descriptor = os.open(device, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        at = 0

        def step() -> object:
            nonlocal at
            for place in places:
                os.pread(descriptor, BLOCK, place + at)
            at += 2 * BLOCK
            return until()

        wait_until(step)
    finally:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def test_it_follows_the_arm(loop: Loop, tmp_path: Path) -> None:
    metrics = tmp_path / "tune.prom"
    with watched(loop, "--json", "-", "--openmetrics", str(metrics)) as process:
        assert (loop.kb(), len(instances(process.pid))) == (384, INSTANCES_OF_ONE)
        # Neighbours: little more than half a turn. Then from one end to the other.
        read_in_turn(loop.path, (0, 1 << 28), lambda: loop.kb() < 200)
        near = loop.kb()
        read_in_turn(loop.path, (1 << 29, 33 << 30), lambda: loop.kb() > 500)
        process.terminate()
        status = ended(process)
    assert (loop.kb(), status["now_kb"], status["found_kb"], status["ended"]) == (128, 128, 128, "stopped")
    assert status["lowest_kb"] <= near < 500 < status["highest_kb"]
    assert 0 < status["switches"] <= status["requests"]
    assert json.loads(loop.state.read_text())["entries"] == []
    assert instances(process.pid) == []
    text = metrics.read_text()
    assert f'headstart_tune_requests_total{{device="{Path(loop.path).name}",profile="ibm-36gb-10k"}} ' in text
    assert text.endswith("# EOF\n")


@machines.mounts
def test_on_an_emulated_disk(tmp_path: Path) -> None:
    """If reads take realistic time, a third of the disk apart: the mean seek, and therefore the drive's own depth."""
    image = machines.sparse(tmp_path / "image", CAPACITY)
    with machines.emulated(image, "ibm-36gb-10k") as (_, mount):
        loop = Loop(mount / "disk.img")
        try:
            metrics = tmp_path / "tune.prom"
            with watched(loop, "--json", "-", "--openmetrics", str(metrics)) as process:
                turns = iter(range(60))
                read_in_turn(loop.path, (0, 12 << 30), lambda: next(turns, None) is None)
                # It does not see reads after its last look.
                wait_until(lambda: counted(metrics, "headstart_tune_switches_total") >= 60)
                process.terminate()
                status = ended(process)
            assert status["switches"] >= 60
            assert 340 <= status["lowest_kb"] <= 384 <= status["highest_kb"] <= 430
            assert loop.kb() == 128
        finally:
            loop.close()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_signals_end_it(loop: Loop, sent: signal.Signals) -> None:
    with watched(loop) as process:
        process.send_signal(sent)
        process.send_signal(sent)
        out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors, loop.kb()) == (0, "", 128)
    assert "now      128 KiB; 128 was found" in out


def test_its_time_ends_it(loop: Loop) -> None:
    with watched(loop, "--for", "0.3s", "--json", "-") as process:
        status = ended(process)
    assert (status["ended"], loop.kb(), status["elapsed_ns"] >= 300_000_000) == ("time", 128, True)


def test_what_a_kill_leaves_the_next_puts_right(loop: Loop) -> None:
    killed_ones = []
    for action in (("--restore",), ("--depth", "1MiB", "--apply"), ("--watch", *PROFILE, "--for", "0.1s")):
        with watched(loop) as process:
            process.kill()
            process.wait(PATIENCE_S)
        assert (loop.kb(), len(instances(process.pid))) == (384, INSTANCES_OF_ONE)
        shown = reported(tune(loop, *PROFILE, "--json", "-"))
        killed = f"process {process.pid} watched it and was killed: "
        assert (shown["now_kb"], shown["old_kb"], shown["watcher"]) == (384, 128, None)
        assert [note for note in shown["notes"] if not note.startswith(RATE)] == [
            f"{killed}the number there is its own; the next --apply, --watch or --restore writes 128 first"
        ]
        # Any tracing on this machine meanwhile removes what is left; otherwise it still exists.
        assert loop.kb() == 384 and len(instances(process.pid)) in (INSTANCES_OF_ONE, 0)
        done = reported(tune(loop, *action, "--json", "-", before=TRACES))
        others = [note for note in done["notes"] if not note.startswith(RATE)]
        assert others == [f"{killed}it was 384, and is 128 again, as it was found"]
        assert done["found_kb"] == 128
        assert tune(loop, "--restore").returncode == 0
        assert loop.kb() == 128
        killed_ones.append(process.pid)
    # They are removed by the next watch, which came last.
    assert [name for pid in killed_ones for name in instances(pid)] == []


def test_a_device_that_goes_ends_it(loop: Loop) -> None:
    name = Path(loop.path).name
    with watched(loop, "--json", "-") as process:
        subprocess.run(["losetup", "--detach", loop.path], check=True)
        status = ended(process)
    assert status["notes"] == [f"{name} has gone; the number stays, and is 128 again"]
    assert (status["ended"], loop.kb()) == ("gone", 128)
    assert json.loads(loop.state.read_text())["entries"] == []


def test_another_number_ends_it(loop: Loop) -> None:
    with watched(loop, "--json", "-") as process:
        loop.file.write_text("1024")
        status = ended(process)
    assert status["notes"] == ["another program has set 1024, which stays; 128 was found"]
    assert (status["ended"], loop.kb()) == ("changed", 1024)


def test_two_of_one_device_are_refused(loop: Loop) -> None:
    with watched(loop) as process:
        refused = f"process {process.pid} is tuning {Path(loop.path).name}; allowed: one at a time"
        for words in (("--watch", *PROFILE), ("--apply", *PROFILE), ("--restore",)):
            one_line(tune(loop, *words, before=TRACES), f"headstart: {loop.path}: {refused}")
        assert reported(tune(loop, *PROFILE, "--json", "-"))["watcher"]["pid"] == process.pid
        assert loop.kb() == 384
    assert loop.kb() == 128


def test_what_cannot_be_watched_is_refused(loop: Loop) -> None:
    watch = ("--watch", *PROFILE)
    one_line(tune(loop, *watch, before=NO_TRACES), "there is no tracefs; allowed: a kernel with block tracepoints")
    if nobody_may():
        one_line(tune(loop, *watch, before=AS_NOBODY), "cannot be written: Permission denied; allowed: root")
    assert (loop.kb(), loop.state.exists()) == (128, False)
    assert tune(loop, "--depth", "1MiB", "--apply").returncode == 0
    one_line(
        tune(loop, *watch, before=TRACES), "was set by --apply, and was 128 before; allowed: headstart tune --restore"
    )
    assert loop.kb() == 1024


def test_python_says_when_it_ends(loop: Loop) -> None:
    """In a separate process, for its traces; there an exception restores the value."""
    program = """
import sys
from headstart import tuning

def look(now):
    looks.append(now)
    if len(looks) == 3:
        raise LookupError("of its own")

looks = []
try:
    tuning.watch(sys.argv[1], profile="ibm-36gb-10k", state=sys.argv[2], progress=look)
except LookupError as error:
    print(error, [look.now_kb for look in looks], [look.ended for look in looks])
"""
    words = [*TRACES, str(COMMAND.with_name("python")), "-c", program, loop.path, str(loop.state)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("of its own [384, 384, 384] [None, None, None]\n", "")
    assert loop.kb() == 128

"""What a local user can do to `headstart tune`, which runs as root: nothing. And which files others may read."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import COMMAND
from tests.test_bad_input import one_line
from tests.test_tune import AS_NOBODY, Loop, loop, loops, nobody_may, reported, tune
from tests.test_tune_watch import INSTANCES_OF_ONE, PROFILE, TRACES, instances, read_in_turn, watched, watches

__all__ = ["loop"]

RUN = Path("/run/headstart")
has_flock = pytest.mark.skipif(
    shutil.which("flock") is None or shutil.which("setpriv") is None, reason="SKIPPED: no flock, or no setpriv"
)
pytestmark = [loops]


@contextmanager
def locked_by_nobody(*places: Path) -> Iterator[None]:
    """Locks by an unprivileged user on all of `places` that may be opened."""
    held = ("sh", "-c", "echo; cat")
    with_each: list[Sequence[str]] = [(*AS_NOBODY, "flock", "-n", str(place), *held) for place in places]
    processes = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for words in with_each
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in processes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.stdout.close()
            process.wait()


def bdi(loop: Loop) -> Path:
    device = Path(loop.path).stat().st_rdev
    return Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}")


@has_flock
def test_a_local_user_s_locks_are_in_nobody_s_way(loop: Loop) -> None:
    assert tune(loop, "--depth", "256KiB", "--apply").returncode == 0
    places = (bdi(loop), loop.folder, *(RUN / name for name in ("state.lock", f"tune-{bdi(loop).name}.lock")))
    with locked_by_nobody(*places):
        for kib in (512, 1024):
            applied = reported(tune(loop, "--depth", f"{kib}KiB", "--apply", "--json", "-"))
            assert (applied["now_kb"], loop.kb()) == (kib, kib)
        assert (tune(loop, "--restore").returncode, loop.kb()) == (0, 128)


@watches
@has_flock
def test_a_local_user_s_locks_do_not_end_a_watch(loop: Loop) -> None:
    with watched(loop, "--json", "-") as process:
        with locked_by_nobody(bdi(loop), loop.folder, RUN / "state.lock"):
            read_in_turn(loop.path, (0, 1 << 28), lambda: loop.kb() < 200 or process.poll() is not None)
            assert (process.poll(), loop.kb() < 200) == (None, True)
        process.terminate()
        out, errors = process.communicate()
    assert (process.returncode, errors, json.loads(out)["ended"], loop.kb()) == (0, "", "stopped", 128)


@watches
def test_a_watch_tries_again_when_another_process_keeps_the_state(loop: Loop) -> None:
    """Root's own lock, held for longer than any command waits."""
    with watched(loop) as process:
        with (RUN / "state.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Long enough for a look that needs to write.
            read_in_turn(loop.path, (0, 1 << 28), iter([False] * 150 + [True]).__next__)
            assert (process.poll(), loop.kb()) == (None, 384)
        read_in_turn(loop.path, (0, 1 << 28), lambda: loop.kb() < 200 or process.poll() is not None)
        assert process.poll() is None
    assert loop.kb() == 128


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o7777)


@pytest.mark.parametrize("umask", ["000", "022", "777"])
def test_what_it_keeps_is_for_root_alone_whatever_the_umask(loop: Loop, umask: str) -> None:
    state = loop.folder / "state" / "tune.json"
    words = [str(COMMAND), "tune", loop.path, "--depth", "1MiB", "--apply", "--state", str(state)]
    done = subprocess.run(["sh", "-c", f'umask {umask}; exec "$@"', "sh", *words], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    lock = RUN / f"tune-{bdi(loop).name}.lock"
    found = {path: mode(path) for path in (state.parent, state, RUN, lock, RUN / "state.lock")}
    assert found == {state.parent: "0o700", state: "0o600", RUN: "0o700", lock: "0o600", RUN / "state.lock": "0o600"}
    if nobody_may():
        line = [*AS_NOBODY, str(COMMAND), "tune", loop.path, "--depth", "256KiB", "--state", str(state), "--json", "-"]
        shown = reported(subprocess.run(line, capture_output=True, text=True, check=False))
        assert shown["notes"] == [f"{state} is for root to read: whether something has been applied is not known"]
    done = subprocess.run(
        [str(COMMAND), "tune", loop.path, "--restore", "--state", str(state)], capture_output=True, check=False
    )
    assert (done.returncode, loop.kb()) == (0, 128)


def test_a_file_of_the_user_s_beside_the_state_stays(loop: Loop) -> None:
    beside = loop.state.with_name(loop.state.name + ".new")
    beside.write_text("mine")
    assert tune(loop, "--depth", "1MiB", "--apply").returncode == 0
    assert tune(loop, "--restore").returncode == 0
    assert beside.read_text() == "mine"
    assert sorted(path.name for path in loop.folder.iterdir()) == ["disk.img", "tune.json", "tune.json.new"]


@pytest.mark.parametrize("number", [2**64 - 1, 2**64 - 4, 2**63, 2**31])
def test_a_state_with_an_impossible_number_is_refused_and_not_written(loop: Loop, number: int) -> None:
    assert tune(loop, "--depth", "1MiB", "--apply").returncode == 0
    good = loop.state.read_text()
    stored = json.loads(good)
    stored["entries"][0]["old_kb"] = number
    loop.state.write_text(json.dumps(stored))
    for words in (("--restore",), ("--restore", "--force"), ("--depth", "2MiB", "--apply")):
        one_line(tune(loop, *words), f"tune.json: is damaged: {Path(loop.path).name}: a read-ahead of {number} KiB")
        assert loop.file.read_text() == "1024\n"
    loop.state.write_text(good)
    assert (tune(loop, "--restore").returncode, loop.kb()) == (0, 128)


@watches
def test_a_restore_sweeps_the_traces_of_a_watch_that_was_killed(loop: Loop) -> None:
    with watched(loop) as process:
        process.kill()
        process.wait()
    assert len(instances(process.pid)) == INSTANCES_OF_ONE
    assert tune(loop, "--restore", before=TRACES).returncode == 0
    assert (instances(process.pid), loop.kb()) == ([], 128)


@watches
@pytest.mark.parametrize(("one", "other"), [("json", "state"), ("openmetrics", "state"), ("json", "openmetrics")])
@pytest.mark.parametrize("how", ["path", "link", "hard link"])
def test_results_do_not_go_where_the_state_is(loop: Loop, one: str, other: str, how: str) -> None:
    """`--json` on the state file once destroyed the stored values."""
    target = loop.folder / "target"
    target.write_text('{"schema":1,"entries":[]}')
    second = {
        "path": loop.folder / "." / ".." / loop.folder.name / "target",
        "link": loop.folder / "link",
        "hard link": loop.folder / "hard",
    }[how]
    if how == "link":
        second.symlink_to(target)
    elif how == "hard link":
        second.hardlink_to(target)
    named = {one: second, other: target}
    state = named.pop("state", loop.state)
    words = [word for name, path in named.items() for word in (f"--{name}", str(path))]
    line = [*TRACES, str(COMMAND), "tune", loop.path, *PROFILE, "--watch", "--for", "0s", "--state", str(state), *words]
    one_line(subprocess.run(line, capture_output=True, text=True, check=False), "is the same file as --")
    assert (loop.kb(), target.read_text()) == (128, '{"schema":1,"entries":[]}')


def test_the_json_of_an_apply_does_not_replace_the_state(loop: Loop) -> None:
    one_line(
        tune(loop, "--depth", "1MiB", "--apply", "--json", str(loop.state)), "tune.json is the same file as --json"
    )
    assert (loop.kb(), loop.state.exists()) == (128, False)

"""How `headstart emulate` ends among others: hang-ups, ignored signals, other mounts at its place."""

import json
import os
import pty
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headstart_lab.livestudy.platform import is_mounted
from tests.conftest import COMMAND
from tests.machines import PATIENCE_S, emulated, mounts, wait_until
from tests.test_emulate import UNIFORM, image
from tests.test_tune import loops

__all__ = ["image"]

IS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: not root")
HAS_EXT4 = pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="SKIPPED: no mkfs.ext4")


def mounts_at(path: Path) -> list[str]:
    """The kinds of file systems at a place, the first that was mounted first."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line.split(" - ")[1].split(" ")[0] for line in lines if line.split(" ")[4] == str(path)]


def run(*words: str | Path) -> str:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def file_system_on(mount: Path, files: Path) -> Iterator[None]:
    """A loop device over the emulated disk, with its file system mounted, as docs/emulate.md has it."""
    device = run("losetup", "--find", "--show", "--read-only", "--direct-io=on", mount / "disk.img")
    try:
        run("mount", "-o", "ro", device, files)
        yield
    finally:
        subprocess.run(["umount", str(files)], check=False, capture_output=True)
        run("losetup", "--detach", device)


@mounts
@loops
@HAS_EXT4
@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGTERM], ids=lambda each: each.name)
def test_below_a_mounted_file_system_it_ends_cleanly(tmp_path: Path, sent: signal.Signals) -> None:
    """A hang-up once left a dead mount below it."""
    image, files = tmp_path / "image", tmp_path / "files"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    run("mkfs.ext4", "-q", image)
    files.mkdir()
    with emulated(image, *UNIFORM, "--json", "-") as (process, mount):
        with file_system_on(mount, files):
            assert (files / "lost+found").is_dir()
            process.send_signal(sent)
            out, errors = process.communicate(timeout=PATIENCE_S)
            assert (process.returncode, mounts_at(mount)) == (0, [])
            assert list(mount.iterdir()) == []
        told = json.loads(out)
        assert (told["was_in_use"], told["was_covered"]) == (True, False)
        assert errors == f"{mount}: was still in use; processes with open files get errors from now on\n"


@mounts
def test_a_terminal_that_is_closed_unmounts_and_leaves_the_statistics(image: Path) -> None:
    """All writes to the terminal fail then."""
    mount, told = image.parent / "mount", image.parent / "stats.json"
    ours, theirs = pty.openpty()
    line = [str(COMMAND), "emulate", *UNIFORM[:1], str(image), str(mount), *UNIFORM[1:], "--json", str(told)]
    with subprocess.Popen(line, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        wait_until(lambda: is_mounted(mount))
        (mount / "disk.img").read_bytes()
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE_S) == 0
    assert not is_mounted(mount)
    assert json.loads(told.read_text())["requests"] > 0


@mounts
@pytest.mark.parametrize("ignored", [signal.SIGINT, signal.SIGHUP], ids=lambda each: each.name)
def test_a_signal_that_is_ignored_at_the_start_stays_so(image: Path, ignored: signal.Signals) -> None:
    """As for a shell's background job, or under nohup."""
    before = signal.signal(ignored, signal.SIG_IGN)
    try:
        with emulated(image, *UNIFORM) as (process, mount):
            process.send_signal(ignored)
            process.send_signal(ignored)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.0)
            assert is_mounted(mount)
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
    finally:
        signal.signal(ignored, before)


@mounts
@IS_ROOT
def test_what_is_mounted_on_it_stays(image: Path) -> None:
    with emulated_under_others(image) as (process, mount):
        run("mount", "-t", "tmpfs", "ours", mount)
        (mount / "kept").write_text("kept")
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, mounts_at(mount)) == (0, ["fuse", "tmpfs"])
        assert (mount / "kept").read_text() == "kept"
        assert errors == (f"{mount}: something else is mounted on it, which stays; umount that, then {mount} itself\n")


@mounts
@IS_ROOT
def test_what_is_mounted_in_its_place_stays(image: Path) -> None:
    with emulated_under_others(image) as (process, mount):
        run("sh", "-c", 'umount "$1" && mount -t tmpfs ours "$1"', "sh", mount)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, errors, mounts_at(mount)) == (0, "", ["tmpfs"])


@mounts
@IS_ROOT
def test_a_file_that_is_mounted_in_it_stays(image: Path) -> None:
    with emulated_under_others(image) as (process, mount):
        run("mount", "--bind", image, mount / "disk.img")
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert "something else is mounted on it" in errors
        assert (mounts_at(mount), len(mounts_at(mount / "disk.img"))) == (["fuse"], 1)
        run("umount", mount / "disk.img")


@contextmanager
def emulated_under_others(image: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The command, with nothing left at its place at the end, whatever it or the test has left."""
    mount = image.parent / "mount"
    line = [str(COMMAND), "emulate", *UNIFORM[:1], str(image), str(mount), *UNIFORM[1:]]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            process.stderr.readline()
            yield process, mount
        finally:
            process.kill()
            process.wait()
            subprocess.run(["umount", str(mount / "disk.img")], check=False, capture_output=True)
            while mounts_at(mount):
                run("umount", mount)

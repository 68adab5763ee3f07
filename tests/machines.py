"""What tests on the machine itself share: whether mounts are possible, an emulated disk, a wait with a limit."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from headstart_lab.livestudy.platform import is_mounted
from tests.conftest import COMMAND

PATIENCE_S = 120.0
MAY_MOUNT = 1 << 21
"""CAP_SYS_ADMIN."""


def why_no_mounts() -> str | None:
    """Why nothing can be mounted here, if so."""
    fuse = Path("/dev/fuse")
    if not os.access(fuse, os.R_OK | os.W_OK):
        return f"{fuse} is not there, or not for us"
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (capabilities,) = (line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    may_mount = int(capabilities, 16) & MAY_MOUNT or shutil.which("fusermount3")
    return None if may_mount else "neither CAP_SYS_ADMIN nor fusermount3"


REASON = why_no_mounts()
mounts = pytest.mark.skipif(REASON is not None, reason=f"SKIPPED, tests of emulated disks: {REASON}")


def wait_until(done: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def sparse(path: Path, size: int) -> Path:
    """A file without any written data."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


@contextmanager
def emulated(image: Path, profile: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """`headstart emulate`, once it has printed its mount point, and that folder; ended when the block is left."""
    mount = image.parent / "mount"
    mount.mkdir(exist_ok=True)
    line = [str(COMMAND), "emulate", profile, str(image), str(mount), *words]
    with running(line) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"{profile} behind fcfs: {mount}/disk.img\n"
        assert is_mounted(mount)
        yield process, mount
    assert not is_mounted(mount)


@contextmanager
def running(line: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A command that is ended when the block is left, first by SIGTERM, so that it cleans up even after a failure."""
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            finally:
                process.kill()

"""The disks of the study: a file system whose caches can be emptied, on an emulated drive or the machine's own."""

import errno
import functools
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from headstart._core import HeadstartError
from headstart_lab.hintstudy.commands import WRITTEN
from headstart_lab.livestudy import platform
from headstart_lab.livestudy.platform import run

MEMORY = Path("/dev/shm")
BYTES = {"ibm-36gb-10k": 36_400_000_000, "seagate-exos-x20": 20_000_588_955_648}
"""The capacities of the drives, so that a distance in the image is a distance on the drive."""
FILE_SYSTEM_BYTES = 36_000_000_000
"""The size of the file system, at the start of the drive."""
PLACES = 128
"""More places than a drive's buffer has segments: 16 (IBM) and 32 (Exos)."""
APART_BYTES = 3_000_000
DROP = Path("/proc/sys/vm/drop_caches")
TRACES = Path("/sys/kernel/tracing/instances")


@dataclass(frozen=True)
class Disk:
    """A disk with the study's files on it."""

    name: str
    root: Path
    """The folder of the files."""
    profile: str | None
    """The profile of the emulated drive; `None`: the machine's own disk."""
    cold: Callable[[], None]
    """Empties the caches of its file system."""
    device: Path | None
    """The block device, if metadata can be read from it."""
    read_bytes: Callable[[], int]
    """Return the bytes read from it so far."""


@contextmanager
def emulated(profile: str, files: Path) -> Iterator[Disk]:
    """A new ext4 with a copy of `files` on an emulated drive; files of other users than root keep their owners."""
    with ExitStack() as stack:
        name = f"headstart-live-{os.getpid()}-"
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=name, dir=MEMORY)))
        # PostgreSQL's processes do not run as root.
        folder.chmod(0o755)
        image, drive, root = folder / "disk.img", folder / "drive", folder / "files"
        drive.mkdir()
        root.mkdir()
        with image.open("wb") as file:
            file.truncate(BYTES[profile])
        options = ["-E", "lazy_itable_init=1,nodiscard", "-O", "^has_journal", "-d", str(files)]
        run("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", *options, str(image), f"{FILE_SYSTEM_BYTES // 1024}k")
        slow = stack.enter_context(platform.emulated(profile, image, drive))
        loop = stack.enter_context(platform.loop_device(slow))
        stack.enter_context(platform.setting(loop, "rotational", "1"))
        written, upper, work = folder / "written", folder / "upper", folder / "work"
        written.mkdir()

        def unmount() -> None:
            for mount in (written, root):
                platform.unmount(mount)

        def cold() -> None:
            untraced()
            unmount()
            # While mounted elsewhere, the file system would stay in use, and this mount would find its caches
            # unchanged.
            if not platform.wait_for(functools.partial(is_free, loop)):
                raise HeadstartError(
                    f"{loop}: the caches of its file system cannot be emptied: it is still mounted in another mount"
                    " namespace; allowed: to unmount it there, or to end the processes of that namespace"
                )
            forget(loop)
            run("mount", "-t", "ext4", "-o", "ro,noatime", str(loop), str(root))
            data = root / WRITTEN
            if data.exists():
                # The drive is not written: a server's writes go to memory.
                for layer in (upper, work):
                    shutil.rmtree(layer, ignore_errors=True)
                    layer.mkdir()
                shutil.copystat(data, upper)
                os.chown(upper, data.stat().st_uid, data.stat().st_gid)
                layers = f"lowerdir={data},upperdir={upper},workdir={work}"
                run("mount", "-t", "overlay", "overlay", "-o", layers, str(written))

        def read_bytes() -> int:
            return int(platform.statistics(drive).bytes)

        def leave() -> None:
            with platform.undisturbed():
                unmount()

        stack.callback(leave)
        cold()
        yield Disk(profile, root, profile, cold, loop, read_bytes)


def forget(drive: Path) -> None:
    """Read beyond the file system until nothing else is in the drive's buffer, which outlasts the kernel's caches."""
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        opened = os.open(drive, os.O_RDONLY | os.O_DIRECT)
        try:
            for place in range(PLACES):
                os.preadv(opened, [page], FILE_SYSTEM_BYTES + place * APART_BYTES // mmap.PAGESIZE * mmap.PAGESIZE)
        finally:
            os.close(opened)


def is_free(device: Path) -> bool:
    """Return whether the kernel does not use a block device: no file system on it is mounted in any namespace."""
    try:
        opened = os.open(device, os.O_RDONLY | os.O_EXCL)
    except OSError as problem:
        if problem.errno != errno.EBUSY:
            raise
        return False
    os.close(opened)
    return True


def untraced() -> None:
    """Wait until earlier traces are removed: removing one takes 0.1 s, in which the kernel creates no other.

    Their names begin with a process id. `headstart run` keeps one of another name.
    """
    platform.wait_for(lambda: not list(TRACES.glob("headstart-[0-9]*")))


@contextmanager
def own(files: Path) -> Iterator[Disk]:
    """The disk that holds `files`."""

    def cold() -> None:
        untraced()
        os.sync()
        DROP.write_text("3", encoding="ascii")

    device = files.stat().st_dev
    statistics = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")

    def read_bytes() -> int:
        return int(statistics.read_text(encoding="ascii").split()[2]) * 512 if statistics.exists() else 0

    yield Disk("this machine's own", files, None, cold, None, read_bytes)


@contextmanager
def files_on(folder: Path) -> Iterator[Path]:
    """A folder for the study's files below `folder`, removed at the end."""
    made = Path(tempfile.mkdtemp(prefix="headstart-hints-", dir=folder))
    made.chmod(0o755)
    try:
        yield made
    finally:
        with platform.undisturbed():
            shutil.rmtree(made, ignore_errors=True)

"""The pages that this machine's kernel reads ahead, beside those of `linux`, read by read (docs/live-study.md).

A file on a loop device is read with a cold cache; the tracepoint mm_filemap_add_to_page_cache, in a tracefs instance
of its own, names the folios that each read adds.
"""

import ctypes
import json
import lzma
import mmap
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart import _core, kernels
from headstart._core import HeadstartError
from headstart_lab.livestudy import platform
from headstart_lab.livestudy.patterns import PAGE, Pattern, patterns

FILE_SYSTEMS = {"ext4": ("mkfs.ext4", "-q", "-F"), "xfs": ("mkfs.xfs", "-q", "-f")}
READ_AHEADS_KB = (0, 16, 64, 128, 256, 1024, 4096, 8192)
FILE_BYTES, IMAGE_BYTES = 128 << 20, 400 << 20
BUFFER_KB = 32 << 10
"""Size of the trace buffer per processor: more than one pattern fills."""
LINE = re.compile(
    r": (?:tracing_mark_write: op (\d+)|mm_filemap_(add_to|delete_from)_page_cache: "
    r"(dev \d+:\d+ ino \w+) .*ofs=(\d+) order=(\d+))"
)
ATTEMPTS = 20
"""Maximum attempts to run a pattern during which no page leaves the cache; all do if a process drops the caches."""
CACHESTAT = 451
"""The number of the system call, on all architectures."""


@dataclass(frozen=True)
class Difference:
    """The first operation of a pattern for which the kernel and the simulator read different pages."""

    pattern: str
    operation: int
    kernel: list[int]
    simulator: list[int]


@contextmanager
def tracing(folder: Path) -> Iterator[Path]:
    """A separate tracefs instance that traces additions to page caches."""
    platform.run("mount", "-t", "tracefs", "none", str(folder))
    try:
        instance = folder / "instances" / f"headstart-pages-{os.getpid()}"
        instance.mkdir()
        try:
            (instance / "buffer_size_kb").write_text(str(BUFFER_KB))
            for event in ("add_to", "delete_from"):
                (instance / f"events/filemap/mm_filemap_{event}_page_cache/enable").write_text("1")
            yield instance
        finally:
            with platform.undisturbed():
                (instance / "events/enable").write_text("0")
                instance.rmdir()
    finally:
        with platform.undisturbed():
            platform.run("umount", "--lazy", str(folder))


def cool(path: Path) -> None:
    """Drop the pages of a file from the cache, including those that are being read.

    Raises:
        HeadstartError: They stay.
    """
    call = ctypes.CDLL(None).syscall
    file = os.open(path, os.O_RDONLY)
    try:
        for _ in range(1000):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            cached = (ctypes.c_uint64 * 5)()
            if call(CACHESTAT, file, (ctypes.c_uint64 * 2)(0, 0), cached, 0) != 0:
                raise HeadstartError("cachestat: the kernel does not have it; Linux 6.5 or newer does")
            if cached[0] == 0:
                return
            time.sleep(0.002)
    finally:
        os.close(file)
    raise HeadstartError(f"{path}: its pages stay in the cache")


def record(path: Path, instance: Path, pattern: Pattern) -> None:
    """Run a pattern and note what the kernel added.

    Raises:
        HeadstartError: Pages repeatedly leave the cache meanwhile.
    """
    for _ in range(ATTEMPTS):
        pattern.added.clear()
        if attempt(path, instance, pattern):
            return
    raise HeadstartError(
        f"{path}: pages leave the cache meanwhile: another process drops the caches, or memory is short"
    )


def attempt(path: Path, instance: Path, pattern: Pattern) -> bool:
    """Make one attempt, and return whether all pages stayed in the cache."""
    cool(path)
    about = path.stat()
    this = f"dev {os.major(about.st_dev)}:{os.minor(about.st_dev)} ino {about.st_ino:x}"
    with ExitStack() as stack:
        files, maps = dict[int, int](), dict[int, mmap.mmap]()
        for descriptor, _, _ in pattern.ops:
            if descriptor in files:
                continue
            files[descriptor] = os.open(path, os.O_RDONLY)
            stack.callback(os.close, files[descriptor])
            if pattern.kind != "read":
                access = mmap.PROT_READ | (mmap.PROT_EXEC if pattern.kind == "text" else 0)
                maps[descriptor] = mmap.mmap(files[descriptor], 0, flags=mmap.MAP_PRIVATE, prot=access)
                stack.callback(maps[descriptor].close)
        (instance / "trace").write_text("")
        (instance / "tracing_on").write_text("1")
        marker = os.open(instance / "trace_marker", os.O_WRONLY)
        stack.callback(os.close, marker)
        for number, (descriptor, offset, size) in enumerate(pattern.ops):
            os.write(marker, b"op %d\n" % number)
            if size is None:
                maps[descriptor][offset]
            else:
                os.pread(files[descriptor], size, offset)
    # Events that arrive during the read are read by the second one.
    (instance / "tracing_on").write_text("0")
    pattern.added.extend([] for _ in pattern.ops)
    now = 0
    for found in map(LINE.search, (instance / "trace").read_text().splitlines()):
        if found and found[1]:
            now = int(found[1])
        elif found and found[3] == this:
            if found[2] == "delete_from":
                return False
            pattern.added[now].append((int(found[4]) // PAGE, 1 << int(found[5])))
    return True


@contextmanager
def file_on(kind: str, folder: Path) -> Iterator[tuple[Path, Path]]:
    """A file of random bytes on a fresh file system, mounted read-only, and its loop device."""
    image, place = folder / "disk.img", folder / "files"
    place.mkdir(exist_ok=True)
    with image.open("wb") as empty:
        empty.truncate(IMAGE_BYTES)
    platform.run(*FILE_SYSTEMS[kind], str(image))
    name = platform.run("losetup", "--find", "--show", str(image))
    try:
        for options in ("rw", "ro"):
            with platform.mounted(Path(name), place, kind, options):
                if options == "rw":
                    with (place / "file").open("wb") as file:
                        file.write(os.urandom(1 << 20) * (FILE_BYTES >> 20))
                        os.fsync(file.fileno())
                else:
                    yield place / "file", Path(name)
    finally:
        with platform.undisturbed():
            platform.run("losetup", "--detach", name)


def differences(info: dict[str, Any], recorded: Sequence[Pattern]) -> list[Difference]:
    """Return the patterns for which `linux` reads other pages than recorded."""
    about = {
        "version": kernels.version(str(info["kernel"])),
        "bytes": info["size"],
        "read_ahead_kb": info["read_ahead_kb"],
        "max_sectors_kb": info["max_sectors_kb"],
    }
    found = []
    for pattern in recorded:
        question = {**about, "text": pattern.kind == "text", "ops": pattern.ops}
        simulated: list[list[int]] = json.loads(_core.kernel_pages(json.dumps(question)))
        for number, (folios, ours) in enumerate(zip(pattern.added, simulated, strict=True)):
            theirs = sorted(page for first, count in folios for page in range(first, first + count))
            if theirs != ours:
                found.append(Difference(pattern.name, number, theirs, ours))
                break
    return found


def study(
    file_systems: Sequence[str], read_aheads_kb: Sequence[int], *, seed: int, quick: bool, out: Path | None
) -> Iterator[tuple[dict[str, Any], int, list[Difference]]]:
    """Record and compare on each file system and size of read-ahead; yield the machine, pattern count and differences.

    Raises:
        HeadstartError: The machine does not permit it.
    """
    # One processor: events of several have no reliable order.
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with tempfile.TemporaryDirectory(prefix=f"headstart-pages-{os.getpid()}-") as name:
            folder = Path(name)
            (folder / "trace").mkdir()
            with tracing(folder / "trace") as instance:
                for kind in file_systems:
                    with file_on(kind, folder) as (path, loop):
                        for read_ahead_kb in read_aheads_kb:
                            with platform.setting(loop, "read_ahead_kb", str(read_ahead_kb)):
                                info = {
                                    "kernel": os.uname().release,
                                    "fs": kind,
                                    "read_ahead_kb": read_ahead_kb,
                                    "max_sectors_kb": int(platform.queue(loop, "max_sectors_kb")),
                                    "size": FILE_BYTES,
                                }
                                recorded = patterns(seed, FILE_BYTES, read_ahead_kb, quick)
                                for pattern in recorded:
                                    record(path, instance, pattern)
                            if out is not None:
                                write(out / f"{kind}-{read_ahead_kb}KiB.json.xz", info, recorded)
                            yield info, len(recorded), differences(info, recorded)
    finally:
        os.sched_setaffinity(0, before)


def write(path: Path, info: dict[str, Any], recorded: Sequence[Pattern]) -> None:
    """Write a recording in the format of the policies' tests."""
    told = [{**vars(each), "ops": [(*op[:2], op[2] or 1) for op in each.ops]} for each in recorded]
    with lzma.open(path, "wt", encoding="ascii") as file:
        json.dump({"info": info, "patterns": told}, file, separators=(",", ":"))

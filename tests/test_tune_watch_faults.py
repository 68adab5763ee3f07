"""`headstart tune --watch` and faults of mapped files, on a file system of an emulated disk."""

import json
import mmap
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import machines
from tests.test_tune import Loop, loops
from tests.test_tune_watch import TRACES, ended, watched, watches

MB = 1 << 20
IMAGE = 36_400_000_000
"""The whole drive, in memory, where few of its blocks are written."""
SLOT = 240 * MB
SLOTS = 120
STREAM = 48 * MB
MISSES = 20
"""Faults of each file that is opened: after 100 misses the kernel stops reading around."""


def why_not() -> str | None:
    """Why faults cannot be followed here, if so."""
    if shutil.which("mkfs.ext4") is None:
        return "no mkfs.ext4"
    event = "/sys/kernel/tracing/events/filemap/mm_filemap_fault"
    found = subprocess.run([*TRACES, "test", "-d", event], check=False)
    return None if found.returncode == 0 else "no mm_filemap_fault: it takes Linux 6.12"


REASON = why_not()
pytestmark = [
    loops,
    watches,
    machines.mounts,
    pytest.mark.skipif(REASON is not None, reason=f"SKIPPED, tests of watched faults: {REASON}"),
]


@contextmanager
def mounted(source: str, folder: Path, options: str) -> Iterator[Path]:
    """A file system of a device or an image; unmounted when the block is left."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", options, source, str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def prepared(image: Path) -> None:
    """Make a file system with a file for faults and one for a stream."""
    options = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", options, "-J", "size=4", str(image)], check=True)
    with mounted(str(image), image.parent / "prepared", "loop") as folder:
        with (folder / "faults").open("wb") as file:
            # Over most of the disk, but only a MiB of each slot is written: the rest needs no reads.
            os.posix_fallocate(file.fileno(), 0, SLOTS * SLOT)
            for slot in range(SLOTS):
                os.pwrite(file.fileno(), bytes(MB), slot * SLOT + (SLOT - MB) // 2)
        (folder / "stream").write_bytes(bytes(STREAM))
    # A concurrent test may have copied all mounts into its own namespace: everything is written once that test has
    # ended.
    describe = ["dumpe2fs", "-h", str(image)]
    machines.wait_until(lambda: b"needs_recovery" not in subprocess.check_output(describe, stderr=subprocess.DEVNULL))


def drop_cache(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def service_s(drive: Path) -> float:
    """Return the service time of all requests of the emulated drive once it is idle, without the machine's delays."""

    def rests() -> bool:
        found.update(json.loads((drive / "stats").read_text(encoding="utf-8")))
        return bool(found["outstanding"] == 0)

    found: dict[str, Any] = {}
    machines.wait_until(rests)
    return float(found["service_ns"]) / 1e9


def fault(path: Path, slots: list[int], drive: Path) -> float:
    """Touch a page in each of these slots of a freshly opened mapped file; return the drive's seconds per touch."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        before = service_s(drive)
        for slot in slots:
            mapped[slot * SLOT + SLOT // 2]
        return (service_s(drive) - before) / len(slots)


def stream(path: Path, drive: Path) -> float:
    """Read a freshly opened file; return the drive's seconds."""
    drop_cache(path)
    before = service_s(drive)
    with path.open("rb", buffering=0) as file:
        while file.read(MB // 16):
            pass
    return service_s(drive) - before


def test_random_faults_are_faster_and_streams_keep_their_depth() -> None:
    """Under a watch, random faults cost the drive less than at the competitive depth, which a stream later gets."""
    folder = Path(f"/dev/shm/headstart-faults-{os.getpid()}")
    folder.mkdir()
    image = machines.sparse(folder / "image", IMAGE)
    chance = random.Random(7)
    try:
        prepared(image)
        with machines.emulated(image, "ibm-36gb-10k") as (_, mount):
            loop = Loop(mount / "disk.img")
            try:
                with mounted(loop.path, folder / "mounted", "ro,noload") as files:
                    faults, streamed = files / "faults", files / "stream"
                    slots = list(range(SLOTS))
                    chance.shuffle(slots)
                    loop.file.write_text("384")
                    at_competitive = fault(faults, slots[:MISSES], mount)
                    stream_at_competitive = stream(streamed, mount)
                    loop.file.write_text("128")
                    with watched(loop, "--json", "-") as process:
                        stream(streamed, mount)
                        assert loop.kb() > 300, "a stream alone"
                        fault(faults, slots[MISSES : 4 * MISSES], mount)
                        machines.wait_until(lambda: loop.kb() == 128)
                        under_watch = fault(faults, slots[4 * MISSES :], mount)
                        assert loop.kb() == 128, "the floor still tells"
                        stream(streamed, mount)
                        stream(streamed, mount)
                        machines.wait_until(lambda: loop.kb() > 300)
                        stream_under_watch = stream(streamed, mount)
                        assert loop.kb() > 300
                        process.terminate()
                        status = ended(process)
            finally:
                loop.close()
    finally:
        shutil.rmtree(folder)
    print(f"fault {at_competitive * 1e3:.1f} ms at 384 KiB, {under_watch * 1e3:.1f} under the watch")
    print(f"stream {stream_at_competitive:.2f} s at 384 KiB, {stream_under_watch:.2f} under the watch")
    print(json.dumps({name: status[name] for name in status if "around" in name or "fault" in name}))
    assert under_watch < 0.85 * at_competitive
    assert stream_under_watch < 1.25 * stream_at_competitive
    assert status["read_arounds"] >= 3 * MISSES
    assert status["around_used_bytes"] < status["around_bytes"] / 6
    assert not status["low_for_faults"]

"""The real readers: processes that read with preadv and time themselves, on a freshly mounted file system.

Readers run at real-time priority if allowed, like the threads that answer for the drive: on a busy machine they would
otherwise wait longer for a processor after each read than for the disk.
"""

import fcntl
import mmap
import multiprocessing
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any

from headstart._core import HeadstartError
from headstart.live.core import Record
from headstart_lab.livestudy.platform import PATIENCE_S, SIGNALS, statistics, undisturbed
from headstart_lab.livestudy.workloads import Read, Workload

KIB = 1024
RUN_S = 300.0
"""Maximum duration of a reader, some twenty times that of the slowest one."""
REST_S = 30.0
"""Maximum time for which the drive may go on after the readers."""
AFTER_EACH_OTHER_S = 0.001
"""Between the starts of readers: the order of their first requests remains the order of their turns."""
PRIORITY = 1
"""Below the priority of the emulated drive's threads."""
FIEMAP = 0xC020660B
"""FS_IOC_FIEMAP of linux/fs.h."""
EVERYTHING = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a workload."""

    elapsed_ns: int
    """From the first reader's start to the last one's end."""
    requests: int
    """Requests of the drive, by its own count, including read-ahead that outlasts its reader."""
    bytes: int
    busy_ns: int
    drive: Record
    """All statistics since the drive was mounted, lateness included."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """The machine's own times, measured separately from the workloads."""

    system_call_ns: int
    """Time of a read of cached data, without the copying."""
    copy_per_kib_ns: int
    request_ns: int
    """Time of a request to the drive and back: a FUSE round trip, the best of five medians, plus the median lateness.

    Medians rather than means, which would include other activity of the machine.
    """


def measure(workload: Workload, folder: Path, drive: Path, before_start: Callable[[], None] = lambda: None) -> Run:
    """Run a workload on the file system at `folder`; the emulated disk is mounted at `drive`.

    Calls `before_start` when all files are open and no reader has started.

    Raises:
        HeadstartError: A reader failed or does not end, the drive does not come to rest, or the caches were not cold.
    """
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(workload.readers) + 1)
    ends: list[Connection] = []
    processes = []
    try:
        for number, reads in enumerate(workload.readers):
            receiver, sender = context.Pipe(duplex=False)
            arguments = (folder, reads, workload.mapped, number * AFTER_EACH_OTHER_S, barrier, sender)
            process = context.Process(target=_reader, args=arguments, daemon=True)
            with undisturbed():
                # Otherwise it could be interrupted before it is known here, and run on.
                process.start()
                processes.append(process)
            sender.close()
            ends.append(receiver)
        # Twice: once all have opened their files, and to start all of them.
        _meet(barrier, ends)
        before = statistics(drive)
        before_start()
        _meet(barrier, ends)
        times = [_times(end) for end in ends]
    finally:
        with undisturbed():
            for process in processes:
                # It has nothing to undo, and may not handle SIGTERM yet.
                process.kill()
                process.join(PATIENCE_S)
    after = _at_rest(drive)
    if after.bytes - before.bytes < workload.size:
        raise HeadstartError(f"{workload.name}: of {workload.size} bytes some were in memory before they were read")
    return Run(
        elapsed_ns=max(end for _, end in times) - min(start for start, _ in times),
        requests=after.requests - before.requests,
        bytes=after.bytes - before.bytes,
        busy_ns=after.busy_ns - before.busy_ns,
        drive=after,
    )


def calibrate(folder: Path, file: str, drive: Path) -> Host:
    """Measure the machine's time for reads of `file`, which is first read into memory, and for a FUSE round trip.

    Uses the readers' priority. The statistics of the drive are never cached: each read of them is a round trip.
    """
    with _opened(folder / file) as warm, _opened(drive / "stats") as stats:
        while os.read(warm, KIB * KIB):
            pass
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        _go_first()
        try:
            small, large = (_read_ns(warm, size, 8 * KIB * KIB) for size in (4 * KIB, 64 * KIB))
            round_trip = min(_read_ns(stats, 1, 1) for _ in range(5))
        finally:
            os.sched_setscheduler(0, *before)
    per_kib = max(0, large - small) // 60
    return Host(
        system_call_ns=max(0, small - 4 * per_kib),
        copy_per_kib_ns=per_kib,
        request_ns=round_trip + _at_rest(drive).lateness_ns.p50,
    )


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_ns(descriptor: int, size: int, within: int) -> int:
    """Return the median time of sequential reads of `size` bytes, repeated within the first `within` bytes."""
    buffer = [bytearray(size)]
    times = []
    for turn in range(501):
        start = time.monotonic_ns()
        os.preadv(descriptor, buffer, turn * size % within)
        times.append(time.monotonic_ns() - start)
    return sorted(times)[len(times) // 2]


def _at_rest(drive: Path) -> Record:
    """Return the drive's statistics once nothing is in flight: a read-ahead outlasts its reader."""
    give_up = time.monotonic() + REST_S
    while (now := statistics(drive)).outstanding:
        if time.monotonic() > give_up:
            raise HeadstartError(
                f"{drive}: {now.outstanding} reads are outstanding after {REST_S:g} s without a reader"
            )
        time.sleep(0.01)
    return now


def _meet(barrier: Any, ends: list[Connection]) -> None:
    try:
        barrier.wait(PATIENCE_S)
    except BrokenBarrierError:
        told = [end.recv() for end in ends if end.poll(1.0)]
        raise HeadstartError(f"a reader failed: {told[0] if told else 'it did not start'}") from None


def _times(end: Connection) -> tuple[int, int]:
    try:
        told: Any = end.recv() if end.poll(RUN_S) else f"it has not ended after {RUN_S:g} s"
    except EOFError:
        told = "it died"
    if isinstance(told, str):
        raise HeadstartError(f"a reader failed: {told}")
    start, stop = told
    return start, stop


def _reader(
    folder: Path, reads: tuple[Read, ...], mapped: bool, delay_s: float, barrier: Any, sender: Connection
) -> None:
    """In a separate process: start with this delay, report when it began and ended, or what went wrong."""
    # The parent process ends this one; inherited handlers would undo what belongs to the parent.
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL if each == signal.SIGTERM else signal.SIG_IGN)
    try:
        files = {name: os.open(folder / name, os.O_RDONLY) for name in dict.fromkeys(read.file for read in reads)}
        for file in files.values():
            _map(file)
            # A process that has copied our mounts into its own namespace keeps the file system and its pages alive.
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        buffer = memoryview(bytearray(max(read.size for read in reads)))
        plan = [(files[read.file], [buffer[: read.size]], read.offset, read.size) for read in reads]
        maps = {name: mmap.mmap(file, 0, prot=mmap.PROT_READ) for name, file in files.items()} if mapped else {}
        pages = [(maps[read.file], read.offset) for read in reads] if mapped else []
        barrier.wait(PATIENCE_S)
        barrier.wait(PATIENCE_S)
        _go_first()
        time.sleep(delay_s)
        start = time.monotonic_ns()
        for page, offset in pages:
            page[offset]
        for file, into, offset, size in plan if not mapped else []:
            if os.preadv(file, into, offset) != size:
                raise OSError(f"a read of {size} bytes at {offset} was short")
        sender.send((start, time.monotonic_ns()))
    except (OSError, BrokenBarrierError) as error:
        sender.send(f"{type(error).__name__}: {error}")
        barrier.abort()


def _map(file: int) -> None:
    """Let the file system read the file's map now: reading it from the disk is no part of the workload."""
    fcntl.ioctl(file, FIEMAP, bytearray(struct.pack("=QQLLLL", 0, EVERYTHING, 0, 0, 0, 0)))


def _go_first() -> None:
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))

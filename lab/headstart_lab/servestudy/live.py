"""One case in real time: a server for L2 before an emulated disk, a server for L1 before that, and a replay.

Each is a process, at real-time priority if allowed: otherwise the wait of a thread for a processor on a busy machine
would count as the server's time. All processes of a case share one processor, so that a thread wakes the next one
without
another processor. The link is L2's `link`: its server delays each reply. The servers are connected by a Unix socket.
"""

import dataclasses
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import headstart
from headstart._core import HeadstartError
from headstart.live.core import Record
from headstart.live.play import play_trace
from headstart_lab.livestudy.platform import PATIENCE_S, undisturbed, wait_for
from headstart_lab.servestudy.cases import DISKS, FREE, Case, Way
from headstart_lab.servestudy.workloads import Workload

DEPTH = 512
"""Reads in flight for each backing: the simulator's levels have no limit."""
PRIORITY = 1
SETTLE_S = 30.0
"""Maximum time for which prefetches may go on after the last reply."""

Task = Callable[[Callable[[Any], bool]], Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figures:
    """The compared figures. Counts are pages, except for requests."""

    response_ns: float
    l1_hits: int
    l1_fetches: int
    l2_hits: int
    l2_fetches: int
    disk_requests: int
    disk_pages: int
    elapsed_ns: int
    l1_hits_ready: int
    l2_hits_ready: int

    @classmethod
    def of(cls, levels: list[Any], *, response_ns: float, requests: int, pages: int, elapsed_ns: int) -> "Figures":
        """Return the figures from the counts of both levels, without those below, and of the disk."""
        upper, lower, *_ = levels
        return cls(
            response_ns=response_ns,
            l1_hits=upper["hits_ready"] + upper["hits_unready"],
            l1_fetches=upper["fetches"],
            l2_hits=lower["hits_ready"] + lower["hits_unready"],
            l2_fetches=lower["fetches"],
            disk_requests=requests,
            disk_pages=pages,
            elapsed_ns=elapsed_ns,
            l1_hits_ready=upper["hits_ready"],
            l2_hits_ready=lower["hits_ready"],
        )


def predicted(case: Case, workload: Workload, way: Way = FREE) -> Figures:
    """Simulate the case, with the servers' own time added to the links and to each request from the player."""
    result = headstart.simulate(case.scenario(workload, way))
    return Figures.of(
        list(result.levels),
        response_ns=result.response_ns["mean"] + way.near_ns,
        requests=sum(device["requests"] for device in result.devices),
        pages=sum(device["blocks"] for device in result.devices),
        elapsed_ns=result.elapsed_ns,
    )


def image(folder: Path, disk: str) -> Path:
    """Return the image of a disk: as large as the drive, sparse, zeroes."""
    path = folder / f"{disk}.img"
    with path.open("ab") as file:
        file.truncate(DISKS[disk])
    return path


def measured(case: Case, workload: Workload, folder: Path) -> tuple[Figures, int]:
    """Run the case; also return the 99th percentile of the lateness of the disk's answers, in nanoseconds.

    Raises:
        HeadstartError: A server does not become ready, or a request failed.
    """
    disk = f"emulate:{case.disk},deadline:{image(folder, case.disk)}"
    with chain(disk, case.levels(workload.footprint), folder) as (above, below, uri):
        played: Record = in_process(
            lambda: play_trace(
                workload.trace,
                uri,
                format="csv",
                arrival="open" if workload.open else "closed",
            )
        )
        if played.errors:
            raise HeadstartError(f"{case.label}: {played.errors} requests failed")
        ends = [at_rest(each) for each in (above, below)]
    device = ends[1]["device"]
    figures = Figures.of(
        [end["level"] for end in ends],
        response_ns=played.response_ns["mean"],
        requests=device["device_requests"],
        pages=device["bytes"] // 4096,
        elapsed_ns=played.elapsed_ns,
    )
    return figures, device["lateness_ns"]["p99"]


@contextmanager
def chain(backing: str, levels: list[dict[str, Any]], folder: Path) -> Iterator[tuple["Child", "Child", str]]:
    """Run two servers, L1 before L2 before `backing`; gives the process of L1, that of L2, and the address of L1."""
    own = Path(tempfile.mkdtemp(prefix="case-", dir=folder))
    upper, lower = ({"separate_prefetch": False, **level} for level in levels)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, own, ignore_errors=True)

        def serve(backing: str, level: dict[str, Any]) -> tuple[Child, str]:
            socket = own / level["name"]

            def task(tell: Callable[[Any], bool]) -> None:
                headstart.serve(backing, listen=f"unix:{socket}", level=level, depth=DEPTH, progress=tell)

            return stack.enter_context(_process(task, socket.exists)), f"nbd+unix:///?socket={socket}"

        below, uri = serve(backing, lower)
        above, uri = serve(uri, upper)
        yield above, below, uri


class Child:
    """A process that runs a task until it is told to end, and reports its progress on request."""

    def __init__(self, connection: Connection, process: Any) -> None:
        """Take both."""
        self.connection = connection
        self.process = process

    def ask(self) -> Any:
        """Return the task's report.

        Raises:
            HeadstartError: The task has failed, or does not answer.
        """
        with suppress(OSError):
            self.connection.send("how far?")
        try:
            said = self.connection.recv() if self.connection.poll(PATIENCE_S) else "a process of the study is stuck"
        except EOFError:
            said = "a process of the study died"
        if isinstance(said, str):
            raise HeadstartError(said)
        return said

    def end(self) -> None:
        """End the process."""
        with suppress(OSError):
            self.connection.send("end")
        self.process.join(PATIENCE_S)
        self.process.kill()
        self.process.join()


@contextmanager
def _process(task: Task, ready: Callable[[], bool]) -> Iterator[Child]:
    """Run a task in a separate process until the block is left; the task receives a channel for its progress."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def body() -> None:
        os.setsid()
        _go_first()

        def tell(now: Any) -> bool:
            while theirs.poll():
                if theirs.recv() == "end":
                    return True
                theirs.send(now)
            return False

        try:
            task(tell)
        except HeadstartError as error:
            theirs.send(str(error))

    with undisturbed():
        process = context.Process(target=body, daemon=True)
        process.start()
        theirs.close()
    child = Child(ours, process)
    try:
        if not wait_for(lambda: ready() or not process.is_alive()) or not process.is_alive():
            child.ask()
        yield child
    finally:
        with undisturbed():
            child.end()


@contextmanager
def awake(processors: Iterable[int]) -> Iterator[None]:
    """Keep processors awake until the block is left, with loops that yield to all other work.

    Waking a thread on a sleeping virtual processor takes 50 us; a request wakes half a dozen.
    """
    context, parent = multiprocessing.get_context("fork"), os.getpid()

    def loop(processor: int) -> None:
        os.setsid()
        os.sched_setaffinity(0, {processor})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while os.getppid() == parent:
            for _ in range(100_000):
                pass

    loops = [context.Process(target=loop, args=(each,), daemon=True) for each in processors]
    try:
        with undisturbed():
            for process in loops:
                process.start()
        yield
    finally:
        with undisturbed():
            for process in loops:
                process.kill()
                process.join()


def in_process(task: Callable[[], Any], *, goes_first: bool = True) -> Any:
    """Return the result of a task that runs in a separate process, with priority over other work if it `goes_first`."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def body() -> None:
        if goes_first:
            _go_first()
        try:
            sender.send(task())
        except HeadstartError as error:
            sender.send(str(error))

    process = context.Process(target=body, daemon=True)
    with undisturbed():
        process.start()
    try:
        sender.close()
        found = receiver.recv()
    except EOFError:
        raise HeadstartError("the replay died") from None
    finally:
        process.join(PATIENCE_S)
        process.kill()
    if isinstance(found, str):
        raise HeadstartError(found)
    return found


def at_rest(server: Child) -> Any:
    """Return the counts of a server's level once two successive reports are equal and nothing is in flight."""
    before, give_up = None, time.monotonic() + SETTLE_S
    while time.monotonic() < give_up:
        time.sleep(0.25)
        export = server.ask()["exports"][0]
        now = (export["level"], export["backing_read_bytes"])
        if now == before and export["outstanding"] == 0:
            return export
        before = now
    raise HeadstartError("a server does not come to rest after the last reply")


def _go_first() -> None:
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))

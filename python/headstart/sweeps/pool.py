"""Sweeps on this machine: worker processes, each with the traces that it has decoded.

A worker with short runs receives its next run in advance, so that it never waits. It keeps a trace as long as there are
runs of it. It is in its own process group, and ends when its input ends.
"""

import collections
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headstart._core import HeadstartError
from headstart._input import plain
from headstart.sweeps import rows
from headstart.sweeps.folder import Folder, Part
from headstart.sweeps.grid import Case
from headstart.sweeps.tally import Tally

SHORT_S = 0.1
"""A run below this time is short."""
LOOK_EVERY_S = 0.05
DEATHS_MAX = 2
"""Workers that may die over one run before it counts as failed."""


class Worker:
    """A process and the runs assigned to it."""

    def __init__(self, folder: Folder, lock: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "headstart.sweeps.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
            # Another sweep in the folder must wait for the last worker of this one.
            pass_fds=(lock,),
        )
        self.cases: collections.deque[Case] = collections.deque()
        self.trace: str | None = None
        self.share = 0.0
        self.ahead = False
        """Whether it receives its next run before it has finished one."""
        self._rest = b""
        self.send({"scenario": folder.grid.base, "part": str(folder.new_part())})

    def send(self, what: Mapping[str, Any]) -> None:
        """Send it a line; its death is noticed when its output ends."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(what, ensure_ascii=False).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def received(self) -> list[dict[str, Any]] | None:
        """Return the worker's message; `None` if the worker has ended."""
        assert self.process.stdout is not None
        found = os.read(self.process.stdout.fileno(), 1 << 16)
        if not found:
            return None
        *lines, self._rest = (self._rest + found).split(b"\n")
        return [json.loads(line) for line in lines]


class Queue:
    """Runs that have not begun, by trace."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._by_trace: dict[str | None, collections.deque[Case]] = {}
        for case in cases:
            self._by_trace.setdefault(case.trace, collections.deque()).append(case)

    def put_back(self, case: Case) -> None:
        """Take a run back."""
        self._by_trace.setdefault(case.trace, collections.deque()).appendleft(case)

    def take(self, trace: str | None, busy: Iterable[str | None]) -> Case | None:
        """Return a run of `trace`, or else of the trace that fewest of the `busy` workers read."""
        if trace not in self._by_trace:
            if not self._by_trace:
                return None
            readers = collections.Counter(busy)
            trace = min(self._by_trace, key=lambda each: (readers[each], -len(self._by_trace[each])))
        cases = self._by_trace[trace]
        case = cases.popleft()
        if not cases:
            del self._by_trace[trace]
        return case


def run(
    folder: Folder,
    lock: int,
    cases: Iterable[Case],
    located: Mapping[str, str],
    *,
    workers: int,
    tally: Tally,
    tell: Callable[[], object],
) -> None:
    """Run the cases in `workers` processes; `tell` is called twenty times a second, and stops all if it raises."""
    queue = Queue(cases)
    deaths: collections.Counter[int] = collections.Counter()
    own: Part | None = None
    selector = selectors.DefaultSelector()
    pool: list[Worker] = []

    def feed(worker: Worker) -> None:
        while len(worker.cases) < 1 + worker.ahead:
            case = queue.take(worker.trace, (each.trace for each in pool if each is not worker))
            if case is None:
                return
            worker.trace = case.trace
            worker.cases.append(case)
            local = None if case.trace is None else located[case.trace]
            worker.send({"index": case.index, "overrides": case.overrides, "trace": case.trace, "local": local})

    def start() -> None:
        worker = Worker(folder, lock)
        pool.append(worker)
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
        feed(worker)

    try:
        for _ in range(workers):
            start()
        while any(worker.cases for worker in pool):
            for key, _ in selector.select(LOOK_EVERY_S):
                worker = key.data
                said = worker.received()
                if said is None:
                    selector.unregister(key.fileobj)
                    pool.remove(worker)
                    died = _died(worker)
                    if worker.cases:
                        deaths[worker.cases[0].index] += 1
                        if deaths[worker.cases[0].index] == DEATHS_MAX:
                            with folder.named():
                                own = own or Part(folder.new_part())
                                own.append(worker.cases.popleft().index, rows.failed(died))
                            tally.finished(failed=True)
                    elif not deaths:
                        raise HeadstartError(f"sweep: {died} before its first run")
                    for case in reversed(worker.cases):
                        queue.put_back(case)
                    start()
                    continue
                for each in said:
                    if "share" in each:
                        worker.share = each["share"]
                        continue
                    if "unwritten" in each:
                        problem = f"{plain(folder.path)}: a row cannot be written: {each['unwritten']}"
                        raise HeadstartError(f"{problem}; allowed: a folder that can be written, with room")
                    worker.cases.popleft()
                    worker.share = 0.0
                    worker.ahead = each["seconds"] < SHORT_S
                    tally.finished(failed=each["failed"])
                    tally.peak(worker.process.pid, each["peak_bytes"])
                    feed(worker)
            tally.under_way = sum(worker.share for worker in pool)
            tell()
    finally:
        for worker in pool:
            worker.process.kill()
        for worker in pool:
            worker.process.wait()
        selector.close()
        if own is not None:
            own.close()


def _died(worker: Worker) -> str:
    """Return how a process has ended, in words."""
    status = worker.process.wait()
    if status < 0:
        return f"its process was ended by signal {-status} (9: perhaps by the system, for lack of memory)"
    return f"its process ended with status {status}"

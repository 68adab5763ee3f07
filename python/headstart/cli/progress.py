"""Long runs: work on a separate thread, a progress bar on stderr, immediate response to Ctrl-C.

The bar appears after a second, and only if stderr is a terminal.
"""

import concurrent.futures
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from headstart import temporary
from headstart.cli.shown import plain

ENDING = [
    getattr(signal, name)
    for name in ("SIGHUP", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGXCPU")
    if hasattr(signal, name)
]
"""Signals besides Ctrl-C that end a process by default. They are caught, to remove temporary files first."""
PATIENCE_S = 1.0
"""Shorter runs show no bar."""
REFRESH_S = 0.1
TIDY_S = 0.05
"""Time that the work has to end after Ctrl-C, which it checks fifty times a second. Work in one long step is
abandoned, and its temporary files are removed."""
LIVE_TIDY_S = 1.0
"""The same for work on a real device or server, which must be restored."""

T = TypeVar("T")
Tell = Callable[..., None]
"""`tell(share, text=None)`: the share done, 0 to 1, and the current step."""


class _State:
    """The worker's latest report; single attributes, so that no lock is needed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.share = 0.0
        self.stop = False

    def tell(self, share: float, text: object = None) -> None:
        if self.stop:
            raise KeyboardInterrupt
        self.share = share
        if isinstance(text, str):
            self.text = text


def watched(text: str, work: Callable[[Tell], T], *, time_left: bool = False, tidy_s: float = TIDY_S) -> T:
    """Return the result of `work(tell)` and show its progress; with `time_left`, also the remaining time."""
    state = _State(text)
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work(state.tell))
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that the process can end while the core is between two of its reports.
    with _ending_signals() as ended_by:
        try:
            # A signal may arrive during the thread's start, when the work is already running.
            threading.Thread(target=run, daemon=True).start()
            return _wait(state, future, time_left)
        except KeyboardInterrupt:
            # A second Ctrl-C must not interrupt the clean-up.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            state.stop = True
            concurrent.futures.wait([future], tidy_s)
            temporary.remove_all()
            if ended_by:
                # The parent process must see the original signal.
                signal.signal(ended_by[0], signal.SIG_DFL)
                os.kill(os.getpid(), ended_by[0])
            raise


@contextmanager
def _ending_signals() -> Iterator[list[int]]:
    """Handle signals that would end the process like Ctrl-C, once; yield the list of signals received.

    Ignored signals, and signals for which the command has its own handler, are left unchanged.
    """
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if len(came) == 1:
            raise KeyboardInterrupt

    taken: list[int] = []
    if threading.current_thread() is threading.main_thread():
        taken = [each for each in ENDING if signal.getsignal(each) == signal.SIG_DFL]
    for each in taken:
        signal.signal(each, stop)
    try:
        yield came
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


def _wait(state: _State, future: Future[T], time_left: bool) -> T:
    """Wait for the work; show the progress on a terminal."""
    if not sys.stderr.isatty():
        # With a timeout: Ctrl-C may reach another thread, and this one must wake up to see it.
        while not concurrent.futures.wait([future], REFRESH_S).done:
            pass
        return future.result()
    try:
        return future.result(timeout=PATIENCE_S)
    except TimeoutError:
        if future.done():
            raise
    return _show(state, future, time_left)


def _show(state: _State, future: Future[T], time_left: bool) -> T:
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()]
    if time_left:
        columns += [TimeRemainingColumn(elapsed_when_finished=False), TextColumn("left")]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(plain(state.text), total=None)
        while True:
            try:
                return future.result(timeout=REFRESH_S)
            except TimeoutError:
                if future.done():
                    raise
            # No progress reported yet: the trace is being read, and the bar only moves.
            total = 1.0 if state.share > 0 else None
            bar.update(task, description=plain(state.text), completed=state.share, total=total)

"""What a command needs that goes on until a signal comes: a status line on a terminal, and its end."""

import os
import select
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Generic, TypeVar

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headstart.cli.shown import plain

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a command: Ctrl-C, `kill`, and a terminal that is closed."""
WINDOW = 10
"""Number of looks over which rates are taken: one second."""


class Following(Generic[T]):
    """Says how it begins with the first look, keeps the status line, and is stopped by any of the signals `ending`.

    A signal that is ignored when it begins stays so: SIGHUP under nohup, SIGINT of what a shell has put aside.

    `beginning` makes the line of the first look, `status` that of what was done from one look to another.
    """

    def __init__(
        self, ending: Sequence[signal.Signals], beginning: Callable[[T], str], status: Callable[[T, T], str]
    ) -> None:
        self.ending = [each for each in ending if signal.getsignal(each) is not signal.SIG_IGN]
        self.beginning = beginning
        self.status = status
        self.stopped = False
        self.terminals = [each for each in (sys.stdout, sys.stderr) if each.isatty()]
        self.looks: deque[T] = deque(maxlen=WINDOW + 1)
        console = Console(stderr=True, highlight=False)
        self.live = Live(console=console, auto_refresh=False, transient=True) if sys.stderr.isatty() else None

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """Take a signal. A second one finds nothing more to do."""
        self.stopped = True
        self.leave_terminals()

    def leave_terminals(self) -> None:
        """Write nothing to a closed terminal: writing there would fail, and the work must end cleanly."""
        for stream in self.terminals:
            poll = select.poll()
            poll.register(stream.fileno(), 0)
            if poll.poll(0):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)

    def look(self, now: T) -> bool:
        """Show `now`; return whether that is all."""
        try:
            self.show(now)
        except OSError:
            # The terminal has been closed; the signal that says so follows.
            self.leave_terminals()
            self.stopped = True
        return self.stopped

    def show(self, now: T) -> None:
        """Show `now` on stderr."""
        if not self.looks:
            print(plain(self.beginning(now)), file=sys.stderr, flush=True)
            if self.live is not None:
                self.live.start()
        self.looks.append(now)
        if self.live is not None:
            self.live.update(Text(plain(self.status(self.looks[0], now))), refresh=True)

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Take the signals, and give them back."""
        before = {each: signal.signal(each, self.stop) for each in self.ending}
        try:
            yield
        finally:
            if self.live is not None:
                self.live.stop()
            for each, handler in before.items():
                # Nothing, if Python had not set it.
                signal.signal(each, handler or signal.SIG_DFL)

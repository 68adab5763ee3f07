"""Support for commands that run until a signal arrives: a status line on a terminal, and a clean end."""

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
"""Signals that end a command: Ctrl-C, `kill`, and a closed terminal."""
WINDOW = 10
"""Number of status updates over which rates are averaged: one second."""


class Following(Generic[T]):
    """Prints the first lines, keeps the status line up to date, and stops at any of the signals `ending`.

    Signals that are ignored at the start stay ignored: SIGHUP under nohup, SIGINT of a background job.

    `beginning` returns the first lines; `status` formats the activity between two updates. The signals `kills` end the
    process at once before the first update, and after a signal has stopped the command: storage that does not answer
    cannot hold it up.
    """

    def __init__(
        self,
        ending: Sequence[signal.Signals],
        beginning: Callable[[T], Sequence[str]],
        status: Callable[[T, T], str],
        *,
        kills: Sequence[signal.Signals] = (),
    ) -> None:
        self.ending = [each for each in ending if signal.getsignal(each) is not signal.SIG_IGN]
        self.kills = [each for each in self.ending if each in kills]
        self.beginning = beginning
        self.status = status
        self.stopped = False
        self.terminals = [each for each in (sys.stdout, sys.stderr) if each.isatty()]
        self.looks: deque[T] = deque(maxlen=WINDOW + 1)
        console = Console(stderr=True, highlight=False)
        self.live = Live(console=console, auto_refresh=False, transient=True) if sys.stderr.isatty() else None

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle a signal. A second one has no further effect, or ends the process if it is among `kills`."""
        self.stopped = True
        self.set_kills(signal.SIG_DFL)
        self.leave_terminals()

    def set_kills(self, handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
        """Set what the signals `kills` do."""
        for each in self.kills:
            signal.signal(each, handler)

    def leave_terminals(self) -> None:
        """Stop writing to a closed terminal: a write would fail and prevent a clean end."""
        for stream in self.terminals:
            poll = select.poll()
            poll.register(stream.fileno(), 0)
            if poll.poll(0):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)

    def look(self, now: T) -> bool:
        """Show `now`; return whether the command is to end."""
        try:
            self.show(now)
        except OSError:
            # The terminal was closed; SIGHUP follows.
            self.leave_terminals()
            self.stopped = True
        return self.stopped

    def show(self, now: T) -> None:
        """Show `now` on stderr."""
        if not self.looks:
            self.set_kills(self.stop)
            for line in self.beginning(now):
                print(plain(line), file=sys.stderr, flush=True)
            if self.live is not None:
                self.live.start()
        self.looks.append(now)
        if self.live is not None:
            self.live.update(Text(plain(self.status(self.looks[0], now))), refresh=True)

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Install the signal handlers, and restore the previous ones at the end."""
        before = {each: signal.signal(each, self.stop) for each in self.ending}
        self.set_kills(signal.SIG_DFL)
        try:
            yield
        finally:
            if self.live is not None:
                self.live.stop()
            for each, handler in before.items():
                # `None` if the handler was not set by Python.
                signal.signal(each, handler or signal.SIG_DFL)

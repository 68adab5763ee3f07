"""Disclosed orders: what a program is going to read, sent to the daemon a chunk at a time from a thread.

What has been sent and not yet read is kept, and is sent again to the daemon that follows one that has ended.
"""

import json
import os
import threading
import time
import warnings
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType

from headstart._core import HeadstartError
from headstart._input import plain
from headstart.live.store.connection import Connection, Item, LostError
from headstart.live.store.daemon import Daemon
from headstart.live.store.entries import LATER, Entry, Later, item_of

_CHUNK = 4096
"""Entries of a request."""
AHEAD = 1 << 21
"""Entries of an order that the daemon knows of at a time. A guess: two epochs of most data sets."""
_TICK = 0.1


class Order:
    """A disclosed order. It ends with `withdraw`, with its store, or once all of it has been read."""

    def __init__(self, daemon: Daemon, entries: Iterable[Entry | Later], ahead: int = AHEAD) -> None:
        self._daemon = daemon
        self._ahead = ahead
        self._entries = (LATER if each is LATER else item_of(each) for each in entries)
        self._connection: Connection | None = daemon.join()
        self._sent = _Sent()
        self._asking = threading.Lock()
        self._over = threading.Event()
        self._problem: str | None = None
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._send_all, name="headstart-order", daemon=True)
        self._thread.start()

    @property
    def left(self) -> int:
        """Entries that the daemon knows and that have not been read.

        Raises:
            HeadstartError: An entry is wrong, or is no object: what comes after it has not been disclosed.
        """
        if self._problem is not None:
            raise HeadstartError(self._problem)
        return 0 if os.getpid() != self._process else self._ask("left")

    def withdraw(self) -> None:
        """Forget the order: what it names is no longer read ahead."""
        if os.getpid() != self._process:
            return
        self._over.set()
        with self._asking:
            connection, self._connection = self._connection, None
            if connection is not None and connection.usable:
                try:
                    connection.ask("withdraw", order=0)
                except LostError:
                    return

    def __enter__(self) -> "Order":
        """Return the order."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Withdraw it."""
        self.withdraw()

    def _ask(self, op: str, items: list[Item] | None = None) -> int:
        fields = {} if items is None else {"items": items}
        with self._asking:
            if self._connection is None:
                return 0
            try:
                left: int = self._connection.ask(op, order=0, **fields)["left"]
            except LostError:
                self._connection = self._daemon.join()
                for chunk in self._sent:
                    self._connection.ask("disclose", order=0, items=chunk)
                left = self._connection.ask(op, order=0, **fields)["left"]
            if items is not None:
                self._sent.append(items)
            self._sent.keep(left)
            return left

    def _send_all(self) -> None:
        try:
            for chunk in _chunks(self._entries):
                begun = time.monotonic()
                left = self._ask("disclose", chunk) if chunk else 0
                # Half of the time is the program's: both hold Python's lock.
                pause = time.monotonic() - begun if chunk else _TICK
                while not self._over.wait(pause) and left >= self._ahead:
                    left, pause = self._ask("left"), _TICK
                if self._over.is_set():
                    return
            # The order lives as long as its connection, whether or not the caller has kept it.
            while self._ask("left") and not self._over.wait(_TICK):
                pass
            self.withdraw()
        except Exception as error:  # Whatever the caller's iterable raises.
            self._problem = f"the disclosed order ends early: {plain(getattr(error, 'strerror', None) or error)}"
            warnings.warn(self._problem, RuntimeWarning, stacklevel=1)


class _Sent:
    """Chunks that were sent, packed: of a million entries, some 10 MB."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, bytes]] = deque()
        self._count = 0
        self._left = 0

    def append(self, items: list[Item]) -> None:
        self._chunks.append((len(items), zlib.compress(json.dumps(items).encode(), 1)))
        self._count += len(items)

    def keep(self, left: int) -> None:
        """Forget what comes before the last `left` entries."""
        self._left = left
        while self._chunks and self._count - self._chunks[0][0] >= left:
            self._count -= self._chunks.popleft()[0]

    def __iter__(self) -> Iterator[list[Item]]:
        """Return the last entries, as many as are left, in chunks."""
        read = max(self._count - self._left, 0)
        for _, packed in self._chunks:
            items: list[Item] = json.loads(zlib.decompress(packed))
            yield items[read:]
            read = 0


def _chunks(items: Iterator[Item | Later]) -> Iterator[list[Item]]:
    """Return the items in lists, an empty one if there are none for the moment."""
    chunk: list[Item] = []
    for item in items:
        if item is not LATER:
            chunk.append(item)
        if item is LATER or len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk

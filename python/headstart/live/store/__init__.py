"""A cache of objects that all programs of a node share, for readers that know their order (docs/store.md).

    store = headstart.store("s3://bucket/train/", cache="8GiB", spill="/nvme/headstart:200GiB")
    order = store.disclose((f"{number:06}.jpg" for number in permutation))
    for number in permutation:
        view = store.read(f"{number:06}.jpg")

The first program starts the node's daemon, others join it; it ends when none is connected any more. Keys are relative
to the URL. A read gives a read-only memoryview of the daemon's memory, without a copy if it is larger than 16 KiB and
was not read in other parts before. The bytes stay in memory until the last view of them is gone, NumPy and Arrow arrays
included; they belong to the process that has read them. A store can be used by any number of threads, after a fork, and
as an argument of a spawned process.
"""

import json
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from headstart._core import HeadstartError
from headstart._input import name, plain
from headstart.live.core import Record
from headstart.live.store.connection import Connection, LostError
from headstart.live.store.daemon import Daemon, daemon_for
from headstart.live.store.entries import Entry, Later, item_of, noting
from headstart.live.store.obspec import Ranges
from headstart.live.store.order import AHEAD, Order

__all__ = ["Entry", "Order", "Store", "store"]

T = TypeVar("T")
Views = list[memoryview]
Sizes = list[tuple[str, int]]


class Store(Ranges):
    """A connection to the node's daemon for a source."""

    def __init__(self, of: Daemon) -> None:
        self._daemon = of
        self._reset()
        self._idle.append(of.join())
        _stores.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._orders: weakref.WeakSet[Order] = weakref.WeakSet()
        self._closed = False

    def __reduce__(self) -> tuple[type["Store"], tuple[Daemon]]:
        """Pickle the options: another process joins the daemon again."""
        return Store, (self._daemon,)

    @property
    def url(self) -> str:
        """The source."""
        return self._daemon.url

    def read(self, key: str, start: int = 0, stop: int | None = None) -> memoryview:
        """Return bytes of an object, from `start` up to `stop` or its end.

        Raises:
            FileNotFoundError: There is no such object.
            HeadstartError: There is no such range, the object has changed, the source fails, or views hold all memory.
        """
        return self.read_many([(key, start, stop)])[0]

    def read_many(self, entries: Sequence[Entry]) -> Views:
        """Return the bytes of several keys and ranges, by one request. Raises as `read` does."""
        items = [item_of(each) for each in entries]
        if (noted := noting.get()) is not None:
            noted += items
        return self._with(lambda connection: connection.read(items))

    def disclose(self, entries: Iterable[Entry | Later], *, ahead: int = AHEAD) -> Order:
        """Tell what will be read, and in which order; several epochs are one iterable after another.

        It is read ahead, and what is needed last is evicted first. Any process may read it, and in another order, too.
        A thread consumes the iterable, `ahead` entries ahead of what is read: two epochs are best, since what is not
        known by then counts as never read again. A million entries take up to 120 MB of the daemon's memory.
        """
        order = Order(self._daemon, entries, ahead)
        with self._lock:
            self._orders.add(order)
        return order

    def size(self, key: str) -> int:
        """Return the size of an object in bytes.

        Raises:
            FileNotFoundError: There is no such object.
        """
        key = name(key, "object")
        sizes: list[int] = self._with(lambda connection: connection.ask("size", keys=[key])["sizes"])
        return sizes[0]

    def list(self, prefix: str = "") -> Sizes:
        """Return the keys that begin with `prefix`, sorted, and their sizes. The source is asked once."""
        prefix = name(prefix, "object")
        answer: dict[str, Any] = self._with(lambda connection: connection.ask("list", prefix=prefix))
        return [(key, size) for key, size in answer["objects"]]

    def report(self, *, optimum: bool = True) -> Record:
        """Return what the daemon has done for all its programs; `optimum`: with what takes a pass over all reads."""
        answer: dict[str, Any] = self._with(lambda connection: connection.ask("report", optimum=optimum))
        return Record.from_json(json.dumps(answer["report"]))

    def page(self) -> str:
        """Return the report as an HTML page, with waits and bytes over time. Needs `headstart[report]`."""
        from headstart.report.store import store_page

        return store_page(self.report())

    def close(self) -> None:
        """Disconnect and withdraw the orders. Views stay valid."""
        with self._lock:
            self._closed = True
            self._idle.clear()
            orders = list(self._orders)
        for order in orders:
            order.withdraw()

    def __enter__(self) -> "Store":
        """Return the store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _with(self, ask: Callable[[Connection], T]) -> T:
        """Call `ask` with a connection of its own; if the daemon has ended, once more with a new one."""
        for is_last in (False, True):
            connection = self._take()
            try:
                answer = ask(connection)
            except LostError as error:
                with self._lock:
                    self._idle.clear()
                if is_last:
                    problem = f"{plain(self.url)}: the daemon of the store has ended twice"
                    raise HeadstartError(f"{problem}; its messages: {plain(self._daemon.log)}") from error
            except Exception:
                self._give(connection)
                raise
            else:
                self._give(connection)
                return answer
        raise AssertionError("the second try returns or raises")

    def _take(self) -> Connection:
        with self._lock:
            if self._closed:
                raise HeadstartError(f"{plain(self.url)}: the store is closed")
            if self._idle:
                return self._idle.pop()
        return self._daemon.join()

    def _give(self, connection: Connection) -> None:
        with self._lock:
            if connection.usable and not self._closed:
                self._idle.append(connection)


_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def store(
    url: str | os.PathLike[str],
    cache: str | None = None,
    spill: str | os.PathLike[str] | None = None,
    *,
    socket: str | os.PathLike[str] | None = None,
    linger: float = 10.0,
    hedge: bool = True,
) -> Store:
    """Join the node's daemon for `url`, or start it.

    `url` is s3://BUCKET[/PREFIX], gs://BUCKET[/PREFIX], az://CONTAINER[/PREFIX], https://HOST/PATH/,
    nbd://HOST/EXPORT or a folder.
    `cache` is its memory: that of the daemon if it runs already, otherwise 8GiB by default. `spill`, FOLDER:SIZE on a
    local disk, takes what leaves the memory and lasts for later runs. Programs share a daemon if `url` and the folder
    of the spill are the same; `socket` names another one, such as that of `headstart store --shared`.

    The daemon ends `linger` seconds after the last program has disconnected. `hedge`: a second request is sent for one
    that takes longer than 99 % of the others. Credentials are those in the environment of the program that starts it.

    Raises:
        HeadstartError: An option is wrong, the source cannot be opened, or the daemon runs with other sizes.
    """
    return Store(daemon_for(url, cache, spill, socket=socket, linger=linger, hedge=hedge))


def _forked() -> None:
    """In the child of a fork: connections, orders and locks are the parent's."""
    for each in list(_stores):
        closed = each._closed
        each._reset()
        each._closed = closed


os.register_at_fork(after_in_child=_forked)

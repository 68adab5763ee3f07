"""What programs read: a key, or a key and a range."""

from contextvars import ContextVar
from enum import Enum
from operator import index
from typing import Final, Literal

from headstart._core import HeadstartError
from headstart._input import name, plain
from headstart.live.store.connection import Item

Entry = str | tuple[str, int, int | None]
"""A key for the whole object, or (key, start, stop): bytes from `start` up to `stop`, to the end if it is `None`."""

noting: ContextVar[list[Item] | None] = ContextVar("noting", default=None)
"""The list to which the reads of this thread are added, for `Learned`."""


class _Mark(Enum):
    LATER = 0


Later = Literal[_Mark.LATER]
LATER: Final = _Mark.LATER
"""Among the entries of an order: there are no more for the moment."""

_ALLOWED = "allowed: a key, or (key, start, stop) with 0 <= start <= stop"


def item_of(entry: Entry) -> Item:
    """Return an entry with its range.

    Raises:
        HeadstartError: It has another form.
    """
    if isinstance(entry, str):
        return name(entry, "object"), 0, None
    try:
        key, start, stop = entry
        begin, end = index(start), None if stop is None else index(stop)
    except (TypeError, ValueError) as error:
        raise HeadstartError(f"{plain(repr(entry))} is nothing to read; {_ALLOWED}") from error
    if not isinstance(key, str) or not 0 <= begin <= (begin if end is None else end) < 1 << 63:
        raise HeadstartError(f"{plain(repr(entry))} is nothing to read; {_ALLOWED}")
    return name(key, "object"), begin, end

"""The methods that libraries for arrays and tables expect of a store of objects (obspec's GetRange and GetRanges)."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstart._core import HeadstartError

if TYPE_CHECKING:
    from headstart.live.store.entries import Entry


class Ranges:
    """Reads ranges by keyword, also from coroutines. What is beyond the end of an object is left out."""

    def read_many(self, entries: "Sequence[Entry]") -> list[memoryview]:
        """Return the bytes of several keys and ranges."""
        raise NotImplementedError

    def size(self, key: str) -> int:
        """Return the size of an object in bytes."""
        raise NotImplementedError

    def get_range(self, path: str, *, start: int, end: int | None = None, length: int | None = None) -> memoryview:
        """Return bytes of an object from `start` up to `end`, or `length` of them. Raises as `read` does."""
        ends, lengths = (None if each is None else [each] for each in (end, length))
        return self.get_ranges(path, starts=[start], ends=ends, lengths=lengths)[0]

    def get_ranges(
        self,
        path: str,
        *,
        starts: Sequence[int],
        ends: Sequence[int] | None = None,
        lengths: Sequence[int] | None = None,
    ) -> list[memoryview]:
        """Return several ranges of an object, by one request. Raises as `read` does."""
        if (ends is None) == (lengths is None):
            raise HeadstartError("ends: the ranges have no single end; allowed: ends or lengths")
        if ends is None:
            ends = [start + length for start, length in zip(starts, lengths or [], strict=True)]
        entries: list[Entry] = [(path, start, end) for start, end in zip(starts, ends, strict=True)]
        try:
            return self.read_many(entries)
        except HeadstartError:
            size = self.size(path)
            within: list[Entry] = [(path, start, min(end, size)) for start, end in zip(starts, ends, strict=True)]
            if within == entries:
                raise
            return self.read_many(within)

    async def get_range_async(
        self, path: str, *, start: int, end: int | None = None, length: int | None = None
    ) -> memoryview:
        """Return what `get_range` does."""
        return await asyncio.to_thread(self.get_range, path, start=start, end=end, length=length)

    async def get_ranges_async(
        self,
        path: str,
        *,
        starts: Sequence[int],
        ends: Sequence[int] | None = None,
        lengths: Sequence[int] | None = None,
    ) -> list[memoryview]:
        """Return what `get_ranges` does."""
        return await asyncio.to_thread(self.get_ranges, path, starts=starts, ends=ends, lengths=lengths)

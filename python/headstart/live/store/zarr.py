"""The store of zarr-python, which needs that library."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import Buffer, BufferPrototype

from headstart.live import store as stores

_AT_ONCE = 64
"""Requests of one call at a time."""


class Store(ZarrStore):
    """The objects of a store as keys of Zarr: only to be read."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, store: "stores.Store", *, read_only: bool = True) -> None:
        super().__init__(read_only=True)
        self._store = store

    def with_read_only(self, read_only: bool = False) -> "Store":
        """Return the store as it is; it cannot be written."""
        if not read_only:
            raise ValueError("the store is only to be read")
        return self

    def __eq__(self, other: object) -> bool:
        """Whether both read the same objects."""
        return isinstance(other, Store) and self._store.url == other._store.url

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Name the source."""
        return f"headstart.zarr.Store({self._store.url!r})"

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return bytes of an object, `None` if there is none."""
        try:
            return prototype.buffer.from_bytes(await asyncio.to_thread(self._read, key, byte_range))
        except FileNotFoundError:
            return None

    def _read(self, key: str, wanted: ByteRequest | None) -> memoryview:
        if wanted is None:
            return self._store.read(key)
        if isinstance(wanted, RangeByteRequest):
            return self._store.read(key, wanted.start, wanted.end)
        if isinstance(wanted, OffsetByteRequest):
            return self._store.read(key, wanted.offset)
        if isinstance(wanted, SuffixByteRequest):
            return self._store.read(key, max(0, self._store.size(key) - wanted.suffix))
        raise TypeError(f"{wanted!r} is no request of bytes")

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return bytes of several objects."""
        free = asyncio.Semaphore(_AT_ONCE)

        async def one(key: str, wanted: ByteRequest | None) -> Buffer | None:
            async with free:
                return await self.get(key, prototype, wanted)

        return list(await asyncio.gather(*[one(key, wanted) for key, wanted in key_ranges]))

    async def exists(self, key: str) -> bool:
        """Whether there is an object."""
        try:
            await asyncio.to_thread(self._store.size, key)
        except FileNotFoundError:
            return False
        return True

    async def getsize(self, key: str) -> int:
        """Return the size of an object."""
        return await asyncio.to_thread(self._store.size, key)

    async def set(self, key: str, value: Buffer) -> None:
        """Fail: the store is only to be read."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Fail: the store is only to be read."""
        self._check_writable()

    async def list(self) -> AsyncIterator[str]:
        """Return all keys."""
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Return the keys that begin with a prefix."""
        for key, _ in await asyncio.to_thread(self._store.list, prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Return the names of what is directly below a prefix."""
        folder = prefix.rstrip("/") + "/" if prefix.strip("/") else ""
        found: Any = await asyncio.to_thread(self._store.list, folder)
        for name in dict.fromkeys(key.removeprefix(folder).split("/")[0] for key, _ in found):
            yield name

"""The file system of fsspec, which needs that library."""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fsspec.implementations.chained import ChainedFileSystem

from headstart._core import HeadstartError
from headstart.live import store as stores
from headstart.live.store.file import open_file

_WEB = ("http", "https")
_BUCKETS = ("s3", "gs", "az")

_stores: dict[tuple[Any, ...], stores.Store] = {}
_lock = threading.Lock()


class HeadstartFileSystem(ChainedFileSystem):
    """Objects of another file system, only to be read. Paths are those of the other one: "bucket/key"."""

    protocol = "headstart"

    def __init__(
        self,
        fo: str = "",
        target_protocol: str | None = None,
        target_options: Any = None,
        *,
        cache: str | None = None,
        spill: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if target_protocol not in (*_WEB, *_BUCKETS, "file"):
            raise HeadstartError(
                f"headstart::{target_protocol}: is no kind of source; allowed: s3, gs, az, https, file"
            )
        # Of a URL in front of which nothing is known of the rest, the folder is the source.
        self._protocol = target_protocol
        self._root = _root(target_protocol, fo)
        url = f"{target_protocol}://{self._root}" if target_protocol in _BUCKETS else self._root
        asked = (url, cache, spill)
        with _lock:
            if asked not in _stores:
                _stores[asked] = stores.store(url, cache, spill)
        self.store = _stores[asked]

    def _key(self, path: str) -> str:
        path = self._strip_protocol(path)
        if path != self._root.rstrip("/") and not path.startswith(self._root):
            raise FileNotFoundError(f"{path} is not in {self._root}")
        return path[len(self._root) :]

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        return str(path).removeprefix("headstart://").rstrip("/")

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """Return what is directly in a folder, or the object of that name."""
        key = self._key(path)
        folder = f"{key}/" if key else ""
        found: dict[str, dict[str, Any]] = {}
        for each, size in self.store.list(folder):
            name, slash, _ = each.removeprefix(folder).partition("/")
            kind = {"size": 0, "type": "directory"} if slash else {"size": size, "type": "file"}
            found[name] = {"name": f"{self._root}{folder}{name}", **kind}
        if not found:
            info = self.info(path)
            found = {info["name"]: info}
        return list(found.values()) if detail else [each["name"] for each in found.values()]

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Return the size of an object, or that it is a folder."""
        key = self._key(path)
        name = f"{self._root}{key}".rstrip("/")
        try:
            if key:
                return {"name": name, "size": self.store.size(key), "type": "file"}
        except FileNotFoundError:
            if not self.store.list(f"{key}/"):
                raise
        return {"name": name, "size": 0, "type": "directory"}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """Return bytes of an object."""
        return bytes(self.store.read(*self._entry(path, start, end)))

    def cat_ranges(
        self,
        paths: Sequence[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **options: Any,
    ) -> list[Any]:
        """Return bytes of several objects, by one request if none of them fails."""
        count = len(paths)
        begins = starts if isinstance(starts, Iterable) else [starts] * count
        stops = ends if isinstance(ends, Iterable) else [ends] * count
        try:
            entries = [self._entry(*each) for each in zip(paths, begins, stops, strict=True)]
            return [bytes(view) for view in self.store.read_many(entries)]
        except Exception:
            if on_error == "raise":
                raise
            result: list[Any] = super().cat_ranges(paths, starts, ends, max_gap=max_gap, on_error=on_error, **options)
            return result

    def _entry(self, path: str, start: int | None, end: int | None) -> tuple[str, int, int | None]:
        key = self._key(path)
        if (start or 0) >= 0 and end is None:
            return key, start or 0, None
        # As of a slice: from the end if negative, and never beyond it.
        begin, stop, _ = slice(start, end).indices(self.store.size(key))
        return key, begin, max(begin, stop)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            raise NotImplementedError(f"mode {mode}: the store is only to be read")
        return open_file(self.store, self._key(path))


def _root(protocol: str, path: str) -> str:
    """Return what all paths of a source begin with, with a slash at the end."""
    if protocol in _WEB:
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/"
    if protocol == "file":
        folder = Path(path) if Path(path).is_dir() else Path(path).parent
        return f"{str(folder).rstrip('/')}/"
    return path.partition("/")[0] + "/"

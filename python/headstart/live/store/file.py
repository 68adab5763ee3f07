"""Objects as files, for libraries that read files."""

import io
import os

from headstart.live.store import Store

_BUFFER_BYTES = 1 << 20


class Seekable(io.RawIOBase):
    """An object with a place in it; what it reads is up to its subclasses."""

    def __init__(self, store: Store, key: str) -> None:
        """Begin at the start of an object."""
        super().__init__()
        self._store, self._key, self._at = store, key, 0
        self.size = store.size(key)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it has places."""
        return True

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the place."""
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        if at < 0:
            raise ValueError(f"{at} is no place in a file")
        self._at = at
        return at


class _File(Seekable):
    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        count = max(0, min(len(buffer), self.size - self._at))
        if count:
            buffer[:count] = self._store.read(self._key, self._at, self._at + count)
            self._at += count
        return count


def open_file(store: Store, key: str) -> io.BufferedReader:
    """Return an object as a file.

    Raises:
        FileNotFoundError: There is no such object.
    """
    return io.BufferedReader(_File(store, key), _BUFFER_BYTES)

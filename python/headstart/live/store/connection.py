"""One connection to a store's daemon: requests over a Unix socket, and the daemon's memory, which is mapped.

Each frame has a length of four bytes (little-endian), then JSON. The first answer brings the descriptor of the memory.
A read is answered with places in it and a lease, which keeps them as they are until it is released. All leases of a
connection end with it, so it stays open as long as a view of its memory is in use.
"""

import ctypes
import errno
import json
import mmap
import os
import socket
import struct
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headstart._core import HeadstartError
from headstart._input import plain

PROTOCOL = 1
FRAME_BYTES_MAX = 16 << 20
_HEAD = struct.Struct("<I")
_CHUNK = 64 << 10
_COPY_BYTES_MAX = 16 << 10
"""Up to this, a copy costs less than a lease."""
_DONT_DUMP = 16
"""MADV_DONTDUMP."""

Item = tuple[str, int, int | None]
Places = list[list[int]]


class LostError(Exception):
    """The daemon has closed the connection, or has ended."""


class Memory:
    """The daemon's memory: one mapping in a process, shared by its connections.

    A mapping for each lease would cost ten times as much as the read, and each of `mmap.mmap` a file descriptor.
    """

    def __init__(self, descriptor: int, length: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
        self._libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.length = length
        base = self._libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        self._base = None if base == ctypes.c_void_p(-1).value else base
        if self._base is None:
            why = os.strerror(ctypes.get_errno())
            problem = f"the memory of the store cannot be mapped ({length >> 30} GiB of addresses): {why}"
            raise HeadstartError(f"{problem}; allowed: no limit of the address space (ulimit -v unlimited)")
        self._libc.madvise(self._base, length, _DONT_DUMP)

    def __del__(self) -> None:
        """Unmap it: no view is left."""
        if getattr(self, "_base", None) is not None:
            self._libc.munmap(self._base, self.length)

    def copy(self, offset: int, length: int) -> bytes:
        """Return a copy of bytes."""
        return ctypes.string_at((self._base or 0) + offset, length)

    def part(self, offset: int, length: int) -> "ctypes.Array[ctypes.c_ubyte]":
        """Return an object over at least `length` bytes, for views."""
        # A type for each length would be made and kept: the next power of two stands for all below.
        return (ctypes.c_ubyte * (1 << (length - 1).bit_length())).from_address((self._base or 0) + offset)


_mapped: weakref.WeakValueDictionary[tuple[int, int], Memory] = weakref.WeakValueDictionary()
_mapping = threading.Lock()


def _memory(descriptor: int) -> Memory:
    """Return the mapping of a descriptor, which is closed."""
    try:
        found = os.fstat(descriptor)
        with _mapping:
            number = (found.st_dev, found.st_ino)
            memory = _mapped.get(number)
            if memory is None:
                memory = _mapped[number] = Memory(descriptor, found.st_size)
            return memory
    finally:
        os.close(descriptor)


class Connection:
    """A connection. One thread at a time asks; any thread releases, also from within the garbage collector.

    After a call of `ask` that was interrupted, only releases may follow.
    """

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sending = threading.Lock()
        self._received = bytearray()
        self._released: deque[int] = deque()
        self.usable = True
        """`False` also within a frame: an interrupt there leaves half of it behind."""
        try:
            self._socket.connect(os.fspath(path))
            self._send({"hello": PROTOCOL})
            data, descriptors, _, _ = socket.recv_fds(self._socket, _CHUNK, 1)
            if not descriptors:
                raise LostError(f"{path}: what listens there is no store of this version")
            self.memory = _memory(descriptors[0])
            self._received += data
            self.welcome = self._frame()
        except BaseException as error:
            self._socket.close()
            if isinstance(error, ConnectionResetError | BrokenPipeError):
                raise LostError(str(error)) from error
            raise
        _connections.add(self)

    def __del__(self) -> None:
        """Disconnect: nothing uses it, nor a view of its memory."""
        self._socket.close()

    def abandon(self) -> None:
        """After a fork: the connection and its leases are the parent's."""
        self.usable = False
        self._socket.close()

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send a request and return its answer.

        Raises:
            FileNotFoundError: There is no such object.
            HeadstartError: The daemon refuses the request, or the source fails.
            LostError: The connection has ended.
        """
        try:
            self._send({"id": 0, "op": op, **fields})
            answer = self._frame()
        except (OSError, LostError) as error:
            self.usable = False
            raise LostError(str(error)) from error
        problem = answer.get("error")
        if problem is not None:
            if problem["kind"] == "not found":
                raise FileNotFoundError(errno.ENOENT, problem["text"])
            raise HeadstartError(plain(problem["text"]))
        return answer

    def read(self, items: Sequence[Item]) -> list[memoryview]:
        """Return the bytes of items: views of the memory, or copies if they are small or not in one part."""
        answer = self.ask("read", items=items)
        views, released = [], []
        for parts, lease in zip(answer["parts"], answer["leases"], strict=True):
            if len(parts) == 1 and parts[0][1] > _COPY_BYTES_MAX:
                views.append(self._view(parts[0], lease))
                continue
            views.append(memoryview(b"".join([self.memory.copy(offset, length) for offset, length in parts])))
            released.append(lease)
        self.release(released)
        return views

    def _view(self, place: list[int], lease: int) -> memoryview:
        offset, length = place
        part = self.memory.part(offset, length)
        # The views keep the part, and this keeps the connection.
        weakref.finalize(part, self.release, (lease,)).atexit = False
        return memoryview(part).cast("B").toreadonly()[:length]

    def release(self, leases: Sequence[int]) -> None:
        """Let go of leases; never blocks on a lock and never fails."""
        self._released.extend(leases)
        # If another call sends, that one also sends these: it looks again after it has given back the lock.
        while self._released and self.usable and self._sending.acquire(blocking=False):
            try:
                batch = [self._released.popleft() for _ in range(len(self._released))]
                self._write({"op": "release", "leases": batch})
            except OSError:
                pass  # The daemon has ended, and all leases with it.
            finally:
                self._sending.release()

    def _send(self, frame: dict[str, Any]) -> None:
        with self._sending:
            self._write(frame)
        self.release(())

    def _write(self, frame: dict[str, Any]) -> None:
        body = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()
        if len(body) > FRAME_BYTES_MAX:
            raise HeadstartError(f"a request of {len(body)} bytes; allowed: at most {FRAME_BYTES_MAX}, in several")
        self.usable = False
        self._socket.sendall(_HEAD.pack(len(body)) + body)
        self.usable = True

    def _frame(self) -> dict[str, Any]:
        """Return the next frame."""
        received = self._received
        while True:
            if len(received) >= _HEAD.size:
                end = _HEAD.size + _HEAD.unpack_from(received)[0]
                if len(received) >= end:
                    frame: dict[str, Any] = json.loads(received[_HEAD.size : end])
                    del received[:end]
                    return frame
            data = self._socket.recv(_CHUNK)
            if not data:
                raise LostError("the daemon has closed the connection")
            received += data


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _forked() -> None:
    """In the child of a fork: let go of the parent's connections."""
    global _mapping
    _mapping = threading.Lock()
    for each in list(_connections):
        each.abandon()


os.register_at_fork(after_in_child=_forked)

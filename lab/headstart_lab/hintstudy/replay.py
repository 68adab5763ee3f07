"""Reads the lists without a policy, in access order or sorted by address: the reference for `run`."""

import fcntl
import os
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = 4096
HOLE_PAGES = 32
"""Holes of up to 128 KiB are read along with their neighbours."""
PIECE_PAGES = 256
THREADS = 16
FIEMAP, EVERYTHING, EXTENTS = 0xC020660B, (1 << 64) - 1, 4096
"""FS_IOC_FIEMAP of linux/fs.h, the length of any file, and the maximum number of extents of one."""
HEAD, EXTENT = struct.Struct("=QQLLLL"), struct.Struct("=QQQQQLLLL")


@dataclass
class Piece:
    """Adjacent pages of a file."""

    path: str
    metadata: bool
    first: int
    """First page in the file."""
    count: int
    address: int
    """First page on the disk; the page in the file if unknown."""


def pieces(shown: dict[str, Any], root: Path, device: Path | None) -> list[Piece]:
    """Return the pieces of the recording `shown` below `root`, in access order."""
    paths = [file["path"] for file in shown["files"]]
    seen: set[tuple[int, int]] = set()
    found: list[Piece] = []
    maps: dict[int, list[tuple[int, int, int]]] = {}
    for read in shown["reads"]:
        number, path = read["file"], paths[read["file"]]
        metadata = path == str(device)
        if path is None or not (metadata or path.startswith(f"{root}/")):
            continue
        if number not in maps:
            maps[number] = [] if metadata else extents(Path(path))
        for page in range(read["start"], read["start"] + read["pages"]):
            if (number, page) in seen:
                continue
            seen.add((number, page))
            address = page if metadata else place(maps[number], page)
            last = found[-1] if found else None
            joins = last is not None and last.path == path and last.first + last.count == page
            if last is not None and joins and last.address + last.count == address and last.count < PIECE_PAGES:
                last.count += 1
            else:
                found.append(Piece(path, metadata, page, 1, address))
    return found


def place(extents: list[tuple[int, int, int]], page: int) -> int:
    """Return the address of a page, from its file's extents (offset, place, length in bytes)."""
    at = page * PAGE
    return next((p + at - o for o, p, n in extents if o <= at < o + n), at) // PAGE


def extents(path: Path) -> list[tuple[int, int, int]]:
    """Return a file's extents (offset, place, length in bytes); none if the file system does not report them."""
    try:
        with path.open("rb") as file:
            room = bytearray(HEAD.pack(0, EVERYTHING, 0, 0, EXTENTS, 0) + bytes(EXTENTS * EXTENT.size))
            fcntl.ioctl(file, FIEMAP, room)
    except OSError:
        return []
    count = HEAD.unpack_from(room)[3]
    found = (EXTENT.unpack_from(room, HEAD.size + number * EXTENT.size) for number in range(count))
    return [(offset, place, length) for offset, place, length, *_ in found]


def in_order(found: Iterable[Piece]) -> list[Piece]:
    """Return the pieces with metadata first, by address, small holes included."""
    ordered: list[Piece] = []
    for piece in sorted(found, key=lambda piece: (not piece.metadata, piece.address)):
        last = ordered[-1] if ordered else None
        if last is not None and last.path == piece.path:
            apart = piece.first - last.first
            hole = apart - last.count
            if apart == piece.address - last.address and 0 <= hole <= HOLE_PAGES and apart < PIECE_PAGES:
                last.count = max(last.count, apart + piece.count)
                continue
        ordered.append(Piece(piece.path, piece.metadata, piece.first, piece.count, piece.address))
    return ordered


class Replay:
    """Threads that read pieces in order; leading metadata is read before everything else. `wait` for their end."""

    def __init__(self, wanted: list[Piece]) -> None:
        self._wanted = iter(wanted)
        self._lock = threading.Lock()
        self._ended = False
        self._threads = [threading.Thread(target=self._read, daemon=True) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        opened: tuple[str, int] | None = None
        try:
            while not self._ended:
                with self._lock:
                    piece = next(self._wanted, None)
                if piece is None:
                    return
                if opened is None or opened[0] != piece.path:
                    if opened is not None:
                        os.close(opened[1])
                    opened = piece.path, os.open(piece.path, os.O_RDONLY)
                    os.posix_fadvise(opened[1], 0, 0, os.POSIX_FADV_RANDOM)
                os.pread(opened[1], piece.count * PAGE, piece.first * PAGE)
        except OSError:
            return
        finally:
            if opened is not None:
                os.close(opened[1])

    def wait(self) -> None:
        """Wait until everything has been read."""
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """Start no more reads, and wait for those in flight."""
        self._ended = True
        self.wait()

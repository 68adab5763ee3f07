"""The workloads: lists of reads, used by the real readers and for the simulator's trace."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from headstart_lab.livestudy.image import MB, Planned

KIB = 1024
SEED = 7
"""Seed of the random places: any number will do."""
FAULTS = 100
"""After this many misses the kernel stops reading around faults of an open file (MMAP_LOTSAMISS of mm/filemap.c)."""


@dataclass(frozen=True)
class Read:
    """`size` bytes from `offset` in the named file."""

    file: str
    offset: int
    size: int


@dataclass(frozen=True)
class Workload:
    """Readers that start together; each does its reads in sequence."""

    name: str
    what: str
    readers: tuple[tuple[Read, ...], ...]
    mapped: bool = False
    """The files are mapped, and each read is of one page: a fault."""

    @property
    def reads(self) -> int:
        """Return the number of reads of all readers."""
        return sum(len(reader) for reader in self.readers)

    @property
    def size(self) -> int:
        """Return the bytes requested by all readers; the study's workloads request no byte twice."""
        return sum(read.size for reader in self.readers for read in reader)

    @property
    def files(self) -> list[str]:
        """Return the distinct names, in order of first use."""
        return list(dict.fromkeys(read.file for reader in self.readers for read in reader))


def files(scale: float = 1.0) -> list[Planned]:
    """Return the disk's files in order. `scale` shortens those that are read as a whole.

    Two files have a third of the drive between them: two random places are as far apart on average.
    """
    stream = int(50 * MB * scale)
    return [
        Planned("one", stream),
        Planned("large", 12_000 * MB),
        Planned("two", stream),
        Planned("gap1", 6_000 * MB, readable=False),
        Planned("three", stream),
        Planned("gap2", 6_000 * MB, readable=False),
        Planned("four", stream),
    ]


def workloads(planned: list[Planned], scale: float = 1.0) -> list[Workload]:
    """Return the study's workloads on these files; `scale` reduces the number of random reads."""
    size = {file.name: file.size for file in planned}
    rng = random.Random(SEED)
    whole = {name: tuple(_sequence(name, 0, size[name], 64 * KIB)) for name in ("one", "two", "three", "four")}
    large = size["large"]
    return [
        Workload(
            "alternating",
            "one process reads 64 KiB of one file, 64 KiB of another",
            (tuple(read for pair in zip(whole["one"], whole["two"], strict=True) for read in pair),),
        ),
        Workload("concurrent", "4 processes read a file each, by 64 KiB", tuple(whole.values())),
        Workload("stream", "one process reads a file, by 64 KiB", (whole["one"],)),
        Workload(
            "random 4 KiB", "reads at random places", (_scattered(rng, large, int(300 * scale), 4 * KIB, 4 * KIB),)
        ),
        Workload(
            "random 64 KiB", "reads at random places", (_scattered(rng, large, int(300 * scale), 64 * KIB, 64 * KIB),)
        ),
        Workload(
            "short runs",
            "runs of 256 KiB at random places, by 64 KiB",
            (_scattered(rng, large, int(150 * scale), 256 * KIB, 64 * KIB),),
        ),
        Workload(
            "random faults",
            "pages of a mapped file at random places",
            (_faults(rng, large, int(FAULTS * scale)),),
            mapped=True,
        ),
    ]


def around(workload: Workload, read_ahead_kb: int, file_size: int) -> Workload:
    """Return the kernel's reads for the faults of a mapped workload: of this size, half of it before the page.

    mm/filemap.c, do_sync_mmap_readahead.
    """
    size = read_ahead_kb * KIB
    before = size // (8 * KIB) * 4 * KIB
    readers = tuple(
        tuple(
            Read(read.file, start, min(size, file_size - start)) for read in reader for start in [_start(read, before)]
        )
        for reader in workload.readers
    )
    return Workload(workload.name, workload.what, readers)


def _start(read: Read, before: int) -> int:
    return max(0, read.offset - before)


def _sequence(file: str, start: int, end: int, size: int) -> Iterator[Read]:
    for offset in range(start, end, size):
        yield Read(file, offset, min(size, end - offset))


def _faults(rng: random.Random, file_size: int, count: int) -> tuple[Read, ...]:
    """Return pages, each in the middle of its own 8 MiB, so that reading around one covers no other."""
    slot = 8 * KIB * KIB
    places = rng.sample(range(file_size // slot), count)
    return tuple(Read("large", at * slot + slot // 4 + rng.randrange(1024) * 4 * KIB, 4 * KIB) for at in places)


def _scattered(rng: random.Random, file_size: int, count: int, run: int, size: int) -> tuple[Read, ...]:
    """Return `count` runs of `run` bytes by reads of `size`, at random pages of the file, none touching another."""
    slot = 4 * KIB * KIB
    places = [at * slot + rng.randrange(512) * 4 * KIB for at in rng.sample(range(file_size // slot), count)]
    return tuple(read for at in places for read in _sequence("large", at, at + run, size))

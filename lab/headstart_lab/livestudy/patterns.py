"""The read patterns of the page study: the same kinds for each read-ahead, drawn from a seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

PAGE = 4096
KIB = 1024

Kind = Literal["read", "mapped", "text"]
Op = tuple[int, int, int | None]
"""A descriptor, an offset, and the bytes to read; `None`: the page there is touched through a mapping."""


@dataclass(frozen=True)
class Pattern:
    """Reads and touches of one file, starting with a cold cache."""

    name: str
    ops: list[Op]
    kind: Kind = "read"
    """How the file is mapped, if it is; "text": as executable."""
    added: list[list[tuple[int, int]]] = field(default_factory=list)
    """For each operation, the folios that the kernel added: first page and number of pages."""


def patterns(seed: int, size: int, read_ahead_kb: int, quick: bool) -> list[Pattern]:
    """Return the patterns for a file of `size` bytes on a device with this read-ahead."""
    rng = random.Random(f"{seed} {read_ahead_kb}")
    found = [*_regular(rng, size, max(4, read_ahead_kb)), *_mixed(rng, size, 10 if quick else 60)]
    for kind in ("mapped", "text"):
        found += _mapped(rng, size, kind)
    kept = found[:: 4 if quick else 1]
    return [Pattern(each.name, [op for op in each.ops if op[1] < size], each.kind) for each in kept]


def _run(start: int, step: int, size: int, count: int, descriptor: int = 0) -> list[Op]:
    return [(descriptor, at, size) for number in range(count) if (at := start + number * step) >= 0]


def _regular(rng: random.Random, size: int, read_ahead_kb: int) -> Iterator[Pattern]:
    """Streams, strides, backward and random reads, several streams, unaligned reads, the end of the file."""
    pages = size // PAGE
    for kib in sorted({4, 12, 20, 64, 128, read_ahead_kb, 2 * read_ahead_kb, read_ahead_kb + 4, 3000}):
        yield Pattern(f"stream of {kib} KiB", _run(0, kib * KIB, kib * KIB, min(400, size // (kib * KIB))))
    for kib in sorted({4, 24, read_ahead_kb}):
        start = rng.randrange(1, pages // 4)
        yield Pattern(f"stream of {kib} KiB from page {start}", _run(start * PAGE, kib * KIB, kib * KIB, 200))
    for kib in (4, 16, 64):
        for skip in sorted({4, 12, 24, 60, 100, read_ahead_kb, 2 * read_ahead_kb + 4}):
            yield Pattern(f"{kib} KiB, {skip} KiB left out", _run(0, (kib + skip) * KIB, kib * KIB, 200))
    for kib in sorted({4, 8, 32, read_ahead_kb}):
        start = (pages // 2 + rng.randrange(64)) * PAGE
        yield Pattern(f"backward, {kib} KiB", _run(start, -kib * KIB, kib * KIB, 150))
    for kib in sorted({4, 16, 100, read_ahead_kb, 300}):
        places = [rng.randrange(pages - 100) * PAGE for _ in range(200)]
        yield Pattern(f"random, {kib} KiB", [(0, place, kib * KIB) for place in places])
    for kib in (4, 16, 64):
        for descriptors, streams in ((1, 2), (2, 2), (1, 3), (2, 5)):
            starts = [0, *(rng.randrange(pages // 2) * PAGE for _ in range(streams - 1))]
            each = [_run(at, kib * KIB, kib * KIB, 150, number % descriptors) for number, at in enumerate(starts)]
            turns = [op for turn in zip(*each, strict=True) for op in turn]
            yield Pattern(f"{streams} streams of {kib} KiB, {descriptors} descriptors", turns)
    for count in (1000, 4097, 7000, 33_333):
        yield Pattern(f"stream of {count} bytes", _run(rng.randrange(5000), count, count, 400))
    yield Pattern("pages left out at random", [op for op in _run(0, PAGE, PAGE, 400) if rng.random() < 0.9])
    yield Pattern("the last pages", _run(size - 60 * PAGE, PAGE, PAGE, 60))


def _mixed(rng: random.Random, size: int, count: int) -> Iterator[Pattern]:
    """Streams of several descriptors that jump, some with ends inside a page."""
    for number in range(count):
        descriptors, kib = rng.choice((1, 1, 2, 3)), rng.choice((4, 8, 16, 32, 64, 128, 256))
        jump, spread, unaligned = (
            rng.choice((0.02, 0.1, 0.3, 0.6)),
            rng.choice((16, 64, 512, 16384)),
            rng.random() < 0.3,
        )
        at = [rng.randrange(size // PAGE) * PAGE for _ in range(descriptors)]
        ops: list[Op] = []
        for _ in range(200):
            one = rng.randrange(descriptors)
            length = (kib if rng.random() < 0.7 else rng.choice((4, 8, 12, 20, 128, 200))) * KIB
            if unaligned:
                length = rng.randrange(1, length)
            if rng.random() < jump:
                near = (at[one] // PAGE + rng.randrange(-spread, spread + 1)) * PAGE
                at[one] = min(max(0, near), size - PAGE) if rng.random() < 0.8 else 0
            if at[one] >= size:
                at[one] = rng.randrange(size // PAGE) * PAGE
            ops.append((one, at[one], length))
            at[one] += length
        yield Pattern(f"mixed {number}", ops)


def _mapped(rng: random.Random, size: int, kind: Kind) -> Iterator[Pattern]:
    """Touches of a mapped file, and touches between reads."""
    pages = size // PAGE

    def touches(name: str, touched: list[int]) -> Pattern:
        return Pattern(f"{kind}: {name}", [(0, page * PAGE, None) for page in touched if 0 <= page < pages], kind)

    start = rng.randrange(pages // 4, pages // 2)
    yield touches("stream", list(range(600)))
    yield touches(f"stream from page {start}", [start + page for page in range(600)])
    yield touches(f"backward from page {start}", [start - page for page in range(400)])
    yield touches("random", [rng.randrange(pages) for _ in range(300)])
    for step in (7, 40):
        yield touches(f"every {step}th page", [page * step for page in range(200)])
    for number in range(6):
        jump, spread, page = rng.choice((0.02, 0.1, 0.4)), rng.choice((20, 200, 16384)), rng.randrange(pages)
        touched = []
        for _ in range(300):
            page += rng.randrange(-spread, spread + 1) if rng.random() < jump else 1
            page %= pages
            touched.append(page)
        yield touches(f"mixed {number}", touched)
    ops: list[Op] = []
    page = start
    for _ in range(300):
        length = None if rng.random() < 0.4 else rng.choice((2, 4, 16)) * PAGE
        ops.append((0, page * PAGE, length))
        page += 1 if length is None else length // PAGE
        if rng.random() < 0.1:
            page = rng.randrange(pages - 100)
    yield Pattern(f"{kind}: touches and reads", ops, kind)

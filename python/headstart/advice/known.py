"""Known orders: made by a sampler, read from a file, or given as arrays.

An order is a list of epochs. An epoch is an array of item numbers, int64, of shape (draws, items a draw). A draw is
what a sampler deals to one node: one item, or the chunks of a window.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from headstart._core import HeadstartError
from headstart._input import meant, name, whole
from headstart.sizes import size_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

READS_MAX = 30_000_000
"""Some 100 bytes of memory a read."""
SIZE_MAX = 1 << 40
"""Bytes of an item: sums over all reads stay below 2^63."""
EPOCHS = 5
SIGMA = 0.7
"""Spread of the weights by default, the standard deviation of their logarithm. A guess."""
SAMPLERS = ("shuffled", "sequential", "weighted", "groups:K", "windows:K")
ALLOWED = f"{', '.join(SAMPLERS)}, or a file of item ids, one a line"


@dataclasses.dataclass(frozen=True)
class KnownOrder:
    """The reads of all nodes."""

    text: str
    epochs: list["Ints"]
    items: int
    """Distinct items; their numbers are 0 to `items` - 1."""
    sizes: "Ints | None"
    """Bytes of each item; `None` if not known."""

    @property
    def reads(self) -> int:
        """The reads of all epochs."""
        return sum(epoch.size for epoch in self.epochs)


def numpy() -> Any:
    """Return numpy, an extra.

    Raises:
        HeadstartError: It is not installed.
    """
    try:
        import numpy as np
    except ImportError:
        problem = "order: numpy is not installed"
        raise HeadstartError(f"{problem}; allowed: pip install 'headstart[numpy]'") from None
    return np


def known_order(
    order: Any, *, items: int | None, epochs: int | None, sizes: Any, weights: Any, seed: int
) -> KnownOrder:
    """Return the order that the arguments of `advise_order` describe."""
    whole("items", items, 1)
    whole("epochs", epochs, 1)
    whole("seed", seed)
    if not isinstance(order, str | PathLike):
        _unfit("an order of your own", items=items, weights=weights)
        return _of_arrays(order, epochs, sizes)
    text = name(order, "order")
    kind, _, argument = text.partition(":")
    if kind not in {each.partition(":")[0] for each in SAMPLERS}:
        if not Path(text).exists():
            problem = f'order: "{text}" is neither a file nor a sampler{meant(text, SAMPLERS)}'
            raise HeadstartError(f"{problem}; allowed: {ALLOWED}")
        _unfit("a file", items=items, weights=weights)
        return _of_file(text, epochs, sizes)
    if items is None:
        raise HeadstartError(f"items: is missing for the order {kind}; allowed: the number of items of an epoch")
    if weights is not None and kind != "weighted":
        _unfit(f"the order {kind}", weights=weights)
    epochs = EPOCHS if epochs is None else epochs
    _check_reads(items * epochs * (_count(argument, items, kind) if kind == "windows" else 1))
    draw, count = _sampler(kind, argument, items, weights)
    random = numpy().random.Generator(numpy().random.PCG64(seed))
    return KnownOrder(text, [draw(random) for _ in range(epochs)], count, _sizes(sizes, count))


def _sampler(kind: str, argument: str, items: int, weights: Any) -> tuple[Callable[[Any], "Ints"], int]:
    """Return a function that draws an epoch, and the number of items that a cache keeps."""
    np = numpy()

    def shuffled(random: Any, count: int = items) -> Any:
        # The order of random numbers, and not `permutation`: its results may differ between versions of numpy.
        return random.random(count).argsort(kind="stable").astype(np.int64)[:, None]

    if kind in ("shuffled", "sequential") and argument:
        raise HeadstartError(f'order: "{kind}" takes no ":{argument}"; allowed: {ALLOWED}')
    if kind == "shuffled":
        return shuffled, items
    if kind == "sequential":
        return lambda _: np.arange(items)[:, None], items
    if kind == "weighted":
        sums = np.cumsum(_weights(argument, items, weights))
        return lambda random: np.searchsorted(sums, random.random(items) * sums[-1], side="right")[:, None], items
    count = _count(argument, items, kind)
    if kind == "groups":
        return lambda random: shuffled(random) // count, -(-items // count)
    return lambda random: shuffled(random, items - count + 1) + np.arange(count), items


def _count(text: str, items: int, kind: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and 1 <= int(text) <= items):
        what = "samples a group" if kind == "groups" else "chunks a window"
        given = f"{kind}:{text}" if text else kind
        raise HeadstartError(f'order: "{given}"; allowed: {kind}:K, with K {what}, a whole number from 1 to {items}')
    return int(text)


def _weights(argument: str, items: int, weights: Any) -> "Floats":
    np = numpy()
    if weights is None:
        try:
            sigma = float(argument or SIGMA)
        except ValueError:
            sigma = -1.0
        if not 0 <= sigma <= 10:
            problem = f'order: "weighted:{argument}"'
            raise HeadstartError(f"{problem}; allowed: weighted:S, with S the spread of lognormal weights, 0 to 10")
        normal = NormalDist()
        return np.exp([sigma * normal.inv_cdf((each + 0.5) / items) for each in range(items)])  # type: ignore[no-any-return]
    if argument:
        raise HeadstartError(f'weights: given beside "weighted:{argument}"; allowed: one of the two')
    if isinstance(weights, str | PathLike):
        weights = [_number(each, line, weights) for line, each in _lines(weights)]
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (items,):
        raise HeadstartError(f"weights: {found.size:,} for {items:,} items; allowed: a number for each item")
    if not (np.isfinite(found).all() and (found >= 0).all() and 0 < found.sum() < math.inf):
        raise HeadstartError("weights: one is negative or not finite, or all are 0; allowed: numbers from 0")
    return found  # type: ignore[no-any-return]


def _number(text: bytes, line: int, path: Any) -> float:
    try:
        return float(text)
    except ValueError:
        raise HeadstartError(f"{fspath(path)}:{line}: {_shown(text)} is no weight; allowed: a number a line") from None


def _sizes(sizes: Any, items: int) -> "Ints | None":
    """Return the bytes of each item from a size, a file or a sequence."""
    if sizes is None:
        return None
    np = numpy()
    if isinstance(sizes, str) and not Path(sizes).is_file():
        sizes = _size(sizes, "sizes")
    elif isinstance(sizes, str | PathLike):
        sizes = [_size(each.decode(errors="replace"), f"{fspath(sizes)}:{line}") for line, each in _lines(sizes)]
    try:
        found = np.asarray(sizes)
        found = np.full(items, found) if found.shape == () else found
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (items,) or found.dtype.kind not in "iu":
        problem = f"sizes: {found.size:,} of type {found.dtype} for {items:,} items"
        raise HeadstartError(f"{problem}; allowed: one size for all, or a whole number of bytes for each item")
    if found.min() < 1 or found.max() > SIZE_MAX:
        raise HeadstartError(f"sizes: from {found.min()} to {found.max()} bytes; allowed: 1 to {SIZE_MAX}")
    return found.astype(np.int64)  # type: ignore[no-any-return]


def _size(text: str, where: str) -> int:
    try:
        size = size_bytes(text)
    except HeadstartError:
        size = 0
    if not 1 <= size <= SIZE_MAX:
        what = "a size" if where != "sizes" else "a size, or a file of sizes, one a line"
        raise HeadstartError(f'{where}: "{text}"; allowed: {what}, from 1 byte to 1TiB: 128KiB')
    return size


def _of_file(path: str, epochs: int | None, sizes: Any) -> KnownOrder:
    """Read a file that has an item a line: its id, and perhaps its size after a space or a tab."""
    numbers: dict[bytes, int] = {}
    given: list[tuple[bytes, ...]] = []
    found: list[int] = []
    reads: list[int] = []
    for line, text in _lines(path):
        item, *rest = text.split()
        number = numbers.setdefault(item, len(numbers))
        if number == len(given):
            given.append(tuple(rest))
            if len(rest) == 1:
                found.append(_size(rest[0].decode(errors="replace"), f"{path}:{line}"))
        if len(rest) > 1 or tuple(rest) != given[number]:
            problem = f"{_shown(text)}: has {len(rest) + 1} words" if len(rest) > 1 else f"{_shown(item)}: another size"
            raise HeadstartError(f"{path}:{line}: {problem}; allowed: ID or ID SIZE, one size for an item in all lines")
        reads.append(number)
    _check_reads(len(reads))
    with_size = len(found)
    if with_size:
        if with_size < len(given) or sizes is not None:
            problem = (
                "beside sizes in the order's file"
                if sizes is not None
                else f"{with_size:,} of {len(given):,} items have one"
            )
            raise HeadstartError(f"sizes: {problem}; allowed: sizes for all items, once")
        sizes = found
    array = numpy().array(reads, dtype=numpy().int64)
    return KnownOrder(path, _divided(array, epochs), len(numbers), _sizes(sizes, len(numbers)))


def _of_arrays(order: Any, epochs: int | None, sizes: Any) -> KnownOrder:
    """Take item numbers: one sequence, or a sequence of epochs."""
    np = numpy()
    try:
        rows = list(order)
        nested = bool(rows) and np.ndim(rows[0]) > 0
        parts = [np.asarray(row) for row in rows] if nested else [np.asarray(rows)]
    except (TypeError, ValueError):
        parts = []
    fit = [part for part in parts if part.ndim == 1 and part.size and part.dtype.kind in "iu"]
    if not parts or len(fit) < len(parts):
        raise HeadstartError(
            "order: no sequence of whole numbers; allowed: item numbers, or a sequence of epochs of them"
        )
    _check_reads(sum(part.size for part in parts))
    ids, array = np.unique(np.concatenate(parts), return_inverse=True)
    if sizes is not None and np.ndim(sizes) == 1 and not isinstance(sizes, str):
        # Sizes are by the caller's numbers, which may leave some out.
        every = np.asarray(sizes)
        if ids[0] < 0 or ids[-1] >= every.size:
            raise HeadstartError(
                f"sizes: {every.size:,}, and the order has item {ids[-1]}; allowed: a size for each item"
            )
        sizes = every[ids]
    if nested:
        if epochs not in (None, len(parts)):
            raise HeadstartError(f"epochs: {epochs}, and the order has {len(parts)}; allowed: leave it out")
        ends = np.cumsum([part.size for part in parts])[:-1]
        divided = [part[:, None] for part in np.split(array, ends)]
    else:
        divided = _divided(array, epochs)
    return KnownOrder("order", divided, len(ids), _sizes(sizes, len(ids)))


def _divided(reads: "Ints", epochs: int | None) -> list["Ints"]:
    """Divide an order into epochs of one length."""
    count = 1 if epochs is None else epochs
    if len(reads) % count:
        raise HeadstartError(f"epochs: {count} do not divide {len(reads):,} reads; allowed: epochs of one length")
    return list(reads.reshape(count, -1, 1))


def _lines(path: str | PathLike[str]) -> list[tuple[int, bytes]]:
    """Return the lines of a file that are not blank, with their numbers."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise HeadstartError(f"{fspath(path)}: {error.strerror}; allowed: a file that can be read") from error
    found = [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
    if not found:
        raise HeadstartError(f"{fspath(path)}: is empty; allowed: at least one line")
    return found


def _shown(text: bytes) -> str:
    return f'"{text[:60].decode(errors="replace")}"'


def _check_reads(reads: int) -> None:
    if reads > READS_MAX:
        problem = f"order: {reads:,} reads in all epochs"
        raise HeadstartError(f"{problem}; allowed: at most {READS_MAX:,} (fewer items give the same shares)")


def _unfit(what: str, **given: Sequence[Any] | int | None) -> None:
    """Refuse arguments that only a sampler takes."""
    for key, value in given.items():
        if value is not None:
            kinds = "shuffled, sequential, weighted, groups:K and windows:K" if key == "items" else "weighted"
            raise HeadstartError(f"{key}: does not apply to {what}; allowed: only for the order {kinds}")

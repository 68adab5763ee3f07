"""The order of a PyTorch training, disclosed to a store (docs/store.md). It does not import torch.

    store = headstart.store("s3://bucket/train/", cache="8GiB")
    sampler = torch.utils.data.RandomSampler(dataset, generator=torch.Generator().manual_seed(1))
    order = headstart.torch.disclose(store, sampler, dataset, epochs=90)
    loader = torch.utils.data.DataLoader(dataset, sampler=sampler, num_workers=8)

The data set is map-style, reads through `store.read` in its `__getitem__`, and says what that reads:

    def ranges(self, index):
        return f"{index:08}.jpg"          # or (key, start, stop), or a list of these

What it reads can be learned in the first epoch, too: `dataset = headstart.torch.Learned(dataset)` for both the loader
and `disclose`. Later epochs then are disclosed.

The orders of later epochs are found with a copy of the sampler: the training draws what it would draw without this.
That takes a sampler which draws from nothing else: one with `set_epoch` (DistributedSampler), or one with a `generator`
of its own, which is not the DataLoader's.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from operator import index as as_index
from typing import Any

from headstart._core import HeadstartError
from headstart.live.store import Entry, Order, Store
from headstart.live.store.entries import Later
from headstart.live.store.learned import Learned
from headstart.live.store.order import AHEAD

__all__ = ["Learned", "disclose"]

Ranges = Callable[[Any], Entry | Sequence[Entry]] | Sequence[Entry | Sequence[Entry]]


def disclose(
    store: Store,
    sampler: Iterable[Any],
    dataset: Any = None,
    *,
    ranges: Ranges | None = None,
    epochs: int | None = None,
) -> Order:
    """Disclose what a sampler or a batch sampler (one that yields lists) is going to draw, from its next epoch on.

    `ranges` gives what is read for an index, if the data set has no method `ranges`: a function or a sequence. `epochs`
    is how many there will be; without it there is no end. Two epochs are known ahead.

    Raises:
        HeadstartError: What an index reads is not known, or the sampler's draws cannot be.
    """
    length = _length(sampler)
    entries: Iterator[Entry | Later]
    if isinstance(dataset, Learned) and ranges is None:
        if not length:
            raise HeadstartError("sampler: has no length; allowed: one that has, or a data set with `ranges`")
        entries = dataset.entries(_draws(sampler, epochs), length)
    else:
        entries = _entries(_draws(sampler, epochs), _entries_of(dataset, ranges))
    return store.disclose(entries, ahead=min(AHEAD, 2 * length or AHEAD))


def _entries(indices: Iterator[Any], entries_of: Callable[[Any], Entry | Sequence[Entry]]) -> Iterator[Entry]:
    for index in indices:
        found = entries_of(index)
        if isinstance(found, list):
            yield from found
        else:
            yield found  # type: ignore[misc]


def _entries_of(dataset: Any, ranges: Ranges | None) -> Callable[[Any], Entry | Sequence[Entry]]:
    if ranges is not None:
        return ranges if callable(ranges) else ranges.__getitem__
    if hasattr(dataset, "ranges"):
        own: Callable[[Any], Entry] = dataset.ranges
        return own
    if hasattr(dataset, "dataset") and hasattr(dataset, "indices"):
        inner, indices = _entries_of(dataset.dataset, None), dataset.indices  # A Subset.
        return lambda index: inner(indices[index])
    allowed = (
        "allowed: a method `ranges(index)` that returns a key or (key, start, stop), `ranges=`, or Learned(dataset)"
    )
    raise HeadstartError(f"dataset: {type(dataset).__name__} does not say what an index reads; {allowed}")


def _draws(sampler: Iterable[Any], epochs: int | None) -> Iterator[Any]:
    """Return the indices of all epochs. The sampler is copied now, before the training draws from it."""
    parts = list(_parts(sampler))
    for part in parts:
        if getattr(part, "generator", part) is None:
            problem = f"sampler: {type(part).__name__} draws from torch's global generator, whose draws cannot be known"
            raise HeadstartError(f"{problem}; allowed: generator=torch.Generator().manual_seed(SEED), or set_epoch")
    copied = _copied(sampler, parts)
    first = next((int(part.epoch) for part in parts if hasattr(part, "set_epoch") and hasattr(part, "epoch")), 0)
    numbers = count(first) if epochs is None else iter(range(first, first + epochs))
    return _epochs(copied, numbers)


def _epochs(sampler: Any, numbers: Iterator[int]) -> Iterator[Any]:
    for number in numbers:
        for part in _parts(sampler):
            if hasattr(part, "set_epoch"):
                part.set_epoch(number)
        is_empty = True
        for drawn in sampler:
            is_empty = False
            if isinstance(drawn, list):
                yield from map(_plain, drawn)
            else:
                yield _plain(drawn)
        if is_empty:
            return


def _plain(index: Any) -> Any:
    """Return an index without its tensor or array."""
    try:
        return as_index(index)
    except TypeError:
        return index


def _parts(sampler: Any) -> Iterator[Any]:
    """Return a sampler and those that it draws from."""
    while sampler is not None:
        yield sampler
        sampler = getattr(sampler, "sampler", None)


def _copied(sampler: Any, parts: Sequence[Any]) -> Any:
    memo: dict[int, Any] = {}
    for part in parts:
        # Data sets and stores are not copied, and generators of older torch cannot be.
        for name, value in getattr(part, "__dict__", {}).items():
            if name in ("data_source", "dataset"):
                memo[id(value)] = value
            elif hasattr(value, "get_state") and hasattr(value, "set_state"):
                memo[id(value)] = own = type(value)()
                own.set_state(value.get_state())
    return copy.deepcopy(sampler, memo)


def _length(sampler: Any) -> int:
    """Return how many indices an epoch has, 0 if it is not known."""
    try:
        length = len(sampler)
    except TypeError:
        return 0
    return length * int(getattr(sampler, "batch_size", 1) or 1)

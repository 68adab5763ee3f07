"""`advise_order`: the cache for a reader whose order is known, without a store and without times.

Three caches are compared at each size. `lru` evicts the item whose last read is oldest. `never-evict` keeps what comes
first, as long as it fits. `next-use` knows the whole order, across epochs: it keeps the bytes that are read soonest
(Belady, IBM Systems Journal 5(2), 1966), may keep a part of an item, and need not keep what it fetches. No cache of
that size fetches fewer bytes.
"""

import dataclasses
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from headstart._core import HeadstartError, __version__
from headstart._input import listed, whole
from headstart.advice.caches import POLICIES, count_all
from headstart.advice.known import KnownOrder, known_order, numpy
from headstart.advice.neighbours import NeighbourPoint, shared, up_to, worth
from headstart.sizes import size_bytes

SCHEMA = 1
DEFAULT_CACHE = ("10%", "30%", "50%", "80%", "100%")
TEXT = {"lru": "LRU", "never-evict": "never evict", "next-use": "the next use known"}
WORTH_MIN, SAVED_MIN = 1.05, 0.01
"""A gain below this factor, or of less than this share of the bytes, counts as none."""
NEIGHBOURS_MIN = 1.5
"""The factor from which on a network of caches is worth building. A guess."""
EQUAL = 0.002
"""Shares this near to each other count as the same: a cache holds whole items, and shuffles differ."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrderPoint:
    """One cache of each node. Shares are 0 to 1: 0.7 means that 70 % go to the store."""

    policy: str
    """ "lru", "never-evict" or "next-use"."""
    cache_share: float
    """Size of the cache over a node's share of the data, which is the data divided by the nodes."""
    cache_items: int | None
    """`None` if items differ in size."""
    cache_bytes: int | None
    """`None` if sizes are not known."""
    read_share: float
    """Share of the reads that the store serves at least in part."""
    byte_share: float
    """Share of the bytes that the store serves."""
    steady_read_share: float | None
    """`read_share` without the first epoch; `None` if there is only one."""
    steady_byte_share: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrderAdvice:
    """Shares of the reads that go to the store, by cache and size, and a verdict."""

    order: str
    items: int
    """Number of items that a cache can keep; with "groups:K", the number of groups."""
    data_bytes: int | None
    """Bytes of all items; `None` if sizes are not known."""
    reads: int
    """Number of reads of all nodes in all epochs."""
    epochs: int
    nodes: int
    seed: int
    recommended: str
    """ "next-use" if `gain` is at least 1.05 and 1 % of the bytes, else the better of "never-evict" and "lru"."""
    gain: float | None
    """Bytes of the better of the other two over those of `next-use`, at `gain_cache_share`; in the steady state if
    there is one. `None` if `next-use` fetches none."""
    gain_cache_share: float
    """The size at which `next-use` saves the largest share of the bytes."""
    verdict: tuple[str, ...]
    """What to use and how large, one sentence each."""
    points: tuple[OrderPoint, ...]
    """By size, then by policy."""
    neighbours: tuple[NeighbourPoint, ...]
    """By size, then by number of nodes, then by policy; empty unless requested."""

    def of(self, policy: str) -> list[OrderPoint]:
        """Return the points of one policy, by size."""
        return [point for point in self.points if point.policy == policy]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"schema": SCHEMA, "version": __version__, **dataclasses.asdict(self)}


def advise_order(
    order: str | PathLike[str] | Sequence[int] | Sequence[Sequence[int]],
    *,
    items: int | None = None,
    epochs: int | None = None,
    nodes: int = 1,
    neighbours: bool = False,
    sizes: str | PathLike[str] | int | Sequence[int] | None = None,
    weights: str | PathLike[str] | Sequence[float] | None = None,
    cache: Sequence[str | int] | str | int | None = None,
    seed: int = 1,
    progress: Callable[[float], object] | None = None,
) -> OrderAdvice:
    """Recommend a cache for a reader that knows its order, and compute how much disclosing the order saves.

    Compares LRU, never evicting, and evicting the bytes whose next read is furthest away (Belady, IBM Systems Journal
    5(2), 1966), by the share of reads and bytes that the store must serve. No store is simulated and no times result.

        found = headstart.advise_order("shuffled", items=1_000_000, nodes=4, cache=["30%", "50%"])
        found.verdict, found.recommended, found.gain

    Requires numpy (the extra `numpy`). A million items in three epochs take about ten seconds.

    Args:
        order: A sampler: "shuffled" (each item once per epoch, in a new random order), "sequential" (the same order in
            each epoch), "weighted" or "weighted:S" (drawn with replacement, with lognormal weights of spread S, by
            default 0.7), "groups:K" (shuffled samples, each of which needs its group of K samples), or "windows:K"
            (windows of K neighbouring chunks that start at shuffled places). Or the path of a file with an item id per
            line, optionally followed by its size. Or item numbers: an array of shape (reads,), or a sequence of epochs,
            such as an array of shape (epochs, reads).
        items: Number of items of a sampler: samples, or chunks of "windows".
        epochs: Number of epochs of a sampler, 5 if `None`. A file or one sequence is divided into this number of equal
            epochs, 1 if `None`.
        nodes: Number of nodes that share each epoch: node i reads draws i, i + nodes, ..., as PyTorch's
            DistributedSampler deals them. Each node has its own cache.
        neighbours: Whether to compute also, for 1, 2, 4, ... `nodes` nodes, what the store delivers if a node takes
            what it misses from a node that has it.
        sizes: Size in bytes: one for all items ("128KiB", 131072), or one for each item, as an array of shape (items,)
            or a file with one per line. With "groups", the sizes of the groups.
        weights: Only with "weighted": a weight for each item, as an array of shape (items,) or a file with one per
            line.
        cache: Sizes of each node's cache: shares ("30%") of the data divided by the nodes, items (1000), or bytes
            ("8GiB"). 10 %, 30 %, 50 %, 80 % and 100 % if `None`.
        seed: Random seed of a sampler.
        progress: Called with the share done, 0 to 1.

    Returns:
        The advice: a point for each policy and size, with shares from 0 to 1.

    Raises:
        HeadstartError: An argument or a file is wrong, or numpy is not installed.
    """
    whole("nodes", nodes, 1)
    known = known_order(order, items=items, epochs=epochs, sizes=sizes, weights=weights, seed=seed)
    shortest = min(len(epoch) for epoch in known.epochs)
    if nodes > shortest:
        raise HeadstartError(f"nodes: {nodes}, and an epoch has {shortest} draws; allowed: 1 to {shortest}")
    if neighbours and nodes == 1:
        raise HeadstartError("neighbours: a single node has none; allowed: beside nodes from 2 on")
    unit = 1 if known.sizes is None else int(known.sizes[0])
    equal = known.sizes is None or bool((known.sizes == unit).all())
    # Equal items are counted in items.
    weights_of = numpy().ones(known.items, dtype=numpy().int64) if known.sizes is None or equal else known.sizes
    total = int(weights_of.sum())
    sought = DEFAULT_CACHE if cache is None else listed(cache)
    # Of few items, a small share by default is one item.
    least = 0 if cache is not None else 1

    def capacities_of(count: int) -> list[int]:
        return sorted(_capacity(each, known, total, count, unit if equal else None, least) for each in sought)

    capacities = sorted(set(capacities_of(nodes)))
    if not capacities:
        raise HeadstartError("cache: no size; allowed: at least one")
    tell = progress or (lambda _: None)
    numbers = up_to(nodes) if neighbours else []
    # Each number of nodes takes about as long.
    part = 1 / (1 + len(numbers))
    counted = count_all(known, nodes, weights_of, capacities, lambda done: tell(done * part))
    points = tuple(
        OrderPoint(
            policy=policy,
            cache_share=capacity * nodes / total,
            cache_items=capacity if equal else None,
            cache_bytes=None if known.sizes is None else capacity * (unit if equal else 1),
            **counted[capacity, policy],
        )
        for capacity in capacities
        for policy in POLICIES
    )
    near: list[NeighbourPoint] = []
    if neighbours:
        item_bytes = None if known.sizes is None else unit if equal else 1
        own = {count: capacities_of(count) for count in numbers}
        near = shared(known, weights_of, item_bytes, own, lambda done: tell(part + done * (1 - part)))
    verdict = _verdict(points)
    if near:
        verdict["verdict"] += (_neighbours_text(near),)
    return OrderAdvice(
        order=known.text,
        items=known.items,
        data_bytes=None if known.sizes is None else int(known.sizes.sum()),
        reads=known.reads,
        epochs=len(known.epochs),
        nodes=nodes,
        seed=seed,
        points=points,
        neighbours=tuple(near),
        **verdict,
    )


def _capacity(text: Any, known: KnownOrder, total: int, nodes: int, unit: int | None, least: int) -> int:
    """Return the size of a cache in items, or in bytes if items differ in size (`unit` is `None`)."""
    shown = f'cache: "{text}"'
    allowed = "allowed: shares of the data (30%), items (1000), or sizes (8GiB)"
    try:
        if isinstance(text, str) and text.strip().endswith("%"):
            share = float(text.strip()[:-1]) / 100
            if not 0 < share <= nodes:
                raise HeadstartError(f"{shown}; allowed: shares above 0 % and up to {nodes * 100} %, all data")
            # A product such as 0.3 * 10 may be just below a whole number.
            found = max(int(share * total / nodes * (1 + 1e-12)), least)
        elif str(text).strip().isdecimal():
            if unit is None:
                raise HeadstartError(f"{shown}: items differ in size; allowed: shares (30%) or sizes (8GiB)")
            found = int(text)
        else:
            found = size_bytes(str(text))
            if known.sizes is None:
                raise HeadstartError(
                    f"{shown} needs sizes of the items; allowed: sizes beside it, shares (30%), or items"
                )
            found //= unit or 1
    except ValueError as error:
        if isinstance(error, HeadstartError) and str(error).startswith("cache"):
            raise
        raise HeadstartError(f"{shown}; {allowed}") from None
    if found < 1:
        raise HeadstartError(f"{shown} holds no item; {allowed}, for at least one item")
    # A larger cache holds all data as well.
    return min(found, total)


def _verdict(points: Sequence[OrderPoint]) -> dict[str, Any]:
    """Return what is recommended, with the gain of knowing the order."""
    lines = [dict(zip(POLICIES, points[start : start + 3], strict=True)) for start in range(0, len(points), 3)]
    simple, other = sorted(("never-evict", "lru"), key=lambda policy: sum(share(line[policy]) for line in lines))
    line = max(lines, key=lambda line: share(line[simple]) - share(line["next-use"]))
    least, ours = share(line["next-use"]), share(line[simple])
    gain = ours / least if least else None if ours else 1.0
    saved = ours - least
    worth = saved >= SAVED_MIN and (gain is None or gain >= WORTH_MIN)
    size = percent(line[simple].cache_share)
    if all(share(line["next-use"]) == 1 for line in lines):
        said = ["no item is read again: no cache saves anything, and reading ahead in order saves waiting"]
        return {
            "recommended": simple,
            "gain": 1.0,
            "gain_cache_share": line[simple].cache_share,
            "verdict": tuple(said),
        }
    if worth:
        fewer = "nothing" if gain is None else f"{gain:.1f} times fewer bytes"
        said = [
            f"with the next use known, the store delivers {fewer} at {size}: {percent(least)} of what is read, with "
            f"{TEXT[simple]} {percent(ours)}"
        ]
    else:
        near = "already optimal" if saved < EQUAL else f"at most {percent(saved)} of the bytes above the optimum"
        said = [
            f"{TEXT[simple]} is {near} here: all there is to gain is a larger cache, which saves bytes, and reading "
            "ahead across epochs, which saves waiting"
        ]
    worst = max(lines, key=lambda line: share(line[other]) - share(line[simple]))
    if share(worst[other]) >= WORTH_MIN * share(worst[simple]) + EQUAL:
        said.append(
            f"{TEXT[other]} sends {percent(share(worst[other]))} to the store at {percent(worst[other].cache_share)}, "
            f"{TEXT[simple]} {percent(share(worst[simple]))}"
        )
    said.append(f"smallest of these caches that halves the bytes: {_halves(lines, simple, worth)}")
    return {
        "recommended": "next-use" if worth else simple,
        "gain": gain,
        "gain_cache_share": line[simple].cache_share,
        "verdict": tuple(said),
    }


def _neighbours_text(points: Sequence[NeighbourPoint]) -> str:
    """Return from how many nodes on neighbours are worth it, by size."""
    by_size = (
        f"{'never' if count is None else f'from {count} nodes on'} at {percent(size)}"
        for size, count in worth(points, NEIGHBOURS_MIN)
    )
    return f"neighbours that serve misses save at least a third of the store's bytes: {', '.join(by_size)}"


def _halves(lines: Sequence[dict[str, OrderPoint]], simple: str, worth: bool) -> str:
    """Return the smallest size at which at most half of the bytes come from the store, by policy."""
    found = []
    for policy in (simple, "next-use") if worth else (simple,):
        enough = [line[policy].cache_share for line in lines if share(line[policy]) <= 0.5 + EQUAL]
        found.append(f"{percent(enough[0]) if enough else 'none'} with {TEXT[policy]}")
    return ", ".join(found)


def share(point: OrderPoint) -> float:
    """Return the share of the bytes that a verdict is about: in the steady state if there is one."""
    return point.byte_share if point.steady_byte_share is None else point.steady_byte_share


def percent(share: float) -> str:
    """Return a share as text: 30 %."""
    return f"{share * 100:.3g} %"

"""Nodes that serve each other's misses: `headstart advise --order ... --neighbours`."""

import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headstart
from headstart.advice.neighbours import NeighbourPoint, up_to, worth
from tests.conftest import Run


def points(order: Any, nodes: int, **given: Any) -> dict[tuple[int, str], NeighbourPoint]:
    """The points by nodes and policy, for one size."""
    found = headstart.advise_order(order, nodes=nodes, neighbours=True, **given)
    return {(point.nodes, point.policy): point for point in found.neighbours}


def naive(epochs: list[list[int]], nodes: int, capacity: int, *, knows: bool) -> tuple[int, int]:
    """Reads that the store and that neighbours serve after the first epoch, by the rule, item by item."""
    reads = [(item, index % nodes) for epoch in epochs for index, item in enumerate(epoch)]
    steady = len(epochs[0]) if len(epochs) > 1 else 0
    holder: dict[int, int] = {}
    from_store = from_neighbours = 0
    for position, (item, node) in enumerate(reads):
        if item in holder:
            from_neighbours += position >= steady and holder[item] != node
            continue
        from_store += position >= steady
        if knows:
            holder[item] = node
            later = [each for each, _ in reads[position + 1 :]]
            when = {each: later.index(each) if each in later else math.inf for each in holder}
            # What is used last of all leaves, and what is never used again is not kept.
            for each in sorted(holder, key=lambda each: -when[each])[: max(len(holder) - capacity, 0)]:
                del holder[each]
        elif len(holder) < capacity:
            holder[item] = node
    return from_store, from_neighbours


@given(st.data())
def test_the_fast_counts_are_those_of_a_naive_model(data: st.DataObject) -> None:
    nodes, items, capacity = data.draw(st.tuples(st.integers(2, 4), st.integers(4, 8), st.integers(1, 3)))
    draws = st.lists(st.integers(0, items - 1), min_size=items, max_size=items)
    order = [data.draw(st.one_of(draws, st.permutations(range(items)))) for _ in range(data.draw(st.integers(1, 3)))]
    distinct = len({item for epoch in order for item in epoch})
    in_epochs = points(order, nodes, cache=capacity)
    at_once = points([[item for epoch in order for item in epoch]], nodes, cache=capacity)
    for count in up_to(nodes):
        pool = min(capacity, distinct) * count
        counted = items * max(len(order) - 1, 1)
        expected = [each / counted for each in naive(order, count, pool, knows=False)]
        found = in_epochs[count, "never-evict"]
        assert [found.shared_store_share, found.network_share] == pytest.approx(expected)
        # Which of the items that are never used again leaves first changes no sum over the whole order.
        store, _ = naive([[item for epoch in order for item in epoch]], count, pool, knows=True)
        best = at_once[count, "next-use"]
        assert best.shared_store_share == pytest.approx(store / items / len(order))
        assert best.shared_store_share <= min(best.store_share, at_once[count, "never-evict"].shared_store_share) + 1e-9
        assert best.shared_store_share + best.network_share <= 1 + 1e-9


def test_closed_forms() -> None:
    """A cache of a share f of a node's share finds f of a shuffled epoch in all nodes, and f / nodes in its own."""
    items, nodes = 8192, 64
    for f in (0.25, 0.5, 1.0):
        found = points("shuffled", nodes, items=items, epochs=6, cache=f"{f * 100:g}%", sizes=1000)
        for count in up_to(nodes):
            never, best = found[count, "never-evict"], found[count, "next-use"]
            assert never.shared_store_share == pytest.approx(1 - f)
            assert best.shared_store_share == pytest.approx(1 - f)
            assert never.store_share == pytest.approx(1 - f / count, abs=0.005)
            # The node that has an item is any of them.
            for point in (never, best):
                assert point.network_share == pytest.approx(f * (1 - 1 / count), abs=0.01)
                assert point.network_bytes == pytest.approx(point.network_share * items * 1000 / count, rel=1e-6, abs=1)
        # Of what a node reads in an epoch, 1 / N returns in each of the next ones. Kept for k epochs, these are
        # k^2 / 2 N of a share, and k / N of the reads are hits: sqrt(2 f / N), if the run has as many epochs.
    many = points("shuffled", 16, items=8192, epochs=40, cache="50%")
    for count in (4, 8, 16):
        assert many[count, "next-use"].store_share == pytest.approx(1 - math.sqrt(1 / count), abs=0.14)
    assert many[2, "next-use"].store_share == pytest.approx(0.5, abs=0.01)


def test_caches_that_are_full_one_by_one_do_nearly_as_well() -> None:
    """The nodes' caches count as one: with a limit for each node, the store delivers little more."""
    items, nodes, epochs, share = 2048, 8, 5, 0.5
    order = headstart.advice.known.known_order(
        "shuffled", items=items, epochs=epochs, sizes=None, weights=None, seed=3
    ).epochs
    reads = [(int(item), index % nodes) for epoch in order for index, item in enumerate(epoch.ravel())]
    after = dict[int, int]()
    following = [math.inf] * len(reads)
    for position in range(len(reads) - 1, -1, -1):
        following[position] = after.get(reads[position][0], math.inf)
        after[reads[position][0]] = position
    capacity = int(share * items / nodes)
    kept: list[dict[int, float]] = [{} for _ in range(nodes)]
    where: dict[int, int] = {}
    fetched: Counter[bool] = Counter()
    for position, (item, node) in enumerate(reads):
        holder = where.get(item)
        if holder is None:
            fetched[position >= items] += 1
            holder = where[item] = node
        kept[holder][item] = following[position]
        if len(kept[holder]) > capacity:
            gone = max(kept[holder], key=lambda each: kept[holder][each])
            del kept[holder][gone]
            del where[gone]
    ours = points([epoch.ravel() for epoch in order], nodes, cache="50%")[nodes, "next-use"]
    assert ours.shared_store_share <= fetched[True] / items / (epochs - 1) <= ours.shared_store_share + 0.02


def test_groups_and_windows_are_shared_too() -> None:
    """Nodes that read a group in the same round fetch it once: even a small cache serves neighbours then."""
    for sampler, items in (("groups:50", 12_800), ("windows:4", 512), ("weighted", 2048)):
        found = points(sampler, 8, items=items, epochs=3, cache="30%")
        for policy in ("never-evict", "next-use"):
            alone, eight = found[1, policy], found[8, policy]
            # The order of all nodes is the same, and so is the sum of their caches.
            assert eight.shared_store_share == pytest.approx(alone.shared_store_share, abs=0.02)
            assert eight.shared_store_share < eight.store_share
            assert eight.shared_store_share + eight.network_share <= 1


def test_the_command_prints_a_row_for_each_number_of_nodes(run: Run) -> None:
    words = ("advise", "--order", "shuffled", "--items", "960", "--nodes", "24", "--neighbours", "--cache", "10%,50%")
    done = run(*words, "--sizes", "1MiB")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.split("what these serve then")[1].splitlines()]
    assert [row[2] for row in rows if row[1:2] == ["%"]] == ["1", "2", "4", "8", "16", "24"] * 2
    assert (
        "neighbours that serve misses save at least a third of the store's bytes: never at 10 %, from " in done.stdout
    )
    found = json.loads(run(*words, "--json", "-").stdout)
    assert [point["network_bytes"] for point in found["neighbours"]] == [None] * 24
    assert json.loads(run(*words[:5], "--json", "-").stdout)["neighbours"] == []


def test_worth_is_from_where_on() -> None:
    def point(nodes: int, alone: float, served: float) -> NeighbourPoint:
        given = {"cache_share": 0.5, "network_share": 0.0, "network_bytes": None, "policy": "next-use"}
        return NeighbourPoint(nodes=nodes, store_share=alone, shared_store_share=served, **given)  # type: ignore[arg-type]

    rising = [point(1, 0.5, 0.5), point(2, 0.8, 0.5), point(4, 0.6, 0.5), point(8, 0.9, 0.5)]
    assert worth(rising, 1.5) == [(0.5, 8)]
    assert worth(rising, 2) == [(0.5, None)]
    assert worth([point(1, 0.0, 0.0), point(2, 0.3, 0.0)], 1.5) == [(0.5, 2)]
    assert up_to(2) == [1, 2] and up_to(256)[-3:] == [64, 128, 256] and up_to(5) == [1, 2, 4, 5]

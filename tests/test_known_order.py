"""`headstart advise --order` and `headstart.advise_order`: caches for a reader whose order is known."""

import json
import math
import random
from collections import OrderedDict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headstart
from headstart import HeadstartError, OrderAdvice
from headstart.advice import caches, known
from tests.conftest import Run

LRU, NEVER, NEXT = caches.POLICIES


def missed(reads: list[int], sizes: list[int], capacity: int) -> dict[str, list[int]]:
    """The bytes of each read that miss, by policy."""
    array, bytes_read = np.array(reads), np.array([sizes[item] for item in reads])
    before, after = caches.uses_around(array)
    (lru,) = caches.lru(before, after, bytes_read, [capacity])
    never = caches.never_evict(array, before, bytes_read, capacity)
    found = {LRU: lru, NEVER: never, NEXT: caches.next_use(after, bytes_read, capacity)}
    return {policy: each.tolist() for policy, each in found.items()}


@pytest.mark.parametrize(
    ("reads", "sizes", "capacity", "expected"),
    [
        # A loop of three with room for two: LRU misses always, the others keep two of the three (A B _ A B _ ...).
        ("ABCABC", {}, 2, {LRU: "111111", NEVER: "111001", NEXT: "111001"}),
        # Never evict keeps A, which does not return; the next use does not keep it in the first place.
        ("ABBBCC", {}, 1, {LRU: "110010", NEVER: "111111", NEXT: "110010"}),
        # At A, both A (read at 3) and B (at 2) fit; at C (at 4) nothing is free, and C is farthest: not kept.
        ("ABBAC", {}, 2, {LRU: "11001", NEVER: "11001", NEXT: "11001"}),
        ("ACBBAC", {}, 1, {LRU: "111011", NEVER: "111101", NEXT: "111011"}),
        # By bytes: A has 3, B has 2, of 4. Next use keeps two bytes of B (at 2) and two of A, so that 1 of A misses.
        ("ABBA", {"A": 3, "B": 2}, 4, {LRU: "3203", NEVER: "3220", NEXT: "3201"}),
        # Larger than the cache: LRU and never evict keep nothing of A, and B is not evicted for it.
        ("BABA", {"A": 5, "B": 1}, 4, {LRU: "1505", NEVER: "1505", NEXT: "1502"}),
    ],
)
def test_orders_worked_by_hand(reads: str, sizes: dict[str, int], capacity: int, expected: dict[str, str]) -> None:
    letters = sorted(set(reads))
    found = missed([letters.index(each) for each in reads], [sizes.get(each, 1) for each in letters], capacity)
    assert {policy: "".join(map(str, each)) for policy, each in found.items()} == expected


def naive_lru(reads: list[int], sizes: list[int], capacity: int) -> list[int]:
    kept: OrderedDict[int, None] = OrderedDict()
    found = []
    for item in reads:
        found.append(0 if item in kept else sizes[item])
        if sizes[item] > capacity:
            continue
        kept[item] = None
        kept.move_to_end(item)
        while sum(sizes[each] for each in kept) > capacity:
            kept.popitem(last=False)
    return found


def naive_never(reads: list[int], sizes: list[int], capacity: int) -> list[int]:
    kept: set[int] = set()
    found = []
    for item in reads:
        found.append(0 if item in kept else sizes[item])
        if item not in kept and sum(sizes[each] for each in kept) + sizes[item] <= capacity:
            kept.add(item)
    return found


def fewest_bytes(reads: list[int], sizes: list[int], capacity: int) -> int:
    """The least that any cache fetches: all choices of the bytes to keep, tried one by one."""
    # Each byte is an item of its own, and a state is the set of bytes kept.
    states: dict[frozenset[tuple[int, int]], int] = {frozenset(): 0}
    for item in reads:
        own = {(item, byte) for byte in range(sizes[item])}
        after: dict[frozenset[tuple[int, int]], int] = {}
        for kept, fetched in states.items():
            cost = fetched + len(own - kept)
            held = sorted(kept | own)
            for mask in range(1 << len(held)):
                if mask.bit_count() <= capacity:
                    state = frozenset(byte for index, byte in enumerate(held) if mask >> index & 1)
                    after[state] = min(after.get(state, cost), cost)
        states = after
    return min(states.values())


@given(st.data())
def test_the_fast_counts_are_those_of_a_naive_model(data: st.DataObject) -> None:
    items = data.draw(st.integers(1, 9))
    sizes = data.draw(st.one_of(st.just([1] * items), st.lists(st.integers(1, 6), min_size=items, max_size=items)))
    reads = data.draw(st.lists(st.integers(0, items - 1), min_size=1, max_size=60))
    capacity = data.draw(st.integers(1, sum(sizes) + 1))
    found = missed(reads, sizes, capacity)
    assert found[LRU] == naive_lru(reads, sizes, capacity)
    assert found[NEVER] == naive_never(reads, sizes, capacity)
    # No other cache fetches fewer bytes.
    assert sum(found[NEXT]) <= min(sum(found[LRU]), sum(found[NEVER]))
    assert all(0 <= each <= sizes[item] for each, item in zip(found[NEXT], reads, strict=True))


@given(st.data())
def test_next_use_fetches_as_few_bytes_as_all_choices_tried(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    reads = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=8))
    capacity = data.draw(st.integers(1, sum(sizes)))
    assert sum(missed(reads, sizes, capacity)[NEXT]) == fewest_bytes(reads, sizes, capacity)


def test_lru_is_the_curve_of_the_core(tmp_path: Path) -> None:
    """The core counts the same misses, one pass over a trace of objects with sizes."""
    chance = random.Random(3)
    sizes = [chance.randrange(1, 5000) for _ in range(60)]
    reads = [min(int(chance.expovariate(0.05)), 59) for _ in range(4000)]
    trace = headstart.Trace({"id": reads, "size": [sizes[item] for item in reads]})
    capacities = ["6000B", "20000B", "60000B"]
    curve = headstart.curve(trace, policies="lru", cache=capacities, workload={"block_size": "object"})
    ours = headstart.advise_order(reads, sizes=sizes, cache=capacities).of(LRU)
    assert [point.miss_ratio for point in curve.points] == [point.read_share for point in ours]
    assert [point.byte_miss_ratio for point in curve.points] == [point.byte_share for point in ours]


TABLE: list[tuple[str, dict[str, Any], str, tuple[float, float, float], float]] = [
    ("shuffled", {}, "30%", (0.95, 0.70, 0.70), 0.006),
    ("shuffled", {}, "50%", (0.85, 0.50, 0.50), 0.006),
    ("shuffled", {}, "80%", (0.52, 0.20, 0.20), 0.006),
    ("shuffled", {"nodes": 2}, "50%", (0.93, 0.75, 0.50), 0.012),
    ("shuffled", {"nodes": 4}, "50%", (0.97, 0.88, 0.63), 0.012),
    # The weights are lognormal with a spread of 0.7: the table does not say which.
    ("weighted", {}, "30%", (0.57, 0.58, 0.27), 0.02),
    ("groups:50", {"epochs": 3}, "30%", (0.71, 0.70, 0.35), 0.01),
    # The table's .72 for never evict is that of three epochs, the first included.
    ("windows:4", {"epochs": 10}, "30%", (0.76, 0.70, 0.39), 0.015),
]
"""What an order is worth: shares of the reads that go to the store in the steady state, calculated independently."""


@pytest.mark.parametrize(("sampler", "more", "cache", "expected", "within"), TABLE)
def test_the_value_of_each_order_is_that_of_an_independent_calculation(
    sampler: str, more: dict[str, Any], cache: str, expected: tuple[float, float, float], within: float
) -> None:
    items = 50_000 if sampler.startswith("groups") else 1000 if sampler.startswith("windows") else 4000
    found = headstart.advise_order(sampler, items=items, cache=cache, **{"epochs": 20, **more})
    shares = [point.steady_read_share for point in found.points]
    assert shares == pytest.approx(expected, abs=within)
    assert (found.recommended == "next-use") == (expected[1] - expected[2] > 0.01)


def test_closed_forms() -> None:
    """A cache of a share f that never evicts hits f of a shuffled epoch, and no other cache hits more."""
    items = 2000
    found = headstart.advise_order("shuffled", items=items, cache=["10%", "25%", "60%", "100%"], epochs=4)
    for never, best in zip(found.of(NEVER), found.of(NEXT), strict=True):
        assert never.cache_items is not None
        assert never.steady_read_share == 1 - never.cache_items / items
        assert best.steady_read_share == never.steady_read_share
        assert best.read_share == pytest.approx(0.25 + 0.75 * (1 - never.cache_items / items))
    # LRU, each epoch shuffled anew. Let u be an item's place in the last epoch and v in this one, as shares of it.
    # Between lie 1 - u of the last epoch, and of the v of this one those that are not among them: 1 - u + u v <= f is
    # a hit. The mean of (f - 1 + u) / u over u from 1 - f to 1 is f + (1 - f) ln(1 - f).
    found = headstart.advise_order("shuffled", items=20_000, cache=["30%", "50%", "80%"], epochs=4)
    for point in found.of(LRU):
        f = point.cache_share
        assert point.steady_read_share == pytest.approx(1 - f - (1 - f) * math.log(1 - f), abs=0.005)
    # In a loop, LRU hits nothing.
    loop = headstart.advise_order("sequential", items=100, cache=["30%", "99%"], epochs=3)
    assert [point.steady_read_share for point in loop.points] == [1, 0.7, 0.7, 1, 0.01, 0.01]


def test_nodes_are_dealt_every_nth_draw_and_have_a_cache_each() -> None:
    epochs = [[0, 1, 2, 3], [2, 3, 1, 0]]
    # Node 0 reads 0 2, then 2 1; node 1 reads 1 3, then 3 0. With a cache of one item each, both keep what they first
    # read, which does not return; the next use keeps 2 and 3.
    found = headstart.advise_order(epochs, nodes=2, cache=1)
    assert (found.epochs, found.reads, found.items) == (2, 8, 4)
    assert [point.steady_read_share for point in found.points] == [0.5, 1, 0.5]
    assert [point.cache_share for point in found.points] == [0.5] * 3
    # Windows are dealt whole.
    whole = known.known_order("windows:3", items=9, epochs=1, sizes=None, weights=None, seed=1).epochs[0]
    assert sorted(map(tuple, whole.tolist())) == [(first, first + 1, first + 2) for first in range(7)]


def test_samplers_draw_what_they_say(tmp_path: Path) -> None:
    def epochs(sampler: str, **more: Any) -> list[list[int]]:
        given = {"items": 12, "epochs": 3, "sizes": None, "weights": None, "seed": 1, **more}
        return [epoch.ravel().tolist() for epoch in known.known_order(sampler, **given).epochs]

    for epoch in epochs("shuffled"):
        assert sorted(epoch) == list(range(12)) != epoch
    assert len({tuple(epoch) for epoch in epochs("shuffled")}) == 3
    assert epochs("shuffled") == epochs("shuffled") != epochs("shuffled", seed=2)
    assert epochs("sequential") == [list(range(12))] * 3
    assert [sorted(epoch) for epoch in epochs("groups:5")] == [[0] * 5 + [1] * 5 + [2] * 2] * 3
    weights = tmp_path / "weights"
    weights.write_text("0\n1\n3\n0\n")
    (drawn,) = epochs("weighted", items=4, epochs=1, weights=weights)
    assert set(drawn) <= {1, 2}
    (many,) = epochs("weighted", items=20_000, epochs=1, weights=[1, 3] * 10_000)
    assert sum(item % 2 for item in many) / len(many) == pytest.approx(0.75, abs=0.02)
    assert set(epochs("weighted:0", items=2, epochs=40)[0]) <= {0, 1}


def test_a_file_has_ids_and_sizes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "order"
    path.write_text("a.jpg 3\nb.jpg 2\n\nb.jpg 2\na.jpg 3\n")
    done = run("advise", "--order", path, "--cache", "4B", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["items"], found["data_bytes"], found["reads"], found["epochs"]) == (2, 5, 4, 1)
    # 3 2 0 3, 3 2 2 0 and 3 2 0 1 of 10 bytes, as worked by hand above.
    assert [point["byte_share"] for point in found["points"]] == [0.8, 0.7, 0.6]
    assert [point["read_share"] for point in found["points"]] == [0.75, 0.75, 0.75]
    assert {point["steady_byte_share"] for point in found["points"]} == {None}
    assert found["recommended"] == "next-use" and found["gain"] == pytest.approx(float(Fraction(7, 6)))
    assert found["schema"] == 1 and found["points"][0]["cache_items"] is None
    path.write_text("b\na\nb\na\n")
    sized = run("advise", "--order", path, "--epochs", "2", "--sizes", "1KiB", "--cache", "1KiB", "--json", "-")
    assert [point["steady_byte_share"] for point in json.loads(sized.stdout)["points"]] == [1, 0.5, 0.5]


def verdict(found: OrderAdvice) -> str:
    return "\n".join(found.verdict)


def test_the_verdict_is_in_words(run: Run) -> None:
    plain = headstart.advise_order("shuffled", items=1000)
    assert (plain.recommended, plain.gain) == ("never-evict", 1.0)
    assert "never evict is already optimal here" in verdict(plain) and "50 % with never evict" in verdict(plain)
    grouped = headstart.advise_order("groups:50", items=50_000, cache="30%", epochs=3)
    assert grouped.recommended == "next-use" and grouped.gain == pytest.approx(2.0, abs=0.1)
    assert "2.0 times fewer bytes at 30 %: 34" in verdict(grouped)
    # A working set that moves: LRU follows it, and never evict keeps the past.
    moving = headstart.advise_order([each // 40 * 4 + each % 4 for each in range(4000)], cache=[4, 8])
    assert moving.recommended == "lru" and "LRU is already optimal here" in verdict(moving)
    # Only the next use keeps the one item that returns: there is no factor to nothing.
    nothing = headstart.advise_order([[0, 1, 2], [1]], cache=1)
    assert (nothing.gain, nothing.recommended) == (None, "next-use")
    assert verdict(nothing).startswith("with the next use known, the store delivers nothing at 33.3 %: 0 % of what is")
    assert headstart.advise_order([5]).verdict == headstart.advise_order(range(1000)).verdict
    assert headstart.advise_order([5]).verdict[0].startswith("no item is read again: no cache saves anything")
    assert [point.cache_items for point in headstart.advise_order([[5, 6]] * 3).of(LRU)] == [1, 2]
    done = run("advise", "--order", "shuffled", "--items", "1000", "--sizes", "128KiB", "--nodes", "2")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "1,000 items (125 MiB), 5 epochs on 2 nodes, 5,000 reads",
        "after the first epoch",
        "times fewer bytes",
    ):
        assert text in done.stdout


SHUFFLED = ("--order", "shuffled", "--items", "10")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("--order", "shufled", "--items", "10"),
            'order (--order): "shufled" is neither a file nor a sampler (did you',
        ),
        (("--order", "shuffled"), "items (--items): is missing for the order shuffled; allowed: the number of items"),
        (("--order", "shuffled", "--items", "0"), "items (--items): 0 is out of range; allowed: a whole number from 1"),
        ((*SHUFFLED, "--epochs", "0"), "epochs (--epochs): 0 is out of range; allowed: "),
        (
            (*SHUFFLED, "--epochs", "9999999"),
            "order (--order): 99,999,990 reads in all epochs; allowed: at most 30,000,000",
        ),
        ((*SHUFFLED, "--nodes", "0"), "nodes (--nodes): 0 is out of range; allowed: "),
        ((*SHUFFLED, "--nodes", "11"), "nodes (--nodes): 11, and an epoch has 10 draws; allowed: 1 to 10"),
        (
            (*SHUFFLED, "--neighbours"),
            "neighbours (--neighbours): a single node has none; allowed: beside nodes from 2",
        ),
        ((*SHUFFLED, "--cache", "5%"), 'cache (--cache): "5%" holds no item; allowed: shares of the data (30%), items'),
        ((*SHUFFLED, "--cache", "101%"), 'cache (--cache): "101%"; allowed: shares above 0 % and up to 100 %'),
        ((*SHUFFLED, "--cache", "nan%"), 'cache (--cache): "nan%"; allowed: shares'),
        (
            (*SHUFFLED, "--cache", "x%"),
            'cache (--cache): "x%"; allowed: shares of the data (30%), items (1000), or sizes',
        ),
        ((*SHUFFLED, "--cache", "many"), 'cache (--cache): "many"; allowed: shares'),
        ((*SHUFFLED, "--cache", "1GiB"), 'cache (--cache): "1GiB" needs sizes of the items; allowed: sizes beside it'),
        (
            (*SHUFFLED, "--sizes", "0B"),
            'sizes (--sizes): "0B"; allowed: a size, or a file of sizes, one a line, from 1',
        ),
        (
            (*SHUFFLED, "--sizes", "short"),
            "sizes (--sizes): 2 of type int64 for 10 items; allowed: one size for all, or",
        ),
        ((*SHUFFLED, "--sizes", "wrong"), 'wrong:2: "much"; allowed: a size, from 1 byte to 1TiB: 128KiB'),
        ((*SHUFFLED, "--weights", "short"), "weights (--weights): does not apply to the order shuffled; allowed: only"),
        (
            ("--order", "weighted", "--items", "10", "--weights", "short"),
            "weights (--weights): 2 for 10 items; allowed: ",
        ),
        (
            ("--order", "weighted", "--items", "2", "--weights", "wrong"),
            'wrong:2: "much" is no weight; allowed: a number',
        ),
        (
            ("--order", "weighted", "--items", "2", "--weights", "below"),
            "weights (--weights): one is negative or not fin",
        ),
        (
            ("--order", "weighted", "--items", "2", "--weights", "none"),
            "none: No such file or directory; allowed: a file",
        ),
        (("--order", "weighted:x", "--items", "10"), 'order (--order): "weighted:x"; allowed: weighted:S, with S the'),
        (
            ("--order", "groups", "--items", "10"),
            'order (--order): "groups"; allowed: groups:K, with K samples a group',
        ),
        (
            ("--order", "windows:11", "--items", "10"),
            'order (--order): "windows:11"; allowed: windows:K, with K chunks a',
        ),
        (
            ("--order", "shuffled:2", "--items", "10"),
            'order (--order): "shuffled" takes no ":2"; allowed: shuffled, seq',
        ),
        (
            ("--order", "short", "--items", "2"),
            "items (--items): does not apply to a file; allowed: only for the order",
        ),
        (("--order", "short", "--epochs", "3"), "epochs (--epochs): 3 do not divide 2 reads; allowed: epochs of one"),
        (("--order", "empty"), "empty: is empty; allowed: at least one line"),
        (("--order", "."), ".: Is a directory; allowed: a file that can be read"),
        (
            ("--order", "three"),
            'three:1: "a 1 2": has 3 words; allowed: ID or ID SIZE, one size for an item in all lines',
        ),
        (("--order", "two"), 'two:2: "a": another size; allowed: ID or ID SIZE, one size for an item in all lines'),
        (("--order", "nosize"), 'nosize:2: "x"; allowed: a size, from 1 byte to 1TiB: 128KiB'),
        (("--order", "some"), "sizes (--sizes): 1 of 2 items have one; allowed: sizes for all items, once"),
        (("--order", "mixed", "--cache", "1"), 'cache (--cache): "1": items differ in size; allowed: shares (30%) or'),
        (("--neighbours",), "--neighbours: given without --order; allowed: beside --order SAMPLER|FILE"),
        (("--items", "10"), "--items: given without --order; allowed: beside --order SAMPLER|FILE"),
        (
            (*SHUFFLED, "--device", "nvme"),
            "--device: given beside --order, which reads no trace; allowed: --cache, --seed",
        ),
        ((*SHUFFLED, "trace.csv"), "TRACE: given beside --order, which reads no trace; allowed: --cache"),
        ((*SHUFFLED, "--pid", "7"), "--path, --pid, --process: given beside --order, which reads no trace; allowed: "),
        ((*SHUFFLED, "--html", "a.html"), "--html: given beside --order, which reads no trace; allowed: --cache"),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], text: str, run: Run, tmp_path: Path) -> None:
    files = {"short": "1\n2\n", "wrong": "1\nmuch\n", "below": "1\n-1\n", "empty": "\n", "three": "a 1 2\n"}
    files |= {"two": "a 1\na 2\n", "some": "a 1\nb\n", "nosize": "a 1\nb x\n", "mixed": "a 1\nb 2\n"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    done = run("advise", *words)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert done.stderr.startswith(f"headstart: {text}"), done.stderr


@pytest.mark.parametrize(
    ("reads", "more", "text"),
    [
        ([], {}, "order: no sequence of whole numbers; allowed: "),
        ([0.5, 1.0], {}, "order: no sequence of whole numbers; allowed: "),
        ([[0], []], {}, "order: no sequence of whole numbers; allowed: "),
        (7, {}, "order: no sequence of whole numbers; allowed: "),
        ([[0, 1], [1, 0]], {"epochs": 3}, "epochs: 3, and the order has 2; allowed: leave it out"),
        ([0, 5], {"sizes": [1, 2]}, "sizes: 2, and the order has item 5; allowed: a size for each item"),
        ([0, 1], {"sizes": [1, 0]}, "sizes: from 0 to 1 bytes; allowed: 1 to "),
        ([0, 1], {"sizes": [1.5, 2.5]}, "sizes: 2 of type float64 for 2 items; allowed: "),
        ([0, 1], {"weights": [1, 2]}, "weights: does not apply to an order of your own; allowed: "),
        ([0, 1], {"cache": []}, "cache: no size; allowed: at least one"),
        ("weighted:1", {"items": 2, "weights": [1, 2]}, 'weights: given beside "weighted:1"; allowed: one of the two'),
    ],
)
def test_mistakes_of_a_caller_are_one_line(reads: Any, more: dict[str, Any], text: str) -> None:
    with pytest.raises(HeadstartError) as raised:
        headstart.advise_order(reads, **more)
    assert str(raised.value).startswith(text)


def test_without_numpy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    with pytest.raises(
        HeadstartError, match=r"order: numpy is not installed; allowed: pip install 'headstart\[numpy\]'"
    ):
        headstart.advise_order("shuffled", items=10)

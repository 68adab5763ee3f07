"""What three caches miss of a known order, by position.

LRU takes one pass for all sizes (stack distances: Mattson et al., 1970), O(n log n) in numpy. Next use takes a pass a
size, O(n log n) with a heap, and most of the time.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headstart.advice.known import KnownOrder, numpy

if TYPE_CHECKING:
    from headstart.advice.known import Ints

POLICIES = ("lru", "never-evict", "next-use")


def count_all(
    known: KnownOrder, nodes: int, weights: "Ints", capacities: Sequence[int], tell: Callable[[float], object]
) -> dict[tuple[int, str], dict[str, Any]]:
    """Return the shares of each policy at each size, over all nodes."""
    np = numpy()
    sums: dict[tuple[int, str], Any] = {
        (capacity, policy): np.zeros(4) for capacity in capacities for policy in POLICIES
    }
    whole_sums = np.zeros(4)
    # LRU takes about as long as next use at two sizes.
    steps, done = nodes * (len(capacities) + 2), 0
    for node in range(nodes):
        epochs = [epoch[node::nodes].ravel() for epoch in known.epochs]
        reads, steady = np.concatenate(epochs), len(epochs[0])
        bytes_read = weights[reads]
        before, after = uses_around(reads)
        whole_sums += sums_of(bytes_read, steady)
        for capacity, missed in zip(capacities, lru(before, after, bytes_read, capacities), strict=True):
            sums[capacity, "lru"] += sums_of(missed, steady)
        done += 2
        for capacity in capacities:
            tell(done / steps)
            sums[capacity, "never-evict"] += sums_of(never_evict(reads, before, bytes_read, capacity), steady)
            sums[capacity, "next-use"] += sums_of(next_use(after, bytes_read, capacity), steady)
            done += 1
    names = ("read_share", "byte_share", "steady_read_share", "steady_byte_share")
    only = len(known.epochs) == 1
    return {
        at: {
            name: None if only and name.startswith("steady") else float(part / of)
            for name, part, of in zip(names, found, np.maximum(whole_sums, 1), strict=True)
        }
        for at, found in sums.items()
    }


def sums_of(missed: "Ints", steady: int) -> Any:
    """Return the reads and the bytes that miss, of all and from position `steady` on."""
    np = numpy()
    return np.array([f(part) for part in (missed, missed[steady:]) for f in (np.count_nonzero, np.sum)], dtype=float)


def uses_around(reads: "Ints") -> tuple["Ints", "Ints"]:
    """Return the positions of each read's previous and next read of its item; -1 and the number of reads for none."""
    np = numpy()
    order = np.argsort(reads, kind="stable")
    same = reads[order[1:]] == reads[order[:-1]]
    before, after = np.full(len(reads), -1), np.full(len(reads), len(reads))
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    return before, after


def lru(before: "Ints", after: "Ints", sizes: "Ints", capacities: Sequence[int]) -> list["Ints"]:
    """Return, for each size, the bytes of each read that miss in an LRU cache.

    An item that is larger than the cache is not kept. An item is found if it and the distinct items read since its
    last read fit. Those are all reads since, without those that are followed by another read of their item since.
    """
    np = numpy()
    distances: dict[int, Any] = {}
    found = []
    for capacity in capacities:
        fits = sizes <= capacity
        kept = int(np.count_nonzero(fits))
        if kept not in distances:
            held = np.where(fits, sizes, 0)
            total = np.concatenate(([0], np.cumsum(held)))
            again = np.flatnonzero(before >= 0)
            distance = np.full(len(sizes), np.iinfo(np.int64).max)
            # The item itself is in the sum, at its last read.
            distance[again] = total[again] - total[before[again]] - _nested(before[again], held[again])
            distances[kept] = distance
        found.append(np.where(fits & (distances[kept] <= capacity), 0, sizes))
    return found


def _nested(starts: "Ints", weights: "Ints") -> "Ints":
    """Return, for each interval in order of its end, the sum of the weights of the intervals within it.

    These are the earlier ones that start later: inversions, counted as merge sort does, block by block of halves.
    """
    np = numpy()
    count = len(starts)
    bits = max(count - 1, 0).bit_length()
    weights = np.concatenate((weights, np.zeros((1 << bits) - count, dtype=np.int64)))
    found = np.zeros(1 << bits, dtype=np.int64)
    # Ends (numbers of intervals) in order of their starts; within each row, those of one block of ends.
    ends = np.concatenate((np.argsort(starts), np.arange(count, 1 << bits)))
    for bit in reversed(range(bits)):
        ends = ends.reshape(-1, 2 << bit)
        late = (ends >> bit & 1).astype(bool)
        early_weights = np.where(late, 0, weights[ends])
        sums = np.cumsum(early_weights, axis=1)
        found[ends[late]] += (sums[:, -1:] - sums)[late]
        ends = np.concatenate((ends[~late].reshape(-1, 1 << bit), ends[late].reshape(-1, 1 << bit)), axis=1)
    return found[:count]  # type: ignore[no-any-return]


def never_evict(reads: "Ints", before: "Ints", sizes: "Ints", capacity: int) -> "Ints":
    """Return the bytes of each read that miss in a cache that keeps each item that still fits at its first read."""
    np = numpy()
    first = np.flatnonzero(before < 0)
    kept, free = [], capacity
    for size in sizes[first].tolist():
        fits = size <= free
        free -= size if fits else 0
        kept.append(fits)
    is_kept = np.zeros(int(reads.max()) + 1, dtype=bool)
    is_kept[reads[first]] = kept
    return np.where(is_kept[reads] & (before >= 0), 0, sizes)  # type: ignore[no-any-return]


def next_use(after: "Ints", sizes: "Ints", capacity: int) -> "Ints":
    """Return the bytes of each read that miss in a cache that keeps the bytes whose next read is soonest."""
    np = numpy()
    never = len(after)
    first = np.ones(never + 1, dtype=bool)
    first[after] = False
    if int(sizes[first[:never]].sum()) <= capacity:
        return np.where(first[:never], sizes, 0)  # type: ignore[no-any-return]
    # By position of the next read: bytes kept for it. The heap has these positions, the farthest first; positions that
    # have passed remain in it, below all others.
    kept = [0] * (never + 1)
    heap: list[int] = []
    free = capacity
    for position, (following, size) in enumerate(zip(after.tolist(), sizes.tolist(), strict=True)):
        free += kept[position]
        if following == never:
            continue
        kept[following] = size
        if size <= free:
            free -= size
            heapq.heappush(heap, -following)
            continue
        over, free = size - free, 0
        farthest = -heapq.heappushpop(heap, -following)
        held = kept[farthest]
        while held < over:
            over -= held
            kept[farthest] = 0
            farthest = -heapq.heappop(heap)
            held = kept[farthest]
        kept[farthest] = held - over
        if held > over:
            heapq.heappush(heap, -farthest)
    return sizes - np.array(kept[:never], dtype=np.int64)  # type: ignore[no-any-return]

"""Policies of one's own: docs/python-policies.md explains them.

headstart compare examples/traces/cscope2.csv.xz --policies examples/own_policies.py:Ahead,examples/own_policies.py:Lru
"""

from collections import OrderedDict
from collections.abc import Iterator

import headstart
from headstart import Cache, Hints, Request


class Lru(headstart.Replacement):
    """Evict the block whose last reference is oldest: `lru` in Python."""

    def __init__(self) -> None:
        self.recency = OrderedDict[int, None]()

    def inserted(self, block: int) -> None:
        self.recency[block] = None

    def referenced(self, block: int, hit: bool) -> None:
        self.recency.move_to_end(block)

    def candidates(self, incoming: int) -> Iterator[int]:
        return iter(self.recency)

    def forget(self, block: int, evicted: bool) -> None:
        del self.recency[block]


class Tagged(headstart.Readahead):
    """Prefetch the next block on a miss, and at the first reference to a prefetched block: `obl` in Python."""

    def requested(self, request: Request) -> Iterator[int]:
        if request.found[-1] not in ("ready", "unready"):
            yield request.end


class Ahead(headstart.Readahead):
    """Prefetch as many blocks after each request: `ra` in Python."""

    def __init__(self, depth: int = 4) -> None:
        self.depth = depth

    def requested(self, request: Request) -> range:
        return range(request.end, request.end + self.depth)


class Streams(headstart.Readahead, Lru):
    """Prefetch behind requests that go on where another one has ended, and evict what was read once first."""

    def __init__(self, depth: int = 8) -> None:
        super().__init__()
        self.depth = depth
        self.ends = OrderedDict[tuple[int, int], bool]()

    def requested(self, request: Request) -> range | None:
        goes_on = self.ends.pop((request.file, request.first), False)
        self.ends[request.file, request.end] = True
        if len(self.ends) > 100:
            self.ends.popitem(last=False)
        return range(request.end, request.end + self.depth) if goes_on else None


class Belady(headstart.Policy):
    """Fetch on demand, and evict the block that is referenced last: `demand:min` in Python."""

    def hinted(self, hints: Hints) -> None:
        self.hints = hints

    def victim(self, block: int, cache: Cache) -> int | None:
        def next_use(other: int) -> int:
            position = self.hints.next_use(other)
            return len(self.hints) if position is None else position

        return max(cache.evictable(), key=next_use, default=None)


class Horizon(headstart.Policy):
    """Fetch each block as many references before it is read, in place of the block that is read last."""

    def __init__(self, horizon: int = 62) -> None:
        self.horizon = horizon

    def hinted(self, hints: Hints) -> None:
        self.hints = hints

    def next_use(self, block: int) -> int:
        position = self.hints.next_use(block)
        return len(self.hints) if position is None else position

    def decide(self, cache: Cache) -> Iterator[tuple[int, int | None]]:
        free, chosen = cache.free, set[int]()
        evictable: list[int] | None = None
        for position in range(cache.cursor, min(cache.cursor + self.horizon, len(self.hints))):
            block = self.hints[position]
            if block is None or block in chosen or not cache.is_absent(block):
                continue
            if free > 0:
                free -= 1
                yield block, None
            else:
                if evictable is None:
                    evictable = sorted(cache.evictable(), key=self.next_use)
                if not evictable or self.next_use(evictable[-1]) <= position:
                    return
                yield block, evictable.pop()
            chosen.add(block)

    def victim(self, block: int, cache: Cache) -> int | None:
        return max(cache.evictable(), key=self.next_use, default=None)

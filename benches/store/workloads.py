"""Six workloads: each an order of ranges of objects, in steps, with a time of computing after each step.

All have steps of about 2 MiB and compute 0.125 s on each, so that each needs 16 MiB a second. The first 64 steps fill
the caches, the next 128 are what the verdict is about. Orders go on after the last step that runs, as they do in a
training of many epochs: a cache that knows the order must not gain from its end.
"""

from __future__ import annotations

import heapq
import json
import random
from dataclasses import dataclass
from pathlib import Path

COMPUTE_S = 0.125
NEED_BYTES_PER_S = 16 << 20
COLD_STEPS, RUN_STEPS = 64, 192
ITEMS_A_STEP = 16
IMAGES, NODES = 1024, 4
"""Images of a node; four nodes share four times as many."""
WEIGHT_SIGMA = 0.7
WINDOW = 4
NEVER = 1 << 60


@dataclass(frozen=True)
class Item:
    """A range of an object, and what its bytes must be."""

    key: str
    offset: int
    length: int
    crc: int


@dataclass(frozen=True)
class Workload:
    """What is read, in which order."""

    name: str
    kind: str
    """Which part of the data: images, groups, windows or query."""
    items: list[Item]
    steps: list[list[int]]
    """Numbers of items, all steps that are disclosed."""
    epoch_steps: int
    cache_share: float
    share_bytes: int
    """The bytes that a node reads in an epoch, each once: what the cache's share is of."""

    @property
    def cache_bytes(self) -> int:
        """How much a cache may keep."""
        return int(self.cache_share * self.share_bytes)

    def epochs(self) -> list[range]:
        """Return the steps that run, by epoch."""
        return [
            range(first, min(first + self.epoch_steps, RUN_STEPS)) for first in range(0, RUN_STEPS, self.epoch_steps)
        ]


def batched(order: list[int], count: int) -> list[list[int]]:
    """Divide an order into full steps."""
    return [order[first : first + count] for first in range(0, len(order) - count + 1, count)]


def shuffled(count: int, seed: int) -> list[int]:
    """Return a permutation."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def load(folder: Path) -> dict[str, Workload]:
    """Return the workloads by name, for the data that `data.py` has put into the store."""
    told = json.loads((folder / "manifest.json").read_text())
    items = {kind: [Item(*row) for row in rows] for kind, rows in told.items()}
    images, groups, chunks, columns = items["images"], items["groups"], items["windows"], items["query"]
    own = images[:IMAGES]
    own_bytes = total(own)
    seeds = range(100, 105)
    one = [step for seed in seeds for step in batched(shuffled(IMAGES, seed), ITEMS_A_STEP)]
    # As DistributedSampler does: one permutation for all nodes, of which a node takes every fourth.
    four = [step for seed in seeds for step in batched(shuffled(NODES * IMAGES, seed)[::NODES], ITEMS_A_STEP)]
    weigh = random.Random(7)
    weights = [weigh.lognormvariate(0, WEIGHT_SIGMA) for _ in own]
    drawn = random.Random(8).choices(range(IMAGES), weights, k=len(seeds) * IMAGES)
    samples = [sample // 50 for sample in shuffled(50 * len(groups), 9)]
    starts = [start for seed in (11, 12) for start in shuffled(len(chunks) - WINDOW + 1, seed)]
    windows = [chunk for start in starts for chunk in range(start, start + WINDOW)]
    scan = batched(list(range(len(columns))), 3)
    epoch = IMAGES // ITEMS_A_STEP
    whole = NEVER
    return {
        workload.name: workload
        for workload in (
            Workload("images-1", "images", own, one, epoch, 0.3, own_bytes),
            Workload("images-4", "images", images, four, epoch, 0.5, total(images) // NODES),
            Workload("weighted", "images", own, batched(drawn, ITEMS_A_STEP), epoch, 0.3, own_bytes),
            Workload("groups", "groups", groups, batched(samples, ITEMS_A_STEP), whole, 0.3, total(groups)),
            Workload("windows", "windows", chunks, batched(windows, ITEMS_A_STEP), whole, 0.3, total(chunks)),
            Workload("query", "query", columns, scan * 5, len(scan), 0.3, total(columns)),
        )
    }


def total(items: list[Item]) -> int:
    """Sum the bytes."""
    return sum(item.length for item in items)


def next_uses(steps: list[list[int]]) -> list[list[int]]:
    """Return, beside each use of an item, the number of its next use; uses are numbered through all steps."""
    last: dict[int, int] = {}
    number = sum(map(len, steps))
    found: list[list[int]] = []
    for step in reversed(steps):
        row = []
        for item in reversed(step):
            number -= 1
            row.append(last.get(item, NEVER))
            last[item] = number
        found.append(row[::-1])
    return found[::-1]


def optimum(workload: Workload) -> int:
    """Return the least bytes that the steps that run can fetch with a cache of that size.

    A cache that may keep parts of items and may keep none, and evicts the bytes whose next use is farthest, fetches
    the least (Belady; each byte is a page of its own). Its order is the whole one, its bytes those until the last step.
    """
    kept: dict[int, tuple[int, int]] = {}
    heap: list[tuple[int, int]] = []
    used = fetched = 0
    for step, uses in zip(workload.steps[:RUN_STEPS], next_uses(workload.steps), strict=False):
        for item, use in zip(step, uses, strict=True):
            length = workload.items[item].length
            had = kept.pop(item, (0, 0))[1]
            fetched += length - had
            used += length - had
            kept[item] = (use, length)
            heapq.heappush(heap, (-use, item))
            while used > workload.cache_bytes:
                far, victim = heap[0]
                if victim not in kept or kept[victim][0] != -far:
                    heapq.heappop(heap)
                    continue
                gone = min(kept[victim][1], used - workload.cache_bytes)
                used -= gone
                if gone == kept[victim][1]:
                    del kept[victim]
                    heapq.heappop(heap)
                else:
                    kept[victim] = (-far, kept[victim][1] - gone)
    return fetched

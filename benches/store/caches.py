"""The prototype: a store that knows the order, and beside it the caches that users would write.

`Store` reads ahead in the disclosed order, across epochs, with many requests at a time and the earliest use first. What
was used stays in the cache if its next use comes before the farthest one that the cache holds, which then leaves
(Belady's rule; nothing is kept whose next use is too far). `PooledCache` reads the next steps of an epoch with a pool
of threads, as a DataLoader with workers does, and begins anew with each epoch; it never evicts, or evicts the least
recently used.

All fetch by the same client, with the same threads, at most as many steps ahead. What is fetched and not yet used is no
part of a cache's bytes, in any of them: it is bounded by the steps ahead.
"""

from __future__ import annotations

import heapq
import http.client
import random
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from rig import BUCKET
from workloads import NEVER, Item, Workload, next_uses

STEPS_AHEAD = 16
"""Eight workers with a prefetch factor of two, as in a DataLoader."""
THREADS = 64
"""Requests at a time. Need times latency is 16 requests at 0.12 s; what is slow to answer must not use them up."""
TRIES = 8
BACKOFF_S = 0.05


class Client:
    """Reads ranges, with one connection for each thread; repeats what fails."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.own = threading.local()
        self.retries = 0
        self.ranges = True
        """Whether a range is requested as such; without, all ranges must be whole objects."""

    def get(self, item: Item) -> bytes:
        """Read a range."""
        for attempt in range(TRIES):
            try:
                status, body = self.request(item)
                if status in (200, 206) and len(body) == item.length:
                    return body
                if status not in (200, 206, 500, 502, 503, 504):
                    raise SystemExit(f"{item.key}: the store answers {status}")
            except (OSError, http.client.HTTPException):
                self.own.connection = None
            self.retries += 1
            time.sleep(BACKOFF_S * 2**attempt * random.random())
        raise SystemExit(f"{item.key}: the store failed {TRIES} times")

    def request(self, item: Item) -> tuple[int, bytes]:
        """Send one request."""
        connection = getattr(self.own, "connection", None)
        if connection is None:
            connection = self.own.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        asked = {"Range": f"bytes={item.offset}-{item.offset + item.length - 1}"} if self.ranges else {}
        connection.request("GET", f"/{BUCKET}/{item.key}", headers=asked)
        answer = connection.getresponse()
        return answer.status, answer.read()


class PooledCache:
    """A pool of threads that reads the next steps of an epoch, over a cache that knows no order."""

    def __init__(self, workload: Workload, port: int, *, evicts: bool, cache_bytes: int, crosses: bool = False) -> None:
        self.workload, self.client, self.evicts, self.cache_bytes = workload, Client(port), evicts, cache_bytes
        self.crosses = crosses
        self.pool = ThreadPoolExecutor(THREADS)
        self.kept: OrderedDict[int, bytes] = OrderedDict()
        self.kept_bytes = 0
        self.flying: dict[int, Future[bytes]] = {}
        self.lock = threading.Lock()
        self.ahead: deque[tuple[int, list[Future[bytes]]]] = deque()

    def submit(self, item: int) -> Future[bytes]:
        """Take an item from the cache, wait for whoever reads it, or read it."""
        with self.lock:
            if item in self.kept:
                self.kept.move_to_end(item)
                done: Future[bytes] = Future()
                done.set_result(self.kept[item])
                return done
            if item not in self.flying:
                self.flying[item] = self.pool.submit(self.fetch, item)
            return self.flying[item]

    def fetch(self, item: int) -> bytes:
        """Read an item and keep it, if the cache may."""
        body = self.client.get(self.workload.items[item])
        with self.lock:
            self.kept[item] = body
            self.kept_bytes += len(body)
            while self.kept_bytes > self.cache_bytes:
                gone = self.kept.popitem(last=not self.evicts)[1]
                self.kept_bytes -= len(gone)
            del self.flying[item]
        return body

    def epoch(self, _number: int, steps: range) -> Iterator[tuple[float, list[bytes]]]:
        """Give the steps of an epoch."""
        end = len(self.workload.steps) if self.crosses else steps.stop
        begun = self.ahead[-1][0] + 1 if self.ahead else steps.start
        for step in steps:
            while begun < min(step + STEPS_AHEAD, end):
                self.ahead.append((begun, [self.submit(item) for item in self.workload.steps[begun]]))
                begun += 1
            yield 1.0, [future.result() for future in self.ahead.popleft()[1]]


class Store:
    """A cache whose readers have disclosed their order."""

    def __init__(self, workload: Workload, port: int, cache_bytes: int) -> None:
        self.items, self.steps, self.uses = workload.items, workload.steps, next_uses(workload.steps)
        self.first_use = [0]
        for step in self.steps:
            self.first_use.append(self.first_use[-1] + len(step))
        self.client, self.cache_bytes = Client(port), cache_bytes
        lock = threading.Lock()
        self.arrived, self.demanded = threading.Condition(lock), threading.Condition(lock)
        self.ready: dict[int, bytes] = {}
        """Fetched and not yet used."""
        self.kept: dict[int, tuple[int, bytes]] = {}
        """Used, with the next use."""
        self.farthest: list[tuple[int, int]] = []
        self.kept_bytes = 0
        self.wanted: list[tuple[int, int]] = []
        """Use and item, earliest first."""
        self.under_way: set[int] = set()
        """Wanted or being read."""
        self.begun = 0
        for _ in range(THREADS):
            threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        """Read what is wanted, until the process ends."""
        while True:
            with self.demanded:
                while not self.wanted:
                    self.demanded.wait()
                item = heapq.heappop(self.wanted)[1]
            body = self.client.get(self.items[item])
            with self.arrived:
                self.under_way.discard(item)
                self.ready[item] = body
                self.arrived.notify()

    def want(self, use: int, item: int) -> None:
        """Have an item read unless it is here or on its way."""
        if item not in self.kept and item not in self.ready and item not in self.under_way:
            self.under_way.add(item)
            heapq.heappush(self.wanted, (use, item))
            self.demanded.notify()

    def begin(self, step: int) -> None:
        """Want all items of the steps until STEPS_AHEAD after this one."""
        while self.begun < min(step + STEPS_AHEAD, len(self.steps)):
            for use, item in enumerate(self.steps[self.begun], self.first_use[self.begun]):
                self.want(use, item)
            self.begun += 1

    def use(self, item: int, next_use: int) -> bytes:
        """Give an item to the reader once it is here, and keep it if its next use is near enough."""
        while item not in self.kept and item not in self.ready:
            self.arrived.wait()
        if item in self.kept:
            body = self.kept[item][1]
        else:
            body = self.ready.pop(item)
            self.kept_bytes += len(body)
        self.kept[item] = next_use, body
        heapq.heappush(self.farthest, (-next_use, item))
        while self.kept_bytes > self.cache_bytes:
            self.evict()
        return body

    def evict(self) -> None:
        """Drop what is used last of all; have it read again if that is soon."""
        far, victim = heapq.heappop(self.farthest)
        if victim in self.kept and self.kept[victim][0] == -far:
            self.kept_bytes -= len(self.kept.pop(victim)[1])
            if -far < self.first_use[self.begun] and -far != NEVER:
                self.want(-far, victim)

    def epoch(self, _number: int, steps: range) -> Iterator[tuple[float, list[bytes]]]:
        """Give the steps of an epoch."""
        for step in steps:
            with self.arrived:
                self.begin(step)
                body = [self.use(item, use) for item, use in zip(self.steps[step], self.uses[step], strict=True)]
            yield 1.0, body

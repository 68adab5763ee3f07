"""All systems by name: how each is opened, and the workloads that it can express."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers_loaders
import peers_scans
from caches import STEPS_AHEAD, PooledCache, Store
from rig import BUCKET
from workloads import COMPUTE_S, NEED_BYTES_PER_S, Workload

IMAGES = ("images-1", "images-4", "weighted")
FILES = (*IMAGES, "windows")
RANGES = (*FILES, "groups")
ALL = (*RANGES, "query")
SHUFFLED = ("images-1", "images-4", "groups")


@dataclass(frozen=True)
class System:
    """A system that reads workloads."""

    open: Callable[[Workload, int, Path], Any]
    workloads: tuple[str, ...]
    group: str = "peer"
    """store; peer: counts for the verdict; converted: a peer whose order and files are its own; noted: outside it."""


def store(workload: Workload, port: int, _scratch: Path) -> Store:
    """Open the prototype."""
    return Store(workload, port, workload.cache_bytes)


class Headstart:
    """`headstart.store`, a daemon beside the reader. Its cache is the workload's, and the steps ahead."""

    def __init__(self, workload: Workload, port: int, scratch: Path) -> None:
        import headstart

        os.environ.update(AWS_ENDPOINT=f"http://127.0.0.1:{port}", AWS_ALLOW_HTTP="true")
        self.steps = [
            [(each.key, each.offset, each.offset + each.length) for each in (workload.items[item] for item in step)]
            for step in workload.steps
        ]
        cache_bytes = workload.cache_bytes + int(STEPS_AHEAD * COMPUTE_S * NEED_BYTES_PER_S)
        socket = scratch / "store.sock"
        self.store = headstart.store(f"s3://{BUCKET}/", cache=f"{cache_bytes}B", socket=socket)
        self.order = self.store.disclose(entry for step in self.steps for entry in step)

    def epoch(self, _number: int, steps: range) -> Iterator[tuple[float, list[Any]]]:
        """Give the steps of an epoch."""
        for step in steps:
            yield 1.0, self.store.read_many(self.steps[step])

    def report(self) -> dict[str, Any]:
        """Return the store's own counts."""
        return self.store.report().to_dict()


def pooled(*, evicts: bool = False, crosses: bool = False) -> Callable[[Workload, int, Path], Any]:
    """Return how to open a pool of threads over a cache."""

    def opened(workload: Workload, port: int, _scratch: Path) -> PooledCache:
        return PooledCache(workload, port, evicts=evicts, cache_bytes=workload.cache_bytes, crosses=crosses)

    return opened


SYSTEMS = {
    "headstart": System(Headstart, ALL, "store"),
    "prototype": System(store, ALL, "noted"),
    "never-evict": System(pooled(), ALL),
    "lru": System(pooled(evicts=True), ALL),
    "never-evict-across": System(pooled(crosses=True), ALL, "noted"),
    "s3fs": System(peers_loaders.s3fs, RANGES),
    "fsspec-filecache": System(peers_loaders.filecache, FILES, "noted"),
    "s3torchconnector": System(peers_loaders.s3torchconnector, RANGES),
    "litdata": System(peers_loaders.litdata, SHUFFLED, "converted"),
    "mosaicml": System(peers_loaders.mosaicml, SHUFFLED, "converted"),
    "webdataset": System(peers_loaders.webdataset, SHUFFLED, "converted"),
    "zarr": System(peers_scans.zarr, ("windows",)),
    "pyarrow": System(peers_scans.pyarrow, ("groups", "query")),
    "polars": System(peers_scans.polars, ("query",)),
    "duckdb": System(peers_scans.duckdb, ("query",)),
    "duckdb-nginx": System(peers_scans.duckdb_nginx, ("query",), "noted"),
    "nginx": System(peers_scans.nginx, ALL, "noted"),
}

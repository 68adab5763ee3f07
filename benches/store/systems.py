"""All systems by name: how each is opened, and the workloads that it can express."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers_loaders
import peers_scans
from caches import PooledCache, Store
from workloads import Workload

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


def pooled(*, evicts: bool = False, crosses: bool = False) -> Callable[[Workload, int, Path], Any]:
    """Return how to open a pool of threads over a cache."""

    def opened(workload: Workload, port: int, _scratch: Path) -> PooledCache:
        return PooledCache(workload, port, evicts=evicts, cache_bytes=workload.cache_bytes, crosses=crosses)

    return opened


SYSTEMS = {
    "store": System(store, ALL, "store"),
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

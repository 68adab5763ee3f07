"""Peers that feed a torch DataLoader: s3fs, s3torchconnector, LitData, mosaicml-streaming and WebDataset.

The first two read the ranges of the workload, in its order: the loader's batches are the workload's steps. The others
read data that `convert.py` has converted, in an order of their own that is shuffled anew each epoch. All keep 16
batches ready: eight workers with two each, or four with four.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rig import BUCKET, KEYS
from workloads import IMAGES, ITEMS_A_STEP, NODES, Item, Workload

WORKERS, PREFETCH = 8, 2
MOSAIC_WORKERS = 4
"""Each worker of mosaicml-streaming has shards of its own in the one cache: with more, they evict each other's."""
SHARD_SAMPLES = {"images-1": 16, "images-4": 16, "groups": 800}
"""2 MiB: small shards keep a shuffle good within a small cache, and let eight workers start at once."""
Batch = tuple[float, list[Any] | None]


def endpoint(port: int) -> str:
    """Return the address of the slow store."""
    return f"http://127.0.0.1:{port}"


def identity(batch: Any) -> Any:
    """Leave a batch as it is: a sample is the bytes of its range."""
    return batch


class Loader:
    """A DataLoader over a map-style data set whose batches are the steps of the workload."""

    def __init__(self, workload: Workload, dataset: Any) -> None:
        data = importlib.import_module("torch.utils.data")
        self.workload = workload
        self.now = range(0)
        self.loader = data.DataLoader(
            dataset,
            batch_sampler=self,
            num_workers=WORKERS,
            prefetch_factor=PREFETCH,
            persistent_workers=True,
            collate_fn=identity,
        )

    def __iter__(self) -> Iterator[list[int]]:
        """Give the batches of the epoch that runs."""
        return iter([self.workload.steps[step] for step in self.now])

    def __len__(self) -> int:
        """Count the batches of an epoch."""
        return len(self.now)

    def epoch(self, _number: int, steps: range) -> Iterator[Batch]:
        """Give the steps of an epoch."""
        self.now = steps
        for bodies in self.loader:
            yield 1.0, bodies


class RangesOfS3fs:
    """A map-style data set: s3fs reads the ranges of a batch at the same time."""

    def __init__(self, items: Sequence[Item], port: int) -> None:
        self.items, self.port = items, port
        self.fs: Any = None

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.items)

    def __getitems__(self, batch: list[int]) -> list[bytes]:
        """Read a batch."""
        if self.fs is None:
            self.fs = importlib.import_module("s3fs").S3FileSystem(
                anon=True,
                client_kwargs={"endpoint_url": endpoint(self.port)},
                config_kwargs={"max_pool_connections": 64},
                skip_instance_cache=True,
            )
        items = [self.items[number] for number in batch]
        paths = [f"{BUCKET}/{item.key}" for item in items]
        starts = [item.offset for item in items]
        ends = [item.offset + item.length for item in items]
        bodies: list[bytes] = self.fs.cat_ranges(paths, starts, ends)
        return bodies


def s3fs(workload: Workload, port: int, _scratch: Path) -> Loader:
    """Open s3fs."""
    importlib.import_module("s3fs")
    return Loader(workload, RangesOfS3fs(workload.items, port))


class FilesOfFsspec(RangesOfS3fs):
    """The same over fsspec's `filecache`: whole files on disk, which have no bound."""

    def __init__(self, items: Sequence[Item], port: int, folder: Path) -> None:
        super().__init__(items, port)
        self.folder = folder

    def __getitems__(self, batch: list[int]) -> list[bytes]:
        """Read a batch."""
        if self.fs is None:
            self.fs = importlib.import_module("fsspec").filesystem(
                "filecache",
                target_protocol="s3",
                target_options={"anon": True, "client_kwargs": {"endpoint_url": endpoint(self.port)}},
                cache_storage=str(self.folder),
                check_files=False,
                skip_instance_cache=True,
            )
        keys = [f"{BUCKET}/{self.items[number].key}" for number in batch]
        found = self.fs.cat(list(set(keys)))
        return [found[key] if isinstance(found, dict) else found for key in keys]


def filecache(workload: Workload, port: int, scratch: Path) -> Loader:
    """Open fsspec's cache of whole files. All workers have one folder."""
    importlib.import_module("s3fs")
    return Loader(workload, FilesOfFsspec(workload.items, port, scratch / "filecache"))


class RangesOfConnector:
    """A map-style data set: s3torchconnector's client, with a thread for each range of a batch."""

    def __init__(self, items: Sequence[Item], port: int) -> None:
        self.items, self.port = items, port
        self.client: Any = None

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.items)

    def __getitems__(self, batch: list[int]) -> list[bytes]:
        """Read a batch."""
        if self.client is None:
            client = importlib.import_module("s3torchconnector._s3client")
            self.client = client.S3Client(
                KEYS["AWS_REGION"],
                endpoint=endpoint(self.port),
                s3client_config=client.S3ClientConfig(unsigned=True, force_path_style=True),
            )
            self.pool = ThreadPoolExecutor(ITEMS_A_STEP)
        return list(self.pool.map(self.get, batch))

    def get(self, number: int) -> bytes:
        """Read a range by one GET."""
        item = self.items[number]
        stream = self.client._get_object_stream(BUCKET, item.key, item.offset, item.offset + item.length)
        return b"".join(stream)


def s3torchconnector(workload: Workload, port: int, _scratch: Path) -> Loader:
    """Open s3torchconnector."""
    importlib.import_module("s3torchconnector._s3client")
    return Loader(workload, RangesOfConnector(workload.items, port))


def of_litdata() -> Any:
    """Import LitData, and let it talk to a server without TLS, for which it has no option."""
    downloader: Any = importlib.import_module("litdata.streaming.downloader")
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"
    return importlib.import_module("litdata")


class Converted:
    """A loader over converted data, in an order of its own."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def epoch(self, _number: int, _steps: range) -> Iterator[Batch]:
        """Give the batches of an epoch."""
        for _ in self.loader:
            yield 1.0, None


def as_first_of_nodes(workload: Workload) -> None:
    """Make this process the first of as many nodes as the workload has."""
    if workload.name == "images-4":
        os.environ.update(RANK="0", GLOBAL_RANK="0", WORLD_SIZE=str(NODES), NNODES=str(NODES))
        os.environ.update(LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")


def mosaicml(workload: Workload, port: int, scratch: Path) -> Converted:
    """Open mosaicml-streaming: shards in a cache with a limit, a shuffle within blocks that the cache can hold."""
    data, streaming = importlib.import_module("torch.utils.data"), importlib.import_module("streaming")
    as_first_of_nodes(workload)
    os.environ["S3_ENDPOINT_URL"] = endpoint(port)
    # The nodes share nothing but the seed: without the others, this one must not wait for them.
    base: Any = importlib.import_module("streaming.base.dataset")
    base.maybe_init_dist = lambda: False
    shard = SHARD_SAMPLES[workload.name]
    sample_bytes = (2 << 20) // shard
    dataset = streaming.StreamingDataset(
        remote=f"s3://{BUCKET}/mds/{workload.name}",
        local=str(scratch / "mds"),
        shuffle=True,
        shuffle_algo="py1e",
        shuffle_block_size=workload.cache_bytes // sample_bytes // 2 // MOSAIC_WORKERS,
        cache_limit=workload.cache_bytes,
        predownload=2 * max(shard, ITEMS_A_STEP),
        num_canonical_nodes=NODES if workload.name == "images-4" else 1,
        batch_size=ITEMS_A_STEP,
    )
    return Converted(
        data.DataLoader(
            dataset,
            batch_size=ITEMS_A_STEP,
            num_workers=MOSAIC_WORKERS,
            prefetch_factor=PREFETCH * WORKERS // MOSAIC_WORKERS,
            persistent_workers=True,
            collate_fn=identity,
        )
    )


def litdata(workload: Workload, port: int, scratch: Path) -> Converted:
    """Open LitData: chunks in a cache with a limit, shuffled among and within them."""
    module = of_litdata()
    as_first_of_nodes(workload)
    dataset = module.StreamingDataset(
        f"s3://{BUCKET}/litdata/{workload.name}",
        cache_dir=str(scratch / "litdata"),
        shuffle=True,
        drop_last=True,
        max_cache_size=workload.cache_bytes,
        max_pre_download=4,
        storage_options={"endpoint_url": endpoint(port)},
    )
    return Converted(
        module.StreamingDataLoader(
            dataset,
            batch_size=ITEMS_A_STEP,
            num_workers=WORKERS,
            prefetch_factor=PREFETCH,
            persistent_workers=True,
            collate_fn=identity,
        )
    )


def webdataset(workload: Workload, port: int, _scratch: Path) -> Converted:
    """Open WebDataset: tar files in a new order each epoch, and a shuffle within a buffer of the cache's size."""
    wds, data = importlib.import_module("webdataset"), importlib.import_module("torch.utils.data")
    as_first_of_nodes(workload)
    shards = {"images-1": IMAGES // 16, "images-4": NODES * IMAGES // 16, "groups": 64}[workload.name]
    urls = [f"pipe:curl -sf {endpoint(port)}/{BUCKET}/wds/{workload.name}/{number:05}.tar" for number in range(shards)]
    samples = workload.cache_bytes // ((2 << 20) // SHARD_SAMPLES[workload.name])
    dataset = wds.DataPipeline(
        wds.SimpleShardList(urls),
        wds.detshuffle(len(urls)),
        wds.split_by_node,
        wds.split_by_worker,
        wds.tarfile_to_samples(),
        wds.shuffle(samples // WORKERS),
    )
    return Converted(
        data.DataLoader(
            dataset,
            batch_size=ITEMS_A_STEP,
            num_workers=WORKERS,
            prefetch_factor=PREFETCH,
            persistent_workers=True,
            collate_fn=identity,
        )
    )

"""Peers that read arrays and tables: zarr-python, pyarrow, polars, DuckDB; and nginx as a cache before the store.

A scan gives its rows as they come; the reader computes for each as long as a share of a step. Each engine reads ahead
as it does by itself, with as many requests at a time as it has an option for.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from caches import STEPS_AHEAD, THREADS, PooledCache
from data import CHUNK_FLOATS, FILES, GROUP_ROWS, READ_COLUMNS, SCAN_ROWS
from peers_loaders import Batch, endpoint
from rig import BUCKET, KEYS, answers, free_port
from workloads import WINDOW, Workload

SLICE = "256k"


class Pooled:
    """A pool of threads that reads steps of an epoch ahead, each by one function."""

    def __init__(self, read: Callable[[ThreadPoolExecutor, int], list[Future[Any]]]) -> None:
        self.read, self.pool = read, ThreadPoolExecutor(THREADS)

    def epoch(self, _number: int, steps: range) -> Iterator[Batch]:
        """Give the steps of an epoch."""
        ahead: deque[list[Future[Any]]] = deque()
        begun = steps.start
        for step in steps:
            while begun < min(step + STEPS_AHEAD, steps.stop):
                ahead.append(self.read(self.pool, begun))
                begun += 1
            yield 1.0, [body for future in ahead.popleft() for body in future.result()]


def zarr(workload: Workload, port: int, _scratch: Path) -> Pooled:
    """Open the array by obstore, with zarr-python's cache of the least recently used chunks."""
    module, storage = importlib.import_module("zarr"), importlib.import_module("zarr.storage")
    cache = importlib.import_module("zarr.experimental.cache_store")
    s3 = importlib.import_module("obstore.store").S3Store(
        BUCKET,
        prefix="zarr",
        endpoint=endpoint(port),
        skip_signature=True,
        region=KEYS["AWS_REGION"],
        client_options={"allow_http": True},
    )
    store = cache.CacheStore(
        storage.ObjectStore(s3, read_only=True), cache_store=storage.MemoryStore(), max_size=workload.cache_bytes
    )
    array = module.open_array(store, mode="r")

    def window(start: int) -> list[bytes]:
        rows = array[start : start + WINDOW]
        assert rows.shape == (WINDOW, CHUNK_FLOATS)
        return [row.tobytes() for row in rows]

    def read(pool: ThreadPoolExecutor, step: int) -> list[Future[Any]]:
        return [pool.submit(window, chunk) for chunk in workload.steps[step][::WINDOW]]

    return Pooled(read)


def pyarrow(workload: Workload, port: int, _scratch: Path) -> Any:
    """Open the Parquet files by pyarrow's own S3."""
    arrow = importlib.import_module("pyarrow")
    fs = importlib.import_module("pyarrow.fs").S3FileSystem(
        anonymous=True, endpoint_override=endpoint(port), region=KEYS["AWS_REGION"]
    )
    arrow.set_io_thread_count(THREADS)
    if workload.kind == "query":
        return ScanOfArrow(importlib.import_module("pyarrow.dataset"), fs)
    parquet = importlib.import_module("pyarrow.parquet")
    places: dict[str, int] = {}
    groups = []
    for item in workload.items:
        groups.append((item.key, places.setdefault(item.key, 0)))
        places[item.key] += 1
    told = {key: parquet.read_metadata(f"{BUCKET}/{key}", filesystem=fs) for key in places}

    def group(item: int) -> list[None]:
        key, number = groups[item]
        file = parquet.ParquetFile(fs.open_input_file(f"{BUCKET}/{key}"), metadata=told[key], pre_buffer=True)
        assert file.read_row_group(number, use_threads=False).num_rows == GROUP_ROWS
        return [None]

    def read(pool: ThreadPoolExecutor, step: int) -> list[Future[Any]]:
        return [pool.submit(group, item) for item in workload.steps[step]]

    return Unchecked(Pooled(read))


class Unchecked:
    """Steps whose bodies are decoded, so that their bytes are not those of the ranges."""

    def __init__(self, inner: Pooled) -> None:
        self.inner = inner

    def epoch(self, number: int, steps: range) -> Iterator[Batch]:
        """Give the steps of an epoch."""
        for share, _ in self.inner.epoch(number, steps):
            yield share, None


class ScanOfArrow:
    """The query as a scan of a data set."""

    def __init__(self, module: Any, fs: Any) -> None:
        paths = [f"{BUCKET}/query/{number}.parquet" for number in range(FILES)]
        options = module.ParquetFragmentScanOptions(pre_buffer=True)
        self.options, self.dataset = options, module.dataset(paths, filesystem=fs, format="parquet")

    def epoch(self, _number: int, _steps: range) -> Iterator[Batch]:
        """Scan once."""
        batches = self.dataset.to_batches(
            columns=list(READ_COLUMNS),
            batch_size=SCAN_ROWS,
            batch_readahead=STEPS_AHEAD,
            fragment_readahead=FILES,
            fragment_scan_options=self.options,
        )
        for batch in batches:
            yield batch.num_rows / SCAN_ROWS, None


class ScanOfPolars:
    """The query by polars' streaming engine."""

    def __init__(self, port: int) -> None:
        os.environ.update(POLARS_ROW_GROUP_PREFETCH_SIZE=str(STEPS_AHEAD), POLARS_CONCURRENCY_BUDGET=str(THREADS))
        self.polars = importlib.import_module("polars")
        self.options = {
            "aws_endpoint_url": endpoint(port),
            "aws_skip_signature": "true",
            "aws_region": KEYS["AWS_REGION"],
            "aws_allow_http": "true",
        }

    def epoch(self, _number: int, _steps: range) -> Iterator[Batch]:
        """Scan once."""
        scan = self.polars.scan_parquet(f"s3://{BUCKET}/query/*.parquet", storage_options=self.options)
        for frame in scan.select(list(READ_COLUMNS)).collect_batches(chunk_size=SCAN_ROWS, engine="streaming"):
            yield frame.height / SCAN_ROWS, None


def polars(_workload: Workload, port: int, _scratch: Path) -> ScanOfPolars:
    """Open polars."""
    return ScanOfPolars(port)


class ScanOfDuckdb:
    """The query by DuckDB with httpfs, its caches of metadata and of ranges within the same bytes."""

    def __init__(self, workload: Workload, port: int) -> None:
        for name in KEYS:
            # DuckDB would sign with them in spite of the secret.
            os.environ.pop(name, None)
        duckdb: Any = importlib.import_module("duckdb")
        extension = next(Path(duckdb.__file__).parent.parent.glob("duckdb_ext/extensions/*/*/httpfs.duckdb_extension"))
        self.connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        limit = workload.cache_bytes + WORKING_BYTES
        for statement in (
            f"LOAD '{extension}'",
            f"CREATE SECRET (TYPE s3, ENDPOINT '127.0.0.1:{port}', USE_SSL false, URL_STYLE 'path', KEY_ID '')",
            f"SET threads = {STEPS_AHEAD}",
            f"SET memory_limit = '{limit >> 20}MiB'",
            "SET enable_external_file_cache = true",
            "SET enable_http_metadata_cache = true",
            "SET parquet_metadata_cache = true",
            "SET preserve_insertion_order = false",
        ):
            self.connection.execute(statement)

    def epoch(self, _number: int, _steps: range) -> Iterator[Batch]:
        """Run the query once."""
        columns = ", ".join(READ_COLUMNS)
        files = ", ".join(f"'s3://{BUCKET}/query/{number}.parquet'" for number in range(FILES))
        query = self.connection.execute(f"SELECT {columns} FROM read_parquet([{files}])")
        for batch in query.fetch_record_batch(SCAN_ROWS):
            yield batch.num_rows / SCAN_ROWS, None


WORKING_BYTES = 64 << 20
"""Of DuckDB, for its threads: with less the query fails."""


def duckdb(workload: Workload, port: int, _scratch: Path) -> ScanOfDuckdb:
    """Open DuckDB."""
    return ScanOfDuckdb(workload, port)


NGINX = """
daemon off; pid {scratch}/nginx.pid; error_log {scratch}/error.log; worker_processes 2; user root;
events {{ worker_connections 2048; }}
http {{
  access_log off; tcp_nodelay on;
  client_body_temp_path {scratch}/body; proxy_temp_path {scratch}/temp; fastcgi_temp_path {scratch}/fcgi;
  uwsgi_temp_path {scratch}/uwsgi; scgi_temp_path {scratch}/scgi;
  proxy_cache_path {scratch}/cache levels=1:2 keys_zone=store:16m max_size={cache_bytes} inactive=1h
    use_temp_path=off manager_sleep=50ms manager_files=1000;
  upstream store {{ server 127.0.0.1:{upstream}; keepalive 128; }}
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
  proxy_cache store; proxy_cache_valid 200 206 1h; proxy_cache_lock on; proxy_ignore_headers Cache-Control Expires;
  server {{
    listen 127.0.0.1:{port} backlog=1024; keepalive_requests 1000000;
    location ~ ^/{bucket}/(images|zarr)/ {{ proxy_cache_key $uri; proxy_pass http://store; }}
    location / {{
      slice {slice}; proxy_cache_key $uri$is_args$args$slice_range; proxy_set_header Range $slice_range;
      proxy_pass http://store;
    }}
  }}
}}
"""


def cached_by_nginx(workload: Workload, port: int, scratch: Path) -> int:
    """Start nginx; gives its port. It ends with the group of the reader."""
    scratch.mkdir(parents=True, exist_ok=True)
    own = free_port()
    file = scratch / "nginx.conf"
    cache_bytes = workload.cache_bytes
    text = NGINX.format(scratch=scratch, upstream=port, port=own, bucket=BUCKET, slice=SLICE, cache_bytes=cache_bytes)
    file.write_text(text)
    subprocess.Popen(["nginx", "-p", str(scratch), "-c", str(file)])
    for _ in range(200):
        if answers(own):
            return own
        time.sleep(0.05)
    raise SystemExit(f"nginx: does not start: {(scratch / 'error.log').read_text()}")


def nginx(workload: Workload, port: int, scratch: Path) -> Any:
    """Open a pool of threads that reads through nginx; whole objects where the ranges are whole."""
    reader = PooledCache(workload, cached_by_nginx(workload, port, scratch), evicts=False, cache_bytes=0)
    reader.client.ranges = workload.kind in ("groups", "query")
    return reader


def duckdb_nginx(workload: Workload, port: int, scratch: Path) -> ScanOfDuckdb:
    """Open DuckDB before nginx."""
    return ScanOfDuckdb(workload, cached_by_nginx(workload, port, scratch))

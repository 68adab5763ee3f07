"""Puts the data of the six workloads into the store, and notes each range and its checksum in `manifest.json`.

Images are random bytes of random sizes; row groups, arrays and tables are written by pyarrow and zarr-python as users
would, without compression, since random bytes have none.
"""

from __future__ import annotations

import importlib
import io
import json
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet
from rig import BUCKET, KEYS
from workloads import IMAGES, NODES

IMAGE_BYTES, IMAGE_SIGMA = 128 << 10, 0.35
FILES, GROUPS, GROUP_ROWS, PAYLOAD_BYTES = 4, 1024, 50, 2600
CHUNKS, CHUNK_FLOATS = 1024, 32768
SCAN_GROUPS, SCAN_ROWS = 64, 87381
COLUMNS, READ_COLUMNS = "abcdef", "ace"

Row = tuple[str, int, int, int]


def client(port: int) -> Any:
    """Connect to the server."""
    boto3: Any = importlib.import_module("boto3")
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        region_name=KEYS["AWS_REGION"],
    )


def image(number: int) -> bytes:
    """Return the bytes of an image; the mean of the sizes is IMAGE_BYTES."""
    drawn = numpy.random.default_rng([1, number])
    size = int(IMAGE_BYTES * drawn.lognormal(-(IMAGE_SIGMA**2) / 2, IMAGE_SIGMA))
    return drawn.bytes(size)


def image_key(number: int) -> str:
    """Name an image."""
    return f"images/{number:05}.jpg"


def group_table(first: int, count: int) -> pyarrow.Table:
    """Return `count` row groups of samples."""
    drawn = numpy.random.default_rng([2, first])
    ids = numpy.arange(first * GROUP_ROWS, (first + count) * GROUP_ROWS)
    return pyarrow.table({"id": ids, "payload": [drawn.bytes(PAYLOAD_BYTES) for _ in ids]})


def scan_table(file: int) -> pyarrow.Table:
    """Return a file's part of the table that is queried."""
    drawn = numpy.random.default_rng([3, file])
    rows = SCAN_GROUPS // FILES * SCAN_ROWS
    return pyarrow.table({name: drawn.random(rows) for name in COLUMNS})


def parquet(table: pyarrow.Table, group_rows: int) -> bytes:
    """Write a table."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, row_group_size=group_rows, compression="none", use_dictionary=False)
    return file.getvalue()


def ranges(key: str, file: bytes, columns: list[int] | None) -> list[Row]:
    """Return the ranges of a Parquet file's row groups, or of some of their columns."""
    told = pyarrow.parquet.ParquetFile(io.BytesIO(file)).metadata
    found = []
    for group in range(told.num_row_groups):
        chunks = [told.row_group(group).column(column) for column in range(told.num_columns)]
        spans = [(chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size) for chunk in chunks]
        wanted = [(spans[0][0], spans[-1][1])] if columns is None else [spans[column] for column in columns]
        found += [(key, first, end - first, zlib.crc32(file[first:end])) for first, end in wanted]
    return found


def zarr_objects() -> dict[str, bytes]:
    """Return the objects of an array of which each chunk is one row."""
    zarr: Any = importlib.import_module("zarr")
    with tempfile.TemporaryDirectory() as folder:
        made = zarr.create_array(
            folder, shape=(CHUNKS, CHUNK_FLOATS), chunks=(1, CHUNK_FLOATS), dtype="float32", compressors=None
        )
        made[:] = numpy.random.default_rng(4).random((CHUNKS, CHUNK_FLOATS), dtype="float32")
        return {
            f"zarr/{path.relative_to(folder)}": path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()
        }


def fill(port: int, folder: Path) -> None:
    """Put all objects, unless they are there."""
    if (folder / "manifest.json").exists():
        return
    s3 = client(port)
    s3.create_bucket(Bucket=BUCKET)
    allowed = {"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject", "s3:ListBucket"]}
    statement = {**allowed, "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"]}
    s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))

    def put(key: str, body: bytes) -> Row:
        s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        return key, 0, len(body), zlib.crc32(body)

    manifest: dict[str, list[Row]] = {"groups": [], "query": []}
    with ThreadPoolExecutor(8) as pool:
        numbers = range(NODES * IMAGES)
        manifest["images"] = list(pool.map(lambda number: put(image_key(number), image(number)), numbers))
        chunks = zarr_objects()
        rows = pool.map(put, chunks, chunks.values())
        manifest["windows"] = sorted(
            (row for row in rows if "/c/" in row[0]), key=lambda row: int(row[0].split("/")[2])
        )
    for number in range(FILES):
        count = GROUPS // FILES
        key, file = f"groups/{number}.parquet", parquet(group_table(number * count, count), GROUP_ROWS)
        put(key, file)
        manifest["groups"] += ranges(key, file, None)
        key, file = f"query/{number}.parquet", parquet(scan_table(number), SCAN_ROWS)
        put(key, file)
        manifest["query"] += ranges(key, file, [COLUMNS.index(name) for name in READ_COLUMNS])
    (folder / "manifest.json").write_text(json.dumps(manifest))

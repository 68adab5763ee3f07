"""Converts the images, and the samples of the row groups, for the peers that need a format of their own.

The converted data is put into the store beside the files as they are; what that takes is no part of any figure.
"""

from __future__ import annotations

import importlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
from data import GROUP_ROWS, GROUPS, PAYLOAD_BYTES, client, image
from peers_loaders import SHARD_SAMPLES
from rig import BUCKET
from workloads import IMAGES, NODES


def samples(name: str) -> list[tuple[str, int]]:
    """Return what identifies each sample: its kind and number."""
    count = {"images-1": IMAGES, "images-4": NODES * IMAGES, "groups": GROUPS * GROUP_ROWS}[name]
    return [(name, number) for number in range(count)]


def sample(which: tuple[str, int]) -> dict[str, Any]:
    """Return a sample."""
    name, number = which
    body = numpy.random.default_rng([2, number]).bytes(PAYLOAD_BYTES) if name == "groups" else image(number)
    return {"id": number, "body": body}


def mds(name: str, folder: Path) -> None:
    """Write shards of mosaicml-streaming."""
    streaming = importlib.import_module("streaming")
    columns = {"id": "int", "body": "bytes"}
    with streaming.MDSWriter(out=str(folder), columns=columns, size_limit=2 << 20) as out:
        for which in samples(name):
            out.write(sample(which))


def litdata(name: str, folder: Path) -> None:
    """Write chunks of LitData."""
    module = importlib.import_module("litdata")
    size = SHARD_SAMPLES[name]
    module.optimize(fn=sample, inputs=samples(name), output_dir=str(folder), chunk_size=size, num_workers=1)


def wds(name: str, folder: Path) -> None:
    """Write tar files of WebDataset."""
    folder.mkdir(parents=True)
    size = SHARD_SAMPLES[name]
    all_samples = samples(name)
    for number, first in enumerate(range(0, len(all_samples), size)):
        with tarfile.open(folder / f"{number:05}.tar", "w") as out:
            for which in all_samples[first : first + size]:
                entry = tarfile.TarInfo(f"{which[1]:06}.bin")
                body = sample(which)["body"]
                entry.size = len(body)
                out.addfile(entry, io.BytesIO(body))


FORMATS = {"mds": mds, "litdata": litdata, "wds": wds}


def files(folder: Path) -> Iterator[Path]:
    """Return the files below a folder."""
    return (path for path in folder.rglob("*") if path.is_file())


def convert(port: int, folder: Path) -> None:
    """Write and put what is not there yet."""
    noted = folder / "converted.json"
    done: list[str] = json.loads(noted.read_text()) if noted.exists() else []
    s3 = client(port)
    for kind, write in FORMATS.items():
        for name in SHARD_SAMPLES:
            prefix = f"{kind}/{name}"
            if prefix in done:
                continue
            local = folder / "local" / prefix
            shutil.rmtree(local, ignore_errors=True)
            write(name, local)
            with ThreadPoolExecutor(8) as pool:
                list(
                    pool.map(
                        lambda path, local=local, prefix=prefix: s3.upload_file(
                            str(path), BUCKET, f"{prefix}/{path.relative_to(local)}"
                        ),
                        files(local),
                    )
                )
            shutil.rmtree(local)
            noted.write_text(json.dumps([*done, prefix]))
            done.append(prefix)

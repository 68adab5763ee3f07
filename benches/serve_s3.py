"""A server of S3 behind a slow link: `headstart serve` beside s3backer with several read-aheads, in one run.

The link is a process in front of the server: each piece of a request arrives so much later, and what comes back of all
connections shares so many bits a second. fio reads an image of random bytes from its start to its end, 128 KiB at a
time, one read after another: of `serve` by its NBD engine, of s3backer from the file that it mounts. s3backer keeps
each block as an object of its own; the blocks are stored as it would. Then `serve` alone takes random reads of 4 KiB,
eight at a time, with its read-ahead and without, which take turns at being first. What they take is compared round by
round: the median of the rounds' ratios.

Goals: `serve` gets at least 90 % of the link's rate and 1.5 times what the best read-ahead of s3backer gets; random
reads are at most 3 % slower than without a read-ahead.

Needs Linux, root (FUSE), fio with its NBD engine, s3backer (Debian: `fio`, `s3backer`, `fuse`), boto3 and a server of
S3: versitygw (`go install github.com/versity/versitygw/cmd/versitygw@latest`).

    python benches/serve_s3.py --versitygw ~/go/bin/versitygw
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving import fio, needed, running

BUCKET, IMAGE = "bench", "image.raw"
KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "benchbench", "AWS_REGION": "us-east-1"}
READ_BYTES = 128 << 10
CACHE = "64MiB"
"""Of `serve`, which is its default, and of s3backer, but for read-aheads that need more."""
SEQUENTIAL_S_MAX = 30
RANDOM_S = 15
GOAL_LINK, GOAL_PEER, GOAL_RANDOM = 0.9, 1.5, 0.97
PIECE = 64 << 10
READAHEADS = ("auto", "demand")
BURST_S = 0.005
"""How late a piece may be sent and still count as sent in time: timers end up to a millisecond late."""


@dataclass(frozen=True)
class Link:
    """What stands between the server and its clients."""

    latency_s: float
    bytes_per_s: float


async def _carry(link: Link, upstream: int, listener: socket.socket) -> None:
    free_at = 0.0
    loop = asyncio.get_running_loop()

    async def up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def later() -> None:
            while True:
                due, piece = await pieces.get()
                await asyncio.sleep(due - loop.time())
                if not piece:
                    return writer.write_eof()
                writer.write(piece)
                await writer.drain()

        delivered = asyncio.create_task(later())
        while piece := await reader.read(PIECE):
            pieces.put_nowait((loop.time() + link.latency_s, piece))
        pieces.put_nowait((loop.time() + link.latency_s, b""))
        await delivered

    async def down(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal free_at
        while piece := await reader.read(PIECE):
            free_at = max(free_at, loop.time() - BURST_S) + len(piece) / link.bytes_per_s
            await asyncio.sleep(free_at - loop.time())
            writer.write(piece)
            await writer.drain()
        writer.write_eof()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        above, below = await asyncio.open_connection("127.0.0.1", upstream)
        with contextlib.suppress(OSError):
            await asyncio.gather(up(reader, below), down(above, writer))
        below.close()
        writer.close()

    async with await asyncio.start_server(connected, sock=listener) as server:
        await server.serve_forever()


@contextmanager
def linked(link: Link, upstream: int) -> Iterator[int]:
    """Carry connections to a port of this machine over a link; gives the port before it."""
    listener = socket.create_server(("127.0.0.1", 0))
    context = multiprocessing.get_context("fork")
    process = context.Process(target=lambda: asyncio.run(_carry(link, upstream, listener)), daemon=True)
    process.start()
    try:
        yield listener.getsockname()[1]
    finally:
        process.kill()
        process.join()
        listener.close()


def answers(port: int) -> bool:
    """Whether something listens there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextmanager
def s3_server(versitygw: str, folder: Path) -> Iterator[int]:
    """Serve objects in `folder`; gives the port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [versitygw, "--port", f"127.0.0.1:{port}", "--quiet"]
    told = subprocess.run([versitygw, "--help"], check=False, capture_output=True, text=True).stdout
    # Old versions close a connection after each answer, and have no such option.
    command += ["--keep-alive"] if "--keep-alive" in told else []
    command += ["--access", KEYS["AWS_ACCESS_KEY_ID"], "--secret", KEYS["AWS_SECRET_ACCESS_KEY"]]
    with running(
        [*command, "posix", "--sidecar", str(made(folder / "meta")), str(made(folder / "data"))], lambda: answers(port)
    ):
        yield port


def made(folder: Path) -> Path:
    """Make a folder."""
    folder.mkdir()
    return folder


def store(port: int, image: Path, peers: tuple[Peer, ...]) -> None:
    """Put the image into the bucket: as one object, and as blocks of s3backer of each size."""
    boto3: Any = importlib.import_module("boto3")
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        region_name=KEYS["AWS_REGION"],
    )
    client.create_bucket(Bucket=BUCKET)
    client.upload_file(str(image), BUCKET, IMAGE)
    size = image.stat().st_size
    for block_bytes, bytes_read in {peer.block_bytes: peer.bytes_of(size) for peer in peers}.items():
        with image.open("rb") as file:
            for number in range(bytes_read // block_bytes):
                key = f"{prefix(block_bytes)}{number:08x}"
                client.put_object(Bucket=BUCKET, Key=key, Body=file.read(block_bytes))


def prefix(block_bytes: int) -> str:
    """How the names of blocks of a size begin."""
    return f"blocks-{block_bytes}-"


def sequential(size: int, *options: str) -> float:
    """Read from the start to the end; bytes a second."""
    read = fio("--rw=read", f"--bs={READ_BYTES}", f"--size={size}", f"--runtime={SEQUENTIAL_S_MAX}", *options)
    return float(read["bw_bytes"])


def random(size: int, *options: str) -> float:
    """Read here and there; reads a second."""
    read = fio(
        "--rw=randread", "--bs=4k", f"--size={size}", "--iodepth=8", "--time_based", f"--runtime={RANDOM_S}", *options
    )
    return float(read["iops"])


@contextmanager
def served(folder: Path, port: int, readahead: str) -> Iterator[str]:
    """Serve the object; gives fio's options for it."""
    path = folder / f"{readahead}.sock"
    command = [
        "headstart",
        "serve",
        f"s3://{BUCKET}/{IMAGE}",
        "--cache",
        CACHE,
        "--readahead",
        readahead,
        "--socket",
        str(path),
    ]
    with running(command, path.exists, AWS_ENDPOINT=f"http://127.0.0.1:{port}", **KEYS):
        yield f"--uri=nbd+unix:///?socket={path}"


@dataclass(frozen=True)
class Peer:
    """A setting of s3backer."""

    block_bytes: int
    ahead: int
    """Blocks."""
    threads: int

    @property
    def label(self) -> str:
        """How the table calls it."""
        return f"s3backer, blocks of {self.block_bytes >> 10} KiB, {self.ahead} ahead, {self.threads} threads"

    def bytes_of(self, size: int) -> int:
        """How much it reads of an image."""
        return min(size, DEFAULT_BYTES) if self.block_bytes == DEFAULT_BLOCK else size

    @contextmanager
    def mounted(self, folder: Path, port: int, size: int) -> Iterator[str]:
        """Mount it; gives fio's options for its file."""
        point = made(folder / f"mount-{time.monotonic_ns()}")
        cache = max((64 << 20) // self.block_bytes, 2 * self.ahead)
        options = {
            "baseURL": f"http://127.0.0.1:{port}/",
            "accessId": KEYS["AWS_ACCESS_KEY_ID"],
            "accessKey": KEYS["AWS_SECRET_ACCESS_KEY"],
            "prefix": prefix(self.block_bytes),
            "blockSize": str(self.block_bytes),
            "size": str(size),
            "blockCacheSize": str(cache),
            "blockCacheThreads": str(self.threads),
            "readAhead": str(self.ahead),
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        command = ["s3backer", "-f", "--readOnly", "--force", "--quiet", *flags, BUCKET, str(point)]
        try:
            with running(command, (point / "file").exists):
                try:
                    yield f"--filename={point}/file"
                finally:
                    subprocess.run(["fusermount", "-u", str(point)], check=False)
        finally:
            point.rmdir()


DEFAULT_BLOCK = 4 << 10
DEFAULT_BYTES = 4 << 20
"""With blocks of the default size no more is read: the whole image would take minutes."""
PEERS = (
    Peer(DEFAULT_BLOCK, 4, 20),
    Peer(128 << 10, 128, 128),
    Peer(256 << 10, 64, 64),
    Peer(1 << 20, 4, 20),
    Peer(1 << 20, 16, 20),
    Peer(1 << 20, 32, 32),
    Peer(4 << 20, 8, 20),
)
"""The first is s3backer's default."""


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versitygw", default="versitygw", help="the server of S3")
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--mbit", type=float, default=500.0, help="the link's rate")
    parser.add_argument("--mib", type=int, default=256, help="size of the image")
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="s3backer too")
    arguments = parser.parse_args()
    peers = PEERS if arguments.peers else ()
    needed("headstart", "fio", arguments.versitygw, *(("s3backer", "fusermount") if peers else ()))
    size, link = arguments.mib << 20, Link(arguments.latency_ms / 1e3, arguments.mbit * 1e6 / 8)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="serve-s3-", dir="/dev/shm")))
        image = folder / IMAGE
        with image.open("wb") as file:
            for _ in range(arguments.mib):
                file.write(os.urandom(1 << 20))
        inner = stack.enter_context(s3_server(arguments.versitygw, folder))
        store(inner, image, peers)
        image.unlink()
        port = stack.enter_context(linked(link, inner))
        show(measured(folder, port, size, peers, arguments.rounds), link, peers)


def measured(folder: Path, port: int, size: int, peers: tuple[Peer, ...], rounds: int) -> dict[str, list[float]]:
    """Return what each took in each round: bytes a second of sequential reads, and random reads a second."""
    found: dict[str, list[float]] = {}

    def tell(what: str, rate: float) -> None:
        found.setdefault(what, []).append(rate)
        print(f"{what}: {rate:,.0f}", file=sys.stderr)

    for number in range(rounds):
        for readahead in READAHEADS:
            with served(folder, port, readahead) as target:
                tell(sequential_of(readahead), sequential(size, "--ioengine=nbd", target))
        for peer in peers:
            with peer.mounted(folder, port, size) as target:
                tell(peer.label, sequential(peer.bytes_of(size), "--ioengine=psync", target))
        for readahead in READAHEADS if number % 2 == 0 else reversed(READAHEADS):
            with served(folder, port, readahead) as target:
                tell(random_of(readahead), random(size, "--ioengine=nbd", target))
    return found


def sequential_of(readahead: str) -> str:
    """How the table calls it."""
    return f"serve --readahead {readahead}"


def random_of(readahead: str) -> str:
    """How the table calls it."""
    return f"serve --readahead {readahead}, random"


def show(found: dict[str, list[float]], link: Link, peers: tuple[Peer, ...]) -> None:
    """Print all medians, and the goals beside what was found."""
    middle = {what: statistics.median(rates) for what, rates in found.items()}
    print(f"link: {link.latency_s * 1e3:.0f} ms, {link.bytes_per_s / 2**20:.1f} MiB/s")
    for what, rate in middle.items():
        random_reads = what.endswith("random")
        print(f"{what}: {rate:,.0f} a second" if random_reads else f"{what}: {rate / 2**20:.1f} MiB/s")
    own = middle[sequential_of("auto")]
    pairs = zip(found[random_of("auto")], found[random_of("demand")], strict=True)
    kept = [ours / without for ours, without in pairs]
    print(f"of the link's rate: {own / link.bytes_per_s:.2f} (goal {GOAL_LINK})")
    if peers:
        print(f"beside the best of s3backer: {own / max(middle[peer.label] for peer in peers):.2f} (goal {GOAL_PEER})")
    print(
        f"random reads beside those without a read-ahead: {statistics.median(kept):.3f} (goal {GOAL_RANDOM}); "
        f"least {min(kept):.3f}, greatest {max(kept):.3f}"
    )


if __name__ == "__main__":
    main()

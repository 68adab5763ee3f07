"""The memory of `headstart serve`: a fixed base, and at most 1.10 bytes for each byte of cache (docs/serve.md)."""

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_serve import Client, ended, serving

MIB = 1 << 20
BASE_MIB = 40
"""What the process needs beside the cache: Python, the code, and requests in flight."""
CACHES_MIB = (4, 32, 96)
IMAGE_MIB = 192


def several(client: Client, reads: list[tuple[int, int]]) -> None:
    """Send all of these reads at once, and receive the answers."""

    def packed(cookie: int, offset: int, length: int) -> bytes:
        return struct.pack(">IHHQQI", 0x25609513, 0, 0, cookie, offset, length)

    requests = [packed(cookie, *read) for cookie, read in enumerate(reads)]
    client.socket.sendall(b"".join(requests))
    for _ in reads:
        magic, error, cookie = struct.unpack(">IIQ", client.take(16))
        assert (magic, error) == (0x67446698, 0)
        client.take(reads[cookie][1])


def in_turn(path: Path, cache_mib: int) -> None:
    """Read everything, 1 MiB at a time."""
    client = Client(path)
    for at in range(max(cache_mib * 2, IMAGE_MIB // 2)):
        several(client, [((at % IMAGE_MIB) * MIB, MIB)])


def at_random(path: Path, cache_mib: int) -> None:
    """Read random pages, 32 at once, until the cache is full."""
    client, numbers = Client(path), random.Random(cache_mib)
    for _ in range(cache_mib * MIB // 4096 * 2 // 32):
        several(client, [(numbers.randrange(IMAGE_MIB * MIB // 4096) * 4096, 4096) for _ in range(32)])


def by_sixteen(path: Path, cache_mib: int) -> None:
    """Read 64 KiB at random places from 16 clients, four at once each."""
    clients, numbers = [Client(path) for _ in range(16)], random.Random(cache_mib)
    for at in range(max(cache_mib * 16 * 2 // 4, 200)):
        reads = [(numbers.randrange(IMAGE_MIB * MIB - 65536), 65536) for _ in range(4)]
        several(clients[at % 16], reads)


def peak_mib(process_id: int) -> float:
    """The peak memory of a process."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


@pytest.mark.parametrize("load", [in_turn, at_random, by_sixteen], ids=lambda load: load.__name__)
def test_memory_is_a_base_and_the_cache(tmp_path: Path, load: Callable[[Path, int], None]) -> None:
    image, path = tmp_path / "image", tmp_path / "socket"
    with image.open("wb") as file:
        file.truncate(IMAGE_MIB * MIB)
    peaks = {}
    for cache_mib in CACHES_MIB:
        with serving(path, str(image), "--cache", f"{cache_mib}MiB", "--json", "-") as process:
            load(path, cache_mib)
            peaks[cache_mib] = peak_mib(process.pid)
            level = json.loads(ended(process))["exports"][0]["level"]
        assert level["evictions"] > 0, "the cache has been full"
    said = ", ".join(f"{cache} MiB: {peak:.1f} MiB" for cache, peak in peaks.items())
    print(load.__name__, said)
    assert all(peak <= BASE_MIB + 1.10 * cache for cache, peak in peaks.items()), said
    least, *_, most = CACHES_MIB
    assert peaks[most] - peaks[least] <= 1.10 * (most - least), said

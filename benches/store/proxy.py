"""A slow object store: a proxy in front of a server of S3 that delays, limits, fails and counts requests.

The first byte of each answer leaves no sooner than a delay after its request: lognormal, given by median and 99th
percentile, drawn from a seed. The bodies of all connections share one rate. A share of the requests is refused with
503. GETs and the bytes of their bodies are counted by object; `/-/counters` returns them as JSON, `/-/reset` clears
them. The proxy listens on the loopback only and passes bodies through in pieces, so that memory does not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import random
from collections import Counter
from dataclasses import dataclass, field

PIECE_BYTES = 32 << 10
BURST_S = 0.005
"""How late a piece may leave and still count as on time: timers fire up to a millisecond late."""
P99_SIGMAS = 2.3263
SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"


@dataclass
class Link:
    """How slow the store is. A rate of zero means no limit."""

    median_s: float
    p99_s: float
    bytes_per_s: float
    refused_share: float
    seed: int

    def delays(self) -> tuple[random.Random, float, float]:
        """Return the generator, mu and sigma of the delays."""
        sigma = math.log(self.p99_s / self.median_s) / P99_SIGMAS if self.median_s else 0.0
        return random.Random(self.seed), math.log(self.median_s) if self.median_s else -math.inf, sigma


@dataclass
class Counts:
    """What was requested since the last reset."""

    gets: Counter[str] = field(default_factory=Counter)
    body_bytes: Counter[str] = field(default_factory=Counter)
    heads: int = 0
    lists: int = 0
    refused: int = 0
    abandoned: int = 0
    in_flight: int = 0
    in_flight_max: int = 0

    def as_json(self, by_object: bool) -> bytes:
        """Return the sums, and with `by_object` GETs and bytes of each object."""
        told: dict[str, object] = {
            "gets": sum(self.gets.values()),
            "bytes": sum(self.body_bytes.values()),
            "heads": self.heads,
            "lists": self.lists,
            "refused": self.refused,
            "abandoned": self.abandoned,
            "in_flight_max": self.in_flight_max,
        }
        if by_object:
            told["objects"] = {key: [count, self.body_bytes[key]] for key, count in self.gets.items()}
        return json.dumps(told).encode()


class Proxy:
    """Carries requests to the server at `upstream`, a port of the loopback."""

    def __init__(self, link: Link, upstream: int) -> None:
        self.link = link
        self.upstream = upstream
        self.counts = Counts()
        self.free_at = 0.0
        self.random, self.mu, self.sigma = link.delays()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, with one connection of its own to the server."""
        above, below = await asyncio.open_connection("127.0.0.1", self.upstream, limit=1 << 20)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await self.request(reader, writer, above, below):
                    pass
        finally:
            below.close()
            writer.close()

    async def request(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        above: asyncio.StreamReader,
        below: asyncio.StreamWriter,
    ) -> bool:
        """Carry one request and its answer. Returns whether the connection goes on."""
        head = await reader.readuntil(b"\r\n\r\n")
        arrived = asyncio.get_running_loop().time()
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
        body = await reader.readexactly(length_of(head) or 0)
        if target.startswith("/-/"):
            writer.write(answer(200, self.control(target)))
            await writer.drain()
            return True
        delay_s = self.random.lognormvariate(self.mu, self.sigma) if self.link.median_s else 0.0
        if self.random.random() < self.link.refused_share:
            self.counts.refused += 1
            await asyncio.sleep(delay_s)
            writer.write(answer(503, SLOW_DOWN))
            await writer.drain()
            return True
        self.counts.in_flight += 1
        self.counts.in_flight_max = max(self.counts.in_flight_max, self.counts.in_flight)
        try:
            below.write(head + body)
            answered = await above.readuntil(b"\r\n\r\n")
            await asyncio.sleep(arrived + delay_s - asyncio.get_running_loop().time())
            writer.write(answered)
            await self.body(method, target, answered, above, writer)
        finally:
            self.counts.in_flight -= 1
        return b"connection: close" not in answered.lower()

    def control(self, target: str) -> bytes:
        """Answer a request to the proxy itself."""
        if target.startswith("/-/reset"):
            self.counts = Counts(in_flight=self.counts.in_flight)
            return b"{}"
        return self.counts.as_json(by_object="objects" in target)

    async def body(
        self, method: str, target: str, answered: bytes, above: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry the body of an answer at the shared rate, and count it."""
        path = target.split("?", 1)[0]
        is_object = path.count("/") >= 2 and not path.endswith("/")
        if method == "HEAD":
            self.counts.heads += 1
        elif method == "GET":
            self.counts.gets[path] += is_object
            self.counts.lists += not is_object
        left = 0 if method == "HEAD" else length_of(answered)
        if left is None:
            raise ConnectionError("the server's answer has no length")
        loop = asyncio.get_running_loop()
        try:
            while left:
                piece = await above.read(min(left, PIECE_BYTES))
                if not piece:
                    raise ConnectionError("the server closed its connection early")
                left -= len(piece)
                if self.link.bytes_per_s:
                    self.free_at = max(self.free_at, loop.time() - BURST_S) + len(piece) / self.link.bytes_per_s
                    await asyncio.sleep(self.free_at - loop.time())
                writer.write(piece)
                await writer.drain()
                if method == "GET" and is_object:
                    self.counts.body_bytes[path] += len(piece)
        finally:
            self.counts.abandoned += bool(left)


def length_of(head: bytes) -> int | None:
    """Read the length of the body from a head."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    status = head.split(b" ", 2)[1]
    return 0 if status in (b"204", b"304") else None


def answer(status: int, body: bytes) -> bytes:
    """Make an answer of the proxy itself."""
    words = {200: "OK", 503: "Slow Down"}[status]
    return f"HTTP/1.1 {status} {words}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def serve(link: Link, upstream: int, port: int) -> None:
    """Listen until the process is ended; prints the port."""
    server = await asyncio.start_server(Proxy(link, upstream).connected, "127.0.0.1", port, limit=1 << 20, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", type=int, required=True, help="port of the server of S3")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; default: a free one")
    parser.add_argument("--median-ms", type=float, default=0.0, help="of the first byte's delay")
    parser.add_argument("--p99-ms", type=float, default=0.0, help="of the first byte's delay")
    parser.add_argument("--rate", type=float, default=0.0, help="bytes a second of all bodies; 0: no limit")
    parser.add_argument("--refused", type=float, default=0.0, help="share of the requests that get 503")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    link = Link(told.median_ms / 1e3, max(told.p99_ms, told.median_ms) / 1e3, told.rate, told.refused, told.seed)
    asyncio.run(serve(link, told.upstream, told.port))


if __name__ == "__main__":
    main()

"""The servers of a measurement: versitygw with the data, and before it the slow store of `proxy.py`."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BUCKET = "bench"
KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "benchbench", "AWS_REGION": "us-east-1"}
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Supply:
    """How slow the store is in a run, beside the need."""

    name: str
    of_need: float
    median_ms: float
    p99_ms: float


SUPPLIES = {
    supply.name: supply
    for supply in (
        Supply("three-quarters", 0.75, 30, 120),
        Supply("third", 1 / 3, 30, 120),
        Supply("ample", 1.1, 100, 400),
    )
}


def free_port() -> int:
    """Find a port of the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether something listens there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextmanager
def process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a command until the block is left."""
    started = subprocess.Popen(command, text=True, **options)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def s3_server(versitygw: str, folder: Path) -> Iterator[int]:
    """Serve the objects in `folder`; gives the port."""
    port = free_port()
    for part in ("data", "meta"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    command = [versitygw, "--port", f"127.0.0.1:{port}", "--quiet", "--keep-alive"]
    command += ["--access", KEYS["AWS_ACCESS_KEY_ID"], "--secret", KEYS["AWS_SECRET_ACCESS_KEY"]]
    command += ["posix", "--sidecar", str(folder / "meta"), str(folder / "data")]
    with process(command, stdout=subprocess.DEVNULL):
        give_up = time.monotonic() + PATIENCE_S
        while not answers(port):
            if time.monotonic() > give_up:
                raise SystemExit(f"{versitygw}: does not start")
            time.sleep(0.05)
        yield port


@contextmanager
def slow_store(upstream: int, *options: str) -> Iterator[int]:
    """Put the proxy before a server; gives the proxy's port."""
    command = [sys.executable, str(HERE / "proxy.py"), "--upstream", str(upstream), *options]
    with process(command, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdout is not None
        told = proxy.stdout.readline()
        if not told:
            raise SystemExit("proxy.py: does not start")
        yield int(told)


def options_of(supply: Supply, need_bytes_per_s: float, seed: int) -> list[str]:
    """Return the proxy's options for a supply."""
    return [
        f"--median-ms={supply.median_ms}",
        f"--p99-ms={supply.p99_ms}",
        f"--rate={supply.of_need * need_bytes_per_s}",
        f"--seed={seed}",
    ]


def counters(port: int, *, by_object: bool = False) -> dict[str, Any]:
    """Read the proxy's counters."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/counters{'?objects' if by_object else ''}") as told:
        found: dict[str, Any] = json.load(told)
    return found


def reset(port: int) -> None:
    """Clear the proxy's counters."""
    urllib.request.urlopen(f"http://127.0.0.1:{port}/-/reset").read()

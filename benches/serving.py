"""What the benchmarks of `headstart serve` share: commands in the background, and jobs of fio."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE_S = 30.0


@contextmanager
def running(command: list[str], ready: Callable[[], bool], **environment: str) -> Iterator[int]:
    """Run a command in the background until the block is left; gives its process once it is ready."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=said, stderr=said)
        try:
            give_up = time.monotonic() + PATIENCE_S
            while not ready():
                if process.poll() is not None or time.monotonic() > give_up:
                    said.seek(0)
                    raise SystemExit(f"{command[0]}: does not start: {said.read().decode(errors='replace').strip()}")
                time.sleep(0.05)
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def fio(*options: str) -> Any:
    """Run one job that reads; what it says of its reads."""
    command = ["fio", "--name=job", "--output-format=json", "--readonly", "--allow_file_create=0", *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"fio: {done.stdout.strip()} {done.stderr.strip()}")
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]


def needed(*commands: str) -> None:
    """Say what is missing."""
    for command in commands:
        if shutil.which(command) is None:
            raise SystemExit(f"{command}: is not installed; --help says what is needed")

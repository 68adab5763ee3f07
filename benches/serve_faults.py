"""16 clients of `headstart serve` under faults of storage, clients, server and upstream; every byte read is checked.

    python benches/serve_faults.py --seconds 3600

Half of the clients use an export in front of nbdkit with its pause, error and delay filters, half one in front of a
file. Clients (libnbd, one process each) read, write, zero and flush their own parts of the exports. Their models lie in
shared files: what was acknowledged, and what a request without an answer may have left. A controller pauses the
upstream, lets it return errors, and kills clients, server and upstream. A read may fail; one that succeeds must return
what the model allows. At the end, each part is read once more from a new server.

Needs Linux, nbdkit and libnbd's module for /usr/bin/python3 (Debian: `nbdkit`, `python3-libnbd`). Exits with status 1
if a byte is wrong, a request has no answer, or the server ends by itself or panics.
"""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

CLIENTS, SLOTS, SLOT = 16, 64, 3000
RECORD = 2 * SLOT + 8
"""Of a slot: what is there, what may be there, and whether it may."""
COUNTS = ("requests", "failed", "bytes_checked", "acknowledged_changes", "connections")
REQUESTS, FAILED, BYTES_CHECKED, ACKNOWLEDGED, CONNECTIONS = range(len(COUNTS))
FAULTS = {
    "upstream paused": 2,
    "upstream returns errors": 3,
    "upstream slow": 1,
    "upstream killed": 2,
    "client killed": 4,
    "server killed": 2,
    "server stopped": 2,
}
"""And how often each happens, compared with the others."""
THINK_S = 0.02
PYTHON = "/usr/bin/python3"
"""The one that has libnbd's module."""
PATIENCE_S = 200
"""Longer than all time limits of the server together."""
WRONG = 9
"""The status of a client that has read a wrong byte."""


class Model:
    """What a client's slots may hold, and the client's counts, in a file that outlives it."""

    def __init__(self, path: Path, number: int) -> None:
        self.number = number
        with path.open("r+b") as file:
            self.bytes = mmap.mmap(file.fileno(), 0)

    def count(self, what: int, by: int = 1) -> None:
        """Add to a count."""
        at = SLOTS * RECORD + 8 * what
        self.bytes[at : at + 8] = (int.from_bytes(self.bytes[at : at + 8], "little") + by).to_bytes(8, "little")

    def offset(self, slot: int) -> int:
        """Where a slot lies in the export: slots of different clients share pages."""
        return (slot * CLIENTS + self.number) * SLOT

    def begin(self, slot: int, new: bytes) -> bytes:
        """What is to be written: what has got no answer again, so that there are never more than two contents."""
        base = slot * RECORD
        if self.bytes[base + 2 * SLOT] == 0:
            self.bytes[base + SLOT : base + 2 * SLOT] = new
            self.bytes[base + 2 * SLOT] = 1
        return self.bytes[base + SLOT : base + 2 * SLOT]

    def acknowledged(self, slot: int) -> None:
        """What was to be written is there."""
        base = slot * RECORD
        self.bytes[base : base + SLOT] = self.bytes[base + SLOT : base + 2 * SLOT]
        self.bytes[base + 2 * SLOT] = 0
        self.count(ACKNOWLEDGED)

    def check(self, slot: int, start: int, data: bytes) -> None:
        """Ends the process if a byte is wrong."""
        base, end = slot * RECORD, start + len(data)
        known = self.bytes[base + start : base + end]
        if data != known:
            is_sure = self.bytes[base + 2 * SLOT] == 0
            other = known if is_sure else self.bytes[base + SLOT + start : base + SLOT + end]
            wrong = [at for at, byte in enumerate(data) if byte not in (known[at], other[at])]
            if wrong:
                print(f"client {self.number}, slot {slot}: {len(wrong)} bytes, first {start + wrong[0]}", flush=True)
                os._exit(WRONG)
        self.count(BYTES_CHECKED, len(data))


def client(model: Model, socket_path: str, *, is_last: bool) -> None:
    """One client, until it is killed; the last one reads everything once."""
    nbd: Any = importlib.import_module("nbd")
    numbers = random.Random(time.time_ns() * CLIENTS + model.number)
    handle: Any = None
    slots = iter(range(SLOTS))
    while True:
        if handle is None:
            try:
                handle = nbd.NBD()
                handle.set_export_name("ab"[model.number % 2])
                handle.connect_unix(socket_path)
                model.count(CONNECTIONS)
            except nbd.Error:
                handle = None
                time.sleep(0.05)
                continue
        if is_last:
            for slot in slots:
                model.check(slot, 0, handle.pread(SLOT, model.offset(slot)))
            return
        time.sleep(numbers.random() * THINK_S)
        slot, chosen = numbers.randrange(SLOTS), numbers.random()
        model.count(REQUESTS)
        try:
            if chosen < 0.5:
                start = numbers.randrange(SLOT)
                length = numbers.randint(1, SLOT - start)
                model.check(slot, start, handle.pread(length, model.offset(slot) + start))
            elif chosen < 0.95:
                new = model.begin(slot, bytes(SLOT) if chosen < 0.6 else numbers.randbytes(SLOT))
                flags = nbd.CMD_FLAG_FUA if chosen > 0.9 else 0
                if any(new):
                    handle.pwrite(new, model.offset(slot), flags)
                else:
                    handle.zero(SLOT, model.offset(slot), flags)
                model.acknowledged(slot)
            else:
                handle.flush()
        except nbd.Error:
            model.count(FAILED)
            if not handle.aio_is_ready():
                handle = None


class Run:
    """Server, upstream and clients, and what has been done to them."""

    def __init__(self, folder: Path, command: str, seed: int) -> None:
        self.folder, self.command = folder, command
        self.numbers, self.faults = random.Random(seed), Counter[str]()
        for name in ("a.img", "b.img"):
            with (folder / name).open("wb") as file:
                file.truncate(CLIENTS * SLOTS * SLOT)
        self.models = [folder / f"model-{number}" for number in range(CLIENTS)]
        for model in self.models:
            model.write_bytes(bytes(SLOTS * RECORD + 8 * len(COUNTS)))
        self.progress = [(0, time.monotonic())] * CLIENTS
        self.processes: list[subprocess.Popen[bytes]] = []
        self.upstream, self.server = self._start_upstream(), self._start_server()
        self.clients = [self._start_client(number) for number in range(CLIENTS)]

    def _start(self, line: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(line, cwd=self.folder, stdout=log, stderr=log)
        self.processes = [*(each for each in self.processes if each.poll() is None), process]
        return process

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def _wait_for(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(path)) == 0:
                    return
            if process.poll() is not None:
                raise SystemExit(f"{process.args!r} has ended: {self._log()[-500:]}")
            time.sleep(0.02)

    def _start_upstream(self, delay_ms: int = 1) -> subprocess.Popen[bytes]:
        for name in ("up.sock", "pause.sock", "errors"):
            (self.folder / name).unlink(missing_ok=True)
        filters = ["--filter=pause", "--filter=error", "--filter=delay"]
        line = ["nbdkit", "-f", "-U", "up.sock", *filters, "file", "a.img", "pause-control=pause.sock", "error=EIO"]
        line += ["error-rate=30%", "error-file=errors", f"rdelay={delay_ms}ms", f"wdelay={delay_ms}ms"]
        process = self._start(line)
        self._wait_for(self.folder / "up.sock", process)
        return process

    def _revive_upstream(self) -> None:
        if self.upstream.poll() is not None:
            self.faults["upstream ended by itself"] += 1
            self.upstream = self._start_upstream()

    def _start_server(self) -> subprocess.Popen[bytes]:
        exports = ["--export", f"a=nbd+unix:///?socket={self.folder}/up.sock", "--export", f"b={self.folder}/b.img"]
        line = [self.command, "serve", *exports, "--writable", "--socket", "s.sock", "--cache", "512KiB"]
        process = self._start(line)
        self._wait_for(self.folder / "s.sock", process)
        return process

    def _start_client(self, number: int, role: str = "--client") -> subprocess.Popen[bytes]:
        return self._start([PYTHON, str(Path(__file__).resolve()), role, str(number), self.models[number].name])

    def _pause(self, letter: bytes) -> None:
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.folder / "pause.sock"))
            control.sendall(letter)
            control.recv(1)

    def _stop_server(self, how: signal.Signals) -> None:
        self.server.send_signal(how)
        status = self.server.wait(PATIENCE_S)
        # 1 where writes may be lost.
        if status not in {-how, 0, 1}:
            raise SystemExit(f"the server has ended with {status}: {self._log()[-500:]}")
        # Requests that the server has passed on are done, or are no longer there, after the longest delay.
        time.sleep(0.2)
        self._revive_upstream()

    def fault(self) -> None:
        """Do something bad, and end it."""
        self._revive_upstream()
        what = self.numbers.choices(list(FAULTS), list(FAULTS.values()))[0]
        self.faults[what] += 1
        match what:
            case "upstream paused":
                self._pause(b"p")
                time.sleep(self.numbers.uniform(0.1, 4))
                self._pause(b"r")
            case "upstream returns errors":
                (self.folder / "errors").touch()
                time.sleep(self.numbers.uniform(0.1, 1))
                (self.folder / "errors").unlink()
            case "upstream slow" | "upstream killed":
                self.upstream.kill()
                self.upstream.wait()
                time.sleep(self.numbers.choice([0, 0.5]))
                self.upstream = self._start_upstream(50 if what == "upstream slow" else 1)
            case "client killed":
                number = self.numbers.randrange(CLIENTS)
                self.clients[number].kill()
                self.clients[number].wait()
                self.clients[number] = self._start_client(number)
            case _:
                self._stop_server(signal.SIGKILL if what == "server killed" else signal.SIGTERM)
                self.server = self._start_server()

    def counts(self) -> list[list[int]]:
        """What each client has counted."""
        tails = [model.read_bytes()[SLOTS * RECORD :] for model in self.models]
        return [[int.from_bytes(tail[at : at + 8], "little") for at in range(0, len(tail), 8)] for tail in tails]

    def totals(self) -> dict[str, int]:
        """What all clients have counted."""
        return dict(zip(COUNTS, map(sum, zip(*self.counts(), strict=True)), strict=True))

    def check(self) -> None:
        """Fail if a client has seen a wrong byte or waits for ever, or the server has ended."""
        now = time.monotonic()
        for number, (process, counted) in enumerate(zip(self.clients, self.counts(), strict=True)):
            if process.poll() is not None:
                raise SystemExit(f"client {number} has ended with {process.returncode}: {self._log()[-500:]}")
            done, since = self.progress[number]
            if sum(counted) != done:
                self.progress[number] = (sum(counted), now)
            elif now > since + PATIENCE_S:
                raise SystemExit(f"client {number} waits for {now - since:.0f} s")
        if self.server.poll() is not None:
            raise SystemExit(f"the server has ended with {self.server.returncode}: {self._log()[-500:]}")

    def last(self) -> None:
        """Read everything once more, from a new server and a new upstream."""
        for process in self.clients:
            process.kill()
            process.wait()
        self._stop_server(signal.SIGTERM)
        self.upstream.kill()
        self.upstream.wait()
        self.upstream = self._start_upstream()
        self.server = self._start_server()
        for number in range(CLIENTS):
            status = self._start_client(number, "--last-client").wait(PATIENCE_S)
            if status:
                raise SystemExit(f"client {number} at the end: {self._log()[-500:]}")
        if "panicked" in self._log():
            raise SystemExit(f"the server has panicked: {self._log()}")

    def end(self) -> None:
        """Kill everything."""
        for process in self.processes:
            process.kill()
            process.wait()


def main() -> None:
    """Run, and print the counts as JSON, each minute and at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--command", default=str(Path(sys.executable).parent / "headstart"))
    asked = parser.parse_args()
    for line in (["nbdkit", "--version"], [PYTHON, "-c", "import nbd"]):
        try:
            subprocess.run(line, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            raise SystemExit(f"{' '.join(line)}: does not work; --help says what is needed") from None
    begun, said = time.monotonic(), 0.0
    with tempfile.TemporaryDirectory(prefix="headstart-faults-") as folder:
        run = Run(Path(folder), asked.command, asked.seed)
        try:
            while (elapsed := time.monotonic() - begun) < asked.seconds:
                time.sleep(run.numbers.uniform(0.2, 2))
                run.check()
                run.fault()
                if elapsed > said + 60:
                    said = elapsed
                    print(json.dumps({"seconds": round(elapsed), **run.totals(), "faults": run.faults}), flush=True)
            run.last()
        finally:
            run.end()
            counted = {"seed": asked.seed, "seconds": round(time.monotonic() - begun), **run.totals()}
            print(json.dumps({**counted, "faults": run.faults}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] in (["--client"], ["--last-client"]):
        which = int(sys.argv[2])
        client(Model(Path(sys.argv[3]), which), "s.sock", is_last=sys.argv[1] == "--last-client")
    else:
        main()

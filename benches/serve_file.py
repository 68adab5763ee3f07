"""A file for clients of the NBD protocol: `headstart serve` beside qemu-nbd and nbdkit, cached and cold.

Each server reads the same file for fio's NBD engine over a Unix socket. They take turns, as other work on the machine
makes single runs differ: compare figures of one run only. Beside the rates stand the seconds of processor that a
server takes for a GiB, which other work hardly changes.

Cached: the file is in the kernel's page cache, and `serve` has all of it in its cache or nothing; its report must show
that it has read the file once only. Cold: the page cache has been told to forget the file, and the server has just
started. `device` is what fio reads of the file itself without the page cache, 4 MiB at a time with four under way.
`--rest` leaves the device alone before each cold run: devices that a hypervisor limits give more after a rest. Cold
random reads are the same ones for each server, of an eighth of the file: where most of a file is read so, a faster
server finds more of it in the page cache, and the kernel reads ahead between what has been read.

Goals: at least 1.0 times the better peer, cached and cold, of sequential reads of 1 MiB and of random reads of 4 KiB
with 32 under way; and no more processor than the better peer.

Needs Linux, fio with its NBD and io_uring engines, qemu-nbd and nbdkit (Debian: `fio`, `qemu-utils`, `nbdkit`).

    python benches/serve_file.py
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from serving import fio, needed, running

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
RANDOM_S = 4
COLD_SHARE = 8
"""Cold random reads take a part of the file, one in so many."""
REREAD_MAX = 1.01


@dataclass(frozen=True)
class Server:
    """A command that serves a file at a socket."""

    name: str
    command: tuple[str, ...]
    reads_all: bool = False
    """All of the file is read once before it is measured."""
    cold: bool = False
    """The page cache forgets the file before it is measured."""

    def started_by(self, image: Path, at: Path, size: int) -> list[str]:
        """Return its command line, for a file of so many bytes."""
        return [part.format(image=image, socket=at, size=size, report=report_of(image)) for part in self.command]


OWN = ("headstart", "serve", "{image}", "--socket", "{socket}", "--json", "{report}", "--cache")
QEMU = ("qemu-nbd", "-r", "-t", "-e", "8", "-f", "raw", "-k", "{socket}", "{image}")
NBDKIT = ("nbdkit", "-f", "-r", "-U", "{socket}", "file", "{image}")
STATES = {
    "cached": (
        Server("serve, all in its cache", (*OWN, "{size}B"), reads_all=True),
        Server("serve, all in the page cache", (*OWN, "64MiB")),
        Server("qemu-nbd", QEMU),
        Server("nbdkit file", NBDKIT),
    ),
    "cold": (
        Server("serve", (*OWN, "64MiB"), cold=True),
        Server("qemu-nbd", QEMU, cold=True),
        Server("nbdkit file", NBDKIT, cold=True),
    ),
}
DEVICE = "device"
JOBS = {
    "1 MiB, one at a time": ("--rw=read", "--bs=1m", "--iodepth=1"),
    "1 MiB, four under way": ("--rw=read", "--bs=1m", "--iodepth=4"),
    "4 KiB at random": ("--rw=randread", "--bs=4k", "--iodepth=32"),
}
RAW = ("--ioengine=io_uring", "--direct=1", "--rw=read", "--bs=4m", "--iodepth=4")


@dataclass(frozen=True)
class Figure:
    """One run."""

    mib_per_s: float
    processor_s_per_gib: float


Found = dict[tuple[str, str, str], list[Figure]]


def processor_s(pid: int) -> float:
    """Return what a process has taken, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def run(pid: int, at: Path, size: int, server: Server, job: str) -> Figure:
    """Run one job."""
    options = JOBS[job]
    if "--rw=randread" in options:
        cold, cached = (f"--io_size={size // COLD_SHARE}",), ("--time_based", f"--runtime={RANDOM_S}")
        options += cold if server.cold else cached
    before = processor_s(pid)
    read = fio("--ioengine=nbd", f"--uri=nbd+unix:///?socket={at}", f"--size={size}", *options)
    return Figure(read["bw_bytes"] / 2**20, (processor_s(pid) - before) * 2**30 / read["io_bytes"])


def forget(image: Path) -> None:
    """Have the page cache forget a file."""
    with image.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def remember(image: Path) -> None:
    """Have the page cache hold a file."""
    with image.open("rb") as file:
        while file.read(1 << 20):
            pass


def report_of(image: Path) -> Path:
    """Where `serve` writes its report."""
    return image.with_suffix(".json")


def check_cached(image: Path, size: int) -> None:
    """Stop unless the server that has ended has read the file once, and a little to measure the storage."""
    read = json.loads(report_of(image).read_text(encoding="utf-8"))["exports"][0]["backing_read_bytes"]
    if read > size * REREAD_MAX:
        raise SystemExit(f"serve: has read {read:,} bytes of {size:,}: the file is not all in its cache")


def measured(image: Path, arguments: argparse.Namespace) -> Found:
    """Return the runs of each state, server and job."""
    found: Found = {}

    def add(key: tuple[str, str, str], figure: Figure) -> None:
        print(*key, figure, sep=", ", file=sys.stderr)
        found.setdefault(key, []).append(figure)

    size, at = arguments.mib << 20, image.with_suffix(".sock")
    for _ in range(arguments.rounds):
        for state in arguments.states:
            for job in arguments.jobs:
                for server in STATES[state]:
                    (forget if server.cold else remember)(image)
                    time.sleep(arguments.rest if server.cold else 0)
                    with running(server.started_by(image, at, size), at.exists) as pid:
                        if server.reads_all:
                            run(pid, at, size, server, "1 MiB, four under way")
                        if server.cold:
                            # What it has read to measure the storage.
                            forget(image)
                        figure = run(pid, at, size, server, job)
                    at.unlink(missing_ok=True)
                    if server.reads_all:
                        check_cached(image, size)
                    add((state, job, server.name), figure)
                if state == "cold":
                    time.sleep(arguments.rest)
                    raw = fio(f"--filename={image}", f"--size={size}", *RAW)
                    add((state, job, DEVICE), Figure(raw["bw_bytes"] / 2**20, 0.0))
    return found


def show(found: Found) -> None:
    """Print medians, and each of ours beside the better peer."""
    rate = {key: statistics.median(each.mib_per_s for each in runs) for key, runs in found.items()}
    cost = {key: statistics.median(each.processor_s_per_gib for each in runs) for key, runs in found.items()}
    for state, job in dict.fromkeys(key[:2] for key in found):
        peers = [(state, job, each.name) for each in STATES[state] if not each.name.startswith("serve")]
        best, least = max(rate[peer] for peer in peers), min(cost[peer] for peer in peers)
        per_mib, unit = (256, "a second") if "4 KiB" in job else (1, "MiB/s")
        print(f"{state}: {job}")
        for key in (key for key in found if key[:2] == (state, job)):
            line = f"  {key[2]}: {rate[key] * per_mib:,.0f} {unit}"
            if key[2] != DEVICE:
                line += f", {cost[key]:.2f} s of processor for a GiB"
            if key[2].startswith("serve"):
                # A short run takes less than a tick of the clock that counts it.
                taken = cost[key] / least if least else math.inf
                line += f"; {rate[key] / best:.2f} and {taken:.2f} of the better peer's"
            print(line)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=2048, help="size of the file")
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many")
    parser.add_argument("--rest", type=float, default=4, help="seconds before each cold run")
    parser.add_argument("--states", nargs="+", choices=STATES, default=list(STATES), help="cached, cold or both")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS), help="which jobs")
    arguments = parser.parse_args()
    needed("headstart", "fio", "qemu-nbd", "nbdkit")
    with tempfile.TemporaryDirectory(prefix="serve-file-", dir="/var/tmp") as folder:
        image = Path(folder) / "image.raw"
        with image.open("wb") as file:
            for _ in range(arguments.mib):
                file.write(os.urandom(1 << 20))
        show(measured(image, arguments))


if __name__ == "__main__":
    main()

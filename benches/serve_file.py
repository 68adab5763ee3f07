"""A file in the page cache, for clients of the NBD protocol: `headstart serve` beside qemu-nbd and nbdkit.

Each server reads the same file for fio's NBD engine over a Unix socket. They take turns, as other work on the machine
makes single runs differ: compare figures of one run only. Beside the rates stand the seconds of processor that a
server takes for a GiB, which other work hardly changes.

Goals: at least 1.0 times the better peer, with all of it in the cache of `serve` and with nothing, of sequential reads
of 1 MiB and of random reads of 4 KiB with 32 under way; and no more processor than the better peer.

Needs Linux, fio with its NBD engine, qemu-nbd and nbdkit (Debian: `fio`, `qemu-utils`, `nbdkit`).

    python benches/serve_file.py
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from serving import fio, needed, running

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
RANDOM_S = 4


@dataclass(frozen=True)
class Server:
    """A command that serves a file at a socket."""

    name: str
    command: tuple[str, ...]
    warm: bool = False
    """All of the file is read once before it is measured."""

    def started_by(self, image: Path, at: Path) -> list[str]:
        """Return its command line."""
        return [part.format(image=image, socket=at) for part in self.command]


OWN = ("headstart", "serve", "{image}", "--socket", "{socket}", "--cache")
CACHED, COLD = "serve, all in the cache", "serve, nothing in the cache at first"
SERVERS = (
    Server(CACHED, (*OWN, "1GiB"), warm=True),
    Server(COLD, (*OWN, "64MiB")),
    Server("qemu-nbd", ("qemu-nbd", "-r", "-t", "-e", "8", "-f", "raw", "-k", "{socket}", "{image}")),
    Server("nbdkit file", ("nbdkit", "-f", "-r", "-U", "{socket}", "file", "{image}")),
)
PEERS = tuple(each.name for each in SERVERS if not each.name.startswith("serve"))
JOBS = {
    "1 MiB, one at a time": ("--rw=read", "--bs=1m", "--iodepth=1"),
    "1 MiB, four under way": ("--rw=read", "--bs=1m", "--iodepth=4"),
    "4 KiB at random": ("--rw=randread", "--bs=4k", "--iodepth=32", "--time_based", f"--runtime={RANDOM_S}"),
}


@dataclass(frozen=True)
class Figure:
    """One run."""

    mib_per_s: float
    processor_s_per_gib: float


def processor_s(pid: int) -> float:
    """Return what a process has taken, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def run(pid: int, at: Path, size: int, options: tuple[str, ...]) -> Figure:
    """Run one job."""
    before = processor_s(pid)
    read = fio("--ioengine=nbd", f"--uri=nbd+unix:///?socket={at}", f"--size={size}", *options)
    return Figure(read["bw_bytes"] / 2**20, (processor_s(pid) - before) * 2**30 / read["io_bytes"])


def measured(image: Path, size: int, rounds: int) -> dict[tuple[str, str], list[Figure]]:
    """Return the runs of each server and job."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for _ in range(rounds):
        for job, options in JOBS.items():
            for server in SERVERS:
                at = image.with_suffix(".sock")
                with running(server.started_by(image, at), at.exists) as pid:
                    if server.warm:
                        run(pid, at, size, JOBS["1 MiB, four under way"])
                    figure = run(pid, at, size, options)
                at.unlink(missing_ok=True)
                found.setdefault((server.name, job), []).append(figure)
                print(f"{server.name}, {job}: {figure}", file=sys.stderr)
    return found


def show(found: dict[tuple[str, str], list[Figure]]) -> None:
    """Print medians, and each of ours beside the better peer."""
    rate = {key: statistics.median(each.mib_per_s for each in runs) for key, runs in found.items()}
    cost = {key: statistics.median(each.processor_s_per_gib for each in runs) for key, runs in found.items()}
    for job in JOBS:
        per_mib = 256 if "4 KiB" in job else 1
        unit = "a second" if "4 KiB" in job else "MiB/s"
        best, least = max(rate[peer, job] for peer in PEERS), min(cost[peer, job] for peer in PEERS)
        print(job)
        for server in SERVERS:
            key = (server.name, job)
            line = f"  {server.name}: {rate[key] * per_mib:,.0f} {unit}, {cost[key]:.2f} s of processor for a GiB"
            if server.name not in PEERS:
                line += f"; {rate[key] / best:.2f} and {cost[key] / least:.2f} of the better peer's"
            print(line)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=512, help="size of the file")
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many")
    arguments = parser.parse_args()
    needed("headstart", "fio", "qemu-nbd", "nbdkit")
    with tempfile.TemporaryDirectory(prefix="serve-file-", dir="/var/tmp") as folder:
        image = Path(folder) / "image.raw"
        with image.open("wb") as file:
            for _ in range(arguments.mib):
                file.write(os.urandom(1 << 20))
        show(measured(image, arguments.mib << 20, arguments.rounds))


if __name__ == "__main__":
    main()

"""`headstart emulate`: a file that is as slow as a disk."""

import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headstart import emulation
from headstart.cli import options, output
from headstart.cli.device import Set, keys_of

WINDOW = 10
"""Rates are those of so many looks, which is a second."""


class Watch:
    """What happens while it is mounted: a status line on a terminal, and the end once a signal has come."""

    def __init__(self, mount: Path) -> None:
        self.mount = mount
        self.stopped = False
        self.looks: deque[emulation.Statistics] = deque(maxlen=WINDOW + 1)
        console = Console(stderr=True, highlight=False)
        self.live = Live(console=console, auto_refresh=False, transient=True) if sys.stderr.isatty() else None

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """Take a signal. A second one finds nothing more to do: unmounting waits for nobody."""
        self.stopped = True

    def look(self, now: emulation.Statistics) -> bool:
        """Show `now`; return whether it is to be unmounted."""
        if not self.looks:
            print(f"{now.profile} behind {now.scheduler}: {self.mount / 'disk.img'}", file=sys.stderr, flush=True)
            if self.live is not None:
                self.live.start()
        self.looks.append(now)
        if self.live is not None:
            self.live.update(Text(status(self.looks[0], now)), refresh=True)
        return self.stopped

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Take the signals that end a process, and give them back."""
        before = {each: signal.signal(each, self.stop) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            if self.live is not None:
                self.live.stop()
            for each, handler in before.items():
                signal.signal(each, handler)


def status(then: emulation.Statistics, now: emulation.Statistics) -> str:
    """Return the line for what was done from `then` to `now`."""
    passed = max(now.elapsed_ns - then.elapsed_ns, 1) / 1e9
    requests = (now.requests - then.requests) / passed
    rate = (now.bytes - then.bytes) / passed / 1e6
    busy = (now.busy_ns - then.busy_ns) / passed / 1e9
    late = output.duration(now.lateness_ns.p99)
    return (
        f"{requests:,.0f} requests/s, {rate:,.1f} MB/s, {busy:.0%} busy, {now.outstanding} outstanding; "
        f"{now.requests:,} in all, 99 % of them at most {late} late"
    )


def emulate(
    profile: Annotated[
        str, typer.Argument(metavar="PROFILE", help="A name of `headstart list devices`, or a profile's path.")
    ],
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="What the disk holds: a file or a block device.")],
    mount: Annotated[Path, typer.Argument(metavar="MOUNT", help="An empty folder.")],
    settings: Set = None,
    scheduler: Annotated[
        str, typer.Option(metavar="NAME", help="What orders the queue: a name of `headstart list schedulers`.")
    ] = "fcfs",
    json: options.Json = None,
) -> None:
    """Show IMAGE as MOUNT/disk.img, a file whose reads take the time that the drive PROFILE needs for them.

    It can be read and not written. MOUNT/stats (JSON) and MOUNT/stats.openmetrics say what it has done. It stays until
    it is unmounted, or until Ctrl-C or SIGTERM, which unmount it: all of them are exit status 0. --json writes the
    statistics at the end. Linux; needs root, or the program fusermount3. docs/emulate.md puts a file system on it.

    Example: headstart emulate ibm-36gb-10k disk.img /mnt/emulated
    """
    output.check_targets(json)
    watch = Watch(mount)
    with watch.signals():
        ended = emulation.emulate(
            profile, image, mount, keys=keys_of(settings), scheduler=scheduler, progress=watch.look
        )
    if ended.was_in_use:
        print(f"{mount}: was still in use; who has files of it open gets errors from now on", file=sys.stderr)
    if json is not None:
        output.write_json(json, output.as_json(ended.to_dict()))
    if json != "-":
        print_statistics(output.console(), ended.statistics)


def print_statistics(console: Console, done: emulation.Statistics) -> None:
    """Print statistics for people."""
    console.print(f"{done.profile} behind {done.scheduler}, {output.seconds(done.elapsed_ns)}", markup=False)
    mean = max(done.requests, 1)
    served = max(done.device_requests, 1)
    parts = ("seek", "rotation", "transfer", "overhead", "wait")
    times = {part: getattr(done, f"{part}_ns") // served for part in parts}
    rows = {
        "requests": f"{done.requests:,}, {done.sequential_share:.1%} sequential, {done.bytes / 1e6:,.1f} MB",
        "busy": f"{output.seconds(done.busy_ns)}, {done.utilization:.1%}",
        "queue": f"mean {output.duration(done.queue_ns // mean)}, at most {done.queue_depth_max} outstanding",
        "service": f"mean {output.duration(done.service_ns // served)}: "
        + ", ".join(f"{part} {output.duration(time)}" for part, time in times.items() if time),
        "lateness": f"mean {output.duration(done.lateness_ns.mean)}, 99 % at most "
        f"{output.duration(done.lateness_ns.p99)}, at most {output.duration(done.lateness_ns.max)}",
    }
    if done.failed:
        rows["failed"] = f"{done.failed:,} requests: the image could not be read"
    if done.fuse_round_trip_ns is not None:
        rows["FUSE"] = f"{output.duration(done.fuse_round_trip_ns)} beside the drive for a read, at the mount"
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in rows.items():
        table.add_row(name, value.removesuffix(": "))
    console.print(table)

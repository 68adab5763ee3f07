"""`headstart emulate`: a file with the service times of a disk."""

import sys

from rich.console import Console
from rich.table import Table

from headstart.cli import options, output
from headstart.cli.following import ENDING, Following
from headstart.cli.shown import plain, safe
from headstart.live.core import Record, command


def status(then: Record, now: Record) -> str:
    """Return the status line for the time from `then` to `now`."""
    passed = max(now.elapsed_ns - then.elapsed_ns, 1) / 1e9
    requests = (now.requests - then.requests) / passed
    rate = (now.bytes - then.bytes) / passed / 1e6
    busy = (now.busy_ns - then.busy_ns) / passed / 1e9
    late = output.duration(now.lateness_ns.p99)
    return (
        f"{requests:,.0f} requests/s, {rate:,.1f} MB/s, {busy:.0%} busy, {now.outstanding} outstanding; "
        f"{now.requests:,} in all, 99 % of them at most {late} late"
    )


@options.of_core("emulate")
def emulate(given: options.Given, json: options.Json = None) -> None:
    """Provide IMAGE as MOUNT/disk.img, a file whose reads take as long as on the drive PROFILE.

    The file is read-only. MOUNT/stats (JSON) and MOUNT/stats.openmetrics hold its statistics; --json writes them at the
    end. The file stays until it is unmounted. Ctrl-C, SIGTERM and SIGHUP unmount it; the exit status is 0 in each case.
    Requires Linux, and root or the program fusermount3. docs/emulate.md shows how to put a file system on the file.

    Example: headstart emulate ibm-36gb-10k disk.img /mnt/emulated
    """
    output.check_targets(json)
    options.check_files("emulate", given, {"--json": json})
    mount = given["mount"]
    # Unmounting does not wait for other processes, so a second signal has no further effect.
    watch = Following(
        ENDING,
        lambda now: [f"{now.profile} behind {now.scheduler}: {mount / 'disk.img'}"],
        status,
    )
    with watch.signals():
        ended = command("emulate", given, watch.look)
    if ended.was_in_use:
        print(f"{plain(mount)}: was still in use; processes with open files get errors from now on", file=sys.stderr)
    if ended.was_covered:
        problem = "something else is mounted on it, which stays"
        print(f"{plain(mount)}: {problem}; umount that, then {plain(mount)} itself", file=sys.stderr)
    if json is not None:
        output.write_json(json, output.as_json(ended))
    if json != "-":
        print_statistics(output.console(), ended)


def print_statistics(console: Console, done: Record) -> None:
    """Print the statistics as text."""
    title = f"{plain(done.profile)} behind {done.scheduler}, {output.seconds(done.elapsed_ns)}"
    console.print(title, markup=False)
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
        table.add_row(name, safe(value.removesuffix(": ")))
    console.print(table)

"""`headstart tune`: sets the read-ahead of a real device."""

import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from headstart.cli import options, output
from headstart.cli.following import ENDING, Following
from headstart.cli.shown import plain, safe
from headstart.live.core import Record, command


class Watcher(Following[Record]):
    """Prints the status and the notes of a watch."""

    def __init__(self) -> None:
        super().__init__(
            ENDING,
            lambda now: [f"{described(now.device)}: {now.found_kb:,} KiB, now {now.now_kb:,} and followed"],
            status_line,
        )
        self.said = 0

    def look(self, now: Record) -> bool:
        """Print the notes and the status of `now`; return whether the watch is to end."""
        self.say(now)
        return super().look(now)

    def say(self, now: Record) -> None:
        """Print the notes added since the last call."""
        say(now.notes[self.said :])
        self.said = len(now.notes)


def status_line(then: Record, now: Record) -> str:
    """Return the status line for the time from `then` to `now`."""
    passed = max(now.elapsed_ns - then.elapsed_ns, 1) / 1e9
    requests = now.requests - then.requests
    switches = now.switches - then.switches
    share = switches / requests if requests else 0.0
    low = ", for random faults" if now.low_for_faults else ""
    return (
        f"{requests / passed:,.0f} requests/s, {share:.0%} of them switches; seeks {now.seek_ns / 1e6:.2f} ms, "
        f"{now.bytes_per_second / 1e6:,.1f} MB/s: {now.bytes / 1e3:,.1f} kB; read-ahead {now.now_kb:,} KiB{low}"
    )


@options.of_core("tune")
def tune(given: options.Given, json: options.Json = None) -> None:
    """Set the read-ahead of Linux on DEVICE to the drive's competitive depth (Li, Shen, Papathanasiou 2007).

    The competitive depth is the amount of data that the drive transfers in the time of a switch: a seek plus half a
    rotation. With it, the disk is busy less than twice as long as with prefetching that knows the lengths of the
    streams, if the kernel's slow start is left aside. The only value written is read_ahead_kb of the backing device.

    Example: headstart tune /dev/sda --profile my-drive.toml --apply
    """
    output.check_targets(json)
    options.check_files("tune", given, {"--json": json})
    if "watch" in given:
        follow(given, json)
        return
    report = command("tune", given)
    if json is not None:
        output.write_json(json, output.as_json(report))
    if json != "-":
        print_report(output.console(), report)
    else:
        say(report.notes)


def follow(given: dict[str, Any], json: str | None) -> None:
    """Watch until a signal arrives, then print a summary."""
    if "openmetrics" in given:
        output.check_file(str(given["openmetrics"]))
    watcher = Watcher()
    with watcher.signals():
        status = command("tune-watch", given, watcher.look)
    watcher.say(status)
    if json is not None:
        output.write_json(json, output.as_json(status))
    if json != "-":
        print_table(output.console(), status_rows(status))


def say(notes: list[str]) -> None:
    """Print notes to stderr."""
    for note in notes:
        print(plain(note), file=sys.stderr)


def print_report(console: Console, report: Record) -> None:
    """Print a report as text."""
    print_table(console, rows(report))
    for note in report.notes:
        console.print(plain(note), markup=False)


def print_table(console: Console, lines: dict[str, str]) -> None:
    """Print names and their values."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in lines.items():
        table.add_row(name, safe(value))
    console.print(table)


ENDS = {
    "stopped": "stopped",
    "time": "the time was over",
    "gone": "the device has gone",
    "changed": "another program has set the read-ahead",
}


def status_rows(status: Record) -> dict[str, str]:
    """Return the summary of a watch that has ended."""
    lost = f", {status.lost:,} events lost" if status.lost else ""
    lines = {}
    if status.read_arounds:
        lines["faults"] = read_arounds(status)
    between = f"{status.lowest_kb:,} to {status.highest_kb:,} KiB" if status.highest_kb is not None else "none"
    return {
        "device": described(status.device),
        "watched": f"{output.seconds(status.elapsed_ns)}; {ENDS[status.ended or 'stopped']}",
        "seen": f"{status.requests:,} requests, {status.switches:,} switches{lost}",
        "depth": f"({status.seek_ns / 1e6:.2f} ms seek + {status.half_turn_ns / 1e6:.2f} ms half a turn) x "
        f"{status.bytes_per_second / 1e6:,.1f} MB/s = {status.bytes / 1e3:,.1f} kB at the end",
        **lines,
        "written": f"{status.writes:,} time{'s' * (status.writes != 1)}, {between}",
        "now": f"{status.now_kb:,} KiB; {status.found_kb:,} was found",
    }


def read_arounds(status: Record) -> str:
    """Return the amount that the kernel read around faults, and the share that was used."""
    used = status.around_used_bytes / status.around_bytes if status.around_bytes else 0.0
    lost = f", {status.lost_faults:,} events lost" if status.lost_faults else ""
    paused = f", {status.fault_pauses:,} times too many to be followed" if status.fault_pauses else ""
    return (
        f"read around {status.read_arounds:,} of them; of {status.around_bytes / 1e6:,.1f} MB beside their own 64 KiB "
        f"{used:.0%} used{lost}{paused}"
    )


def rows(report: Record) -> dict[str, str]:
    """Return a report as text."""
    lines = {"device": described(report.device)}
    proposed = report.proposed
    lines["now"] = f"{report.now_kb:,} KiB"
    if report.now_kb != report.found_kb:
        lines["now"] += f"; it was {report.found_kb:,}"
    if proposed is not None:
        if report.action == "dry-run":
            lines["proposed"] = f"{proposed.kb:,} KiB"
        lines["why"] = why(proposed)
    if report.old_kb is not None:
        lines["restore"] = f"{report.old_kb:,} KiB"
    if report.watcher is not None:
        lines["watched"] = f"by process {report.watcher.pid}"
    return lines


def described(device: Record) -> str:
    """Return the device's name and number, and how it was found."""
    name = device.name or "a file system without a block device"
    parts = [f"{name} ({device.number})"]
    if device.partition is not None:
        parts.append(f"the disk of {device.partition}")
    if device.made_of:
        parts.append(f"made of {', '.join(device.made_of)}")
    if device.kind == "loop" and device.identity:
        parts.append(device.identity)
    return ", ".join(parts)


def why(depth: Record) -> str:
    """Return how a depth was computed."""
    pages = f"{depth.pages:,} page{'s' * (depth.pages != 1)} of {depth.page_bytes // 1024:,} KiB"
    if depth.saturating_bytes is not None and depth.bytes_per_second is not None:
        return (
            f"{depth.profile}: one read at a time of {depth.saturating_bytes // 1024:,} KiB transfers within 5 % of "
            f"the most, {depth.bytes_per_second / 1e6:,.1f} MB/s: {pages}"
        )
    if depth.seek_ns is None or depth.half_turn_ns is None or depth.bytes_per_second is None:
        return f"{depth.bytes / 1e3:,.1f} kB as given: {pages}"
    return (
        f"{depth.profile}: ({depth.seek_ns / 1e6:.2f} ms mean seek + {depth.half_turn_ns / 1e6:.2f} ms half a turn) x "
        f"{depth.bytes_per_second / 1e6:,.1f} MB/s = {depth.bytes / 1e3:,.1f} kB: {pages}"
    )

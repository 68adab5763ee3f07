"""`headstart tune`: the read-ahead of a real device."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headstart import tuning
from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.device import Set, keys_of


def tune(
    device: Annotated[
        Path,
        typer.Argument(
            metavar="DEVICE", readable=False, help="A disk, partition or loop device, or a path on what is meant."
        ),
    ],
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="The drive: a name of `headstart list devices`, or a profile's path."),
    ] = None,
    settings: Set = None,
    depth: Annotated[str | None, typer.Option(metavar="SIZE", help="So much, whatever the drive.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what there is and what should be. The default; needs no root.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write it; it stays until --restore, or the next boot.")
    ] = False,
    restore: Annotated[bool, typer.Option("--restore", help="Write what was found before the first --apply.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --restore: even if somebody else has changed it since.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            readable=False,
            help="Where what was found is kept: /var/lib/headstart/tune.json by default.",
        ),
    ] = None,
    json: options.Json = None,
) -> None:
    """Set how far Linux reads ahead on DEVICE: what the drive transfers in the time of a switch.

    That is the competitive depth (Li, Shen, Papathanasiou 2007): whatever the streams' lengths, the disk works less
    than twice as long as one that knows them. The one number that is written is read_ahead_kb of the backing device.

    Example: headstart tune /dev/sda --profile my-drive.toml --apply
    """
    action = one_of({"--dry-run": dry_run, "--apply": apply, "--restore": restore})
    output.check_targets(json)
    if action == "--restore":
        refuse("--restore", {"--profile": profile, "--depth": depth, "--set": settings})
        report = tuning.restore(device, force=force, state=state)
    else:
        refuse(action, {"--force": force or None})
        write = tuning.apply if action == "--apply" else tuning.show
        report = write(device, profile=profile, keys=keys_of(settings), depth=depth, state=state)
    if json is not None:
        output.write_json(json, output.as_json(report.to_dict()))
    if json != "-":
        print_report(output.console(), report)
    else:
        say(report.notes)


def one_of(chosen: dict[str, bool]) -> str:
    """Return the one action that was chosen; the first if none was."""
    named = [name for name, is_chosen in chosen.items() if is_chosen]
    if len(named) > 1:
        raise HeadstartError(f"{named[1]}: stands beside {named[0]}; allowed: one of {', '.join(chosen)}")
    return named[0] if named else next(iter(chosen))


def refuse(action: str, without: dict[str, object]) -> None:
    """Refuse options that mean nothing with an action."""
    for name, value in without.items():
        if value is not None:
            raise HeadstartError(f"{name}: means nothing with {action}; allowed: {action} without it")


def say(notes: list[str]) -> None:
    """Say notes where they are in nobody's way."""
    for note in notes:
        print(note, file=sys.stderr)


def print_report(console: Console, report: tuning.Report) -> None:
    """Print a report for people."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in rows(report).items():
        table.add_row(name, value)
    console.print(table)
    for note in report.notes:
        console.print(note, markup=False)


def rows(report: tuning.Report) -> dict[str, str]:
    """Return what is printed of a report."""
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


def described(device: tuning.Device) -> str:
    """Return which device it is, and how it was found."""
    name = device.name or "a file system without a block device"
    parts = [f"{name} ({device.number})"]
    if device.partition is not None:
        parts.append(f"the disk of {device.partition}")
    if device.made_of:
        parts.append(f"made of {', '.join(device.made_of)}")
    if device.kind == "loop" and device.identity:
        parts.append(device.identity)
    return ", ".join(parts)


def why(depth: tuning.Depth) -> str:
    """Return what a depth comes from."""
    pages = f"{depth.pages:,} page{'s' * (depth.pages != 1)} of {depth.page_bytes:,} B"
    if depth.seek_ns is None or depth.half_turn_ns is None or depth.bytes_per_second is None:
        return f"{depth.bytes / 1e3:,.1f} kB as given: {pages}"
    return (
        f"{depth.profile}: ({depth.seek_ns / 1e6:.2f} ms mean seek + {depth.half_turn_ns / 1e6:.2f} ms half a turn) x "
        f"{depth.bytes_per_second / 1e6:,.1f} MB/s = {depth.bytes / 1e3:,.1f} kB: {pages}"
    )

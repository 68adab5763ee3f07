"""`headstart record`: records the pages that a command reads."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli import output
from headstart.cli.shown import plain
from headstart.live import record as recording

Target = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write.", show_default=False)]
Cold = Annotated[
    bool,
    typer.Option(
        "--cold", help="First drop the page cache and the dentry and inode caches. This affects all programs."
    ),
]
Buffer = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="The kernel's buffer per processor. Default: 4MiB; increase it if events are lost."
    ),
]
Command = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")]


def record(output_file: Target, command: Command, cold: Cold = False, buffer: Buffer = None) -> None:
    """Run CMD and record every page that it and its children read, cached or not.

    The recording covers read calls, page faults on mapped files, programs, directories and file-system metadata, in
    order, with the waits for the device. CMD keeps its streams, signals and exit status. Requires root and Linux 6.12;
    see docs/record.md.

    Example: headstart record -o git.hints --cold -- git status
    """
    _record(output_file, command, to="hints", cold=cold, buffer=buffer)


def record_trace(output_file: Target, command: Command, cold: Cold = False, buffer: Buffer = None) -> None:
    """Run CMD and write every page that it and its children read to a CSV trace.

    Like `headstart record`, but in a format that other programs read. NAME.files.csv maps file numbers to paths.

    Example: headstart trace record -o git.csv --cold -- git status
    """
    _record(output_file, command, to="csv", cold=cold, buffer=buffer)


def _record(target: Path, command: list[str], *, to: str, cold: bool, buffer: str | None) -> None:
    output.check_file(str(target))
    done = recording.record(command, target, to=to, cold=cold, buffer=buffer)
    print(plain(f"headstart: {target}: {described(done['summary'])}"), file=sys.stderr)
    for note in notes(done["summary"]):
        print(f"headstart: {note}", file=sys.stderr)
    raise typer.Exit(done["about"]["exit_status"])


def described(summary: dict[str, Any]) -> str:
    """Return a summary in one line."""
    cached = summary["hits"] / max(summary["references"], 1)
    return (
        f"{summary['references']:,} reads of {summary['files']:,} files, {cached:.0%} cached; "
        f"{summary['miss_bytes'] / 1e6:,.1f} MB came from devices, "
        f"and {summary['metadata_bytes'] / 1e6:,.2f} MB of metadata, "
        f"with {output.seconds(summary['wait_ns'])} of waiting"
    )


def notes(summary: dict[str, Any]) -> list[str]:
    """Return warnings about the recording."""
    said = []
    if summary["lost_events"]:
        said.append(f"{summary['lost_events']:,} events were lost: reads may be missing; try --buffer 64MiB")
    if summary["unnamed_files"]:
        said.append(f"{summary['unnamed_files']:,} files have no path: they were removed, or could not be found")
    return said

"""`headstart record`: records the pages that a command reads."""

import sys
from typing import Any

import typer

from headstart.cli import options, output
from headstart.cli.shown import plain
from headstart.live import record as recording


@options.of_core("record")
def record(given: options.Given) -> None:
    """Run CMD and record every page that it and its children read, cached or not.

    The recording covers read calls, page faults on mapped files, programs, directories and file-system metadata, in
    order, with the waits for the device. CMD keeps its streams, signals and exit status. Requires root and Linux 6.12;
    see docs/record.md.

    Example: headstart record -o git.hints --cold -- git status
    """
    _record(given)


@options.of_core("record")
def record_trace(given: options.Given) -> None:
    """Run CMD and write every page that it and its children read to a CSV trace.

    Like `headstart record`, but in a format that other programs read. NAME.files.csv maps file numbers to paths.

    Example: headstart trace record -o git.csv --cold -- git status
    """
    _record({**given, "to": "csv"})


def _record(given: dict[str, Any]) -> None:
    target = given["target"]
    output.check_file(str(target))
    done = recording.record(**given)
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

"""`python -m headstart_lab.hintstudy`, which `make hints-study` runs."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli import exits, output
from headstart_lab import measured
from headstart_lab.hintstudy.study import DISKS, Timing, Timings, check_disks, findings, study
from headstart_lab.livestudy import platform
from headstart_lab.measured import FOUND

COLUMNS = ("command", "way", "s", "of plain", "spread", "MB read", "forecast s", "off")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def hints_study(
    disk: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(DISKS)}; repeatable. All if none.")] = None,
    command: Annotated[list[str] | None, typer.Option(help="A command of the study; repeatable. All if none.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs on emulated drives; the median counts.")] = 1,
    own_repeats: Annotated[int, typer.Option(min=1, help="Runs on the machine's own disk.")] = 5,
    guard: Annotated[bool, typer.Option(help="Measure wrong hints, little memory, busy disks too.")] = True,
    compare: Annotated[bool, typer.Option(help="Measure the commands in all ways.")] = True,
    folder: Annotated[Path, typer.Option(help="Where the files are made; 1 GB.")] = Path("/var/tmp"),
    json: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write it as JSON.")] = None,
    docs: Annotated[Path | None, typer.Option(metavar="FILE", help="Put the tables between a file's marks.")] = None,
) -> None:
    """Run commands with cold caches: plain, by headstart run, and with their lists replayed. Needs root; half an hour.

    Example: python -m headstart_lab.hintstudy --disk ibm-36gb-10k --command 'git status'
    """
    wanted = disk or list(DISKS)
    check_disks(wanted)
    output.check_targets(json)
    page = None if docs is None else measured.Page(docs, "hints-study")
    reason = platform.why_not()
    if reason is not None:
        # Printed, but not a failure: the program itself is fine.
        print(f"hints-study: SKIPPED: {reason}; it needs Linux, root, FUSE and loop devices", file=sys.stderr)
        return
    with platform.unwinding_on_signals():
        found = study(
            wanted,
            only=command or (),
            repeats=repeats,
            own_repeats=own_repeats,
            guard=guard,
            compare=compare,
            folder=folder,
            tell=lambda text: print(text, file=sys.stderr),
        )
    show(output.console(), found)
    if json is not None:
        judged = [row.to_dict() for row in findings(found)]
        output.write_json(json, output.as_json({**dataclasses.asdict(found), "findings": judged}))
    if page is not None:
        page.write(markdown(found))


def cells(row: Timing) -> list[str]:
    """Return a row as text, column by column of `COLUMNS`."""
    forecast = row.forecast_ns
    return [
        row.command,
        row.way,
        f"{row.elapsed_ns / 1e9:.2f}",
        f"{row.elapsed_ns / row.plain_ns:.2f}",
        f"{row.spread:.0%}",
        f"{row.read_bytes / 1e6:,.1f}",
        "" if forecast is None else f"{forecast / 1e9:.2f}",
        "" if forecast is None else f"{forecast / row.elapsed_ns - 1:+.0%}",
    ]


def tables(found: Timings) -> measured.Tables:
    """Return all tables: title, header, lines."""
    disks = dict.fromkeys(row.disk for row in found.rows)
    of = [(disk, COLUMNS, [cells(row) for row in found.rows if row.disk == disk]) for disk in disks]
    return [*of, ("Findings", FOUND, measured.judged(findings(found)))]


def show(console: Console, found: Timings) -> None:
    """Print it."""
    measured.show(console, tables(found), ("way",))
    for name, why in found.left_out.items():
        console.print(f"left out: {name}: {why}", markup=False)
    console.print(found.machine, markup=False)


def markdown(found: Timings) -> str:
    """Return it as Markdown."""
    return measured.markdown(f"{found.machine}; {found.repeats} runs of each on emulated drives.", tables(found))


if __name__ == "__main__":
    exits.run_and_exit(app)

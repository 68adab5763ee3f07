"""`python -m headstart_lab.hintstudy`, which `make hints-study` runs."""

import dataclasses
import re
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headstart._core import HeadstartError
from headstart.cli import exits, output
from headstart_lab.hintstudy.study import DISKS, Finding, Row, Study, check_disks, findings, study
from headstart_lab.livestudy import platform
from headstart_lab.livestudy.report import markdown_table

MARKED = re.compile(r"(<!-- hints-study: begin -->\n).*(<!-- hints-study: end -->)", re.DOTALL)
COLUMNS = ("command", "way", "s", "of plain", "spread", "MB read", "forecast s", "off")
FOUND = ("finding", "required", "found", "verdict")

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
    if docs is not None and not MARKED.search(docs.read_text(encoding="utf-8")):
        raise HeadstartError(f"{docs}: has no marks; allowed: a file with <!-- hints-study: begin --> and end")
    reason = platform.why_not()
    if reason is not None:
        # Loud, and no failure: there is nothing wrong with the program.
        print(f"hints-study: SKIPPED: {reason}; it needs Linux, root, FUSE and loop devices", file=sys.stderr)
        return
    platform.unwind_on_signals()
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
        judged = [dataclasses.asdict(each) for each in findings(found)]
        output.write_json(json, output.as_json({**dataclasses.asdict(found), "findings": judged}))
    if docs is not None:
        text = docs.read_text(encoding="utf-8")
        output.write_text(docs, MARKED.sub(lambda marks: f"{marks[1]}{markdown(found)}\n{marks[2]}", text))


def cells(row: Row) -> list[str]:
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


def judged(each: Finding) -> list[str]:
    """Return a finding as text, column by column of `FOUND`."""
    return [each.what, each.required, each.found, each.verdict]


def tables(found: Study) -> list[tuple[str, tuple[str, ...], list[list[str]]]]:
    """Return all tables: title, header, lines."""
    disks = dict.fromkeys(row.disk for row in found.rows)
    of = [(disk, COLUMNS, [cells(row) for row in found.rows if row.disk == disk]) for disk in disks]
    return [*of, ("Findings", FOUND, [judged(each) for each in findings(found)])]


def show(console: Console, found: Study) -> None:
    """Print it."""
    for title, header, lines in tables(found):
        table = Table(title=escape(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
        for number, name in enumerate(header):
            table.add_column(name, justify="left" if number < 1 or name in ("way", "required", "verdict") else "right")
        for line in lines:
            table.add_row(*map(escape, line))
        console.print(table)
        console.print()
    for name, why in found.left_out.items():
        console.print(f"left out: {name}: {why}", markup=False)
    console.print(found.machine, markup=False)


def markdown(found: Study) -> str:
    """Return it as Markdown."""
    parts = [f"{found.machine}; {found.repeats} runs of each on emulated drives."]
    for title, header, lines in tables(found):
        parts += ["", f"**{title}**", "", markdown_table(header, lines)]
    return "\n".join(parts)


if __name__ == "__main__":
    exits.run_and_exit(app)

"""`headstart reproduce`: the published numbers of a paper beside the reproduced ones."""

import functools
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headstart import _environment
from headstart._core import HeadstartError
from headstart.cli import options, output, pages
from headstart.cli.progress import watched
from headstart.report.text import value_text
from headstart_lab import reproduce_live, studies
from headstart_lab.livestudy import report
from headstart_lab.page import study_figures, study_page
from headstart_lab.studies._rows import Row
from headstart_lab.text import (
    CLASSES,
    answer,
    answer_text,
    basis_text,
    counts_text,
    difference_text,
    predicted_text,
    tolerance_text,
)

if TYPE_CHECKING:
    from headstart.report.charts import Chart

COLOURS = {"good": "green", "bad": "red", "quiet": "dim"}


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="A study, such as kimbrel96, or li07-live.")],
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[ITEM]...", help="Figures, tables or findings. Default: all.")
    ] = None,
    list_items: Annotated[bool, typer.Option("--list", help="List the items and exit.")] = False,
    json: options.Json = None,
    html: options.Html = None,
    figures: options.Figures = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="li07-live: use shorter files and fewer reads, and run each row once.")
    ] = False,
    repeats: Annotated[int | None, typer.Option(min=1, max=100, help="li07-live: runs per row. Default: 3.")] = None,
    docs: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="li07-live: write the tables between the marks of a Markdown file."),
    ] = None,
) -> None:
    """Compute a paper's figures and print them beside the published ones, with a verdict.

    li07-live instead measures a stock Linux kernel on an emulated disk. It requires root and takes minutes.

    Example: headstart reproduce kimbrel96 figure1 --json -
    """
    pictures: dict[str, Chart] = {}
    live = paper == reproduce_live.NAME
    if not live and (quick or repeats is not None or docs is not None):
        raise HeadstartError(f"{paper}: --quick, --repeats and --docs are only for {reproduce_live.NAME}")
    if live and items:
        raise HeadstartError(f"{paper}: item {items[0]}: it runs as a whole; allowed: no item")
    study = None if live else studies.load(paper)
    title, lines = (report.TITLE, report.ITEMS) if study is None else (study.title, study.items)
    if list_items:
        for item, line in lines.items():
            typer.echo(f"{item:<16} {line}")
        return
    pages.check(f"reproduce {paper}", html, figures)
    drawing = html is not None or figures is not None
    if study is None:
        found = reproduce_live.compute(quick, repeats or 3, json, html, docs)
        rows = report.rows(found)
        if drawing:
            pictures["times"] = report.chart(found)
    else:
        wanted = study.chosen(items or [])
        output.check_targets(json)
        draw = pictures.__setitem__ if drawing else None
        folders = _environment.folders()
        rows = watched(
            f"reproducing {paper}",
            lambda tell: study.run(wanted, lambda text, share: tell(share, f"{paper}: {text}"), draw, folders=folders),
        )
    if json != "-":
        show(output.console(), title, lines, rows)
    if json is not None:
        output.write_json(json, output.as_json([row.to_dict() for row in rows]))
    page = functools.partial(study_page, title, lines, rows, pictures)
    pages.write(html, figures, page, lambda: study_figures(lines, pictures))


def show(console: Console, title: str, items: Mapping[str, str], rows: list[Row]) -> None:
    """Print the rows as text, by item with the notes below, and the counts of answers; `items` has the titles."""
    console.print(title, markup=False, style="bold")
    for item, group in itertools.groupby(rows, key=lambda row: row.item):
        table, notes = _item(f"{item}: {items.get(item, '')}", list(group))
        console.print()
        console.print(table)
        for number, note in enumerate(notes, start=1):
            console.print(f"[dim]\\[{number}] {escape(note)}[/]")
    console.print()
    counts = ", ".join(f"[{COLOURS[CLASSES[each]]}]{count}[/]" for each, count in counts_text(rows).items())
    console.print(f"{counts}; {predicted_text(rows)}")


def _item(title: str, rows: list[Row]) -> tuple[Table, list[str]]:
    """Return the table of one item, and its notes without duplicates."""
    notes = list(dict.fromkeys(row.note for row in rows if row.note))
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("quantity", "published", "ours", "difference", "tolerance", "verdict", "basis", "input", ""):
        table.add_column(name, justify="left" if name in ("quantity", "verdict", "basis", "input") else "right")
    for row in rows:
        figures = (row.quantity, value_text(row.published), value_text(row.ours))
        cells = [escape(cell) for cell in (*figures, difference_text(row), tolerance_text(row))]
        mark = f"[dim]\\[{notes.index(row.note) + 1}][/]" if row.note else ""
        said = f"[{COLOURS[CLASSES[answer(row)]]}]{answer_text(row)}[/]"
        table.add_row(*cells, said, basis_text(row), row.input or "", mark)
    return table, notes

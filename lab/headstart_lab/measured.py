"""What the studies that measure this machine share: rows of requirements, tables, and their place in the docs."""

import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headstart._core import HeadstartError
from headstart.cli import output
from headstart_lab.studies._rows import Row, finding

FOUND = ("finding", "required", "found", "verdict", "note")
Tables = list[tuple[str, tuple[str, ...], list[list[str]]]]
"""Title, header, lines."""


def required(what: str, condition: str, found: str, holds: bool, note: str = "") -> Row:
    """Return the row of a condition: `published` is the condition, `ours` what was measured."""
    return finding(what, published=condition, ours=found, holds=holds, note=note)


def judged(rows: Sequence[Row]) -> list[list[str]]:
    """Return conditions as text, column by column of `FOUND`."""
    return [[row.quantity, str(row.published), str(row.ours), row.verdict, row.note] for row in rows]


def show(console: Console, tables: Tables, texts: Sequence[str]) -> None:
    """Print tables; the columns named in `texts`, the first one and those of `FOUND` are aligned left."""
    for title, header, lines in tables:
        table = Table(title=escape(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
        for number, name in enumerate(header):
            table.add_column(name, justify="left" if number < 1 or header is FOUND or name in texts else "right")
        for line in lines:
            table.add_row(*map(escape, line))
        console.print(table)
        console.print()


def markdown(first: str, tables: Tables) -> str:
    """Return the sentence `first`, followed by tables, as Markdown."""
    parts = [first]
    for title, header, lines in tables:
        parts += ["", f"**{title}**", "", markdown_table(header, lines)]
    return "\n".join(parts)


def markdown_table(header: tuple[str, ...], rows: list[list[str]]) -> str:
    """Return a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Page:
    """A Markdown file with marks, between which the tables of a study are written.

    Raises:
        HeadstartError: The file has no marks of this study.
    """

    def __init__(self, path: Path, study: str) -> None:
        begin, end = (f"<!-- {study}: {word} -->" for word in ("begin", "end"))
        self._path = path
        self._marked = re.compile(rf"({begin}\n).*({end})", re.DOTALL)
        if not self._marked.search(path.read_text(encoding="utf-8")):
            raise HeadstartError(f"{path}: has no marks; allowed: a file with {begin} and end")

    def write(self, tables: str) -> None:
        """Replace the text between the marks."""
        text = self._path.read_text(encoding="utf-8")
        output.write_text(self._path, self._marked.sub(lambda marks: f"{marks[1]}{tables}\n{marks[2]}", text))

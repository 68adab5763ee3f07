"""The page of a study: the published figures beside the reproduced ones."""

import itertools
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from headstart.report.figures import Figure
from headstart.report.page import folded, page, table
from headstart.report.text import value_text
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


def study_page(
    title: str, items: Mapping[str, str], rows: Sequence[Row], pictures: Mapping[str, "Chart"] | None = None
) -> str:
    """Return the page; `items` has the title of each item, `pictures` the figures that are shown above some tables."""
    body = [f'<p class="headline">{", ".join(counts_text(rows).values())}; {predicted_text(rows)}</p>']
    figures = study_figures(items, pictures or {})
    header = ("verdict", "quantity", "published", "ours", "difference", "tolerance", "basis", "input", "note")
    groups = [(item, list(group)) for item, group in itertools.groupby(rows, key=lambda row: row.item)]
    body.append(_contents(items, groups))
    for at, (item, group) in enumerate(groups):
        body.append(f'<h2 id="part-{at}">{escape(item)}: {escape(items.get(item, ""))}</h2>')
        body.extend(figure.html() for figure in figures if figure.name == item)
        ours = [("", _cells(row)) for row in group if row.verdict == "not published"]
        compared = [("", _cells(row)) for row in group if row.verdict != "not published"]
        body.append(table(header, compared) if compared else "")
        body.append(folded(f"{len(ours)} of ours that are not published", table(header, ours)))
    return page(title, body, figures)


def _contents(items: Mapping[str, str], groups: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """Return the list of parts, with the number of rows by answer."""
    lines = []
    for at, (item, group) in enumerate(groups):
        said = ", ".join(counts_text(group).values())
        title = escape(f"{item}: {items.get(item, '')}")
        lines.append(f'<li><a href="#part-{at}">{title}</a> <span class="quiet">({escape(said)})</span></li>')
    return f"<nav><ol>{''.join(lines)}</ol></nav>" if len(lines) > 1 else ""


def study_figures(items: Mapping[str, str], pictures: Mapping[str, "Chart"]) -> list[Figure]:
    """Return the figures of the page, one for each picture."""
    return [Figure(item, chart, items.get(item, item)) for item, chart in pictures.items()]


def _cells(row: Row) -> list[str]:
    figures = (value_text(row.published), value_text(row.ours), difference_text(row), tolerance_text(row))
    quantity = f'<td class="text">{escape(row.quantity)}</td>'
    verdict = f'<td class="verdict {CLASSES[answer(row)]}">{answer_text(row)}</td>'
    words = (f'<td class="text">{escape(word)}</td>' for word in (basis_text(row), row.input or "", row.note))
    return [verdict, quantity, *(escape(figure) for figure in figures), *words]

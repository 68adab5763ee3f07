"""The page of a study: the published figures beside the reproduced ones."""

import itertools
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from headstart.report.figures import Figure
from headstart.report.page import page, table
from headstart.report.text import basis_text, counts_text, difference_text, predicted_text, tolerance_text, value_text
from headstart.studies._rows import Row

if TYPE_CHECKING:
    from headstart.report.charts import Chart

CLASSES = {"agrees": "good", "differs": "bad", "not published": "quiet"}


def study_page(
    title: str, items: Mapping[str, str], rows: Sequence[Row], pictures: Mapping[str, "Chart"] | None = None
) -> str:
    """Return the page; `items` has the title of each item, `pictures` the figures that are shown above some tables."""
    body = [f'<p class="headline">{", ".join(counts_text(rows).values())}; {predicted_text(rows)}</p>']
    figures = study_figures(items, pictures or {})
    header = ("quantity", "published", "ours", "difference", "tolerance", "verdict", "basis", "note")
    for item, group in itertools.groupby(rows, key=lambda row: row.item):
        body.append(f"<h2>{escape(item)}: {escape(items.get(item, ''))}</h2>")
        body.extend(figure.html() for figure in figures if figure.name == item)
        body.append(table(header, (("", _cells(row)) for row in group)))
    return page(title, body, figures)


def study_figures(items: Mapping[str, str], pictures: Mapping[str, "Chart"]) -> list[Figure]:
    """Return the figures of the page, one for each picture."""
    return [Figure(item, chart, items.get(item, item)) for item, chart in pictures.items()]


def _cells(row: Row) -> list[str]:
    figures = (row.quantity, value_text(row.published), value_text(row.ours), difference_text(row), tolerance_text(row))
    verdict = f'<td class="verdict {CLASSES[row.verdict]}">{row.verdict}</td>'
    words = (f'<td class="text">{escape(word)}</td>' for word in (basis_text(row), row.note))
    return [*(escape(figure) for figure in figures), verdict, *words]

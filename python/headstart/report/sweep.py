"""The page of a sweep: small multiples of elapsed time over the grid, and its rows."""

import collections
import functools
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from headstart import plot
from headstart._core import HeadstartError
from headstart._input import plain
from headstart.report.charts import altair
from headstart.report.figures import Figure
from headstart.report.page import facts, page, table
from headstart.report.text import time_text

if TYPE_CHECKING:
    from headstart.sweeps import Sweep

SERIES_MAX = 18
"""Maximum number of lines in a panel: as many as differ in colour and dash."""
PANELS_MAX = 24
ROWS_MAX = 500
"""Maximum number of rows of the table; the Parquet file has all."""
PANEL_WIDTH, PANEL_HEIGHT = 300, 190
REPLICATE = "seed"
"""A key whose values repeat a run; a point is their mean."""
MEASURES = {"elapsed_ns": "elapsed time (s)", "stall_ns": "stall (s)", "fetches": "fetches"}


def sweep_page(name: str, done: "Sweep") -> str:
    """Return the page; `name` is that of the grid."""
    return page(f"{name}: a sweep of {done.tally.runs:,} runs", *_content(done))


def sweep_figures(done: "Sweep") -> list[Figure]:
    """Return the figures of the page."""
    return _content(done)[1]


def _content(done: "Sweep") -> tuple[list[str], list[Figure]]:
    rows = done.rows()
    ran = [row for row in rows if row["error"] is None]
    if not ran:
        raise HeadstartError(
            "sweep --html: every run has failed, nothing to draw; allowed: a sweep with a run that fits"
        )
    varying = [key for key in done.keys if len({row[key] for row in ran}) > 1]
    body = [f'<p class="headline">{escape(_headline(ran, varying))}</p>']
    body.append(facts({plain(key): _values([row[key] for row in rows]) for key in done.keys}))
    x, series, panels = axes(ran, varying)
    figures = []
    if x is not None:
        for measure, title in MEASURES.items():
            draw = functools.partial(_chart, ran, x, series, panels)
            caption = f"{title[0].upper()}{title[1:]} over {x}" + (f", by {series}" if series else "")
            caption += f"; a panel for each {' and '.join(panels)}" if panels else ""
            caption += f"; points are means over {REPLICATE}" if REPLICATE in varying and x != REPLICATE else ""
            figure = Figure(measure.removesuffix("_ns"), draw(measure, title), f"{plain(caption)}.")
            figures.append(figure)
            body.append(figure.html())
        count = len(dict.fromkeys(_words(row, panels) for row in ran))
        if count > PANELS_MAX:
            body.append(f"<p>Only the first {PANELS_MAX} of {count:,} panels are drawn; the file has every row.</p>")
    body.append(_table(rows, done.keys))
    failures = [row for row in rows if row["error"] is not None]
    if failures:
        body.append("<h2>Runs that failed</h2>")
        lines = [
            (
                "",
                [
                    *(escape(plain(row[key])) for key in done.keys),
                    f'<td class="text">{escape(plain(row["error"]))}</td>',
                ],
            )
            for row in failures[:ROWS_MAX]
        ]
        body.append(table((*map(plain, done.keys), "error"), lines))
    hashes = dict.fromkeys(row["trace_sha256"] for row in ran)
    body.append(f"<p>SHA-256 of the traces: {', '.join(hashes)}</p>")
    return body, figures


def axes(rows: Sequence[Mapping[str, Any]], varying: Sequence[str]) -> tuple[str | None, str | None, list[str]]:
    """Return the key along x, that of the lines, and those of the panels.

    x is the numeric key with the most values. The lines are the text key with the most values that still differ in
    colour and dash. Repetitions of a run are an axis only if there is no other.
    """
    sizes = {key: len({row[key] for row in rows}) for key in varying}
    keys = [key for key in varying if key != REPLICATE] or list(varying)
    numeric = [key for key in keys if all(_is_number(row[key]) for row in rows)]
    x = max(numeric or keys, key=lambda key: sizes[key], default=None)
    rest = [key for key in keys if key != x]
    fitting = [key for key in rest if sizes[key] <= SERIES_MAX]
    words = [key for key in fitting if key not in numeric]
    series = max(words or fitting, key=lambda key: sizes[key], default=None)
    return x, series, [key for key in rest if key != series]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {row[key]}" for key in keys)


def _chart(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    series: str | None,
    panels: Sequence[str],
    measure: str,
    title: str,
) -> Any:
    unit = 1e9 if measure.endswith("_ns") else 1
    found: dict[str, dict[tuple[str, Any], list[float]]] = {}
    for row in rows:
        line = "all runs" if series is None else f"{row[series]}"
        points = found.setdefault(_words(row, panels), collections.defaultdict(list))
        points[line, row[x]].append(row[measure] / unit)
    charts = []
    for name, points in list(found.items())[:PANELS_MAX]:
        values = [{"series": line, "x": place, "y": sum(each) / len(each)} for (line, place), each in points.items()]
        chart = plot.lines(values, plain(x), title)
        sized = chart.properties(width=PANEL_WIDTH, height=PANEL_HEIGHT) if panels else chart
        # One line per key, so that whole titles fit into narrow panels.
        charts.append(sized.properties(title={"text": plain(name).split(", "), "limit": 0}) if name else sized)
    return charts[0] if len(charts) == 1 else altair("sweep --html").concat(*charts, columns=3)


def _headline(rows: Sequence[Mapping[str, Any]], varying: Sequence[str]) -> str:
    best = min(rows, key=lambda row: row["elapsed_ns"])
    worst = max(rows, key=lambda row: row["elapsed_ns"])
    text = f"The fastest run takes {best['elapsed_ns'] / 1e9:,.3f} s: {plain(_words(best, varying)) or 'the only one'}"
    if worst["elapsed_ns"] > best["elapsed_ns"]:
        text += f". The slowest takes {worst['elapsed_ns'] / 1e9:,.3f} s: {plain(_words(worst, varying))}"
    return f"{text}."


def _values(values: Sequence[Any]) -> str:
    distinct = list(dict.fromkeys(plain(value) for value in values))
    return ", ".join(distinct) if len(distinct) <= 8 else f"{distinct[0]}, ... {distinct[-1]} ({len(distinct)} values)"


def _table(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    ran = [row for row in rows if row["error"] is None]
    header = (*map(plain, keys), "elapsed ms", "stall ms", "driver ms", "fetches", "misses", "prefetches", "wasted")
    best = min(row["elapsed_ns"] for row in ran)
    lines = []
    for row in ran[:ROWS_MAX]:
        times = [time_text(row[name]) for name in ("elapsed_ns", "stall_ns", "driver_ns")]
        counts = [f"{row[name]:,}" for name in ("fetches", "misses", "prefetches", "prefetches_wasted")]
        kind = "best" if row["elapsed_ns"] == best else ""
        lines.append((kind, [*(escape(plain(row[key])) for key in keys), *times, *counts]))
    more = f"<p>The first {ROWS_MAX} rows; the file has every row.</p>" if len(ran) > ROWS_MAX else ""
    return table(header, lines) + more

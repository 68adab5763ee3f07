"""The frame of every page, and tables that can be sorted by a click on a header."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from headstart._core import __version__

if TYPE_CHECKING:
    from headstart.report.figures import Figure

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --quiet: #60646c; --line: #d9d9e0; --paper: #ffffff;
  --good: #18794e; --bad: #b4233c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #edeef0; --quiet: #b0b4ba; --line: #43484e; --paper: #18191b; --good: #3dd68c; --bad: #ff8f9c; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 84rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p, .quiet { color: var(--quiet); margin: .25rem 0; }
p.headline { color: var(--ink); font-size: 1.15rem; margin: .75rem 0; }
ul.facts { list-style: none; padding: 0; margin: .5rem 0; display: flex; flex-wrap: wrap; gap: .1rem 1.5rem; }
ul.facts b { color: var(--quiet); font-weight: 400; }
figure { margin: 1.25rem 0; } figcaption { color: var(--quiet); font-size: .9rem; }
.charts { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; }
.chart { flex: 1 1 18rem; min-width: 0; overflow-x: auto; overflow-y: hidden; } .chart.vega-embed { padding-right: 0; }
.chart summary { opacity: .35 !important; } .chart:hover summary { opacity: 1 !important; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--quiet); } th:first-child, td:first-child { text-align: left; }
th button { all: unset; cursor: pointer; } th button:focus-visible { outline: 2px solid var(--ink); }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
tr.best td { font-weight: 700; } .text { text-align: left; }
td.text:last-child { min-width: 18rem; } td.verdict { white-space: nowrap; }
td.good { color: var(--good); }
td.bad { color: var(--bad); }
figure > svg { width: 100%; height: auto; background: #fff; }
details { margin: .5rem 0; } summary { color: var(--quiet); cursor: pointer; }
nav ol { columns: 18rem; padding-left: 1.5rem; margin: .75rem 0; } nav a { color: inherit; }
pre { background: color-mix(in srgb, var(--ink) 6%, transparent); padding: .75rem; overflow-x: auto; }
"""


SORT = """
for (const header of document.querySelectorAll("th")) {
  const number = cell => parseFloat(cell.replace(/[,+%]/g, "").replace("\\u2212", "-"));
  header.querySelector("button")?.addEventListener("click", () => {
    const table = header.closest("table"), body = table.tBodies[0], at = header.cellIndex;
    const up = header.ariaSort !== "ascending", text = row => row.cells[at]?.textContent.trim() ?? "";
    for (const each of table.querySelectorAll("th")) each.ariaSort = null;
    header.ariaSort = up ? "ascending" : "descending";
    const rows = [...body.rows].sort((one, other) => {
      const [a, b] = [text(one), text(other)], [x, y] = [number(a), number(b)];
      // What is no number stands last, whichever way the column is sorted.
      if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
      const order = isNaN(x) ? a.localeCompare(b) : x - y;
      return up ? order : -order;
    });
    body.append(...rows);
  });
}
"""


def page(title: str, body: Iterable[str], figures: Sequence["Figure"] = ()) -> str:
    """Return a whole page; `body` is HTML with the places of the figures, `title` text."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    parts = "\n".join(body)
    foot = f'<p class="quiet">headstart {__version__}</p>\n<script>{SORT}</script>'
    if figures:
        from headstart.report.figures import script

        foot += "\n<noscript><p>The figures need JavaScript; the tables have their numbers.</p></noscript>\n"
        foot += script(figures)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{parts}\n{foot}</body></html>\n"
    )


def facts(named: Mapping[str, object]) -> str:
    """Return the parameters of the run: names and values in a line."""
    each = "".join(f"<li><b>{escape(name)}</b> {escape(str(value))}</li>" for name, value in named.items())
    return f'<ul class="facts">{each}</ul>'


def notes(texts: Iterable[str]) -> str:
    """Return the notes, each a paragraph."""
    return "".join(f"<p>Note: {escape(text)}.</p>" for text in texts)


def folded(summary: str, content: str) -> str:
    """Return HTML that a click opens; nothing for a table without rows."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>" if "<td" in content else ""


def details(summary: str, value: Any) -> str:
    """Return a value as JSON that a click opens."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"


def table(header: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a table; each row is the class of its line and its cells, cells are HTML."""
    rows = list(rows)
    first = rows[0][1] if rows else [""] * len(header)
    kinds = [' class="text"' if cell.startswith('<td class="text"') else "" for cell in first]
    head = "".join(
        f"<th{kind}><button>{escape(name)}</button></th>" if name else "<th></th>"
        for name, kind in zip(header, kinds, strict=False)
    )
    lines = (f'<tr class="{kind}">{"".join(_cell(cell) for cell in cells)}</tr>' for kind, cells in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _cell(cell: str) -> str:
    return cell if cell.startswith("<td") else f"<td>{cell}</td>"

"""The frame of every page, and tables."""

from collections.abc import Iterable, Sequence
from html import escape

from headstart._core import __version__

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --quiet: #60646c; --line: #d9d9e0; --paper: #ffffff;
  --compute: #30a46c; --driver: #e2a336; --overhead: #3aa0c4; --stall: #d1495b; --good: #18794e; --bad: #b4233c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #edeef0; --quiet: #b0b4ba; --line: #43484e; --paper: #18191b; --good: #3dd68c; --bad: #ff8f9c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p, .quiet { color: var(--quiet); margin: .25rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--quiet); } th:first-child, td:first-child { text-align: left; }
tr.best td { font-weight: 700; } td.text { text-align: left; } td.verdict { white-space: nowrap; }
td.good { color: var(--good); }
td.bad { color: var(--bad); }
svg { width: 100%; height: auto; }
svg text { font-family: system-ui, sans-serif; font-size: 12px; fill: var(--ink); }
pre { background: color-mix(in srgb, var(--ink) 6%, transparent); padding: .75rem; overflow-x: auto; }
.key span { display: inline-block; margin-right: 1rem; } .key i { display: inline-block; width: .8rem; height: .8rem;
  margin-right: .35rem; vertical-align: -.1rem; } .key i.dashed { width: 0; border-left: 2px dashed var(--ink); }
"""


def page(title: str, body: Iterable[str]) -> str:
    """Return a whole page; `body` is HTML, `title` text."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    parts = "\n".join(body)
    foot = f'<p class="quiet">headstart {__version__}</p>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{parts}\n{foot}</body></html>\n"
    )


def table(header: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a table; each row is the class of its line and its cells, cells are HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = (f'<tr class="{kind}">{"".join(_cell(cell) for cell in cells)}</tr>' for kind, cells in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _cell(cell: str) -> str:
    return cell if cell.startswith("<td") else f"<td>{cell}</td>"

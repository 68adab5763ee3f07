"""The page of a comparison: bars of elapsed time, and every figure of them in a table."""

import json
from html import escape

from headstart.comparison import Comparison, Refusal, Row
from headstart.report.page import page, table

PARTS = ("compute", "driver", "overhead", "stall")
"""Parts of elapsed time in the order of the bars; each has a colour in the page's style."""

WIDTH, LABEL, BAR, GAP, VALUE = 900, 210, 18, 7, 120
"""Sizes of the chart in its own units: all of it, a policy's name, a bar, between bars, the figure at the end."""


def comparison_page(done: Comparison) -> str:
    """Return the page."""
    first = done.rows[0].result
    model = first.scenario["device"]["model"]["name"]
    what = f"{first.references:,} references, cache of {first.levels[0]['blocks']:,} blocks, {model}, seed {first.seed}"
    key = "".join(f'<span><i style="background:var(--{part})"></i>{part}</span>' for part in PARTS)
    key += '<span><i class="dashed"></i>lower bound of any policy</span>'
    body = [f"<p>{escape(what)}</p>", f'<p class="key">{key}</p>']
    longest = max(row.result.elapsed_ns for row in done.rows)
    for setting, rows in done.blocks():
        name = done.title(setting)
        body.append(f"<h2>{escape(name)}</h2>")
        body.append(_chart(name, rows, longest))
        body.append(_figures(rows, done.refusals(setting)))
    body.extend(f"<p>Note: {escape(note)}.</p>" for note in done.notes())
    scenario = json.dumps(done.to_dict()["scenario"], indent=2, ensure_ascii=False)
    body.append(f"<details><summary>Scenario, with every default</summary><pre>{escape(scenario)}</pre></details>")
    body.append(f"<p>SHA-256 of the trace: {first.trace_sha256}</p>")
    return page(f"{done.workload()}: policies compared", body)


def _chart(name: str, rows: list[Row], longest_ns: int) -> str:
    """Return bars on one scale for all numbers of disks, with the lower bound as a line."""
    scale = (WIDTH - LABEL - VALUE) / longest_ns if longest_ns else 0.0
    height = len(rows) * (BAR + GAP) + GAP
    shapes = []
    for index, row in enumerate(rows):
        top = GAP + index * (BAR + GAP)
        middle = top + BAR - 5
        weight = ' font-weight="700"' if row.best else ""
        shapes.append(f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end"{weight}>{escape(row.label)}</text>')
        left = float(LABEL)
        for part in PARTS:
            time_ns: int = getattr(row.result, f"{part}_ns")
            width = time_ns * scale
            hint = f"<title>{part}: {time_ns / 1e9:,.3f} s</title>"
            fill = f'fill="var(--{part})"'
            shapes.append(f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{BAR}" {fill}>{hint}</rect>')
            left += width
        shapes.append(f'<text x="{left + 6:.2f}" y="{middle}"{weight}>{row.result.elapsed_ns / 1e9:,.3f} s</text>')
    bound_ns = rows[0].lower_bound_ns
    if bound_ns is not None:
        bound = LABEL + bound_ns * scale
        line = f'x1="{bound:.2f}" x2="{bound:.2f}" y1="0" y2="{height}" stroke="var(--ink)" stroke-dasharray="4 3"'
        shapes.append(f"<line {line}><title>lower bound: {bound_ns / 1e9:,.3f} s</title></line>")
    label = f'role="img" aria-label="Elapsed time of each policy, {escape(name)}"'
    return f'<svg viewBox="0 0 {WIDTH} {height}" {label}>{"".join(shapes)}</svg>'


def _figures(rows: list[Row], refusals: list[Refusal]) -> str:
    header = ("policy", "elapsed s", "compute s", "driver s", "stall s", "fetches", "wasted", "disk use", "above bound")
    lines = []
    for row in rows:
        result = row.result
        times = (result.elapsed_ns, result.compute_ns, result.driver_ns, result.stall_ns)
        cells = [escape(row.label), *(f"{time / 1e9:,.3f}" for time in times)]
        cells += [f"{result.fetches:,}", f"{result.prefetches_wasted:,}", f"{result.utilization:.0%}"]
        lines.append(
            ("best" if row.best else "", [*cells, "-" if row.above_bound is None else f"{row.above_bound:+.1%}"])
        )
    empty = [""] * (len(header) - 2)
    lines.extend(("", [escape(refusal.policy), "see note", *empty]) for refusal in refusals)
    return table(header, lines)

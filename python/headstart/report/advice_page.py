"""The page of advice: the answer for each device as text, figures over depths and caches, and commands."""

import functools
from collections.abc import Sequence
from html import escape
from typing import Any

from headstart import plot
from headstart._input import plain
from headstart.advice.result import Advice, Timed
from headstart.report.advice import brief, device_text, headline, paragraph, policy_text
from headstart.report.charts import altair
from headstart.report.figures import Figure
from headstart.report.page import facts, folded, notes, page, table
from headstart.sizes import bytes_text

KINDS = {
    "no prefetching": "#D55E00",
    "Linux as it is": "#E69F00",
    "advised": "#0072B2",
    "with hints": "#009E73",
    "lower bound": "#8b8d98",
}
"""The bars of a device, and their colours."""
SHOWN = 5
"""Policies of a device that are shown; a click shows the others."""


def advice_page(done: Advice) -> str:
    """Return the page."""
    footprint = "" if done.footprint_bytes is None else f" ({bytes_text(done.footprint_bytes)})"
    shown = {
        "requests": f"{done.requests:,}",
        "touching": f"{done.footprint_blocks:,} blocks{footprint}",
        "block": done.block_size,
        "in streams": f"{done.stream_share:.0%} of the reads",
        "seed": done.seed,
    }
    answers = "; ".join(f"{plain(device_text(each, done))}: {headline(each)}" for each in done.devices)
    figures = advice_figures(done)
    body = [f'<p class="headline">{escape(answers)}.</p>', facts(shown), *(figure.html() for figure in figures)]
    body.append(_side_by_side(done))
    for each in done.devices:
        body.append(f"<h2>{escape(plain(device_text(each, done)))}: {escape(headline(each))}</h2>")
        said = "".join(f"<li>{escape(plain(line))}</li>" for line in paragraph(each, done))
        body.append(f"<ul>{said}</ul>")
        typed = escape(plain_lines("\n".join(each.commands)))
        lead = "To do, any of:" if each.verdict == "disclose" else "To type, one of:"
        body.append(f"<p>{lead}</p><pre>{typed}</pre>" if typed else "")
        body.append(_tried(each.tried))
    body.append(notes(done.notes))
    body.append(f"<p>SHA-256 of the trace: {done.trace_sha256}</p>")
    return page(f"{plain(done.workload)}: how far to read ahead", body, figures)


def plain_lines(text: str) -> str:
    """Return lines with their control characters escaped."""
    return "\n".join(plain(line) for line in text.split("\n"))


def advice_figures(done: Advice) -> list[Figure]:
    """Return the figures of the page: elapsed time by device, over the depth, over the cache."""
    figures = [Figure("devices", _devices(done), "Elapsed time as a share of the time without prefetching.")]
    lines = functools.partial(plot.lines, names=[device_text(each, done) for each in done.devices])
    depths = [
        {"series": plain(device_text(each, done)), "x": timed.depth_bytes, "y": timed.elapsed_ns / 1e9}
        for each in done.devices
        for timed in sorted(each.tried, key=lambda timed: timed.depth_bytes or 0)
        if timed.depth_bytes
    ]
    if len({point["x"] for point in depths}) > 1:
        chart = lines(depths, "Linux's read-ahead", "elapsed time (s)", x_bytes=True)
        figures.append(Figure("depths", chart, "Elapsed time over how far Linux reads ahead."))
    block_bytes = done.footprint_bytes // done.footprint_blocks if done.footprint_bytes else None
    caches = [
        {"series": plain(device_text(each, done)), "x": blocks * (block_bytes or 1), "y": elapsed_ns / 1e9}
        for each in done.devices
        for blocks, elapsed_ns in sorted(each.cache_sweep)
    ]
    if len({point["x"] for point in caches}) > 1:
        in_bytes = block_bytes is not None
        chart = lines(caches, "cache" if in_bytes else "cache (blocks)", "elapsed time (s)", x_bytes=in_bytes)
        figures.append(Figure("caches", chart, "Elapsed time of what is advised over the size of the cache."))
    return figures


def _devices(done: Advice) -> Any:
    alt = altair("advise --html")
    bars = []
    for each in done.devices:
        whole = each.demand.elapsed_ns or 1
        default = None if each.linux_default is None else each.linux_default.elapsed_ns
        hints = None if each.hints is None else each.hints.elapsed_ns
        times = (each.demand.elapsed_ns, default, each.recommended.elapsed_ns, hints, each.lower_bound_ns)
        for kind, ns in zip(KINDS, times, strict=True):
            if ns is not None:
                point = {"device": plain(device_text(each, done)), "kind": kind, "share": ns / whole, "s": ns / 1e9}
                bars.append(point)
    names = list(dict.fromkeys(bar["device"] for bar in bars))
    kinds = [kind for kind in KINDS if any(bar["kind"] == kind for bar in bars)]
    scale = alt.Scale(domain=kinds, range=[KINDS[kind] for kind in kinds])
    return (
        alt.Chart(alt.Data(values=bars))
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="elapsed time", axis=alt.Axis(format=".0%")),
            y=alt.Y("device:N", sort=names, title=None, axis=alt.Axis(labelLimit=plot.LABEL_MAX, ticks=False)),
            yOffset=alt.YOffset("kind:N", sort=kinds),
            color=alt.Color("kind:N", sort=kinds, scale=scale, title=None),
            tooltip=[
                alt.Tooltip("device:N"),
                alt.Tooltip("kind:N", title="run"),
                alt.Tooltip("s:Q", title="elapsed (s)", format=",.4~g"),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(width=plot.WIDTH, height=16 * len(bars) + 12 * len(names))
    )


def _side_by_side(done: Advice) -> str:
    header = ("device", "advice", "trust", "speedup", "without s", "advised s", "wasted MiB", "with hints s", "bound s")
    lines = []
    for each in done.devices:
        best = each.recommended
        cells = [escape(plain(device_text(each, done))), f'<td class="text">{escape(brief(each))}</td>']
        cells += [each.confidence.level, f"{best.speedup:.2f}"]
        cells += [_seconds(each.demand.elapsed_ns), _seconds(best.elapsed_ns)]
        cells.append(f"{best.wasted_bytes / 1024**2:,.2f}")
        cells += [_seconds(each.hints.elapsed_ns if each.hints else None), _seconds(each.lower_bound_ns)]
        lines.append(("", cells))
    return table(header, lines)


def _tried(tried: Sequence[Timed]) -> str:
    header = ("policy", "elapsed s", "saved s", "speedup", "wasted MiB", "needs the future")
    lines = []
    for timed in tried:
        cells = [escape(plain(policy_text(timed))), _seconds(timed.elapsed_ns), _seconds(timed.saved_ns)]
        cells += [f"{timed.speedup:.2f}", f"{timed.wasted_bytes / 1024**2:,.2f}"]
        lines.append(("", [*cells, "yes" if timed.knows_future else "no"]))
    return table(header, lines[:SHOWN]) + folded(f"{len(lines) - SHOWN} more policies", table(header, lines[SHOWN:]))


def _seconds(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e9:,.3f}"

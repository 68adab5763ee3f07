"""The summary of a trace: lines for the terminal, and a page with charts."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import PurePath
from typing import Any

from headstart import plot
from headstart._input import plain
from headstart.report.figures import Figure
from headstart.report.page import facts, notes, page, table
from headstart.report.text import duration_text
from headstart.sizes import bytes_text

ANALYSIS = ("sizes_by_power_of_two", "reuse", "popularity", "windows")
"""Keys of the summary that are shown in words and pictures, not as they are."""
BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 48
"""Width of a line over time."""

FIT_MIN = 0.8
"""Minimum coefficient of determination for naming a distribution; chosen here, not taken from a source."""

Info = Mapping[str, Any]


def within(powers: Sequence[int], share: float) -> int | None:
    """Return the power of two below which `share` of the values lie; `None` if there are none."""
    total = sum(powers)
    for power, count in enumerate(itertools.accumulate(powers)):
        if total and count >= share * total:
            return 1 << (power + 1)
    return None


def in_words(found: Info) -> dict[str, str]:
    """Return the analysis of a trace, each part in a line."""
    reuse, popularity, windows = found["reuse"], found["popularity"], found["windows"]
    lines = {"request sizes": _spread(found["sizes_by_power_of_two"], bytes_text)}
    again = sum(reuse["references_between"])
    lines["reuse"] = f"{again / max(found['references'], 1):.1%} of the references are of a block referenced before"
    if again:
        lines["stack distance"] = _spread(reuse["stack_distances"], lambda blocks: f"{blocks:,}") + " blocks"
        if found["time_span_ns"]:
            lines["reuse time"] = _spread(reuse["times_ns"], lambda ns: duration_text(ns, 2))
    first, *more = (f"{100 * top:g}%: {share:.0%}" for top, share in popularity["top_shares"])
    lines["top blocks"] = ", ".join([f"{first} of the references", *more])
    lines["referenced once"] = f"{popularity['once_share']:.1%} of the blocks"
    if popularity["zipf_alpha"] is not None:
        fit = f"R² {popularity['zipf_fit']:.2f}"
        follows = popularity["zipf_fit"] >= FIT_MIN and popularity["zipf_alpha"] > 0
        text = f"Zipf, alpha {popularity['zipf_alpha']:.2f} ({fit})" if follows else f"no Zipf distribution ({fit})"
        lines["popularity"] = text
    if len(windows) > 1:
        for name, shares in _over_time(found).items():
            lines[f"{name} over time"] = f"{sparkline(shares)} {min(shares):.0%} to {max(shares):.0%}"
    if reuse["rate"] < 1.0:
        lines["sampled"] = f"reuse and popularity rest on {reuse['rate']:.2%} of the blocks"
    return lines


def _spread(powers: Sequence[int], text: Callable[[int], str]) -> str:
    bounds = [(within(powers, share), share) for share in (0.5, 0.9, 0.99)]
    return ", ".join(f"{share:.0%} below {text(bound)}" for bound, share in bounds if bound is not None)


def _over_time(found: Info) -> dict[str, list[float]]:
    windows = found["windows"]
    shares = {"new blocks": [each["first_references"] / each["references"] for each in windows]}
    if found["sequential_share"] is not None:
        shares["sequential"] = [each["sequential"] / each["requests"] for each in windows]
    if found["carries"]["writes"]:
        shares["writes"] = [each["writes"] / each["requests"] for each in windows]
    return shares


def sparkline(shares: Sequence[float]) -> str:
    """Return shares of 0 to 1 as a line of at most `COLUMNS` bars."""
    step = -(-len(shares) // COLUMNS)
    means = [sum(part) / len(part) for part in (shares[at : at + step] for at in range(0, len(shares), step))]
    return "".join(BARS[min(int(share * len(BARS)), len(BARS) - 1)] for share in means)


def info_page(trace: str, found: Info, summary: Mapping[str, str]) -> str:
    """Return the page; `summary` holds the plain facts in words."""
    body = [facts({**summary, **{name: text for name, text in in_words(found).items() if "over time" not in name}})]
    figures = info_figures(found)
    body += [figure.html() for figure in figures]
    header = ("from request", "start s", "requests", "bytes", "references", "new blocks", "sequential", "writes")
    lines, before = [], 0
    for each in found["windows"]:
        start = f"{each['start_ns'] / 1e9:,.3f}" if found["carries"]["time"] else "-"
        counts = [f"{each[name]:,}" for name in ("references", "first_references", "sequential", "writes")]
        lines.append(("", [f"{before + 1:,}", start, f"{each['requests']:,}", bytes_text(each["bytes"]), *counts]))
        before += each["requests"]
    body += ["<h2>Over time</h2>", table(header, lines)]
    if found["note"] is not None:
        body.append(notes([plain(found["note"])]))
    return page(f"{escape(plain(PurePath(trace).name))}: what the trace holds", body, figures)


def info_figures(found: Info) -> list[Figure]:
    """Return the figures of the page."""
    reuse = found["reuse"]
    figures = [_cumulative("sizes", found["sizes_by_power_of_two"], 1024, "request size (KiB)", "requests")]
    if sum(reuse["stack_distances"]):
        again = "references of blocks seen before"
        figures.append(_cumulative("stack-distances", reuse["stack_distances"], 1, "stack distance (blocks)", again))
        if found["time_span_ns"]:
            figures.append(
                _cumulative("reuse-times", reuse["times_ns"], 1e9, "time since the last reference (s)", again)
            )
    ranks = [{"series": "references", "x": rank, "y": count} for rank, count in found["popularity"]["by_rank"]]
    alpha = found["popularity"]["zipf_alpha"]
    fitted = "" if alpha is None else f": {in_words(found)['popularity']}"
    popularity = plot.lines(ranks, "rank of the block", "references")
    figures.append(Figure("popularity", popularity, f"References of a block by its rank{fitted}."))
    if len(found["windows"]) > 1:
        starts = [0, *itertools.accumulate(each["requests"] for each in found["windows"])]
        points = [
            {"series": name, "x": start, "y": 100 * share}
            for name, shares in _over_time(found).items()
            for start, share in zip(starts, shares, strict=False)
        ]
        figures.append(
            Figure("over-time", plot.lines(points, "request", "share (%)", share=True), "Shares over the trace.")
        )
    return figures


def _cumulative(name: str, powers: Sequence[int], unit: float, x: str, of: str) -> Figure:
    total, first = sum(powers), next(power for power, count in enumerate(powers) if count)
    sums = list(itertools.accumulate(powers))
    points = [
        {"series": of, "x": _rounded((1 << (power + 1)) / unit), "y": 100 * sums[power] / total}
        for power in range(first, len(powers))
    ]
    return Figure(name, plot.lines(points, x, "share below (%)", share=True), f"Share of the {of} below each {x}.")


def _rounded(value: float) -> float:
    return value if value.is_integer() else float(f"{value:.3g}")

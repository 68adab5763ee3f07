"""A curve over the size of a cache: tables for the terminal, and a page."""

from collections.abc import Callable
from html import escape
from pathlib import PurePath
from typing import Any

from rich.console import Console
from rich.markup import escape as escaped
from rich.table import Table

from headstart import plot
from headstart._input import plain
from headstart.report.figures import Figure
from headstart.report.page import facts, notes, page, table
from headstart.runs.curve import Curve, Point
from headstart.sizes import bytes_text

BAR_COLUMNS = 24

Cell = Callable[[Point], str]


def curve_shown(console: Console, done: Curve) -> None:
    """Print a table of each measure: a line for each size, a column for each policy."""
    console.print(escaped(_header(done)), style="bold", soft_wrap=True)
    for title, cell in _measures(done).items():
        console.print()
        _tables(console, done, title, cell)
    for note in done.notes:
        console.print(f"note: {escaped(plain(note))}", soft_wrap=True)


def _header(done: Curve) -> str:
    objects = done.block_bytes is None
    about = "" if done.rate == 1.0 else "about "
    held = f"{about}{done.distinct_blocks:,} distinct {'objects' if objects else 'blocks'}"
    text = f"{plain(done.trace)}: {done.references:,} references, {held} ({bytes_text(done.distinct_bytes)})"
    if done.device is not None:
        text += f", {plain(done.device)}"
    if done.rate < 1.0:
        text += f"; sampled: {done.rate:.3g} of the blocks, {done.seeds} times"
    return text


def _measures(done: Curve) -> dict[str, Cell]:
    found: dict[str, Cell] = {}
    if done.rate < 1.0:
        found["misses, % of the references (± half the distance between the samples)"] = lambda point: (
            f"{point.miss_ratio:.2%}"[:-1] + f" ±{point.spread:.1%}"[:-1]
        )
    else:
        found["misses, % of the references"] = lambda point: f"{point.miss_ratio:.2%}"[:-1]
    if done.block_bytes is None:
        found["bytes missed, % of the bytes referenced"] = lambda point: f"{point.byte_miss_ratio:.2%}"[:-1]
    if done.device is not None:
        found["elapsed time, s"] = lambda point: "" if point.elapsed_ns is None else f"{point.elapsed_ns / 1e9:,.3f}"
    return found


def _tables(console: Console, done: Curve, title: str, cell: Cell) -> None:
    """Print a table, or several below each other if not all policies fit."""
    policies = done.policies
    cells = {policy: [cell(point) for point in done.of(policy)] for policy in policies}
    widths = {policy: max(len(plain(policy)), *map(len, column)) + 2 for policy, column in cells.items()}
    first = done.of(policies[0])
    while policies:
        room, count = console.width - 22, 0
        while count < len(policies) and (count == 0 or widths[policies[count]] <= room):
            room -= widths[policies[count]]
            count += 1
        shown, policies = policies[:count], policies[count:]
        lines = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
        lines.add_column("cache", justify="right", no_wrap=True)
        if done.block_bytes is not None:
            lines.add_column("blocks", justify="right", no_wrap=True)
        for policy in shown:
            lines.add_column(escaped(plain(policy)), justify="right", no_wrap=True)
        bar = len(done.policies) == 1 and room >= BAR_COLUMNS + 2 and "missed" not in title and "elapsed" not in title
        if bar:
            lines.add_column("", no_wrap=True)
        for index, point in enumerate(first):
            size = [bytes_text(point.bytes)] + ([] if point.blocks is None else [f"{point.blocks:,}"])
            drawn = ["█" * round(BAR_COLUMNS * point.miss_ratio)] if bar else []
            lines.add_row(*size, *(cells[policy][index] for policy in shown), *drawn)
        console.print(lines)


def curve_page(done: Curve) -> str:
    """Return the page."""
    return page(f"{PurePath(done.trace).name}: misses over the size of the cache", *_content(done))


def curve_figures(done: Curve) -> list[Figure]:
    """Return the figures of the page."""
    return _content(done)[1]


def _content(done: Curve) -> tuple[list[str], list[Figure]]:
    objects = done.block_bytes is None
    body = [f'<p class="headline">{escape(_header(done))}.</p>']
    about = {"references": f"{done.references:,}", "policies": ", ".join(map(plain, done.policies))}
    if not objects:
        about["block size"] = bytes_text(done.block_bytes or 0)
    body.append(facts(about))
    figures = [_figure(done, "misses", "misses (% of the references)", lambda point: 100 * point.miss_ratio)]
    if objects:
        title = "bytes missed (% of the bytes referenced)"
        figures.append(_figure(done, "bytes", title, lambda point: 100 * point.byte_miss_ratio))
    if done.device is not None:
        figures.append(_figure(done, "elapsed", "elapsed time (s)", lambda point: (point.elapsed_ns or 0) / 1e9))
    body += [figure.html() for figure in figures]
    header = ("policy", "cache", *(() if objects else ("blocks",)), "misses", "misses %", "± %", "bytes missed %")
    header += ("elapsed s", "stall s") if done.device is not None else ()
    lines = []
    for point in done.points:
        cells = [escape(plain(point.policy)), bytes_text(point.bytes)]
        cells += [] if point.blocks is None else [f"{point.blocks:,}"]
        cells += [f"{round(point.misses):,}", f"{100 * point.miss_ratio:.2f}", f"{100 * point.spread:.2f}"]
        cells.append(f"{100 * point.byte_miss_ratio:.2f}")
        if done.device is not None:
            cells += [f"{(time or 0) / 1e9:,.3f}" for time in (point.elapsed_ns, point.stall_ns)]
        lines.append(("", cells))
    body += [table(header, lines), notes(map(plain, done.notes))]
    return body, figures


def _figure(done: Curve, name: str, title: str, value: Callable[[Point], float]) -> Figure:
    points: list[dict[str, Any]] = [
        {"series": point.policy, "x": point.bytes, "y": value(point)} for point in done.points
    ]
    chart = plot.lines(points, "cache", title, share="%" in title, x_bytes=True)
    return Figure(name, chart, f"{title[0].upper()}{title[1:]} over the size of the cache.")

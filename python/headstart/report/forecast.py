"""Forecasts on the console: times by policy and budget, and the command to run."""

from rich.console import Console
from rich.table import Table

from headstart._input import plain
from headstart.live.core import Record
from headstart.live.forecast import BENEFIT_MIN
from headstart.report.text import duration_text as time_text
from headstart.sizes import bytes_text, size_text


def forecast_shown(console: Console, found: Record) -> None:
    """Print a forecast as text."""
    console.print(plain(" ".join(found.command)), style="bold", markup=False)
    devices = ", ".join(disk.profile for disk in found.devices)
    hints = f"{bytes_text(found.hinted_bytes)} hinted, empty page cache, on {devices}"
    console.print(plain(hints), markup=False)
    console.print()
    console.print(_table(found))
    console.print()
    console.print(plain(headline(found)), style="bold", markup=False)
    for note in found.notes:
        console.print(f"note: {plain(note)}", markup=False)


def headline(found: Record) -> str:
    """Return the recommendation in one line."""
    before = time_text(found.plain.elapsed_ns)
    best = found.recommendation
    if best is None:
        return f"no benefit: prefetching saves less than {BENEFIT_MIN:.0%} of {before}"
    budget = size_text(best.budget_bytes)
    trust = " --trust" if found.trusted else ""
    return (
        f"run with --policy {best.policy} --budget {budget}{trust}: {before} -> {time_text(best.elapsed_ns)}, "
        f"{best.gain:.0%} less"
    )


def _table(found: Record) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    for name in ("budget", "time", "saved", "requests", "read", "wasted"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("lower bound", "", time_text(found.lower_bound_ns), _saved(1 - _share(found, found.lower_bound_ns)))
    table.add_row(*_cells(found.demand, "no read-ahead"))
    table.add_row(*_cells(found.plain, "plain"))
    chosen = found.recommendation
    for row in found.rows:
        is_chosen = chosen is not None and (row.policy, row.budget_bytes) == (chosen.policy, chosen.budget_bytes)
        table.add_row(*_cells(row, row.policy), style="bold" if is_chosen else None)
    stopped = {row.stopped for row in found.rows if row.stopped}
    if stopped:
        table.caption = "* prefetching stops: " + "; ".join(sorted(stopped))
        table.caption_justify = "left"
    return table


def _share(found: Record, elapsed_ns: int) -> float:
    return elapsed_ns / found.plain.elapsed_ns if found.plain.elapsed_ns else 1.0


def _cells(row: Record, name: str) -> list[str]:
    return [
        name + (" *" if row.stopped else ""),
        "" if row.budget_bytes is None else size_text(row.budget_bytes),
        time_text(row.elapsed_ns),
        "" if row.policy == "linux" else _saved(row.gain),
        f"{row.requests:,}",
        bytes_text(row.read_bytes),
        "" if row.budget_bytes is None else bytes_text(row.wasted_bytes),
    ]


def _saved(gain: float) -> str:
    return f"{gain:.0%}"

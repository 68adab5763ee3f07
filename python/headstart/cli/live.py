"""Tables of live and simulated runs side by side: the simulator's error against real threads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table

from headstart._core import HeadstartError
from headstart.cli import output
from headstart.simulation import Result


def _mean(result: Result, key: str) -> int:
    processes: Sequence[Mapping[str, Any]] = result.processes
    total: int = sum(each[key] for each in processes)
    return total // max(len(processes), 1)


TIMES: dict[str, Callable[[Result], int]] = {
    "total": lambda result: result.elapsed_ns,
    "mean read": lambda result: result.response_ns["mean"],
    "mean hit-wait of unready hits": lambda result: result.hit_wait_ns_mean,
    "of a process: computing": lambda result: _mean(result, "compute_ns"),
    "of a process: waiting for blocks": lambda result: _mean(result, "stall_ns"),
    "of a process: at barriers": lambda result: _mean(result, "barrier_ns"),
    "of a process: overhead": lambda result: _mean(result, "overhead_ns"),
    "of a process: overrun in it": lambda result: _mean(result, "overrun_ns"),
}
COUNTS = {
    "reads": "references",
    "ready hits": "hits_ready",
    "unready hits": "hits_unready",
    "misses": "misses",
    "fetches": "fetches",
    "prefetches": "prefetches",
}


def check_options(live: bool, compare: bool, speed: float | None) -> None:
    """Refuse options that are only valid with --live."""
    for option, given in (("--compare", compare), ("--speed", speed is not None)):
        if given and not live:
            raise HeadstartError(f"{option}: only valid with --live; allowed: beside --live")


def beside(title: str, simulated: Result, live: Result) -> Table:
    """Return a table of a simulated and a live run of one scenario, and the difference."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    table.add_column("")
    for name in ("simulated", "live", "difference"):
        table.add_column(name, justify="right")
    for name, of in TIMES.items():
        expected, measured = of(simulated), of(live)
        difference = f"{(measured - expected) / expected:+.1%}" if expected else ""
        table.add_row(name, output.seconds(expected), output.seconds(measured), difference)
    for name, key in COUNTS.items():
        expected, measured = getattr(simulated, key), getattr(live, key)
        table.add_row(
            name, f"{expected:,}", f"{measured:,}", f"{measured - expected:+,}" if measured != expected else ""
        )
    return table

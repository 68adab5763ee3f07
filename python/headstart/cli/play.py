"""`headstart play`: a trace against a live server."""

from rich.console import Console
from rich.table import Table

from headstart.cli import options, output
from headstart.cli.progress import LIVE_TIDY_S, watched
from headstart.cli.shown import plain
from headstart.live import play as playing
from headstart.live.core import Record

PROCESSES_SHOWN = 16
"""Rows of the table of processes; --json has all."""


@options.of_core("play")
def play(given: options.Given, json: options.Json = None) -> None:
    """Replay TRACE against a live NBD server and show the response times.

    The response time of a request starts when it is issued; with open arrival, when it is due.

    Example: headstart play examples/traces/cscope2.csv.xz --to nbd://localhost:10809 --limit 10000
    """
    output.check_targets(json)
    options.check_files("play", given, {"--json": json})
    played = watched(
        f"playing {given['trace']}",
        lambda tell: playing.play_trace(**given, progress=lambda share, _: tell(share)),
        time_left=True,
        tidy_s=LIVE_TIDY_S,
    )
    if json is not None:
        output.write_json(json, output.as_json(played.to_dict()))
    if json != "-":
        show(output.console(), played)


def show(console: Console, played: Record) -> None:
    """Print a result as text."""
    rate = played.throughput_bytes_per_s / 1e6
    console.print(
        f"{played.requests:,} requests ({played.writes:,} writes, {played.errors:,} failed) in "
        f"{output.seconds(played.elapsed_ns)}, {rate:,.1f} MB/s",
        markup=False,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in ("mean", "p50", "p90", "p99", "max"):
        table.add_column(name, justify="right")
    kinds = {"response": played.response_ns}
    if 0 < played.writes < played.requests:
        kinds |= {"of reads": played.read_response_ns, "of writes": played.write_response_ns}
    for name, times in (kinds | {"sent late by": played.late_ns}).items():
        table.add_row(name, *(output.duration(times[each]) for each in ("mean", "p50", "p90", "p99", "max")))
    console.print(table)
    if played.processes:
        console.print(_processes(played))
    for note in played.notes:
        console.print(f"note: {plain(note)}", markup=False)


def _processes(played: Record) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("process", "requests", "response", "thinking", "waiting", "done at"):
        table.add_column(name, justify="right")
    for each in played.processes[:PROCESSES_SHOWN]:
        times = (each["response_ns_mean"], each["compute_ns"], each["stall_ns"], each["elapsed_ns"])
        table.add_row(str(each["pid"]), f"{each['requests']:,}", *(output.duration(time) for time in times))
    if len(played.processes) > PROCESSES_SHOWN:
        table.caption = f"and {len(played.processes) - PROCESSES_SHOWN:,} more processes: --json has all"
        table.caption_justify = "left"
    return table

"""`headstart play`: a trace against a live server."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.progress import LIVE_TIDY_S, watched
from headstart.cli.shown import plain
from headstart.live import play as playing

OPTIONS = {
    "arrival": "--arrival",
    "compute": "--compute",
    "speed": "--speed",
    "depth": "--depth",
    "processes": "--processes",
    "limit": "--limit",
    "writable": "--writable",
    "addresses": "--addresses",
    "connections": "--connections",
    "request_size": "--request-size",
}
"""The option of each key."""
PROCESSES_SHOWN = 16
"""Rows of the table of processes; --json has all."""


@options.selecting
def play(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="The trace.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="URI", help="The server: nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH; nbds: uses TLS."
        ),
    ],
    arrival: Annotated[
        Literal["closed", "open"],
        typer.Option(
            help="Issue of requests. closed: after the last reply and a think time; open: at the trace's times."
        ),
    ] = "closed",
    compute: Annotated[
        str, typer.Option(metavar="TIME", help='Think times with closed arrival: "trace", "gaps", 1ms or exp:1ms.')
    ] = "trace",
    speed: Annotated[float, typer.Option(metavar="X", help="Divide arrival and think times by X.")] = 1.0,
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Maximum requests in flight: per process if closed (default 1), in total if open (default 1024).",
        ),
    ] = None,
    processes: Annotated[
        Literal["merged", "per-pid"], typer.Option(help="per-pid: run the trace's processes concurrently.")
    ] = "merged",
    limit: Annotated[int | None, typer.Option(metavar="N", help="Play only the first N requests.")] = None,
    writable: Annotated[
        bool, typer.Option("--writable", help="Perform the trace's writes. They overwrite the export's data.")
    ] = False,
    skip_writes: Annotated[
        bool,
        typer.Option("--skip-writes", help="Skip writes. Without this and --writable, writes are played as reads."),
    ] = False,
    addresses: Annotated[
        Literal["error", "wrap"],
        typer.Option(help="Addresses beyond the export's end: report an error, or wrap around."),
    ] = "error",
    connections: Annotated[int, typer.Option(metavar="N", help="Connections to the server.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of think times.")] = 1,
    trace_format: options.Format = "auto",
    request_size: options.RequestSize = None,
    select: options.Selection = options.ALL,
    json: options.Json = None,
) -> None:
    """Replay TRACE against a live NBD server and show the response times.

    The response time of a request starts when it is issued; with open arrival, when it is due.

    Example: headstart play examples/traces/cscope2.csv.xz --to nbd://localhost:10809 --limit 10000
    """
    output.check_targets(json)
    if writable and skip_writes:
        raise HeadstartError("--writable, --skip-writes: exclude each other; allowed: one of them")
    with options.named(OPTIONS):
        played = watched(
            f"playing {trace}",
            lambda tell: playing.play_trace(
                trace,
                to,
                format=trace_format,
                request_size=request_size,
                arrival=arrival,
                compute=compute,
                speed=speed,
                depth=depth,
                processes=processes,
                limit=limit,
                writes="write" if writable else "skip" if skip_writes else "as-read",
                addresses=addresses,
                connections=connections,
                seed=seed,
                **select,
                progress=lambda share, _: tell(share),
            ),
            time_left=True,
            tidy_s=LIVE_TIDY_S,
        )
    if json is not None:
        output.write_json(json, output.as_json(played.to_dict()))
    if json != "-":
        show(output.console(), played)


def show(console: Console, played: playing.Played) -> None:
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


def _processes(played: playing.Played) -> Table:
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

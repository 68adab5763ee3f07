"""`headstart model trace`: a recorded program that reads files, by equations and by simulation."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headstart import model
from headstart.cli import options, output
from headstart.cli.model_open import simulated
from headstart.cli.progress import watched
from headstart.model.scenarios import PARTS
from headstart.sizes import bytes_text


@options.selecting
def traced(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO.toml", help="A trace read through a file system; see docs/model.md.")
    ],
    overrides: options.Set = None,
    select: options.Selection = options.ALL,
    runs: Annotated[
        int,
        typer.Option("--runs", min=0, metavar="N", help="Also run N simulations, each with its own seed, and compare."),
    ] = 0,
    json: options.Json = None,
) -> None:
    """Compute the mean response of a trace's requests, and its elapsed time, from the equations of a file system.

    Example: headstart model trace examples/file-system-trace.toml --runs 3 --set policy.name=demand
    """
    output.check_targets(json)
    laid_over = [*(overrides or []), *options.selected(select)]
    found = model.of_trace(scenario, overrides=laid_over)
    checked = None
    if runs:
        checked = watched(
            f"simulating {scenario}",
            lambda tell: model.check_trace(scenario, overrides=laid_over, runs=runs, progress=tell),
        )
    if json is not None:
        beside = {} if checked is None else {"check": checked.to_dict()}
        output.write_json(json, output.as_json({**found.to_dict(), **beside}))
    if json != "-":
        _show(output.console(), found, checked)


def _show(console: Console, found: model.TraceModel, checked: model.Check | None) -> None:
    of = found.parameters
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name, value in (
        ("mean response", output.duration(round(found.response_ns))),
        ("elapsed", output.seconds(round(found.elapsed_ns))),
        ("disk requests", f"{found.disk_requests:,}"),
        ("  writes", f"{found.disk_writes:,}"),
        ("  from the drive's cache", f"{found.buffer_hits:,}"),
        *((f"  {part.removesuffix('_ns')}", output.seconds(round(found.disk[part]))) for part in PARTS),
        ("requests", f"{of.requests:,}"),
        ("  writes", f"{of.writes:,}"),
        ("  mean size", bytes_text(round(of.request))),
        ("  to another file", f"{of.switches:,}"),
        ("sequential runs", f"{of.runs:,}"),
        ("  mean length", bytes_text(round(of.run_length))),
        ("data", bytes_text(of.data_span)),
    ):
        table.add_row(name, value)
    console.print(table)
    if checked is not None:
        console.print(simulated(checked))

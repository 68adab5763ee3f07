"""`headstart model open`: open arrivals at a disk, from equations and simulated."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headstart import model
from headstart.cli import options, output
from headstart.cli.progress import watched

PARTS = {
    "wait_ns": "queue",
    "overhead_ns": "disk overhead",
    "seek_ns": "seek",
    "rotation_ns": "rotation",
    "transfer_ns": "transfer",
}


def open_arrivals(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO.toml", help="Requests that arrive at given times; see docs/model.md.")
    ],
    overrides: options.Set = None,
    runs: Annotated[
        int,
        typer.Option("--runs", min=0, metavar="N", help="Also run N simulations, each with its own seed, and compare."),
    ] = 0,
    json: options.Json = None,
) -> None:
    """Compute the mean wait and service time of requests that arrive at a disk at given times, from equations.

    Example: headstart model open examples/open-arrivals.toml --runs 5 --set workload.timing=bursty
    """
    output.check_targets(json)
    found = model.open_arrivals(scenario, overrides=overrides or [])
    checked = None
    if runs:
        checked = watched(
            f"simulating {scenario}",
            lambda tell: model.check_open(scenario, overrides=overrides or [], runs=runs, progress=tell),
        )
    if json is not None:
        beside = {} if checked is None else {"check": checked.to_dict()}
        output.write_json(json, output.as_json({**found.to_dict(), **beside}))
    if json != "-":
        _show(output.console(), found, checked)


def _show(console: Console, found: model.OpenArrivals, checked: model.Check | None) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("mean request", "", "share"):
        table.add_column(name, justify="left" if name == "mean request" else "right")
    table.add_row("response", output.duration(round(found.response_ns)), "")
    for part, name in PARTS.items():
        value = getattr(found, part)
        table.add_row(f"  {name}", output.duration(round(value)), f"{value / found.response_ns:.1%}")
    console.print(table)
    console.print(f"the disk is busy {found.busy:.1%} of the time")
    if checked is not None:
        console.print(simulated(checked, f"busy {checked.simulated['busy']:.1%}, "))


def simulated(checked: model.Check, also: str = "") -> str:
    """Return a line with the simulated mean response, the text `also`, and the model's error."""
    response, error = checked.simulated["response_ns"], checked.relative_error["response_ns"]
    spread = output.duration(round(checked.standard_error["response_ns"]))
    runs = f"{checked.runs} run{'s' if checked.runs > 1 else ''}"
    return f"simulated {output.duration(round(response))} +- {spread}, {also}{runs}; the model is {error or 0:+.1%} off"

"""`headstart simulate`: one scenario."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headstart import simulation
from headstart.cli import options, output
from headstart.cli.progress import watched


def simulate(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="What to run; see docs/scenario.md.")],
    overrides: options.Set = None,
    json: options.Json = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the scenario with every default; run nothing.")
    ] = False,
) -> None:
    """Run one scenario and say where its time went.

    Example: headstart simulate examples/figure1.toml --set policy.name=forestall --json -
    """
    laid_over = overrides or []
    if explain:
        typer.echo(simulation.explain(scenario, overrides=laid_over), nl=False)
        return
    output.check_targets(json)
    result = watched(
        f"simulating {scenario}", lambda tell: simulation.simulate(scenario, overrides=laid_over, progress=tell)
    )
    if json is not None:
        output.write_json(json, result.to_json())
    if json != "-":
        show(output.console(), result)


def show(console: Console, result: simulation.Result) -> None:
    """Print a result for people."""
    policy = result.scenario["policy"]
    device = result.scenario["device"]
    replacement = policy.get("replacement", "")
    replacement = replacement["name"] if isinstance(replacement, dict) else replacement
    replacement = f" with {replacement}" if replacement else ""
    console.print(
        f"{policy['name']}{replacement}, {result.levels[0]['blocks']:,} blocks of cache, "
        f"{device['count']} x {device['model']['name']}"
    )
    console.print(_times(result))
    console.print(_counts(result))
    response = result.response_ns
    console.print(
        "response per request: "
        + ", ".join(f"{name} {output.seconds(response[name])}" for name in ("mean", "p50", "p90", "p99", "max"))
    )
    console.print(_devices(result.devices))
    for note in result.notes:
        console.print(f"note: {note}", markup=False)


def _times(result: simulation.Result) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("time")
    table.add_column("", justify="right")
    table.add_column("share", justify="right")
    parts = ("elapsed", "compute", "driver", "overhead", "stall", "barrier", "idle")
    for part in parts:
        value: int = getattr(result, f"{part}_ns")
        if value or part in ("elapsed", "compute", "driver", "stall"):
            share = value / result.elapsed_ns if result.elapsed_ns else 0.0
            table.add_row(part, output.seconds(value), f"{share:.1%}")
    return table


def _counts(result: simulation.Result) -> Table:
    rows = {
        "requests": result.requests,
        "references": result.references,
        "hits": result.hits_ready,
        "late hits": result.hits_unready,
        "misses": result.misses,
        "fetches": result.fetches,
        "prefetches": result.prefetches,
        "used": result.prefetches_used,
        "wasted": result.prefetches_wasted,
        "evictions": result.evictions,
    }
    table = Table(box=None, pad_edge=False)
    for name in rows:
        table.add_column(name, justify="right")
    table.add_row(*(f"{count:,}" for count in rows.values()))
    return table


def _devices(devices: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("disk", "requests", "busy", "service", "response", "buffer hits"):
        table.add_column(name, justify="right")
    for index, device in enumerate(devices):
        table.add_row(
            str(index),
            f"{device['requests']:,}",
            f"{device['utilization']:.1%}",
            output.seconds(device["service_ns_mean"]),
            output.seconds(device["response_ns_mean"]),
            f"{device['buffer_hits']:,}",
        )
    return table

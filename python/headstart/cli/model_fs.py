"""`headstart model fs` and `model check`: an analytic file-system model, and its error against the simulation."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headstart import model
from headstart.cli import options, output
from headstart.cli.progress import watched

Scenario = Annotated[
    Path, typer.Argument(metavar="SCENARIO.toml", help="Files read through a file system; see docs/model.md.")
]

TERMS = {
    "overhead_ns": "disk overhead",
    "seek_ns": "seek",
    "rotation_ns": "rotation",
    "transfer_ns": "transfer",
    "file_system_ns": "system calls, copies",
    "hidden_ns": "hidden",
}
CHECKED = {
    "response_ns": "mean response",
    "disk_requests": "disk requests of a file",
    "disk_ns": "disk time of a file",
    "overhead_ns": "  overhead",
    "seek_ns": "  seek",
    "rotation_ns": "  rotation",
    "transfer_ns": "  transfer",
}


def file_system(
    scenario: Scenario,
    overrides: options.Set = None,
    advise: Annotated[bool, typer.Option("--advise", help="List the keys to change, best first.")] = False,
    json: options.Json = None,
) -> None:
    """Compute a file system's read times, term by term, with the model of Shriver, Small and Smith (1999).

    Example: headstart model fs examples/file-system.toml --advise --set workload.files=8
    """
    output.check_targets(json)
    found = model.of_scenario(scenario, overrides=overrides or [], advise=advise)
    if json is not None:
        output.write_json(json, output.as_json(found.to_dict()))
    if json != "-":
        _show(output.console(), found, advise=advise)


def check(
    scenario: Scenario,
    overrides: options.Set = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", help="Number of simulations, each with its own seed.")
    ] = 20,
    json: options.Json = None,
) -> None:
    """Run the simulation and the model, and show the model's error.

    Example: headstart model check examples/file-system.toml --runs 50 --json -
    """
    output.check_targets(json)
    found = watched(
        f"simulating {scenario}",
        lambda tell: model.check(scenario, overrides=overrides or [], runs=runs, progress=tell),
    )
    if json is not None:
        output.write_json(json, output.as_json(found.to_dict()))
    if json != "-":
        _show_check(output.console(), found)


def _show(console: Console, found: model.ScenarioModel, *, advise: bool) -> None:
    response = {name: float(value) for name, value in found.response.to_dict().items()}
    streams = found.parameters["streams"]
    console.print(
        f"{streams} stream{'s' if streams > 1 else ''}, files of {found.parameters['file_size'] / 1024:,.6g} KiB "
        f"by {found.parameters['request'] / 1024:,.6g} KiB"
    )
    table = Table(box=None, pad_edge=False)
    for name in ("mean request", "", "share"):
        table.add_column(name, justify="left" if name == "mean request" else "right")
    total = response["response_ns"]
    table.add_row("response", output.duration(round(total)), "")
    for term, name in TERMS.items():
        if response[term]:
            share = f"{response[term] / total:.1%}" if total else ""
            table.add_row(f"  {name}", _signed(response[term]), share)
    console.print(table)
    console.print(
        f"a file: {response['requests']:,.6g} requests, {response['disk_requests']:,.6g} of the disk, "
        f"{output.seconds(round(response['elapsed_ns']))}; the disk is busy {response['busy']:.1%} of that"
    )
    if advise:
        _show_advice(console, found)


def _signed(nanoseconds: float) -> str:
    return f"-{output.duration(round(-nanoseconds))}" if nanoseconds < 0 else output.duration(round(nanoseconds))


def _show_advice(console: Console, found: model.ScenarioModel) -> None:
    if not found.advice:
        console.print("no key that the equations know gains anything")
        return
    table = Table(box=None, pad_edge=False, title="advice: what the model says it gains", title_justify="left")
    table.add_column("--set", overflow="fold")
    table.add_column("a file's reads", justify="right")
    table.add_column("less", justify="right")
    for advice in found.advice:
        table.add_row(escape(" ".join(advice.set)), output.seconds(round(advice.total_ns)), f"{advice.gain:.1%}")
    console.print(table)


def _show_check(console: Console, found: model.Check) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in ("model", "simulation", "+-", "model less simulation"):
        table.add_column(name, justify="right")
    for key, name in CHECKED.items():
        error = found.relative_error[key]
        table.add_row(
            name,
            *(_checked(key, side[key]) for side in (found.modelled, found.simulated, found.standard_error)),
            f"{error:+.1%}" if error is not None else "",
        )
    table.caption = (
        "the simulation counts as overhead what the bus takes behind the media, and as transfer all that is waited for "
        "by a request of which the drive's buffer has the first sector"
    )
    table.caption_justify = "left"
    console.print(table)
    console.print(f"simulation: mean of {found.runs} run{'s' if found.runs > 1 else ''} and its standard error")


def _checked(key: str, value: float) -> str:
    return f"{value:,.2f}" if key == "disk_requests" else _signed(value)

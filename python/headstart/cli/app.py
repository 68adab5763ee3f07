"""The command tree."""

from typing import Annotated

import typer

from headstart._core import __version__
from headstart.cli import (
    advise,
    compare,
    curve,
    device,
    emulate,
    example,
    exits,
    forecast,
    hints,
    listing,
    model,
    parallel,
    play,
    profile,
    record,
    reproduce,
    schema,
    serve,
    show,
    simulate,
    sweep,
    trace,
    tune,
)
from headstart.cli import run as running
from headstart.cli.exits import DONE, MISTAKE

__all__ = ["DONE", "MISTAKE", "app", "main", "run"]

OF_ANOTHER = {"allow_interspersed_args": False}
"""Options behind the first argument are those of the command that is run."""

app = typer.Typer(
    name="headstart",
    invoke_without_command=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("simulate")(simulate.simulate)
app.command("show")(show.show)
app.command("compare")(compare.compare)
app.command("curve")(curve.curve)
app.command("advise")(advise.advise)
app.command("sweep")(sweep.sweep)
app.add_typer(trace.app, name="trace")
app.add_typer(device.app, name="device")
app.add_typer(model.app, name="model")
app.command("example")(example.example)
app.command("list")(listing.list_registry)
app.command("schema")(schema.schema)
app.command("parallel")(parallel.parallel)
app.command("rapid", hidden=True)(parallel.parallel)  # Its old name.
app.command("record", context_settings=OF_ANOTHER)(record.record)
app.add_typer(hints.app, name="hints")
app.command("forecast")(forecast.forecast)
app.command("emulate")(emulate.emulate)
app.command("serve")(serve.serve)
app.command("play")(play.play)
app.command("tune")(tune.tune)
app.command("profile")(profile.profile)
running.add_to(app)
app.command("reproduce")(reproduce.reproduce)


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Prefetching and caching for storage: simulate, compare and explain policies on real traces and disks.

    Example: headstart compare examples/traces/cscope2.csv.xz --policies demand:min,forestall --disks 1,4
    """
    if version:
        typer.echo(f"headstart {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str], commands: typer.Typer = app, name: str = "headstart") -> int:
    """Run `commands`, called `name`, with `arguments`; return its exit status."""
    return exits.run(arguments, commands, name)


def main() -> None:
    """Run the command with the process's arguments and exit."""
    exits.run_and_exit(app)

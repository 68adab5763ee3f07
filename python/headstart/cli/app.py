"""The command tree. Only the command in use is imported, because importing all of them takes half a second."""

import functools
import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer

from headstart import _environment
from headstart._core import __version__
from headstart.cli import exits
from headstart.cli.exits import DONE, MISTAKE

__all__ = ["COMMANDS", "DONE", "MISTAKE", "main", "run", "tree"]


class Command(NamedTuple):
    """Location of a command: a function in a module of `headstart.cli`, or a module with subcommands."""

    module: str
    function: str | None
    """`None`: the module's `app`."""
    settings: dict[str, Any] | None = None
    """Keywords of `typer.Typer.command`."""


OF_ANOTHER = {"context_settings": {"allow_interspersed_args": False}}
"""Options after the first argument belong to the command to run."""

GROUPS: dict[str, dict[str, Command]] = {
    "Simulate": {
        "simulate": Command("simulate", "simulate"),
        "show": Command("show", "show"),
        "compare": Command("compare", "compare"),
        "curve": Command("curve", "curve"),
        "advise": Command("advise", "advise"),
        "sweep": Command("sweep", "sweep"),
        "parallel": Command("parallel", "parallel"),
        # Its old name.
        "rapid": Command("parallel", "parallel", {"hidden": True}),
        "trace": Command("trace", None),
        "model": Command("model", None),
    },
    "Your machine": {
        "record": Command("record", "record", OF_ANOTHER),
        "run": Command("run", "run", OF_ANOTHER),
        "forecast": Command("forecast", "forecast"),
        "hints": Command("hints", None),
        "profile": Command("profile", "profile"),
        "tune": Command("tune", "tune"),
        "serve": Command("serve", "serve"),
        "store": Command("store", "store"),
        "play": Command("play", "play"),
        "emulate": Command("emulate", "emulate"),
    },
    "Reference": {
        "list": Command("listing", "list_registry"),
        "schema": Command("schema", "schema"),
        "device": Command("device", None),
        "example": Command("example", "example"),
        "reproduce": Command("laboratory", "reproduce"),
    },
}
"""Every command by its name, in the order of the help."""
COMMANDS = {name: (group, command) for group, commands in GROUPS.items() for name, command in commands.items()}


@functools.cache
def tree(only: str | None = None) -> typer.Typer:
    """Return the tree of all commands, or of one command if `only` names one, or of none if it is empty."""
    app = typer.Typer(
        name="headstart",
        invoke_without_command=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name in [] if only == "" else [only] if only in COMMANDS else COMMANDS:
        group, (module, function, settings) = COMMANDS[name]
        found = import_module(f"headstart.cli.{module}")
        if function is None:
            app.add_typer(found.app, name=name, rich_help_panel=group)
        else:
            of = getattr(found, function)
            keywords = settings or getattr(of, "settings", getattr(found, "SETTINGS", {}))
            app.command(name, rich_help_panel=group, **keywords)(of)
    return app


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


def _needed(arguments: list[str]) -> str | None:
    """Return the command that the arguments need; an empty name if they only ask for the version."""
    return "" if arguments == ["--version"] else next(iter(arguments), None)


def run(arguments: list[str], name: str = "headstart") -> int:
    """Run the command, called `name`, with `arguments`; return its exit status."""
    return exits.run(arguments, tree(_needed(arguments)), name)


def main() -> None:
    """Run the command with the process's arguments and exit."""
    _environment.take_named_shell(sys.argv[1:])
    exits.run_and_exit(tree(None if _environment.completes() else _needed(sys.argv[1:])))

"""`headstart run`: help and completion of a command that is in the core, `crates/live/src/hints/command`."""

import inspect
import json
from typing import Annotated, Any

import typer

from headstart import _core


def run(**given: Any) -> None:
    """Run CMD while what it is going to read is prefetched into the page cache.

    Without --hints the first run is recorded and later ones are helped. Exit status, signals, streams and environment
    are CMD's: 127 if there is no such program, 126 if it cannot be run. Needs root to see the reads of CMD: without,
    prefetching goes by the hints alone, and nothing is recorded.

    Example: headstart run -v -- git status
    """
    words: list[str] = []
    for option in _table()["options"]:
        value = given[_parameter(option)]
        match option["kind"]:
            case "flag":
                words += [option["name"]] if value else []
            case "repeated":
                words += [f"{option['name']}={each}" for each in value or []]
            case _:
                words += [] if value is None else [f"{option['name']}={value}"]
    raise typer.Exit(_core.run_command([*words, "--", *given["command"]]))


def _table() -> Any:
    return json.loads(_core.run_options())


def _parameter(option: dict[str, Any]) -> str:
    return str(option["name"]).removeprefix("--").replace("-", "_") + "_"


def _signature() -> inspect.Signature:
    """Return the options of the core's table as typer declares them."""
    kinds: dict[str, tuple[Any, Any]] = {"flag": (bool, False), "value": (str | None, None)}
    kinds["repeated"] = (list[str] | None, None)
    table = _table()
    about = typer.Argument(metavar=table["command"], help="The command and its arguments, behind --.")
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("command", keyword, annotation=Annotated[list[str], about])]
    for option in table["options"]:
        kind, default = kinds[option["kind"]]
        names = [option["name"], *([option["letter"]] if option["letter"] else [])]
        declared = typer.Option(*names, metavar=option["metavar"] or None, help=option["help"])
        annotation: Any = Annotated[kind, declared]
        parameters.append(inspect.Parameter(_parameter(option), keyword, default=default, annotation=annotation))
    return inspect.Signature(parameters)


# Options behind the command's name are the command's.
run.__signature__ = _signature()  # type: ignore[attr-defined]
run.__annotations__ = {each.name: each.annotation for each in run.__signature__.parameters.values()}  # type: ignore[attr-defined]

"""`headstart run`: help and completion. The command itself is in the core, `crates/live/hints/src/command`."""

import inspect
import json
from typing import Annotated, Any

import typer

from headstart import _core


def run(**given: Any) -> None:
    """Run CMD and prefetch the data that it will read into the page cache.

    Without --hints, the first run is recorded and later runs prefetch from the recording. CMD keeps its exit status,
    signals, streams and environment. The exit status is 127 if the program does not exist and 126 if it cannot be run.
    Root is required to observe CMD's reads; without root, prefetching uses the hints alone and nothing is recorded.

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
    about = typer.Argument(metavar=table["command"], help="The command and its arguments, after --.")
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("command", keyword, annotation=Annotated[list[str], about])]
    for option in table["options"]:
        kind, default = kinds[option["kind"]]
        names = [option["name"], *([option["letter"]] if option["letter"] else [])]
        declared = typer.Option(*names, metavar=option["metavar"] or None, help=option["help"])
        annotation: Any = Annotated[kind, declared]
        parameters.append(inspect.Parameter(_parameter(option), keyword, default=default, annotation=annotation))
    return inspect.Signature(parameters)


# Options after the command's name belong to the command.
run.__signature__ = _signature()  # type: ignore[attr-defined]
run.__annotations__ = {each.name: each.annotation for each in run.__signature__.parameters.values()}  # type: ignore[attr-defined]

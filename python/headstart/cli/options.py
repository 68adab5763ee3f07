"""Options that several commands share."""

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from typing import Annotated, Any, TypedDict

import typer

from headstart._core import HeadstartError, InternalError
from headstart.trace import selection

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario: device.count=4. Repeatable."),
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE|-", help="Write JSON to a file, or to stdout with -."),
]
Html = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write a self-contained HTML page."),
]
RequestSize = Annotated[
    str | None,
    typer.Option("--request-size", help="Request size, for a trace that has offsets but no sizes: 4KiB."),
]
Figures = Annotated[
    str | None,
    typer.Option("--figures", metavar="FOLDER", help="Write each figure of the page to a folder, as PNG and SVG."),
]
Format = Annotated[str, typer.Option("--format", help="The trace's format: a name of `headstart list formats`.")]
BlockSize = Annotated[
    str, typer.Option("--block-size", help='Size of a block, or "object" for the trace\'s own units.')
]


class Selection(TypedDict):
    """Which requests of a trace a command takes; all of them where nothing is given."""

    path: list[str] | None
    pid: list[int] | None
    process: list[str] | None


ALL = Selection(path=None, pid=None, process=None)
SELECTED: Mapping[str, Any] = {
    "path": Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="GLOB",
            help="Only requests to files that fit: '*.parquet'; * also stands for /. Repeatable.",
            rich_help_panel="Selection",
        ),
    ],
    "pid": Annotated[
        list[int] | None,
        typer.Option(
            "--pid", min=0, help="Only requests of this process or thread. Repeatable.", rich_help_panel="Selection"
        ),
    ],
    "process": Annotated[
        list[str] | None,
        typer.Option(
            "--process",
            metavar="NAME",
            help="Only requests of processes of this name, or a glob. Repeatable.",
            rich_help_panel="Selection",
        ),
    ],
}
SELECTION = {f"workload.select.{key}": f"--{key}" for key in ("path", "pid", "process")}
"""The option that sets each of these keys."""


def selecting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that reads a trace the options of `SELECTED` in place of its parameter `select`."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        select = Selection(path=given.pop("path"), pid=given.pop("pid"), process=given.pop("process"))
        with named(SELECTION):
            command(select=select, **given)

    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command, eval_str=True).parameters.values():
        if each.name == "select":
            parameters += (
                inspect.Parameter(name, each.kind, default=None, annotation=kind) for name, kind in SELECTED.items()
            )
        else:
            parameters.append(each)
    setattr(with_options, "__signature__", inspect.Signature(parameters))  # noqa: B010 -- no attribute of a callable
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_options


def selected(select: Selection) -> list[str]:
    """Return a selection as overrides of a scenario."""
    keys = selection(**select).get("select", {})
    return [f"workload.select.{key}={dumps(value)}" for key, value in keys.items()]


def names(option: str, text: str) -> list[str]:
    """Return the parts of a comma-separated list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise HeadstartError(f'{option}: "{text}" has an empty part; allowed: values separated by commas')
    return parts


def numbers(option: str, text: str) -> list[int]:
    """Return the numbers of a comma-separated list."""
    try:
        return [int(part) for part in names(option, text)]
    except ValueError:
        raise HeadstartError(f'{option}: "{text}"; allowed: whole numbers separated by commas') from None


@contextmanager
def named(by_key: Mapping[str, str]) -> Iterator[None]:
    """Add the option to the first mention of each scenario key in an error; `by_key` maps keys to options."""
    try:
        yield
    except InternalError:
        raise
    except HeadstartError as error:
        keys = "|".join(re.escape(key) for key in by_key)
        said = str(error)
        added = set[str]()

        def with_option(found: re.Match[str]) -> str:
            option = by_key[found[1]]
            if option in said or option in added:
                return found[1]
            added.add(option)
            return f"{found[1]} ({option})"

        raise HeadstartError(re.sub(rf"(?<![\w.\"])({keys})(?![\w.])", with_option, said)) from error

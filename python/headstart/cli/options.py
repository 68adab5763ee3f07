"""Options that several commands share."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import typer

from headstart._core import HeadstartError, InternalError

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

PathGlob = Annotated[
    list[str] | None,
    typer.Option(
        "--path",
        metavar="GLOB",
        help="Only requests to files that fit: '*.parquet'; * also stands for /. Repeatable.",
        rich_help_panel="Selection",
    ),
]
Pid = Annotated[
    list[int] | None,
    typer.Option(
        "--pid", min=0, help="Only requests of this process or thread. Repeatable.", rich_help_panel="Selection"
    ),
]
Process = Annotated[
    list[str] | None,
    typer.Option(
        "--process",
        metavar="NAME",
        help="Only requests of processes of this name, or a glob. Repeatable.",
        rich_help_panel="Selection",
    ),
]
SELECTION = {f"workload.select.{key}": f"--{key}" for key in ("path", "pid", "process")}
"""The option that sets each of these keys."""


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

"""Options that several commands share."""

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import typer
from rich.markup import escape

from headstart import _core, _input
from headstart._core import HeadstartError, InternalError
from headstart.cli.shown import plain
from headstart.cli.targets import check_distinct
from headstart.policies import toml_value
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
    """The requests of a trace that a command uses; all of them if nothing is given."""

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


Given = Annotated[dict[str, Any], "The options of the core's table that are given"]
"""A parameter of a command that stands for the options of the core."""
KINDS: Mapping[str, Any] = {"boolean": bool, "integer": int, "number": float, "string": str}


@functools.cache
def table(command: str) -> dict[str, dict[str, Any]]:
    """Return the options of a command by their keys; crates/core/types/src/keys/options.rs says what a row has."""
    found: dict[str, dict[str, Any]] = loads(_core.command_schema(command))["options"]
    return {key: row for key, row in found.items() if row.get("x-names") != [] and "x-test" not in row}


def of_core(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of the core's table in place of its parameter `given`."""

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        rows = table(command)
        named = {key: option_of(key, row) for key, row in rows.items() if "x-argument" not in row}

        @functools.wraps(function)
        def with_options(**values: Any) -> None:
            given = {key: _value(row, named.get(key, ""), values.pop(key)) for key, row in rows.items()}
            with at_options(named):
                function(
                    given={key: each for key, each in given.items() if each is not None and each is not False}, **values
                )

        parameters: list[inspect.Parameter] = []
        for each in inspect.signature(function, eval_str=True).parameters.values():
            parameters += (_parameter(key, row) for key, row in rows.items()) if each.name == "given" else (each,)
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        setattr(with_options, "__signature__", inspect.Signature(parameters))  # noqa: B010 -- no attribute of a callable
        with_options.__annotations__ = {each.name: each.annotation for each in parameters}
        if not rows:
            # The core lacks this command on this system, and reports that for any options.
            words = {"ignore_unknown_options": True, "allow_extra_args": True}
            setattr(with_options, "settings", {"context_settings": words})  # noqa: B010 -- as above
        return with_options

    return decorated


def names_of(key: str, row: Mapping[str, Any]) -> list[str]:
    """Return the names of an option."""
    return list(row.get("x-names", [f"--{key.replace('_', '-')}"]))


def option_of(key: str, row: Mapping[str, Any]) -> str:
    """Return the first long name of an option."""
    return next(name for name in names_of(key, row) if name.startswith("--"))


def _parameter(key: str, row: Mapping[str, Any]) -> inspect.Parameter:
    """Return the parameter that typer makes an option or an argument of."""
    choices = row.get("enum") or [each["const"] for each in row.get("oneOf", ())]
    forms = {each.get("type"): each for each in row.get("anyOf", [row])}
    kind: Any = KINDS.get(next(iter(forms)), str)
    default = row.get("default")
    if choices:
        kind = Literal[tuple(choices)]
    elif "x-comma" in row:
        kind, default = str, None
    elif "array" in forms:
        item: Any = KINDS[forms["array"]["items"]["type"]]
        kind, default = list[item], default or None
    elif "object" in forms and "string" not in forms:
        kind, default = list[str], None
    elif row.get("x-file") in ("own", "any"):
        kind = Path
    words: dict[str, Any] = {
        "metavar": row.get("x-metavar"),
        # Otherwise s3://BUCKET[/PREFIX] would end a style.
        "help": escape(" ".join(str(row.get("x-help", row["description"])).split())),
    }
    if kind is Path:
        # The core reports errors of files.
        words["readable"] = False
    panel = row.get("x-panel")
    declared: Any = (
        typer.Argument(**words)
        if "x-argument" in row
        else typer.Option(*names_of(key, row), rich_help_panel=panel, **words)
    )
    if "x-required" in row:
        default = inspect.Parameter.empty
    annotation: Any = Annotated[kind if default is not None else kind | None, declared]
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _value(row: Mapping[str, Any], option: str, value: Any) -> Any:
    """Return the value of an option; if it takes NAME=VALUE, all values by name."""
    if "x-comma" in row:
        return None if value is None else names(option, value)
    if "x-set" in row:
        return keys_of(value) or None
    if row.get("type") != "object":
        return value or None if isinstance(value, list) else value
    found: dict[str, str] = {}
    for text in value or ():
        name, equals, rest = text.partition("=")
        if not (name and equals and rest):
            raise HeadstartError(f'{option}: "{plain(text)}"; allowed: {row["x-metavar"]}')
        if name in found:
            raise HeadstartError(f'{option}: "{plain(name)}" is given twice; allowed: different names')
        found[name] = rest
    return found or None


@contextmanager
def at_options(named: Mapping[str, str]) -> Iterator[None]:
    """Add the option to an error that begins with a key; `named` maps keys to options."""
    try:
        yield
    except InternalError:
        raise
    except HeadstartError as error:
        key, _, rest = str(error).partition(":")
        option = named.get(re.split(r"[.\[]", key)[0])
        if option is None or option in rest:
            raise
        raise HeadstartError(f"{key} ({option}):{rest}") from error


def check_files(command: str, given: Mapping[str, Any], more: Mapping[str, str | Path | None]) -> None:
    """Refuse two options that name one file: those of the core's table, and `more`."""
    files = dict(more)
    for key, row in table(command).items():
        if row.get("x-file") in ("own", "url"):
            name = row["x-metavar"] if "x-argument" in row else option_of(key, row)
            sized = str(row["x-metavar"]).endswith(":SIZE")
            value = given.get(key)
            files[name] = str(value).rpartition(":")[0] if sized and value is not None else value
    check_distinct(files)


def keys_of(settings: list[str] | None) -> dict[str, Any]:
    """Return nested keys from settings of the form "a.b=value"."""
    keys: dict[str, Any] = {}
    for setting in settings or []:
        _input.name(setting, "setting")
        path, equals, value = setting.partition("=")
        *tables, last = (part.strip() for part in path.split("."))
        if not equals or not value.strip() or not last or not all(tables):
            raise HeadstartError(f'--set: "{setting}"; allowed: key=value, or table.key=value')
        inner = keys
        for table in tables:
            inner = inner.setdefault(table, {})
            if not isinstance(inner, dict):
                raise HeadstartError(f'--set: "{setting}" is within a key that has a value; allowed: one of the two')
        inner[last] = toml_value(value.strip())
    return keys


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

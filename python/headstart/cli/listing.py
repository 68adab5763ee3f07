"""`headstart list`: policies, devices, formats and other choices from the core's registries."""

import enum
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from headstart import registry
from headstart.cli import options, output

SHOWN_MAX = 4
"""Longest list that is shown in full; of a longer one only the first value is shown."""


class Registry(enum.StrEnum):
    """The registries."""

    POLICIES = "policies"
    REPLACEMENTS = "replacements"
    COORDINATORS = "coordinators"
    DEVICES = "devices"
    ARRAYS = "arrays"
    SCHEDULERS = "schedulers"
    FORMATS = "formats"
    WORKLOADS = "workloads"
    BACKINGS = "backings"


def list_registry(
    which: Annotated[Registry, typer.Argument(metavar="REGISTRY", help=", ".join(Registry))],
    json: options.Json = None,
) -> None:
    """List policies, replacements, coordinators, devices, arrays, schedulers, formats, workloads, or backings of serve.

    Example: headstart list policies
    """
    output.check_targets(json)
    entries = registry.catalog()[which]
    if json is not None:
        output.write_json(json, output.as_json(entries))
    if json == "-":
        return
    if not entries:
        typer.echo(f"no {which} in this version")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    with_family = any("family" in entry for entry in entries)
    if with_family:
        table.add_column("family", no_wrap=True)
    table.add_column("what it does", overflow="fold")
    with_keys = any(entry["keys"] for entry in entries)
    if with_keys:
        table.add_column("keys and defaults", overflow="fold")
    table.add_column("source", style="dim", overflow="fold")
    for entry in entries:
        keys = [keys_text(entry["keys"])] if with_keys else []
        family = [entry["family"]] if with_family else []
        table.add_row(*map(escape, (entry["name"], *family, entry["summary"], *keys, entry["source"])))
    output.console().print(table)


def keys_text(keys: dict[str, Any]) -> str:
    """Return keys with their defaults in short form."""
    if "zones" in keys:
        return "a drive's profile"
    return ", ".join(f"{key}={_value_text(value)}" for key, value in keys.items())


def _value_text(value: Any) -> str:
    match value:
        case dict():
            return "{" + keys_text(value) + "}"
        case list() if len(value) > SHOWN_MAX:
            return f"[{_value_text(value[0])}, ... {len(value)} in all]"
        case list():
            return "[" + ", ".join(_value_text(each) for each in value) + "]"
        case bool():
            return str(value).lower()
        case _:
            return str(value)

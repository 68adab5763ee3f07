"""Options and reports of the core's commands: tables in pages, and Python's keywords, from the structs of the core."""

import json
import re
from collections.abc import Iterator
from textwrap import fill
from typing import Any

from keys import lowered
from tables import table

from headstart import _core
from headstart.cli.options import names_of

MARK = re.compile(r"<!-- (options|fields): ([a-z-]+) -->\n(.*?)<!-- end of \1 -->\n", re.DOTALL)
HEAD = '''"""Options of the commands of this machine, as keywords. Written by `make docs` from the core; do not edit."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, TypedDict
'''
KINDS = {"boolean": "bool", "integer": "int", "number": "float", "string": "str", "object": "Mapping[str, object]"}

Schema = dict[str, Any]


def rendered(text: str) -> str:
    """Return a page with its tables of options and fields written anew."""

    def written(found: re.Match[str]) -> str:
        what, command = found[1], json.loads(_core.command_schema(found[2]))
        if what == "options":
            rows = table(("option", "default", "meaning"), _options(command["options"]))
        else:
            rows = table(("field", "meaning"), _fields(command["report"], "", []))
        return f"<!-- {what}: {found[2]} -->\n{rows}<!-- end of {what} -->\n"

    return MARK.sub(written, text)


def _options(options: dict[str, Schema]) -> Iterator[tuple[str, str, str]]:
    for key, row in options.items():
        if "x-argument" not in row and "x-test" not in row and row.get("x-names") != []:
            metavar = f" {row['x-metavar']}" if "x-metavar" in row else ""
            default = row.get("default")
            shown = "" if default is None or isinstance(default, bool | list | dict) else f"`{default}`"
            yield (
                f"`{', '.join(names_of(key, row))}{metavar}`",
                shown,
                _words(str(row.get("x-help", row["description"]))),
            )


def _fields(report: Schema, prefix: str, seen: list[list[str]]) -> Iterator[tuple[str, str]]:
    """Yield each field, and those of tables in it; a table like one before it is not described again."""
    if list(report.get("properties", {})) in seen:
        return
    seen.append(list(report.get("properties", {})))
    for key, field in report.get("properties", {}).items():
        yield f"`{prefix}{key}`", " ".join([_words(field.get("description", "")), *_names(field)])
        yield from _fields(field, f"{prefix}{key}.", seen)
        yield from _fields(field.get("items", {}), f"{prefix}{key}[].", seen)


def _names(field: Schema) -> Iterator[str]:
    """Say what each name of an enumeration means."""
    for each in field.get("oneOf", ()):
        if "const" in each:
            yield f"`{each['const']}`: {lowered(each.get('description', ''))}."


def _words(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


def module() -> str:
    """Return python/headstart/live/options.py."""
    parts = [HEAD]
    for command in _core.COMMANDS:
        if command.endswith("-watch"):
            continue
        name = "".join(word.capitalize() for word in re.split("[- ]", command))
        parts.append(f'\n\nclass {name}(TypedDict, total=False):\n    """Options of `headstart {command}`."""\n')
        for key, row in json.loads(_core.command_schema(command))["options"].items():
            if not row.keys() & {"x-argument", "x-required", "x-test"}:
                words = fill(_words(row["description"]), 112, subsequent_indent="    ")
                parts.append(f'\n    {key}: {_kind(row)} | None\n    """{words}"""')
        parts.append("\n")
    return "".join(parts)


def _kind(row: Schema) -> str:
    choices = row.get("enum") or [each["const"] for each in row.get("oneOf", ())]
    if choices:
        return f"Literal[{', '.join(json.dumps(each) for each in choices)}]"
    if "anyOf" in row:
        return " | ".join(dict.fromkeys(_kind(each) for each in row["anyOf"]))
    if row.get("type") == "array":
        return f"Sequence[{_kind(row['items'])}]"
    if row.get("type") == "object" and row.get("additionalProperties", {}) == {"type": "string"}:
        return "Mapping[str, str | PathLike[str]]"
    if row.get("x-unit") == "size":
        return "str | int"
    return "str | PathLike[str]" if "x-file" in row else KINDS[row["type"]]

"""Tables of keys, from the schema of a scenario: what a key means stands in its field's documentation, once."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from tables import table

import headstart

MARK = re.compile(r"<!-- keys: ([a-z -]+) -->\n(.*?)<!-- end of keys -->\n", re.DOTALL)
OF_ALL = ("name", "replacement", "hints", "files")
"""Keys that the text beside a table describes."""
OF_FIRST = ("initial", "write_delay", "write_cluster")
"""Keys of the first level alone."""

Schema = dict[str, Any]


def rendered(text: str) -> str:
    """Return a page with its tables of keys written anew."""
    schema = headstart.schema()["properties"]
    return MARK.sub(lambda found: f"<!-- keys: {found[1]} -->\n{_table(found[1], schema)}<!-- end of keys -->\n", text)


def _table(what: str, schema: Schema) -> str:
    which, *families = what.split()
    match which:
        case "workload":
            given = schema["workload"]["anyOf"][0]["properties"]
            trace = {"trace": given["trace"], "generator": schema["workload"]["properties"]["generator"]}
            return table(("key", "default", "meaning"), _rows(trace | given))
        case "host":
            return table(("key", "default", "meaning"), _rows(schema["host"]["properties"]))
        case "policies":
            names = {row["name"] for row in headstart.catalog()["policies"] if row["family"] in families}
            return _of_things("policy", schema["policy"], names)
        case "replacements":
            policies = _tables(schema["policy"])
            return _of_things("replacement", policies["demand"]["replacement"], None)
        case "coordinators":
            level = schema["level"]["items"]["properties"]
            return _of_things("coordinator", level["coordinator"], None)
        case "level":
            level = schema["level"]["items"]["properties"]
            return table(
                ("key", "default", "meaning"), _rows({key: level[key] for key in level if key not in OF_FIRST})
            )
        case "device":
            models = _tables(schema["device"])
            every = {key: keys for key, keys in models["hp97560"].items() if all(key in of for of in models.values())}
            return table(("key", "default", "meaning"), _rows(every))
        case "schedulers" | "arrays":
            device = _tables(schema["device"])["hp97560"]
            return _of_things(which.removesuffix("s"), device[which.removesuffix("s")], None)
        case "generators":
            given = schema["workload"]["anyOf"][0]["properties"]
            own = {
                name: {key: value for key, value in keys.items() if value != given.get(key)}
                for name, keys in _tables(schema["workload"]).items()
            }
            choices = [{"title": name, "properties": keys} for name, keys in own.items()]
            return _of_things("generator", {"anyOf": choices}, None, skipped={"generator"})
        case _:
            allowed = (
                "workload, level, device, host, policies, replacements, coordinators, schedulers, arrays, generators"
            )
            raise headstart.HeadstartError(f"keys: there is no table of {what}; allowed: {allowed}")


def _tables(schema: Schema) -> dict[str, Schema]:
    """Return the keys of each thing that has a name and keys."""
    return {choice["title"]: choice["properties"] for choice in schema["anyOf"] if "title" in choice}


def _of_things(kind: str, schema: Schema, names: set[str] | None, skipped: Collection[str] = OF_ALL) -> str:
    rows = []
    for name, keys in _tables(schema).items():
        if name != "trace" and (names is None or name in names):
            own = {key: value for key, value in keys.items() if key not in skipped}
            shown = iter([f"`{name}`"])
            rows += [(next(shown, ""), *row) for row in _rows(own)] or [(f"`{name}`", "", "", "no keys of its own")]
    return table((kind, "key", "default", "meaning"), rows)


def _rows(keys: Schema) -> Iterator[tuple[str, str, str]]:
    for key, value in keys.items():
        default = f"`{json.dumps(value['default'])}`" if "default" in value else value.get("x-absent", "")
        words = " ".join(value.get("description", "").split())
        yield f"`{key}`", default, " ".join([words, *_choices(value)]).strip()


def _choices(value: Schema) -> Iterator[str]:
    """Say what each name of an enumeration means."""
    named = [each for each in value.get("oneOf", []) if "const" in each]
    if named:
        yield (
            "; ".join(f"`{json.dumps(each['const'])}`: {lowered(each.get('description', ''))}" for each in named) + "."
        )


def lowered(words: str) -> str:
    """Return a description as the rest of a sentence: no full stop, and a small letter unless it begins a name."""
    text = " ".join(words.split()).rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text

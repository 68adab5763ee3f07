"""Policy names of `compare` and `advise`: "demand:min", "linux:read_ahead=1MiB", "linux/ra" for two levels."""

import functools
import tomllib
from collections.abc import Mapping
from typing import Any

from headstart import custom
from headstart._core import HeadstartError
from headstart.registry import Entry, catalog


def policy_keys(text: str) -> dict[str, Any]:
    """Return the [policy] section for a policy name.

    "demand:min" is demand with replacement min, "fixed-horizon:horizon=124" sets a key of the policy,
    "mine.py:Mine" is a class of Python (`headstart.custom`).
    """
    name, *rest = (part.strip() for part in custom.split(text))
    keys: dict[str, Any] = {"name": name}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            key, value = "replacement", part
        if not key.strip() or not value.strip():
            raise HeadstartError(f'policies: "{text}"; allowed: NAME, NAME:REPLACEMENT, NAME:key=value')
        keys[key.strip()] = toml_value(value.strip())
    return dict(custom.section_of(keys))


def policy_text(keys: Mapping[str, Any] | str) -> str:
    """Return a name for a [policy] section of a scenario: its policy, and the replacement if it names one."""
    if isinstance(keys, str):
        return keys
    replacement = keys.get("replacement")
    name = replacement.get("name") if isinstance(replacement, Mapping) else replacement
    return str(keys.get("name", "demand")) + (f":{name}" if name else "")


def of_levels(text: str, count: int) -> list[dict[str, Any]]:
    """Return the [policy] section of each of `count` levels: "linux/ra" names two, "linux" the same one for all."""
    sections = [policy_keys(part) for part in levels_of(text)]
    if len(sections) == 1:
        return [dict(sections[0]) for _ in range(count)]
    if len(sections) != count:
        levels = "one level" if count == 1 else f"{count} levels"
        allowed = "one policy" if count == 1 else f"one policy for all levels, or {count} with / between them"
        raise HeadstartError(f'policies: "{text}" names {len(sections)}, for {levels}; allowed: {allowed}')
    return sections


def levels_of(text: str) -> list[str]:
    """Return the policies of "linux/ra"; the / of a path, as in "mine/own.py:Mine", does not separate levels."""
    if not custom.is_custom(text):
        return text.split("/")
    parts, held = list[str](), list[str]()
    for piece in text.split("/"):
        held.append(piece)
        if _is_whole("/".join(held)):
            parts.append("/".join(held))
            held = []
    return parts + (["/".join(held)] if held else [])


def _is_whole(text: str) -> bool:
    """Return whether a text is a complete policy, not the beginning of a path."""
    name, *rest = (part.strip() for part in custom.split(text))
    replacements = {str(entry["name"]) for entry in catalog()["replacements"]}
    known = name in rows() or custom.is_custom(name)
    return known and all("=" in part or part in replacements or custom.is_custom(part) for part in rest)


def toml_value(text: str) -> object:
    """Return the value of `text` as TOML; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


@functools.cache
def rows() -> dict[str, Entry]:
    """Return the registry's row of each policy."""
    return {str(entry["name"]): entry for entry in catalog()["policies"]}


@functools.cache
def _hinted_replacements() -> frozenset[str]:
    return frozenset(str(entry["name"]) for entry in catalog()["replacements"] if entry["hinted"])


def kind(policy: str) -> str:
    """Return the kind of a policy: "demand", "hinted", "parallel" or "read-ahead"; with several levels, of the last.

    A predictor takes requests like a read-ahead and counts as one.
    """
    kinds = [_kind(policy_keys(part)) for part in levels_of(policy)]
    return max(kinds, key=["demand", "hinted", "parallel", "read-ahead"].index)


def _kind(keys: Mapping[str, Any]) -> str:
    if custom.is_custom(keys["name"]):
        return "hinted" if custom.kind_of(custom.resolve(keys["name"])[0]) == "policy" else "read-ahead"
    family = str(rows().get(keys["name"], {}).get("family", "demand"))
    if family == "demand" and _replacement(keys) in _hinted_replacements():
        return "hinted"
    return "read-ahead" if family == "predictor" else family


def _replacement(keys: Mapping[str, Any]) -> Any:
    replacement = keys.get("replacement")
    return replacement.get("name") if isinstance(replacement, Mapping) else replacement


def by_position(policy: str) -> bool:
    """Return whether a policy prefetches by position, so that it needs a trace with addresses."""
    return any(_by_position(str(policy_keys(part)["name"])) for part in levels_of(policy))


def _by_position(name: str) -> bool:
    if custom.is_custom(name):
        return custom.kind_of(custom.resolve(name)[0]).startswith("read-ahead")
    return bool(rows().get(name, {}).get("by_position"))


def knows_future(policy: str) -> bool:
    """Return whether a policy uses future references: hints, or an oracle."""
    sections = [policy_keys(part) for part in levels_of(policy)]
    return any(
        _kind(keys) in ("hinted", "parallel")
        or _replacement(keys) in _hinted_replacements()
        or rows().get(keys["name"], {}).get("needs") == "future"
        for keys in sections
    )

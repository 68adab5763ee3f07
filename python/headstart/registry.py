"""The registries: the rows of every registry of the core."""

import json
from typing import Any, cast

from headstart import _core

Entry = dict[str, Any]
"""`name`, `summary`, `source`, and `keys` (own keys with their defaults). Policies and replacements have `hinted`,
whether they use hints, and policies `open_replacement`, whether they can be combined with a replacement, and `family`
("demand", "hinted", "parallel", "read-ahead" or "predictor"). Read-aheads and predictors have `needs`, the information
that they need ("nothing", "drive" for the drive's seeks, or "future"). Formats have `carries`, the information that a
trace has."""


def catalog() -> dict[str, list[Entry]]:
    """Return all choices by name, as `headstart list` prints them.

    The result has a list of entries for each of `policies`, `replacements`, `coordinators`, `devices`, `arrays`,
    `schedulers`, `formats` and `workloads`. An entry has `name`, `summary`, `source` (the paper or program that it
    follows) and `keys` (its own keys with their defaults).
    """
    return cast("dict[str, list[Entry]]", json.loads(_core.catalog()))


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario: the type, default, range and meaning of every key."""
    return cast("dict[str, Any]", json.loads(_core.schema()))

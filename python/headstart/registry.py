"""The registries: the rows of every registry of the core."""

import json
from typing import Any, cast

from headstart import _core

Entry = dict[str, Any]
"""`name`, `summary`, `source`, `keys` (own keys with their defaults). Policies and replacements also say whether they
are `hinted`, policies whether they leave replacement open (`open_replacement`) and of which `family` they are
("demand", "hinted", "parallel", "read-ahead", "predictor"), those two the information that they need (`needs`:
"nothing", the "drive"'s seeks, the "future"), formats what a trace `carries`."""


def catalog() -> dict[str, list[Entry]]:
    """Return the policies, replacements, coordinators, devices, schedulers, formats and workloads."""
    return cast("dict[str, list[Entry]]", json.loads(_core.catalog()))


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario: every key with its type, default, range and meaning."""
    return cast("dict[str, Any]", json.loads(_core.schema()))

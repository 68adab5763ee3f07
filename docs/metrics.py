"""What results say of the counts of levels: in the docs and in the package's types, from the one table of the core."""

import json
import textwrap
from typing import Any

from tables import table

from headstart import _core

HEAD = "# Written by `make docs` from crates/core/engine/src/counts.rs.\n"
END = "# End of what is written.\n"
KINDS = {"u64": "int", "f64": "float"}
WIDTH = 120
"""Of a line of Python."""


def of_result(*, wanted: bool) -> list[dict[str, Any]]:
    """Return the metrics that a result has of the application, or those that only levels have."""
    return [metric for metric in json.loads(_core.metrics()) if metric["of_result"] == wanted]


def page(text: str) -> str:
    """Return docs/scenario.md with its two tables."""
    for name, wanted in (("counts", True), ("counts of levels", False)):
        begin, end = f"<!-- {name}: written by make docs -->\n", f"<!-- end of {name} -->\n"
        before, rest = text.split(begin)
        rows = ((f"`{metric['name']}`", metric["summary"].removesuffix(".")) for metric in of_result(wanted=wanted))
        text = f"{before}{begin}{table(('field', 'meaning'), rows)}{end}{rest.split(end)[1]}"
    return text


def module(text: str) -> str:
    """Return a module with the fields of its classes: the first place has the counts, the second those of levels."""
    places = text.split(f"    {HEAD}")
    rendered = places[0]
    for place, wanted in zip(places[1:], (True, False), strict=False):
        fields = "".join(_field(metric) for metric in of_result(wanted=wanted))
        rendered += f"    {HEAD}{fields}    {END}{place.split(f'    {END}')[1]}"
    return rendered


def _field(metric: dict[str, Any]) -> str:
    words = textwrap.wrap(f'"""{metric["summary"]}"""', WIDTH - 4)
    return textwrap.indent("\n".join([f"{metric['name']}: {KINDS[metric['kind']]}", *words, ""]), "    ")

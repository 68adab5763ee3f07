"""Studies: one module per paper, every published number beside ours.

A study is a module of this package with

- `TITLE`: the paper in one line,
- `SEEDS`: the seeds of its random numbers, in words,
- `ITEMS`: each item that can be asked for (a figure, a table, a finding) and one line on what it is,
- `run(items, report, draw)`: the rows of these items, in their order; `report(text, share)` tells how far it is, and
  `draw(item, chart)`, where it is given, takes the pictures of those items that have one.

`headstart reproduce` finds the module by its name, dashes for underscores: nothing else is to be registered.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from headstart._core import HeadstartError
from headstart.studies._rows import Row, Verdict

if TYPE_CHECKING:
    from headstart.report.charts import Chart

__all__ = ["Draw", "Report", "Row", "Study", "Verdict", "load", "names"]

Report = Callable[[str, float], None]
"""Called with what is under way and the share done, 0 to 1."""


Draw = Callable[[str, "Chart"], None]
"""Called with an item and its picture."""


class Study(Protocol):
    """What a study module offers."""

    TITLE: str
    SEEDS: str
    ITEMS: dict[str, str]

    def run(self, items: list[str], report: Report, draw: Draw | None = None) -> list[Row]:
        """Compute the rows of `items`, and hand their pictures to `draw`."""


def names() -> list[str]:
    """Return the names of all studies, in alphabetical order."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def load(name: str) -> Study:
    """Return the study `name`.

    Raises:
        HeadstartError: There is no such study.
    """
    if name not in names():
        raise HeadstartError(f'paper: no study "{name}"; allowed: {", ".join(names()) or "none yet"}')
    return cast("Study", importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))

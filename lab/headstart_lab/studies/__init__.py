"""Studies: one module per paper, every published number beside ours.

A study is a module of this package with `STUDY`, a `Study`: title, items, and how each of them is computed and drawn.
`headstart reproduce` finds the module by its name, dashes for underscores: nothing else is to be registered.
"""

import importlib
import pkgutil
from typing import Any

from headstart._core import HeadstartError
from headstart._input import meant
from headstart_lab.studies._lab import Report
from headstart_lab.studies._rows import Row, Verdict
from headstart_lab.studies._study import Draw, Study

__all__ = ["Draw", "Report", "Row", "Study", "Verdict", "load", "names"]


def names() -> list[str]:
    """Return the names of all studies, in alphabetical order."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def load(name: str) -> Study[Any]:
    """Return the study `name`.

    Raises:
        HeadstartError: There is no such study.
    """
    if name not in names():
        known = [*names(), "li07-live"]
        raise HeadstartError(f'paper: no study "{name}"{meant(name, known)}; allowed: {", ".join(known)}')
    study: Study[Any] = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").STUDY
    return study

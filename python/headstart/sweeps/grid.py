"""A grid: a scenario, and lists of values for some of its keys. Every combination is one run.

    [grid]
    "cache.blocks" = [320, 640]
    "policy" = ["demand", {name = "forestall"}]

A key is a path in the form used by `--set`. Values override the scenario in the order of the keys, so the last key
varies fastest. Runs are numbered from 0 in that order.
"""

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from headstart._core import HeadstartError, InternalError
from headstart._input import plain
from headstart.simulation import explain, located, source_of

RUNS_MAX = 250_000
TRIED_MAX = 1_000
"""Maximum number of runs checked before the first one starts, to find one that is valid."""
ALLOWED = 'a table [grid] of key paths and lists, such as "cache.blocks" = [320, 640]'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One run of a grid: the settings that override the scenario, and the place of the trace."""

    index: int
    overrides: tuple[str, ...]
    trace: str | None
    """As the grid names it; `None` if the workload is generated or inline."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
    """A scenario without its [grid], and the lists of that table."""

    scenario: Mapping[str, Any]
    axes: Mapping[str, Sequence[Any]]
    overrides: tuple[str, ...] = ()
    """Applied to the scenario before the values of the grid."""
    folder: Path = dataclasses.field(default_factory=Path)
    """Folder in which files that are not in the working folder are looked up."""

    def __len__(self) -> int:
        """Return the number of runs."""
        return math.prod(map(len, self.axes.values()))

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Return the values of each run, in order."""
        return itertools.product(*self.axes.values())

    def cases(self) -> Iterator[Case]:
        """Return the runs, in order."""
        # Each value once, since looking for files takes time.
        lists = [[f"{key}={toml_text(self._located(key, value))}" for value in self.axes[key]] for key in self.axes]
        for index, (values, given) in enumerate(zip(self.values(), itertools.product(*lists), strict=True)):
            yield Case(index=index, overrides=(*self.overrides, *given), trace=self._trace(values))

    @functools.cached_property
    def base(self) -> dict[str, Any]:
        """The scenario that the settings of each run override, with the paths of files in the grid's folder."""
        return {key: self._located(key, value) for key, value in self.scenario.items()}

    def _located(self, key: str, value: Any) -> Any:
        return located(value, key.rpartition(".")[2], self.folder.absolute())

    def _trace(self, values: Sequence[Any]) -> str | None:
        workload = self._base
        for key, value in zip(self.axes, values, strict=True):
            if key == "workload" and isinstance(value, Mapping):
                workload = value
            elif key == "workload.trace":
                workload = {**workload, "trace": value}
        trace = workload.get("trace")
        return trace if isinstance(trace, str) else None

    @functools.cached_property
    def _base(self) -> Mapping[str, Any]:
        workload = self.scenario.get("workload", {})
        found = dict(workload) if isinstance(workload, Mapping) else {}
        for each in self.overrides:
            key, _, value = each.partition("=")
            if key.strip() == "workload.trace":
                found["trace"] = _toml_value(value.strip())
        return found

    def digest(self) -> str:
        """Return the SHA-256 of the input of the rows: the scenario, the overriding settings, and the lists."""
        parts = [self.scenario, list(self.overrides), list(self.axes.items())]
        return hashlib.sha256(json.dumps(parts, sort_keys=False, ensure_ascii=False).encode()).hexdigest()

    def check(self) -> None:
        """Find mistakes that keep every run from starting; traces are not read.

        Raises:
            HeadstartError: None of the first runs can be made: the reason of the first.
        """
        first: HeadstartError | None = None
        for case in itertools.islice(self.cases(), TRIED_MAX):
            try:
                explain(self.base, overrides=case.overrides)
                return
            except InternalError:
                raise
            except HeadstartError as error:
                first = first or error
        if first is not None:
            raise first


def read(source: str | PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()) -> Grid:
    """Return the grid of a TOML file or of a mapping of the same shape.

    Raises:
        HeadstartError: It cannot be read, or its [grid] is none.
    """
    if isinstance(source, Mapping):
        name, folder, whole = "grid", Path(), json.loads(source_of(source)["json"])
    else:
        name, folder = plain(source), Path(source).parent
        whole = _read_toml(Path(source), name)
    table = whole.pop("grid", None)
    if table is None:
        raise HeadstartError(f"{name}: no table [grid]; allowed: {ALLOWED}")
    if not isinstance(table, Mapping) or not table:
        raise HeadstartError(f"{name}: grid holds no lists; allowed: {ALLOWED}")
    axes = dict(_axes(table, f"{name}: grid"))
    grid = Grid(scenario=whole, axes=axes, overrides=tuple(overrides), folder=folder)
    if len(grid) > RUNS_MAX:
        raise HeadstartError(f"{name}: grid: {len(grid):,} runs; allowed: at most {RUNS_MAX:,}")
    return grid


def _read_toml(path: Path, name: str) -> dict[str, Any]:
    allowed = "allowed: a scenario in TOML with a table [grid], as docs/sweep.md describes it"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise HeadstartError(f"{name}: {error.strerror}; {allowed}") from error
    except UnicodeDecodeError as error:
        raise HeadstartError(f"{name}: is not UTF-8; {allowed}") from error
    except tomllib.TOMLDecodeError as error:
        raise HeadstartError(f"{name}: {error}; {allowed}") from error


def _axes(table: Mapping[str, Any], at: str, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Return each list with its key path; a key without quotes is a table within the table."""
    for key, values in table.items():
        here = f"{path}.{key}" if path else key
        if isinstance(values, Mapping) and values:
            yield from _axes(values, at, here)
            continue
        if not isinstance(values, list) or not values:
            raise HeadstartError(f'{at}: "{plain(here)}" is no list of values; allowed: {ALLOWED}')
        for value in values:
            try:
                toml_text(value)
            except HeadstartError as error:
                raise HeadstartError(f'{at}: "{plain(here)}": {error}') from None
        texts = [toml_text(value) for value in values]
        twice = next((text for text in texts if texts.count(text) > 1), None) if len(texts) < 10_000 else None
        if twice is not None:
            raise HeadstartError(f'{at}: "{plain(here)}" has {plain(twice)} twice; allowed: each value once')
        yield here, values


def toml_text(value: Any) -> str:
    """Return a value as TOML, on one line.

    Raises:
        HeadstartError: No key of a scenario takes such a value.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int() if -(1 << 63) <= value < 1 << 63:
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(toml_text, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{_key(str(key))} = {toml_text(each)}' for key, each in value.items())}}}"
    raise HeadstartError(
        f"{plain(value)} is no value of a scenario; allowed: text, numbers, true, false, lists, tables"
    )


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_text(key)


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text

"""Traces from memory: a table or a list of offsets, in place of a trace's path.

    trace = headstart.Trace(frame)                      # a pandas or polars frame, an Arrow table, a structured array
    trace = headstart.Trace({"offset": [0, 8192], "size": 8192})
    headstart.compare(trace, policies=["demand", "linux"], device="nvme")
    headstart.simulate({"workload": {"trace": trace}, "policy": "linux"})

The core streams traces from files, without the GIL. A `Trace` is therefore a CSV file in a private folder, which is
deleted with the object; `write` keeps a copy.
"""

import datetime
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart._core import HeadstartError

ADDRESSES = ("offset", "lba", "lbn", "sector", "block", "id")
"""Columns of addresses, of which a trace has one: bytes, sectors of 512 bytes (three names), or an object's number
(two)."""
TIMES = ("time", "timestamp", "dur", "duration", "service", "think")
OTHERS = (*TIMES, "size", "nsect", "op", "pid", "file", "dev", "device")
UNITS = ("_s", "_ms", "_us", "_ns")
CHUNK = 65_536
"""Number of lines written at once."""


class Trace(os.PathLike[str]):
    """A trace made from requests in memory. It can be given wherever a function takes the path of a trace.

    Args:
        table: A mapping of columns, a pandas or polars frame, an Arrow table, or a structured NumPy array, with one row
            per request; or a sequence of offsets in bytes, shape (requests,). Columns are named as those of a CSV trace
            (docs/scenario.md): `offset` (bytes), `lba` (sectors of 512 bytes) or `block`; `size` (bytes), `time`,
            `dur`, `think`, `op`, `pid`, `file`. Names of times may have a unit: `time_ns`, `think_us`. Other columns
            are ignored. A single value applies to all rows. Datetimes are counted from the first one.
        size: Size of each request in bytes, if there is no column `size`.
        name: Name of the file, without `.csv`, as it appears in results.

    Raises:
        HeadstartError: A column is missing, has another length than the others, or lacks a value.
    """

    def __init__(self, table: Any, *, size: int | None = None, name: str = "trace") -> None:
        columns = _columns(table, size)
        self.columns = tuple(columns)
        self.requests = len(columns[self.columns[0]])
        if not name or Path(name).name != name:
            raise HeadstartError(f'name: "{name}"; allowed: the name of a file, without a folder')
        folder = Path(tempfile.mkdtemp(prefix="headstart-"))
        self._remove = weakref.finalize(self, _remove, folder, os.getpid())
        self._path = folder / f"{name}.csv"
        with self._path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(_lines(columns))

    def __fspath__(self) -> str:
        """Return the path of the file."""
        return str(self._path)

    def __repr__(self) -> str:
        """Return a description of its contents."""
        return f"<headstart.Trace: {self.requests:,} requests, columns {', '.join(self.columns)}>"

    def write(self, target: str | os.PathLike[str]) -> None:
        """Write the trace to a permanent CSV file."""
        shutil.copyfile(self._path, target)


def _remove(folder: Path, owner: int) -> None:
    # A forked process must not remove its parent's file.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _columns(table: Any, size: int | None) -> dict[str, Sequence[Any]]:
    """Return the columns that a trace has, as sequences of one length."""
    found = {name: column for name, column in _named(table) if _known(name)}
    if not any(name in ADDRESSES for name in found):
        raise HeadstartError(f"trace: no column of addresses; allowed: one of {', '.join(ADDRESSES)}")
    if size is not None:
        if "size" in found or "nsect" in found:
            raise HeadstartError("size: given beside a column of sizes; allowed: one of the two")
        found["size"] = size
    elif not {"size", "nsect", "block", "id"} & set(found):
        raise HeadstartError("trace: no column size; allowed: a column size, or size=BYTES for all requests")
    columns = dict(_values(name, column) for name, column in found.items())
    lengths = {name: len(column) for name, column in columns.items() if not isinstance(column, str | int | float)}
    if not lengths or not min(lengths.values()):
        raise HeadstartError("trace: no requests; allowed: at least one")
    count = max(lengths.values())
    for name, length in lengths.items():
        if length != count:
            raise HeadstartError(f"trace: column {name} has {length:,} values, another {count:,}; allowed: as many")
    return {name: column if name in lengths else [column] * count for name, column in columns.items()}


def _named(table: Any) -> Iterator[tuple[str, Any]]:
    """Return the columns of a table of any supported library, with their names."""
    if isinstance(table, Mapping):
        yield from table.items()
        return
    # polars and pandas have `columns`, Arrow `column_names` (its `columns` have no names), NumPy `dtype.names`.
    names = getattr(table, "column_names", None) or getattr(getattr(table, "dtype", None), "names", None)
    names = getattr(table, "columns", None) if names is None else names
    if names is not None:
        for name in names:
            yield str(name), table[name]
    elif isinstance(table, Iterable) and not isinstance(table, str | bytes):
        yield "offset", table
    else:
        raise HeadstartError(f"trace: a {type(table).__name__} is no table; allowed: columns by name, or offsets")


def _known(name: str) -> bool:
    base = next((name.removesuffix(unit) for unit in UNITS if name.endswith(unit)), name)
    return name in ADDRESSES or name in OTHERS or base in TIMES


def _values(name: str, column: Any) -> tuple[str, Any]:
    """Return a column as a list of numbers or text; datetimes become nanoseconds since the first."""
    if isinstance(column, str | int | float):
        return name, column
    if getattr(getattr(column, "dtype", None), "kind", "") in ("M", "m") and hasattr(column, "to_numpy"):
        # pandas: nanoseconds, microseconds or seconds, as the frame was made.
        column = column.to_numpy()
    if getattr(getattr(column, "dtype", None), "kind", "") in ("M", "m"):
        if (column != column).any():
            raise _missing(name, int((column != column).argmax()))
        kind = column.dtype.kind
        whole = column.astype(f"{kind}8[ns]").astype("int64")
        return f"{name}_ns", (whole - whole.min() if kind == "M" and len(whole) else whole).tolist()
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            column = getattr(column, method)()
            break
    values = list(column)
    if values and isinstance(values[0], datetime.datetime | datetime.timedelta):
        if None in values:
            raise _missing(name, values.index(None))
        start = min(values) if isinstance(values[0], datetime.datetime) else datetime.timedelta()
        return f"{name}_us", [(each - start) // datetime.timedelta(microseconds=1) for each in values]
    return name, values


def _missing(name: str, index: int) -> HeadstartError:
    return HeadstartError(f"trace: {name} of request {index + 1:,} is no value; allowed: a value")


def _lines(columns: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    yield ",".join(columns) + "\n"
    rows = zip(*columns.values(), strict=True)
    names = list(columns)
    for first in itertools.count(0, CHUNK):
        chunk = list(itertools.islice(rows, CHUNK))
        if not chunk:
            return
        for index, row in enumerate(chunk):
            for name, value in zip(names, row, strict=True):
                if value is None or value != value:
                    raise _missing(name, first + index)
        yield "".join(",".join(map(_field, row)) + "\n" for row in chunk)


def _field(value: Any) -> str:
    if not isinstance(value, str):
        # A column that once lacked values holds 3 as 3.0.
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if "\n" in value or "\r" in value:
        raise HeadstartError(f"trace: {value!r} has a line end; allowed: text on one line")
    return '"' + value.replace('"', '""') + '"' if "," in value or '"' in value else value

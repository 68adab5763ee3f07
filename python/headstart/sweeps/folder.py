"""The folder of a sweep: a manifest, part files while it runs, `results.parquet` at the end.

    manifest.json      the digest of the grid, the version, the number of runs, the versions of the traces; at the end
                       the digests of the results
    parts/*.jsonl      finished runs, a line each: index, row and checksum; a torn or damaged line does not count
    results.parquet    all rows, in the order of the grid; written atomically, after which the parts are removed
    lock               held by the sweep and its workers

A part is written by one process and only grows. The results file does not depend on the parts, byte for byte. The
digest of each row group, and of what follows the last one, is in the manifest before the results file appears: a kill
between the two leaves the parts, from which both are written again.
"""

import contextlib
import fcntl
import fnmatch
import hashlib
import io
import json
import os
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from headstart import temporary
from headstart._core import HeadstartError, __version__, without_credentials
from headstart._input import plain
from headstart.sweeps.grid import Grid, toml_text
from headstart.sweeps.rows import FIGURES

FORMAT = 1
BATCH = 1 << 14
"""Rows per row group of the Parquet file."""
SYNC_EVERY_S = 1.0
LOCK_WAIT_S = 2.0
"""The workers of a killed sweep release its lock within this time."""


class Part:
    """A part file that this process appends to."""

    def __init__(self, path: str | Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._synced = time.monotonic()

    def append(self, index: int, row: Mapping[str, Any]) -> None:
        """Add a row. It survives the end of this process at once, and a crash of the machine after a second."""
        _write_all(self._descriptor, _line(index, row))
        now = time.monotonic()
        if now > self._synced + SYNC_EVERY_S:
            self._synced = now
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Flush the file to disk."""
        os.fsync(self._descriptor)
        os.close(self._descriptor)


class Folder:
    """The folder of one sweep; one process at a time."""

    def __init__(self, path: Path, grid: Grid) -> None:
        self.path = path
        self.grid = grid
        self.results = path / "results.parquet"
        self._parts = path / "parts"
        self._manifest = path / "manifest.json"

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """For the duration of the block, add the folder to system errors: those of fsync and the like name no file."""
        try:
            yield
        except OSError as error:
            problem = f"{plain(error.filename or self.path)}: {plain(error.strerror or error)}"
            raise HeadstartError(f"{problem}; allowed: a folder that can be written, with room") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Create the folder if there is none, and lock it against other sweeps; yield the descriptor of the lock.

        Raises:
            HeadstartError: Another sweep runs there, or it holds something else.
        """
        with self.named():
            self._check_content()
            self.path.mkdir(exist_ok=True)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            with self.named():
                self._take(descriptor)
                for each in self._left():
                    each.unlink()
                self._check_manifest()
                self._parts.mkdir(exist_ok=True)
            yield descriptor
        finally:
            # This releases the lock, even if it fails.
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    problem = f"{plain(self.path)}: another sweep is running in it"
                    raise HeadstartError(f"{problem}; allowed: one at a time, or another folder") from None
            time.sleep(0.02)

    def _left(self) -> list[Path]:
        """Return the unfinished files of sweeps that were killed."""
        names = (self._manifest.name, self.results.name)
        return [path for name in names for path in _found(self.path, f".{name}.*.tmp")]

    def _check_content(self) -> None:
        name = plain(self.path)
        if _is_there(self.path) and not self.path.is_dir():
            raise HeadstartError(f"{name}: is no folder; allowed: an empty folder, or one that is made")
        if not _is_there(self.path) and not self.path.parent.is_dir():
            problem = f"{name}: there is no folder {plain(self.path.parent)}"
            raise HeadstartError(f"{problem}; allowed: a folder that exists, or one to be made in such a folder")
        if not os.access(self.path if _is_there(self.path) else self.path.parent, os.W_OK):
            raise HeadstartError(f"{name}: cannot be written; allowed: a folder that can be written")
        if (
            _is_there(self.path)
            and not _is_there(self._manifest)
            and {each.name for each in self.path.iterdir()} - {"lock"} - {each.name for each in self._left()}
        ):
            raise HeadstartError(
                f"{name}: holds files but no sweep; allowed: an empty folder, or that of the same grid"
            )

    def _check_manifest(self) -> None:
        own = {
            "format": FORMAT,
            "version": __version__,
            "grid_sha256": self.grid.digest(),
            "runs": len(self.grid),
            "keys": list(self.grid.axes),
        }
        if not _is_there(self._manifest) or not (_is_there(self.results) or _found(self._parts, "*.jsonl")):
            # Nothing has been run, so an error in the grid may have been corrected.
            _write_manifest(self._manifest, {**own, "traces": {}})
            return
        name = plain(self.path)
        try:
            there = json.loads(self._manifest.read_bytes())
            found = {key: there[key] for key in own}
        except (ValueError, KeyError, TypeError):
            raise HeadstartError(f"{name}/manifest.json: is none of a sweep; allowed: another folder") from None
        if found["version"] != __version__ and {**found, "version": __version__} == own:
            problem = f"{name}: holds rows of headstart {plain(found['version'])}, this is {__version__}"
            raise HeadstartError(f"{problem}; allowed: that version, or another folder")
        if found != own:
            problem = f"{name}: holds another grid, of {found['runs']} runs"
            raise HeadstartError(f"{problem}; allowed: the grid it was begun with, or another folder")

    def is_finished(self) -> bool:
        """Whether the results are there."""
        with self.named():
            return _is_there(self.results)

    def check_traces(self, traces: Mapping[str, str]) -> None:
        """Record the versions of the traces by name; refuse to continue if one has changed since the sweep began.

        Raises:
            HeadstartError: One has changed.
        """
        there = json.loads(self._manifest.read_bytes())
        for trace, mark in traces.items():
            name = without_credentials(trace)
            if name != trace:
                # The query may select one of several versions of an object.
                name += f" {hashlib.sha256(trace.encode()).hexdigest()[:16]}"
            if there["traces"].setdefault(name, mark) != mark:
                problem = f"{plain(name)}: has changed since the sweep in {plain(self.path)} was begun"
                raise HeadstartError(f"{problem}; allowed: another folder")
        _write_manifest(self._manifest, there)

    def check_results(self) -> None:
        """Compare the results with their digests. Results without any, of an earlier version, are only read.

        Raises:
            HeadstartError: They are damaged.
        """
        name = plain(self.results)
        try:
            problem = self._damage()
        except OSError as error:
            # pyarrow raises it for a damaged file, too.
            problem = f"{error.strerror or 'is damaged'}"
        except (ArithmeticError, LookupError, TypeError, ValueError):
            problem = "is damaged, or its manifest.json is"
        if problem is not None:
            allowed = f"the file as it was written, or another folder than {plain(self.path)}"
            raise HeadstartError(f"{name}: {problem}; allowed: {allowed}")

    def _damage(self) -> str | None:
        pieces = json.loads(self._manifest.read_bytes()).get("results")
        if pieces is None:
            _, pq = pyarrow()
            rows = pq.read_table(self.results).num_rows
            return None if rows == len(self.grid) else f"is damaged: it has {rows:,} rows of {len(self.grid):,}"
        with self.results.open("rb") as file:
            for number, piece in enumerate(pieces):
                if _digest(file, piece["end"] - file.tell()) != piece["sha256"]:
                    rows = f"rows {number * BATCH + 1:,} to {min((number + 1) * BATCH, len(self.grid)):,}"
                    where = rows if number + 1 < len(pieces) else "its end"
                    return f"is damaged: the digest of {where} is not that of manifest.json"
            return "is damaged: it is longer than it was" if file.read(1) else None

    def new_part(self) -> Path:
        """Return the path of a part file that no other process writes."""
        return self._parts / f"{uuid.uuid4().hex}.jsonl"

    def finished(self) -> dict[int, tuple[Path, int]]:
        """Return the location of the row of each finished run: its part, and the offset in it."""
        found: dict[int, tuple[Path, int]] = {}
        for part in _found(self._parts, "*.jsonl"):
            with part.open("rb") as file:
                offset = 0
                for line in file:
                    index = _index(line)
                    if index is not None and index < len(self.grid):
                        found.setdefault(index, (part, offset))
                    offset += len(line)
        return found

    def merge(self) -> None:
        """Write all rows to `results.parquet`, in the grid's order; the parts are removed."""
        finished = self.finished()
        with contextlib.ExitStack() as stack:
            parts = {part: stack.enter_context(part.open("rb")) for part in {part for part, _ in finished.values()}}

            def row(index: int) -> dict[str, Any]:
                part, offset = finished[index]
                parts[part].seek(offset)
                found: dict[str, Any] = json.loads(parts[part].readline())[1]
                return found

            with temporary.replacing(self.results) as descriptor:
                path = Path(f"/proc/self/fd/{descriptor}")
                _write_parquet(path, self.grid, row)
                there = json.loads(self._manifest.read_bytes())
                _write_manifest(self._manifest, {**there, "results": _pieces(path)})
                os.fchmod(descriptor, 0o644)
        _sync_folder(self.path)
        self.remove_parts()

    def remove_parts(self) -> None:
        """Remove the parts: their rows are in the results."""
        for part in _found(self._parts, "*.jsonl"):
            part.unlink()
        self._parts.rmdir()


def _is_there(path: Path) -> bool:
    """Whether a path exists. `Path.exists` of some versions of Python also returns false if that is not known."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _found(folder: Path, pattern: str) -> list[Path]:
    """Return the paths in a folder whose names match, in order. Unlike `Path.glob` it raises if they cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if fnmatch.fnmatch(path.name, pattern))
    except FileNotFoundError:
        return []


def _line(index: int, row: Mapping[str, Any]) -> bytes:
    """Return the line of a row in a part, ending with a checksum of the preceding text."""
    text = json.dumps([index, row], ensure_ascii=False).removesuffix("]")
    return f"{text}, {zlib.crc32(text.encode())}]\n".encode()


def _index(line: bytes) -> int | None:
    """Return the index of a line of a part; `None` if it is torn or damaged."""
    text, _, end = line.rpartition(b", ")
    if end != f"{zlib.crc32(text)}]\n".encode():
        return None
    index, _, _ = json.loads(line)
    return int(index)


def _pieces(path: Path) -> list[dict[str, Any]]:
    """Return where each row group of a Parquet file ends and the digest of its bytes; the last piece is the rest."""
    _, pq = pyarrow()
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    ends = [_begin(group) for group in groups[1:]]
    if groups:
        columns = [groups[-1].column(number) for number in range(metadata.num_columns)]
        ends.append(max(_column_begin(column) + column.total_compressed_size for column in columns))
    with path.open("rb") as file:
        return [{"sha256": _digest(file, end - file.tell()), "end": end} for end in [*ends, path.stat().st_size]]


def _begin(group: Any) -> int:
    return min(_column_begin(group.column(number)) for number in range(group.num_columns))


def _column_begin(column: Any) -> int:
    return column.dictionary_page_offset if column.has_dictionary_page else int(column.data_page_offset)


def _digest(file: BinaryIO, size: int) -> str | None:
    """Return the SHA-256 of the next bytes of a file; `None` if there are fewer."""
    digest = hashlib.sha256()
    while size > 0:
        read = file.read(min(size, 1 << 20))
        if not read:
            return None
        digest.update(read)
        size -= len(read)
    return digest.hexdigest()


def _write_manifest(path: Path, content: Mapping[str, Any]) -> None:
    _write(path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _write(path: Path, content: bytes) -> None:
    with temporary.replacing(path) as descriptor:
        _write_all(descriptor, content)
        os.fsync(descriptor)
        os.fchmod(descriptor, 0o644)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def pyarrow(what: str = "sweep") -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module.

    Raises:
        HeadstartError: It is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise HeadstartError(f"{what}: Parquet needs pyarrow; allowed: pip install 'headstart[sweep]'") from error
    return pa, pq


def _write_parquet(path: Path, grid: Grid, row: Any) -> None:
    pa, pq = pyarrow()
    kinds = {key: _kind(values) for key, values in grid.axes.items()}
    types = {"integer": pa.int64(), "number": pa.float64(), "truth": pa.bool_(), "text": pa.string()}
    columns = {key: types[kind] for key, kind in kinds.items()}
    for name in ("seed", *FIGURES):
        columns.setdefault(name, pa.int64())
    columns.update({"error": pa.string(), "trace_sha256": pa.string(), "version": pa.string(), "schema": pa.int64()})
    schema = pa.schema(list(columns.items()))
    # gzip has a checksum that every reader verifies.
    with pq.ParquetWriter(path, schema, compression="gzip", write_statistics=True) as writer:
        lines: list[dict[str, Any]] = []
        for index, values in enumerate(grid.values()):
            own = {key: _cell(value, kinds[key]) for key, value in zip(grid.axes, values, strict=True)}
            lines.append({**row(index), **own})
            if len(lines) == BATCH or index + 1 == len(grid):
                writer.write_table(_table(lines, schema))
                lines = []
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _table(lines: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Return rows as an Arrow table. It is read from JSON: `pyarrow.array` would load pandas, a third of a second."""
    from pyarrow import json as reader

    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()
    return reader.read_json(
        io.BytesIO(text),
        # One block, so that the table has one piece.
        read_options=reader.ReadOptions(block_size=len(text) + 1, use_threads=False),
        parse_options=reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _kind(values: Sequence[Any]) -> str:
    """Return the type of a column of the grid: that of its values, or text if they have several."""
    if all(isinstance(value, bool) for value in values):
        return "truth"
    if any(isinstance(value, bool) for value in values) or not all(isinstance(value, int | float) for value in values):
        return "text"
    return "integer" if all(isinstance(value, int) for value in values) else "number"


def _cell(value: Any, kind: str) -> Any:
    """Return a value of the grid in the form of its column: text without credentials, tables and lists as TOML."""
    if kind != "text":
        return float(value) if kind == "number" else value
    return without_credentials(value if isinstance(value, str) else toml_text(value))

"""Row groups of Parquet files in a shuffled order that a store knows (docs/store.md). Needs pyarrow.

store = headstart.store("s3://bucket/table/", cache="8GiB")
keys = [key for key, _ in store.list() if key.endswith(".parquet")]
for table in headstart.parquet.groups(store, keys, ["text", "label"], seed=1, epochs=3):
    train(table)
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple

from headstart._core import HeadstartError
from headstart.live.store import Store
from headstart.live.store.file import Seekable, open_file

if TYPE_CHECKING:
    import pyarrow as pa


class Group(NamedTuple):
    """A row group of a file, and the ranges of its columns, in which neighbours are joined."""

    key: str
    number: int
    ranges: list[tuple[int, int]]


def groups(
    store: Store,
    keys: Iterable[str],
    columns: Sequence[str] | None = None,
    *,
    seed: int,
    epochs: int | None = None,
    rank: int = 0,
    ranks: int = 1,
) -> Iterator["pa.Table"]:
    """Return the row groups of files as tables, shuffled anew in each epoch by `seed`, and disclose that order.

    `columns` are names, or those of nested ones ("a.b"); without them all are read. Of `ranks` processes each takes its
    part, `rank`, of the same order. Without `epochs` there is no end.

    Raises:
        FileNotFoundError: There is no such object.
        HeadstartError: pyarrow is not installed, or a column or the rank does not exist.
    """
    if not 0 <= rank < ranks:
        raise HeadstartError(f"rank: {rank} of {ranks} is out of range; allowed: from 0 to {ranks - 1}")
    parquet = _pyarrow_parquet()
    metadata = {key: parquet.read_metadata(open_file(store, key)) for key in keys}
    found = [group for key, each in metadata.items() for group in _groups(key, each, columns)]

    def epoch(number: int) -> list[Group]:
        order = found.copy()
        random.Random(f"{seed}/{number}").shuffle(order)
        return order[rank::ranks]

    def numbers() -> Iterable[int]:
        return range(epochs) if epochs is not None else count() if epoch(0) else ()

    def tables() -> Iterator["pa.Table"]:
        order = (group for number in numbers() for group in epoch(number))
        entries = ((group.key, start, stop) for group in order for start, stop in group.ranges)
        with store.disclose(entries):
            for key, number, ranges in chain.from_iterable(map(epoch, numbers())):
                file = _Parts(store, key, ranges)
                whole = parquet.ParquetFile(file, metadata=metadata[key], pre_buffer=False)
                yield whole.read_row_group(number, columns=None if columns is None else list(columns))

    return tables()


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise HeadstartError("headstart.parquet needs pyarrow; allowed: pip install pyarrow") from error
    return pyarrow.parquet


def _groups(key: str, metadata: Any, columns: Sequence[str] | None) -> Iterator[Group]:
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]

    def is_of(column: str, path: str) -> bool:
        return path == column or path.startswith(column + ".")

    for column in columns or ():
        if not any(is_of(column, path) for path in paths):
            known = ", ".join(dict.fromkeys(path.split(".")[0] for path in paths))
            raise HeadstartError(f'columns: {key} has no column "{column}"; allowed: {known}')
    wanted = [
        number for number, path in enumerate(paths) if columns is None or any(is_of(each, path) for each in columns)
    ]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        yield Group(key, number, _joined(sorted(_range(group.column(each)) for each in wanted)))


def _range(chunk: Any) -> tuple[int, int]:
    """Return where a column's pages are."""
    begin = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        begin = min(begin, chunk.dictionary_page_offset)
    return begin, begin + chunk.total_compressed_size


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return joined


class _Parts(Seekable):
    """A file of which some ranges have been read by one request; what else is read of it comes from the store."""

    def __init__(self, store: Store, key: str, ranges: Sequence[tuple[int, int]]) -> None:
        super().__init__(store, key)
        views = store.read_many([(key, start, stop) for start, stop in ranges])
        self._parts = [(start, stop, view) for (start, stop), view in zip(ranges, views, strict=True)]

    def read(self, size: int = -1) -> "bytes | memoryview":
        begin, end = self._at, self.size if size < 0 else min(self._at + size, self.size)
        self._at = end
        return self._view(begin, end)

    read_buffer = read

    def _view(self, begin: int, end: int) -> memoryview:
        for start, stop, view in self._parts:
            if start <= begin and end <= stop:
                return view[begin - start : end - start]
        return self._store.read(self._key, begin, end)

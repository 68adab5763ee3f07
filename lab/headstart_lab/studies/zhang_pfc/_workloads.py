"""The traces of the matrix, and the stand-ins for those that are not available.

OLTP and Web are the paper's own SPC traces: here their first requests (financial1_first10k, websearch_first25k), or
the whole files where a user has them (Financial1.spc, WebSearch1.spc, plain, .gz, .bz2 or .xz), of which the first
10 GB of requests are taken as in section 4.2. Multi is multi6, programs recorded for this project; Purdue's is lost.
They are looked for in the folder that $HEADSTART_TRACES names (in it, in blocks/, in third-party/blocks/, in programs/)
and beside the project. What is absent is named in a row, never passed over.

Readings. Writes count as reads: the paper's simulator knows references only. An SPC trace has several units (ASU):
they lie one after another, in table order. Web's six units take 95 GB, the drive holds 9.1: the address space is cut in
chunks of `CHUNK_PAGES` pages, and only those in which something is asked for take room, in order. Read-ahead finds the
neighbours in a chunk, which may never be requested; seeks are shorter than they would be. (Were only the pages kept
that are asked for, read-ahead would stop at each of the others and hardly waste any: the item sensitivity shows it.)
Web asks for 413 requests a second of a drive that serves some 105: its clock is slowed by `WEB_SLOWER`. Multi is
synchronous as in section 4.2, without think times.
"""

import bz2
import dataclasses
import gzip
import lzma
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from headstart import _examples
from headstart_lab.studies._lab import BESIDE
from headstart_lab.studies.zhang_pfc import _published as paper

"""The checkout, where the package runs from one."""

WEB_SLOWER = 8.0
"""Time between Web's requests is multiplied by this: 52 a second, half of what the drive serves at random."""

CHUNK_PAGES = 64
"""Pages of a chunk, if they fit: as many as Linux' largest window ahead of each of two levels. Our choice."""

PACKED = (".xz", ".gz", ".bz2")


@dataclasses.dataclass(frozen=True)
class Source:
    """A workload of the paper and the files that may serve as it, the best first."""

    name: str
    whole: tuple[str, ...]
    """Names of the paper's own file."""
    prefix: str
    """Name of the file that comes with the project's data."""
    folders: tuple[str, ...]
    timed: bool
    """Whether requests are issued at their timestamps; otherwise each after the previous one has ended."""


_BLOCKS = (".", "blocks", "third-party/blocks")


def _packed(name: str) -> tuple[str, ...]:
    return (name, *(name + ending for ending in PACKED))


SOURCES = (
    Source("OLTP", _packed("Financial1.spc"), "financial1_first10k.spc.xz", _BLOCKS, timed=True),
    Source("Web", _packed("WebSearch1.spc"), "websearch_first25k.spc.xz", _BLOCKS, timed=True),
    Source("Multi", (), "multi6.csv.xz", (".", "programs"), timed=False),
)


@dataclasses.dataclass(frozen=True)
class Workload:
    """An existing trace, in one way of running it."""

    name: str
    label: str
    """The name in rows."""
    section: dict[str, Any] = dataclasses.field(hash=False, compare=False)
    whole: bool = False
    """Whether it is the paper's own trace, cut as in the paper."""


class Workloads:
    """The workloads of the matrix that exist, and the sources that do not."""

    def __init__(self, scratch: Path, traces: Path | None = None) -> None:
        """Look for every source; expanded copies go into `scratch`, since each trace is read hundreds of times."""
        self.found: list[Workload] = []
        self.missing: list[Source] = []
        for source in SOURCES:
            path = find(source, folders(traces))
            if path is None:
                self.missing.append(source)
            else:
                self.found.append(_workload(source, path, expanded(path, scratch)))

    def named(self, *names: str) -> list[Workload]:
        """Return the existing workloads with these names."""
        return [each for each in self.found if each.name in names]


def folders(traces: Path | None) -> list[Path]:
    """Return where to look, in order; first in `traces`, the user's folder."""
    given = [traces] if traces else []
    return [*given, _examples.TRACES, Path("examples/traces"), BESIDE]


def find(source: Source, roots: list[Path]) -> Path | None:
    """Return the best file for `source`: the paper's own anywhere before a prefix anywhere."""
    for name in (*source.whole, source.prefix):
        for root in roots:
            for folder in source.folders:
                if (path := root / folder / name).is_file():
                    return path
    return None


def expanded(path: Path, scratch: Path) -> Path:
    """Return a plain copy of `path` in `scratch`; of an SPC trace the first 10 GB of requests."""
    target = scratch / path.name.removesuffix(path.suffix if path.suffix in PACKED else "")
    with _opened(path) as source, target.open("wb") as copy:
        if target.suffix == ".spc":
            copy.writelines(first_bytes(source, paper.DATA_BYTES))
        else:
            shutil.copyfileobj(source, copy)
    table = path.with_name(path.name.replace(".csv", ".files.csv"))
    if table != path and table.is_file():
        expanded(table, scratch)
    return target


def first_bytes(lines: Iterable[bytes], data_bytes: int) -> Iterable[bytes]:
    """Return the lines of an SPC trace until requests for `data_bytes` are taken; bad lines are the reader's."""
    taken = 0
    for line in lines:
        if taken >= data_bytes:
            return
        fields = line.split(b",", 3)
        taken += int(fields[2]) if len(fields) > 3 and fields[2].strip().isdigit() else 0
        yield line


def extent_bytes(path: Path) -> int:
    """Return the bytes that the units of an SPC trace take one after another, each from a whole page on."""
    return paper.PAGE_BYTES * sum(_extents(path).values())


def chunk_pages(path: Path) -> int:
    """Return the pages of a chunk, `CHUNK_PAGES` or half of it as often as it takes to fit the drive."""
    first_page, bases = 0, {}
    for unit, pages in sorted(_extents(path).items()):
        bases[unit] = first_page
        first_page += pages
    asked = {bases[unit] + page for unit, pages in _requests(path) for page in pages}
    pages = CHUNK_PAGES
    while pages > 1 and len({page // pages for page in asked}) * pages * paper.PAGE_BYTES > paper.DRIVE_BYTES:
        pages //= 2
    return pages


def _extents(path: Path) -> dict[int, int]:
    """Return the pages up to the last one asked for, by unit."""
    ends: dict[int, int] = {}
    for unit, pages in _requests(path):
        ends[unit] = max(ends.get(unit, 0), pages.stop)
    return ends


def _requests(path: Path) -> Iterator[tuple[int, range]]:
    """Yield unit and pages of each request of an SPC trace; bad lines are the reader's."""
    with path.open("rb") as lines:
        for line in lines:
            unit, sector, size, *_ = [*(field.strip() for field in line.split(b",", 3)), b"", b""]
            if unit.isdigit() and sector.isdigit() and size.isdigit():
                first = 512 * int(sector)
                yield int(unit), range(first // paper.PAGE_BYTES, -(-(first + int(size)) // paper.PAGE_BYTES))


def variant(workload: Workload, **keys: Any) -> Workload:
    """Return the workload with other keys; `None` removes one."""
    section = {key: value for key, value in {**workload.section, **keys}.items() if value is not None}
    return dataclasses.replace(workload, section=section)


def _opened(path: Path) -> IO[bytes]:
    if path.suffix == ".xz":
        return lzma.open(path)
    if path.suffix == ".bz2":
        return bz2.open(path)
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path))
    return path.open("rb")


def _workload(source: Source, path: Path, plain: Path) -> Workload:
    section: dict[str, Any] = {"trace": str(plain), "block_size": "4KiB", "issue": "whole", "placement": "table-order"}
    whole = path.name in source.whole
    what = path.name if not whole else f"{path.name}, first 10 GB of requests"
    if not source.timed:
        return Workload(source.name, f"{what}, closed loop", section | {"compute": "0ns"})
    section["arrival"] = "open"
    how = ["open"]
    if source.name == "Web":
        section["time_scale"] = WEB_SLOWER
        how.append(f"clock {WEB_SLOWER:g} times slower")
    if extent_bytes(plain) > paper.DRIVE_BYTES:
        pages = chunk_pages(plain)
        section |= {"addresses": "compact-chunks", "chunk_blocks": pages}
        how.append(f"addresses compacted in chunks of {pages} pages")
    # With a clock or addresses of ours, even the whole file is a stand-in.
    return Workload(source.name, ", ".join([what, *how]), section, whole and len(how) == 1)

"""The paper's three workloads, rebuilt from what section 4.2 tells of them: footprint and share of random accesses.

A trace is made of runs, each of requests that lie one behind the other, in units (of a disk, or files). The first
request of a run counts as random, as it does for `trace_info`: the share of random accesses is that of runs among
requests. First runs cover the footprint, each page once; they lie side by side in a random order, so that behind a run
lies what is read at another time. Among them come runs that begin where an earlier one began, of a length of their own.

Told, and the same in each draw: footprints and random shares; OLTP and Web come by a clock, Multi waits for each answer
and reads 12,514 files with three programs; of OLTP and Web 10 GB are read in all. Writes count as reads.

Two sizes are cut, so that a draw of 480 runs takes minutes. OLTP reads a quarter of the 10 GB. Web, which hardly reads
anything twice, reads an eighth, and has an eighth of its footprint: in groups of 1 MiB and more, each followed by a
hole seven times as long, so that the arm has the way of the whole. Both caches are shares of the footprint.

Not told, and drawn uniformly from `RANGES` by the seed: pages of a request, the same for a whole trace; how many runs
are single requests (the others have a length of which two is the least, geometric beyond it, with the mean that the
random share asks for); how many units are read side by side; requests a second; over how much of the drive OLTP is
spread; how much more than its footprint Multi reads; and whether what is read again was read long ago or recently (one
chooses the r-th oldest run, the other the r-th latest, r log-uniform: like 1/r).
"""

import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._workloads import Workload

SEEDS: Final = range(1, 4)

GROUP_PAGES: Final = 256
"""Minimum pages that lie together before a hole."""

CORRECTIONS: Final = 4
"""Maximum number of times that a trace is drawn until its random share is the printed one."""

MULTI_FILES: Final = 12_514
"""Section 4.2."""

MULTI_PROGRAMS: Final = 3
"""Section 4.2: cscope, gcc, viewperf."""

Span = tuple[float, float]
"""Minimum and maximum."""


@dataclasses.dataclass(frozen=True)
class Ranges:
    """The stated properties of a workload, and the ranges of the others."""

    footprint: int
    """Pages."""
    pages: Span
    """Pages read in all, over the footprint."""
    request_pages: tuple[int, ...]
    single: Span
    """The share of runs that are one request."""
    units: tuple[int, int]
    """Units read side by side; for Multi, programs, each with a file open."""
    rate: Span | None
    """Requests a second; `None` for a closed loop."""
    spread: Span = (1, 1)
    """Place taken on the drive, over the footprint."""
    files: int | None = None
    """Files; `None`: each unit is one."""


def _pages(megabytes: float) -> int:
    return round(megabytes * 1e6 / paper.PAGE_BYTES)


OLTP_CUT: Final = 4
WEB_CUT: Final = 8
"""Divisors: they read 10 GB over this, and Web's footprint is divided by it, too."""

_READ: Final = paper.DATA_BYTES / paper.PAGE_BYTES
_OLTP: Final = _pages(paper.FOOTPRINT_MB["OLTP"])
_WEB: Final = _pages(paper.FOOTPRINT_MB["Web"] / WEB_CUT)

RANGES: Final[dict[str, Ranges]] = {
    "OLTP": Ranges(
        footprint=_OLTP,
        pages=(_READ / OLTP_CUT / _OLTP,) * 2,
        request_pages=(1, 2, 4),
        single=(0.0, 0.8),
        units=(1, 16),
        rate=(20, 80),
        spread=(1, 16),
    ),
    "Web": Ranges(
        footprint=_WEB,
        pages=(_READ / WEB_CUT / _WEB,) * 2,
        request_pages=(2, 4, 8),
        single=(0.7, 0.95),
        units=(1, 6),
        rate=(20, 60),
        spread=(WEB_CUT,) * 2,
    ),
    "Multi": Ranges(
        footprint=_pages(paper.FOOTPRINT_MB["Multi"]),
        pages=(1.25, 2.5),
        request_pages=(1, 2),
        single=(0.0, 0.6),
        units=(MULTI_PROGRAMS,) * 2,
        rate=None,
        files=MULTI_FILES,
    ),
}


class Run(NamedTuple):
    """Consecutive pages in a unit."""

    unit: int
    first: int
    pages: int


@dataclasses.dataclass(frozen=True)
class Drawn:
    """The values that a draw takes from the ranges."""

    request_pages: int
    single: float
    units: int
    rate: float | None
    spread: float
    pages: int
    recent: float
    """The share of runs that repeat recently read data."""

    @property
    def label(self) -> str:
        """The description in rows."""
        clock = "closed" if self.rate is None else f"{self.rate:.0f} requests a second"
        return (
            f"{self.request_pages} pages a request, {100 * self.single:.0f} % single, {self.units} units, {clock}, "
            f"over {self.spread:.1f} times its footprint, {self.pages} pages read"
        )


def workload(name: str, seed: int, scratch: Path) -> Workload:
    """Return a draw of a workload; its trace is written into `scratch`, once."""
    path = scratch / f"rebuilt-{name}-{seed}.spc"
    ranges = RANGES[name]
    told = drawn(name, seed)
    if not path.exists():
        with path.open("w", encoding="ascii") as file:
            file.writelines(lines(name, seed))
    section = {"trace": str(path), "block_size": "4KiB", "issue": "whole", "placement": "table-order"}
    way = {"compute": "0ns"} if ranges.rate is None else {"arrival": "open"}
    return Workload(name, f"rebuilt, seed {seed}: {told.label}", section | way)


def drawn(name: str, seed: int) -> Drawn:
    """Return what a seed draws from the ranges."""
    chance = random.Random(f"{name} {seed} ranges")
    ranges = RANGES[name]
    return Drawn(
        request_pages=chance.choice(ranges.request_pages),
        single=chance.uniform(*ranges.single),
        units=chance.randint(*ranges.units),
        rate=None if ranges.rate is None else chance.uniform(*ranges.rate),
        spread=chance.uniform(*ranges.spread),
        pages=round(ranges.footprint * chance.uniform(*ranges.pages)),
        recent=chance.random(),
    )


def lines(name: str, seed: int) -> Iterator[str]:
    """Yield the lines of a draw's trace, in the format of SPC."""
    told = drawn(name, seed)
    chance = random.Random(f"{name} {seed} times")
    waiting = [_requests(runs, told.request_pages) for runs in _streams(name, seed)]
    clock_s = 0.0
    while waiting:
        at = chance.randrange(len(waiting))
        request = next(waiting[at], None)
        if request is None:
            del waiting[at]
            continue
        if told.rate is not None:
            clock_s += chance.expovariate(told.rate)
        sectors = paper.PAGE_BYTES // 512
        yield f"{request.unit},{request.first * sectors},{request.pages * paper.PAGE_BYTES},r,{clock_s:.6f}\n"


def _streams(name: str, seed: int) -> list[list[Run]]:
    """Return the runs that are read one after another: of each unit, of Multi of each program.

    Runs that follow on their predecessor by chance, or that end with what lies side by side, move the share of random
    requests: the mean length is corrected for what comes of it.
    """
    told, files = drawn(name, seed), RANGES[name].files
    share = paper.RANDOM_PERCENT[name] / 100
    mean, streams = 1 / share, list[list[Run]]()
    for _ in range(CORRECTIONS):
        chance = random.Random(f"{name} {seed} runs")
        length = functools.partial(_length, chance, told, mean)
        streams = [[] for _ in range(told.units)]
        placed = _placed(chance, told, files or told.units, RANGES[name].footprint, length)
        for run in _order(chance, told, placed, length):
            streams[chance.randrange(told.units) if files else run.unit].append(run)
        mean *= _random_share(streams, told.request_pages) / share
    return streams


def _random_share(streams: list[list[Run]], request_pages: int) -> float:
    """Return the share of requests that do not begin where the one before in their unit ended."""
    ends: dict[int, int] = {}
    jumps = requests = 0
    for run in itertools.chain.from_iterable(streams):
        jumps += ends.get(run.unit) != run.first
        ends[run.unit] = run.first + run.pages
        requests += -(-run.pages // request_pages)
    return jumps / requests


def _length(chance: random.Random, told: Drawn, mean: float) -> int:
    """Return the pages of a run of `mean` requests on average."""
    requests = 1
    if chance.random() >= told.single:
        beyond_two = max((mean - told.single) / (1 - told.single) - 2, 0)
        requests = 2
        while chance.random() * (1 + beyond_two) < beyond_two:
            requests += 1
    return requests * told.request_pages


def _placed(
    chance: random.Random, told: Drawn, units: int, footprint: int, length: Callable[[], int]
) -> list[tuple[Run, Run]]:
    """Lay first runs side by side in units; return them with what lies from their first page on, in random order."""
    lengths = list[int]()
    while footprint > 0:
        lengths.append(min(footprint, length()))
        footprint -= lengths[-1]
    of = [*range(units), *(chance.randrange(units) for _ in lengths[units:])]
    groups: dict[int, list[list[int]]] = {unit: [[]] for unit in range(units)}
    for unit, pages in zip(of, lengths, strict=True):
        if sum(groups[unit][-1]) >= GROUP_PAGES:
            groups[unit].append([])
        groups[unit][-1].append(pages)
    placed = []
    for unit, laid in groups.items():
        begin = 0
        for group in laid:
            end = begin + sum(group)
            for first, pages in zip(itertools.accumulate(group, initial=begin), group, strict=False):
                placed.append((Run(unit, first, pages), Run(unit, first, end - first)))
            begin = end + round(sum(group) * (told.spread - 1))
    chance.shuffle(placed)
    return placed


def _order(
    chance: random.Random, told: Drawn, placed: list[tuple[Run, Run]], length: Callable[[], int]
) -> Iterator[Run]:
    """Yield the runs as they are read: each first one once, among them those that read again."""
    footprint = sum(run.pages for run, _ in placed)
    owed = 0.0
    for count, (run, _) in enumerate(placed, start=1):
        yield run
        owed += run.pages * (told.pages - footprint) / footprint
        while owed > 0:
            back = int(count ** chance.random()) - 1
            _, beside = placed[count - 1 - back if chance.random() < told.recent else back]
            again = beside._replace(pages=min(beside.pages, length()))
            yield again
            owed -= again.pages


def _requests(runs: list[Run], pages: int) -> Iterator[Run]:
    """Yield the requests of a stream."""
    for run in runs:
        for first in range(run.first, run.first + run.pages, pages):
            yield Run(run.unit, first, min(pages, run.first + run.pages - first))

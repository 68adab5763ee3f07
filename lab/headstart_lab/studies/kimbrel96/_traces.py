"""The traces that stand in for the paper's, which are lost.

`programs` were recorded for this project and ship with it (examples/traces). `buffer-cache` are the LIRS authors'
traces; they are not ours to ship and are looked for in $HEADSTART_TRACES (a folder that holds buffer-cache/, or
third-party/buffer-cache/) and beside the project. What is absent is named in a row, never passed over.

Think times come in three kinds: as recorded; scaled to the mean of the Table 3 trace that the stand-in stands for;
and, for what stands for the two postgres traces, scaled with the compute times of their two rows swapped. Table 3
gives postgres-select 79.2 s; but demand fetching that keeps one disk 82 % busy (Table 4) around 79.2 s of computing
and some 3,085 fetches would need 119 ms a fetch, five times the drive's mean. With postgres-join's 11.5 s it is
17 ms, and the crossovers of section 4.3 fit too. We take Table 3 as printed and give the other reading beside it.

A stand-in is the same kind of program as the trace that it stands for, thirty years later, on other data. Its
figures are its own: nowhere do they carry the name of a trace of the paper.
"""

import dataclasses
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from headstart import _examples
from headstart_lab.studies._lab import BESIDE, Lab
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._outcome import Outcome

"""The checkout, where the package runs from one."""


Think = Literal["as recorded", "scaled", "scaled, rows swapped"]

SWAPPED = {"postgres-join": "postgres-select", "postgres-select": "postgres-join"}


def _mean_ms(stands_for: str | None, *, swapped: bool = False) -> float:
    """Milliseconds of computing a read of a trace of Table 3, or (`None`) of the nine applications together."""
    if stands_for is not None:
        compute_s = paper.TABLE_3[SWAPPED[stands_for] if swapped else stands_for].compute_s
        return 1000 * compute_s / paper.TABLE_3[stands_for].reads
    nine = [row for name, row in paper.TABLE_3.items() if name != "synth"]
    return 1000 * sum(row.compute_s for row in nine) / sum(row.reads for row in nine)


@dataclasses.dataclass(frozen=True)
class StandIn:
    """An available trace and the one that it stands for."""

    name: str
    folder: str
    """"programs" or "buffer-cache"."""
    stands_for: str | None
    """A row of Table 3; `None`: a mixture, taken for the nine applications together."""

    @property
    def recorded(self) -> bool:
        """Whether the trace carries think times and files."""
        return self.folder == "programs"


STAND_INS = (
    StandIn("cscope1", "programs", "cscope1"),
    StandIn("cscope2", "programs", "cscope2"),
    StandIn("cscope3", "programs", "cscope3"),
    StandIn("glimpse", "programs", "glimpse"),
    StandIn("ld", "programs", "ld"),
    StandIn("pg_join", "programs", "postgres-join"),
    StandIn("pg_select", "programs", "postgres-select"),
    StandIn("ml_slice", "programs", "xds"),
    StandIn("cs", "buffer-cache", "cscope1"),
    StandIn("gli", "buffer-cache", "glimpse"),
    StandIn("ps", "buffer-cache", "postgres-join"),
    StandIn("sprite", "buffer-cache", None),
    StandIn("multi1", "buffer-cache", None),
    StandIn("multi2", "buffer-cache", None),
    StandIn("multi3", "buffer-cache", None),
)


@dataclasses.dataclass(frozen=True)
class Workload:
    """A stand-in with one of the kinds of think time."""

    stand_in: StandIn
    think: Think
    path: Path
    requests: int
    references: int
    distinct: int
    """Blocks of 8 KiB."""
    compute_ms_mean: float
    """Milliseconds a reference."""

    @property
    def label(self) -> str:
        """The name in rows."""
        return f"our {self.stand_in.name}, think times {self.think}"

    @property
    def frames(self) -> int:
        """Blocks of cache by the rule of section 3.1."""
        return paper.CACHE_BLOCKS if self.distinct >= paper.CACHE_BLOCKS else paper.CACHE_BLOCKS_SMALL

    def section(self, speed: int) -> dict[str, Any]:
        """Return `[workload]` for a processor `speed` times as fast."""
        common: dict[str, Any] = {"trace": str(self.path), "writes": "skip"}
        if not self.stand_in.recorded:
            mean_ns = round(self.compute_ms_mean * 1e6 / speed)
            return common | {"block_size": "object", "compute": f"exp:{mean_ns}ns"}
        common["placement"] = "random-groups"
        if self.think == "as recorded":
            return common | {"compute_scale": 1 / speed}
        return common | {"compute_total": f"{round(self.references * self.compute_ms_mean * 1e6 / speed)}ns"}


class Traces:
    """The stand-ins that exist, and the names of those that do not."""

    def __init__(self, lab: Lab[Outcome], roots: Mapping[str, list[Path]] | None = None) -> None:
        """Look for every stand-in and survey those that exist; expanded copies go into the laboratory's folder."""
        roots = folders(lab.folders.traces) if roots is None else roots
        found: list[tuple[StandIn, Path]] = []
        self.missing: list[StandIn] = []
        for stand_in in STAND_INS:
            path = _find(stand_in, roots[stand_in.folder])
            if path is None:
                self.missing.append(stand_in)
            else:
                found.append((stand_in, _expanded(path, lab.scratch)))
        cells = [lab.ask(_survey(stand_in, path)) for stand_in, path in found]
        lab.wait()
        self.workloads: list[Workload] = []
        for (stand_in, path), cell in zip(found, cells, strict=True):
            self.workloads += _workloads(stand_in, path, cell.outcome)

    def standing_for(self, *names: str) -> list[Workload]:
        """Return the workloads that stand for these traces of Table 3."""
        return [each for each in self.workloads if each.stand_in.stands_for in names]

    def named(self, *names: str) -> list[Workload]:
        """Return the workloads made of these stand-ins."""
        return [each for each in self.workloads if each.stand_in.name in names]


def folders(traces: Path | None) -> dict[str, list[Path]]:
    """Return where to look for the traces of each kind, in order; `traces` is the user's folder."""
    given = [traces] if traces else []
    beside = [BESIDE]
    return {
        "programs": [_examples.TRACES, Path("examples/traces"), *(each / "programs" for each in given)],
        "buffer-cache": [
            folder / middle / "buffer-cache" for folder in given + beside for middle in (".", "third-party")
        ],
    }


def _find(stand_in: StandIn, roots: list[Path]) -> Path | None:
    ending = ".csv.xz" if stand_in.recorded else ".trace.gz"
    paths = (root / f"{stand_in.name}{ending}" for root in roots)
    return next((path for path in paths if path.is_file()), None)


def _expanded(path: Path, scratch: Path) -> Path:
    # Each trace is read some thousand times: expanding it once halves the time of a run.
    if path.suffix != ".xz":
        return path
    for source in (path, path.with_name(path.name.replace(".csv.xz", ".files.csv.xz"))):
        (scratch / source.stem).write_bytes(lzma.decompress(source.read_bytes()))
    return scratch / path.stem


def _survey(stand_in: StandIn, path: Path) -> dict[str, Any]:
    """A cache that holds everything: its fetches are the distinct blocks."""
    unit = "8KiB" if stand_in.recorded else "object"
    return {
        "workload": {"trace": str(path), "writes": "skip", "block_size": unit},
        "cache": {"blocks": 10_000_000},
        "policy": "demand",
        "device": {"model": "uniform", "fetch_time": "1ms"},
    }


def _workloads(stand_in: StandIn, path: Path, survey: Outcome) -> list[Workload]:
    def workload(think: Think, mean_ms: float) -> Workload:
        return Workload(stand_in, think, path, survey.requests, survey.references, survey.fetches, mean_ms)

    workloads = [workload("scaled", _mean_ms(stand_in.stands_for))]
    if stand_in.recorded:
        workloads.insert(0, workload("as recorded", 1000 * survey.compute_s / survey.references))
    if stand_in.stands_for in SWAPPED:
        workloads.append(workload("scaled, rows swapped", _mean_ms(stand_in.stands_for, swapped=True)))
    return workloads

"""Recorded programs side by side: stand-ins of our own, which the paper does not have.

The traces lie in the folder that $HEADSTART_TRACES names (in it, or in programs/ of it), in examples/traces of a
checkout, or in shared/traces beside it. Programs of one line start together, each with the think times that were
recorded; their files lie one program's after another's, in table order.
"""

import lzma
from pathlib import Path
from typing import Final

from headstart import _examples
from headstart._environment import TRACES_VARIABLE
from headstart_lab.studies._lab import BESIDE, Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._claims import time_row
from headstart_lab.studies.li07._system import Case, Lab

TOGETHER: Final[tuple[tuple[str, ...], ...]] = (
    ("multi6",),
    ("cscope1", "cscope2", "cscope3"),
    ("glimpse", "ld"),
    ("pg_join", "pg_select"),
    ("ml_folder", "ml_slice"),
    ("grep_r", "tar_c"),
    ("make_gcc", "sort_merge"),
    ("rocksdb_readseq", "rocksdb_scan"),
    ("sqlite", "pg_mix", "ml_wds"),
)
"""Programs that run together; multi6 is six programs as they were recorded."""
HEADER: Final = "time(s),op(R|W),pid,file,offset,size,dur_us\n"
TABLE: Final = "file,max_offset,disk_size,path\n"


def programs(lab: Lab) -> Steps:
    """Recorded programs side by side: time under each policy, and CP beside OPT."""
    places = {names: [found(name, lab.folders.traces) for name in names] for names in TOGETHER}
    whole = {names: [path for path in paths if path is not None] for names, paths in places.items()}
    runs = {
        names: lab.runs(Case(" + ".join(names), section(paths, lab.scratch)))
        for names, paths in whole.items()
        if len(paths) == len(names)
    }
    yield
    rows = [time_row(runs[names]) if names in runs else _skipped(names, places[names]) for names in TOGETHER]
    shares = [each.of_oracle() for each in runs.values()]
    if shares:
        rows.append(
            unpublished(
                "programs side by side: the least that CP has of OPT's throughput",
                round(min(shares), 3),
                note=f"at least {paper.HALF:g} in {sum(share >= paper.HALF for share in shares)} of {len(shares)}; the "
                "paper promises it of streams, and prints it of its microbenchmarks",
            )
        )
    return rows


def folders(traces: Path | None) -> list[Path]:
    """Return where to look, in order; first in `traces`, the user's folder."""
    given = [traces] if traces else []
    roots = [*given, _examples.TRACES, Path("examples/traces"), BESIDE]
    return [folder for root in roots for folder in (root, root / "programs")]


def found(name: str, traces: Path | None) -> Path | None:
    """Return the trace of a program, if it exists."""
    paths = (folder / f"{name}.csv.xz" for folder in folders(traces))
    return next((path for path in paths if path.is_file()), None)


def section(paths: list[Path], scratch: Path) -> dict[str, object]:
    """Return the workload of these traces side by side; it is written into `scratch`."""
    path = scratch / f"{'-'.join(path.name.removesuffix('.csv.xz') for path in paths)}.csv"
    if not path.exists():
        merge(paths, path)
    return {"trace": str(path), "writes": "back"}


def merge(paths: list[Path], target: Path) -> None:
    """Merge traces into one, with its table of files: processes and files are renumbered, by program."""
    records: list[tuple[float, int, str]] = []
    table: list[str] = []
    first_file = first_pid = 0
    for path in paths:
        entries = [line.split(",", 1) for line in _lines(path.with_name(path.name.replace(".csv", ".files.csv")))]
        table += [f"{int(file) + first_file},{rest}" for file, rest in entries]
        rows = [line.split(",", 4) for line in _lines(path)]
        pids = {pid: first_pid + at for at, pid in enumerate(dict.fromkeys(row[2] for row in rows))}
        for time, op, pid, file, rest in rows:
            line = ",".join([time, op, str(pids[pid]), str(int(file) + first_file), rest])
            records.append((float(time), len(records), line))
        first_file += 1 + max(int(file) for file, _ in entries)
        first_pid += len(pids)
    target.write_text(HEADER + "".join(line for _, _, line in sorted(records)), encoding="utf-8")
    target.with_name(target.name.replace(".csv", ".files.csv")).write_text(TABLE + "".join(table), encoding="utf-8")


def _lines(path: Path) -> list[str]:
    """Return the lines below the header, each with its end."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return list(lines)[1:]


def _skipped(names: tuple[str, ...], paths: list[Path | None]) -> Row:
    missing = [f"{name}.csv.xz" for name, path in zip(names, paths, strict=True) if path is None]
    return unpublished(
        " + ".join(names),
        None,
        note=f"SKIPPED: {', '.join(missing)} absent; put them into the folder that ${TRACES_VARIABLE} names",
    )

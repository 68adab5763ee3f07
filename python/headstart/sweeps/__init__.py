"""Sweeps: every combination of a grid's values is one run, on all cores or on a cluster, and one row of a table.

`grid` reads the grid, `folder` stores finished runs, `pool` and `cluster` perform runs, `remote` fetches traces. Every
worker imports this package at its start. Modules that only the sweep itself needs are therefore imported on use.
"""

import contextlib
import dataclasses
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart import temporary
from headstart._core import HeadstartError
from headstart._input import plain
from headstart.sweeps.folder import Folder, pyarrow
from headstart.sweeps.grid import Case, Grid, read
from headstart.sweeps.tally import Tally

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Grid", "Sweep", "Tally", "read", "run", "sweep"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep that has ended: all rows are in `path`."""

    path: Path
    keys: tuple[str, ...]
    tally: Tally
    elapsed_s: float

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows, in the grid's order."""
        _, pq = pyarrow()
        rows: list[dict[str, Any]] = pq.read_table(self.path).to_pylist()
        return rows

    def failed(self) -> list[str]:
        """Return the failed runs as text: their values, and the error."""
        _, pq = pyarrow()
        found = pq.read_table(self.path, columns=[*self.keys, "error"], filters=[("error", "!=", "")]).to_pylist()
        return [f"{', '.join(f'{key}={row[key]}' for key in self.keys)}: {row['error']}" for row in found]

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame; missing values of a failed run are <NA>."""
        import pandas as pd

        pa, pq = pyarrow()
        frame: pd.DataFrame = pq.read_table(self.path).to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
        return frame


def sweep(
    grid: str | PathLike[str] | Mapping[str, Any],
    *,
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    overrides: Sequence[str] = (),
    progress: Callable[[float], object] | None = None,
) -> "pd.DataFrame":
    """Run every combination of a grid's values, on all processors or on a cluster.

    Args:
        grid: The path of a TOML file, or a mapping of the same shape: a scenario with a table "grid" of key paths and
            lists, such as {"cache.blocks": [320, 640], "policy": ["demand", "forestall"]}.
        out: A folder for `results.parquet`. An interrupted sweep in this folder is resumed. If `None`, nothing is kept.
        workers: Number of worker processes; one per processor if `None`.
        cluster: The address of a dask.distributed scheduler, instead of processes on this machine.
        overrides: "a.b=value" settings that override keys of the scenario before the grid is applied.
        progress: Called with the share done, 0 to 1. An exception stops the sweep.

    Returns:
        A data frame with one row per run, in the grid's order: the values of the grid, and the counts and times of the
        result (times in nanoseconds). A run that fails is a row with its `error`.

    Raises:
        HeadstartError: The grid is wrong, the folder belongs to another grid, the cluster does not respond, or pandas
            or pyarrow is not installed.
    """
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise HeadstartError("sweep: a DataFrame needs pandas; allowed: pip install 'headstart[frame]'") from error
    found = read(grid, overrides)

    def tell(tally: Tally) -> None:
        if progress is not None:
            progress(tally.share)

    if out is not None:
        return run(found, Path(out), workers=workers, cluster=cluster, tell=tell).to_frame()
    with temporary.folder() as folder:
        return run(found, folder / "sweep", workers=workers, cluster=cluster, tell=tell).to_frame()


def run(
    grid: Grid,
    out: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    tell: Callable[[Tally], object] = lambda tally: None,
) -> Sweep:
    """Perform the runs that are not yet in the folder `out`, and write `results.parquet` there.

    `tell` is called twenty times a second; if it raises, the sweep stops and finished runs are kept.

    Raises:
        HeadstartError: The grid is wrong, the folder belongs to another grid, or the cluster does not respond.
    """
    if importlib.util.find_spec("pyarrow") is None:
        # Raises an error that says so.
        pyarrow()
    if workers is not None and workers < 1:
        raise HeadstartError(f"workers: {workers}; allowed: whole numbers from 1")
    if workers is not None and cluster is not None:
        raise HeadstartError("workers: given beside a cluster; allowed: one of the two")
    started = time.monotonic()
    grid.check()
    folder = Folder(out, grid)
    tally = Tally(runs=len(grid))
    with folder.locked() as lock:
        if folder.is_finished():
            with folder.named():
                folder.check_results()
                folder.remove_parts()
            tally.before = len(grid)
        else:
            _run(folder, lock, workers, cluster, tally, lambda: tell(tally))
            with folder.named():
                folder.merge()
    return Sweep(path=folder.results, keys=tuple(grid.axes), tally=tally, elapsed_s=time.monotonic() - started)


def _run(
    folder: Folder,
    lock: int,
    workers: int | None,
    cluster: str | None,
    tally: Tally,
    tell: Callable[[], object],
) -> None:
    with folder.named():
        finished = folder.finished()
    cases = [case for case in folder.grid.cases() if case.index not in finished]
    tally.before = len(finished)
    if not cases:
        return
    names = dict.fromkeys(case.trace for case in cases if case.trace is not None)
    located = {name: _located(name, folder.grid, fetch=cluster is None) for name in names}
    marks = {name: mark for name, path in located.items() if (mark := _mark(path)) is not None}
    with folder.named():
        folder.check_traces(marks)
    # Needed only at the end, but slow to load.
    threading.Thread(target=_load_pyarrow, daemon=True).start()
    if cluster is None:
        from headstart.sweeps import pool

        tally.workers = min(workers or len(os.sched_getaffinity(0)), len(cases))
        pool.run(folder, lock, cases, located, workers=tally.workers, tally=tally, tell=tell)
    else:
        from headstart.sweeps import cluster as on_cluster

        with on_cluster.client(cluster) as connected:
            on_cluster.run(connected, folder, _by_trace(cases), located, tally=tally, tell=tell)


def _load_pyarrow() -> None:
    # Errors are reported where it is used.
    with contextlib.suppress(Exception):
        pyarrow()


def _by_trace(cases: Sequence[Case]) -> list[Case]:
    """Return the runs grouped by trace, so that each worker decodes a trace once, and few at a time."""
    order = {trace: place for place, trace in enumerate(dict.fromkeys(case.trace for case in cases))}
    return sorted(cases, key=lambda case: order[case.trace])


def _located(trace: str, grid: Grid, *, fetch: bool) -> str:
    """Return the path of a trace: fetched, or in the grid's folder if it is not in the working folder."""
    from headstart.sweeps import remote

    if remote.is_url(trace):
        return remote.fetched(trace) if fetch else trace
    path, beside = Path(trace), grid.folder / trace
    if not path.exists() and beside.exists():
        path = beside
    if fetch and not path.exists():
        raise HeadstartError(f"{plain(trace)}: no such file; allowed: a trace, or a URL such as s3://BUCKET/TRACE")
    return str(path.absolute())


def _mark(path: str) -> str | None:
    """Return a value that changes with the file; `None` if it is fetched elsewhere or does not exist."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return f"{found.st_size} bytes, {found.st_mtime_ns}"

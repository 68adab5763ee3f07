"""Sweeps on a cluster: the runs are tasks of dask.distributed, whose scheduler assigns them to workers on any machine.

If a worker dies, another worker repeats its run. Rows are returned here and written before they count as done.
"""

import contextlib
import functools
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headstart._core import HeadstartError, __version__
from headstart._input import plain
from headstart.simulation import Traces
from headstart.sweeps import remote, rows
from headstart.sweeps.folder import Folder, Part
from headstart.sweeps.grid import Case
from headstart.sweeps.tally import Tally

TASKS_EACH = 4
"""Runs submitted to the scheduler per thread of the cluster."""
LOOK_EVERY_S = 0.05
WORKERS_EVERY_S = 2.0
CONNECT_S = 5


@functools.cache
def _traces() -> Traces:
    """Return the traces shared by the runs of one worker process."""
    return Traces()


def task(scenario: Mapping[str, Any], overrides: tuple[str, ...], trace: str | None, local: str | None) -> Any:
    """Run one case on a worker; return its row, or the text of an error that every run there would have."""
    if local is not None:
        if remote.is_url(local):
            try:
                local = _fetched(local)
            except HeadstartError as error:
                return str(error)
        elif not Path(local).is_file():
            return (
                f"{local}: no such file on a worker; allowed: a folder that all workers share, or a URL such as s3://"
            )
    return rows.run(scenario, overrides, trace=trace, local=local, traces=_traces())


@functools.cache
def _fetched(url: str) -> str:
    return remote.fetched(url)


@contextlib.contextmanager
def client(address: str) -> Iterator[Any]:
    """Connect to the scheduler at `address`.

    Raises:
        HeadstartError: distributed is not installed, or nothing answers there.
    """
    try:
        import distributed
    except ImportError as error:
        raise HeadstartError("--cluster: needs dask.distributed; allowed: pip install 'headstart[sweep]'") from error
    if not re.fullmatch(r"[a-z]+://[^\s:]+:\d+", address):
        problem = f"--cluster: {plain(address)}: is no address"
        raise HeadstartError(f"{problem}; allowed: the address that `dask scheduler` prints, tcp://HOST:PORT")
    # Suppress its messages of several lines on a lost connection; the error is reported here.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        found = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except OSError as error:
        problem = f"--cluster: {plain(address)}: no scheduler answers"
        raise HeadstartError(
            f"{problem}; allowed: the address that `dask scheduler` prints, tcp://HOST:PORT"
        ) from error
    try:
        yield found
    except BaseException:
        # After a lost scheduler or Ctrl-C, closing would block. The scheduler drops the tasks of a client that is gone.
        threading.Thread(target=found.close, kwargs={"timeout": 1}, daemon=True).start()
        raise
    found.close()


def run(
    connected: Any,
    folder: Folder,
    cases: Iterable[Case],
    located: Mapping[str, str],
    *,
    tally: Tally,
    tell: Callable[[], object],
) -> None:
    """Run the cases on the workers of a cluster; `tell` is called twenty times a second, and ends all if it raises.

    Raises:
        HeadstartError: A worker lacks the trace, or has another version of headstart.
    """
    waiting, done = iter(cases), queue.SimpleQueue[Any]()
    under_way: dict[Any, Case] = {}
    part = Part(folder.new_part())

    @_reached()
    def submit() -> None:
        threads = sum(connected.nthreads().values())
        tally.workers = len(connected.nthreads())
        while len(under_way) < max(threads, 1) * TASKS_EACH:
            case = next(waiting, None)
            if case is None:
                return
            local = None if case.trace is None else located[case.trace]
            future = connected.submit(task, folder.grid.base, case.overrides, case.trace, local, pure=False)
            under_way[future] = case
            future.add_done_callback(done.put)

    try:
        submit()
        looked = time.monotonic()
        while under_way:
            finished = []
            with contextlib.suppress(queue.Empty):
                finished.append(done.get(timeout=LOOK_EVERY_S))
                while True:
                    finished.append(done.get_nowait())
            for future in finished:
                case = under_way.pop(future)
                row = _row(future)
                part.append(case.index, row)
                tally.finished(failed=row["error"] is not None)
            if finished:
                submit()
            elif connected.status != "running":
                raise _gone()
            elif time.monotonic() > looked + WORKERS_EVERY_S:
                # There may be more workers now.
                submit()
                looked = time.monotonic()
            tell()
    finally:
        part.close()


def _gone() -> HeadstartError:
    return HeadstartError("--cluster: the scheduler is gone; allowed: the same command once it is back")


@contextlib.contextmanager
def _reached() -> Iterator[None]:
    """Report connection errors of distributed in our own words."""
    try:
        yield
    except OSError as error:
        raise _gone() from error


@_reached()
def _row(future: Any) -> dict[str, Any]:
    if future.status not in ("finished", "error"):
        raise _gone()
    if future.status == "error":
        error = future.exception()
        if type(error).__name__ == "KilledWorker":
            return rows.failed("its process died on several workers, perhaps for lack of memory")
        text = " ".join(str(error).split())
        raise HeadstartError(f"--cluster: a worker fails: {plain(text)}; allowed: workers with headstart {__version__}")
    found = future.result()
    if isinstance(found, str):
        raise HeadstartError(found)
    if found["version"] != __version__:
        problem = f"--cluster: a worker has headstart {plain(found['version'])}, this is {__version__}"
        raise HeadstartError(f"{problem}; allowed: the same version everywhere")
    row: dict[str, Any] = found
    return row

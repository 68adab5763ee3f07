"""Runs each scenario once, on all cores, and keeps what the rows of a study need.

An item asks for the cells that it needs, yields until they are done, and may then ask for more: two items that ask
for the same scenario share one run. A cell is keyed on its full scenario. With a `Store` finished cells outlive the
process: a study that was broken off goes on where it was.
"""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import os
import stat
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from headstart import _core, temporary
from headstart._environment import Folders
from headstart.simulation import Result, Traces, simulate
from headstart_lab.studies._rows import Row

Scenario = Mapping[str, Any]
Report = Callable[[str, float], None]
Steps = Generator[None, None, list[Row]]
"""An item: asks for cells, yields until they are done, in the end returns its rows."""


class Outcome(Protocol):
    """What the rows of a study need of a run."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init__(self, **fields: Any) -> None: ...

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return what is needed of `result`."""


L = TypeVar("L")
T = TypeVar("T", bound=Outcome)

REPORT_EVERY_S = 0.2
BESIDE = Path(__file__).resolve().parents[4] / "shared" / "traces"
"""Traces beside the checkout, which a study may use where they are."""

NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def item(line: str, ask: Callable[[L], Callable[[], list[Row]]]) -> Callable[[L], Steps]:
    """Return an item of one step: `line` says what it is, `ask` asks for its cells and returns what makes its rows."""

    def steps(lab: L) -> Steps:
        rows = ask(lab)
        yield
        return rows()

    steps.__doc__ = line
    return steps


class Cell(Generic[T]):
    """A run that was asked for."""

    def __init__(self, future: concurrent.futures.Future[T]) -> None:
        self._future = future

    @property
    def outcome(self) -> T:
        """The outcome, waiting for it if need be."""
        return self._future.result()


class Store:
    """Finished cells on disk, one small file each.

    The name of a file is a digest of the scenario, of what its trace holds (not of where it lies), of the kind of
    outcome and of the compiled core: another build computes anew. A file that cannot be read counts as absent, and so
    does everything in a folder that is a link, another user's, or open for others to write: what they put there would
    be taken for our results.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._build = f"{kind} {_core.__version__} {_digest(Path(_core.__file__))}"
        self._traces: dict[str, str] = {}

    def path(self, scenario: Scenario) -> Path:
        """Return where the cell of `scenario` is or will be."""
        workload = dict(scenario["workload"])
        if "trace" in workload:
            workload["trace"] = self._trace(workload["trace"])
        text = json.dumps([self._build, {**scenario, "workload": workload}], sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"

    def get(self, path: Path) -> dict[str, Any] | None:
        """Return the fields that were kept, if any."""
        if not self._is_own():
            return None
        try:
            # A link could lead anywhere, and a pipe would be waited for.
            descriptor = os.open(path, os.O_RDONLY | NOFOLLOW | NONBLOCK)
            with os.fdopen(descriptor, encoding="utf-8") as file:
                there = os.fstat(descriptor)
                if not stat.S_ISREG(there.st_mode) or there.st_uid != _user():
                    return None
                fields = json.load(file)
        except (OSError, ValueError):
            return None
        return fields if isinstance(fields, dict) else None

    def put(self, path: Path, fields: dict[str, Any]) -> None:
        """Keep the fields. A folder that cannot be written costs the next run its head start, nothing else."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_own():
                return
            with temporary.file_beside(path) as (descriptor, part):
                with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as file:
                    json.dump(fields, file)
                part.replace(path)
        except OSError:
            return

    def _is_own(self) -> bool:
        """Return whether the folder is the user's, is no link, and no other user may write in it."""
        try:
            there = self._folder.lstat()
        except OSError:
            return False
        others_write = there.st_mode & stat.S_IWOTH
        return stat.S_ISDIR(there.st_mode) and there.st_uid == _user() and not others_write

    def _trace(self, path: str) -> str:
        if path not in self._traces:
            trace = Path(path)
            parts = [trace, trace.with_name(trace.name.replace(".csv", ".files.csv"))]
            self._traces[path] = " ".join(_digest(part) for part in dict.fromkeys(parts) if part.is_file())
        return self._traces[path]


def _user() -> int:
    """Return the user that the process acts for; on systems without users, the owner of every file."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Lab(Generic[T]):
    """A pool of workers, the cells that were asked of it, and a folder for traces made on the way.

    A study derives its own, with `outcome`, a data class of plain values whose `of` makes it of a result; with `kept`,
    the kind of its outcomes, finished cells outlive the process.
    """

    outcome: type[T]
    kept: str | None = None

    def __init__(
        self,
        scratch: Path,
        report: Report,
        workers: int | None = None,
        store: Store | None = None,
        *,
        folders: Folders | None = None,
    ) -> None:
        self.scratch = scratch
        self.report = report
        self.folders = folders or Folders()
        self._store = store
        if store is None and self.kept is not None and self.folders.cache is not None:
            self._store = Store(self.folders.cache / self.kept.split()[0], self.kept)
        self._pool = concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count() or 1)
        self._cells: dict[str, Cell[T]] = {}
        self._traces = Traces()
        self._pending: set[concurrent.futures.Future[T]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # After an error, or Ctrl-C, runs that are under way are not waited for.
        self._pool.shutdown(wait=error is None, cancel_futures=True)

    def __len__(self) -> int:
        """Return how many different scenarios were asked for."""
        return len(self._cells)

    def ask(self, scenario: Scenario) -> Cell[T]:
        """Ask for a scenario; the same one is run once."""
        key = json.dumps(scenario, sort_keys=True)
        if key not in self._cells:
            path = self._store.path(scenario) if self._store else None
            future = self._pool.submit(self._run, scenario, path)
            self._pending.add(future)
            self._cells[key] = Cell(future)
        return self._cells[key]

    def wait(self) -> None:
        """Wait until all that was asked for is done.

        Raises:
            HeadstartError: A scenario or a trace is at fault.
        """
        while True:
            done, self._pending = concurrent.futures.wait(
                self._pending, REPORT_EVERY_S, concurrent.futures.FIRST_EXCEPTION
            )
            for future in done:
                future.result()
            total = len(self._cells)
            self.report(f"{total - len(self._pending)} of {total} runs", 1 - len(self._pending) / max(total, 1))
            if not self._pending:
                return

    def finish(self, steps: Mapping[str, Steps]) -> dict[str, list[Row]]:
        """Step all items forward together, so that the runs of one fill the gaps of another; return their rows."""
        left, done = dict(steps), dict[str, list[Row]]()
        while left:
            for item in list(left):
                try:
                    next(left[item])
                except StopIteration as end:
                    done[item] = end.value
                    del left[item]
            self.wait()
        return done

    def _run(self, scenario: Scenario, path: Path | None) -> T:
        if self._store is None or path is None:
            return self.outcome.of(simulate(scenario, traces=self._traces))
        if (fields := self._store.get(path)) is not None:
            with contextlib.suppress(TypeError):  # Kept by another shape of outcome.
                return self.outcome(**fields)
        outcome = self.outcome.of(simulate(scenario, traces=self._traces))
        self._store.put(path, dataclasses.asdict(outcome))
        return outcome

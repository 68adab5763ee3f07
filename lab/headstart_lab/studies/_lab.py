"""Runs each scenario once, on all cores, and keeps what the rows of a study need.

An item requests the cells that it needs, yields until they are done, and may then request more: two items that request
the same scenario share one run. A cell is keyed on its full scenario. With a `Store`, finished cells outlive the
process: an interrupted study resumes where it was.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import stat
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from headstart import _core, temporary
from headstart._environment import Folders
from headstart.runs.runner import run_all, together
from headstart.simulation import Progress, Result, Traces, simulate
from headstart_lab.studies._rows import Row

Scenario = Mapping[str, Any]
Report = Callable[[str, float], None]
Steps = Generator[None, None, list[Row]]
"""An item: requests cells, yields until they are done, and finally returns its rows."""


class Outcome(Protocol):
    """The part of a run that the rows of a study need."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init__(self, **fields: Any) -> None: ...

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return what is needed of `result`."""


L = TypeVar("L")
T = TypeVar("T", bound=Outcome)

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "traces"
"""Traces beside the checkout, which a study may use if they exist."""

NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def item(line: str, ask: Callable[[L], Callable[[], list[Row]]]) -> Callable[[L], Steps]:
    """Return an item of one step: `line` describes it, `ask` requests its cells and returns what makes its rows."""

    def steps(lab: L) -> Steps:
        rows = ask(lab)
        yield
        return rows()

    steps.__doc__ = line
    return steps


class Cell(Generic[T]):
    """A requested run, or its outcome."""

    def __init__(self, found: T | None = None, wait: Callable[[], None] = lambda: None) -> None:
        self.found = found
        self._wait = wait

    @property
    def outcome(self) -> T:
        """The outcome; waits for it if necessary."""
        if self.found is None:
            self._wait()
        assert self.found is not None
        return self.found


class Store:
    """Finished cells on disk, one small file each.

    The name of a file is a digest of the scenario, of the trace's content (not its place), of the kind of outcome and
    of the
    compiled core: another build computes anew. A file that cannot be read counts as absent, and so does everything in a
    folder that is a link, belongs to another user, or is writable for others: their files would be taken for our
    results.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._build = f"{kind} {_core.__version__} {_digest(Path(_core.__file__))}"
        self._traces: dict[str, str] = {}

    def path(self, scenario: Scenario) -> Path:
        """Return the place of the cell of `scenario`."""
        workload = dict(scenario["workload"])
        if "trace" in workload:
            workload["trace"] = self._trace(workload["trace"])
        text = json.dumps([self._build, {**scenario, "workload": workload}], sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"

    def get(self, path: Path) -> dict[str, Any] | None:
        """Return the stored fields, if any."""
        if not self._is_own():
            return None
        try:
            # A link could lead anywhere, and opening a pipe would block.
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
        """Store the fields. If the folder cannot be written, the next run computes them again; nothing else is lost."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_own():
                return
            with (
                temporary.replacing(path) as descriptor,
                os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as file,
            ):
                json.dump(fields, file)
        except OSError:
            return

    def _is_own(self) -> bool:
        """Return whether the folder belongs to the user, is no link, and is not writable for other users."""
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
    """Return the effective user of the process; on systems without users, the owner of every file."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Lab(Generic[T]):
    """The requested cells, and a folder for temporary traces.

    A study derives its own, with `outcome`, a data class of plain values whose `of` makes it from a result; with
    `kept`,
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
        self._workers = workers
        self._cells: dict[str, Cell[T]] = {}
        self._asked: list[tuple[Cell[T], Scenario]] = []
        self._traces = Traces()

    def __len__(self) -> int:
        """Return the number of different scenarios requested."""
        return len(self._cells)

    def ask(self, scenario: Scenario) -> Cell[T]:
        """Request a scenario; equal ones are run once."""
        key = json.dumps(scenario, sort_keys=True)
        if key not in self._cells:
            self._cells[key] = Cell(wait=self.wait)
            self._asked.append((self._cells[key], scenario))
        return self._cells[key]

    def wait(self) -> None:
        """Run everything requested.

        Raises:
            HeadstartError: A scenario or a trace is at fault.
        """
        asked, self._asked = self._asked, []
        total = len(self._cells)

        def tell(share: float) -> None:
            left = sum(cell.found is None for cell, _ in asked)
            self.report(f"{total - left} of {total} runs", 1 - (1 - share) * len(asked) / total)

        def run(one: tuple[Cell[T], Scenario], told: Progress) -> None:
            cell, scenario = one
            cell.found = self._run(scenario, told)

        run_all(run, asked, jobs=self._workers, stop=threading.Event(), progress=tell)

    def finish(self, steps: Mapping[str, Steps]) -> dict[str, list[Row]]:
        """Run all items to their ends; return their rows."""

        def answers(asked: Sequence[None]) -> Sequence[None]:
            self.wait()
            return asked

        return dict(zip(steps, together(list(steps.values()), answers), strict=True))

    def _run(self, scenario: Scenario, told: Progress) -> T:
        path = self._store.path(scenario) if self._store else None
        if self._store and path and (fields := self._store.get(path)) is not None:
            with contextlib.suppress(TypeError):  # Kept by another shape of outcome.
                return self.outcome(**fields)
        outcome = self.outcome.of(simulate(scenario, progress=told, traces=self._traces))
        if self._store and path:
            self._store.put(path, dataclasses.asdict(outcome))
        return outcome

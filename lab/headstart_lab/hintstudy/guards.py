"""What must not become slower: commands with wrong hints, with little memory, or on a disk that others use, too."""

import functools
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from headstart._core import HeadstartError
from headstart_lab.hintstudy import ways
from headstart_lab.hintstudy.commands import FOLDERS, SOURCE_FILES, Command
from headstart_lab.hintstudy.ways import Job
from headstart_lab.livestudy import platform

FILES = 400
"""Files of the repository that a case reads."""
WRONG = 0.9
"""Share of a list that is wrong."""
MEMORY_BYTES = 64 << 20
GROUPS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))
"""Where control groups limit memory, versions 1 and 2."""
BUSY_BYTES = 16 << 10
"""Size of each read of the concurrent reader."""
REWRITTEN_BYTES = 64 << 10
"""Size of each file that is rewritten."""
SLOWER, READER_SLOWER = 1.03, 1.10
"""Accepted shares: of plain time, and of an unrelated reader's time per read."""


@dataclass(frozen=True)
class Case:
    """Work that is done without and with `headstart run`."""

    name: str
    plain: Callable[[], int]
    """Returns its duration in ns."""
    ours: Callable[[], int]
    slower: float = SLOWER
    """The accepted share of plain time."""


def files(disk_root: Path, seed: int) -> list[str]:
    """Return the names of some files of the repository, in random order."""
    chance = random.Random(seed)
    numbers = chance.sample(range(SOURCE_FILES), FILES)
    return [str(disk_root / f"src/lib{n % FOLDERS:03}/part{n % 7}/file{n:05}.c") for n in numbers]


def reader(lists: Path, times: int = 1) -> Command:
    """Return the command that reads the files that `lists` names, `times` times."""
    words = ["xargs", "-a", str(lists), "cat"]
    script = "; ".join(['xargs -a "$1" cat'] * times)
    return Command(f"cat {FILES} files", lambda root: words if times == 1 else ["sh", "-c", script, "sh", str(lists)])


def cases(jobs: list[Job], folder: Path) -> Iterator[Case]:
    """Yield all cases on the disk of `jobs`, which must be recorded; `folder` holds their files."""
    disk = jobs[0].disk
    ours = ways.ByRun()

    def both(name: str, job: Job) -> Case:
        return Case(name, lambda: ways.plain(job).elapsed_ns, lambda: ours(job).elapsed_ns)

    for job, other in zip(jobs, [*jobs[1:], jobs[0]], strict=True):
        yield both(f"hints of another: {other.command.name} for {job.command.name}", replace(job, hints=other.hints))
    listed = folder / "list"
    wanted, others = files(disk.root, 1), files(disk.root, 2)
    write(listed, wanted)
    right = Job(reader(listed), disk, folder / "right.hints")
    right.record()
    yield both("right hints", right)
    # The words of the command are the same, but it does something else.
    right_share = round((1 - WRONG) * FILES)
    write(listed, [*wanted[:right_share], *others[right_share:]])
    yield both(f"{WRONG:.0%} wrong", right)
    mixed = [pair[at % round(1 / (1 - WRONG)) != 0] for at, pair in enumerate(zip(wanted, others, strict=True))]
    write(listed, mixed)
    yield both(f"{WRONG:.0%} wrong, mixed", right)
    write(listed, others)
    yield both("all wrong", right)
    write(listed, wanted)
    twice = Job(reader(listed, 2), disk, folder / "twice.hints")
    twice.record()
    yield both("everything twice", twice)
    with group(MEMORY_BYTES) as prefix:
        if prefix:
            yield both("64 MiB of memory", replace(jobs[0], prefix=prefix))
    first, second = jobs[0], jobs[1]
    yield Case(
        "two at once",
        lambda: at_once(disk.cold, [lambda: first.timed(first.words()), lambda: second.timed(second.words())]),
        lambda: at_once(disk.cold, [lambda: first.timed(ours.line(first)), lambda: second.timed(ours.line(second))]),
    )
    with beside(disk.root / "db.sqlite") as reading:
        yield both("a busy disk", jobs[0])
        yield Case(
            "a reader beside, its time for a read",
            lambda: reading.read_ns(lambda: ways.plain(jobs[0])),
            lambda: reading.read_ns(lambda: ours(jobs[0])),
            READER_SLOWER,
        )
    if disk.profile is None:
        made = [disk.root / f"rewritten/{number:03}" for number in range(FILES)]
        rewrite(made)
        write(listed, [str(path) for path in made])
        rewritten = Job(reader(listed), disk, folder / "rewritten.hints")
        rewritten.record()
        yield both("files as they were recorded", rewritten)
        rewrite(made)
        yield both("files rewritten since", rewritten)


def rewrite(paths: list[Path]) -> None:
    """Rewrite files."""
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(REWRITTEN_BYTES))


def write(path: Path, names: list[str]) -> None:
    """Write a list of names."""
    path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def at_once(cold: Callable[[], None], work: list[Callable[[], int]]) -> int:
    """Do all work at the same time with cold caches, and return how long it took in total."""
    cold()
    threads = [threading.Thread(target=each) for each in work]
    begun = time.monotonic_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic_ns() - begun


@contextmanager
def group(bytes_max: int) -> Iterator[list[str]]:
    """A control group with this much memory; gives the prefix to start a program in it, empty without groups."""
    found = [(Path(root), limit) for root, limit in GROUPS if (Path(root) / "cgroup.procs").exists()]
    if not found:
        yield []
        return
    root, limit = found[0]
    made = root / f"headstart-study-{os.getpid()}"
    made.mkdir()
    try:
        (made / limit).write_text(str(bytes_max), encoding="ascii")
        yield ["sh", "-c", f'echo $$ > {made}/cgroup.procs; exec "$@"', "sh"]
    finally:
        # The process that removes the trace may run a moment longer than the program.
        if not platform.wait_for(functools.partial(_removed, made)):
            raise HeadstartError(f"{made}: cannot be removed: a process is in it")


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return not folder.exists()
    return True


class Reader(threading.Thread):
    """Reads a file at random places until it is stopped, bypassing read-ahead; counts its reads."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.path, self.reads, self.ended = path, 0, False

    def run(self) -> None:
        """Read."""
        chance = random.Random(7)
        size = self.path.stat().st_size
        while not self.ended:
            try:
                with self.path.open("rb", buffering=0) as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    os.pread(file.fileno(), BUSY_BYTES, chance.randrange(size))
                self.reads += 1
            except OSError:
                # The file system is being remounted.
                time.sleep(0.01)

    def read_ns(self, work: Callable[[], object]) -> int:
        """Return the mean duration of a read while `work` is done."""
        before, begun = self.reads, time.monotonic_ns()
        work()
        return (time.monotonic_ns() - begun) // max(1, self.reads - before)


@contextmanager
def beside(path: Path) -> Iterator[Reader]:
    """A reader of `path` that runs concurrently with the block."""
    reading = Reader(path)
    reading.start()
    try:
        yield reading
    finally:
        reading.ended = True
        reading.join()

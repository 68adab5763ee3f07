"""The Rust module: JSON in, JSON out. `headstart` gives it types and words."""

from collections.abc import Callable, Sequence
from os import PathLike

__version__: str
COMMANDS: list[str]

class HeadstartError(ValueError):
    """A mistake in a scenario, a trace or an argument, in one line."""

class InternalError(HeadstartError):
    """A fault of headstart itself, in one line."""

def panic_for_tests(on: bool) -> None:
    """While `on`, let every function here fail as by a fault of headstart."""

def catalog() -> str:
    """Return the rows of every registry."""

def schema() -> str:
    """Return the JSON Schema of a scenario."""

def metrics() -> str:
    """Return what results say of the counts of levels."""

class Traces:
    """Traces that several runs read."""

class Cache:
    """The cache as a policy sees it while one of its methods is called; blocks are whole numbers."""

    @property
    def cursor(self) -> int:
        """Position of the next reference not yet served."""

    @property
    def free(self) -> int:
        """Frames that hold no block: they are used before any block is evicted."""

    @property
    def disks(self) -> int:
        """Independent disks."""

    def is_absent(self, block: int) -> bool:
        """Return whether the block is neither in the cache nor on its way."""

    def is_resident(self, block: int) -> bool:
        """Return whether the block is in the cache."""

    def is_in_flight(self, block: int) -> bool:
        """Return whether the block is on its way into the cache."""

    def is_evictable(self, block: int) -> bool:
        """Return whether the block is in the cache and no process waits for it."""

    def evictable(self) -> list[int]:
        """Return every block that may be a victim; takes time in proportion to all blocks there are."""

    def outstanding(self, disk: int) -> int | None:
        """Return the requests issued to a disk and not yet ended."""

    def disk_of(self, block: int) -> int | None:
        """Return the disk of a block."""

class Hints:
    """The references that are disclosed: by position, the block, or `None` where it is not known (yet)."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int) -> int | None: ...
    def next_use(self, block: int, position: int | None = None) -> int | None:
        """Return the position of the next disclosed reference to `block`, from `position` on (the cursor if `None`)."""

class Request:
    """A request as a level sees it: `count` blocks of `file`, from `first`."""

    file: int
    first: int
    count: int
    end: int
    """The block after the last."""
    client: int
    """The process at the first level, the level above at others."""
    now_ns: int
    file_blocks: int | None
    """Blocks of the file, or of the device where there are no files; `None` where that is not known."""
    found: tuple[str, ...]
    """How each block was found: "ready", "ready-prefetched", "unready", "unready-prefetched", "absent"."""

    def is_cached(self, index: int) -> bool:
        """Return whether the block at `index` of the file is in the cache or on its way."""

    def is_resident(self, index: int) -> bool:
        """Return whether the block at `index` of the file is in the cache."""

def conformance(name: str) -> None:
    """Hold a class against the conformance suites; raise AssertionError with what is wrong."""

def python_cost() -> tuple[int, int]:
    """Return the calls of Python methods in this thread's last run, and the nanoseconds in them."""

def simulate(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
    on_progress: Callable[[float, int], object] | None = None,
    traces: Traces | None = None,
) -> str:
    """Run a scenario; return the result."""

def timeline(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
    on_progress: Callable[[float, int], object] | None = None,
    events_max: int = ...,
) -> tuple[str, str]:
    """Run a scenario; return the result, and what has happened."""

def play(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
    speed: float = 1.0,
    on_progress: Callable[[float, int], object] | None = None,
) -> str:
    """Play the parallel program of a scenario with real threads; return the result."""

def command(name: str, given: str, *, on_progress: Callable[[str], object] | None = None) -> str:
    """Run a command of this machine with these options until it ends or `on_progress` says so; return the report."""

def command_schema(name: str) -> str:
    """Return the options of a command and the fields of its report, as JSON Schema."""

def hints_show(path: str | PathLike[str]) -> str:
    """Return what a recording holds."""

def hints_merge(target: str | PathLike[str], paths: list[str | PathLike[str]], share: float) -> str:
    """Merge recordings; return the summary of the result."""

def hints_check(path: str | PathLike[str]) -> str:
    """Return the files of a recording that are not as they were."""

def run_command(words: list[str]) -> int:
    """Run a command as `headstart run` does with these words; return the exit status."""

def run_options() -> str:
    """Return the options of `headstart run` as JSON."""

def run_hinted(question: str) -> str:
    """Run a command while what it is going to read is prefetched; return how it ended and the report."""

def explain(*, path: str | PathLike[str] | None = None, json: str | None = None, overrides: list[str] = ...) -> str:
    """Return the scenario with every default in it, as TOML."""

def carries(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
    traces: Traces | None = None,
) -> str:
    """Return what the trace or generator of a scenario carries, as JSON; null if it has neither."""

def reads_at_once(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
    traces: Traces | None = None,
) -> bool:
    """Return whether the processes of a scenario's trace read at once."""

def lower_bound(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
    on_progress: Callable[[float, int], object] | None = None,
    traces: Traces | None = None,
) -> str:
    """Return a lower bound on the elapsed time under any policy."""

def curve(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
    asked: str,
    on_progress: Callable[[float, int], object] | None = None,
    traces: Traces | None = None,
) -> str:
    """Return the misses over the size of a cache."""

def size_bytes(text: str) -> int:
    """Return the bytes of a size as users write it: "10M"."""

def is_trace(path: str | PathLike[str]) -> bool:
    """Return whether the file is a trace of a format that is recognised."""

def trace_info(
    path: str | PathLike[str],
    *,
    format: str = "auto",
    block_size: str = "8KiB",
    request_size: str | None = None,
    select: str = "{}",
    on_progress: Callable[[float, int], object] | None = None,
) -> str:
    """Return what a trace holds."""

def trace_convert(
    path: str | PathLike[str],
    target: str | PathLike[str],
    *,
    to: str,
    format: str = "auto",
    block_size: str = "8KiB",
    request_size: str | None = None,
    select: str = "{}",
    on_progress: Callable[[float, int], object] | None = None,
) -> str:
    """Write a trace in another format; return what was written."""

def without_credentials(text: str) -> str:
    """Return a text without the passwords and the queries of the URLs in it."""

def remove_pending_files() -> None:
    """Remove the temporary files of conversions under way, for a process that is about to end."""

def trace_filter(
    path: str | PathLike[str],
    target: str | PathLike[str],
    *,
    cache: str,
    replacement: str = "lru",
    keys: str = "{}",
    to: str = "csv",
    format: str = "auto",
    block_size: str = "8KiB",
    request_size: str | None = None,
    select: str = "{}",
    on_progress: Callable[[float, int], object] | None = None,
) -> str:
    """Write what misses in a cache."""

def trace_generate(
    generator: str,
    target: str | PathLike[str],
    *,
    to: str = "csv",
    keys: str = "{}",
    seed: int = 1,
    block_size: str = "8KiB",
    on_progress: Callable[[float, int], object] | None = None,
) -> str:
    """Write what a generator makes to a file; return what was written."""

def device_show(name: str, *, keys: str = "{}") -> str:
    """Return what a device is made of and how it answers."""

def device_probe(
    name: str,
    *,
    keys: str = "{}",
    requests: int = 20_000,
    warm_up: int = 0,
    sectors: int = 16,
    depth: int = 1,
    write: bool = False,
    sequential: bool = False,
    scheduler: str = "fcfs",
    seed: int = 1,
) -> str:
    """Return how a device answers a steady load."""

def device_survey(name: str, *, keys: str = "{}") -> str:
    """Return the curves of a device's picture."""

def device_import_diskspecs(path: str | PathLike[str], *, disk: str | None = None) -> str:
    """Return the profile of a drive that DiskSim's parameter files describe."""

def device_replay(
    name: str,
    trace: str | PathLike[str],
    *,
    keys: str = "{}",
    format: str = "auto",
    request_size: str | None = None,
    limit: int | None = None,
    select: str = "{}",
    on_progress: Callable[[float, int], object] | None = None,
) -> str:
    """Replay a trace on a device; return the times."""

def kernel_pages(question: str) -> str:
    """Return the pages that each read or touch of a file brings into the page cache of a kernel."""

def model_competitive(question: str) -> str:
    """Return the depth of competitive prefetching and what it guarantees."""

def model_defeat(
    sizes: Sequence[float], *, alpha: float, switch_ns: float, bytes_per_second: float
) -> tuple[float, int, float]:
    """Return the length of the stream that defeats a schedule, the prefetch that it ends in, and what it costs."""

def model_scenario(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
    advice: bool = False,
) -> str:
    """Return what the file-system model says of a scenario."""

def model_open(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
) -> str:
    """Return what the model of open arrivals says of a scenario."""

def model_trace(
    *,
    path: str | PathLike[str] | None = None,
    json: str | None = None,
    overrides: list[str] = ...,
) -> str:
    """Return what the model of a recorded program says of a scenario's mean request."""

def model_terms() -> list[str]:
    """Return what `model_file_system` writes of each row, in order."""

def model_file_system(question: str, columns: Sequence[tuple[str, object]], out: object) -> None:
    """Write the terms of each row to `out`, term by term.

    Columns and `out` are buffers of C doubles; a column has one number, or one for each row.
    """

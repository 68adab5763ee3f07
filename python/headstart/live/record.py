"""Make, show, merge and check recordings of commands' reads (docs/record.md). Recording requires Linux and root.

    recording.record(["git", "status"], "git.hints", cold=True)
    recording.show("git.hints")["summary"]["references"]
    recording.merge(["one.hints", "two.hints"], "both.hints")
    recording.check("git.hints")["stale"]

Times are whole nanoseconds (`_ns`), sizes bytes. The core works without the GIL.
"""

import json
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any, cast

from headstart import _core

Path = str | PathLike[str]
Facts = dict[str, Any]


def record(
    command: Sequence[str],
    target: Path,
    *,
    to: str = "hints",
    cold: bool = False,
    buffer: str | None = None,
    tracing: Path | None = None,
    on_start: Callable[[int], object] | None = None,
) -> Facts:
    """Run `command`, write its reads to `target`, and return exit status and summary.

    `to` is "hints", or "csv" for a trace. `cold` first drops the page cache and the dentry and inode caches. `buffer`
    is the kernel's buffer per processor ("4MiB"). `on_start` receives the process id. `tracing` is the mount point of
    tracefs, if it is not the usual one.

    Raises:
        HeadstartError: The caller is not root, there is no tracefs or no such command (then nothing has run), or
            `target` cannot be written.
    """
    place = None if tracing is None else fspath(tracing)
    done = _core.record(list(command), target, to=to, cold=cold, buffer=buffer, tracing=place, on_start=on_start)
    return cast("Facts", json.loads(done))


def show(path: Path) -> Facts:
    """Return a recording: `about`, `summary`, `processes`, `files`, `reads` (docs/hints-format.md)."""
    return cast("Facts", json.loads(_core.hints_show(path)))


def merge(paths: Sequence[Path], target: Path, *, share: float = 0.5) -> Facts:
    """Write the pages that occur in at least `share` of the recordings to `target`; return its summary.

    Raises:
        HeadstartError: A file is not a recording, or no page occurs often enough.
    """
    return cast("Facts", json.loads(_core.hints_merge(target, list(paths), share)))


def check(path: Path) -> Facts:
    """Return the number of recorded files, and those that have since been removed, replaced or changed."""
    return cast("Facts", json.loads(_core.hints_check(path)))

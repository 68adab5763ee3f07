"""Make, show, merge and check recordings of commands' reads (docs/record.md). Recording requires Linux and root.

    recording.record(["git", "status"], "git.hints", cold=True)
    recording.show("git.hints")["summary"]["references"]
    recording.merge(["one.hints", "two.hints"], "both.hints")
    recording.check("git.hints")["stale"]

Times are whole nanoseconds (`_ns`), sizes bytes. The core works without the GIL.
"""

import json
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Unpack, cast

from headstart import _core
from headstart.live import core
from headstart.live.options import Record

Path = str | PathLike[str]
Facts = dict[str, Any]


def record(
    command: Sequence[str],
    target: Path,
    *,
    on_start: Callable[[int], object] | None = None,
    **options: Unpack[Record],
) -> Facts:
    """Run a command and record its reads; return its exit status and a summary.

    Args:
        command: The command and its arguments.
        target: Path of the recording to write.
        on_start: Called with the process id when the command has started.
        **options: Options of `headstart record`, `to`, the format, and `tracing`, the mount point of tracefs.

    Raises:
        HeadstartError: The caller is not root, there is no tracefs or no such command (then nothing has run), or
            `target` cannot be written.
    """
    return core.command("record", {"command": list(command), "target": target, **options}, core.told(on_start))


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

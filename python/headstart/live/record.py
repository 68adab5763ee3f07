"""Make, show, merge and check recordings of commands' reads (docs/record.md). Recording requires Linux and root.

    recording.record(["git", "status"], "git.hints", cold=True)
    recording.show("git.hints")["summary"]["references"]
    recording.merge(["one.hints", "two.hints"], "both.hints")
    recording.check("git.hints")["stale"]
    recording.export("app.hints", "soci", root="/var/lib/image")

Times are whole nanoseconds (`_ns`), sizes bytes. The core works without the GIL.
"""

import json
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Unpack, cast

from headstart import _core
from headstart._core import HeadstartError
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


def _estargz(paths: Sequence[str]) -> str:
    return "".join(json.dumps({"path": path.removeprefix("/")}) + "\n" for path in paths)


def _soci(paths: Sequence[str]) -> str:
    return json.dumps(paths, indent=1) + "\n"


def _nydus(paths: Sequence[str]) -> str:
    return "".join(f"{path}\n" for path in paths)


LISTS: dict[str, Callable[[Sequence[str]], str]] = {"estargz": _estargz, "nydus": _nydus, "soci": _soci}
"""Prefetch lists of lazily loaded container images: eStargz's record file (`nerdctl image convert --estargz-record-in`,
a JSON object a line), Nydus' list (`nydusify convert --prefetch-patterns`, from stdin), SOCI's list
(`soci create --prefetch-files-json`, a JSON array)."""


def export(path: Path, form: str, *, root: str = "/") -> str:
    """Return the files of a recording, in order of their first read, as a prefetch list for container images.

    Args:
        path: The recording.
        form: "estargz", "nydus" or "soci".
        root: The image's root folder on the machine that recorded. Files outside are left out.

    Raises:
        HeadstartError: The file is not a recording, there is no such form, or no file below `root` was read.
    """
    if form not in LISTS:
        raise HeadstartError(f'format: "{form}" is unknown; allowed: {", ".join(LISTS)}')
    below = root.rstrip("/")
    names = [each["path"] for each in show(path)["files"] if each["kind"] == "regular"]
    inside = [name[len(below) :] for name in names if name.startswith(f"{below}/")]
    if not inside:
        raise HeadstartError(f"root: no file below {root} was read; allowed: a folder that holds recorded files")
    # One of them in such a list would be two.
    return LISTS[form]([name for name in inside if "\n" not in name])

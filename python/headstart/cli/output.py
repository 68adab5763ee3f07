"""Output of results: to a console, as JSON to stdout, or to a file that is written atomically."""

import contextlib
import json
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from headstart import temporary
from headstart._core import HeadstartError
from headstart.cli.shown import SafeConsole, json_text, plain

WIDE = 110
"""Columns of a table if stdout is not a terminal."""
UNBOUNDED = 100_000
"""Columns for a table that is as wide as its content."""


def console(*, wide: bool = False) -> Console:
    """Return the console for text on stdout; with `wide`, as wide as its content if stdout is not a terminal."""
    columns = UNBOUNDED if wide else WIDE
    return SafeConsole(width=None if sys.stdout.isatty() else columns, highlight=False, soft_wrap=False)


def check_targets(*targets: str | None) -> None:
    """Refuse files that cannot be written, before the work starts. "-" is stdout."""
    for target in targets:
        if target is not None and target != "-":
            check_file(target, stream=True)


def check_file(target: str, *, stream: bool = False) -> None:
    """Refuse a file that cannot be written, and give the reason. With `stream`, pipes and devices are allowed."""
    path = Path(target)
    if path.is_dir():
        why = "is a folder"
    elif not path.parent.is_dir():
        why = f"there is no folder {path.parent}"
    elif not os.access(path.parent, os.W_OK):
        why = f"nothing may be written in {path.parent.absolute()}"
    elif target == "-" or (path.exists() and not path.is_file() and not stream):
        why = "is no regular file"
    else:
        return
    name = plain(target) or '""'
    raise HeadstartError(f"{name}: cannot be written: {why}; allowed: a file in a folder that can be written")


def write_text(target: Path, text: str) -> None:
    """Write a result to a file atomically: a reader sees the old content or the new, never a part.

    Raises:
        HeadstartError: The file cannot be written. The error names the file that has the result instead.
    """
    write_bytes(target, text.encode())


def write_bytes(target: Path, content: bytes) -> None:
    """Write a file atomically, as `write_text` does."""
    try:
        _replace(target, content)
    except OSError as error:
        kept = _keep(target.name, content)
        where = f"; the result is kept in {kept}" if kept else ""
        problem = error.strerror or str(error)
        allowed = "allowed: a file in a folder that can be written, with room for it"
        raise HeadstartError(f"{target}: cannot be written: {problem}{where}; {allowed}") from error


def _replace(target: Path, content: bytes) -> None:
    """Replace `target` by a file with `content`, keeping mode and owner."""
    if target.exists() and not target.is_file():
        # A pipe or a device cannot be replaced.
        target.write_bytes(content)
        return
    # Replace the target of a link, not the link.
    target = Path(os.path.realpath(target))
    with temporary.replacing(target) as descriptor:
        _take_mode(descriptor, target)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _take_mode(descriptor: int, target: Path) -> None:
    """Give the file the mode and the owner of `target`, or the mode of a new file."""
    try:
        there = target.stat()
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(descriptor, 0o666 & ~mask)
        return
    with contextlib.suppress(OSError):
        # Only root may change the owner. The mode is set last, because chown clears bits of it.
        os.fchown(descriptor, there.st_uid, there.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(there.st_mode))


def _keep(name: str, content: bytes) -> Path | None:
    """Save a result that cannot be written to its target in another place; return its path, or `None` on failure."""
    kept = None
    try:
        descriptor, path = tempfile.mkstemp(prefix="headstart-", suffix=f"-{name}")
        kept = Path(path)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError:
        if kept is not None:
            kept.unlink(missing_ok=True)
        return None
    return kept


def write_json(target: str, text: str) -> None:
    """Write one line of JSON to `target`, stdout if it is "-"."""
    text = json_text(text)
    if target == "-":
        sys.stdout.write(text + "\n")
    else:
        write_text(Path(target), text + "\n")


def as_json(value: Any) -> str:
    """Return `value` as JSON, one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def seconds(nanoseconds: int) -> str:
    """Return a time as text: seconds with three digits, or milliseconds below 0.1 s."""
    if nanoseconds == 0:
        return "0 s"
    if nanoseconds < 100_000_000:
        return f"{nanoseconds / 1e6:,.3f} ms"
    return f"{nanoseconds / 1e9:,.3f} s"


def duration(nanoseconds: int) -> str:
    """Return a time as text, like `seconds`, but short times in microseconds or nanoseconds."""
    if 0 < nanoseconds < 1_000:
        return f"{nanoseconds} ns"
    if 0 < nanoseconds < 100_000:
        return f"{nanoseconds / 1e3:,.3f} us"
    return seconds(nanoseconds)

"""Where results go: a console, JSON on stdout, or a file that appears whole or not at all."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from headstart._core import HeadstartError
from headstart.cli.shown import SafeConsole, json_text, plain

WIDE = 110
"""Columns of a table that is not shown on a terminal."""


def console() -> Console:
    """Return the console for readable output on stdout."""
    return SafeConsole(width=None if sys.stdout.isatty() else WIDE, highlight=False, soft_wrap=False)


def check_targets(*targets: str | None) -> None:
    """Refuse files that cannot be written, before the work is done and not after. "-" is stdout."""
    for target in targets:
        if target is not None and target != "-":
            check_file(target, stream=True)


def check_file(target: str, *, stream: bool = False) -> None:
    """Refuse a file that cannot be written, and say why. A `stream` may also be a pipe or a device."""
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
    """Write a file at once: a reader sees the old content or the new, never a part."""
    write_bytes(target, text.encode())


def write_bytes(target: Path, content: bytes) -> None:
    """Write a file at once, as `write_text` does."""
    if target.exists() and not target.is_file():
        # A pipe or a device: there is nothing to put in its place.
        target.write_bytes(content)
        return
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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
    """Return a time for people: seconds with three digits, or milliseconds below 0.1 s."""
    if nanoseconds == 0:
        return "0 s"
    if nanoseconds < 100_000_000:
        return f"{nanoseconds / 1e6:,.3f} ms"
    return f"{nanoseconds / 1e9:,.3f} s"


def duration(nanoseconds: int) -> str:
    """Return a time for people, as `seconds`, in microseconds or nanoseconds where it is short."""
    if 0 < nanoseconds < 1_000:
        return f"{nanoseconds} ns"
    if 0 < nanoseconds < 100_000:
        return f"{nanoseconds / 1e3:,.3f} us"
    return seconds(nanoseconds)

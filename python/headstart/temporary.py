"""Temporary files and folders, removed when their work ends and when a signal ends the process.

`os._exit` and the default action of a signal do not run `finally` blocks. The command therefore calls `remove_all`
before either.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headstart import _core

_open: set[Path] = set()
_ATTEMPTS = 3
"""Attempts to remove a folder, because a thread that still writes can add files to it."""


@contextmanager
def folder() -> Iterator[Path]:
    """Make a private folder for the duration of the block."""
    path = Path(tempfile.mkdtemp(prefix="headstart-"))
    _open.add(path)
    try:
        yield path
    finally:
        _remove(path)


@contextmanager
def file_beside(target: Path) -> Iterator[tuple[int, Path]]:
    """Make a hidden file beside `target` for the duration of the block; the file may be moved away before its end."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    path = Path(name)
    _open.add(path)
    try:
        yield descriptor, path
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)
        _remove(path)


def remove_all() -> None:
    """Remove all temporary files and folders, including those of the core, because the process ends."""
    _core.remove_pending_files()
    for path in list(_open):
        _remove(path)


def _remove(path: Path) -> None:
    for _ in range(_ATTEMPTS):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        if not path.exists():
            break
    _open.discard(path)

"""Temporary files and folders, removed when their work ends and when a signal ends the process.

`os._exit` and the default action of a signal run no `finally`: what is open here is removed by `remove_all`, which the
command calls before either.
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
"""A thread that still writes can add to a folder while it is being removed."""


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder of the user's own for the length of the block."""
    path = Path(tempfile.mkdtemp(prefix="headstart-"))
    _open.add(path)
    try:
        yield path
    finally:
        _remove(path)


@contextmanager
def file_beside(target: Path) -> Iterator[tuple[int, Path]]:
    """Make a hidden file beside `target` for the length of the block; one that was moved away by then is not missed."""
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
    """Remove all that is open, those of the core included, because the process ends."""
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

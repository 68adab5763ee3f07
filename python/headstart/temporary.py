"""Files that are replaced as a whole, and temporary files and folders, removed at the end of their work.

`os._exit` and the default action of a signal do not run `finally` blocks. The command therefore calls `remove_all`
before either.
"""

import contextlib
import os
import secrets
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
def replacing(target: Path) -> Iterator[int]:
    """Open a file, mode 600, that replaces `target` at the end of the block, unless the block raises.

    The file has no name until then, so that nothing remains of it even if the process is killed. On a file system
    without unnamed files it is a hidden file beside `target`.
    """
    # A hidden name is also needed for a moment if there is a `target`, because a link replaces nothing.
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    descriptor = _unnamed(target.parent)
    has_name = descriptor is None
    _open.add(hidden)
    if descriptor is None:
        # Names the problem if the folder is at fault.
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        yield descriptor
        if not has_name:
            try:
                _link(descriptor, target)
                return
            except FileExistsError:
                _link(descriptor, hidden)
        hidden.replace(target)
    finally:
        os.close(descriptor)
        _remove(hidden)


def _unnamed(folder: Path) -> int | None:
    """Open a file without a name; return `None` if the file system has none, or the folder is no place for files."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return None


def _link(descriptor: int, path: Path) -> None:
    try:
        # Python follows the link in /proc only if a folder is given, which an absolute path then ignores.
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
    except OSError as error:
        error.filename = os.fspath(path)
        raise


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

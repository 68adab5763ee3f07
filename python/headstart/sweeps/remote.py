"""Traces by URL: anything that fsspec opens (s3://, gs://, https://, file://), fetched once into the user's cache.

The copy is named by a digest of the URL and of the store's metadata of the object (size, date, tag). A changed object
is therefore fetched again.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Any

from headstart import temporary
from headstart._core import HeadstartError
from headstart._environment import folders
from headstart._input import plain

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]*://")
CHUNK = 1 << 20


def is_url(trace: str) -> bool:
    """Return whether a trace is named by a URL."""
    return URL.match(trace) is not None


def fetched(url: str) -> str:
    """Return the path of a copy of what the URL names, fetching it if there is none.

    Raises:
        HeadstartError: It cannot be fetched, or fsspec is not installed.
    """
    try:
        import fsspec
    except ImportError as error:
        name = f"{plain(url)}: traces by URL need fsspec"
        raise HeadstartError(f"{name}; allowed: pip install 'headstart[sweep]'") from error
    cache = folders().cache
    assert cache is not None
    try:
        # Its metadata of the object must be fresh.
        system, path = fsspec.core.url_to_fs(url, skip_instance_cache=True)
        mark = f"{url}\n{system.ukey(path)}"
        target = cache / "traces" / hashlib.sha256(mark.encode()).hexdigest()[:32] / Path(path).name
        if not target.exists():
            _fetch(system, path, target)
    except HeadstartError:
        raise
    except Exception as error:
        # Each store has its own exceptions.
        why = " ".join(str(error).split()) or type(error).__name__
        why = f"there is no such object ({why})" if isinstance(error, FileNotFoundError) else why
        raise HeadstartError(
            f"{plain(url)}: cannot be fetched: {plain(why)}; allowed: a URL that fsspec opens, such as s3://BUCKET/TRACE"
        ) from error
    return str(target)


def _fetch(system: Any, path: str, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(target.parent / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.closing(os.fdopen(lock, "rb")):
        # Several workers of a machine want the same trace: one fetches it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        with (
            temporary.replacing(target) as descriptor,
            system.open(path, "rb") as source,
            os.fdopen(os.dup(descriptor), "wb") as copy,
        ):
            shutil.copyfileobj(source, copy, CHUNK)

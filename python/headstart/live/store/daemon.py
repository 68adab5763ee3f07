"""The daemon of a store: a process for all programs of a user that read the same source. Programs join or start it."""

import dataclasses
import fcntl
import hashlib
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from headstart._core import HeadstartError
from headstart._environment import values
from headstart._input import plain
from headstart.live.store.connection import Connection, LostError
from headstart.sizes import size_bytes, size_text

_OF_SOURCE = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AZURE_STORAGE_ACCOUNT_NAME")
"""Variables that make another source of the same URL."""
CACHE = "8GiB"
_TICK = 0.01
_ENDING_SECONDS = 10.0
"""How long a daemon that ends may still use the spill."""
_PATH_BYTES_MAX = 107
"""The system's limit for the path of a socket."""

_started: list[subprocess.Popen[bytes]] = []
"""Daemons of this process, which are its children: they are reaped when the next one is started."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Daemon:
    """The daemon that a store needs."""

    url: str
    cache: str | None
    spill: str | None
    linger: float
    hedge: bool
    socket: Path

    def join(self) -> Connection:
        """Connect to the daemon, which is started if there is none.

        Raises:
            HeadstartError: It cannot be started, or runs with other sizes.
        """
        connection = self._connect() or self._start()
        for option, wanted in {"cache": self.cache, "spill": self.spill and self.spill.rpartition(":")[2]}.items():
            runs = connection.welcome[f"{option}_bytes"]
            if wanted is not None and size_bytes(wanted) != runs:
                problem = f"{option}: the daemon of {plain(self.url)} runs with {size_text(runs)}, not {wanted}"
                raise HeadstartError(f"{problem}; allowed: the same size, or another one once its programs have ended")
        return connection

    def _connect(self) -> Connection | None:
        try:
            return Connection(self.socket)
        except (ConnectionRefusedError, FileNotFoundError, LostError):
            return None
        except OSError as error:
            raise HeadstartError(f"{plain(self.socket)}: {error.strerror}; allowed: a path for a socket") from error

    def _start(self) -> Connection:
        try:
            lock_file = self._beside(".lock").open("w")
        except OSError as error:
            raise HeadstartError(f"{plain(self.socket)}: {error.strerror}; allowed: a path for a socket") from error
        with lock_file as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another program may have started it meanwhile.
            connection = self._connect()
            until = time.monotonic() + _ENDING_SECONDS
            while connection is None:
                connection = self._started(retry=time.monotonic() < until)
            return connection

    def _started(self, *, retry: bool) -> Connection | None:
        """Start a daemon and connect to it; `None`: it should be tried again."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
            )
        while process.poll() is None:
            connection = self._connect()
            if connection is not None:
                _started[:] = [each for each in _started if each.poll() is None] + [process]
                return connection
            time.sleep(_TICK)
        lines = self.log.read_text(errors="replace").strip().splitlines()
        said = (
            lines[-1].removeprefix("headstart: ").removeprefix("error: ") if lines else f"status {process.returncode}"
        )
        if retry and "is in use by another store" in said:
            time.sleep(_TICK * 10)
            return None
        # The command names its options beside the keys.
        raise HeadstartError(plain(re.sub(r"^(\w+) \(--[\w-]+\):", r"\1:", said)))

    @property
    def log(self) -> Path:
        """The messages of the daemon that was started last."""
        return self._beside(".log")

    def _command(self) -> list[str]:
        words = [sys.executable, "-m", "headstart", "store", self.url, "--shared", str(self.socket)]
        words += ["--cache", self.cache or CACHE, "--linger", str(self.linger)]
        words += [] if self.spill is None else ["--spill", self.spill]
        return words if self.hedge else [*words, "--no-hedge"]

    def _beside(self, suffix: str) -> Path:
        return self.socket.with_name(self.socket.name + suffix)


def daemon_for(
    url: str | os.PathLike[str],
    cache: str | None,
    spill: str | os.PathLike[str] | None,
    *,
    socket: str | os.PathLike[str] | None,
    linger: float,
    hedge: bool,
) -> Daemon:
    """Return the daemon for these options, with absolute paths.

    Raises:
        HeadstartError: An option is wrong.
    """
    if cache is not None:
        size_bytes(cache)
    if not linger >= 1:
        raise HeadstartError(f"linger: {linger} is out of range; allowed: at least 1 second")
    source = os.fspath(url)
    if "://" not in source:
        source = str(Path(source).absolute())
    if spill is not None:
        folder, colon, size = os.fspath(spill).rpartition(":")
        if not colon:
            raise HeadstartError(f"spill: {plain(size)} has no size; allowed: FOLDER:SIZE")
        size_bytes(size)
        spill = f"{Path(folder).absolute()}:{size}"
    path = Path(socket).absolute() if socket is not None else _folder() / _name(source, spill)
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        problem = f"socket: the path {plain(path)} is too long"
        raise HeadstartError(
            f"{problem}; allowed: {_PATH_BYTES_MAX} bytes (XDG_RUNTIME_DIR or TMPDIR names its folder)"
        )
    return Daemon(url=source, cache=cache, spill=spill, linger=linger, hedge=hedge, socket=path)


def _name(source: str, spill: str | None) -> str:
    folder = "" if spill is None else spill.rpartition(":")[0]
    variables = [] if "://" not in source else [f"{name}={value}" for name, value in values(_OF_SOURCE).items()]
    digest = hashlib.sha256("\0".join([source, folder, *variables]).encode(errors="surrogateescape"))
    return f"store-{digest.hexdigest()[:16]}"


def _folder() -> Path:
    """Return the user's own folder for sockets.

    Raises:
        HeadstartError: Others could put their sockets there.
    """
    runtime = values(["XDG_RUNTIME_DIR"])["XDG_RUNTIME_DIR"]
    path = Path(runtime) / "headstart" if runtime else Path(tempfile.gettempdir()) / f"headstart-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, parents=False, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise HeadstartError(
            f"{plain(path)}: {error.strerror}; allowed: a folder for sockets, or socket=PATH"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        problem = f"{plain(path)} is no folder of this user alone"
        raise HeadstartError(f"{problem}; allowed: one that only this user can enter (mode 700), or socket=PATH")
    return path

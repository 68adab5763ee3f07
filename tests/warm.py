"""The command in a separate process, without waiting for Python to start and to load the package.

Most tests run the command once and check its output. Half of their time would go to starting Python. A process that
has loaded the modules of all commands, and has done nothing with them, waits here and forks for each command, with its
arguments, folder, environment and output as with `subprocess.run`. Tests of start-up, signals or installed commands
start the program itself.
"""

from __future__ import annotations

import json
import os
import pkgutil
import selectors
import socket
import struct
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

LENGTH = struct.Struct("!I")
"""The length in bytes that precedes each message."""


class Warm:
    """A process that forks for each command; started for the first one."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._asking = threading.Lock()
        self._to: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the command `words` in `folder` to its end."""
        ends = [os.pipe() for _ in range(3)]
        try:
            self._ask(words, folder, [write_end for _, write_end in ends])
        finally:
            for _, write_end in ends:
                os.close(write_end)
        out, err, status = _read_all([read_end for read_end, _ in ends])
        code = os.waitstatus_to_exitcode(LENGTH.unpack(status)[0])
        return subprocess.CompletedProcess(words, code, _text(out), _text(err))

    def _ask(self, words: list[str], folder: Path, descriptors: list[int]) -> None:
        message = json.dumps({"words": words, "folder": str(folder), "environment": dict(os.environ)}).encode()
        with self._asking:
            if self._to is None:
                self._to, theirs = socket.socketpair()
                with theirs:
                    line = [sys.executable, "-m", "tests.warm", str(theirs.fileno())]
                    self._process = subprocess.Popen(line, pass_fds=[theirs.fileno()], cwd=Path(__file__).parent.parent)
            socket.send_fds(self._to, [LENGTH.pack(len(message))], descriptors)
            self._to.sendall(message)

    def end(self) -> None:
        """Let the process end: it ends when no process can send it requests any more."""
        if self._to is not None and self._process is not None:
            self._to.close()
            self._process.wait()


def _read_all(pipes: list[int]) -> list[bytes]:
    """Return the output of each pipe, until the last one is closed at its other end."""
    came = {pipe: bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                part = os.read(key.fd, 1 << 16)
                came[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [bytes(came[pipe]) for pipe in pipes]


def _text(content: bytes) -> str:
    return content.decode().replace("\r\n", "\n").replace("\r", "\n")


def _whole(asked: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = asked.recv(length - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _next_command(asked: socket.socket) -> dict[str, Any] | None:
    """Fork for each message; return it in the process that becomes the command, and `None` at the end."""
    while True:
        head, descriptors, _, _ = socket.recv_fds(asked, LENGTH.size, 3)
        if not head:
            return None
        message: dict[str, Any] = json.loads(_whole(asked, LENGTH.unpack(head)[0]))
        out, err, status = descriptors
        waits = os.fork()
        if waits:
            for each in descriptors:
                os.close(each)
            os.waitpid(waits, 0)
            continue
        # The intermediate process, which forks the command and waits for it, is not waited for, so that many commands
        # may run at a time.
        if os.fork():
            os._exit(0)
        command = os.fork()
        if command:
            os.write(status, LENGTH.pack(os.waitpid(command, 0)[1]))
            os._exit(0)
        asked.close()
        os.close(status)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        return message


def main() -> None:
    """Serve until the other end is closed."""
    import headstart.cli

    for module in pkgutil.iter_modules(headstart.cli.__path__):
        import_module(f"headstart.cli.{module.name}")
    message = _next_command(socket.socket(fileno=int(sys.argv[1])))
    if message is None:
        return
    os.environ.clear()
    os.environ.update(message["environment"])
    os.chdir(message["folder"])
    sys.argv = message["words"]
    headstart.cli.main()


if __name__ == "__main__":
    main()

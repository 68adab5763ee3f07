"""A server of the Network Block Device protocol for tests: one export over memory, a thread for each connection."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Read = Callable[[int], bytes]
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
GO = 7
ACK, INFO, UNSUPPORTED = 1, 3, (1 << 31) + 1


class Server:
    """`content` is the export; `requests` are (command, offset, length) in order of arrival.

    Unflushed data is lost at a restart. `flush_errors` are the errors of the next flushes; with `hangs`, flushes are
    not answered.
    """

    def __init__(self, size_bytes: int, *, flags: int = 0b1101, closes_at: int | None = None) -> None:
        self.content = bytearray(size_bytes)
        self.requests: list[tuple[int, int, int]] = []
        self.flags = flags
        self.closes_at = closes_at
        self.flush_errors: list[int] = []
        self.hangs = threading.Event()
        self.stable = bytes(self.content)
        self.connections: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"nbd://127.0.0.1:{self.listener.getsockname()[1]}/disk"

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def restart(self) -> None:
        self.content[:] = self.stable
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.connections.clear()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as heard:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._negotiate(connection, heard.read)
                while self._answer(connection, heard.read):
                    pass
            except (OSError, struct.error):
                pass

    def _negotiate(self, connection: socket.socket, read: Read) -> None:
        connection.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3))
        read(4)
        while True:
            _, option, length = struct.unpack(">8sII", read(16))
            read(length)
            replies = [(UNSUPPORTED, b"")]
            if option == GO:
                replies = [(INFO, struct.pack(">HQH", 0, len(self.content), self.flags)), (ACK, b"")]
            for kind, data in replies:
                connection.sendall(struct.pack(">QIII", 0x3E889045565A9, option, kind, len(data)) + data)
            if option == GO:
                return

    def _answer(self, connection: socket.socket, read: Read) -> bool:
        _, _, command, cookie, offset, length = struct.unpack(">IHHQQI", read(28))
        if command == DISCONNECT or len(self.requests) == self.closes_at:
            return False
        self.requests.append((command, offset, length))
        reply, error = b"", 0
        if command == FLUSH:
            if self.hangs.is_set():
                return True
            error = self.flush_errors.pop(0) if self.flush_errors else 0
            if not error:
                self.stable = bytes(self.content)
        if command == READ:
            reply = bytes(self.content[offset : offset + length])
        elif command == WRITE:
            self.content[offset : offset + length] = read(length)
        connection.sendall(struct.pack(">IIQ", 0x67446698, error, cookie) + reply)
        return True


@contextmanager
def serving(size_bytes: int, *, flags: int = 0b1101, closes_at: int | None = None) -> Iterator[Server]:
    server = Server(size_bytes, flags=flags, closes_at=closes_at)
    threading.Thread(target=server.accept, daemon=True).start()
    try:
        yield server
    finally:
        server.listener.close()

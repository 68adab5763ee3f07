"""The limits on what all clients of `headstart serve` may take: connections, descriptors, handshake time, memory.

Order is checked, not speed: a client is answered while others hold as much as they can.
"""

import os
import resource
import select
import signal
import socket
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conftest import COMMAND
from tests.machines import PATIENCE_S, wait_until
from tests.test_serve import Client, ended, serving

MIB = 1 << 20
BURST_BYTES = 32 * MIB


def knock(path: Path) -> socket.socket:
    """Connect, and send nothing."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE_S)
    client.connect(os.fspath(path))
    return client


def greeted(clients: list[socket.socket]) -> list[socket.socket]:
    return select.select(clients, [], [], 0)[0]


def memory_mib(process_id: int, what: str) -> float:
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def test_clients_beyond_the_limit_wait_for_a_place(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with serving(path, "mem:1MiB", "--connections", "3") as process:
        first = Client(path)
        others = [knock(path) for _ in range(4)]
        assert all(client.recv(18) for client in others[:2])
        # When it has answered, the server has also handled the others.
        for at in range(20):
            first.read(at * 4096, 4096)
        assert greeted(others[2:]) == []
        others[0].close()
        assert others[2].recv(18)
        first.close()
        assert others[3].recv(18)
        ended(process)


def test_clients_are_accepted_again_when_there_are_descriptors(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    line = [str(COMMAND), "serve", "mem:1MiB", "--socket", str(path), "--log", str(tmp_path / "log")]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))

    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    try:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("ready: ")
        clients = [knock(path) for _ in range(100)]
        log = tmp_path / "log"
        wait_until(lambda: "not accepted" in log.read_text())
        inside = greeted(clients)
        assert 20 < len(inside) < 80
        waiting = [client for client in clients if client not in inside]
        for client in inside:
            client.close()
        assert all(client.recv(18) for client in waiting[: len(inside)])
        assert log.read_text().count("not accepted") <= 3, "it is said once, not with each attempt"
        ended(process)
    finally:
        process.kill()
        process.communicate()


def test_a_handshake_has_an_end_and_a_session_has_none(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with serving(path, "mem:1MiB", "--log", str(tmp_path / "log")) as process:
        client, mute, slow = Client(path), knock(path), knock(path)
        slow.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 3, 0))
        for each in (mute, slow):
            while each.recv(1 << 12):
                pass
        assert client.read(0, 8) == bytes(8)
        assert (tmp_path / "log").read_text().count("the handshake takes longer than 10 s") == 2
        ended(process)


def test_a_stopping_server_leaves_the_socket_of_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with serving(path, "mem:1MiB") as before:
        path.unlink()
        with serving(path, "mem:2MiB") as after:
            ended(before)
            assert Client(path).size == 2 * MIB
            ended(after)
    assert not path.exists(), "its own it removes"


def burst(path: Path, count: int) -> list[Client]:
    """Clients that request more than the server may hold for them, and receive none of it."""
    clients = [Client(path) for _ in range(count)]
    for client in clients:
        for offset in (0, 32, 16):
            client.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 0, 1, offset * MIB, BURST_BYTES))
    return clients


def taken(client: Client) -> int:
    """Receive all replies of a burst."""
    buffer, count = bytearray(MIB), 0
    while count < 3 * (BURST_BYTES + 16):
        part = client.socket.recv_into(buffer)
        assert part > 0
        count += part
    return count


def test_clients_that_take_all_leave_some_and_give_it_back(tmp_path: Path) -> None:
    image, path = tmp_path / "image", tmp_path / "socket"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    with serving(path, str(image), "--cache", "4MiB", "--memory", "132MiB") as process:
        Client(path).read(0, MIB)
        alone_mib = memory_mib(process.pid, "VmRSS")
        clients = burst(path, 8)
        # One after another they get what the first ones leave; no reply is received meanwhile.
        for client in [Client(path) for _ in range(4)]:
            assert client.read(8 * MIB, 4096) == bytes(4096)
            assert client.read(16 * MIB, MIB) == bytes(MIB)
        # Clients that receive their replies get all of them, as each makes room for the others.
        with ThreadPoolExecutor(len(clients)) as threads:
            assert list(threads.map(taken, clients)) == [3 * (BURST_BYTES + 16)] * len(clients)
        peak_mib = memory_mib(process.pid, "VmHWM")
        # Memory beside the limit: Python, the code, one partly used allocation of pages.
        assert peak_mib <= alone_mib + 128 + 40, (alone_mib, peak_mib)
        for client in clients:
            client.close()
        wait_until(lambda: memory_mib(process.pid, "VmRSS") <= alone_mib + 40)
        ended(process)


def test_a_request_does_not_wait_for_all_that_others_have_sent(tmp_path: Path) -> None:
    path, trace = tmp_path / "socket", tmp_path / "trace.csv"
    with serving(path, "mem:64MiB", "--record", str(trace)) as process:
        many, one = [Client(path) for _ in range(64)], Client(path)
        # The server finds everything sent now at once.
        process.send_signal(signal.SIGSTOP)
        for client in many:
            client.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 0, 1, 0, 4096) * 256)
        one.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 0, 1, MIB, 512))
        process.send_signal(signal.SIGCONT)
        assert one.take(16 + 512)[16:] == bytes(512)
        for client in many:
            assert client.take(256 * (16 + 4096))[16:4112] == bytes(4096)
        ended(process)
    lengths = [line.split(",") for line in trace.read_text().splitlines() if not line.startswith("#")]
    before = next(at for at, fields in enumerate(lengths) if "512" in fields)
    assert len(lengths) > 64 * 256
    assert before < 64 * 256 / 8, "a turn is short, and it came to the fourth turn at most"


def test_writes_that_are_never_finished_leave_room(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with serving(path, "mem:64MiB", "--cache", "4MiB", "--memory", "132MiB", "--writable") as process:
        begun = [Client(path) for _ in range(30)]
        for client in begun:
            client.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 1, 1, 0, BURST_BYTES) + b"x" * 4096)
        client = Client(path)
        assert client.ask(1, 4096, 4096, b"w" * 4096) == (0, b"")
        assert client.read(4096, 4096) == b"w" * 4096
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0

"""`headstart serve` and its Python side: what clients read and write, what ends it, what is refused."""

import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headstart
from tests import nbd_server
from tests.conftest import COMMAND, Run
from tests.machines import PATIENCE_S, running, wait_until
from tests.test_bad_input import one_line

BYTES = 3_000_123


class Client:
    """A client of the NBD protocol with what these tests need: simple replies, one request at a time."""

    def __init__(self, path: Path, export: str = "") -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(os.fspath(path))
        assert self.take(18)[:16] == b"NBDMAGICIHAVEOPT"
        name = export.encode()
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, len(name)) + name)
        self.size, self.flags = struct.unpack(">QH", self.take(10))

    def take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def ask(self, command: int, offset: int, length: int, data: bytes = b"", flags: int = 0) -> tuple[int, bytes]:
        """Return the error, and the data read."""
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, flags, command, 7, offset, length) + data)
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert (magic, cookie) == (0x67446698, 7)
        return error, self.take(length) if command == 0 and not error else b""

    def read(self, offset: int, length: int) -> bytes:
        error, data = self.ask(0, offset, length)
        assert error == 0
        return data

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(random.Random(1).randbytes(BYTES))
    return path


@contextmanager
def serving(path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`headstart serve` at the socket `path`, once clients can connect; killed when the block is left."""
    line = [str(COMMAND), "serve", "--socket", str(path), *words]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for _ in range(words.count("--export") + (not words[0].startswith("--"))):
            said = process.stderr.readline()
            assert said.startswith(("ready: nbd+unix:///", "ready: nbds+unix:///")), said + process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], sent: signal.Signals = signal.SIGTERM) -> str:
    """End the server, and return what it writes to stdout."""
    process.send_signal(sent)
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    return out


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda each: each.name)
def test_clients_read_the_image_and_a_signal_ends_it(image: Path, tmp_path: Path, sent: signal.Signals) -> None:
    path, content = tmp_path / "socket", image.read_bytes()
    with serving(path, str(image), "--cache", "256KiB", "--json", "-") as process:
        client = Client(path)
        assert client.size == BYTES
        for offset in range(0, BYTES, 100_000):
            assert client.read(offset, min(100_000, BYTES - offset)) == content[offset : offset + 100_000]
        assert client.read(BYTES - 1, 1) == content[-1:]
        assert client.ask(0, BYTES - 1, 2)[0] == 22, "beyond the end"
        assert client.ask(1, 0, 4, b"data")[0] == 1, "read-only"
        assert client.read(5, 3) == content[5:8], "the connection goes on"
        report = json.loads(ended(process, sent))
    assert not path.exists()
    export = report["exports"][0]
    level = export["level"]
    assert (export["read_requests"], level["references"]) == (
        33,
        level["hits_ready"] + level["hits_unready"] + level["misses"],
    )
    assert level["fetches"] == level["demand_fetches"] + level["prefetches"]
    assert level["prefetches_used"] > 0.5 * level["prefetches"] > 0


def test_writes_reach_the_backing_and_are_read_by_others(image: Path, tmp_path: Path) -> None:
    path, content = tmp_path / "socket", bytearray(image.read_bytes())
    numbers = random.Random(2)
    with serving(path, str(image), "--cache", "128KiB", "--writable", "--page", "16KiB") as process:
        clients = [Client(path) for _ in range(4)]
        for _ in range(300):
            client = numbers.choice(clients)
            offset = numbers.randrange(BYTES)
            length = numbers.randint(1, min(50_000, BYTES - offset))
            kind = numbers.choice(["read", "read", "write", "zero"])
            if kind == "read":
                assert client.read(offset, length) == content[offset : offset + length]
            elif kind == "write":
                data = numbers.randbytes(length)
                assert client.ask(1, offset, length, data, flags=numbers.choice([0, 1])) == (0, b"")
                content[offset : offset + length] = data
            else:
                assert client.ask(6, offset, length) == (0, b"")
                content[offset : offset + length] = bytes(length)
        assert clients[0].ask(3, 0, 0) == (0, b"")
        # Flushed data is in the file, whatever happens to the server.
        process.kill()
        process.communicate()
    assert image.read_bytes() == content


def test_a_client_that_goes_in_the_middle_of_a_write_harms_nobody(image: Path, tmp_path: Path) -> None:
    path, content = tmp_path / "socket", image.read_bytes()
    with serving(path, str(image), "--writable") as process:
        one, other = Client(path), Client(path)
        one.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 1, 7, 0, 1 << 20) + b"half of it")
        one.close()
        garbage = Client(path)
        garbage.socket.sendall(b"no request at all, but 28 bytes and more")
        with pytest.raises((EOFError, ConnectionResetError)):
            garbage.take(1)
        assert other.read(0, 1000) == content[:1000]
        ended(process)
    assert image.read_bytes() == content


def test_several_exports_metrics_and_a_recording_that_compare_reads(image: Path, tmp_path: Path, run: Run) -> None:
    path, trace, metrics, log = (tmp_path / name for name in ("socket", "trace.csv", "metrics", "log"))
    words = [
        "mem:1MiB",
        "--export",
        f"disk={image}",
        "--record",
        str(trace),
        "--openmetrics",
        str(metrics),
        "--log",
        str(log),
    ]
    with serving(path, *words, "--coordinator", "pfc", "--readahead", "ra") as process:
        memory, disk = Client(path), Client(path, "disk")
        assert (memory.size, disk.size, memory.read(4096, 4096)) == (1 << 20, BYTES, bytes(4096))
        for at in range(40):
            disk.read(at * 8192, 8192)
        wanted = 'headstart_serve_read_requests_total{export="disk"} 40\n'
        wait_until(lambda: metrics.exists() and wanted in metrics.read_text(encoding="utf-8"))
        with pytest.raises((EOFError, ConnectionResetError)):
            Client(path, "no such export")
        ended(process)
    assert metrics.read_text(encoding="utf-8").endswith("# EOF\n")
    lines = trace.read_text(encoding="utf-8").splitlines()
    assert (lines[0], len(lines)) == ("time,op,pid,file,offset,size", 42)
    assert trace.with_suffix(".files.csv").read_text(encoding="utf-8").splitlines()[2].endswith(",disk")
    events = [json.loads(line)["event"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert events.count("connected") == 3 and events[-1] == "ended" and "refused" in events
    compared = run("compare", str(trace), "--policies", "demand,linux", "--cache", "1MiB", "--json", "-")
    assert compared.returncode == 0, compared.stderr


def test_each_export_has_an_address_of_its_own(image: Path, tmp_path: Path) -> None:
    """One line each; spaces and question marks do not end a name."""
    folder = tmp_path / "a folder, 50%"
    folder.mkdir()
    path = folder / "socket"
    exports = {"": image, "second disk": image, "what?": image}
    words = [word for name in exports if name for word in ("--export", f"{name}={image}")]
    line = [str(COMMAND), "serve", str(image), "--socket", str(path), *words]
    with running(line) as process:
        assert process.stderr is not None
        said = [process.stderr.readline().rstrip("\n") for _ in exports]
        socket = f"{tmp_path}/a%20folder%2C%2050%25/socket"
        assert said == [f"ready: nbd+unix:///{name}?socket={socket}" for name in ("", "second%20disk", "what%3F")]
        assert Client(path, "second disk").size == BYTES


def test_metrics_over_http(tmp_path: Path) -> None:
    # An address of this process's own: any port of 127.0.0.1 that is free now may be taken in a moment.
    address = f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}:9"
    with serving(tmp_path / "socket", "mem:1MiB", "--metrics", address) as process:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE_S) as reply:
            assert reply.headers["Content-Type"].startswith("application/openmetrics-text")
            assert b"headstart_serve_connections{} 0\n" in reply.read()
        ended(process)


HANDED_OVER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ |= {'LISTEN_PID': str(os.getpid())}; "
    "os.environ |= {'LISTEN_FDS': '1'}; os.execv(sys.argv[2], sys.argv[2:])"
)
"""Like systemd: the first socket is file 3, and the environment names its owner."""


def test_a_socket_that_other_machines_reach_is_refused_however_it_comes() -> None:
    # Nothing listens on it.
    with socket.socket() as bound:
        bound.bind(("0.0.0.0", 0))
        line = [sys.executable, "-c", HANDED_OVER, str(bound.fileno()), str(COMMAND), "serve", "mem:1MiB"]
        for words, allowed in (([], "--allow-remote too"), (["--allow-remote"], "--tls-cert and --tls-key too")):
            done = subprocess.run(
                [*line, *words], capture_output=True, text=True, pass_fds=[bound.fileno()], timeout=PATIENCE_S
            )
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
            assert "can be reached from other machines" in done.stderr and allowed in done.stderr


def test_sockets_that_are_handed_over(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
        listener.listen()
        line = [sys.executable, "-c", HANDED_OVER, str(listener.fileno()), str(COMMAND), "serve", "mem:1MiB"]
        process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, pass_fds=[listener.fileno()])
        try:
            assert process.stderr is not None
            assert str(path) in process.stderr.readline()
            assert Client(path).read(0, 8) == bytes(8)
            ended(process)
        finally:
            process.kill()
            process.communicate()
    assert path.exists(), "it belongs to those who have made it"


def test_servers_chain_and_outlive_one_another(image: Path, tmp_path: Path) -> None:
    below, path, content = tmp_path / "below", tmp_path / "socket", image.read_bytes()
    uri = f"nbd+unix:///?socket={below}"
    words = ("--writable", "--cache", "64KiB", "--readahead", "demand")
    with serving(below, str(image), "--writable", "--coordinator", "pfc") as lower, serving(path, uri, *words) as upper:
        client = Client(path)
        assert (client.size, client.read(0, BYTES) == content) == (BYTES, True)
        assert client.ask(1, 7, 5, b"chain", flags=1) == (0, b"")
        assert image.read_bytes()[7:12] == b"chain"
        assert client.ask(6, 7, 5) == (0, b"")
        assert client.read(0, 20) == content[:7] + bytes(5) + content[12:20]
        assert client.ask(3, 0, 0) == (0, b""), "the other server may lose nothing any more"
        lower.kill()
        lower.communicate()
        assert client.ask(0, 1_000_000, 4096)[0] == 5, "nothing stands behind it"
        assert client.read(0, 20) == content[:7] + bytes(5) + content[12:20], "what is cached is still there"
        with serving(below, str(image), "--writable"):
            assert client.read(2_000_000, 4096) == content[2_000_000:2_004_096]
            ended(upper)


def stopped(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """End the server; return its status and the lines on stderr."""
    process.terminate()
    errors = process.communicate(timeout=PATIENCE_S)[1]
    return process.returncode, errors.splitlines()


def test_after_a_failed_sync_writes_and_flushes_fail(tmp_path: Path) -> None:
    path, report, log = tmp_path / "socket", tmp_path / "report.json", tmp_path / "log"
    words = ("--writable", "--readahead", "demand", "--json", str(report), "--log", str(log))
    with nbd_server.serving(1 << 20) as upstream, serving(path, upstream.uri, *words) as process:
        client = Client(path)
        assert client.read(8192, 4) == bytes(4)
        for offset in (8192, 12_288):
            assert client.ask(1, offset, 512, b"w" * 512) == (0, b"")
        upstream.flush_errors = [5]
        assert client.ask(3, 0, 0)[0] == 5
        # The storage works again, but has lost the first write.
        upstream.content[8192:8704] = b"o" * 512
        assert client.ask(3, 0, 0)[0] == 5
        assert client.ask(1, 0, 4, b"fuaw", flags=1)[0] == 5
        assert client.ask(1, 0, 4, b"late")[0] == 5
        assert (client.read(8192, 4), client.read(12_288, 4), client.read(0, 4)) == (b"oooo", b"wwww", bytes(4))
        status, lines = stopped(process)
    assert (status, len(lines)) == (1, 1)
    assert lines[0].startswith(f"headstart: {upstream.uri}: not known to be stable: 2 acknowledged writes, 1024 bytes")
    unstable = json.loads(report.read_text())["exports"][0]["unstable"]
    counted = [unstable[key] for key in ("unflushed_writes", "unflushed_bytes", "first_byte", "end_byte")]
    assert counted == [2, 1024, 8192, 12_800]
    logged = [line for line in map(json.loads, log.read_text().splitlines()) if line["event"] == "unstable"]
    assert [line["detail"] for line in logged] == [unstable["summary"]]


@pytest.mark.parametrize("flushed", [False, True])
def test_an_upstream_that_is_restarted(tmp_path: Path, flushed: bool) -> None:
    path = tmp_path / "socket"
    with (
        nbd_server.serving(1 << 20) as upstream,
        serving(path, upstream.uri, "--writable", "--readahead", "demand") as process,
    ):
        client = Client(path)
        assert client.read(4096, 4096) == bytes(4096)
        assert client.ask(1, 4096, 4096, b"N" * 4096) == (0, b"")
        if flushed:
            assert client.ask(3, 0, 0) == (0, b"")
        upstream.restart()
        # An error may report that the connection is lost; later reads use the new one.
        client.ask(0, 16_384, 4)
        assert client.ask(0, 16_384, 4) == (0, bytes(4))
        assert client.ask(3, 0, 0)[0] == (0 if flushed else 5)
        assert client.read(4096, 4) == (b"NNNN" if flushed else bytes(4))
        status, lines = stopped(process)
    assert (status, len(lines)) == ((0, 0) if flushed else (1, 1))


def test_storage_that_hangs_does_not_hold_up_the_end(tmp_path: Path) -> None:
    words = ("--writable", "--readahead", "demand")
    with (
        nbd_server.serving(1 << 20) as upstream,
        serving(tmp_path / "a", upstream.uri, *words) as waits,
        serving(tmp_path / "b", upstream.uri, *words) as killed,
    ):
        for name in ("a", "b"):
            assert Client(tmp_path / name).ask(1, 4096, 4096, b"N" * 4096) == (0, b"")
        upstream.hangs.set()
        waits.terminate()
        killed.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            killed.wait(timeout=1)
        killed.terminate()
        assert killed.wait(timeout=PATIENCE_S) == -signal.SIGTERM
        errors = waits.communicate(timeout=PATIENCE_S)[1].splitlines()
    assert (waits.returncode, len(errors)) == (1, 1)
    assert "1 acknowledged writes, 4096 bytes between 4096 and 8192" in errors[0]


def test_an_image_that_becomes_shorter_fails_reads_of_its_end(image: Path, tmp_path: Path) -> None:
    path, content = tmp_path / "socket", image.read_bytes()
    with serving(path, str(image), "--readahead", "ra") as process:
        client = Client(path)
        os.truncate(image, 1_000_000)
        for offset in range(0, 900_000, 100_000):
            assert client.read(offset, 100_000) == content[offset : offset + 100_000]
        assert client.ask(0, 2_000_000, 10)[0] == 5
        image.write_bytes(content)
        assert client.read(2_000_000, 10) == content[2_000_000:2_000_010], "it has been repaired"
        ended(process)


def test_in_python(image: Path, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    read: list[bytes] = []

    def progress(now: dict[str, Any]) -> bool:
        if not threads[0].is_alive() and not read:
            threads[0].start()
        return bool(read)

    def client() -> None:
        read.append(Client(path, "a").read(0, 5000))

    threads = [threading.Thread(target=client)]
    report = headstart.serve(exports={"a": image}, listen=f"unix:{path}", level={"size": "1MiB"}, progress=progress)
    assert (read, report["exports"][0]["read_bytes"]) == ([image.read_bytes()[:5000]], 5000)

    def fails(now: dict[str, Any]) -> bool:
        raise LookupError

    with pytest.raises(LookupError):
        headstart.serve(image, listen=f"unix:{path}", progress=fails)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "backing: is missing"),
        (["/no/such/file"], "/no/such/file: No such file or directory; allowed: a file"),
        (["/"], "/: is a directory"),
        (["mem:lots"], "mem:lots"),
        (["ftp://host/file"], "ftp://host/file: is no kind of backing"),
        (["mem:1MiB", "--listen", "0.0.0.0:0"], "can be reached from other machines"),
        (["mem:1MiB", "--listen", "nowhere"], '"nowhere" is no address'),
        (["mem:1MiB", "--cache", "much"], "(--cache)"),
        (["mem:1MiB", "--page", "5KiB"], "a power of two from 4KiB to 4MiB"),
        (["mem:1MiB", "--readahead", "linx"], 'did you mean "linux"'),
        (["mem:1MiB", "--readahead", "forestall"], "the future references of a lower level are not known"),
        (["mem:1MiB", "--coordinator", "pcf"], "pfc"),
        (["mem:1MiB", "--export", "nothing"], "NAME=BACKING"),
        (["mem:1MiB", "--listen", "tcp:127.0.0.1:0", "--socket", "x"], "given beside --listen"),
        (["mem:1MiB", "--socket", "/no/such/folder/socket"], "/no/such/folder/socket"),
        (["mem:1MiB", "--scenario", "/no/such.toml"], "/no/such.toml"),
        (["mem:1MiB", "--level", "L1"], "needs --scenario"),
        (["mem:1MiB", "--direct"], "allowed: a file or a block device"),
        (["mem:1MiB", "--depth", "0"], "allowed: a whole number from 1 to 1024"),
    ],
)
def test_mistakes_are_one_line(run: Run, words: list[str], said: str) -> None:
    done = run("serve", *words)
    one_line(done, said)


def test_a_scenario_gives_its_lowest_level(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(
        '[[level]]\nblocks = 10\n[[level]]\nname = "L2"\nblocks = 30\nclients = 1\nlink = {alpha = "6ms"}\n'
        'policy = {name = "ra", degree = 4}\nreplacement = "arc"\ncoordinator = {name = "pfc", queue = 0.2}\n',
        encoding="utf-8",
    )
    with serving(tmp_path / "socket", "mem:1MiB", "--scenario", str(path), "--json", "-") as process:
        keys = json.loads(ended(process))["exports"][0]["level_keys"]
    assert (keys["policy"]["degree"], keys["coordinator"]["queue"]) == (4, 0.2)


CLIENTS = [name for name in ("nbdinfo", "nbdcopy", "qemu-img") if shutil.which(name) is None]


@pytest.mark.skipif(bool(CLIENTS), reason=f"SKIPPED, other people's clients: there is no {', '.join(CLIENTS)}")
def test_other_peoples_clients(image: Path, tmp_path: Path) -> None:
    path, copy = tmp_path / "socket", tmp_path / "copy"
    uri = f"nbd+unix:///?socket={path}"
    with serving(path, str(image), "--writable", "--cache", "1MiB") as process:
        info = json.loads(subprocess.check_output(["nbdinfo", "--json", uri], timeout=PATIENCE_S))
        assert info["exports"][0]["export-size"] == BYTES
        subprocess.check_call(["nbdcopy", uri, str(copy)], timeout=PATIENCE_S)
        assert copy.read_bytes() == image.read_bytes()
        other = random.Random(3).randbytes(BYTES)
        copy.write_bytes(other)
        subprocess.check_call(["nbdcopy", "--flush", str(copy), uri], timeout=PATIENCE_S)
        subprocess.check_call(["qemu-img", "compare", "-f", "raw", "-F", "raw", uri, str(copy)], timeout=PATIENCE_S)
        ended(process)
    assert image.read_bytes() == other

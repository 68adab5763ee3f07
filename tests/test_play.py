"""`headstart play` and its Python side: a trace against a live server."""

import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from headstart import HeadstartError, playing
from tests.conftest import COMMAND, Run
from tests.machines import PATIENCE_S, wait_until
from tests.nbd_server import READ, WRITE, serving
from tests.test_bad_input import one_line

SIZE = 1 << 20


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Four requests of two processes, each followed by 10 ms of think time."""
    path = tmp_path / "trace.csv"
    rows = ["1,R,0,4096", "2,W,8192,8192", "1,R,4096,512", "2,R,65536,4096"]
    path.write_text("pid,op,offset,size,think\n" + "".join(f"{row},0.01\n" for row in rows), encoding="utf-8")
    return path


def test_the_command_sends_each_request_once_and_in_order(run: Run, trace: Path) -> None:
    with serving(SIZE) as server:
        done = run("play", str(trace), "--to", server.uri, "--json", "-")
        assert (done.returncode, done.stderr) == (0, "")
    assert server.requests == [(READ, 0, 4096), (READ, 8192, 8192), (READ, 4096, 512), (READ, 65536, 4096)]
    told = json.loads(done.stdout)
    assert (told["schema"], told["requests"], told["writes"], told["errors"]) == (1, 4, 0, 0)
    assert told["bytes_read"] == 4096 + 8192 + 512 + 4096
    assert told["compute_ns"] + told["stall_ns"] + told["idle_ns"] == told["elapsed_ns"]
    assert told["compute_ns"] >= 30_000_000
    assert set(told["response_ns"]) == {"mean", "p50", "p90", "p99", "max"}


def test_the_text_is_for_people(run: Run, trace: Path) -> None:
    with serving(SIZE) as server:
        done = run("play", str(trace), "--to", server.uri, "--processes", "per-pid", "--writable")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("4 requests (1 writes, 0 failed) in ")
    for start in ("response", "of reads", "of writes", "sent late by", "process", "1 ", "2 "):
        assert any(line.lstrip().startswith(start) for line in lines), (start, done.stdout)


def test_only_writable_writes(trace: Path) -> None:
    with serving(SIZE) as server:
        played = playing.play_trace(trace, server.uri, writes="write", compute="0s")
        assert (WRITE, 8192, 8192) in server.requests
        assert any(server.content[8192:16384])
        assert not any(server.content[:8192])
        assert (played.writes, played.bytes_written) == (1, 8192)
        skipped = playing.play_trace(trace, server.uri, writes="skip", compute="0s", limit=2)
        assert (skipped.requests, skipped.writes) == (1, 0)
    with serving(SIZE, flags=0b11) as read_only, pytest.raises(HeadstartError, match="read-only"):
        playing.play_trace(trace, read_only.uri, writes="write")


def test_progress_is_told_and_can_stop_it(tmp_path: Path) -> None:
    slow = tmp_path / "slow.csv"
    slow.write_text("offset,size,think\n0,512,1000\n0,512,1000\n", encoding="utf-8")

    def stop(share: float, requests: int) -> None:
        if requests == 1:
            assert share == 0.5
            raise RuntimeError("enough")

    with serving(SIZE) as server, pytest.raises(RuntimeError, match="enough"):
        playing.play_trace(slow, server.uri, progress=stop)


def test_control_c_ends_it(tmp_path: Path) -> None:
    slow = tmp_path / "slow.csv"
    slow.write_text("offset,size,think\n0,512,1000\n0,512,1000\n", encoding="utf-8")
    with serving(SIZE) as server:
        line = [str(COMMAND), "play", str(slow), "--to", server.uri]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            wait_until(lambda: server.requests)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in errors


def test_mistakes_are_told_in_one_line(run: Run, trace: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with serving(SIZE) as server, serving(4096) as small, serving(SIZE, closes_at=2) as dying:
        for words, part in [
            ((str(trace), "--to", "disk.img"), "allowed: nbd://HOST"),
            ((str(trace), "--to", f"nbd+unix:///?socket={missing}"), "cannot connect"),
            ((missing, "--to", server.uri), "No such file"),
            # The trace is checked before the server.
            ((missing, "--to", f"nbd+unix:///?socket={missing}"), f"{missing}: No such file"),
            ((str(trace), "--to", small.uri), "beyond the export's 4KiB"),
            ((str(trace), "--to", server.uri, "--arrival", "open"), "arrival (--arrival): the trace carries no times"),
            ((str(trace), "--to", server.uri, "--speed", "0"), "speed (--speed): 0.0 is out of range"),
            ((str(trace), "--to", server.uri, "--depth", "0"), "depth (--depth): 0 is out of range"),
            ((str(trace), "--to", server.uri, "--limit", "0"), "limit (--limit): 0 is out of range"),
            ((str(trace), "--to", server.uri, "--compute", "soon"), "compute (--compute):"),
            ((str(trace), "--to", server.uri, "--writable", "--skip-writes"), "exclude each other"),
            ((str(trace), "--to", dying.uri), "after 2 requests"),
        ]:
            one_line(run("play", *words), part)
        assert not server.requests


def listens(path: Path, server: subprocess.Popen[bytes]) -> bool:
    """Whether a server accepts connections, which it does some time after its socket exists."""
    assert server.poll() is None
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(os.fspath(path)) == 0


@pytest.mark.skipif(shutil.which("qemu-nbd") is None, reason="SKIPPED: qemu-nbd is not installed")
def test_against_qemu_nbd(trace: Path, tmp_path: Path) -> None:
    image, path = tmp_path / "image", tmp_path / "socket"
    image.write_bytes(bytes(SIZE))
    line = ["qemu-nbd", "--format=raw", "--persistent", "--shared=4", "--export-name=x", f"--socket={path}", str(image)]
    with subprocess.Popen(line) as server:
        try:
            wait_until(lambda: listens(path, server))
            played = playing.play_trace(trace, f"nbd+unix:///x?socket={path}", writes="write", processes="per-pid")
        finally:
            server.terminate()
    assert (played.requests, played.errors, played.bytes_written) == (4, 0, 8192)
    assert [(each["pid"], each["requests"]) for each in played.processes] == [(1, 2), (2, 2)]
    assert any(image.read_bytes()[8192:16384])

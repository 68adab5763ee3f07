"""`headstart serve` beside other programs that use the same image, and what root may serve."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import COMMAND, Run
from tests.machines import PATIENCE_S, wait_until
from tests.test_bad_input import one_line
from tests.test_serve import Client, ended, serving

QEMU = [name for name in ("qemu-nbd", "qemu-img") if shutil.which(name) is None]
needs_qemu = pytest.mark.skipif(bool(QEMU), reason=f"SKIPPED, QEMU's locks: there is no {', '.join(QEMU)}")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: only root is refused")
IN_USE = "is in use by another program or export, which {} it; allowed: a backing of its own, or --no-lock"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(bytes(1 << 20))
    return path


def test_readers_share_an_image_and_a_writer_is_alone(run: Run, image: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    shown = str(image)
    with serving(first, shown) as one, serving(second, shown) as other:
        one_line(run("serve", image, "--writable", "--socket", tmp_path / "third"), IN_USE.format("reads"))
        ended(one)
        one_line(run("serve", image, "--writable", "--socket", tmp_path / "third"), IN_USE.format("reads"))
        ended(other)
    with serving(first, shown, "--writable") as one:
        one_line(run("serve", image, "--socket", second), IN_USE.format("writes"))
        one_line(run("serve", image, "--writable", "--socket", second), IN_USE.format("reads"))
        with serving(second, shown, "--no-lock") as other:
            assert Client(second).read(0, 8) == bytes(8)
            ended(other)
        # A kill leaves no lock behind.
        one.send_signal(signal.SIGKILL)
        one.wait()
    with serving(second, shown, "--writable") as other:
        ended(other)
    same = ("--export", f"a={image}", "--export", f"b={image}")
    one_line(run("serve", *same, "--writable", "--socket", first), IN_USE.format("reads"))


@contextmanager
def qemu_nbd(image: Path, path: Path, *words: str) -> Iterator[None]:
    process = subprocess.Popen(["qemu-nbd", "--format=raw", "--persistent", f"--socket={path}", *words, str(image)])
    try:
        wait_until(path.exists)
        yield
    finally:
        process.terminate()
        process.wait()


@needs_qemu
def test_qemu_and_a_server_exclude_each_other(run: Run, image: Path, tmp_path: Path) -> None:
    path, other = tmp_path / "socket", tmp_path / "other"

    def qemu(*words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        return "" if done.returncode == 0 else done.stderr

    write = ("qemu-io", "-f", "raw", "-c", "write 0 4k", str(image))
    read = ("qemu-img", "convert", "-f", "raw", "-O", "raw", str(image), str(tmp_path / "copy"))
    with qemu_nbd(image, other):
        one_line(run("serve", image, "--socket", path), IN_USE.format("writes"))
        one_line(run("serve", image, "--writable", "--socket", path), IN_USE.format("reads"))
    with qemu_nbd(image, other, "--read-only"):
        one_line(run("serve", image, "--writable", "--socket", path), IN_USE.format("reads"))
        with serving(path, str(image)) as process:
            ended(process)
    with serving(path, str(image)) as process:
        assert 'Failed to get "write" lock' in qemu(*write)
        assert 'Failed to get "write" lock' in qemu("qemu-nbd", "-f", "raw", "-k", str(other), str(image))
        assert qemu(*read) == ""
        ended(process)
    with serving(path, str(image), "--writable") as process:
        assert "lock" in qemu(*read)
        assert "lock" in qemu(*write)
        assert "lock" in qemu("qemu-nbd", "-r", "-f", "raw", "-k", str(other), str(image))
        ended(process)
    assert qemu(*write) == ""


def test_a_unix_socket_is_for_its_user_alone(tmp_path: Path) -> None:
    path, usual = tmp_path / "socket", os.umask(0)
    try:
        with serving(path, "mem:1MiB", "--writable") as process:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            ended(process)
    finally:
        os.umask(usual)


@needs_root
def test_root_s_writable_export_needs_tls_on_tcp(run: Run, image: Path, tmp_path: Path) -> None:
    tcp = ("serve", image, "--listen", "127.0.0.1:0")
    said = "127.0.0.1:0 can be reached by every user, who could write what root alone may; allowed: --socket PATH, "
    one_line(run(*tcp, "--writable"), said)
    for words in ((), ("--writable", "--insecure")):
        process = subprocess.Popen(
            [str(COMMAND), *map(str, tcp), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert process.stderr.readline().startswith("ready: nbd://127.0.0.1:")
        process.terminate()
        process.communicate()


def test_more_than_the_machine_s_memory_is_one_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    one_line(run("serve", "mem:1000TiB", "--socket", path), "mem:1000TiB: is more than the machine's RAM, ")
    for size in ("1000TiB", "16EiB"):
        one_line(run("serve", "mem:1MiB", "--cache", size, "--socket", path), "(--cache)")
    assert not path.exists()


def test_the_log_names_the_other_end(tmp_path: Path) -> None:
    path, log = tmp_path / "socket", tmp_path / "log"
    with serving(path, "mem:1MiB", "--log", str(log)) as process:
        Client(path).close()
        ended(process)
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    (connected,) = [each for each in events if each["event"] == "connected"]
    assert connected["detail"] == f"process {os.getpid()}, user {os.geteuid()}"


def test_credentials_are_shown_nowhere(run: Run, tmp_path: Path) -> None:
    log, json_file = tmp_path / "log", tmp_path / "json"
    for backing in (
        "https://me:hunter2@127.0.0.1:1/a",
        "https://127.0.0.1:1/a?X-Amz-Signature=hunter2",
        "s3://me:hunter2@bucket/key",
        "nbd://me:hunter2@127.0.0.1:1/",
        "ftp://me:hunter2@host/",
    ):
        for words in ((backing,), ("--export", f"a={backing}")):
            done = run("serve", *words, "--socket", tmp_path / "s", "--log", log, "--json", json_file)
            one_line(done, "allowed: ")
            assert "hunter2" not in done.stderr + done.stdout
    scenario = tmp_path / "grid.toml"
    scenario.write_text(
        'workload.trace = "https://me:hunter2@127.0.0.1:1/t.csv?sig=hunter3"\n[grid]\n"seed" = [1]\n', encoding="utf-8"
    )
    done = run("sweep", scenario, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert re.search(r"https://\*\*\*@127\.0\.0\.1:1/t\.csv\?\*\*\*", done.stderr)
    for path in [each for each in tmp_path.rglob("*") if each.is_file() and each != scenario]:
        assert b"hunter" not in path.read_bytes(), path
    assert "hunter" not in done.stderr

"""`headstart serve` with the clients of others: every byte that they copy, compare and verify.

A test is skipped where its client is not installed.
"""

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headstart import playing
from tests.machines import PATIENCE_S
from tests.test_serve import ended, serving

SIZE = 8 << 20
PAGE = 4096

Program = Callable[..., str]


@pytest.fixture
def program() -> Program:
    """Run another project's program to its end; return its output. Skips if it is not installed."""

    def run(name: str, *words: object) -> str:
        if shutil.which(name) is None:
            pytest.skip(f"SKIPPED: {name} is not installed")
        line = [name, *(str(word) for word in words)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    return run


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Random pages, every third of them a hole."""
    path, numbers = tmp_path / "image", random.Random(1)
    with path.open("wb") as file:
        for page in range(0, SIZE, 1 << 16):
            if page >> 16 & 3 != 3:
                file.seek(page)
                file.write(numbers.randbytes(1 << 16))
        file.truncate(SIZE)
    return path


@contextmanager
def exported(image: Path, *words: str) -> Iterator[str]:
    """The URI of `image` behind a small cache, with a read-ahead; the server must end without an error."""
    path = image.parent / "socket"
    with serving(path, str(image), "--cache", "1MiB", *words) as process:
        yield f"nbd+unix:///?socket={path}"
        ended(process)


def test_nbdinfo_understands_what_is_offered(program: Program, image: Path) -> None:
    with exported(image, "--writable") as uri:
        text = program("nbdinfo", uri)
        assert f"export-size: {SIZE}" in text
        for offered in ("is_read_only: false", "can_flush: true", "can_fua: true", "can_multi_conn: true"):
            assert offered in text
        assert "base:allocation" in text
        program("nbdinfo", "--map", uri)
        program("nbdinfo", "--list", uri)
    with exported(image) as uri:
        assert "is_read_only: true" in program("nbdinfo", uri)


@pytest.mark.parametrize("words", [(), ("--policy", "amp", "--coordinator", "pfc"), ("--page", "64KiB")], ids=str)
def test_nbdcopy_copies_every_byte_both_ways(program: Program, image: Path, tmp_path: Path, words: tuple[str]) -> None:
    copy, content = tmp_path / "copy", image.read_bytes()
    many = ("--connections=8", "--requests=64", "--threads=4")
    with exported(image, *words) as uri:
        program("nbdcopy", *many, uri, copy)
    assert copy.read_bytes() == content
    image.write_bytes(b"\xff" * SIZE)
    with exported(image, "--writable", *words) as uri:
        program("nbdcopy", *many, "--flush", copy, uri)
        assert image.read_bytes() == content


def test_qemu_img_compares_and_converts(program: Program, image: Path, tmp_path: Path) -> None:
    copy, content = tmp_path / "copy", image.read_bytes()
    with exported(image) as uri:
        program("qemu-img", "compare", "-f", "raw", "-F", "raw", image, uri)
        program("qemu-img", "convert", "-f", "raw", "-O", "raw", "-W", "-m", "16", uri, copy)
    assert copy.read_bytes() == content
    image.write_bytes(b"\xff" * SIZE)
    with exported(image, "--writable") as uri:
        program("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", "-W", "-m", "16", copy, uri)
        assert image.read_bytes() == content


def test_qemu_io_reads_what_it_wrote(program: Program, image: Path) -> None:
    commands = [
        "write -P 0x5a 1000 70000",
        "read -P 0x5a 1000 70000",
        "write -z 8192 4096",
        "read -P 0 8192 4096",
        "read -P 0x5a 12288 4096",
        "aio_write -P 0x17 1M 1M",
        "aio_flush",
        "read -P 0x17 1M 1M",
        "write -f -P 0x18 3M 4096",
        "discard 4M 64k",
        "flush",
    ]
    with exported(image, "--writable") as uri:
        text = program("qemu-io", "-f", "raw", *(word for each in commands for word in ("-c", each)), uri)
        assert "verification failed" not in text.lower()
        content = image.read_bytes()
    assert content[1 << 20 : 2 << 20] == b"\x17" * (1 << 20)
    assert content[3 << 20 : (3 << 20) + 4096] == b"\x18" * 4096


def test_fio_verifies_what_it_wrote(program: Program, image: Path) -> None:
    if shutil.which("fio") and "nbd" not in program("fio", "--enghelp"):
        pytest.skip("SKIPPED: fio is without the engine nbd")
    with exported(image, "--writable") as uri:
        words = ("--rw=randwrite", "--bsrange=512-64k", "--blockalign=512", "--iodepth=16", "--size=4m")
        checks = ("--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--verify_backlog=64", "--fsync=32")
        program("fio", "--name=t", "--ioengine=nbd", f"--uri={uri}", *words, *checks, "--output-format=terse")


def test_a_trace_is_played(image: Path, tmp_path: Path) -> None:
    trace, numbers = tmp_path / "trace.csv", random.Random(3)
    rows = [f"{numbers.choice('RW')},{numbers.randrange(SIZE // PAGE) * PAGE},{PAGE}" for _ in range(500)]
    trace.write_text("op,offset,size\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with exported(image, "--writable") as uri:
        played = playing.play_trace(trace, uri, writes="write", depth=8, connections=4)
    assert (played.requests, played.errors, played.connections) == (500, 0, 4)
    assert played.writes == sum(row.startswith("W") for row in rows)

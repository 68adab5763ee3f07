"""`headstart serve --spill`: a second level in a file, which the next run reuses, and which is never stale."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.machines import PATIENCE_S, wait_until
from tests.test_bad_input import one_line
from tests.test_serve import Client, ended, serving

PAGE = 4096
PAGES = 512


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(random.Random(1).randbytes(PAGES * PAGE))
    return path


def words(image: Path, spill: Path) -> list[str]:
    return [str(image), "--cache", "256KiB", "--readahead", "demand", "--spill", f"{spill}:4MiB", "--json", "-"]


def read_all(client: Client, content: bytes) -> None:
    for page in range(PAGES):
        assert client.read(page * PAGE, PAGE) == content[page * PAGE : (page + 1) * PAGE], page


def report(process: subprocess.Popen[str]) -> dict[str, Any]:
    export: dict[str, Any] = json.loads(ended(process))["exports"][0]
    return export


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)


def test_pages_come_from_the_file_and_the_next_run_finds_them(image: Path, tmp_path: Path) -> None:
    path, spill, content = tmp_path / "socket", tmp_path / "spill", image.read_bytes()
    with serving(path, *words(image, spill)) as process:
        client = Client(path)
        read_all(client, content)
        read_all(client, content)
        first = report(process)["spill"]
    assert (first["forgotten"], first["found_pages"], first["corrupt_pages"]) == (None, 0, 0)
    # 64 pages are in memory at the end; a page may not have been stored yet when it is needed again.
    assert first["stored_pages"] >= 400
    assert first["level"]["hits_ready"] >= 400
    assert spill.stat().st_mode & 0o077 == 0
    with serving(path, *words(image, spill)) as process:
        client = Client(path)
        read_all(client, content)
        killed(process)
    metrics = tmp_path / "metrics"
    with serving(path, *words(image, spill), "--openmetrics", str(metrics)) as process:
        client = Client(path)
        read_all(client, content)
        wait_until(lambda: metrics.exists() and 'spill_corrupt_pages_total{export=""} 0\n' in metrics.read_text())
        again = report(process)["spill"]
    assert again["forgotten"] is None
    assert again["found_pages"] >= 400
    assert again["level"]["hits_ready"] >= 400


def test_a_backing_that_has_changed_is_read_anew(image: Path, tmp_path: Path) -> None:
    path, spill, content = tmp_path / "socket", tmp_path / "spill", bytearray(image.read_bytes())
    with serving(path, *words(image, spill)) as process:
        read_all(Client(path), bytes(content))
        ended(process)
    content[5000:5010] = b"0123456789"
    with image.open("r+b") as file:
        file.seek(5000)
        file.write(b"0123456789")
    with serving(path, *words(image, spill)) as process:
        read_all(Client(path), bytes(content))
        spilled = report(process)["spill"]
    assert (spilled["forgotten"], spilled["found_pages"]) == ("the backing has changed, or was another one", 0)


def test_a_damaged_file_costs_reads_and_no_bytes(image: Path, tmp_path: Path) -> None:
    path, spill, content = tmp_path / "socket", tmp_path / "spill", image.read_bytes()
    with serving(path, *words(image, spill)) as process:
        read_all(Client(path), content)
        ended(process)
    size, numbers = spill.stat().st_size, random.Random(2)
    with spill.open("r+b") as file:
        for _ in range(200):
            file.seek(numbers.randrange(PAGE, size - 100))
            file.write(numbers.randbytes(100))
    with serving(path, *words(image, spill)) as process:
        read_all(Client(path), content)
        assert report(process)["spill"]["corrupt_pages"] > 50
    os.truncate(spill, size // 2)
    with serving(path, *words(image, spill)) as process:
        read_all(Client(path), content)
        assert report(process)["spill"]["forgotten"] == "it is too short"


def test_kill_9_under_writes_leaves_nothing_stale(image: Path, tmp_path: Path) -> None:
    path, spill, content = tmp_path / "socket", tmp_path / "spill", bytearray(image.read_bytes())
    numbers = random.Random(3)
    for round_ in range(4):
        with serving(path, *words(image, spill), "--writable") as process:
            client = Client(path)
            for _ in range(400):
                page = numbers.randrange(PAGES)
                if numbers.random() < 0.3:
                    data = numbers.randbytes(numbers.randrange(1, 3 * PAGE))[: (PAGES - page) * PAGE]
                    assert client.ask(1, page * PAGE, len(data), data) == (0, b"")
                    content[page * PAGE : page * PAGE + len(data)] = data
                else:
                    assert client.read(page * PAGE, PAGE) == content[page * PAGE : (page + 1) * PAGE]
            if round_ % 2:
                spilled = report(process)["spill"]
                assert spilled["stored_pages"] > 0
            else:
                killed(process)
        with serving(path, *words(image, spill), "--writable") as process:
            read_all(Client(path), bytes(content))
            spilled = report(process)["spill"]
            # Nothing is known of what clients wrote before `kill -9`, except that they did.
            assert (spilled["found_pages"] > 0) == bool(round_ % 2), spilled
        assert image.read_bytes() == content


def test_two_servers_cannot_use_one_file(image: Path, tmp_path: Path, run: Run) -> None:
    spill = tmp_path / "spill"
    with serving(tmp_path / "socket", *words(image, spill)) as process:
        done = run("serve", *words(image, spill), "--socket", str(tmp_path / "other"))
        one_line(done, "is in use by another server")
        ended(process)


def test_a_file_for_which_there_is_no_room_is_one_line_and_goes(run: Run) -> None:
    """On an in-memory file system, which refuses a file larger than itself at once: a disk would be full meanwhile."""
    memory = Path("/dev/shm")
    whole = shutil.disk_usage(memory).total if memory.is_dir() else 0
    if not 0 < whole < 1 << 39:
        pytest.skip(f"SKIPPED: no file system of limited size at {memory}")
    with tempfile.TemporaryDirectory(prefix="headstart-spill-", dir=memory) as folder:
        spill = Path(folder) / "spill"
        one_line(run("serve", "mem:1MiB", "--spill", f"{spill}:{whole + (1 << 30)}B"), "No space left on device")
        assert not spill.exists()


def test_mistakes_are_one_line(run: Run, image: Path, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    for text, said in [
        (str(spill), "has no size"),
        (f"{spill}:much", "(--spill)"),
        (f"{spill}:64KiB", "allowed: 64 to"),
        (f"{tmp_path}:4MiB", ""),
        (f"{image}:4MiB", "is no spill file"),
    ]:
        one_line(run("serve", "mem:1MiB", "--spill", text), said)
        assert not spill.exists(), text
    assert image.stat().st_size == PAGES * PAGE
    one_line(run("serve", "mem:1MiB", "--export", "b=mem:1MiB", "--spill", f"{spill}:4MiB"), "there are 2 exports")
    one_line(run("serve", "mem:1MiB", "--cache", "0B", "--spill", f"{spill}:4MiB"), "a cache of no pages")

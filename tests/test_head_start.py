"""`headstart run --trust` on an emulated drive with an arm: what is read before the command starts."""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headstart_lab.hintstudy import disks
from headstart_lab.livestudy import platform

FILES, FILE_BYTES, READ_BYTES = 120, 1 << 20, 4096
BESIDE = 31
"""Empty files beside each one: mounting the file system reads the first 512 inodes."""
INODES_BYTES = FILES * (1 + BESIDE) * 256
RUN = str(Path(sys.executable).with_name("headstart-run"))
SCRIPT = f'echo > "$1"; xargs -a "$2" head -qc{READ_BYTES}; sleep 0.1'
"""Report the start, read the beginning of each file of a list, and compute for a while."""


def read_before(disk: disks.Disk, line: list[str], started: Path) -> int:
    """Run a line with cold caches and return how many bytes the drive has read when the command starts."""
    disk.cold()
    before, found = disk.read_bytes(), []

    def watch() -> None:
        """Read the start signal, for which the command waits."""
        with started.open("rb") as said:
            found.append(disk.read_bytes() - before)
            said.read()

    watching = threading.Thread(target=watch)
    watching.start()
    subprocess.run([*platform.with_traces(), *line], check=True, stdout=subprocess.DEVNULL)
    watching.join()
    return found[0]


@pytest.mark.skipif(platform.why_not() is not None, reason=f"SKIPPED: no emulated disk here: {platform.why_not()}")
def test_a_recording_gives_the_same_head_start_from_the_store_and_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inodes come first, some hundred blocks of them with one read; then each file needs a read of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    chance = random.Random(1)
    files = tmp_path / "files"
    files.mkdir()
    for number in range(FILES):
        (files / f"{number:03}").write_bytes(chance.randbytes(FILE_BYTES))
        for other in range(BESIDE):
            (files / f"{number:03}.{other}").touch()
    started, listed = tmp_path / "started", tmp_path / "list"
    os.mkfifo(started)
    with disks.emulated("ibm-36gb-10k", files) as disk:
        names = [str(disk.root / f"{number:03}") for number in range(FILES)]
        chance.shuffle(names)
        listed.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        command = ["--", "sh", "-c", SCRIPT, "sh", str(started), str(listed)]
        assert read_before(disk, [RUN, *command], started) < READ_BYTES * FILES // 10, "it is recorded"
        (stored,) = (tmp_path / "cache").rglob("*.hints")
        hints = tmp_path / "a.hints"
        hints.write_bytes(stored.read_bytes())
        for source in ([], ["--hints", str(hints)]):
            # Until the rest takes no longer than the command computes, which is little.
            found = read_before(disk, [RUN, "--trust", *source, *command], started)
            assert found > INODES_BYTES + READ_BYTES * FILES // 4, source

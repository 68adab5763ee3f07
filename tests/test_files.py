"""Files that the command writes: whole or not at all, with their mode, and nothing left behind."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headstart
import headstart_lab
from headstart import HeadstartError, temporary
from headstart.cli import output
from headstart_lab.studies._lab import Store
from tests.conftest import ROOT
from tests.machines import PATIENCE_S

LARGE = ROOT / "examples" / "traces" / "pg_join.csv.xz"
"""A trace that is larger than 40 kB in every format."""


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "r.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    (tmp_path / "r.json.new").write_text("the user's own")
    output.write_text(link, "new")
    assert (target.read_text(), target.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o600, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "r.json", "r.json.new"]


def test_a_result_that_cannot_be_written_is_kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full, kept = tmp_path / "full", tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(kept))
    with pytest.raises(
        HeadstartError, match=r"x\.json: cannot be written: No such file.*the result is kept in "
    ) as error:
        output.write_text(full / "x.json", "precious")
    [path] = kept.iterdir()
    assert path.read_text() == "precious"
    assert str(path) in str(error.value)


def test_a_full_device_is_named() -> None:
    with pytest.raises(HeadstartError, match="/dev/full: cannot be written: No space left on device"):
        output.write_text(Path("/dev/full"), "x" * 100_000)


@pytest.mark.parametrize("there", [False, True])
def test_a_killed_process_leaves_no_part_of_a_file(tmp_path: Path, there: bool) -> None:
    target = tmp_path / "r.json"
    if there:
        target.write_text("old")
    code = (
        "import os, signal, sys, pathlib; from headstart import temporary\n"
        "with temporary.replacing(pathlib.Path(sys.argv[1])) as file:\n"
        "    os.write(file, b'a part'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == ([("r.json", "old")] if there else [])


@pytest.mark.parametrize("unnamed", [False, True])
def test_a_block_that_raises_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool) -> None:
    if not unnamed:
        # As on NFS.
        monkeypatch.setattr(temporary, "_unnamed", lambda folder: None)
    target = tmp_path / "r.json"
    for content, raised in (("one", False), ("two", False), ("three", True)):
        with contextlib.suppress(ZeroDivisionError), temporary.replacing(target) as file:
            os.write(file, content.encode())
            assert len(list(tmp_path.iterdir())) == target.exists() + (not unnamed)
            _ = 1 // (not raised)
        assert target.read_text() == ("two" if raised else content)
        assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_no_temporary_file(tmp_path: Path, number: signal.Signals) -> None:
    target = tmp_path / "z.csv"
    command = [
        sys.executable,
        "-m",
        "headstart",
        "trace",
        "generate",
        "zipf",
        str(target),
        "--set",
        "requests=500000000",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [path.name[:7] for path in tmp_path.iterdir()] == [".z.csv."]
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == (130 if number == signal.SIGINT else -number)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.csv", "x.csv.xz", "x.oracleGeneral.bin"])
def test_a_conversion_that_finds_no_room_names_the_file_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    # A limit on the size of files stands for a full disk: the write fails at the same point.
    code = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)); "
        "runpy.run_module('headstart', run_name='__main__')"
    )
    words = [sys.executable, "-c", code, "trace", "convert", str(LARGE), str(tmp_path / name)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"{tmp_path / name}: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_is_ended_leaves_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "headstart", "reproduce", "kimbrel96"]
    output_to = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, stdout=output_to, stderr=output_to)
    deadline = time.monotonic() + PATIENCE_S
    while not list(folder.iterdir()) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [path.name[:10] for path in folder.iterdir()] == ["headstart-"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == -signal.SIGTERM
    assert list(folder.iterdir()) == []


def test_open_folders_are_removed_from_outside() -> None:
    with temporary.folder() as path:
        (path / "trace.csv").write_text("1")
        temporary.remove_all()
        assert not path.exists()


def test_the_cache_of_a_study_trusts_only_the_users_own_folder(tmp_path: Path) -> None:
    own, link, shared = tmp_path / "own", tmp_path / "link", tmp_path / "shared"
    scenario = {"workload": {"generator": "zipf"}}
    for folder in (own, shared):
        folder.mkdir(mode=0o700)
    link.symlink_to(own)
    shared.chmod(0o777)
    for folder in (link, shared):
        store = Store(folder, "test")
        store.put(store.path(scenario), {"a": 1})
        assert list(folder.iterdir()) == []
    store = Store(own, "test")
    path = store.path(scenario)
    store.put(path, {"a": 1})
    assert store.get(path) == {"a": 1}
    assert store.get(Path(link / path.name)) == {"a": 1}
    victim = tmp_path / "victim.json"
    path.replace(victim)
    path.symlink_to(victim)
    assert store.get(path) is None, "a link is not followed"


def test_environment_variables_are_read_in_one_place() -> None:
    packages = (Path(str(package.__file__)).parent for package in (headstart, headstart_lab))
    files = [path for package in packages for path in package.rglob("*.py")]
    found = [path for path in files if re.search(r"os\.(environ|getenv)", path.read_text("utf-8"))]
    assert [path.name for path in found] == ["_environment.py"]
    # Only commands read it: the code below them receives the values; workers of a sweep have their own machine.
    callers = [
        path for path in files if re.search(r"_environment\.folders\(|import .*\bfolders\b", path.read_text("utf-8"))
    ]
    assert sorted(f"{path.parent.name}/{path.name}" for path in callers) == [
        "headstart_lab/reproduce.py",
        "servestudy/__main__.py",
        "sweeps/remote.py",
    ]

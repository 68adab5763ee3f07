"""How `headstart device` and `simulate` handle wrong names and files."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from headstart import HeadstartError, devices
from headstart._input import plain
from tests.conftest import COMMAND, ROOT, Run
from tests.test_bad_input import one_line

PROFILE = (ROOT / "crates" / "sim" / "device" / "profiles" / "seagate-cheetah-9lp.toml").read_text()
THREE = "R Hit 0 4 1000 500\nW Doub 100 8 3000 250\nW Trip 8 16 2000 99\n"


def run_bytes(folder: Path, *arguments: bytes | str | Path) -> subprocess.CompletedProcess[str]:
    words = [os.fsencode(word) for word in (COMMAND, *arguments)]
    done = subprocess.run(words, capture_output=True, cwd=folder, check=False, timeout=120)
    texts = (stream.decode(errors="surrogateescape") for stream in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(words, done.returncode, *texts)


UNREADABLE = b"dri\xffve"
NAMES = [
    ("show", UNREADABLE + b".toml"),
    ("plot", UNREADABLE + b".toml", "--png", "x.png"),
    ("replay", UNREADABLE + b".toml", "good.trace"),
    ("replay", "hp97560", UNREADABLE + b".trace"),
    ("import-diskspecs", UNREADABLE + b".parv"),
    ("import-diskspecs", "--name", UNREADABLE, "good.parv"),
    ("show", "hp97560", "--set", b"name=" + UNREADABLE),
]


@pytest.mark.parametrize("arguments", NAMES, ids=[str(index) for index in range(len(NAMES))])
def test_names_that_are_not_in_utf_8_are_refused_in_a_line(tmp_path: Path, arguments: tuple[bytes | str, ...]) -> None:
    for end, text in ((b".toml", PROFILE), (b".trace", THREE), (b".parv", "")):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + UNREADABLE + end)).write_text(text)
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/good" + end)).write_text(text)
    one_line(run_bytes(tmp_path, "device", *arguments), "dri\\xffve", "is not UTF-8; allowed: ")


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\x01b", "two\\nlines", "n" * 201])
def test_a_profiles_name_is_checked_before_anything_draws_it(run: Run, tmp_path: Path, name: str) -> None:
    escaped = name.replace("\x1b", "\\u001b").replace("\x01", "\\u0001")
    lines = [f'name = "{escaped}"' if line.startswith("name = ") else line for line in PROFILE.splitlines()]
    (tmp_path / "drive.toml").write_text("\n".join(lines))
    for arguments in (("show", "drive.toml"), ("plot", "drive.toml", "--png", "x.png", "--html", "x.html")):
        one_line(run("device", *arguments), "drive.toml: name: ", "allowed: a line of at most 200 characters")


def test_a_control_character_in_a_files_name_is_drawn_as_an_escape(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    (tmp_path / "a\x01b.trace").write_text(THREE)
    done = run("device", "replay", "hp97560", "a\x01b.trace", "--png", "x.png", "--html", "x.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "a\\x01b.trace" in (tmp_path / "x.html").read_text()
    assert plain("a\x01b\u20ac\udcff\n") == "a\\x01b\u20ac\\xff\\x0a"


def test_pipes_and_devices_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "/dev/zero"):
        for arguments in (("show", path), ("import-diskspecs", path), ("replay", "hp97560", path)):
            one_line(run_bytes(tmp_path, "device", *arguments), f"{path}: not a regular file; allowed: ")
        with pytest.raises(HeadstartError, match="not a regular file"):
            devices.replay("hp97560", tmp_path / path)


def test_writes_with_two_and_three_disconnects_are_replayed(tmp_path: Path) -> None:
    (tmp_path / "three.trace").write_text(THREE)
    found = devices.replay("uniform", tmp_path / "three.trace", keys={"fetch_time": "2ms"})
    assert found.measured is not None
    assert (found.requests, found.measured.writes.requests) == (3, 2)


def test_a_hundred_thousand_disks_are_a_short_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "many.toml").write_text(
        'workload = {references = ["A", "b", "C", "A"]}\ncache = {blocks = 2}\npolicy = {name = "demand"}\n'
        'device = {model = "uniform", fetch_time = "2ms", count = 100_000}\n'
    )
    done = run("simulate", "many.toml")
    assert done.returncode == 0, done.stderr
    assert "and 99,936 more disks: --json has all" in done.stdout
    assert len(done.stdout.splitlines()) < 100


@pytest.mark.parametrize("ask", [devices.device, devices.survey, devices.probe])
def test_a_value_that_no_key_takes_is_named_in_our_words(ask: Callable[..., object]) -> None:
    with pytest.raises(HeadstartError, match=r"^keys: has a value that no key takes, such as null; allowed: text, "):
        ask("hp97560", keys={"rpm": None})

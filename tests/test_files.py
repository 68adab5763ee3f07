"""Files that are not there, not files, unreadable, empty or of the wrong kind: what every command says of them.

One line that begins with the file's name, says what is wrong with it, and what is allowed; exit status 2.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CSCOPE_1, FIGURE_1, Run
from tests.test_bad_input import one_line

Make = Callable[[Path], object]


def unreadable(path: Path) -> None:
    """A file that opens and cannot be read, whoever one is; root may read whatever has a mode."""
    if sys.platform != "linux":
        path.write_text("nobody's")
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("one may read everything here: no unreadable file can be made")
    else:
        path.symlink_to("/proc/self/mem")


def content(data: bytes) -> Make:
    return lambda path: path.write_bytes(data)


KINDS: dict[str, tuple[Make | None, str]] = {
    "missing": (None, "No such file or directory"),
    "folder": (lambda path: path.mkdir(), "irectory"),
    "unreadable": (unreadable, "Input/output error" if sys.platform == "linux" else "Permission denied"),
}
"""What is the same for all commands: how it is made, and what is said of it."""

SCENARIO_ALLOWED = "allowed: a scenario"
TRACE_ALLOWED = "allowed: a trace file"
PROFILE_ALLOWED = "or the path of a profile"
DRIVE_ALLOWED = "allowed: a .parv, .diskspecs or .model file"

READERS: list[tuple[str, tuple[str | Path, ...], str]] = [
    ("bad.toml", ("simulate", "bad.toml"), SCENARIO_ALLOWED),
    ("bad.toml", ("simulate", "bad.toml", "--explain"), SCENARIO_ALLOWED),
    ("bad.csv", ("simulate", "seed.toml", "--set", "workload.trace=bad.csv"), TRACE_ALLOWED),
    ("bad.toml", ("simulate", FIGURE_1, "--set", "device={model='bad.toml'}"), PROFILE_ALLOWED),
    ("bad.csv", ("compare", "bad.csv", "--policies", "demand"), TRACE_ALLOWED),
    ("bad.toml", ("compare", "--generator", "zipf", "--policies", "demand", "--device", "bad.toml"), PROFILE_ALLOWED),
    ("bad.csv", ("trace", "info", "bad.csv"), TRACE_ALLOWED),
    ("bad.csv", ("trace", "info", "bad.csv", "--format", "csv"), TRACE_ALLOWED),
    ("bad.csv", ("trace", "convert", "bad.csv", "out.csv"), TRACE_ALLOWED),
    ("bad.toml", ("device", "show", "bad.toml"), PROFILE_ALLOWED),
    ("bad.toml", ("device", "plot", "bad.toml", "--html", "out.html"), PROFILE_ALLOWED),
    ("bad.toml", ("device", "replay", "bad.toml", CSCOPE_1), PROFILE_ALLOWED),
    ("bad.csv", ("device", "replay", "hp97560", "bad.csv"), TRACE_ALLOWED),
    ("bad.parv", ("device", "import-diskspecs", "bad.parv"), DRIVE_ALLOWED),
]
"""The file at fault, the command that reads it, and what it would have taken."""


def words_of(case: tuple[str, tuple[str | Path, ...], str]) -> str:
    return " ".join(str(word) if isinstance(word, str) else word.name for word in case[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", READERS, ids=words_of)
def test_files_that_cannot_be_read(
    run: Run, tmp_path: Path, case: tuple[str, tuple[str | Path, ...], str], kind: str
) -> None:
    name, arguments, allowed = case
    make, says = KINDS[kind]
    if name.endswith(".parv") and kind == "folder":
        says = "not a regular file"
    if make is not None:
        make(tmp_path / name)
    (tmp_path / "seed.toml").write_text("seed = 1\n")
    done = run(*arguments)
    one_line(done, says, allowed)
    assert done.stderr.startswith(f"headstart: {name}: ")
    assert "os error" not in done.stderr
    assert not list(tmp_path.glob("out.*"))


CONTENTS: dict[str, bytes] = {"empty": b"", "text": b"hello world\nthis is not\n", "binary": b"\xff\xfe\x00\x01"}
SAID: dict[str, dict[str, tuple[str, ...]]] = {
    "bad.toml": {
        "empty": ("allowed: ",),
        "text": ("bad.toml, line 1: ", "TOML"),
        "binary": ("UTF-8", "TOML"),
    },
    "bad.csv": {
        "empty": ("no records", "allowed: one or more"),
        "text": ("bad.csv, line 1: ", "the header", "allowed: one of offset"),
        "binary": ("bad.csv, line 1: ", "not UTF-8", "allowed: one of offset"),
    },
    "bad.parv": {
        "empty": ("holds no disk", "allowed: a file with"),
        "text": ("bad.parv:1: ", "allowed: TYPE NAME"),
        "binary": ("bad.parv:1: ", "allowed: TYPE NAME"),
    },
}


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("case", READERS, ids=words_of)
def test_files_of_the_wrong_kind(
    run: Run, tmp_path: Path, case: tuple[str, tuple[str | Path, ...], str], kind: str
) -> None:
    name, arguments, _ = case
    (tmp_path / name).write_bytes(CONTENTS[kind])
    (tmp_path / "seed.toml").write_text("seed = 1\n")
    words = SAID[name][kind]
    if "--format" in arguments and kind == "empty":
        words = ("there is no header", "allowed: one of offset")
    done = run(*arguments)
    one_line(done, *words)
    assert done.stderr.startswith(f"headstart: {name}")
    assert not list(tmp_path.glob("out.*"))


WRITERS: list[tuple[str | Path, ...]] = [
    ("simulate", FIGURE_1, "--json"),
    ("compare", CSCOPE_1, "--json"),
    ("compare", CSCOPE_1, "--html"),
    ("list", "policies", "--json"),
    ("trace", "info", CSCOPE_1, "--json"),
    ("trace", "convert", CSCOPE_1),
    ("trace", "generate", "zipf"),
    ("device", "show", "hp97560", "--json"),
    ("device", "plot", "hp97560", "--png"),
    ("device", "plot", "hp97560", "--html"),
    ("device", "replay", "hp97560", CSCOPE_1, "--json"),
    ("device", "replay", "hp97560", CSCOPE_1, "--png"),
    ("device", "replay", "hp97560", CSCOPE_1, "--html"),
    ("device", "import-diskspecs", "x.parv", "--out"),
    ("reproduce", "kimbrel96", "figure1", "--json"),
    ("reproduce", "kimbrel96", "figure1", "--html"),
]
"""Commands up to the name of the file that they write."""


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: " ".join(map(str, words))[-40:])
def test_files_that_cannot_be_written(run: Run, tmp_path: Path, words: tuple[str | Path, ...]) -> None:
    allowed = "allowed: a file in a folder that can be written"
    missing, folder = "no/such/out", str(tmp_path)
    one_line(run(*words, missing), f"headstart: {missing}: cannot be written: there is no folder no/such; {allowed}")
    one_line(run(*words, folder), f"headstart: {folder}: cannot be written: is a folder; {allowed}")


def test_a_trace_goes_to_a_regular_file_only(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for target in ("pipe", "-"):
        done = run("trace", "generate", "zipf", target)
        one_line(done, f"headstart: {target}: cannot be written: is no regular file; allowed: a file in a folder")
    assert (tmp_path / "pipe").is_fifo()


def test_json_may_go_to_a_device(run: Run, tmp_path: Path) -> None:
    null = tmp_path / "null"
    null.symlink_to(os.devnull)
    done = run("simulate", FIGURE_1, "--json", null)
    assert (done.returncode, done.stderr) == (0, "")
    assert null.is_char_device(), "it is written to, not put aside"

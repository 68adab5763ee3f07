"""Files given to the wrong command: the error says what they are and which command takes them."""

import lzma
from pathlib import Path

import pytest

from headstart.cli import mistaken
from tests.conftest import CSCOPE_1, FIGURE_1, ROOT, Run

GRID = ROOT / "examples" / "sweep.toml"
PROFILE = ROOT / "crates" / "sim" / "device" / "profiles" / "hp97560.toml"
STRACE = ROOT / "examples" / "traces" / "app.strace"
OFFSETS = ROOT / "examples" / "traces" / "offsets.txt"

WRONG = {
    GRID: ("grid", "headstart sweep", ("simulate", "show", "compare", "curve", "advise", "trace info", "device show")),
    FIGURE_1: ("scenario", "headstart simulate", ("sweep", "advise", "trace info", "forecast", "device show")),
    PROFILE: ("profile", "headstart device show", ("simulate", "compare", "sweep", "trace info", "hints show")),
    STRACE: ("trace", "headstart advise", ("simulate", "sweep", "forecast", "device show", "model fs")),
    CSCOPE_1: ("trace", "headstart advise", ("simulate", "hints check", "model open", "model trace")),
    OFFSETS: ("trace", "headstart advise", ("simulate",)),
}


@pytest.mark.parametrize(
    ("words", "path"), [(words, path) for path, (_, _, wrong) in WRONG.items() for words in wrong], ids=str
)
def test_the_right_command_is_named(run: Run, words: str, path: Path) -> None:
    kind, right, _ = WRONG[path]
    done = run(*words.split(), path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path}: is a {kind}, for `{right} {path}" in done.stderr
    assert "; allowed: a " in done.stderr and done.stderr.count("\n") == 1


def test_options_that_take_a_profile(run: Run) -> None:
    done = run("compare", CSCOPE_1, "--policies", "demand", "--device", FIGURE_1)
    assert f"headstart: {FIGURE_1}: is a scenario, for" in done.stderr and done.stderr.endswith("allowed: a profile\n")


def test_other_mistakes_stay_as_they_are(run: Run, tmp_path: Path) -> None:
    """The right kind of file with a mistake in it, unrecognised files, and an option's own file before the trace."""
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[workload]\ntrase = 'a.csv'\n")
    assert "workload.trase: unknown key" in run("simulate", wrong).stderr
    broken = tmp_path / "broken.toml"
    broken.write_text("[workload\n")
    assert "line 1" in run("simulate", broken).stderr
    other = tmp_path / "notes.txt"
    other.write_bytes(lzma.compress(b"no trace at all\n"))
    assert "is a" not in run("simulate", other).stderr
    done = run("compare", "--device", PROFILE, CSCOPE_1, "--policies", "nothing")
    assert done.returncode == 2 and "nothing" in done.stderr


def test_every_command_of_the_table_is_one(run: Run) -> None:
    for words in mistaken.TAKES:
        assert run(*words.split(), "--help").returncode == 0, words

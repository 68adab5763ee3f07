"""Random scenario files through the command: text output, and errors, in one process; never a traceback."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from headstart.cli.app import DONE, MISTAKE, run
from tests.run_rust import programs

COUNT = 1_000
"""Scenarios: about 10 seconds on one core."""

ACCEPTED_MIN = 0.4

DRAWS = "each_is_refused_in_a_line_or_adds_up"
PROGRAM = ("simulator", "tests/all/main.rs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenarios and traces as the library's random test draws them."""
    if shutil.which("cargo") is None:
        pytest.skip("the scenarios are drawn by a test program that cargo builds")
    folder = tmp_path_factory.mktemp("random")
    drawn = {"HEADSTART_RANDOM": str(COUNT), "HEADSTART_RANDOM_SEED": "0", "HEADSTART_RANDOM_WRITE": str(folder)}
    # Built like `make test-rust`: with the features of this crate alone, cargo would rebuild everything.
    [program] = [each for each in programs() if (each.folder.name, each.source) == PROGRAM]
    line = [*program.command, DRAWS]
    subprocess.run(line, env={**os.environ, **drawn}, cwd=program.folder, check=True, capture_output=True)
    return folder


def test_each_prints_a_result_or_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = 0
    scenarios = sorted(folder.glob("*.toml"))
    assert len(scenarios) == COUNT
    for scenario in scenarios:
        status = run(["simulate", str(scenario)])
        printed = capsys.readouterr()
        assert status in (DONE, MISTAKE), (printed.err, scenario.read_text())
        if status == DONE:
            shown += 1
            assert "elapsed" in printed.out, scenario.read_text()
        else:
            assert len(printed.err.splitlines()) == 1, (printed.err, scenario.read_text())
    assert shown > ACCEPTED_MIN * COUNT, f"only {shown} of {COUNT} were accepted"

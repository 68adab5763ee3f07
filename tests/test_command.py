"""The command as such: help, version, pipes, signals, progress."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import headstart
from headstart.cli import progress
from tests.conftest import COMMAND, FIGURE_1, Run

COMMANDS = [
    ("simulate",),
    ("compare",),
    ("emulate",),
    ("list",),
    ("play",),
    ("reproduce",),
    ("serve",),
    ("device", "show"),
    ("device", "plot"),
    ("device", "replay"),
    ("device", "import-diskspecs"),
    ("model", "competitive"),
    ("profile",),
    ("tune",),
    ("trace", "info"),
    ("trace", "convert"),
    ("trace", "generate"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Example: headstart {' '.join(words)}" in " ".join(done.stdout.split())


def test_without_arguments_help_is_printed(run: Run) -> None:
    for words in ((), ("trace",), ("device",), ("model",)):
        done = run(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert "Usage:" in done.stdout


def test_version_is_one_and_the_same(run: Run) -> None:
    done = run("--version")
    assert done.stdout == f"headstart {headstart.__version__}\n"
    assert headstart.simulate(FIGURE_1).version == headstart.__version__


def test_a_closed_pipe_is_quiet() -> None:
    words = [str(COMMAND), "simulate", str(FIGURE_1), "--json", "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.wait()
    assert (process.returncode, errors) == (141, b"")


def test_a_reader_that_leaves_costs_no_file(tmp_path: Path) -> None:
    """As in `headstart compare ... | head -1`."""
    trace = tmp_path / "trace.csv"
    trace.write_text("offset,size\n" + "".join(f"{at * 8192},8192\n" for at in range(40)))
    # More than the buffers of a pipe and of Python hold.
    policies = ",".join(f"aggressive:batch_size={size}" for size in range(1, 400))
    words = [str(COMMAND), "compare", str(trace), "--policies", policies, "--json", str(tmp_path / "out.json")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.wait()
    assert (process.returncode, errors) == (141, b"")
    assert len(json.loads((tmp_path / "out.json").read_text())["rows"]) == 399


def test_help_groups_the_commands(run: Run) -> None:
    panels = re.findall(r"╭─ (.*?) ─+╮(.*?)╰", run("--help").stdout, re.DOTALL)
    groups = {title: re.findall(r"^│ ([a-z]+) ", text, re.MULTILINE) for title, text in panels}
    assert list(groups) == ["Options", "Simulate", "Your machine", "Reference"]
    assert {"compare", "advise", "trace"} <= set(groups["Simulate"])
    assert {"record", "run", "tune", "serve"} <= set(groups["Your machine"])
    assert {"list", "schema"} <= set(groups["Reference"])


def test_ctrl_c_is_quiet_and_at_once(tmp_path: Path) -> None:
    # This run would last for hours; the command is at work once it has computed for longer than it takes to start.
    scenario = tmp_path / "long.toml"
    scenario.write_text(
        'device = {model = "uniform", fetch_time = "1us"}\n'
        'workload = {generator = "loop", requests = 2_000_000_000, blocks = 5000}\n'
    )
    words = [str(COMMAND), "simulate", str(scenario), "--json", str(tmp_path / "out.json")]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # If the tests run in the background, they ignore the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while computed_s(process.pid) < 3 and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate()
        finally:
            process.kill()
    assert (process.returncode, out, errors) == (130, b"", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["long.toml"]


def computed_s(pid: int) -> float:
    """Return the processor time that a process has spent in user mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


class Terminal(io.StringIO):
    """A stderr that claims to be a terminal, and reports when something is drawn on it."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "counting" in text:
            self.drawn.set()
        return super().write(text)


def test_ctrl_c_lets_the_work_tidy_up() -> None:
    tidied = threading.Event()

    def work(tell: progress.Tell) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                tell(0.5)
                time.sleep(0.01)
        finally:
            tidied.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            progress.watched("work", work, tidy_s=60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert tidied.is_set()


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    def work(tell: progress.Tell) -> int:
        tell(0.5, "counting")
        assert terminal.drawn.wait(timeout=60), "no bar appeared"
        return 7

    assert progress.watched("starting", work) == 7
    quiet = io.StringIO()
    monkeypatch.setattr("sys.stderr", quiet)
    assert progress.watched("starting", lambda _: 8) == 8
    assert quiet.getvalue() == ""


def test_errors_of_the_work_arrive_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(tell: progress.Tell) -> int:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        progress.watched("starting", work)
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr("sys.stderr", Terminal())
    with pytest.raises(TimeoutError, match="of its own"):
        progress.watched("starting", work)


def test_python_dash_m_is_the_command(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "headstart", "list", "policies", "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout) == headstart.catalog()["policies"]

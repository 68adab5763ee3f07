"""`headstart run`: the command's status, streams and signals, its output, and what it leaves behind."""

import ctypes
import json
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from headstart import HeadstartError
from headstart._core import run_options
from headstart.cli import app
from headstart.live import hints as hinting
from tests.machines import PATIENCE_S, wait_until

INSTANCES = Path("/sys/kernel/tracing/instances")
PAGE = 4096
PAGES = 64


def number(value: int) -> bytes:
    """Return a number of variable length (docs/hints-format.md)."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def folded(value: int) -> bytes:
    """Return a signed number."""
    return number(value * 2 if value >= 0 else -value * 2 - 1)


def text(value: str) -> bytes:
    """Return a text."""
    return number(len(value.encode())) + value.encode()


def frame(content: bytes) -> bytes:
    """Return a zstd frame of one block that is stored as it is (RFC 8878)."""
    assert len(content) < 1 << 17
    block = (len(content) << 3 | 1).to_bytes(3, "little")
    return struct.pack("<IB", 0xFD2FB528, 0xE0) + len(content).to_bytes(8, "little") + block + content


def recording(path: Path, file: Path, pages: int = PAGES) -> Path:
    """Write a recording in which one process reads the first pages of a file."""
    found = file.stat()
    major, minor = os.major(found.st_dev), os.minor(found.st_dev)
    process = number(1) + text("cat")
    row = b"".join(number(each) for each in (0, major, minor, found.st_ino, found.st_size))
    row += folded(found.st_mtime_ns) + text(str(file))
    read = number(0) + number(5) + number(7) + number(0) + folded(0) + folded(0) + number(pages - 1)
    about = {"command": ["cat"], "folder": "/", "recorded_at_s": 1, "elapsed_ns": 10**9, "exit_status": 0}
    about |= {"kernel": "6.18", "page_bytes": PAGE, "cold": True, "lost_events": 0, "recordings": 1}
    about |= {"processes": 1, "files": 1, "reads": 1}
    path.write_bytes(b"headstart-hints 1 " + json.dumps(about).encode() + b"\n" + frame(process + row + read))
    return path


@pytest.fixture
def hints(tmp_path: Path) -> Path:
    """Return a recording of a file that is not in the page cache."""
    file = tmp_path / "data"
    file.write_bytes(os.urandom(PAGES * PAGE))
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return recording(tmp_path / "a.hints", file)


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run `headstart run`."""
    words = [sys.executable, "-m", "headstart", "run", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_streams_environment_and_status_are_the_commands(hints: Path) -> None:
    script = 'cat; echo "$WORD" >&2; exit 7'
    done = run("--hints", str(hints), "--", "sh", "-c", script, input="in", env={**os.environ, "WORD": "out"})
    assert (done.returncode, done.stdout, done.stderr) == (7, "in", "out\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_that_ends_the_command_ends_this(hints: Path, number: signal.Signals) -> None:
    assert run("--hints", str(hints), "--", "sh", "-c", f"kill -{number.value} $$").returncode == -number


def test_options_behind_the_command_are_the_commands(hints: Path) -> None:
    done = run("--hints", str(hints), "echo", "--policy", "x", "-v")
    assert (done.returncode, done.stdout, done.stderr) == (0, "--policy x -v\n", "")


def cached_pages(path: Path) -> int:
    """Return how many pages of a file are in the page cache."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = bytearray(-(-len(mapped) // PAGE))
        place = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        vector = (ctypes.c_char * len(pages)).from_buffer(pages)
        if ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(place), ctypes.c_size_t(len(mapped)), vector) != 0:
            raise OSError(ctypes.get_errno(), "mincore")
    return sum(page & 1 for page in pages)


def test_the_report(hints: Path, tmp_path: Path) -> None:
    metrics, over = tmp_path / "metrics", tmp_path / "over"
    options = ("-v", "--trust", "--report", "-", "--openmetrics", str(metrics))
    # Half a second, and then until everything has been prefetched.
    script = f"sleep 0.5; while [ ! -e '{over}' ]; do sleep 0.05; done"
    words = [sys.executable, "-m", "headstart", "run", "--hints", str(hints), *options, "--", "sh", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: cached_pages(tmp_path / "data") == PAGES)
        finally:
            over.touch()
        out, errors = process.communicate(timeout=PATIENCE_S)
    report = json.loads(out)
    assert {"elapsed_ns", "prefetched_bytes", "used_bytes", "late_bytes", "wasted_bytes", "stopped"} <= report.keys()
    assert report["prefetched_bytes"] == report["used_bytes"] + report["wasted_bytes"]
    assert report["prefetched_bytes"] + report["cached_bytes"] == report["hinted_bytes"] == PAGES * PAGE
    assert report["elapsed_ns"] >= 500_000_000
    assert re.match(r"headstart: \d+\.\d+ s, just-in-time: .* MB prefetched, ", errors), errors
    assert f'headstart_run_hinted_bytes{{policy="just-in-time"}} {PAGES * PAGE}\n' in metrics.read_text()


def test_what_cannot_be_run_has_the_status_of_a_shell(hints: Path, tmp_path: Path) -> None:
    missing = run("--hints", str(hints), "--", "/no/such/program")
    assert (missing.returncode, missing.stderr.count("\n")) == (127, 1)
    assert "No such file or directory" in missing.stderr
    assert run("--hints", str(hints), "--", str(tmp_path)).returncode == 126


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "lru"], 'unknown hinted policy "lru"'),
        (["--policy", "optimum"], "optimum plans for one process"),
        (["--set", "batch_size=0"], "batch_size"),
        (["--budget", "3"], "budget"),
        (["--device", "nothing"], "nothing"),
        (["--report", "/no/folder/report"], "/no/folder"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(hints: Path, tmp_path: Path, options: list[str], said: str) -> None:
    witness = tmp_path / "ran"
    done = run("--hints", str(hints), *options, "--", "touch", str(witness))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr and not witness.exists()


def test_recordings_that_are_cut_short_or_foreign_are_refused(hints: Path, tmp_path: Path) -> None:
    content = hints.read_bytes()
    for length in (0, 5, 30, len(content) - 1):
        hints.write_bytes(content[:length])
        done = run("--hints", str(hints), "--", "true")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert str(hints) in done.stderr
    with pytest.raises(HeadstartError, match="no-such"):
        hinting.run(["true"], hints=tmp_path / "no-such.hints")


def test_a_command_outlives_this_and_the_next_start_cleans_up(hints: Path, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    # A command that is left alone replaces this one.
    words = [sys.executable, "-m", "headstart", "run", "--trust", "--hints", str(hints), "--", "sh", "-c"]
    begun = tmp_path / "begun"
    with subprocess.Popen([*words, f"touch '{begun}'; sleep 1; touch '{witness}'"]) as process:
        wait_until(begun.exists)
        process.kill()
    left = list(INSTANCES.glob(f"headstart-{process.pid}-*"))
    wait_until(witness.exists)
    assert run("--hints", str(hints), "--", "true").returncode == 0
    if not left:
        pytest.skip("SKIPPED: nothing is traced here: no tracefs, or not root")
    # The kernel removes it later, without anything waiting for it.
    wait_until(lambda: not any(each.exists() for each in left))


IN_PYTHON = "import sys; from headstart._core import run_command; sys.exit(run_command(sys.argv[1:]))"
"""The equivalent of `headstart run` if `headstart-run` is not installed."""


def test_without_the_program_the_module_does_the_same(hints: Path, tmp_path: Path) -> None:
    def run_in_python(*arguments: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", IN_PYTHON, *arguments]
        return subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)

    done = run_in_python("--hints", str(hints), "--report", "-", "-v", "--", "sh", "-c", "exit 7")
    assert (done.returncode, json.loads(done.stdout)["hinted_bytes"]) == (7, PAGES * PAGE)
    assert re.match(r"headstart: \d+\.\d+ s, ", done.stderr), done.stderr
    assert run_in_python("--hints", str(hints), "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
    assert run_in_python("--hints", str(hints), "/no/such/program").returncode == 127
    mistakes = [["--foo", "x"], ["--hints", str(hints)], ["--forget", "--hints", str(hints), "true"], []]
    for words in [*mistakes, ["--report", str(hints), "--hints", str(hints), "true"], ["--set", "x", "true"]]:
        done = run_in_python(*words)
        assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), done.stderr
        assert (done.stderr, 2) == (run(*words).stderr, run(*words).returncode)


def test_it_starts_without_the_libraries_of_the_other_commands() -> None:
    names = "{'typer', 'rich', 'json', 'pathlib', 'typing', 're', 'functools', 'importlib', 'headstart._core'}"
    program = "import sys; before = set(sys.modules); import headstart.cli; "
    program += f"print(*{names} & set(sys.modules) - before)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "\n"


def test_help_and_mistakes_go_by_the_table_of_the_core(capfd: pytest.CaptureFixture[str]) -> None:
    assert app.run(["run", "--help"]) == 0
    shown = capfd.readouterr().out
    table = json.loads(run_options())
    assert all(option["name"] in shown for option in table["options"]) and len(table["options"]) >= 10
    assert app.run(["run", "--set", "a=1", "--set=b=2", "--trust", "-v", "--policy", "lru", "--", "true"]) == 2
    assert 'unknown hinted policy "lru"' in capfd.readouterr().err


def test_the_api_says_what_the_command_says(hints: Path) -> None:
    outcome = hinting.run(["sh", "-c", "exit 7"], hints=hints)
    assert (outcome.code, outcome.signal, outcome.report.policy) == (7, None, hinting.POLICY)
    assert f"{hinting.POLICY}: " in outcome.line and "headstart_run_used_bytes" in outcome.openmetrics


def test_names_that_are_no_utf_8_are_the_commands(hints: Path) -> None:
    words: list[str | bytes] = [sys.executable, "-m", "headstart", "run", "--hints", str(hints), "--"]
    words += ["printf", "%s", b"\xff\xfe"]
    assert subprocess.check_output(words) == b"\xff\xfe"

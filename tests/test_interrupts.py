"""Ctrl-C at a random moment of long work, of the command and of Python: quiet, at once, nothing half-written."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headstart
from tests.conftest import COMMAND

REQUESTS = 4_000_000
ATTEMPTS = 12
"""Attempts until the signal comes before the work is done."""

COMMANDS = {
    "simulate": "simulate one.toml --json out.json",
    "simulate-hinted": "simulate one.toml --set policy=forestall --json out.json",
    "compare": "compare one.toml --policies demand,aggressive,forestall --disks 1,2 --json out.json",
    "sweep": "sweep grid.toml --out rows",
    "curve": "curve one.toml --policies lru,arc,linux --points 4 --device nvme --json out.json",
    "advise": "advise T --cache 64MiB --device nvme --seconds 600 --json out.json",
    "info": "trace info T --json out.json",
    "filter": "trace filter T --cache 8MiB -o out.csv",
    "convert": "trace convert T out.csv.zst",
    "generate": "trace generate zipf out.csv.xz --set requests=50000000",
}
CALLS = {
    "simulate": "headstart.simulate('one.toml')",
    "compare": "headstart.compare('one.toml', policies=['demand', 'aggressive', 'forestall'])",
    "curve": "headstart.curve('one.toml', policies=['lru', 'arc'])",
    "advise": "headstart.advise(T, cache='64MiB', device='nvme', seconds=600)",
    "lower_bound": "headstart.lower_bound('one.toml')",
    "trace_info": "headstart.trace_info(T)",
    "trace_filter": "headstart.trace_filter(T, 'out.csv', cache='8MiB')",
    "trace_convert": "headstart.trace_convert(T, 'out.csv', to='csv')",
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("traces") / "zipf.bin"
    keys = {"requests": REQUESTS, "blocks": 100_000}
    headstart.trace_generate("zipf", path, to="oracleGeneral", keys=keys)
    yield path
    path.unlink()


@pytest.fixture
def folder(tmp_path: Path, trace: Path) -> Path:
    text = f'workload = {{trace = "{trace}", addresses = "compact-chunks"}}\ncache = {{blocks = 20_000}}\n'
    (tmp_path / "one.toml").write_text(text, encoding="utf-8")
    (tmp_path / "grid.toml").write_text(text + '[grid]\n"seed" = [1, 2, 3, 4]\n', encoding="utf-8")
    return tmp_path


def has_open(pid: int, path: Path) -> bool:
    """Whether a process or a child of it reads a file."""
    children = [each for task in Path(f"/proc/{pid}/task").glob("*/children") for each in task.read_text().split()]
    for each in (str(pid), *children):
        try:
            if any(found.samefile(path) for found in Path(f"/proc/{each}/fd").iterdir() if found.exists()):
                return True
        except OSError:
            continue
    return False


def check_whole(target: Path, words: list[str], inputs: set[str]) -> None:
    """Check an output that was finished when the signal came: it equals that of an uninterrupted run."""
    if target.suffix == ".json":
        assert json.loads(target.read_text())
        return
    again = target.parent / "again"
    again.mkdir()
    for each in inputs:
        shutil.copy(target.parent / each, again)
    subprocess.run(words, cwd=again, check=True, capture_output=True)
    assert target.read_bytes() == (again / target.name).read_bytes(), f"{target.name} is not whole"


def interrupted(words: list[str], folder: Path, trace: Path | None, moment: random.Random) -> None:
    """Send SIGINT at a random moment of the work, and check what is left; again if the work was already done."""
    inputs = {"one.toml", "grid.toml"}
    longest_s = 1.0
    for _ in range(ATTEMPTS):
        before = {each.name for each in folder.iterdir()}
        with subprocess.Popen(
            words,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            while process.poll() is None and not (trace is not None and has_open(process.pid, trace)):
                if trace is None and any(each.name not in before for each in folder.iterdir()):
                    break
                time.sleep(0.01)
            time.sleep(moment.uniform(0, longest_s))
            process.send_signal(signal.SIGINT)
            sent = time.monotonic()
            out, errors = process.communicate()
            took_s = time.monotonic() - sent
        # After its last output Python leaves signals to the system.
        if process.returncode != 0 and not out:
            break
        # Files of a finished run must not affect the next one.
        for each in (each for each in folder.iterdir() if each.name not in inputs):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        longest_s /= 2
    what = " ".join(words[1:]).replace("\n", "; ")
    print(f"{what}: ended {took_s * 1e3:.0f} ms after the signal")
    # `advise` may have given its first answer, from the start of the trace.
    errors = re.sub(rb"\Aso far, from the first [\d,]+ of [\d,]+ requests:\n(?:  .+\n)+", b"", errors)
    assert (process.returncode, out, errors) == (130, b"", b"")
    # The folder of a sweep, which resumes where it was, has no results yet.
    left = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()} - inputs
    # A file that exists when the signal comes between its last byte and the command's last output is complete.
    targets = {each for each in left if each in " ".join(words)}
    assert all(each.startswith("rows/") for each in left - targets), left
    for target in targets:
        check_whole(folder / target, words, inputs)
    assert "rows/results.parquet" not in left


def seeded(name: str) -> random.Random:
    # Like the inputs of the Rust tests, the moments are the same each time if a seed is set, as in CI.
    given = os.environ.get("HEADSTART_INTERRUPT_SEED") or os.environ.get("PROPTEST_RNG_SEED")
    seed = int(given or time.time_ns() % 1_000_000)
    print(f"HEADSTART_INTERRUPT_SEED={seed}")
    return random.Random(f"{seed} {name}")


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc for the moment at which the work begins")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_at_once(name: str, folder: Path, trace: Path) -> None:
    words = [str(COMMAND), *(str(trace) if each == "T" else each for each in COMMANDS[name].split())]
    interrupted(words, folder, None if name == "generate" else trace, seeded(name))


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc for the moment at which the work begins")
@pytest.mark.parametrize("name", CALLS)
def test_python_ends_at_once(name: str, folder: Path, trace: Path) -> None:
    code = f"import sys, headstart\nT = {str(trace)!r}\n"
    code += f"try:\n    {CALLS[name]}\n    print('done')\nexcept KeyboardInterrupt:\n    sys.exit(130)\n"
    interrupted([sys.executable, "-c", code], folder, trace, seeded(name))

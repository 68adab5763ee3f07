"""Every system call on a sweep's folder fails in turn, once and for good, and the sweep is killed at each.

`crates/live/host/examples/fail_calls.rs` does that to a fork of this process, which has imported everything.
"""

import ctypes
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headstart import sweeps
from headstart._core import HeadstartError
from headstart.simulation import Traces
from headstart.sweeps import rows
from headstart.sweeps.folder import Folder, Part
from headstart.sweeps.grid import Case
from headstart.sweeps.tally import Tally
from tests.conftest import ROOT

pytest.importorskip("pyarrow.parquet", reason="it writes Parquet: pip install '.[sweep]'")

SCENARIO: dict[str, Any] = {
    "workload": {"generator": "loop", "blocks": 20, "requests": 40},
    "device": {"model": "uniform", "fetch_time": "1us"},
    "grid": {"cache.blocks": [4, 8]},
}
OTHER = SCENARIO | {"grid": {"cache.blocks": [2, 4]}}
PR_SET_PTRACER = 0x59616D61
SECONDS = 60
"""Time after which a hanging process of the test is ended."""
PROGRAM = ROOT / "target" / "debug" / "examples" / "fail_calls"
STEP = 1 if os.environ.get("HEADSTART_EVERY_CALL") else 23
"""Only every STEP-th call fails, since each costs two sweeps; with the variable set, each one, which takes minutes."""


class Tracer:
    """The program that makes calls fail."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ways = int(self.line())

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()


@pytest.fixture(scope="module")
def tracer() -> Iterator[Tracer]:
    if not PROGRAM.exists() or os.uname().machine != "x86_64":
        pytest.skip(f"SKIPPED: no {PROGRAM}, which makes calls fail: make test-rust builds it, for x86_64")
    tracer = Tracer()
    yield tracer
    tracer.process.kill()
    tracer.process.wait()


def said_by(work: Callable[[], str]) -> str:
    try:
        return work()
    except HeadstartError as error:
        return str(error)


def attempt(tracer: Tracer, folder: Path, number: int, way: int, work: Callable[[], str]) -> tuple[str, str | None]:
    """Do the work in a process in which call `number` fails; return the call, and the outcome of the work."""
    (read, write), (go, start) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        # Needed where only parents may trace.
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
        status = 1
        try:
            os.read(go, 1)
            os.write(write, said_by(work).encode())
            status = 0
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(status)
    os.close(write)
    try:
        tracer.say(f"{child} {number} {way} {folder}")
        if (first := tracer.line()) != "ready":
            pytest.skip(f"SKIPPED: processes cannot be traced here: {first}")
        os.write(start, b"x")
        call = tracer.line()
    finally:
        os.write(start, b"x")
        _, status = os.waitpid(child, 0)
        with os.fdopen(read, "rb") as pipe:
            said = pipe.read().decode()
        for descriptor in (go, start):
            os.close(descriptor)
    assert os.WIFSIGNALED(status) == call.startswith("Kill"), (call, said, status)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, (call, said)
    return call, None if os.WIFSIGNALED(status) else said


def in_this_process(
    folder: Folder, _lock: int, cases: Iterable[Case], _located: Mapping[str, str], *, tally: Tally, **_: object
) -> None:
    """Does the work of the workers (`headstart.sweeps.pool`), whose calls are not traced."""
    with folder.named():
        part = Part(folder.new_part())
        for case in cases:
            part.append(case.index, rows.run(folder.grid.base, case.overrides, trace=None, local=None, traces=Traces()))
            tally.finished(failed=False)
        part.close()


def sweep(out: Path, scenario: Mapping[str, Any] = SCENARIO) -> str:
    sweeps.run(sweeps.read(scenario), out)
    return "done"


def interrupt(out: Path, scenario: Mapping[str, Any] = SCENARIO) -> None:
    """Leave behind what a sweep leaves that is killed in the middle."""
    grid = sweeps.read(scenario)
    folder = Folder(out, grid)
    with folder.locked() as lock:
        in_this_process(folder, lock, list(grid.cases())[:1], {}, tally=Tally(runs=len(grid)))


def each_call(tracer: Tracer, out: Path, prepare: Callable[[Path], object]) -> Iterator[tuple[str, str | None]]:
    """Sweep into a prepared folder until each call has failed in each way; yield the call and the outcome."""
    for way in range(tracer.ways):
        for number in itertools.count(1 + way, STEP):
            prepare(out)
            call, said = attempt(tracer, out, number, way, lambda: sweep(out))
            assert said in ("done", None) or re.fullmatch(rf"{out}[^\n]*: [^\n]*; allowed: [^\n]*", said), (call, said)
            yield call, said
            shutil.rmtree(out)
            if not call:
                assert number > STEP
                break


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.sweeps.pool.run", in_this_process)


@pytest.mark.parametrize("before", [lambda out: None, interrupt, sweep], ids=["new", "interrupted", "finished"])
def test_whatever_call_fails_the_next_sweep_ends_it(
    before: Callable[[Path], object], tracer: Tracer, tmp_path: Path
) -> None:
    out, results = tmp_path / "out", tmp_path / "out" / "results.parquet"
    # Everything needed is imported before the fork.
    sweep(tmp_path / "whole")
    whole = (tmp_path / "whole" / "results.parquet").read_bytes()
    for call, said in each_call(tracer, out, before):
        assert said == "done" or call, said
        assert not results.exists() or results.read_bytes() == whole, (call, said)
        assert results.exists() or (said != "done" and before is not sweep), (call, said)
        assert sweep(out) == "done", (call, said)
        assert results.read_bytes() == whole, (call, said)
        names = sorted(path.name for path in out.iterdir())
        assert names == ["lock", "manifest.json", "results.parquet"], (call, said, names)


def test_whatever_call_fails_another_grid_s_sweep_stays(tracer: Tracer, tmp_path: Path) -> None:
    out, manifest = tmp_path / "out", tmp_path / "out" / "manifest.json"
    for call, said in each_call(tracer, out, lambda out: interrupt(out, OTHER)):
        assert said != "done", call
        assert call or (said and f"{out}: holds another grid" in said), said
        assert json.loads(manifest.read_bytes())["grid_sha256"] == sweeps.read(OTHER).digest(), (call, said)
        assert len(Folder(out, sweeps.read(OTHER)).finished()) == 1, (call, said)

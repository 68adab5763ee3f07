"""Sweeps: rows, order, what a kill leaves behind, clusters, traces by URL."""

import contextlib
import errno
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import headstart
from headstart import sweeps
from headstart.sweeps import grid as grids
from headstart.sweeps.folder import Folder, Part
from tests.conftest import COMMAND, CSCOPE_1, GLIMPSE, Run
from tests.machines import PATIENCE_S, wait_until
from tests.s3_server import s3_server

pq = pytest.importorskip("pyarrow.parquet", reason="it writes Parquet: pip install '.[sweep]'")

PROFILE = Path(__file__).parent.parent / "crates" / "sim" / "device" / "profiles" / "hp97560.toml"
SMALL = f"""
[workload]
trace = "{CSCOPE_1}"
limit = 500
addresses = "compact-chunks"

[grid]
"cache.blocks" = [64, 128, 256]
"policy" = ["demand", "linux", {{name = "fixed-horizon", horizon = 20}}]
"seed" = [1, 2]
"""
LONG = f"""
device = {{model = "uniform", fetch_time = "1us"}}
workload = {{generator = "loop", blocks = 5000}}

[grid]
"cache.blocks" = [{", ".join(str(blocks) for blocks in range(100, 140))}]
"workload.requests" = [200_000]
"""

LONGER = LONG.replace("200_000", "500_000")
"""Long enough that some runs remain when a test acts in the middle."""


def write(folder: Path, text: str = SMALL, name: str = "grid.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "results.parquet").to_pylist()
    return rows


def lines(folder: Path) -> list[int]:
    """The index of each whole line of the parts."""
    found = []
    for part in (folder / "parts").glob("*.jsonl"):
        whole = part.read_text(encoding="utf-8").splitlines(keepends=True)
        found += [int(json.loads(line)[0]) for line in whole if line.endswith("\n")]
    return found


def is_free(folder: Path) -> bool:
    """Whether no process of a sweep remains that could write into its folder: each of them holds the lock."""
    with (folder / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_each_row_is_the_run_of_its_scenario(run: Run, tmp_path: Path) -> None:
    done = run("sweep", write(tmp_path), "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("out/results.parquet: 18 runs\n")
    assert re.search(r"with [12] workers?, [\d.,]+ runs/s, peak memory \d+ MiB\n$", done.stdout)
    rows = table(tmp_path / "out")
    policies = ["demand", "linux", '{name = "fixed-horizon", horizon = 20}']
    expected = [(blocks, policy, seed) for blocks in (64, 128, 256) for policy in policies for seed in (1, 2)]
    assert [(row["cache.blocks"], row["policy"], row["seed"]) for row in rows] == expected
    for row in (rows[0], rows[-1]):
        policy = "demand" if row["policy"] == "demand" else {"name": "fixed-horizon", "horizon": 20}
        scenario = {
            "seed": row["seed"],
            "workload": {"trace": str(CSCOPE_1), "limit": 500, "addresses": "compact-chunks"},
            "cache": {"blocks": row["cache.blocks"]},
            "policy": policy,
        }
        result = headstart.simulate(scenario)
        figures = {key: value for key, value in result.to_dict().items() if isinstance(value, int | str)}
        figures |= {f"response_ns_{name}": value for name, value in result.to_dict()["response_ns"].items()}
        assert {key: row[key] for key in figures} == figures
        assert row["error"] is None
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["lock", "manifest.json", "results.parquet"]


def test_the_file_is_the_same_for_any_number_of_workers(tmp_path: Path) -> None:
    grid = sweeps.read(write(tmp_path))
    files = [sweeps.run(grid, tmp_path / f"{workers}", workers=workers).path for workers in (1, 2, 5)]
    assert len({path.read_bytes() for path in files}) == 1


def test_a_finished_sweep_is_not_run_again(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path)
    run("sweep", path, "--out", "out")
    before = (tmp_path / "out" / "results.parquet").stat()
    done = run("sweep", path, "--out", "out")
    assert done.stdout == "out/results.parquet: 18 runs\n18 of them had finished before\n"
    assert (tmp_path / "out" / "results.parquet").stat() == before


def test_damaged_results_are_refused_and_left(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Groups of four rows: 18 runs are five of them.
    monkeypatch.setattr("headstart.sweeps.folder.BATCH", 4)
    grid, out = sweeps.read(write(tmp_path)), tmp_path / "out"
    sweeps.run(grid, out)
    results = out / "results.parquet"
    whole = results.read_bytes()
    assert pq.read_metadata(results).num_row_groups == 5
    random = Random(8)
    damaged = [bytearray(whole) for _ in range(200)]
    for number, each in enumerate(damaged):
        # The first and the last byte, and many between.
        at = {0: 0, 1: len(whole) - 1}.get(number, random.randrange(len(whole)))
        each[at] ^= 1 << random.randrange(8)
    damaged += [bytearray(whole[:900]), bytearray(whole[:-1]), bytearray(whole + b"\0"), bytearray()]
    said = set()
    for each in damaged:
        results.write_bytes(each)
        with pytest.raises(headstart.HeadstartError, match=r"out/results\.parquet: is damaged: .*; allowed: ") as error:
            sweeps.run(grid, out)
        said.add(str(error.value).split("; ")[0].split("is damaged: ")[1])
        assert results.read_bytes() == each
    rows = [(1, 4), (5, 8), (9, 12), (13, 16), (17, 18)]
    words = [f"rows {first} to {last}" for first, last in rows] + ["its end"]
    assert said == {f"the digest of {each} is not that of manifest.json" for each in words} | {
        "it is longer than it was"
    }
    done = run("sweep", "grid.toml", "--out", "out")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    results.write_bytes(whole)
    assert sweeps.run(grid, out).tally.before == 18


def test_results_without_digests_are_read(tmp_path: Path) -> None:
    grid, out = sweeps.read(write(tmp_path)), tmp_path / "out"
    sweeps.run(grid, out)
    manifest, results = out / "manifest.json", out / "results.parquet"
    there = json.loads(manifest.read_text(encoding="utf-8"))
    wrong: list[Any] = [5, [5], [{}], [{"end": "x", "sha256": ""}]]
    for digests in wrong:
        manifest.write_text(json.dumps({**there, "results": digests}), encoding="utf-8")
        with pytest.raises(headstart.HeadstartError, match=r"is damaged, or its manifest\.json is; allowed: "):
            sweeps.run(grid, out)
    del there["results"]
    manifest.write_text(json.dumps(there), encoding="utf-8")
    assert sweeps.run(grid, out).tally.before == 18
    results.write_bytes(results.read_bytes()[:900])
    with pytest.raises(headstart.HeadstartError, match=r"results\.parquet: is damaged"):
        sweeps.run(grid, out)


def test_a_damaged_line_of_a_part_is_a_run_that_is_repeated(tmp_path: Path) -> None:
    grid, out = sweeps.read(write(tmp_path)), tmp_path / "out"

    def stop(tally: sweeps.Tally) -> None:
        if tally.done > 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        sweeps.run(grid, out, workers=1, tell=stop)
    (part,) = (out / "parts").glob("*.jsonl")
    written = part.read_bytes()
    finished, random = written.count(b"\n"), Random(8)
    assert finished > 3
    for _ in range(200):
        damaged = bytearray(written)
        damaged[random.randrange(len(written))] ^= 1 << random.randrange(8)
        part.write_bytes(damaged)
        found = Folder(out, grid).finished()
        # A damaged line end damages two lines.
        assert finished - 2 <= len(found) < finished
    done = sweeps.run(grid, out)
    assert done.tally.before in (finished - 1, finished - 2)
    assert done.path.read_bytes() == sweeps.run(grid, tmp_path / "other").path.read_bytes()


CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "chmod")
"""System calls that write a folder, by their names in `os`."""


@pytest.mark.parametrize("for_good", [False, True])
def test_whichever_system_call_fails_nothing_is_lost(tmp_path: Path, for_good: bool) -> None:
    """Each call fails in turn, once or from then on; a later sweep completes to the same file."""
    small = SMALL.replace("64, 128, 256", "64").replace('"linux", ', "")
    grid = sweeps.read(write(tmp_path, small))
    whole = sweeps.run(grid, tmp_path / "whole").path.read_bytes()
    rows = [(index, {"elapsed_ns": index, "error": None, "version": "x"}) for index in range(len(grid))]

    def sweep_by_hand(out: Path) -> None:
        folder = Folder(out, grid)
        with folder.locked():
            if not folder.results.exists():
                finished = folder.finished()
                part = Part(folder.new_part())
                for index, row in rows:
                    if index not in finished:
                        part.append(index, row)
                part.close()
                folder.merge()

    sweep_by_hand(tmp_path / "by-hand")
    expected = (tmp_path / "by-hand" / "results.parquet").read_bytes()
    assert expected != whole
    failures = 0
    for number in itertools.count(1):
        out, calls = tmp_path / f"{number}", 0

        def failing(real: Any, number: int = number) -> Any:
            def call(*arguments: Any, **more: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == number or (for_good and calls > number):
                    raise OSError(errno.EIO, "Input/output error")
                return real(*arguments, **more)

            return call

        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, failing(getattr(os, name)))
            try:
                sweep_by_hand(out)
            except (OSError, headstart.HeadstartError):
                failures += 1
        left = out / "results.parquet"
        assert not left.exists() or left.read_bytes() == expected
        if out.exists():
            Folder(out, grid)._check_content()
        sweep_by_hand(out)
        assert left.read_bytes() == expected, number
        assert sweeps.run(grid, out).tally.before == len(grid)
        assert {path.name for path in out.iterdir()} == {"lock", "manifest.json", "results.parquet"}, number
        if calls < number:
            break
    assert failures > 20


def test_a_run_that_fails_is_a_row(run: Run, tmp_path: Path) -> None:
    text = (
        'workload = {references = ["A", "b", "A"]}\n[grid]\npolicy = ["demand", "forestal"]\n"cache.blocks" = [2, 4]\n'
    )
    done = run("sweep", write(tmp_path, text), "--out", "out")
    assert done.returncode == 0
    first, second = done.stdout.splitlines()[:2]
    assert first == "out/results.parquet: 4 runs, 2 failed"
    assert second.startswith('first failure: policy=forestal, cache.blocks=2: policy.name: unknown policy "forestal" ')
    rows = table(tmp_path / "out")
    assert [row["error"] is None for row in rows] == [True, True, False, False]
    assert rows[2]["elapsed_ns"] is None
    assert rows[2]["version"] == headstart.__version__


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("seed = 1\n", "grid.toml: no table [grid]; allowed: a table [grid] of key paths and lists"),
        ("[grid]\n", "grid.toml: grid holds no lists; allowed: a table [grid]"),
        ('[grid]\n"seed" = 1\n', 'grid.toml: grid: "seed" is no list of values; allowed: a table [grid]'),
        ('[grid]\n"seed" = []\n', 'grid.toml: grid: "seed" is no list of values; allowed: a table [grid]'),
        ('[grid]\n"seed" = [1, 1]\n', 'grid.toml: grid: "seed" has 1 twice; allowed: each value once'),
        ('[grid]\n"seed" = [1979-05-27]\n', 'grid.toml: grid: "seed": 1979-05-27 is no value of a scenario; allowed:'),
        ('[grid]\n"seed" = [1, \n', "grid.toml: "),
        ('[grid]\n"polcy.name" = ["demand"]\n', 'polcy: unknown key (did you mean "policy"?); allowed: '),
        (
            f'[grid]\n"seed" = {list(range(600))}\n"cache.blocks" = {list(range(600))}\n',
            "grid.toml: grid: 360,000 runs; allowed: at most 250,000",
        ),
        (
            'workload = {trace = "no.csv"}\n[grid]\n"seed" = [1]\n',
            "no.csv: no such file; allowed: a trace, or a URL such as s3://BUCKET/TRACE",
        ),
    ],
)
def test_mistakes_in_a_grid_are_one_line(run: Run, tmp_path: Path, text: str, error: str) -> None:
    write(tmp_path, text)
    done = run("sweep", "grid.toml", "--out", "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"headstart: {error}")
    assert done.stderr.count("\n") == 1


def test_mistakes_beside_the_grid_are_one_line(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    cases = {
        (): "--out: missing; allowed: a folder for results.parquet, or --dry-run",
        ("--out", "full"): "full: holds files but no sweep; allowed: an empty folder, or that of the same grid",
        ("--out", "grid.toml"): "grid.toml: is no folder; allowed: an empty folder, or one that is made",
        ("--out", "no/out"): "no/out: there is no folder no; allowed: ",
        ("--out", "out", "--cluster", "tcp://127.0.0.1:1"): "--cluster: tcp://127.0.0.1:1: no scheduler answers; ",
        ("--out", "out", "--cluster", "here"): "--cluster: here: is no address; allowed: ",
        (
            "--out",
            "out",
            "--cluster",
            "x",
            "--workers",
            "2",
        ): "workers: given beside a cluster; allowed: one of the two",
    }
    for words, error in cases.items():
        done = run("sweep", path, *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert done.stderr.startswith(f"headstart: {error}"), done.stderr
        assert done.stderr.count("\n") == 1


def test_a_dry_run_counts(run: Run, tmp_path: Path) -> None:
    done = run("sweep", write(tmp_path), "--dry-run")
    assert (done.returncode, done.stdout) == (0, "18 runs: 3 cache.blocks x 3 policy x 2 seed\n")
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]


def test_the_folder_of_another_grid_is_refused(run: Run, tmp_path: Path) -> None:
    run("sweep", write(tmp_path), "--out", "out")
    there = (tmp_path / "out" / "results.parquet").read_bytes()
    for words in (["--set", "workload.limit=400"], []):
        if not words:
            write(tmp_path, SMALL.replace("128", "129"))
        done = run("sweep", "grid.toml", "--out", "out", *words)
        assert done.returncode == 2
        assert done.stderr.startswith("headstart: out: holds another grid, of 18 runs; allowed: ")
    assert (tmp_path / "out" / "results.parquet").read_bytes() == there


def test_a_trace_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("offset,size\n0,8192\n8192,8192\n", encoding="utf-8")
    grid = sweeps.read({"workload": {"trace": str(trace)}, "grid": {"cache.blocks": [1, 2, 3]}})

    def stop(tally: sweeps.Tally) -> None:
        if tally.done:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        sweeps.run(grid, tmp_path / "out", workers=1, tell=stop)
    trace.write_text("offset,size\n0,8192\n", encoding="utf-8")
    with pytest.raises(headstart.HeadstartError, match=r"trace\.csv: has changed since the sweep in .* was begun; "):
        sweeps.run(grid, tmp_path / "out")


def test_files_are_looked_for_beside_the_grid(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "apart"
    folder.mkdir()
    (folder / "trace.csv").write_text("offset,size\n0,8192\n8192,8192\n", encoding="utf-8")
    write(folder, 'workload = {trace = "trace.csv"}\n[grid]\n"cache.blocks" = [1, 2]\n')
    assert run("sweep", "apart/grid.toml", "--out", "out").returncode == 0
    assert [row["error"] for row in table(tmp_path / "out")] == [None, None]


def test_policies_and_profiles_are_looked_for_beside_the_grid(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "apart"
    folder.mkdir()
    (folder / "mine.py").write_text(
        "import headstart\n\n\nclass Mine(headstart.Readahead):\n    def __init__(self, depth=1):\n"
        "        self.depth = depth\n\n    def requested(self, request):\n"
        "        yield range(request.first + request.count, request.first + request.count + self.depth)\n",
        encoding="utf-8",
    )
    shutil.copy(PROFILE, folder / "own.toml")
    text = 'workload = {generator = "sequential", blocks = 20}\ndevice = "own.toml"\n[grid]\n'
    text += '"policy" = ["demand", "mine.py:Mine", {name = "mine.py:Mine", depth = 4}]\n'
    text += '"device.model" = ["own.toml", "hp97560"]\n"cache.blocks" = [16]\n'
    write(folder, text)
    done = run("sweep", "apart/grid.toml", "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    rows = table(tmp_path / "out")
    assert [row["error"] for row in rows] == [None] * 6
    assert [row["prefetches"] for row in rows][::2] == [0, 20, 23]
    assert rows[2]["policy"] == "mine.py:Mine"
    assert rows[0]["elapsed_ns"] == rows[1]["elapsed_ns"]
    # From inside that folder the grid and its rows are the same.
    monkeypatch.chdir(folder)
    assert sweeps.run(sweeps.read("grid.toml"), tmp_path / "out").tally.before == 6
    inside = sweeps.run(sweeps.read("grid.toml"), tmp_path / "inside").path
    assert inside.read_bytes() == (tmp_path / "out" / "results.parquet").read_bytes()


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """The running command, in its own session."""
    line = [str(COMMAND), "sweep", *words]
    return subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def test_a_kill_loses_no_finished_run_and_repeats_none(tmp_path: Path) -> None:
    grid = write(tmp_path, LONGER)
    whole = sweeps.run(sweeps.read(grid), tmp_path / "whole").path.read_bytes()
    out = tmp_path / "out"
    for least in (3, 12):
        with started(tmp_path, "grid.toml", "--out", "out", "--workers", "2") as process:
            wait_until(lambda least=least: len(lines(out)) >= least)  # type: ignore[misc]
            process.kill()
        # Its workers notice that they are alone.
        wait_until(lambda: is_free(out))
        finished = lines(out)
        assert least <= len(finished) < 40
        assert len(set(finished)) == len(finished)
    part = next((out / "parts").glob("*.jsonl"))
    with part.open("a", encoding="utf-8") as file:
        file.write('[39, {"elapsed_ns": 1, "err')
    told: list[sweeps.Tally] = []
    done = sweeps.run(sweeps.read(grid), out, tell=told.append)
    assert done.tally.before == len(finished)
    assert done.tally.done == 40 - len(finished)
    assert done.path.read_bytes() == whole


def test_two_sweeps_do_not_share_a_folder(tmp_path: Path) -> None:
    # As long as the other one takes to start, and longer.
    write(tmp_path, LONG.replace("200_000", "20_000_000"))
    with started(tmp_path, "grid.toml", "--out", "out", "--workers", "1") as process:
        wait_until((tmp_path / "out" / "parts").is_dir)
        with started(tmp_path, "grid.toml", "--out", "out") as other:
            _, errors = other.communicate()
        assert (other.returncode, errors.count(b"\n")) == (2, 1)
        assert errors.startswith(b"headstart: out: another sweep is running in it; allowed: one at a time")
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == -signal.SIGTERM


def test_ctrl_c_is_at_once_and_loses_nothing(tmp_path: Path) -> None:
    write(tmp_path, LONG.replace("200_000", "2_000_000"))
    for _ in range(3):
        with started(tmp_path, "grid.toml", "--out", "out", "--workers", "2") as process:
            there = len(lines(tmp_path / "out"))
            wait_until(lambda there=there: len(lines(tmp_path / "out")) > there)  # type: ignore[misc]
            finished = len(lines(tmp_path / "out"))
            process.send_signal(signal.SIGINT)
            process.wait()
            assert process.stdout is not None
            assert process.stderr is not None
            assert (process.returncode, process.stdout.read(), process.stderr.read()) == (130, b"", b"")
        assert finished <= len(lines(tmp_path / "out")) < 40


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    grid = write(tmp_path, LONG)
    killed: list[int] = []

    def kill(tally: sweeps.Tally) -> None:
        if tally.done and not killed:
            children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
            pids = [int(pid) for each in children for pid in each.read_text().split()]
            workers = [pid for pid in pids if b"headstart.sweeps.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
            os.kill(workers[0], signal.SIGKILL)
            killed.extend(workers[:1])

    done = sweeps.run(sweeps.read(grid), tmp_path / "out", workers=2, tell=kill)
    assert killed
    assert (done.tally.done, done.tally.failed) == (40, 0)
    assert done.path.read_bytes() == sweeps.run(sweeps.read(grid), tmp_path / "whole").path.read_bytes()


DEADLY = """
import os
from headstart.sweeps import rows, worker
whole = rows.run
rows.run = lambda scenario, overrides, **rest: (
    os.abort() if "cache.blocks=3" in overrides else whole(scenario, overrides, **rest)
)
worker.main()
"""


def test_a_run_that_kills_its_workers_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "deadly.py"
    program.write_text(DEADLY, encoding="utf-8")
    wrapped = tmp_path / "python"
    wrapped.write_text(f"#!/bin/sh\nexec {sys.executable} {program}\n", encoding="utf-8")
    wrapped.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(wrapped))
    grid = {"workload": {"references": ["A", "b"]}, "grid": {"cache.blocks": [1, 2, 3, 4, 5]}}
    done = sweeps.run(sweeps.read(grid), tmp_path / "out", workers=2)
    assert [row["error"] is None for row in done.rows()] == [True, True, False, True, True]
    assert done.failed()[0].startswith("cache.blocks=3: its process was ended by signal 6")


def test_python_gives_a_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    shares: list[float] = []
    grid = {
        "workload": {"references": ["A", "b", "A", "c"]},
        "grid": {"cache.blocks": [2, 4], "policy": ["demand", {"name": "fixed-horizon", "horizon": 2}, "no"]},
    }
    frame = headstart.sweep(grid, progress=shares.append)
    assert list(frame["cache.blocks"]) == [2, 2, 2, 4, 4, 4]
    assert list(frame["error"].notna()) == [False, False, True] * 2
    assert frame["elapsed_ns"].notna().sum() == 4
    assert frame["elapsed_ns"].dtype == "Int64"
    assert shares
    assert not list(tmp_path.iterdir())


def test_a_page_has_small_multiples(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    from headstart.report.sweep import axes, sweep_figures, sweep_page

    done = sweeps.run(sweeps.read(write(tmp_path)), tmp_path / "out")
    assert axes(done.rows(), done.keys) == ("cache.blocks", "policy", [])
    text = sweep_page("grid.toml", done)
    assert "a sweep of 18 runs" in text
    assert text.count("<tr") >= 19
    assert [figure.name for figure in sweep_figures(done)] == ["elapsed", "stall", "fetches"]


def test_toml_text_is_read_back() -> None:
    values = [1, -5, 1.5, 1e300, True, 'a"b\\\n\x7f', ["x", {"a b": [1, 2.0], "c": False}], {"name": "ü"}]
    for value in values:
        assert grids._toml_value(grids.toml_text(value)) == value


# A cluster: a scheduler and its workers, each in its own process.


class Cluster:
    """A scheduler and workers of dask.distributed on loopback."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.about = folder / "scheduler.json"
        where = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.about))
        self.scheduler = self._start("dask_scheduler", *where, "--no-dashboard")
        self.workers = [self.add() for _ in range(workers)]
        self.address = ""

    def wait(self) -> None:
        """Wait until all are there: a sweep gives a scheduler only a few seconds to answer; it may still be loading."""
        distributed: Any = pytest.importorskip("distributed")
        wait_until(self._knows_address)
        with distributed.Client(self.address, timeout=PATIENCE_S, set_as_default=False) as client:
            client.wait_for_workers(len(self.workers), timeout=PATIENCE_S)

    def _knows_address(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            self.address = json.loads(self.about.read_text(encoding="utf-8"))["address"]
        return bool(self.address)

    def _start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(line, cwd=self.folder, **quiet)  # type: ignore[call-overload, no-any-return]

    def add(self) -> subprocess.Popen[bytes]:
        words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder))
        return self._start("dask_worker", "--scheduler-file", str(self.about), *words)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed", reason="a cluster: pip install '.[sweep]'")
    folder = tmp_path / "cluster"
    folder.mkdir()
    found = Cluster(folder, workers=2)
    try:
        found.wait()
        yield found
    finally:
        found.close()


def test_a_cluster_gives_the_same_file_and_says_what_workers_lack(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    path = write(tmp_path)
    done = run("sweep", path, "--out", "out", "--cluster", cluster.address)
    assert (done.returncode, done.stderr) == (0, "")
    here = sweeps.run(sweeps.read(path), tmp_path / "here").path
    assert (tmp_path / "out" / "results.parquet").read_bytes() == here.read_bytes()
    lacking = sweeps.read({"workload": {"trace": "not-there.csv"}, "grid": {"cache.blocks": [1, 2]}})
    with pytest.raises(headstart.HeadstartError, match=r"not-there\.csv: no such file on a worker; allowed: "):
        sweeps.run(lacking, tmp_path / "lacking", cluster=cluster.address)


def test_a_cluster_loses_a_worker_halfway(cluster: Cluster, tmp_path: Path) -> None:
    path = write(tmp_path, LONGER)
    killed: list[int] = []

    def kill(tally: sweeps.Tally) -> None:
        if tally.done >= 10 and not killed:
            cluster.workers[0].kill()
            killed.append(tally.done)

    done = sweeps.run(sweeps.read(path), tmp_path / "out", cluster=cluster.address, tell=kill)
    assert killed
    assert killed[0] < 40
    assert (done.tally.done, done.tally.failed) == (40, 0)
    here = sweeps.run(sweeps.read(path), tmp_path / "here").path
    assert done.path.read_bytes() == here.read_bytes()


def test_a_scheduler_that_goes_is_said_in_a_line(cluster: Cluster, tmp_path: Path) -> None:
    def kill(tally: sweeps.Tally) -> None:
        if tally.done >= 3:
            cluster.scheduler.kill()

    grid = sweeps.read(write(tmp_path, LONGER))
    with pytest.raises(headstart.HeadstartError, match="--cluster: the scheduler is gone; allowed: the same command"):
        sweeps.run(grid, tmp_path / "out", cluster=cluster.address, tell=kill)
    before = len(lines(tmp_path / "out"))
    assert before >= 3
    assert sweeps.run(grid, tmp_path / "out").tally.before == before


# Traces by URL: a real S3 server on loopback.


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests that an S3 server has received; a bucket holds two traces."""
    pytest.importorskip("s3fs")
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    objects = {f"recorded/{trace.name}": trace for trace in (CSCOPE_1, GLIMPSE)}
    with s3_server(monkeypatch, "traces", objects) as requests:
        yield requests


def on_s3() -> dict[str, Any]:
    names = [f"s3://traces/recorded/{trace.name}" for trace in (CSCOPE_1, GLIMPSE)]
    return {
        "workload": {"limit": 300, "addresses": "compact-chunks"},
        "grid": {"workload.trace": names, "cache.blocks": [64, 256], "policy": ["demand", "linux", "none"]},
    }


def test_traces_are_fetched_once(s3: list[str], tmp_path: Path) -> None:
    grid = sweeps.read(on_s3())
    rows = sweeps.run(grid, tmp_path / "out").rows()
    assert len([each for each in s3 if each.startswith("GET") and "recorded/" in each]) == 2
    assert [row["error"] is None for row in rows] == [True, True, False] * 4
    here = on_s3()
    here["grid"]["workload.trace"] = [str(CSCOPE_1), str(GLIMPSE)]
    same = sweeps.run(sweeps.read(here), tmp_path / "here").rows()
    assert [row["trace_sha256"] for row in rows] == [row["trace_sha256"] for row in same]
    assert [row["elapsed_ns"] for row in rows] == [row["elapsed_ns"] for row in same]
    s3.clear()
    sweeps.run(grid, tmp_path / "again")
    assert not [each for each in s3 if each.startswith("GET") and ".xz" in each]


def test_workers_of_a_cluster_fetch_for_themselves(s3: list[str], cluster: Cluster, tmp_path: Path) -> None:
    grid = sweeps.read(on_s3())
    apart = sweeps.run(grid, tmp_path / "out", cluster=cluster.address).path
    assert len([each for each in s3 if each.startswith("GET") and "recorded/" in each]) == 2
    assert apart.read_bytes() == sweeps.run(grid, tmp_path / "here").path.read_bytes()


def test_urls_that_name_nothing_are_one_line(s3: list[str], run: Run, tmp_path: Path) -> None:
    for url in ("s3://traces/none.csv", "s3://none/none.csv", "nope://x/y", "file:///none/none.csv"):
        write(tmp_path, f'workload = {{trace = "{url}"}}\n[grid]\n"seed" = [1, 2]\n')
        done = run("sweep", "grid.toml", "--out", "out")
        assert done.returncode == 2
        assert done.stderr.startswith(f"headstart: {url}: cannot be fetched: ")
        assert done.stderr.count("\n") == 1
    assert s3

"""Selections of requests by file and process, in every command that reads a trace; processes that read concurrently."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import headstart
from headstart.runs.compare import plan
from tests.conftest import ROOT, Run
from tests.test_bad_input import one_line

HEADER = "time_us,pid,comm,path,offset,size,dur_us\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A program that reads 200 files of its interpreter, and 20 blocks of two data files with two threads at once."""
    path = tmp_path / "program.csv"
    lines = [f"{at * 10},1,python3,/usr/lib/python3/{at}.py,0,4096,5" for at in range(200)]
    for at in range(10):
        begin = 10_000 + at * 1000
        lines += [f"{begin},7,loader,/data/a.parquet,{at * 8192},4096,900"]
        lines += [f"{begin + 1},8,loader,/data/b.parquet,{at * 8192},4096,900"]
    path.write_text(HEADER + "\n".join(lines) + "\n")
    return path


def test_every_command_takes_the_same_options(run: Run, trace: Path, tmp_path: Path) -> None:
    chosen = ("--path", "*.parquet")
    assert json.loads(run("trace", "info", trace, *chosen, "--json", "-").stdout)["requests"] == 20
    assert run("trace", "convert", trace, tmp_path / "out.csv", *chosen).returncode == 0
    assert headstart.trace_info(tmp_path / "out.csv")["requests"] == 20
    done = run(
        "trace", "filter", trace, "-o", tmp_path / "below.csv", "--cache", "8", "--process", "loader", "--json", "-"
    )
    assert json.loads(done.stdout)["references"] == 20
    compared = json.loads(
        run("compare", trace, "--policies", "demand", *chosen, "--block-size", "4KiB", "--json", "-").stdout
    )
    assert compared["rows"][0]["references"] == 20
    curve = json.loads(run("curve", trace, "--pid", "7", "--block-size", "4KiB", "--points", "1", "--json", "-").stdout)
    assert curve["references"] == 10
    advised = json.loads(run("advise", trace, "--process", "load*", "--device", "nvme", "--json", "-").stdout)
    assert (advised["requests"], advised["footprint_blocks"]) == (20, 20)
    scenario = tmp_path / "run.toml"
    scenario.write_text(
        f'workload = {{trace = "{trace}", block_size = "4KiB"}}\ncache = {{blocks = 64}}\ndevice = "nvme"\n'
    )
    assert json.loads(run("simulate", scenario, *chosen, "--json", "-").stdout)["references"] == 20
    grid = tmp_path / "grid.toml"
    grid.write_text(scenario.read_text() + '[grid]\n"cache.blocks" = [32, 64]\n')
    assert run("sweep", grid, "--out", tmp_path / "swept", *chosen).returncode == 0
    swept = pyarrow.parquet.read_table(tmp_path / "swept/results.parquet", columns=["references"])
    assert swept["references"].to_pylist() == [20, 20]
    done = run("model", "trace", ROOT / "examples/file-system-trace.toml", "--pid", "99999")
    one_line(done)
    assert "workload.select.pid (--pid): 99999 matches none" in done.stderr


def test_hints_of_a_server_are_selected(run: Run, trace: Path) -> None:
    """Each thread reads ten pages of its file, which are the pages of the export."""

    def hinted(**chosen: Any) -> int:
        done = headstart.serve("mem:1MiB", hints=trace, listen="127.0.0.1:0", progress=lambda _: True, **chosen)
        return int(done["exports"][0]["hints"]["hinted_bytes"])

    assert [hinted(pid=7), hinted(path=["*/a.*", "b.orc"])] == [10 * 4096] * 2
    with pytest.raises(headstart.HeadstartError, match="has reads of several files"):
        hinted()
    done = run("serve", "mem:1MiB", "--path", "*.parquet")
    one_line(done)
    assert "path (--path): selects requests of hints" in done.stderr


def test_python_takes_them_as_keywords(trace: Path) -> None:
    given: list[dict[str, Any]] = [
        {"path": "*.parquet"},
        {"process": "loader"},
        {"pid": [7, 8]},
        {"path": ["a.*", "b.*"]},
    ]
    for each in given:
        assert headstart.trace_info(trace, **each)["requests"] == 20
        assert headstart.curve(trace, points=1, workload={"block_size": "4KiB"}, **each).references == 20
        frame = headstart.compare(trace, policies=["demand"], workload={"block_size": "4KiB"}, **each)
        assert list(frame["references"]) == [20]
    assert headstart.advise(trace, device="nvme", pid=7).requests == 10
    section = {"trace": str(trace), "select": {"path": "*.parquet", "pid": 8}}
    assert headstart.simulate({"workload": section, "device": "nvme"}).references == 10


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--path", "*.orc"),
            'path (--path): "*.orc" matches none of 220 requests; allowed: /data/a.parquet, /data/b.parquet,',
        ),
        (("--pid", "3"), "pid (--pid): 3 matches none of 220 requests; allowed: 1 (python3), 7 (loader), 8 (loader)"),
        (("--process", "cat"), 'process (--process): "cat" matches none of 220 requests; allowed: python3, loader'),
        (("--process", ""), "process (--process): is empty; allowed: a name, or a glob"),
    ],
)
def test_mistakes_list_what_there_is(run: Run, trace: Path, words: tuple[str, ...], said: str) -> None:
    for command in (("compare", trace, "--policies", "demand"), ("advise", trace, "--device", "nvme")):
        done = run(*command, *words)
        one_line(done)
        assert said.partition(" (")[0] in done.stderr and said.partition("): ")[2] in done.stderr, done.stderr
    bare = trace.with_name("bare.csv")
    bare.write_text("offset,size\n0,4096\n")
    done = run("trace", "info", bare, "--path", "*")
    one_line(done)
    assert "the trace does not distinguish files" in done.stderr


def test_threads_that_read_at_once_are_no_one_reader(trace: Path) -> None:
    """Ten reads each: concurrently they take half the time of one after another."""
    workload = {"trace": str(trace), "block_size": "4KiB", "compute": "0s", "select": {"process": "loader"}}
    done = plan(workload, policies=["demand"], device="object-store").run()
    assert any(note.startswith("the trace's processes read at once") for note in done.notes())
    (row,) = done.rows
    merged = plan(workload, policies=["demand"], device="object-store", overrides=["workload.processes=merged"])
    (one,) = merged.run().rows
    assert len(row.result.processes) == 2 and len(one.result.processes) == 1
    assert row.result.elapsed_ns < 0.8 * one.result.elapsed_ns
    assert "read at once" not in " ".join(merged.run().notes())
    # Most of the whole program is a single reader.
    whole = plan({"trace": str(trace)}, policies=["demand"], device="nvme").run()
    assert not any("read at once" in note for note in whole.notes())

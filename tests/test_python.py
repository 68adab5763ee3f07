"""Python as its users write it: typed results, paths, traces from memory, charts, what a notebook shows."""

import datetime
import gc
import json
import re
import subprocess
import sys
import tempfile
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart import results
from headstart.policies import policy_keys
from headstart.runs.compare import plan
from tests.conftest import CSCOPE_1, FIGURE_1, ROOT, TWO_LEVELS

RAPID = ROOT / "examples" / "rapid-transit.toml"
OFFSETS = [0, 8192, 16384, 999_424, 8192]

USER_SCRIPT = """
from pathlib import Path

import headstart

result = headstart.simulate(Path("scenario.toml"))
ratio: float = result.levels[0]["accuracy"] + result.devices[0]["utilization"]
worst: int = result.response_ns["p99"] + result.processes[0]["stall_ns"] + sum(i["slack_ns"] for i in result.intervals)
bound: int = headstart.lower_bound("scenario.toml")["disks"][0]["misses"]
trace = headstart.Trace({"offset": [0, 8192], "size": 8192})
frame = headstart.compare(trace, policies=["demand"], device="nvme")
drive: str = headstart.device(Path("my-drive.toml")).title
chart = headstart.plot.times(result)
chart.save("times.png")
"""
MISTAKES = """
import headstart

result = headstart.simulate("scenario.toml")
result.levels[0]["acuracy"]
result.devices[0]["utilization"] + "1"
result.elapsed
"""


def test_mypy_strict_passes_a_users_script_and_finds_mistakes(tmp_path: Path) -> None:
    """From the checkout, whose configuration is strict, and whose cache saves most of the work."""
    scripts = {"right.py": USER_SCRIPT, "wrong.py": MISTAKES}
    for name, text in scripts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "mypy", *(str(tmp_path / name) for name in scripts)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    found = [line.split(":")[:2] for line in done.stdout.splitlines() if ": error:" in line]
    errors = [[Path(file).name, line] for file, line in found]
    assert errors == [["wrong.py", "5"], ["wrong.py", "6"], ["wrong.py", "7"]], done.stdout


def test_public_names_are_loaded_by_their_first_use() -> None:
    """In a separate process: another test may have loaded their modules."""
    names = ["devices.replay", "forecasting.forecast", "playing.play_trace", "recording.record", "tuning.watch"]
    names += ["emulate", "play", "profile", "serve"]
    program = "import headstart, sys; print(*(eval(f'headstart.{name}').__module__ for name in sys.argv[1:]))"
    found = subprocess.check_output([sys.executable, "-c", program, *names], text=True).split()
    live = ("forecast", "play", "record", "tune", "emulate", "parallel", "profile", "serve")
    assert found == ["headstart.devices", *(f"headstart.live.{name}" for name in live)]
    assert all(hasattr(headstart, name) for name in headstart.__all__)


@pytest.mark.parametrize("scenario", [FIGURE_1, TWO_LEVELS, RAPID], ids=lambda path: path.stem)
def test_results_have_the_shapes_that_are_declared(monkeypatch: pytest.MonkeyPatch, scenario: Path) -> None:
    monkeypatch.chdir(ROOT)
    result = headstart.simulate(scenario)
    shapes: list[tuple[Any, list[Any]]] = [
        (results.Level, result.levels),
        (results.Disk, result.devices),
        (results.Process, result.processes),
        (results.Interval, result.intervals),
        (results.Response, [result.response_ns]),
    ]
    for shape, found in shapes:
        declared = typing.get_type_hints(shape)
        for each in found:
            found_types = {key: type(value) for key, value in each.items()}
            assert shape.__required_keys__ <= set(found_types)
            assert found_types.items() <= declared.items()
    if scenario == FIGURE_1:
        bound: Any = headstart.lower_bound(scenario)
        assert set(bound) == set(typing.get_type_hints(results.LowerBound))
        assert set(bound["disks"][0]) <= set(typing.get_type_hints(results.DiskBound))


def test_paths_are_taken_wherever_a_path_is(tmp_path: Path) -> None:
    profile = tmp_path / "own.toml"
    drive = headstart.device("hp97560")
    profile.write_text((ROOT / "crates/sim/device/profiles/hp97560.toml").read_text(encoding="utf-8"), encoding="utf-8")
    scenario = {"workload": {"trace": CSCOPE_1, "limit": 100}, "device": {"model": profile}, "policy": "linux"}
    assert headstart.simulate(scenario).requests == 100
    assert headstart.device(profile).capacity_bytes == drive.capacity_bytes
    frame = headstart.compare(CSCOPE_1, policies=["demand"], device=profile, workload={"limit": 50})
    assert (list(frame["requests"]), list(frame["device"])) == ([50], [str(profile)])
    assert headstart.trace_info(CSCOPE_1)["requests"] == 9064
    assert headstart.model.of_scenario(ROOT / "examples/file-system.toml").to_dict()


def test_numbers_of_numpy_are_numbers_of_a_scenario() -> None:
    numpy = pytest.importorskip("numpy")
    scenario = {
        "workload": {"generator": "sequential", "blocks": numpy.int64(50), "passes": 1},
        "cache": {"footprint": numpy.float64(0.5)},
    }
    assert headstart.simulate(scenario).references == 50
    with pytest.raises(headstart.HeadstartError, match=r"^scenario: a value of type object is "):
        headstart.simulate({"workload": object()})


def tables() -> dict[str, Any]:
    """The same requests, as each library holds them."""
    seconds = [0.0, 0.001, 0.002, 0.003, 0.5]
    columns: dict[str, list[Any]] = {"offset": OFFSETS, "size": [4096] * 5, "time": seconds, "pid": [7] * 5}
    found: dict[str, Any] = {"mapping": columns, "one value": {**columns, "size": 4096}}
    try:
        import numpy as np
        import pandas as pd
        import polars as pl
        import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return found
    found["numpy"] = {name: np.asarray(values) for name, values in columns.items()}
    kinds = [("offset", "i8"), ("size", "i4"), ("time", "f8"), ("pid", "u4")]
    found["structured"] = np.array(list(zip(*columns.values(), strict=True)), dtype=kinds)
    found["pandas"] = pd.DataFrame(columns)
    found["pandas, nullable"] = pd.DataFrame(columns).convert_dtypes()
    found["pandas, floats"] = pd.DataFrame({**columns, "offset": np.asarray(OFFSETS, dtype="f8")})
    found["polars"] = pl.DataFrame(columns)
    found["arrow"] = pa.table(columns)
    start = np.datetime64("2026-01-01T00:00:00")
    times = [start + np.timedelta64(round(time * 1e9), "ns") for time in seconds]
    found["pandas, datetimes"] = pd.DataFrame({**columns, "time": times})
    found["polars, datetimes"] = pl.DataFrame({**columns, "time": np.asarray(times)})
    found["arrow, datetimes"] = pa.table({**columns, "time": np.asarray(times)})
    return found


TABLES = tables()


@pytest.mark.parametrize("name", TABLES)
def test_a_trace_from_memory_is_the_trace_of_the_file(tmp_path: Path, name: str) -> None:
    file = tmp_path / "trace.csv"
    lines = [f"{offset},4096,{time},7" for offset, time in zip(OFFSETS, (0, 0.001, 0.002, 0.003, 0.5), strict=True)]
    file.write_text("\n".join(["offset,size,time,pid", *lines]) + "\n", encoding="utf-8")

    def run(trace: object) -> dict[str, Any]:
        workload = {"trace": trace, "compute": "gaps", "block_size": "4KiB"}
        figures = headstart.simulate({"workload": workload, "policy": "linux", "device": "nvme"}).to_dict()
        return {key: value for key, value in figures.items() if key not in ("scenario", "trace_sha256")}

    assert run(headstart.Trace(TABLES[name])) == run(file)


def test_runs_that_share_a_trace_have_the_results_of_runs_that_do_not() -> None:
    traces = headstart.Traces()
    policies = ["demand", "linux", "aggressive", "demand:min"]

    def run(policy: str, traces: headstart.Traces | None) -> tuple[str, Any]:
        workload = {"trace": CSCOPE_1, "addresses": "auto", "issue": "blocks"}
        scenario = {"workload": workload, "cache": {"blocks": 200}, "device": "hp97560", "policy": policy_keys(policy)}
        result = headstart.simulate(scenario, traces=traces)
        return result.to_json(), headstart.lower_bound(scenario, traces=traces)

    with ThreadPoolExecutor(len(policies)) as pool:
        shared = list(pool.map(lambda policy: run(policy, traces), policies))
    assert shared == [run(policy, None) for policy in policies]


def test_the_libraries_are_there() -> None:
    """So that the test above covers all of them."""
    missing = [name for name in ("numpy", "pandas", "polars", "pyarrow") if not _installed(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    assert len(TABLES) == 12


def _installed(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_a_trace_of_offsets_is_taken_wherever_a_trace_is(tmp_path: Path) -> None:
    trace = headstart.Trace(OFFSETS, size=8192, name="lookups")
    assert repr(trace) == "<headstart.Trace: 5 requests, columns offset, size>"
    frame = headstart.compare(trace, policies=["demand", "linux"], device="nvme")
    assert list(frame["requests"]) == [5, 5]
    assert headstart.trace_info(trace)["distinct_blocks"] == 4
    assert Path(trace).name == "lookups.csv"
    trace.write(tmp_path / "kept.csv")
    assert headstart.trace_info(tmp_path / "kept.csv") == headstart.trace_info(trace)
    wide = headstart.Trace({"offset": range(100_000), "size": 1, "op": "R", "note": "not read"})
    assert wide.columns == ("offset", "size", "op")
    assert headstart.trace_info(wide)["requests"] == 100_000


def test_a_trace_takes_its_file_with_it() -> None:
    trace = headstart.Trace(OFFSETS, size=8192)
    folder = Path(trace).parent
    assert folder.stat().st_mode & 0o077 == 0
    del trace
    gc.collect()
    assert not folder.exists()
    program = "import headstart, os; t = headstart.Trace([0], size=1); print(os.fspath(t))"
    path = subprocess.check_output([sys.executable, "-c", program], text=True).strip()
    assert not Path(path).parent.exists()


DAY = datetime.datetime(2026, 1, 1)
BAD: list[tuple[Any, dict[str, Any], str]] = [
    ({"size": [1]}, {}, "trace: no column of addresses; allowed: one of offset, lba, lbn, sector, block, id"),
    ({"offset": [1]}, {}, "trace: no column size; allowed: a column size, or size=BYTES for all requests"),
    ({"offset": [1], "size": [1]}, {"size": 2}, "size: given beside a column of sizes; allowed: one of the two"),
    ({"offset": [1, 2], "size": [1]}, {}, "trace: column size has 1 values, another 2; allowed: as many"),
    ({"offset": [1, None], "size": 1}, {}, "trace: offset of request 2 is no value; allowed: a value"),
    ({"offset": [1.0, float("nan")], "size": 1}, {}, "trace: offset of request 2 is no value; allowed: a value"),
    ({"offset": [], "size": []}, {}, "trace: no requests; allowed: at least one"),
    (7, {}, "trace: a int is no table; allowed: columns by name, or offsets"),
    ("trace.csv", {}, "trace: a str is no table; allowed: columns by name, or offsets"),
    ([0], {"size": 1, "name": "../x"}, 'name: "../x"; allowed: the name of a file, without a folder'),
    ({"offset": [0], "size": 1, "file": ["a\nb"]}, {}, "trace: 'a\\nb' has a line end; allowed: text on one line"),
    ({"offset": [0, 1], "size": 1, "time": [DAY, None]}, {}, "trace: time of request 2 is no value; allowed: a value"),
]


@pytest.mark.parametrize(("table", "keys", "text"), BAD, ids=lambda each: each if isinstance(each, str) else "")
def test_mistakes_in_a_trace_from_memory_are_one_line(
    table: Any, keys: dict[str, Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(headstart.HeadstartError) as error:
        headstart.Trace(table, **keys)
    assert str(error.value) == text
    del error
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_result_shows_itself_shortly() -> None:
    result = headstart.simulate(FIGURE_1)
    assert repr(result) == (
        "<headstart.Result: elapsed 0.007 s (compute 0.006 s, driver 0.000 s, stall 0.001 s); "
        "6 references, 3 fetches, 0 wasted>"
    )
    page = result._repr_html_()
    assert "<th>elapsed</th><td>0.007 s</td><td>100.0%</td>" in page
    assert "<th>prefetches used</th><td>3</td>" in page
    assert page.count("<tr>") == 10


def test_charts_are_functions(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    frame = headstart.compare(CSCOPE_1, policies=["demand", "linux"], disks=[1, 2], workload={"limit": 2000})
    times = headstart.plot.times(frame).to_dict()
    assert [panel["title"] for panel in times["vconcat"]] == ["1 disk", "2 disks"]
    one = headstart.plot.times(frame[frame["disks"] == 1])
    values = one.to_dict()["layer"][0]["data"]["values"]
    stall = next(value["s"] for value in values if (value["run"], value["part"]) == ("linux", "stall"))
    row = frame[(frame["policy"] == "linux") & (frame["disks"] == 1)].iloc[0]
    assert stall == row["stall_ns"] / 1e9
    one.save(tmp_path / "times.svg")
    assert "<svg" in (tmp_path / "times.svg").read_text(encoding="utf-8")
    assert headstart.plot.prefetches(frame).to_dict()["vconcat"]
    assert headstart.plot.curve(frame, x="disks").to_dict()["encoding"]["x"]["title"] == "disks"
    with pytest.raises(headstart.HeadstartError, match=r'^plot.curve: no column "size"; allowed: policy, '):
        headstart.plot.curve(frame, x="size")
    result = headstart.simulate(TWO_LEVELS.parent / "figure1.toml")
    drawn = headstart.plot.devices(result).to_dict()
    assert {value["run"] for value in drawn["data"]["values"]} == {"disk 0", "disk 1"}
    named = headstart.plot.times({"one": result, "two": result}).to_dict()
    assert {value["run"] for value in named["data"]["values"]} == {"one", "two"}
    with pytest.raises(headstart.HeadstartError, match="rows have no devices"):
        headstart.plot.devices(frame)


def test_charts_take_a_polars_frame() -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("altair")
    frame = headstart.compare(CSCOPE_1, policies=["demand", "linux"], workload={"limit": 500})
    kept = frame.drop(columns=["error"])
    assert headstart.plot.times(polars.from_pandas(kept)).to_dict() == headstart.plot.times(kept).to_dict()
    planned = plan(CSCOPE_1, policies=["demand", "linux"], workload={"limit": 500}).run()
    assert planned.to_polars().drop("error").to_dicts() == kept.to_dict("records")


NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))

RUNNER = """
import ast, json, sys
names = {"__name__": "__main__"}
for number, source in enumerate(json.load(sys.stdin), start=1):
    tree = ast.parse(source, f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        shown = [getattr(value, each)() for each in ("_repr_mimebundle_", "_repr_html_") if hasattr(value, each)]
        assert shown or repr(value)
        print(number, type(value).__name__)
"""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(tmp_path: Path, notebook: Path) -> None:
    """Cell by cell in a separate process; the value at the end of a cell must have a picture."""
    pytest.importorskip("altair")
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    words = [sys.executable, "-c", RUNNER]
    done = subprocess.run(words, input=json.dumps(sources), capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) >= 3
    assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def test_the_page_on_python_shows_what_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    programs = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    line = [sys.executable, "-c", "".join(programs)]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=True)
    first, *rest = done.stdout.splitlines()
    assert first.startswith("4 4 ")
    assert [each.split()[0] for each in rest] == ["64", "256", "1024"]
    named = re.findall(r"`(?:plot\.)?([a-z_]+)\(", text)
    own = (headstart, headstart.plot, headstart.Result, headstart.Trace)
    assert len(named) > 10
    assert [name for name in named if not any(hasattr(each, name) for each in own) and name != "save"] == []

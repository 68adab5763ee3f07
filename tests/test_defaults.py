"""Defaults that `simulate` and `compare` share, and the handling of faults."""

import inspect
import json
import pickle
from array import array
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart.cli import app
from headstart.runs.compare import WORKLOAD, plan
from tests.conftest import CSCOPE_1, ROOT, Run

DEVICES = [entry["name"] for entry in headstart.catalog()["devices"]]
POLICIES = [
    entry["name"]
    for entry in headstart.catalog()["policies"]
    # One is for parallel programs, one for tiny instances only.
    if entry["family"] != "parallel" and entry["name"] != "optimum"
]


@pytest.fixture
def app_csv(tmp_path: Path) -> Path:
    """Return the trace of a program that reads 16 MiB in order, 64 KiB at a time, with 80 us of work for each."""
    path = tmp_path / "app.csv"
    lines = (f"{at * 65536},65536,80" for at in range(256))
    path.write_text("offset,size,think_us\n" + "\n".join(lines) + "\n")
    return path


def traces(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return workloads of several kinds: recorded, of several files, without times, generated."""
    yield "program", {"trace": str(CSCOPE_1), "limit": 60}
    timed = folder / "timed.csv"
    timed.write_text("time_us,offset,size\n" + "".join(f"{at * 900},{at % 40 * 16384},16384\n" for at in range(60)))
    yield "timed", {"trace": str(timed)}
    bare = folder / "bare.csv"
    bare.write_text("file,offset,size\n" + "".join(f"{at % 3},{at // 3 * 8192},20000\n" for at in range(60)))
    yield "bare", {"trace": str(bare)}
    yield "generated", {"generator": "zipf", "blocks": 400, "requests": 60, "request_blocks": 3, "compute": "1ms"}


@pytest.mark.parametrize("device", DEVICES)
def test_simulate_and_compare_agree(device: str, tmp_path: Path) -> None:
    """Every device with every policy and every workload, and in turn every policy with every workload."""
    keys = {"model": device, **({"fetch_time": "2ms"} if device == "uniform" else {})}
    all_traces = list(traces(tmp_path))
    for turn, (name, made) in enumerate(all_traces, DEVICES.index(device)):
        # compare's own defaults: addresses beyond the device are no error, and writes do not count as reads.
        workload = {**WORKLOAD, **made}
        for policy in POLICIES[turn % len(all_traces) :: len(all_traces)]:
            scenario = {"workload": workload, "cache": {"blocks": 64}, "policy": policy, "device": keys}
            sets = ["device.fetch_time=2ms"] if device == "uniform" else []
            planned = plan(workload, policies=[policy], device=device, cache=64, overrides=sets)
            try:
                single = headstart.simulate(scenario)
            except headstart.HeadstartError as error:
                with pytest.raises(headstart.HeadstartError) as refused:
                    planned.run(jobs=1)
                assert str(refused.value) == str(error), (name, policy)
                continue
            (row,) = planned.run(jobs=1).rows
            assert row.result.to_json() == single.to_json(), (name, policy)


def test_rows_beside_each_other_can_be_run_alone(app_csv: Path) -> None:
    done = plan(app_csv, policies=["demand", "linux", "forestall"], device="nvme", cache=256).run()
    for row in done.rows:
        assert headstart.simulate(row.result.scenario).elapsed_ns == row.result.elapsed_ns
    issues = [row.result.scenario["workload"]["issue"] for row in done.rows]
    assert issues == ["whole"] * 3


def test_read_ahead_on_a_drive_of_today_gains_what_it_can(app_csv: Path, run: Run) -> None:
    words = ("compare", app_csv, "--block-size", "4KiB", "--device", "nvme", "--policies", "demand,linux")
    rows = json.loads(run(*words, "--json", "-").stdout)["rows"]
    demand, linux = (row["elapsed_ns"] for row in rows)
    # A read of 64 KiB takes some 50 us, which 80 us of work can hide: (80 + 50) / 80, and what the start costs.
    assert 1.4 < demand / linux < 1.8
    cut = json.loads(run(*words, "--issue", "blocks", "--json", "-").stdout)
    assert cut["rows"][0]["elapsed_ns"] > 1.5 * demand
    assert "requests issued whole" in " ".join(run(*words).stdout.split())


@pytest.mark.parametrize("think_us", [0, 20, 80])
def test_the_gain_of_read_ahead_is_that_of_the_arithmetic_in_the_docs(think_us: int, tmp_path: Path) -> None:
    path = tmp_path / "app.csv"
    path.write_text("offset,size,think_us\n" + "".join(f"{at * 65536},65536,{think_us}\n" for at in range(1024)))
    # docs/devices.md: reads of 64 and of 128 KiB on the flash, then over the link.
    short_us, long_us = (1.9 + 43 + kib * 1024 / 7450 for kib in (64, 128))
    expected = (think_us + short_us) / max(think_us + 3 / 2, (long_us + 2 * think_us) / 4)
    planned = plan(path, policies=["demand", "linux"], device="nvme", workload={"block_size": "4KiB"})
    demand, linux = (row.result.elapsed_ns for row in planned.run().rows)
    assert demand / linux == pytest.approx(expected, rel=0.03)
    assert f"| {think_us} us | {demand / linux:.1f} |" in (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")


def test_a_policy_that_does_not_fit_is_a_row_with_its_reason(app_csv: Path, run: Run, tmp_path: Path) -> None:
    words = ("compare", app_csv, "--device", "nvme", "--policies", "demand,competitive,linux")
    done = run(*words, "--json", "out.json", "--html", "page.html")
    found = json.loads((tmp_path / "out.json").read_text())
    # The policy was named: the exit status reports the fault, too.
    reason = found["rows"][1]["error"]
    assert (done.returncode, done.stderr) == (2, f"headstart: --policies: competitive does not run: {reason}\n")
    assert [row["error"] is None for row in found["rows"]] == [True, False, True]
    refused = found["rows"][1]
    assert refused["policy"] == "competitive" and refused["elapsed_ns"] is None
    note = f"competitive does not run: {refused['error']}"
    assert note in found["notes"]
    assert "competitive does not run: " in done.stdout
    assert "competitive does not run: " in (tmp_path / "page.html").read_text()
    assert found["rows"][0].keys() == refused.keys()
    alone = run("compare", app_csv, "--device", "nvme", "--policies", "competitive")
    assert (alone.returncode, alone.stdout) == (2, "")
    assert alone.stderr == f"headstart: {refused['error'].replace('policy.name:', 'policy.name (--policies):')}\n"


def test_a_version_on_the_command_line(app_csv: Path, run: Run) -> None:
    words = ("--device", "nvme", "--policies", "linux:version=6.17", "--block-size", "4KiB", "--json", "-")
    done = run("compare", app_csv, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"][0]["policy"] == "linux:version=6.17"


@pytest.mark.parametrize(
    ("sets", "key"),
    [
        (["policy.name=ra", "policy.degre=3"], "policy.degre"),
        (["device.rpm=fast"], "rpm"),
        (["policy.name=linux", "policy.read_ahead=7"], None),
        (["host.hit_time=5"], "host.hit_time"),
        (["workload.limit=-1"], "workload.limit"),
        (["policy.name=obl", "policy.when=never"], "policy.when"),
    ],
)
def test_explain_refuses_wrong_keys_in_plain_words(run: Run, tmp_path: Path, sets: list[str], key: str | None) -> None:
    (tmp_path / "x.toml").write_text('workload = {trace = "absent.csv"}\n')
    done = run("simulate", "x.toml", "--explain", *(word for each in sets for word in ("--set", each)))
    if key is None:
        assert done.returncode == 0
        return
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert key in line and "allowed: " in line and "absent.csv" not in line
    for jargon in ("invalid type", "invalid value", "variant", "u32", "u64", "expected", "field"):
        assert jargon not in line


def test_broken_toml_is_shown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("seed = 1\nworkload = = 3\n")
    done = run("simulate", "x.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("headstart: x.toml, line 2: not understood: workload = = 3; allowed: ")


def _fail(_: int) -> None:
    headstart.simulate({"workload": {"trace": "absent.csv"}})


def test_errors_cross_processes() -> None:
    assert headstart.HeadstartError.__module__ == "headstart"
    for kind in (headstart.HeadstartError, headstart.InternalError):
        copied = pickle.loads(pickle.dumps(kind("seed: wrong")))
        assert type(copied) is kind and copied.args == ("seed: wrong",)
    with ProcessPoolExecutor(1) as pool, pytest.raises(headstart.HeadstartError, match=r"absent\.csv"):
        pool.submit(_fail, 0).result()


@pytest.fixture
def planted() -> Iterator[None]:
    """A fault in everything that the core does."""
    headstart._core.panic_for_tests(True)
    yield
    headstart._core.panic_for_tests(False)


@pytest.mark.usefixtures("planted")
def test_a_panic_is_one_line_and_status_70(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scenario = tmp_path / "x.toml"
    scenario.write_text('seed = 77\nworkload = {references = ["A"]}\n')
    with pytest.raises(headstart.InternalError) as raised:
        headstart.simulate({"seed": 5, "workload": {"references": ["A"]}})
    assert "seed 5" in str(raised.value) and '"references"' in str(raised.value)
    assert app.run(["simulate", str(scenario)]) == 70
    out, err = capfd.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("headstart: internal error: ")
    assert "planted by a test" in line and f"scenario {scenario}, seed 77" in line


@pytest.mark.usefixtures("planted")
def test_a_panic_in_any_function_of_the_core_is_one_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, file = "{}", tmp_path / "none"
    question = json.dumps({"device": "sda"})
    arguments: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "carries": ((), {"json": text}),
        "catalog": ((), {}),
        "command": (("serve", text), {}),
        "command_schema": (("serve",), {}),
        "curve": ((), {"json": text, "asked": '{"sizes": [], "seeds": 1, "replacements": []}'}),
        "device_import_diskspecs": ((file,), {}),
        "device_probe": (("hp97560",), {}),
        "device_replay": (("hp97560", file), {}),
        "device_show": (("hp97560",), {}),
        "device_survey": (("hp97560",), {}),
        "explain": ((), {"json": text}),
        "hints_check": ((file,), {}),
        "hints_merge": ((file, [file], 0.5), {}),
        "hints_show": ((file,), {}),
        "is_trace": ((file,), {}),
        "kernel_pages": ((question,), {}),
        "lower_bound": ((), {"json": text}),
        "model_competitive": ((text,), {}),
        "model_defeat": (([2.0],), {"alpha": 2.0, "switch_ns": 1.0, "bytes_per_second": 1.0}),
        "model_file_system": ((text, [], array("d", bytes(8 * 64))), {}),
        "model_scenario": ((), {"json": text}),
        "model_open": ((), {"json": text}),
        "model_terms": ((), {}),
        "model_trace": ((), {"json": text}),
        "metrics": ((), {}),
        "play": ((), {"json": text}),
        "reads_at_once": ((), {"json": text}),
        "remove_pending_files": ((), {}),
        "run_command": ((["true"],), {}),
        "run_hinted": ((question,), {}),
        "run_options": ((), {}),
        "schema": ((), {}),
        "simulate": ((), {"json": text}),
        "size_bytes": (("1",), {}),
        "timeline": ((), {"json": text}),
        "trace_convert": ((file, file), {"to": "csv"}),
        "trace_filter": ((file, file), {"cache": "10"}),
        "trace_generate": (("zipf", file), {}),
        "trace_info": ((file,), {}),
    }
    functions = {name: each for name, each in vars(headstart._core).items() if inspect.isbuiltin(each)}
    # `conformance` looks for panics; the cost is two numbers; the text of an error is also needed in a panic.
    for name in ("panic_for_tests", "conformance", "python_cost", "without_credentials"):
        del functions[name]
    assert functions.keys() == arguments.keys()
    for name, function in functions.items():
        words, named = arguments[name]
        with pytest.raises(headstart.InternalError, match=r"^internal error: [^\n]*planted by a test[^\n]*$"):
            function(*words, **named)
    assert capfd.readouterr() == ("", "")

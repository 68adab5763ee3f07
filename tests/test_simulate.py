"""`headstart simulate` and `headstart.simulate`: the documented result, and its guarantees."""

import json
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headstart
from tests.conftest import CSCOPE_1, FIGURE_1, Run

TOP = """schema version scenario seed trace_sha256 elapsed_ns compute_ns driver_ns overhead_ns stall_ns barrier_ns
idle_ns requests references hits_ready hits_unready misses hit_wait_ns_mean fetches demand_fetches
prefetches prefetches_used prefetches_late prefetches_wasted evictions throughput_bytes_per_s response_ns
levels devices processes intervals"""
COUNTS = """references hits_ready hits_unready misses hit_wait_ns_mean fetches demand_fetches prefetches prefetches_used
prefetches_late prefetches_wasted evictions"""
BETWEEN_LEVELS = "name silent_hits bypass_blocks bypass_fetches readmore_blocks link_ns"
DEVICE = """requests blocks busy_ns utilization seek_ns rotation_ns transfer_ns overhead_ns queue_ns service_ns_mean
response_ns_mean buffer_hits"""
PROCESS = "elapsed_ns own_io_ns other_io_ns barrier_ns action_ns overrun_ns"

# Section 2 of Kimbrel et al., Figure 1, with the settings of the design: policy, its overrides, elapsed ms.
FIGURE_1_CASES = [
    ("demand", ["policy={name='demand', replacement='min'}"], 10),
    ("aggressive", ["policy={name='aggressive', batch_size=1}"], 7),
    ("forestall", ["policy={name='forestall', fetch_ratio=2, batch_size=1, horizon=0}"], 7),
    ("reverse-aggressive", ["policy={name='reverse-aggressive', fetch_ratio=2, batch_size=1}"], 7),
    ("fixed-horizon, H = 2", ["policy={name='fixed-horizon', horizon=2}"], 7),
    ("fixed-horizon, H = 1", ["policy={name='fixed-horizon', horizon=1}"], 8),
    ("optimum", ["policy={name='optimum'}"], 6),
]


@pytest.mark.parametrize(("overrides", "elapsed_ms"), [case[1:] for case in FIGURE_1_CASES], ids=lambda each: str(each))
def test_figure_1_through_the_command_and_python(run: Run, overrides: list[str], elapsed_ms: int) -> None:
    words = [word for each in overrides for word in ("--set", each)]
    done = run("simulate", FIGURE_1, *words, "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["elapsed_ns"] == elapsed_ms * 1_000_000
    result = headstart.simulate(FIGURE_1, overrides=overrides)
    assert result.elapsed_ns == elapsed_ms * 1_000_000
    assert result.to_json() + "\n" == done.stdout


def test_result_has_every_key_of_the_contract() -> None:
    result = headstart.simulate(FIGURE_1).to_dict()
    assert set(TOP.split()) <= result.keys()
    assert result["response_ns"].keys() == {"mean", "p50", "p90", "p99", "max"}
    (level,) = result["levels"]
    assert set((COUNTS + " " + BETWEEN_LEVELS).split()) <= level.keys()
    assert len(result["devices"]) == 2
    assert all(set(DEVICE.split()) <= device.keys() for device in result["devices"])
    assert all(set(PROCESS.split()) <= process.keys() for process in result["processes"])


def test_a_dictionary_is_as_good_as_a_file() -> None:
    scenario = {
        "workload": {"references": ["A", "b", "C", "d", "E", "F"], "compute": "1ms"},
        "cache": {"blocks": 4, "initial": ["A", "b", "d", "F"]},
        "policy": {"name": "aggressive", "batch_size": 1},
        "device": {
            "model": "uniform",
            "fetch_time": "2ms",
            "count": 2,
            "layout": [["A", "C", "E", "F"], ["b", "d"]],
        },
    }
    assert headstart.simulate(scenario).elapsed_ns == headstart.simulate(FIGURE_1).elapsed_ns == 7_000_000


def test_attributes_and_dictionary_agree() -> None:
    result = headstart.simulate(FIGURE_1)
    for name, value in result.to_dict().items():
        assert getattr(result, name) == value
    copy = result.to_dict()
    copy["levels"].clear()
    assert result.to_dict()["levels"], "to_dict() gives a dictionary of the caller's own"
    assert headstart.Result.from_json(result.to_json()) == result


scenarios = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 5),
        "workload": st.fixed_dictionaries(
            {
                "generator": st.sampled_from(["random", "zipf", "loop"]),
                "blocks": st.integers(1, 60),
                "requests": st.integers(1, 200),
                "request_blocks": st.integers(1, 4),
                "compute": st.sampled_from(["0s", "1ms", "exp:2ms"]),
            }
        ),
        "cache": st.fixed_dictionaries({"blocks": st.integers(4, 50)}),
        "policy": st.sampled_from(
            [
                *({"name": "demand", "replacement": each} for each in ("lru", "arc", "min", "lirs", "lfu")),
                *({"name": each} for each in ("fixed-horizon", "aggressive", "reverse-aggressive", "forestall")),
                {"name": "forestall", "hints": {"window": 10}},
                {"name": "aggressive", "hints": {"fraction": 0.5, "seed": 3}},
            ]
        ),
        "device": st.fixed_dictionaries(
            {"model": st.just("hp97560"), "count": st.integers(1, 5), "scheduler": st.sampled_from(["fcfs", "cscan"])}
        ),
        "host": st.sampled_from([{}, {"driver_overhead": "0.5ms", "hit_time": "10us", "system_call": "20us"}]),
    }
)


@settings(max_examples=150, deadline=None)
@given(scenario=scenarios)
def test_identities_of_the_result(scenario: dict[str, Any]) -> None:
    scenario["workload"]["request_blocks"] = min(scenario["workload"]["request_blocks"], scenario["workload"]["blocks"])
    result = headstart.simulate(scenario)
    assert result.references == result.hits_ready + result.hits_unready + result.misses
    assert result.fetches == result.demand_fetches + result.prefetches
    assert result.prefetches == result.prefetches_used + result.prefetches_wasted
    assert result.prefetches_late <= result.prefetches_used
    parts = result.compute_ns + result.driver_ns + result.overhead_ns + result.stall_ns
    assert result.elapsed_ns == parts + result.barrier_ns + result.idle_ns
    assert sum(device["blocks"] for device in result.devices) <= result.fetches
    assert all(0 <= device["utilization"] <= 1 for device in result.devices)
    response = result.response_ns
    assert response["p50"] <= response["p90"] <= response["p99"] <= response["max"]
    assert response["mean"] <= response["max"]
    bound = headstart.lower_bound(scenario)["elapsed_ns"]
    if "hints" not in scenario["policy"]:
        assert bound <= result.elapsed_ns
    assert headstart.simulate(scenario).to_json() == result.to_json()
    assert headstart.simulate(result.scenario).elapsed_ns == result.elapsed_ns, "the resolved scenario runs again"


def test_two_processes_give_the_same_bytes(run: Run, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        f'seed = 7\n[workload]\ntrace = "{CSCOPE_1}"\ncompute = "exp:1ms"\nplacement = "random-groups"\n'
        '[policy]\nname = "forestall"\nhints = {fraction = 0.8, seed = 2}\n[device]\ncount = 3\n'
    )
    first, second = (run("simulate", scenario, "--json", "-") for _ in range(2))
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["seed"] == 7


def test_json_file_is_whole_and_stdout_readable(run: Run, tmp_path: Path) -> None:
    done = run("simulate", FIGURE_1, "--json", tmp_path / "out.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text())["elapsed_ns"] == 7_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"], "no scratch file is left"
    for word in ("aggressive", "elapsed", "7.000 ms", "stall", "1.000 ms", "misses", "disk"):
        assert word in done.stdout


def test_explain_gives_a_scenario_that_runs_alike(run: Run, tmp_path: Path) -> None:
    done = run("simulate", FIGURE_1, "--explain")
    assert (done.returncode, done.stderr) == (0, "")
    explained = tmp_path / "explained.toml"
    explained.write_text(done.stdout)
    assert headstart.simulate(explained).elapsed_ns == 7_000_000
    assert "scheduler" in done.stdout
    assert done.stdout == headstart.explain(FIGURE_1)


def test_an_exception_of_progress_stops_the_run() -> None:
    class EnoughError(Exception):
        pass

    shares: list[float] = []

    def progress(share: float, references: int) -> None:
        assert references > 0
        shares.append(share)
        if len(shares) == 3:
            raise EnoughError

    scenario = {"workload": {"generator": "loop", "requests": 100_000_000}, "device": {"model": "uniform"}}
    with pytest.raises(EnoughError):
        headstart.simulate(scenario, overrides=["device.fetch_time=1us"], progress=progress)
    assert shares == sorted(shares)
    assert len(shares) == 3
    assert all(0 < share < 1 for share in shares)


# The run would last for hours; if the GIL were held, the main thread could not end the process.
GIL_PROGRAM = """
import os, threading, time, headstart
scenario = {
    "workload": {"generator": "loop", "requests": 2_000_000_000},
    "device": {"model": "uniform", "fetch_time": "1us"},
}
threading.Thread(target=headstart.simulate, args=(scenario,), daemon=True).start()
while time.thread_time() > time.process_time() - 0.2:
    time.sleep(0.01)
print("went on", flush=True)
os._exit(0)
"""


def test_other_threads_go_on_while_the_core_works() -> None:
    # Far longer than it takes; only a main thread that waits for the run gets there.
    words = [sys.executable, "-c", GIL_PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "went on\n"


def test_runs_on_two_threads_do_not_disturb_each_other() -> None:
    results: dict[int, str] = {}

    def work(disks: int) -> None:
        results[disks] = headstart.simulate(FIGURE_2_LIKE, overrides=[f"device.count={disks}"]).to_json()

    threads = [threading.Thread(target=work, args=(disks,)) for disks in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for disks, text in results.items():
        assert headstart.simulate(FIGURE_2_LIKE, overrides=[f"device.count={disks}"]).to_json() == text


FIGURE_2_LIKE = {"workload": {"trace": str(CSCOPE_1)}, "policy": "forestall"}


def test_a_trace_may_lie_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "three.csv").write_text(
        "time,op,pid,file,offset,size,dur_us\n0.0,R,1,0,0,8192,1\n0.1,R,1,0,8192,8192,1\n"
    )
    scenario = tmp_path / "scenario.toml"
    scenario.write_text('workload = {trace = "three.csv"}\ncache = {blocks = 1}\n')
    assert headstart.simulate(scenario).references == 2


def test_explain_names_defaults_that_depend_on_the_run() -> None:
    text = headstart.explain(FIGURE_1, overrides=["policy=forestall"])
    assert "# policy.lookahead: twice the blocks of the cache\n" in text
    given = headstart.explain(FIGURE_1, overrides=["policy=forestall", "policy.lookahead=3"])
    assert "lookahead = 3" in given
    assert "# policy.lookahead" not in given


def test_a_cache_in_bytes_says_that_sizes_of_objects_are_ignored(tmp_path: Path) -> None:
    def notes(sizes: tuple[int, int], cache: dict[str, object]) -> list[str]:
        path = tmp_path / "x.oracleGeneral"
        # Time, object, size and the next request of it, none.
        records = enumerate(sizes)
        path.write_bytes(b"".join(struct.pack("<IQIq", at, at, size, -1) for at, size in records))
        workload = {"trace": str(path), "block_size": "object", "compute": "1ms"}
        return list(headstart.simulate({"workload": workload, "cache": cache}).to_dict()["notes"])

    ignored = "the sizes of the trace's objects are ignored: each takes one block, and a cache counts blocks of "
    assert any(note.startswith(ignored) for note in notes((4096, 512), {"size": "1MiB"}))
    # A cache in objects ignores nothing.
    assert not any(note.startswith(ignored) for note in notes((4096, 512), {"blocks": 10}))

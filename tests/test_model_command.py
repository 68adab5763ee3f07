"""`headstart model`: what the command prints, its JSON, and its refusals."""

import json
from pathlib import Path

import pytest

import headstart
from headstart import HeadstartError, model
from tests.conftest import ROOT, Run
from tests.test_bad_input import one_line

SCENARIO = ROOT / "examples" / "file-system.toml"


def test_response_and_terms(run: Run) -> None:
    done = run("model", "fs", SCENARIO)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("response", "disk overhead", "seek", "rotation", "transfer", "hidden", "4 streams"):
        assert word in done.stdout
    assert "advice" not in done.stdout


def test_json_is_what_python_has(run: Run) -> None:
    done = run("model", "fs", SCENARIO, "--json", "-", "--set", "workload.files=8", "--advise")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    ours = model.of_scenario(SCENARIO, overrides=["workload.files=8"], advise=True)
    assert found == json.loads(json.dumps(ours.to_dict()))
    response = found["response"]
    parts = ("overhead_ns", "seek_ns", "rotation_ns", "transfer_ns", "file_system_ns", "hidden_ns")
    assert sum(response[part] for part in parts) == pytest.approx(response["response_ns"])
    # The same parameters give the same numbers where the drive's own curve counts.
    again = model.file_system(
        drive="seagate-cheetah-4lp",
        streams=8,
        overhead="1.2ms",
        bus_rate=9_523_200,
        system_call="10us",
        copy_per_kib="10us",
        prefetch_limit="64KiB",
        cluster=2**30,
        read_during_overhead=True,
        form="4.4bsd",
    )
    assert again.response_ns == pytest.approx(response["response_ns"])


def test_advice_can_be_taken() -> None:
    """Each piece of advice, applied to the scenario, gives the predicted time; the simulation agrees that it helps."""
    overrides = ["workload.files=8"]
    before = headstart.simulate(SCENARIO, overrides=overrides).response_ns["mean"]
    found = model.of_scenario(SCENARIO, overrides=overrides, advise=True)
    assert found.advice[0].set == ("policy.first=64KiB",), "the paper's proposal: the whole cluster at once"
    assert ("device.cache_segments=8",) in [advice.set for advice in found.advice], "the paper's other one"
    for advice in found.advice:
        taken = model.of_scenario(SCENARIO, overrides=[*overrides, *advice.set])
        assert taken.response.total_ns == pytest.approx(advice.total_ns)
        assert headstart.simulate(SCENARIO, overrides=[*overrides, *advice.set]).response_ns["mean"] < before
    gains = [advice.gain for advice in found.advice]
    assert gains[:-1] == sorted(gains[:-1], reverse=True)
    none = model.of_scenario(SCENARIO, overrides=["workload.files=1", "workload.file_size=8KiB"], advise=True)
    assert none.advice == ()


def test_prefetching_is_advised_to_who_has_none() -> None:
    found = model.of_scenario(SCENARIO, overrides=["policy.name=demand", "workload.files=1"], advise=True)
    assert found.advice[0].set[0] == "policy.name=ffs"
    assert found.parameters["prefetch_limit"] == 0


def test_check_is_model_beside_simulation(run: Run) -> None:
    done = run("model", "check", SCENARIO, "--runs", "3", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    simulated = [headstart.simulate(SCENARIO, overrides=[f"seed={seed}"]) for seed in (1, 2, 3)]
    mean = sum(each.response_ns["mean"] for each in simulated) / 3
    assert found["simulated"]["response_ns"] == pytest.approx(mean)
    assert found["simulated"]["seek_ns"] == pytest.approx(sum(each.devices[0]["seek_ns"] for each in simulated) / 12)
    assert found["modelled"]["disk_requests"] == found["simulated"]["disk_requests"] == 4
    error = found["relative_error"]["response_ns"]
    assert error == pytest.approx(found["modelled"]["response_ns"] / mean - 1)
    assert abs(error) < 0.2, "three runs: their standard error is 6 %"
    assert found["standard_error"]["response_ns"] > 0
    shown = run("model", "check", SCENARIO, "--runs", "1")
    assert shown.returncode == 0
    for word in ("mean response", "model", "simulation", "1 run "):
        assert word in shown.stdout


def test_check_tells_how_far_it_is() -> None:
    shares: list[float] = []
    model.check(SCENARIO, runs=2, progress=shares.append)
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)
    with pytest.raises(HeadstartError, match=r"^runs: 0 is out of range; allowed: a whole number from 1"):
        model.check(SCENARIO, runs=0)


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("workload.placement=table-order", "workload.placement"),
        ("device.count=2", "device.count"),
        ("device.scheduler=sstf", "device.scheduler"),
        ("policy=obl", "policy.name"),
        ("device.model=object-store", "device"),
        ("workload.compute=exp:1ms", "workload.compute"),
    ],
)
def test_what_the_equations_do_not_know_is_refused(run: Run, override: str, key: str) -> None:
    for command in ("fs", "check"):
        done = run("model", command, SCENARIO, "--set", override)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith(f"headstart: {key}")
        one_line(done)


OPEN = ROOT / "examples" / "open-arrivals.toml"


def test_open_arrivals_beside_the_simulation(run: Run) -> None:
    done = run("model", "open", OPEN, "--runs", "2", "--set", "workload.requests=5000", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    parts = ("overhead_ns", "seek_ns", "rotation_ns", "transfer_ns")
    assert sum(found[part] for part in parts) == pytest.approx(found["service_ns"])
    assert found["wait_ns"] + found["service_ns"] == pytest.approx(found["response_ns"])
    check = found["check"]
    assert check["runs"] == 2
    assert check["relative_error"]["busy"] == pytest.approx(0, abs=0.1)
    assert check["modelled"]["response_ns"] == found["response_ns"]
    bursty = model.open_arrivals(OPEN, overrides=["workload.timing=bursty"])
    assert bursty.wait_ns > found["wait_ns"]
    assert bursty.service_ns == pytest.approx(found["service_ns"], rel=0.05)
    shown = run("model", "open", OPEN)
    assert shown.returncode == 0
    for word in ("queue", "seek", "the disk is busy"):
        assert word in shown.stdout


def test_open_arrivals_that_are_refused(run: Run) -> None:
    fast = run("model", "open", OPEN, "--set", "workload.interval=1ms")
    assert fast.returncode == 2
    assert "workload.interval: requests arrive faster than the disk serves them" in fast.stderr
    closed = run("model", "open", SCENARIO)
    assert closed.returncode == 2
    assert "workload.generator: " in closed.stderr


TRACE = ROOT / "examples" / "file-system-trace.toml"


def test_a_trace_beside_the_simulation(run: Run) -> None:
    done = run("model", "trace", TRACE, "--runs", "2", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    ours = model.of_trace(TRACE)
    assert {key: found[key] for key in ours.to_dict()} == json.loads(json.dumps(ours.to_dict()))
    assert sum(found["disk"].values()) <= found["elapsed_ns"]
    check = found["check"]
    assert check["runs"] == 2
    assert check["modelled"]["response_ns"] == found["response_ns"]
    assert check["relative_error"]["disk_requests"] == pytest.approx(0, abs=0.02)
    shown = run("model", "trace", TRACE, "--set", "policy.name=demand", "--runs", "1")
    assert shown.returncode == 0
    for word in ("mean response", "from the drive's cache", "rotation", "sequential runs", "the model is"):
        assert word in shown.stdout


def test_two_files_in_turn_are_near_the_simulation(tmp_path: Path) -> None:
    """Segments of the drive's cache survive switches among as many files as there are segments."""
    trace = tmp_path / "turns.csv"
    reads = "".join(f"0.0,R,1,{file},{block * 8192},8192,0\n" for block in range(12) for file in (1, 2))
    trace.write_text(f"time,op,pid,file,offset,size,dur_us\n{reads}", encoding="utf-8")
    overrides = [f"workload.trace={trace}", "policy.name=demand", "workload.placement.opens=before"]
    found = model.of_trace(TRACE, overrides=overrides)
    assert (found.parameters.runs, found.parameters.run_length, found.parameters.switches) == (2, 12 * 8192, 23)
    assert found.buffer_hits > 0
    simulated = headstart.simulate(TRACE, overrides=overrides)
    assert found.response_ns == pytest.approx(simulated.response_ns["mean"], rel=0.15)


def test_a_writer_leaves_in_clusters(tmp_path: Path) -> None:
    trace = tmp_path / "written.csv"
    lines = "".join(f"{0.001 * at},W,1,7,{8192 * at},8192,0\n" for at in range(12))
    trace.write_text(f"time,op,pid,file,offset,size,dur_us\n{lines}1.0,R,1,8,0,8192,0\n", encoding="utf-8")
    overrides = [f"workload.trace={trace}", "workload.writes=back", "workload.compute=trace"]
    for cluster, written in (([], 0), (["cache.write_cluster=32KiB"], 3)):
        found = model.of_trace(TRACE, overrides=[*overrides, *cluster])
        simulated = headstart.simulate(TRACE, overrides=[*overrides, *cluster])
        assert (found.parameters.writes, found.disk_writes) == (12, written)
        assert found.disk_writes == simulated.devices[0]["writes"]
        assert found.disk_requests == simulated.devices[0]["requests"]


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("workload.placement=table-order", "workload.placement"),
        ("workload.processes=per-pid", "workload.processes"),
        ("workload.compute=1ms", "workload.compute"),
        ("cache.blocks=10", "cache.blocks"),
        ("device.count=2", "device.count"),
        ("policy=obl", "policy.name"),
        ("workload.trace=absent.csv", "absent.csv"),
        ("workload.writes=through", "workload.writes"),
        ("cache.write_cluster=64KiB", "cache.write_cluster"),
    ],
)
def test_what_the_model_of_a_trace_does_not_know_is_refused(run: Run, override: str, key: str) -> None:
    done = run("model", "trace", TRACE, "--set", override)
    assert done.returncode == 2
    assert done.stdout == ""
    assert key in done.stderr
    one_line(done)

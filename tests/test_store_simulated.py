"""Recordings of `headstart store` in the simulator, and its stack as a scenario."""

import random
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart import HeadstartError
from tests.conftest import ROOT

EXAMPLE = ROOT / "examples" / "store.toml"
RATE = 2_000_000
STORE = {
    "name": "object-store",
    "latency": "20ms",
    "latency_p99": "60ms",
    "reads_per_second": 0,
    "network_bytes_per_second": RATE,
}


def shuffled(folder: Path, files: int, epochs: int, size: int = 16384) -> str:
    """Write a trace of shuffled files of one size, 1 ms of thinking after each."""
    chance = random.Random(5)
    order = [file for _ in range(epochs) for file in chance.sample(range(files), files)]
    trace = folder / "run.csv"
    lines = [f"{at / 1000},R,{file},0,{size},0.001" for at, file in enumerate(order)]
    trace.write_text("time,op,file,offset,size,think\n" + "\n".join(lines) + "\n")
    table = [f"{file},{size},{size},{file}.jpg" for file in range(files)]
    (folder / "run.files.csv").write_text("file,max_offset,disk_size,path\n" + "\n".join(table) + "\n")
    return str(trace)


def run(trace: str, policy: Any = "headstart-store", **given: Any) -> headstart.Result:
    """Simulate a trace of objects."""
    scenario = {
        "workload": {"trace": trace, "block_size": "4KiB"},
        "cache": {"size": "512KiB"},
        "policy": policy,
        "device": {"model": STORE, "scheduler": "fcfs"},
        "host": {"driver_overhead": "0s"},
    }
    return headstart.simulate({**scenario, **given})


def test_the_example_is_a_recording_and_its_stack() -> None:
    found = headstart.simulate(EXAMPLE)
    # 48 batches of 8, each followed by 40 ms: the recording has how long reads took, so that the rest is the program's.
    assert 47 * 40e6 < found.compute_ns < 47 * 60e6
    memory, disk = found.levels
    assert (memory["name"], disk["name"]) == ("memory", "disk") and disk["hits_ready"] > 0
    # What the disk had did not come from the store.
    assert found.devices[0]["blocks"] == disk["misses"] < memory["fetches"]
    larger = headstart.simulate(EXAMPLE, overrides=["level[1].size=32MiB"])
    assert larger.devices[0]["blocks"] < found.devices[0]["blocks"] and larger.elapsed_ns <= found.elapsed_ns


def test_connections_share_the_network(tmp_path: Path) -> None:
    trace = shuffled(tmp_path, 100, 2)
    found = run(trace, cache={"size": "4MiB"})
    moved = found.fetches * 4096
    # All fits: each object comes once. The link is the bottleneck, and nearly always busy.
    assert moved == 100 * 16384
    assert moved / RATE * 1e9 < found.elapsed_ns < 1.3 * moved / RATE * 1e9
    free = {**STORE, "network_bytes_per_second": 0}
    assert run(trace, cache={"size": "4MiB"}, device={"model": free}).elapsed_ns < found.elapsed_ns / 2
    both: list[dict[str, Any]] = [{"shared_bus": {}}, {"count": 2, "array": "mirror"}]
    for more in both:
        with pytest.raises(HeadstartError, match=r"network_bytes_per_second: is given beside shared_bus or an array"):
            run(trace, device={"model": STORE, **more})


def test_a_request_reads_one_object(tmp_path: Path) -> None:
    # In the order of the table: on a disk, neighbouring files are read together.
    size = 4096
    lines = [f"{at},R,{at},0,{size}" for at in range(50)]
    (tmp_path / "run.csv").write_text("time,op,file,offset,size\n" + "\n".join(lines) + "\n")
    table = [f"{file},{size},{size},{file}.jpg" for file in range(50)]
    (tmp_path / "run.files.csv").write_text("file,max_offset,disk_size,path\n" + "\n".join(table) + "\n")
    trace = str(tmp_path / "run.csv")
    for policy in ("headstart-store", "just-in-time"):
        assert run(trace, policy).devices[0]["requests"] == 50
        assert run(trace, policy, device={"model": "hp97560"}).devices[0]["requests"] < 50


@pytest.mark.parametrize("size", ["256KiB", "512KiB", "1MiB"])
def test_the_policy_fetches_little_more_than_the_optimum(tmp_path: Path, size: str) -> None:
    trace = shuffled(tmp_path, 100, 4)
    least = run(trace, {"name": "demand", "replacement": "min"}, cache={"size": size})
    found = run(trace, cache={"size": size})
    assert least.fetches <= found.fetches <= 1.25 * least.fetches
    assert found.elapsed_ns < least.elapsed_ns / 2

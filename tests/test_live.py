"""Live runs: results in the simulator's form, scenarios that cannot be played, and Ctrl-C."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import headstart
from tests.machines import PATIENCE_S

SMALL: dict[str, Any] = {
    "workload": {"compute": "exp:3ms", "block_size": "1KiB"},
    "cache": {"blocks": 8},
    "process": {"count": 4, "pattern": {"name": "gw", "blocks": 80, "reads": 80}, "barrier": {"every": 5}},
    "policy": {"name": "rapid-transit"},
    "device": {"model": {"name": "uniform", "fetch_time": "3ms"}, "count": 4, "scheduler": "fcfs"},
}


def with_keys(**sections: Any) -> dict[str, Any]:
    """SMALL, with keys of some sections laid over it."""
    return {**SMALL, **{name: {**SMALL.get(name, {}), **keys} for name, keys in sections.items()}}


def test_a_live_result_has_the_shape_of_a_simulated_one() -> None:
    simulated, live = headstart.simulate(SMALL), headstart.play(SMALL)
    assert live.to_dict().keys() == simulated.to_dict().keys()
    assert live.processes[0].keys() == simulated.processes[0].keys()
    assert live.intervals[0].keys() == simulated.intervals[0].keys()
    assert live.scenario == simulated.scenario
    assert (live.references, live.fetches, live.prefetches_wasted) == (80, 80, 0)
    assert live.hits_ready + live.hits_unready + live.misses == 80
    processes: Sequence[Mapping[str, Any]] = live.processes
    for process in processes:
        parts = ("compute", "driver", "overhead", "stall", "barrier", "idle")
        assert sum(process[f"{part}_ns"] for part in parts) == live.elapsed_ns
    assert sum(interval["references"] for interval in live.intervals) == 80
    assert live.notes[0].startswith("played by real threads: times are measured")


def test_the_speed_is_the_machine_s_not_the_result_s() -> None:
    # Long enough that the work before and after the run does not matter.
    slow = with_keys(workload={"compute": "600ms"}, device={"model": {"name": "uniform", "fetch_time": "600ms"}})
    began = time.monotonic()
    result = headstart.play(slow, speed=20)
    # 20 reads of 1.2 s each, at least partly in sequence.
    assert result.elapsed_ns >= 20 * 600_000_000
    assert time.monotonic() - began < result.elapsed_ns / 1e9, "faster than the scenario's time"
    assert "at 20 times the speed" in result.notes[0]


def test_no_prefetching_fetches_every_block_once_on_demand() -> None:
    result = headstart.play(with_keys(policy={"name": "demand", "replacement": "ru-set"}))
    assert (result.demand_fetches, result.prefetches) == (80, 0)


@pytest.mark.parametrize(
    ("scenario", "key", "allowed"),
    [
        (with_keys(device={"model": "hp97560"}), "device.model", "uniform"),
        (with_keys(device={"scheduler": "cscan"}), "device.scheduler", '"fcfs"'),
        (with_keys(device={"array": "mirror"}), "device.array", '"stripe"'),
        (with_keys(host={"driver_overhead": "1ms"}), "host.driver_overhead", "0s"),
        (with_keys(process={"count": 4000}, cache={"blocks": 8000}), "process", "at most"),
        (with_keys(process={"pattern": {"name": "gw", "reads": 20_000_000}}), "process.pattern", "at most 1000000"),
        ({"workload": {"references": ["A"]}, "device": SMALL["device"]}, "process.pattern", "[process]"),
    ],
)
def test_what_cannot_be_played_is_refused(scenario: dict[str, Any], key: str, allowed: str) -> None:
    with pytest.raises(headstart.HeadstartError) as refused:
        headstart.play(scenario)
    text = str(refused.value)
    assert text.startswith(key)
    assert allowed in text
    assert "\n" not in text


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_speeds_are_checked(speed: float) -> None:
    with pytest.raises(headstart.HeadstartError, match=r"^speed: .* allowed: "):
        headstart.play(SMALL, speed=speed)


def test_a_run_that_is_stopped_ends_long_before_its_time_and_leaves_no_thread() -> None:
    class EnoughError(Exception):
        pass

    told: list[float] = []

    def stop(share: float, _: int) -> None:
        told.append(share)
        raise EnoughError

    long = with_keys(workload={"compute": "1h"})
    before, began = set(threading.enumerate()), time.monotonic()
    with pytest.raises(EnoughError):
        headstart.play(long, progress=stop)
    # The run takes at least an hour; the interrupt takes at most 1.5 s on an otherwise idle machine.
    assert time.monotonic() - began < PATIENCE_S
    assert len(told) == 1
    # Threads of earlier tests may end meanwhile.
    assert set(threading.enumerate()) <= before

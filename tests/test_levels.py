"""Levels through the command and Python: what is printed, what a result says, what is refused."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import headstart
from tests.conftest import GLIMPSE, ROOT, TWO_LEVELS, Run

LEVELS: list[dict[str, Any]] = [
    {"name": "client", "blocks": 64, "policy": {"name": "ra", "degree": 2}},
    {"name": "server", "blocks": 128, "policy": "linux-2.6", "link": {"alpha": "1ms", "beta": "30us"}},
]
WORKLOAD = {"trace": str(GLIMPSE), "limit": 400}


def scenario(*levels: dict[str, Any], **workload: Any) -> dict[str, Any]:
    return {"workload": {**WORKLOAD, **workload}, "level": list(levels)}


def test_the_levels_are_a_table_that_says_what_the_json_says(run: Run) -> None:
    trace = ROOT / "examples" / "traces" / "glimpse.csv.xz"
    words = ("simulate", TWO_LEVELS, "--set", f"workload.trace={trace}")
    printed = run(*words)
    assert (printed.returncode, printed.stderr) == (0, "")
    levels = json.loads(run(*words, "--json", "-").stdout)["levels"]
    assert [level["name"] for level in levels] == ["L1", "L2"]
    lines = [line.split() for line in printed.stdout.splitlines()]
    header = next(line for line in lines if line[:2] == ["level", "policy"])
    assert header[2:] == ["blocks", "hits", "misses", "used", "wasted", "late", "accuracy", "coverage", "link"]
    for level in levels:
        line = next(line for line in lines if line and line[0] == level["name"])
        counts = [level["hits_ready"] + level["hits_unready"], level["misses"]]
        counts += [level[f"prefetches_{name}"] for name in ("used", "wasted", "late")]
        words_of = [f"{count:,}" for count in (level["blocks"], *counts)]
        shares = [f"{level[name]:.1%}" for name in ("accuracy", "coverage")]
        assert " ".join([*words_of, *shares]) in " ".join(line)


def test_ratios_are_what_their_counts_say() -> None:
    result = headstart.simulate(scenario(*LEVELS))
    for level in result.levels:
        used, prefetches = level["prefetches_used"], level["prefetches"]
        assert level["accuracy"] == pytest.approx(used / prefetches)
        assert level["coverage"] == pytest.approx(used / (used + level["misses"]))
        assert level["lateness"] == pytest.approx(level["prefetches_late"] / used)
        assert level["wasted_bytes"] == level["prefetches_wasted"] * 8192
    upper, lower = result.levels
    assert (upper["name"], lower["name"]) == ("client", "server")
    assert lower["references"] == upper["fetches"]
    # Blocks of 8 KiB are two pages; each request of the upper level pays alpha once.
    assert (lower["link_ns"] - 60_000 * upper["fetches"]) % 1_000_000 == 0
    assert upper["link_ns"] == 0


def test_a_level_without_frames_passes_on() -> None:
    one = headstart.simulate(scenario(LEVELS[0]))
    two = headstart.simulate(scenario(LEVELS[0], {"blocks": 0}))
    assert (one.elapsed_ns, one.fetches) == (two.elapsed_ns, two.fetches)
    assert two.levels[1]["bypass_blocks"] == two.levels[1]["references"] == one.fetches


def test_processes_and_their_levels(tmp_path: Any) -> None:
    lines = [f"{at / 100},R,{at % 3},0,{8192 * at},8192,1" for at in range(60)]
    (tmp_path / "three.csv").write_text("\n".join(["time,op,pid,file,offset,size,dur_us", *lines]) + "\n")
    keys = {"trace": str(tmp_path / "three.csv"), "processes": "per-pid"}
    result = headstart.simulate(scenario({"blocks": 4}, {"blocks": 50, "clients": 3}, **keys))
    assert [level["name"] for level in result.levels] == ["L1.1", "L1.2", "L1.3", "L2"]
    assert [process["references"] for process in result.processes] == [20, 20, 20]
    parts = ("compute", "driver", "overhead", "stall", "barrier", "idle")
    processes: Sequence[Mapping[str, Any]] = result.processes
    for process in processes:
        assert sum(process[f"{part}_ns"] for part in parts) == process["elapsed_ns"] == result.elapsed_ns
    assert result.references == 60


def test_arrivals_by_the_clock() -> None:
    one = headstart.simulate(scenario(LEVELS[0], arrival="open"))
    slow = headstart.simulate(scenario(LEVELS[0], arrival="open", time_scale=1000))
    assert one.elapsed_ns == one.stall_ns + one.idle_ns
    assert (one.compute_ns, slow.compute_ns) == (0, 0)
    assert slow.idle_ns > one.idle_ns
    assert slow.response_ns["mean"] < one.response_ns["mean"], "the disk is not asked for more than it can do"


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (({"blocks": 4}, {}), ("level[1].size", "missing", "blocks, size, footprint")),
        (({"blocks": 4}, {"blocks": 4, "coordinator": "nosuch"}), ("level[1]", "nosuch", "pfc")),
        (({"blocks": 4}, {"blocks": 4, "coordinator": {"name": "pfc", "queue": 0}}), ("coordinator.queue", "above 0")),
        (({"blocks": 4}, {"blocks": 4, "policy": "forestall"}), ("level[1].policy", "future", "without hints")),
        (({"blocks": 4}, {"blocks": 4, "replacement": "min"}), ("level[1].policy", "future", "without hints")),
        (({"blocks": 4}, {"blocks": 4, "clients": 2}), ("workload.processes", "several", "per-pid")),
        (({"blocks": 4}, {"blocks": 4, "speed": 1}), ("level[1].speed", "unknown key", "coordinator")),
        (({"blocks": 4}, {"size": {"level": "L7"}}), ("level[1].size.level", "L7", "L1")),
        (({"blocks": 4, "policy": {"name": "ra", "degrees": 3}},), ("degrees", "unknown", "degree")),
        (({"blocks": 4, "policy": "sarc", "replacement": "lru"},), ("replacement", "itself", "no replacement")),
    ],
    ids=lambda each: str(each)[:60],
)
def test_mistakes_name_their_key(levels: tuple[dict[str, Any], ...], words: tuple[str, ...]) -> None:
    with pytest.raises(headstart.HeadstartError) as error:
        headstart.simulate(scenario(*levels))
    text = str(error.value)
    assert "\n" not in text
    assert all(word in text for word in words), text


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        (scenario(*LEVELS), "level"),
        (scenario(LEVELS[0], arrival="open"), "workload.arrival"),
        (scenario(LEVELS[0], processes="per-pid"), "workload.processes"),
    ],
    ids=["levels", "open", "per-pid"],
)
def test_the_bound_says_what_it_is_not_for(keys: dict[str, Any], key: str) -> None:
    with pytest.raises(headstart.HeadstartError, match=f"^{key}: the bound"):
        headstart.lower_bound(keys)

"""Policies written in Python: equal to built-in ones that do the same, and refused in one line."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart import policies
from tests.conftest import COMMAND, CSCOPE_1, FIGURE_1, ROOT, TWO_LEVELS, Run

OWN = ROOT / "examples" / "own_policies.py"
CLASSES = ("Lru", "Tagged", "Ahead", "Streams", "Belady", "Horizon")
SCENARIO: dict[str, Any] = {
    "workload": {"trace": str(CSCOPE_1), "limit": 3000, "addresses": "compact-chunks"},
    "cache": {"blocks": 100},
    "device": {"model": "hp97560", "count": 2},
}


def figures(policy: Any, scenario: dict[str, Any] | None = None) -> str:
    """The counts and times of a run, without its names."""
    result = headstart.simulate(scenario or SCENARIO, policy=policy).to_dict()
    for key in ("scenario", "notes"):
        result.pop(key)
    return json.dumps(result)


@pytest.mark.parametrize(
    ("built_in", "own"),
    [
        ("demand", {"name": "demand", "replacement": f"{OWN}:Lru"}),
        ("obl", f"{OWN}:Tagged"),
        ({"name": "ra", "degree": 9}, {"name": f"{OWN}:Ahead", "depth": 9}),
        ({"name": "ra", "degree": 9}, {"name": f"{OWN}:Ahead", "depth": 9, "replacement": f"{OWN}:Lru"}),
        ({"name": "demand", "replacement": "min"}, f"{OWN}:Belady"),
    ],
    ids=["lru", "obl", "fixed depth", "fixed depth over lru", "min"],
)
@pytest.mark.parametrize("issue", ["blocks", "whole"])
def test_what_does_the_same_has_the_same_figures(built_in: Any, own: Any, issue: str) -> None:
    scenario = {**SCENARIO, "workload": {**SCENARIO["workload"], "issue": issue}}
    assert figures(built_in, scenario) == figures(own, scenario)


def test_levels_and_several_processes() -> None:
    scenario = headstart.explain(TWO_LEVELS)
    assert "own_policies" not in scenario
    built_in = headstart.simulate(TWO_LEVELS, overrides=['level[1].policy="ra"', "workload.limit=2000"])
    mine = headstart.simulate(TWO_LEVELS, overrides=[f'level[1].policy="{OWN}:Ahead"', "workload.limit=2000"])
    assert [level["fetches"] for level in built_in.levels] == [level["fetches"] for level in mine.levels]
    several = {**SCENARIO, "workload": {**SCENARIO["workload"], "processes": "per-pid"}}
    assert figures("obl", several) == figures(f"{OWN}:Tagged", several)


@pytest.mark.parametrize("name", CLASSES)
def test_the_examples_conform(name: str) -> None:
    headstart.conformance(f"{OWN}:{name}")


class Deep(headstart.Readahead):
    """Reads ahead."""

    def __init__(self, depth: int = 4) -> None:
        self.depth = depth

    def requested(self, request: headstart.Request) -> range:
        assert not request.is_cached(request.end + 1_000_000)
        assert request.found[0] != "absent" or not request.is_resident(request.first)
        return range(request.end, request.end + self.depth)


def test_classes_and_objects_stand_where_names_do() -> None:
    same = {figures(each) for each in (Deep, Deep(), Deep(4), {"name": Deep}, {"name": Deep, "depth": 4}, "ra")}
    assert len(same) == 1
    result = headstart.simulate(SCENARIO, policy=Deep(depth=7))
    assert result.scenario["policy"]["depth"] == 7
    assert headstart.simulate(result.scenario).elapsed_ns == result.elapsed_ns
    assert result.python_calls > 0
    assert result.python_ns > 0
    assert headstart.simulate(SCENARIO).python_calls == 0
    frame = headstart.compare(CSCOPE_1, policies=["ra", Deep, Deep(9)], workload={"limit": 500}, jobs=2)
    assert list(frame["policy"].str.rpartition(":")[2]) == ["ra", "Deep", "depth=9"]
    assert frame["elapsed_ns"][0] == frame["elapsed_ns"][1] != frame["elapsed_ns"][2]


def test_many_at_a_time_are_as_one_at_a_time() -> None:
    names = [f"{OWN}:{name}" for name in CLASSES]
    rows = [
        headstart.compare(
            CSCOPE_1, policies=names, disks=[1, 2], cache=100, device="hp97560", workload={"limit": 1500}, jobs=jobs
        ).to_json()
        for jobs in (1, 4)
    ]
    assert rows[0] == rows[1]


def test_names_with_paths_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    lru = "examples/own_policies.py:Lru"
    assert policies.policy_keys(f"ra:{lru}:degree=3") == {"name": "ra", "replacement": lru, "degree": 3}
    assert policies.policy_keys(lru) == {"name": "demand", "replacement": lru}
    assert policies.levels_of(f"linux/{OWN}:Ahead:depth=2/demand:{lru}") == [
        "linux",
        f"{OWN}:Ahead:depth=2",
        f"demand:{lru}",
    ]
    assert policies.levels_of(f"{lru}/linux:read_ahead=1MiB") == [lru, "linux:read_ahead=1MiB"]
    assert [policies.kind(f"{OWN}:{name}") for name in CLASSES] == [
        *("demand", "read-ahead", "read-ahead", "read-ahead", "hinted", "hinted"),
    ]
    assert policies.knows_future(f"{OWN}:Belady")
    assert not policies.knows_future(f"{OWN}:Ahead")


WRONG = """
import headstart
class Raises(headstart.Readahead):
    def requested(self, request):
        return [1 // 0]
class Words(headstart.Readahead):
    def requested(self, request):
        return ["a"]
class Negative(headstart.Readahead):
    def requested(self, request):
        return range(-3, 4)
class Endless(headstart.Readahead):
    def requested(self, request):
        import itertools
        return itertools.count()
class Gone(headstart.Replacement):
    def candidates(self, incoming):
        return [incoming]
class Silent(headstart.Replacement):
    def candidates(self, incoming):
        return []
class Nothing(headstart.Replacement):
    def candidates(self, incoming):
        return None
class Unfinished(headstart.Readahead):
    pass
class Needs(headstart.Readahead):
    def __init__(self, depth):
        raise ValueError("too\\ndeep")
    def requested(self, request):
        return []
class Leaves(headstart.Readahead):
    def requested(self, request):
        raise SystemExit(3)
class Present(headstart.Policy):
    def victim(self, block, cache):
        return block
class Twice(headstart.Policy):
    def decide(self, cache):
        return [(0, None), (0, None)]
    def victim(self, block, cache):
        return None
class Beyond(headstart.Policy):
    def decide(self, cache):
        return [(1 << 30, None)]
    def victim(self, block, cache):
        return None
class Refuses(headstart.Policy):
    def victim(self, block, cache):
        return None
class Late(headstart.Readahead):
    kept = None
    def requested(self, request):
        Late.kept = Late.kept or request
        return [Late.kept.is_cached(0) and 0]
"""
SAID = {
    "Raises": "requested: ZeroDivisionError: integer division or modulo by zero (wrong.py, line 5)",
    "Words": "requested named 'a'; allowed: blocks of the file",
    "Negative": "requested named range(-3, 4); allowed",
    "Endless": "requested named more than ",
    "Gone": "candidates named block ",
    "Silent": "candidates named no block that may leave, though block ",
    "Nothing": "candidates returned None; allowed",
    "Unfinished": "has no method requested; allowed: a class that defines requested",
    "Needs": "missing, and wrong.py:Needs has no default for it; allowed: wrong.py:Needs:depth=VALUE",
    "Needs:depth=1": "__init__: ValueError: too deep (wrong.py, line 29)",
    "Needs:dept=1": "policy.dept: unknown key of wrong.py:Needs; allowed: depth",
    "Leaves": "requested: SystemExit: 3",
    "Present": "victim chose block ",
    "Twice": "decide fetched block 0, which is in the cache or on its way",
    "Beyond": "decide fetched block 1073741824; allowed: a block below ",
    "Refuses": "victim chose no block, though block ",
    "Other": 'wrong.py has no policy "Other"; allowed: Raises, Words,',
}


@pytest.mark.parametrize("name", SAID)
def test_mistakes_are_one_line(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    done = run("compare", str(CSCOPE_1), "--cache", "40", "--device", "hp97560", "--policies", f"wrong.py:{name}")
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")
    assert SAID[name] in done.stderr


@pytest.mark.parametrize("name", ["Raises", "Gone", "Silent", "Present", "Refuses"])
def test_what_breaks_a_promise_does_not_conform(tmp_path: Path, name: str) -> None:
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    with pytest.raises(AssertionError, match=rf"wrong\.py:{name}\."):
        headstart.conformance(f"{tmp_path}/wrong.py:{name}")


class Moody(headstart.Replacement):
    """Makes different choices each time that it is created."""

    made = 0

    def __init__(self) -> None:
        Moody.made += 1
        self.odd = Moody.made % 2
        self.blocks = set[int]()

    def inserted(self, block: int) -> None:
        self.blocks.add(block)

    def candidates(self, incoming: int) -> list[int]:
        return sorted(self.blocks, reverse=bool(self.odd))

    def forget(self, block: int, evicted: bool) -> None:
        self.blocks.remove(block)


def test_decisions_that_are_not_the_same_again_do_not_conform() -> None:
    with pytest.raises(AssertionError, match="the same events must give the same victims"):
        headstart.conformance(Moody)


def test_files_that_there_are_not_and_files_that_fail(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import headstart\nraise OSError('a\\nb')\n", encoding="utf-8")
    for name, said in (("none.py:A", "none.py: no such file"), ("fails.py:A", "fails.py: OSError: a b; allowed:")):
        done = run("simulate", str(FIGURE_1), "--set", f"policy={name}")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr


def test_a_file_beside_the_scenario_is_found(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "own.py").write_text(OWN.read_text(encoding="utf-8"), encoding="utf-8")
    text = 'workload = {references = ["A", "b", "A"]}\ncache = {blocks = 1}\npolicy = "own.py:Horizon"\n'
    text += 'device = {model = "uniform", fetch_time = "1ms"}\n'
    (tmp_path / "in" / "s.toml").write_text(text, encoding="utf-8")
    done = run("simulate", "in/s.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "note: policies in Python: " in done.stdout
    done = run("compare", "in/s.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "in/own.py:Horizon" in done.stdout


def test_a_grid_and_advice(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet", reason="it writes Parquet: pip install '.[sweep]'")
    grid = {**SCENARIO, "grid": {"policy": ["obl", f"{OWN}:Tagged"], "cache.blocks": [64, 128]}}
    grid["workload"] = {**grid["workload"], "limit": 500}
    frame = headstart.sweep(grid)
    assert list(frame["elapsed_ns"][:2]) == list(frame["elapsed_ns"][2:])
    advice = headstart.advise(CSCOPE_1, device="nvme", seconds=600, policies=[f"{OWN}:Ahead"], workload={"limit": 400})
    assert f"{OWN}:Ahead" in json.dumps(advice.to_dict())


ENDLESS = """
import headstart
class Slow(headstart.Readahead):
    def requested(self, request):
        print("asked", flush=True)
        while True:
            pass
"""


def test_ctrl_c_ends_a_policy_that_does_not(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(ENDLESS, encoding="utf-8")
    words = [str(COMMAND), "simulate", str(FIGURE_1), "--set", "policy=slow.py:Slow", "--set", "workload.compute=0s"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    for depth, degree in ((2, 2), (5, 5)):
        path.write_text(
            f"import headstart\nclass Mine(headstart.Readahead):\n"
            f"    def requested(self, request):\n        return range(request.end, request.end + {depth})\n",
            encoding="utf-8",
        )
        os.utime(path, ns=(time.time_ns(), time.time_ns() + degree))
        assert figures(f"{path}:Mine") == figures({"name": "ra", "degree": degree})


def test_nothing_of_a_call_is_seen_after_it() -> None:
    kept: list[headstart.Request] = []

    class Keeps(headstart.Readahead):
        def requested(self, request: headstart.Request) -> None:
            kept.append(request)

    headstart.simulate(SCENARIO, policy=Keeps)
    assert kept[0].count >= 1
    with pytest.raises(RuntimeError, match="only while a method of the policy is called"):
        kept[0].is_cached(0)

"""Everything in the registries: listed, documented, and able to run."""

import json
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart.cli.listing import Registry
from tests.conftest import GLIMPSE, Run

CATALOG = headstart.catalog()
DEVICES = [entry["name"] for entry in CATALOG["devices"]]
# The optimum takes only tiny instances; policies for parallel programs need such a program.
POLICIES = [entry for entry in CATALOG["policies"] if entry["name"] != "optimum" and entry["family"] != "parallel"]


def replacements(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the replacements that a policy takes, as keys: a read-ahead fetches more than MIN knows of."""
    if not entry["open_replacement"]:
        return [{}]
    hinted = entry["family"] not in ("read-ahead", "predictor")
    return [{"replacement": each["name"]} for each in CATALOG["replacements"] if hinted or not each["hinted"]]


# For a read-ahead the first replacements suffice: the level joins any two, and the core's tests draw them at random.
CASES = [
    {"name": entry["name"], **each}
    for entry in POLICIES
    for each in replacements(entry)[: 2 if entry["family"] in ("read-ahead", "predictor") else None]
]


@pytest.mark.parametrize("which", list(Registry))
def test_list_shows_each_registry(run: Run, which: Registry) -> None:
    done = run("list", which, "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == CATALOG[which]
    readable = run("list", which).stdout
    for entry in CATALOG[which]:
        assert {"name", "summary", "source", "keys"} <= entry.keys()
        assert entry["name"] in readable
        # Long words are folded.
        assert entry["summary"].split()[0][:30] in readable
        assert entry.get("family", "") in readable


@pytest.mark.parametrize("device", DEVICES)
def test_every_policy_runs_on_every_device(device: str) -> None:
    own_keys = {"fetch_time": "5ms"} if device == "uniform" else {}
    scenario = {
        # Block by block: MIN fetches least only if blocks come one after another.
        "workload": {"trace": str(GLIMPSE), "limit": 500, "issue": "blocks"},
        "cache": {"blocks": 128},
        "device": {"model": device, **own_keys, "count": 3},
    }
    by_min = scenario | {"policy": {"name": "demand", "replacement": "min"}}
    least = headstart.simulate(by_min).fetches
    has_arm = headstart.device(device, keys=own_keys).mechanics is not None
    for policy in CASES:
        entry = next(entry for entry in POLICIES if entry["name"] == policy["name"])
        if entry.get("needs") == "drive" and not has_arm:
            with pytest.raises(headstart.HeadstartError, match=r"policy\.name: .* no arm"):
                headstart.simulate(scenario | {"policy": policy})
            continue
        result = headstart.simulate(scenario | {"policy": policy})
        bound_ns = headstart.lower_bound(scenario | {"policy": policy})["elapsed_ns"]
        keys = entry["keys"]
        own = {each["name"]: each["keys"] for each in CATALOG["replacements"]}.get(policy.get("replacement", ""))
        named = {**policy, "replacement": {"name": policy["replacement"], **own}} if own else policy
        assert {**keys, **named}.items() <= result.scenario["policy"].items(), (policy, "the result names every key")
        assert result.references == result.hits_ready + result.hits_unready + result.misses, policy
        assert result.elapsed_ns >= bound_ns > 0, policy
        assert result.fetches >= least, policy


@pytest.mark.parametrize("entry", CATALOG["coordinators"], ids=lambda each: each["name"])
def test_every_coordinator_runs(entry: dict[str, Any]) -> None:
    levels = [
        {"blocks": 64, "policy": "linux-2.6"},
        {"blocks": 128, "policy": "ra", "link": {"alpha": "6ms"}, "coordinator": entry["name"]},
    ]
    workload = {"trace": str(GLIMPSE), "limit": 500, "issue": "whole"}
    result = headstart.simulate({"workload": workload, "level": levels})
    assert result.scenario["level"][1]["coordinator"] == {"name": entry["name"], **entry["keys"]}
    upper, lower = result.levels
    assert lower["references"] == upper["fetches"] > 0
    assert lower["link_ns"] >= 6_000_000


def test_coordinators_and_read_aheads_are_those_of_the_design() -> None:
    assert [entry["name"] for entry in CATALOG["coordinators"]] == ["none", "du", "demote", "pfc", "duel"]
    families = {entry["name"]: entry["family"] for entry in CATALOG["policies"]}
    assert {families[name] for name in ("obl", "ra", "linux-2.6", "linux", "sarc", "amp", "stride")} == {"read-ahead"}
    assert (families["demand"], families["forestall"]) == ("demand", "hinted")
    assert families["rapid-transit"] == "parallel"
    assert {name for name, family in families.items() if family == "predictor"} == {
        *("last-successor", "stable-successor", "probability-graph", "ppm", "mithril", "leap", "patterns")
    }


@pytest.mark.parametrize("entry", CATALOG["schedulers"], ids=lambda each: each["name"])
def test_every_scheduler_runs(entry: dict[str, Any]) -> None:
    scenario = {"workload": {"generator": "random", "requests": 300}, "policy": "aggressive"}
    result = headstart.simulate(scenario, overrides=[f"device.scheduler={entry['name']}"])
    requests = result.devices[0]["requests"]
    # A scheduler that merges serves several fetches with one request.
    assert 0 < requests <= result.fetches
    assert requests == result.fetches or entry["keys"].get("merge")


@pytest.mark.parametrize("entry", CATALOG["workloads"], ids=lambda each: each["name"])
def test_every_generator_runs(entry: dict[str, Any], tmp_path: Path) -> None:
    # The workload's own pauses would be added.
    pauses = {key: "0s" for key in ("delay", "compile") if key in entry["keys"]}
    # A file of 64 KiB by 8 KiB is eight requests.
    longer = {"files": 25} if entry["name"] == "files" else {}
    workload = {"generator": entry["name"], "limit": 200, "compute": "1ms", **pauses, **longer}
    result = headstart.simulate({"workload": workload, "device": {"model": "uniform", "fetch_time": "1ms"}})
    assert result.requests == 200
    assert result.compute_ns == 200_000_000
    written = headstart.trace_generate(entry["name"], tmp_path / "trace.csv", keys=longer)
    assert written["requests"] >= 200
    read = headstart.trace_info(tmp_path / "trace.csv")
    assert read["requests"] >= 200

"""A policy has one time for a trace, cache and device, whichever command runs it and whatever is compared with it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart.runs.compare import DEFAULT_POLICIES, plan
from headstart.runs.curve import curve
from tests.conftest import CSCOPE_1, GLIMPSE, ROOT, Run

TRACES = {
    "code search": {"trace": str(CSCOPE_1), "limit": 300},
    "index": {"trace": str(GLIMPSE), "limit": 200},
    "six programs": {"trace": str(ROOT / "examples" / "traces" / "multi6.csv.xz"), "limit": 300},
}
DEVICES = ("seagate-exos-x20", "nvme", "object-store")
CACHE = 200
"""Blocks: fewer than each trace touches."""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TRACES)
def test_any_subset_of_the_policies_gives_the_same_rows(name: str, device: str) -> None:
    def rows(policies: list[str]) -> dict[str, dict[str, Any]]:
        done = plan(TRACES[name], policies=policies, device=device, cache=CACHE).run()
        # Only a table says which policy is fastest.
        of_table = ("best", "best_deployable")
        return {row.policy: {k: v for k, v in row.to_dict().items() if k not in of_table} for row in done.rows}

    policies = [*DEFAULT_POLICIES, "fixed-horizon", "tip2", "reverse-aggressive", "obl"]
    whole = rows(policies)
    assert whole.keys() == set(policies)
    chance = random.Random(f"{name} {device}")
    for subset in [[policy] for policy in policies] + [chance.sample(policies, 3) for _ in range(3)]:
        assert rows(subset) == {policy: whole[policy] for policy in subset}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TRACES)
def test_advise_compare_simulate_and_curve_agree(name: str, device: str) -> None:
    workload = TRACES[name]
    policies = ["demand", "linux", "demand:min", "forestall", "just-in-time"]
    advice = headstart.advise(workload, device=device, cache=CACHE, seconds=3600, policies=policies).devices[0]
    advised = {each.policy: each.elapsed_ns for each in advice.tried}
    rows = plan(workload, policies=policies, device=device, cache=CACHE).run().rows
    compared = {row.policy: row.result.elapsed_ns for row in rows}
    assert compared == {policy: advised[policy] for policy in policies}
    points = curve(workload, policies=policies, cache=CACHE, device=device).points
    assert {point.policy: point.elapsed_ns for point in points} == compared
    for row in rows:
        assert headstart.simulate(row.result.scenario).elapsed_ns == compared[row.policy]
        short = {"workload": {"addresses": "auto", **workload}, "cache": {"blocks": CACHE}, "device": device}
        assert headstart.simulate(short, policy=row.result.scenario["policy"]).elapsed_ns == compared[row.policy]


def test_a_hinted_policy_takes_a_request_of_many_blocks_at_once(tmp_path: Path) -> None:
    # The first byte of an object takes some 30 ms: 16 blocks requested one after another would take 16 times as long.
    path = tmp_path / "far.csv"
    path.write_text("offset,size\n" + "".join(f"{at * 7_000_000},131072\n" for at in (3, 1, 4, 15, 9, 2, 6)))
    policies = ["demand", "demand:min", "aggressive", "fixed-horizon", "forestall", "just-in-time", "tip2"]
    rows = plan(path, policies=policies, device="object-store", cache="1MiB").run().rows
    demand = rows[0].result
    for row in rows:
        assert row.result.scenario["workload"]["issue"] == "whole"
        assert row.result.elapsed_ns <= 1.02 * demand.elapsed_ns, row.policy
    assert rows[1].result.elapsed_ns == demand.elapsed_ns


def table(path: Path, rows: list[tuple[float, str, int, int]]) -> Path:
    """Write a trace of (time in s, R or W, offset, size)."""
    path.write_text(
        "time,op,offset,size\n" + "".join(f"{at:.6f},{op},{offset},{size}\n" for at, op, offset, size in rows)
    )
    return path


def test_a_trace_without_reads_is_refused(tmp_path: Path, run: Run) -> None:
    path = table(tmp_path / "appends.csv", [(at / 1000, "W", at * 4096, 4096) for at in range(200)])
    for command in (["advise"], ["compare"], ["curve"], ["curve", "--device", "nvme"], ["advise", "--limit", "50"]):
        done = run(*command, path)
        assert (done.returncode, done.stdout) == (2, ""), command
        (line,) = done.stderr.splitlines()
        assert "appends.csv: reads nothing, all requests are writes; allowed: a trace with reads" in line, command


def mixed(tmp_path: Path, *, reads: bool, writes: bool) -> Path:
    """Write a trace of reads here and there, between four times as many appends."""
    chance = random.Random(5)
    rows = []
    for at in range(1500):
        where = chance.randrange(100_000) * 8192
        if at % 5 == 0 and reads:
            rows.append((at / 1000, "R", where, 8192))
        elif at % 5 and writes:
            rows.append((at / 1000, "W", (1 << 30) + (at * 4 // 5) * 8192, 8192))
    return table(tmp_path / f"mixed-{reads}-{writes}.csv", rows)


def test_advice_for_a_trace_with_writes_is_that_for_its_reads(tmp_path: Path) -> None:
    both, alone = mixed(tmp_path, reads=True, writes=True), mixed(tmp_path, reads=True, writes=False)
    for device in ("seagate-exos-x20", "nvme"):
        advised = [headstart.advise(path, device=device, seconds=3600) for path in (both, alone)]
        for advice in advised:
            assert advice.devices[0].verdict in ("no benefit", "disclose")
            assert advice.devices[0].recommended.policy in ("demand", "linux")
        assert len({advice.devices[0].recommended.policy for advice in advised}) == 1
    assert "1,200 of 1,500 references are writes" in " ".join(advised[0].notes)


def test_writes_are_no_reads_in_any_command(tmp_path: Path, run: Run) -> None:
    both = mixed(tmp_path, reads=True, writes=True)
    words = (both, "--policies", "demand,linux", "--cache", "100%", "--device", "nvme", "--json", "-")
    found = json.loads(run("compare", *words).stdout)
    assert [note for note in found["notes"] if "references are writes" in note]
    assert found["scenario"]["workload"]["writes"] == "back"
    # 300 reads miss, of which some fall on a block that has been read before; appends need no fetch.
    fetched = found["rows"][0]["demand_fetches"]
    assert fetched <= 300 and found["rows"][0]["fetches"] == fetched
    for more in ([], ["--device", "nvme"]):
        done = json.loads(run("curve", both, "--policies", "lru,arc", "--cache", "100%", *more, "--json", "-").stdout)
        assert done["references"] == 300
        assert {point["misses"] for point in done["points"]} == {fetched}
        assert [note for note in done["notes"] if "1,200 of 1,500 references are writes" in note]


def test_hints_of_several_processes_are_of_their_reads(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    rows = ((f"{at / 100:.2f}", "RW"[at % 4 == 3], at % 2, at % 2, at * 8192) for at in range(40))
    path.write_text("time,op,pid,file,offset,size\n" + "".join(",".join(map(str, row)) + ",8192\n" for row in rows))
    for policy in ("demand", "aggressive", "forestall", "tip2"):
        workload = {"trace": str(path), "processes": "per-pid", "writes": "back"}
        result = headstart.simulate({"workload": workload, "cache": {"blocks": 9}, "device": "hp97560"}, policy=policy)
        assert (result.references, result.writes, result.write_misses) == (40, 10, 10), policy
        # A block that one process prefetches may be evicted before its use, by another one's demand.
        assert result.fetches == 30 or (policy != "demand" and result.fetches > 30), policy

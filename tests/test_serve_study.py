"""The serve study: its cases, its traces, its verdicts, and one case in real time."""

import dataclasses
import lzma
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart_lab.livestudy.platform import wait_for
from headstart_lab.servestudy import live, study, workloads
from headstart_lab.servestudy.cases import DISKS, NAMES, RATIOS, SETTINGS, Case, Way, cases, cost_ns
from headstart_lab.servestudy.live import Figures
from headstart_lab.servestudy.study import Outcome, findings, read_rows, summary
from headstart_lab.servestudy.way import measured_way
from headstart_lab.servestudy.workloads import PAGE, THINK_NS, Workload

CASE = Case("seagate-cheetah-9lp", "Multi", "ra", "H", 1.0, "pfc")


def row(case: Case, measured_ms: float, predicted_ms: float, hits: int = 100) -> Outcome:
    """Return a row with these responses, and hits of L1 where the simulator has 100."""
    counts: dict[str, Any] = {field.name: 100 for field in dataclasses.fields(Figures) if field.name != "response_ns"}
    return Outcome(
        case=case,
        requests=1,
        footprint=1,
        measured=Figures(**(counts | {"response_ns": measured_ms * 1e6, "l1_hits": hits})),
        predicted=Figures(**counts, response_ns=predicted_ms * 1e6),
        late_p99_ns=0,
        way=Way(400_000),
    )


def test_the_matrix_is_whole_and_each_case_a_scenario() -> None:
    disks, names = ["seagate-cheetah-9lp", "ibm-36gb-10k"], ["OLTP", "Web", "Multi"]
    whole = cases(disks, names, quick=False)
    assert len(whole) == len(set(whole)) == len(disks) * len(names) * len(NAMES) * len(SETTINGS) * len(RATIOS) * 3
    assert set(cases(disks, names, quick=True)) < set(whole)
    upper, lower = Case("ibm-36gb-10k", "OLTP", "sarc", "L", 0.1, "du").levels(footprint=530)
    assert (upper["blocks"], lower["blocks"], lower["coordinator"]) == (5, 1, "du")
    assert (lower["link"], cost_ns(0), cost_ns(2)) == ({"alpha": "6ms", "beta": "30us"}, 6_000_000, 6_060_000)
    assert CASE.levels(100, Way(412_345))[1]["link"] == {"alpha": "6412345ns", "beta": "30000ns"}
    # A reply of one page takes `way_ns` longer, and one of three pages another 10 us.
    assert CASE.levels(100, Way(412_345, page_ns=5_000))[1]["link"] == {"alpha": "6407345ns", "beta": "35000ns"}


def test_traces_are_of_one_file_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, scratch = tmp_path / "traces", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    # Unit, sector, bytes, operation, second. Unit 1 begins after the last page of unit 0.
    (folder / "Financial1.spc").write_text("1,0,512,R,9\n")
    lines = ["0,8,512,r,0.5", "1,0,8192,w,0.5", "0,24,4096,r,0.7"]
    with lzma.open(folder / "financial1_first10k.spc.xz", "wt") as file:
        file.write("\n".join([*lines, ""]))
    monkeypatch.chdir(tmp_path)
    (made,) = workloads.workloads(scratch, folder, ["OLTP"])
    assert (made.requests, made.footprint, made.open) == (3, 4, True)
    # Two requests of one instant are placed a millisecond apart.
    expected = [(0.5, PAGE, PAGE), (0.501, 4 * PAGE, 2 * PAGE), (0.7, 3 * PAGE, PAGE)]
    assert made.trace.read_text().splitlines()[1:] == [f"{time:.6f},{at},{size}" for time, at, size in expected]
    moved = workloads.later(made, 200_000).trace.read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in moved] == ["0.500000", "0.501200", "0.700200"]
    moved = workloads.later(made, -2_000_000).trace.read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in moved] == ["0.500000", "0.500000", "0.698000"]
    # A closed loop has think times instead of timestamps.
    loop = workloads._written("Multi", tmp_path / "loop.csv", [(0.0, 0, 1, 3)])
    assert loop.trace.read_text().splitlines() == ["offset,size,think_ns", f"{PAGE},{2 * PAGE},{THINK_NS}"]


def test_verdicts_follow_what_is_required() -> None:
    none = dataclasses.replace(CASE, coordinator="none")
    good = findings([row(CASE, 10.0, 9.9), row(none, 11.0, 11.2)])
    assert [each.verdict for each in good] == ["agrees"] * 3
    # 16 % slower, 3 % fewer hits, and PFC gains where the simulator has a loss.
    bad = findings([row(CASE, 10.0, 12.0), row(none, 11.0, 11.2, hits=97)])
    assert [each.verdict for each in bad] == ["differs"] * 3
    assert "in 1 of 2" in str(bad[0].ours)
    assert "-7.14%" in bad[2].note


def test_a_second_run_says_how_far_counts_are_determined() -> None:
    first = row(CASE, 10.0, 9.9, hits=97)
    # The simulator has 100 hits: near the second run, between both, far from both.
    for hits, alike, simulated in ((101, 0, ("0", "1", "1")), (110, 0, ("0", "0", "1")), (96, 1, ("0", "0", "0"))):
        again = dataclasses.replace(first.measured, l1_hits=hits)
        (found,) = [
            each for each in findings([dataclasses.replace(first, again=again)]) if "second run" in each.quantity
        ]
        assert found.ours == f"within 2% in {alike} of 1"
        assert tuple(part.split(": ")[-1] for part in found.note.split("; ")) == simulated


def test_the_page_has_a_line_for_each_workload_and_algorithm() -> None:
    near, far = row(CASE, 10.1, 10.0), row(dataclasses.replace(CASE, coordinator="du"), 9.8, 10.0, hits=90)
    other = row(dataclasses.replace(CASE, algorithm="amp"), 10.0, 10.0)
    assert summary([near, far, other]) == [
        ["seagate-cheetah-9lp", "Multi", "ra", "2", "-2.0%", "-0.5%", "+1.0%", "1 of 2"],
        ["seagate-cheetah-9lp", "Multi", "amp", "1", "+0.0%", "+0.0%", "+0.0%", "1 of 1"],
    ]


def test_a_closed_loop_thinks_once_for_each_request_in_both_worlds(small: Workload) -> None:
    # Requests have two pages: a constant think time of a scenario would come after each page.
    for near_ns in (0, 20_000):
        found = live.predicted(CASE, small, Way(near_ns=near_ns))
        waited = (found.response_ns - near_ns) * small.requests
        assert found.elapsed_ns == pytest.approx(waited + (THINK_NS + near_ns) * small.requests, rel=1e-6)
    assert CASE.scenario(small, Way(near_ns=20_000))["workload"]["compute_scale"] == 1.2


def test_a_read_of_the_disk_takes_the_servers_own_time_longer(small: Workload) -> None:
    case = dataclasses.replace(CASE, disk="uniform", coordinator="none")
    found = []
    for way in (Way(), Way(disk_ns=100_000, disk_page_ns=7_000), Way(disk_ns=-1)):
        scenario = case.scenario(small, way) | {"device": {"model": "uniform", "fetch_time": "2ms"}}
        scenario["level"] = [level | {"policy": "demand"} for level in scenario["level"]]
        found.append(headstart.simulate(scenario))
    plain, longer, noise = found
    assert [len(each.levels) for each in found] == [2, 3, 2]
    assert plain == noise
    # Six runs of 12 requests with two pages, none of which is cached.
    assert longer.elapsed_ns - plain.elapsed_ns == 6 * 12 * 107_000
    (*upper, disk) = longer.levels
    assert (disk["fetches"], disk["references"]) == (upper[1]["fetches"], upper[1]["fetches"])
    assert [level["fetches"] for level in upper] == [level["fetches"] for level in plain.levels]


def test_rows_are_read_again_but_for_one_that_was_cut_short(tmp_path: Path) -> None:
    path, kept = tmp_path / "rows.jsonl", row(CASE, 10.0, 9.9)
    kept = dataclasses.replace(kept, again=kept.measured)
    path.write_text(f"{kept.to_json()}\n{kept.to_json()[:40]}")
    assert read_rows(path) == {CASE: kept}
    assert read_rows(tmp_path / "none") == {}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Workload]:
    trace = tmp_path / "small.csv"
    # Runs with seeks between them, and the first again.
    places = [run * 5_000 + at for run in (3, 1, 4, 1, 5, 3) for at in range(0, 24, 2)]
    trace.write_text("\n".join(["offset,size,think_ns", *(f"{at * PAGE},{2 * PAGE},{THINK_NS}" for at in places), ""]))
    yield Workload("Multi", trace, len(places), len({*places}) * 2, open=False)


@pytest.mark.skipif(sys.platform != "linux", reason="SKIPPED: serve needs Linux")
@pytest.mark.parametrize("coordinator", ["none", "pfc"])
def test_a_closed_loop_is_counted_as_the_simulator_counts_it(coordinator: str, small: Workload, tmp_path: Path) -> None:
    case = dataclasses.replace(CASE, coordinator=coordinator)
    predicted = live.predicted(case, small)
    measured, _ = live.measured(case, small, tmp_path)
    # One request at a time: only whether a prefetch is still on its way depends on how busy this machine is.
    for name in ("l1_hits", "l1_fetches", "l2_fetches", "disk_pages"):
        assert getattr(measured, name) == pytest.approx(getattr(predicted, name), rel=0.15), name
    # Never faster than the disk and the link; how much slower depends on the machine.
    assert measured.response_ns > 0.9 * predicted.response_ns


@pytest.mark.skipif(sys.platform != "linux", reason="SKIPPED: serve needs Linux")
@pytest.mark.parametrize("clock", [False, True])
def test_the_way_is_measured_beside_the_link_and_the_drive(clock: bool, small: Workload, tmp_path: Path) -> None:
    workload = small
    if clock:
        trace = tmp_path / "clock.csv"
        trace.write_text("\n".join(["time,offset,size", *(f"{5 + at / 500:.6f},0,{PAGE}" for at in range(99)), ""]))
        workload = dataclasses.replace(small, trace=trace, open=True)
    way = measured_way("seagate-cheetah-9lp", workload, tmp_path)
    # On a busy machine, too: some time, and less than a second.
    assert 1_000 < way.near_ns < 1_000_000_000
    parts = dataclasses.asdict(way)
    assert all(abs(part) < 1_000_000_000 for part in parts.values()), parts
    # Sums of two parts come from one measurement, less the link, or the link and the drive: nothing is faster than
    # these.
    assert way.way_ns + way.near_ns > 0
    assert way.disk_ns + way.way_ns + way.near_ns > 0
    assert {each.suffix for each in tmp_path.iterdir()} <= {".img", ".csv"}


def test_a_server_that_does_not_come_up_says_why(
    small: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DISKS, "no-such-disk", 1 << 20)
    with pytest.raises(headstart.HeadstartError, match="no-such-disk"):
        live.measured(dataclasses.replace(CASE, disk="no-such-disk"), small, tmp_path)


def test_all_cases_of_a_workload_with_a_disk_are_simulated_with_one_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = row(CASE, 10.0, 9.9)
    other, slower = dataclasses.replace(CASE, disk="ibm-36gb-10k"), dataclasses.replace(CASE, workload="Web")
    ways: list[tuple[str, str, int]] = []

    def predicted(case: Case, workload: Workload, way: Way) -> Figures:
        ways.append((case.disk, case.workload, way.way_ns))
        assert way.near_ns == 7
        return good.predicted

    monkeypatch.setattr(live, "predicted", predicted)
    rows = [dataclasses.replace(good, way=Way(way_ns, 7)) for way_ns in (100_000, 900_000, 300_000)]
    rows += [dataclasses.replace(good, case=case, way=Way(400_000, 7)) for case in (other, slower)]
    closed = {name: Workload(name, tmp_path, 1, 1, open=False) for name in ("Multi", "Web")}
    study.with_one_way(rows, closed)
    middle = [(each.case, 300_000 if each.case == CASE else 400_000) for each in rows]
    assert sorted(ways) == sorted(
        (case.disk, case.workload, way_ns + more) for case, way_ns in middle for more in (0, *study.NEARBY_NS)
    )


@pytest.mark.skipif(sys.platform != "linux", reason="SKIPPED: serve needs Linux")
def test_what_keeps_processors_awake_gives_way_and_ends() -> None:
    processors = os.sched_getaffinity(0)
    with live.awake(processors):
        loops = [process.pid or 0 for process in multiprocessing.active_children()]
        assert len(loops) == len(processors)
        assert wait_for(lambda: all(os.sched_getscheduler(each) == os.SCHED_IDLE for each in loops))
        assert {cpu for each in loops for cpu in os.sched_getaffinity(each)} == processors
    assert not multiprocessing.active_children()


@pytest.mark.skipif(sys.platform != "linux", reason="SKIPPED: serve needs Linux")
def test_lanes_run_every_case_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "one", lambda case, workload, twice, folder: row(case, 10.0, 9.9))
    workload = Workload("Multi", tmp_path, 1, 1, open=False)
    wanted = [(case, workload, False) for case in cases(["ibm-36gb-10k"], ["Multi"], quick=True)]
    rows = list(study._in_lanes(wanted, tmp_path, 3))
    assert {each.case for each in rows} == {case for case, _, _ in wanted}
    assert len(rows) == len(wanted)

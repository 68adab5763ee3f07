"""The study of li07: theory and drives for real, verdicts by hand on invented runs, figures on few requests."""

import dataclasses
import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest

from headstart import HeadstartError, model
from headstart._environment import TRACES_VARIABLE
from headstart.report.charts import svg
from headstart_lab.studies._lab import Cell
from headstart_lab.studies._rows import VERDICTS, Row
from headstart_lab.studies.li07 import (
    STUDY,
    _claims,
    _drives,
    _gap,
    _kernels,
    _latency,
    _reasons,
    _sensitivity,
    _servers,
    _summary,
    _system,
    _theory,
    _tools,
    _traces,
)
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._outcome import Outcome
from headstart_lab.studies.li07._system import Case, Runs
from tests.conftest import needs_report


def quiet(_text: str, _share: float) -> None:
    """Report nothing."""


def verdicts(rows: list[Row]) -> dict[str, str]:
    return {row.quantity: row.verdict for row in rows}


def test_depths_are_the_printed_ones_where_7_98_ms_are_the_whole_switch() -> None:
    by = verdicts(STUDY.run(["theory"], quiet))
    for drive in ("IBM", "Seagate", "RAID0"):
        assert by[f"depth from the printed figures, {drive} (KB)"] == "agrees"
    assert by["depth where 7.98 ms are the seek alone, Seagate (KB)"] == "differs"
    assert by["C_total without slow start"] == "agrees"
    assert by["C_total with slow start"] == "agrees"
    assert by["section 4.3's example: 16, 32, 64, 98, 98, ... pages"] == "agrees"
    assert by["schedules of depths that stay below twice the optimum"] == "agrees"


def test_a_bound_that_does_not_hold_is_told() -> None:
    found = {drive: _theory.by_numbers(drive) for drive in _theory.PRINTED}
    assert _theory.without_slow_start(found).verdict == "agrees"
    # The row without a slow start, if that cost as much as the one with it.
    swapped = {
        drive: model.Competitive(**{**vars(each), "guarantees": each.guarantees[2:] * 2})
        for drive, each in found.items()
    }
    assert _theory.without_slow_start(swapped).verdict == "differs"


def test_the_adversary_by_hand() -> None:
    # A byte a nanosecond, switches worth 100 bytes; 80 each time: equation (10) breaks at the second, 30 bytes into it.
    found = model.defeat([80], alpha=1.5, switch_ns=100, bytes_per_s=1e9)
    assert found.prefetch == 2
    assert found.length_bytes == pytest.approx(110)
    assert found.ratio == pytest.approx(360 / 210)
    # 90, 80, 70, 70, ...: the last value repeats.
    assert model.defeat([90, 80, 70], alpha=1.9, switch_ns=100, bytes_per_s=1e9).prefetch == 3
    for sizes, keys, message in (
        ([80.0], {"alpha": 2.0}, "alpha: 2 is out of range; allowed: above 0, below 2"),
        ([], {"alpha": 1.5}, "schedule: 0 bytes at prefetch 1"),
        ([80.0], {"alpha": 1.5, "switch_ns": 0.0}, "switch_ns: 0 is out of range; allowed: more than 0"),
        ([1.0 - 1e-12], {"alpha": 1.5, "switch_ns": 1.0}, "sizes: the first is so near"),
    ):
        with pytest.raises(HeadstartError, match=f"^{message}"):
            model.defeat(sizes, **{"switch_ns": 100.0, "bytes_per_s": 1e9, **keys})


def test_figure_4_measures_what_is_printed() -> None:
    needs_report()
    pictures: dict[str, Any] = {}
    by = verdicts(STUDY.run(["figure4"], quiet, pictures.__setitem__))
    published = [verdict for verdict in by.values() if verdict != "not published"]
    assert published == ["agrees"] * 7
    points = pictures["figure4"].to_dict()["hconcat"][0]["data"]["values"]
    ibm = [point["y"] for point in points if point["series"] == "IBM"]
    assert max(ibm) == pytest.approx(paper.RATE_LIMIT_MB, rel=0.01)
    assert min(ibm) < max(ibm)


def test_an_unknown_item_is_refused() -> None:
    with pytest.raises(HeadstartError, match='li07: no item "figure5"; allowed: theory, figure4'):
        STUDY.run(["figure5"], quiet)


BASE = Outcome(
    elapsed_s=10.0,
    throughput_mb=20.0,
    utilization=0.9,
    disk_requests=100,
    disk_blocks=3200,
    seek_ms=5.0,
    prefetches=1000,
    wasted=160,
    last_read_ms=30.0,
    last_idle_s=1.0,
)


def runs(name: str = "case", **times: float) -> Runs:
    """Return runs with these times in seconds; 10 for those not named."""
    cells: dict[str, Cell[Outcome]] = {}
    for policy in _system.POLICIES:
        elapsed = times.get(policy, 10.0)
        cells[policy] = Cell(dataclasses.replace(BASE, elapsed_s=elapsed, throughput_mb=200.0 / elapsed))
    return Runs(Case(name, {"generator": "two-rand", "concurrency": 2}), cells)


def test_gains_are_of_throughput_and_cuts_of_time() -> None:
    case = runs(CP=8.0, AP=12.5, OPT=6.0)
    assert case.gain() == pytest.approx(25.0)
    assert case.cut() == pytest.approx(20.0)
    assert case.gain("AP") == pytest.approx(-20.0)
    assert case.gain("AP", over="CP") == pytest.approx(-36.0)
    assert case.of_oracle() == pytest.approx(0.75)
    assert case.apart("Linux", "CP", "AP") == pytest.approx(1 - 8.0 / 12.5)
    row = _claims.rate_row(case)
    assert row.ours == "20.00, 25.00, 16.00, 33.33"
    assert "CP +25.0 %" in row.note and "CP/OPT 0.75" in row.note
    assert "KiB of a request 128/128/128/128, % read in vain 5/5/5/5" in row.note
    assert _claims.time_row(case).ours == "10.000, 8.000, 12.500, 6.000"


def test_claims_by_hand() -> None:
    printed = paper.Range(10, 35)
    both = [runs(CP=8.0), runs(CP=7.0)]
    # 25 and 42.9 %: the least is 15 points from 10.
    assert _claims.within("q", printed, both, "why").verdict == "differs"
    assert "why" in _claims.within("q", printed, both, "why").note
    both[0] = runs(CP=9.0)
    row = _claims.within("q", printed, both, "why")
    assert (row.verdict, row.ours) == ("agrees", "11.1 to 42.9 %")
    assert "why" not in row.note
    both[0] = runs(CP=9.6)
    assert _claims.within("q", printed, both).verdict == "differs", "4.2 % is 5.8 points from 10: over half of it"
    assert _claims.up_to("q", 52, both).verdict == "agrees"
    assert _claims.up_to("q", 53, both).verdict == "differs", "42.9 is more than 10 points from it"
    assert _claims.up_to("q", 42, both).verdict == "differs", "up to 42 is not 42.9"
    assert _claims.equal("q", "p", [runs(CP=9.51)], ("Linux", "CP")).verdict == "agrees"
    assert _claims.equal("q", "p", [runs(CP=9.4)], ("Linux", "CP")).verdict == "differs"
    assert _claims.equal("q", "p", [runs(AP=9.4)], ("Linux", "CP")).verdict == "agrees"
    assert _claims.improves("q", "p", [runs(CP=9.5)]).verdict == "agrees", "5.3 %"
    assert _claims.improves("q", "p", [runs(CP=9.5), runs(CP=9.6)]).ours == "better in 1 of 2"
    assert _claims.half_of_oracle("q", [runs(OPT=5.0)]).verdict == "agrees"
    assert _claims.half_of_oracle("q", [runs(OPT=4.99), runs()]).verdict == "differs"
    assert _servers.worse("q", [runs(CP=8.9), runs(CP=8.0)]).verdict == "agrees"
    assert _servers.worse("q", [runs(CP=8.9), runs(CP=9.1)]).verdict == "differs", "9 % is not significant"
    assert _tools.hardly("q", [runs(AP=9.53)]).verdict == "agrees"
    assert _tools.hardly("q", [runs(AP=9.5)]).verdict == "differs"
    assert _tools.hardly("q", [runs(AP=10.4)], hurts=True).verdict == "differs", "3.8 % slower does not hurt"
    assert _tools.hardly("q", [runs(AP=9.6), runs(AP=10.6)], hurts=True).verdict == "agrees"
    assert _summary.worst([runs("a", OPT=9.0), runs("b", OPT=8.0)]).case.name == "b"


@pytest.mark.parametrize(
    ("printed", "ours", "verdict"),
    [(8, 3.9, "differs"), (8, 4.1, "agrees"), (8, -2, "differs"), (31, 21.5, "agrees"), (31, 20.5, "differs")],
)
def test_a_printed_percentage_has_half_of_it_as_room_and_ten_points_at_most(
    printed: float, ours: float, verdict: str
) -> None:
    assert _claims.about("q", printed, ours, "less", rests=_claims.rests_on([]), note="n").verdict == verdict


def test_an_upper_bound_gets_no_slack() -> None:
    # 15 % at most and 4 points less than CP, as printed.
    near = [runs(CP=8.0, AP=8.7)]
    assert _servers.aggressive(near).verdict == "agrees"
    assert _servers.aggressive([runs(CP=8.0, AP=8.6)]).verdict == "differs", "16.3 %"
    assert _servers.aggressive([runs(CP=8.5, AP=8.7)]).verdict == "differs", "2.7 points less"
    assert _servers.array_no_larger([runs(CP=8.0), runs(CP=9.0), runs(CP=8.5)]).verdict == "differs"
    assert _servers.array_no_larger([runs(CP=8.0), runs(CP=9.0), runs(CP=9.0)]).verdict == "agrees"
    assert _tools.no_degradation([runs(CP=10.09)]).verdict == "agrees"
    assert _tools.no_degradation([runs(CP=10.2)]).verdict == "differs"


def test_what_a_scan_decided_is_calibrated() -> None:
    cases = {
        "two-rand": _system.server("two-rand", 4),
        "index-search": _system.server("index-search", 4),
        "tpc-h": _system.server("tpc-h"),
        "diff": _system.tools(50, diffs=2),
    }
    found = {name: Runs(Case(name, workload), {}) for name, workload in cases.items()}
    assert {name for name, each in found.items() if _claims.basis_of([each]) == "calibrated"} == {
        "index-search",
        "tpc-h",
        "diff",
    }
    assert _claims.basis_of(found.values()) == "calibrated", "one is enough"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure with a handful of requests."""
    for generator in _system.REQUESTS:
        monkeypatch.setitem(_system.REQUESTS, generator, 3)
    monkeypatch.setattr(paper, "CONCURRENCY", (1, 2))
    monkeypatch.setattr(_latency, "BACKGROUND", 12)
    monkeypatch.setattr(_latency, "PROBES", 3)
    monkeypatch.setattr(_tools, "TOGETHER", {name: _system.tools(1, diffs=2) for name in _tools.TOGETHER})
    monkeypatch.setattr(_tools, "ALONE", {name: _system.tools(1, copies=1) for name in _tools.ALONE})
    monkeypatch.setattr(_traces, "TOGETHER", (("glimpse", "pg_select"), ("pg_select", "no_such_program")))


FIGURES = ("figure6", "figure7", "figure8", "figure9", "figure10", "figure11", "figure12", "figure13")


@pytest.mark.usefixtures("few")
def test_every_figure_runs_and_is_drawn() -> None:
    needs_report()
    pictures: dict[str, Any] = {}
    rows = STUDY.run([*FIGURES, "summary"], quiet, pictures.__setitem__)
    assert tuple(pictures) == FIGURES
    by = {item: [row for row in rows if row.item == item] for item in (*FIGURES, "summary")}
    for row in rows:
        json.dumps(row.to_dict(), allow_nan=False)
        assert row.verdict in VERDICTS
        assert row.verdict == "not published" or row.note
    measured = {item: sum(row.published is None for row in found) for item, found in by.items()}
    # Servers by clients; cases by name.
    assert [measured[item] for item in FIGURES] == [12, 7, 4, 4, 6, 6, 9, 2]
    judged = {item: sum(row.published is not None for row in found) for item, found in by.items()}
    assert [judged[item] for item in FIGURES] == [8, 5, 3, 1, 2, 5, 6, 2]
    assert judged["summary"] == 4
    drawn = re.sub(r"<[^>]*>", " ", svg(pictures["figure6"]))
    assert all(name in drawn for name in (*_system.POLICIES, *_servers.NAMES.values()))


@pytest.mark.usefixtures("few")
def test_what_may_help_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_drives, "PLACES", 2)
    rows = STUDY.run(["remedies", "raid5"], quiet)
    for row in rows:
        json.dumps(row.to_dict(), allow_nan=False)
        assert row.verdict in VERDICTS
    judged = {row.quantity: row for row in rows if row.published is not None}
    assert [row.item for row in judged.values()] == 4 * ["remedies"] + 3 * ["raid5"]
    # Five drives with free parity are faster than two.
    assert judged["rate of RAID5 of five drives beside RAID0 of two"].verdict == "differs"
    assert judged["depth of the RAID5, from its rate (KB)"].verdict == "agrees"
    # Two clients in 64 MiB: memory is not short.
    assert judged["memory contention: CP with 2 clients"].verdict == "differs"


@pytest.mark.usefixtures("few")
def test_figures_stand_beside_the_kernels_as_they_were_too() -> None:
    rows = STUDY.run(["kernels"], quiet)
    for row in rows:
        json.dumps(row.to_dict(), allow_nan=False)
        assert row.verdict in VERDICTS
    judged = [row for row in rows if row.published is not None]
    # As many runs as in Figures 6 to 12 together; each finding names its kernel.
    assert (len(rows) - len(judged), len(judged)) == (12 + 7 + 4 + 4 + 6 + 6 + 9, 21)
    guest = [row for row in judged if row.quantity.startswith(_kernels.GUEST)]
    assert len(guest) == 3 and all(row.quantity.startswith(_kernels.HOST) for row in judged if row not in guest)


@pytest.mark.usefixtures("few")
def test_four_read_aheads_stand_side_by_side() -> None:
    rows = STUDY.run(["baselines", "kernels"], quiet)
    beside = [row for row in rows if row.item == "baselines"]
    assert {row.verdict for row in beside} == {"not published"}
    agreeing = {row.quantity: row.ours for row in beside if row.quantity.startswith("findings that agree beside ")}
    judged = [row for row in rows if row.item == "kernels" and row.published is not None]
    counted = sum(row.verdict == "agrees" for row in judged)
    assert agreeing[f"findings that agree beside {_kernels.AS_THE_PAPER}, of {len(judged)}"] == counted
    assert len(agreeing) == 5 and len(beside) == 14 + 2 + 5
    for row in beside[:16]:
        assert len(str(row.ours).split("; ")) == len(_kernels.READ_AHEADS)
    assert "printed 16 to 24: fixed-depth, linux, linux-2.6.10, linux-2.6.16 (%)" in beside[0].quantity


@pytest.mark.usefixtures("few")
def test_causes_of_the_gap_stand_side_by_side() -> None:
    printed, figures, *changed = STUDY.run(["gap"], quiet)
    assert printed.ours == "16 to 24; 10 to 35; 10 to 28; 52"
    assert figures.quantity.startswith("as in the figures: One-Rand-10, Two-Rand-0, index searching, Two-Rand-0 on the")
    assert len(str(figures.ours).split("; ")) == 4 and "(" not in str(figures.ours)
    # Five changes of baseline and scheduler, two of mapped files, four on half of the array.
    assert [len(str(row.ours).split("; ")) for row in changed] == [4] * 5 + [1] * 2 + [1] * 4
    assert all(str(row.ours).count("%") == len(str(row.ours).split("; ")) for row in changed)
    assert {row.input for row in changed if "on the array" in row.quantity and "index" not in row.quantity} == {"paper"}
    assert {row.input for row in changed if "mapped" in row.quantity} == {"stand-in"}


def test_the_share_of_the_gap_by_hand() -> None:
    # 25 and 50 % where 10 to 35 is printed of a range, of which the ends are 15 points more; before, 0 to 11.1 %.
    printed = {"x": (10.0, 35.0)}
    figures = {"x": [runs(CP=10.0), runs(CP=9.0)]}
    row = _gap._row("changed", {"x": [runs(CP=8.0), runs(CP=20 / 3)]}, printed, figures)
    assert row.ours == "25.0 to 50.0 (189 %)"
    assert _gap._row("", figures, printed, figures).ours == "0.0 to 11.1"
    assert _gap._row("none", figures, printed, figures).ours == "0.0 to 11.1 (0 %)"


def test_distance_from_what_is_printed() -> None:
    assert _kernels.Gain("range", (16.0, 24.0), (10.0, 25.0), "predicted").distance == pytest.approx(3.5)
    cut = _kernels.Gain("cut", (33.0,), (-2.0,), "calibrated")
    assert cut.distance == pytest.approx(35.0)
    assert (cut.printed_text, cut.ours_text) == ("33", "-2.0")
    gains = {name: [cut, _kernels.Gain("", (10.0,), (11.0,), "predicted")] for name in _kernels.READ_AHEADS}
    row = _kernels._distances("two", "names", gains, "predicted")
    assert row.ours == "1.0; 1.0; 1.0; 1.0" and "1 two" in row.quantity
    before = {"a": True, "b": False, "c": True}
    row = _kernels._agreeing("x", {"a": False, "b": True, "c": True}, before)
    assert row.ours == 2 and row.note == "beside fixed-depth these do not: b; only there: a"


@pytest.mark.usefixtures("few")
def test_programs_run_together_and_absent_ones_are_told() -> None:
    together, absent, least = STUDY.run(["programs"], quiet)
    assert together.quantity == "glimpse + pg_select: Linux, CP, AP, OPT (s)"
    assert "CP/OPT" in together.note
    assert (absent.ours, absent.quantity) == (None, "pg_select + no_such_program")
    assert absent.note.startswith("SKIPPED: no_such_program.csv.xz absent") and TRACES_VARIABLE in absent.note
    assert "of 1;" in least.note


def test_merged_traces_keep_processes_and_files_apart(tmp_path: Path) -> None:
    for name, lines in (("a", ["0.5,R,7,0,0,10,1", "0.1,R,8,2,5,10,1"]), ("b", ["0.2,W,7,1,0,4,2"])):
        with lzma.open(tmp_path / f"{name}.csv.xz", "wt") as trace:
            trace.write(_traces.HEADER + "".join(f"{line}\n" for line in lines))
        with lzma.open(tmp_path / f"{name}.files.csv.xz", "wt") as table:
            table.write(_traces.TABLE + "0,9,9,/x,y\n2,9,9,/z\n")
    _traces.merge([tmp_path / "a.csv.xz", tmp_path / "b.csv.xz"], tmp_path / "ab.csv")
    records, files = ((tmp_path / name).read_text().splitlines()[1:] for name in ("ab.csv", "ab.files.csv"))
    assert records == ["0.1,R,1,2,5,10,1", "0.2,W,2,4,0,4,2", "0.5,R,0,0,0,10,1"]
    assert files == ["0,9,9,/x,y", "2,9,9,/z", "3,9,9,/x,y", "5,9,9,/z"]


def test_the_reader_of_figure_13_is_a_process_of_its_own_that_never_reads_in_order() -> None:
    records = [tuple(map(int, line.split(","))) for line in _latency.probes(4)]
    assert len(records) == _latency.PROBES
    assert {(pid, size, think) for pid, _, _, size, think in records} == {(4, 4096, 100_000)}
    assert all(offset % 4096 == 0 and 0 < offset < 4 << 20 for _, _, offset, _, _ in records)
    assert all(file < 6000 for _, file, _, _, _ in records)


@pytest.mark.usefixtures("few")
def test_sensitivity_changes_what_it_says() -> None:
    asked: dict[str, dict[str, Any]] = {}
    for name, (change, cases) in _sensitivity.VARIANTS.items():
        asked[name] = change(cases[0]).scenario({"name": "demand"})
    assert asked["another seed"]["seed"] == 2
    assert asked["20,000 lists"]["workload"]["lists"] == 20_000
    assert asked["no anticipation (deadline)"]["device"]["scheduler"] == "deadline"
    distinct = {json.dumps(scenario, sort_keys=True) for scenario in asked.values()}
    assert len(distinct) == len(asked), "each differs from all others"
    for changed in _sensitivity.POLICY_VARIANTS.values():
        assert all(_system.POLICIES[policy] != keys for policy, keys in changed.items())
    assert set(_sensitivity.BESIDE_2_6_10) < set(_sensitivity.VARIANTS)


def test_reasons_name_rows_that_there_are() -> None:
    known = [*_sensitivity.VARIANTS, *_sensitivity.POLICY_VARIANTS, *_sensitivity.ON_ARRAY]
    reasons = [text for name, text in vars(_reasons).items() if name.isupper()]
    named = {quoted for text in reasons for quoted in re.findall('"([^"]+)"', text)}
    assert named
    for quoted in named:
        assert any(quoted in name for name in known), quoted


def test_a_trace_that_a_run_may_be_reading_is_not_written_again(tmp_path: Path) -> None:
    lab = _system.Lab(tmp_path, quiet, 1)
    trace = Path(str(_drives.sequential(lab, 0, _drives.SHORT)["trace"]))
    assert len(trace.read_text(encoding="utf-8").splitlines()) == 1 + _drives.SPAN // _drives.SHORT
    trace.write_text("kept", encoding="utf-8")
    _drives.sequential(lab, 0, _drives.SHORT)
    assert trace.read_text(encoding="utf-8") == "kept"

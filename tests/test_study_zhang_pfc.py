"""The study of zhang-pfc: a tiny matrix on generated traces, verdicts and causes by hand, what is absent, what is kept.

The whole matrix needs traces that do not ship with the project; here every path runs on a few dozen requests.
"""

import dataclasses
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headstart import HeadstartError
from headstart._environment import CACHE_VARIABLE, TRACES_VARIABLE, Folders, folders
from headstart.report.charts import svg
from headstart.trace import trace_info
from headstart_lab.studies import load
from headstart_lab.studies._lab import Cell, Store
from headstart_lab.studies._rows import VERDICTS, Row
from headstart_lab.studies.zhang_pfc import (
    STUDY,
    _actions,
    _causes,
    _draws,
    _findings,
    _matrix,
    _rebuilt,
    _sensitivity,
    _tables,
    _workloads,
)
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._outcome import Outcome
from tests.conftest import COMMAND, needs_report


def quiet(_text: str, _share: float) -> None:
    """Report nothing."""


def spc(requests: int, *, seed: int = 1) -> bytes:
    """Return an SPC trace of two units: runs of sequential requests with jumps between them."""
    lines, address, state = [], 0, seed
    for at in range(requests):
        state = (state * 1103515245 + 12345) % 2**31
        address = address + 16 if at % 5 else 8 * (state // 65536 % 400)
        lines.append(f"{at % 2},{address},{4096 * (1 + at % 3)},{'R' if at % 4 else 'W'},{at * 0.03:.6f}\n")
    return "".join(lines).encode()


def program(requests: int) -> tuple[bytes, bytes]:
    """Return a recorded program that reads two files in turn, and its table of files."""
    lines = [f"{at / 1000:.3f},R,1,{at % 2},{4096 * (at // 2 % 40)},4096,1\n" for at in range(requests)]
    header = "time(s),op(R|W),pid,file,offset,size,dur_us\n"
    table = "file,max_offset,disk_size,path\n0,163840,163840,/a\n1,163840,163840,/b\n"
    return (header + "".join(lines)).encode(), table.encode()


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the three traces, generated; no other folder is searched."""
    folder = tmp_path / "traces"
    (folder / "blocks").mkdir(parents=True)
    (folder / "programs").mkdir()
    (folder / "blocks" / "financial1_first10k.spc.xz").write_bytes(lzma.compress(spc(60)))
    (folder / "blocks" / "websearch_first25k.spc.xz").write_bytes(lzma.compress(spc(60, seed=7)))
    trace, table = program(120)
    (folder / "programs" / "multi6.csv.xz").write_bytes(lzma.compress(trace))
    (folder / "programs" / "multi6.files.csv.xz").write_bytes(lzma.compress(table))
    monkeypatch.setattr(_workloads, "folders", lambda _traces: [folder])
    return folder


def by_item(rows: list[Row], item: str) -> list[Row]:
    return [row for row in rows if row.item == item]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two draws of rebuilt workloads of a few hundred pages; a few of the readings that are tried for Figure 7.

    The keys of the others are in readings of the item `sensitivity`.
    """
    monkeypatch.setattr(_actions, "CONTEXTS", {"": {}})
    monkeypatch.setattr(_actions, "OTHERS", dict([*_actions.OTHERS.items()][:1]))
    monkeypatch.setattr(_actions, "UPDATES", dict([*_actions.UPDATES.items()][:2]))
    monkeypatch.setattr(_actions, "SYSTEMS", _actions.SYSTEMS[:1])
    for name, full in _rebuilt.RANGES.items():
        files = None if full.files is None else 40
        monkeypatch.setitem(_rebuilt.RANGES, name, dataclasses.replace(full, footprint=800, pages=(2, 3), files=files))
    monkeypatch.setattr(_draws, "SEEDS", (1, 2))


@pytest.mark.usefixtures("small")
def test_a_tiny_study_runs_through(traces: Path, tmp_path: Path) -> None:
    needs_report()
    pictures: dict[str, Any] = {}
    rows = STUDY.run([], quiet, pictures.__setitem__, folders=Folders(cache=tmp_path / "cache"))
    assert list(dict.fromkeys(row.item for row in rows)) == list(load("zhang-pfc").items)
    for row in rows:
        json.dumps(row.to_dict(), allow_nan=False)
        assert row.verdict in VERDICTS
        given = row.item == "rebuilt" and row.quantity.endswith(("footprint (MB)", "random requests"))
        fitted = row.quantity.endswith("hit ratio of L2")
        assert row.basis == ("input" if given else "calibrated" if fitted else "predicted")
        assert row.input == ("rebuilt" if row.item == "rebuilt" else "stand-in")
        judged = row.item in ("findings", "rebuilt")
        assert (row.verdict == "not published") != judged
        assert row.published is None or judged
        assert row.note and "SKIPPED" not in row.note
    cases = [row for row in by_item(rows, "matrix") if "gain of PFC" in row.quantity]
    assert len(cases) == len({row.quantity for row in cases}) == 96
    assert all("under 32" in row.note for row in cases), "tiny caches are flagged"
    cells = [row for row in by_item(rows, "table1") if "gain of PFC" in row.quantity]
    assert len(cells) == 48
    assert all("the paper has" in row.note for row in cells)
    assert len(by_item(rows, "figure4")) == 96
    assert len(by_item(rows, "figure5")) == 20
    assert len(by_item(rows, "figure6")) == 12
    assert len(by_item(rows, "figure7")) == 64
    assert len(by_item(rows, "findings")) == 13
    assert len(by_item(rows, "rebuilt")) == 3 * 2 + 13 + 3
    counts = by_item(rows, "actions")
    assert len(counts) == len(_actions.tried()) + len(_actions.SYSTEMS)
    assert all(re.fullmatch(r"\d+ of 64; \d+ of 16; \d+ of 64", str(row.ours)) for row in counts)
    assert {row.quantity.split(":")[0] for row in by_item(rows, "traces")} == {"OLTP", "Web", "Multi"}
    ways = [row for row in by_item(rows, "web") if "disk is saturated" in row.quantity]
    assert len(ways) == 3, "slowed, by its own clock, closed"
    readings = [row.quantity.split(":")[0] for row in by_item(rows, "sensitivity")]
    known: list[dict[str, Any]] = [_sensitivity.READINGS, _sensitivity.ALGORITHM_KEYS]
    known += [_sensitivity.SCHEDULERS, _sensitivity.WORKLOADS]
    every = [name for name in _sensitivity.EVERY_CASE for _ in range(3)]
    assert readings == every + [name for each in known for name in each]
    # The same case has the same figure in both items.
    ours = {row.quantity: row.ours for row in cases}
    assert all(ours[row.quantity] == row.ours for row in cells)
    kept = list((tmp_path / "cache" / "zhang-pfc").glob("*.json"))
    assert len(kept) > 480
    again = STUDY.run(["matrix"], quiet, folders=Folders(cache=tmp_path / "cache"))
    assert again == by_item(rows, "matrix"), "from the cache"
    assert list(pictures) == ["figure4", "figure5", "figure6", "figure7"]
    drawn = {item: re.sub(r"<[^>]*>", " ", svg(chart)) for item, chart in pictures.items()}
    for item, words in PICTURED.items():
        assert all(word in drawn[item] for word in words), item


PICTURED = {
    "figure4": ("mean response time (ms)", "pages never used (log)", "Web: response time", "L2 = 200 % of L1", "DU"),
    "figure5": ("The paper's best case: OLTP, RA, 200%-L", "Our worst case", "hit ratio of L2 (%)", "disk I/O (pages)"),
    "figure6": ("hit ratio of L2 (%)", "Multi", "SARC"),
    "figure7": ("response time shortened by (%)", "OLTP, L", "Web, H", "readmore only"),
}


def test_bars_are_what_the_rows_say(traces: Path) -> None:
    needs_report()
    pictures: dict[str, Any] = {}
    rows = STUDY.run(["figure4", "figure6"], quiet, pictures.__setitem__)
    values = json.dumps(pictures["figure4"].to_dict())
    for row in by_item(rows, "figure4"):
        if "response" in row.quantity and isinstance(row.ours, str):
            for figure in row.ours.split(", "):
                # A bar is drawn with all digits, the row has three.
                assert figure.rstrip("0")[:-1] in values, row.quantity
    bars = pictures["figure6"].to_dict()["vconcat"][0]["hconcat"][0]["data"]["values"]
    assert [(bar["algorithm"], bar["run"]) for bar in bars[:3]] == [("AMP", "none"), ("AMP", "PFC"), ("SARC", "none")]
    (amp,) = (row for row in by_item(rows, "figure6") if row.quantity.startswith("OLTP, AMP"))
    assert amp.ours == f"{bars[0]['value']:.1f}, {bars[1]['value']:.1f}"


def test_absent_traces_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_report()
    monkeypatch.setattr(_workloads, "folders", lambda _traces: [tmp_path])
    pictures: dict[str, Any] = {}
    items = [item for item in load("zhang-pfc").items if item != "rebuilt"]
    rows = STUDY.run(items, quiet, pictures.__setitem__)
    assert not pictures
    assert {row.item for row in rows} == set(items)
    assert all(row.ours is None and "SKIPPED" in row.note and TRACES_VARIABLE in row.note for row in rows)
    assert {row.quantity for row in by_item(rows, "matrix")} == {"OLTP", "Web", "Multi"}
    assert {row.quantity for row in by_item(rows, "figure7")} == {"OLTP", "Web"}
    with pytest.raises(HeadstartError, match='no item "table2"; allowed: traces, matrix, '):
        STUDY.run(["table2"], quiet)


def test_whole_traces_are_taken_first_and_compared(traces: Path, tmp_path: Path) -> None:
    (traces / "Financial1.spc").write_bytes(spc(30))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    workloads = _workloads.Workloads(scratch)
    assert [(each.name, each.whole) for each in workloads.found] == [("OLTP", True), ("Web", False), ("Multi", False)]
    assert "Financial1.spc" in workloads.found[0].label
    rows = [row for row in STUDY.run(["table1"], quiet) if "gain of PFC" in row.quantity]
    (cell,) = (row for row in rows if "OLTP, RA, 200%-L" in row.quantity)
    assert cell.published == 35.77
    assert isinstance(cell.ours, float)
    assert cell.verdict == ("agrees" if abs(cell.ours - 35.77) <= 2 else "differs")
    assert all(row.verdict == "not published" for row in rows if not row.quantity.startswith("OLTP"))


def test_the_first_ten_gigabytes_are_taken() -> None:
    # 4096 a request: after three of them 12288 bytes are taken, and the fourth is left out.
    lines = [b"0,%d,4096,R,0.%d\n" % (at, at) for at in range(6)]
    assert list(_workloads.first_bytes(lines, 12288)) == lines[:3]
    assert list(_workloads.first_bytes(lines, 12289)) == lines[:4]
    assert list(_workloads.first_bytes([b"bad\n", *lines], 4096)) == [b"bad\n", lines[0]]


BASE = Outcome(
    response_ms=10.0,
    utilization=0.5,
    disk_requests=100,
    disk_blocks=400,
    l1_hit_ratio=0.8,
    l2_hit_ratio=0.5,
    l2_native_hit_ratio=0.5,
    l2_frames=64,
    l2_misses=50,
    l2_prefetches=200,
    l2_unused=20,
    l2_late=5,
    l2_pollution=0,
    l2_wasted_service_ms=1.0,
    silent_hits=0,
    bypass_blocks=0,
    bypass_fetches=0,
    readmore_blocks=0,
)


def runs(
    times: dict[str, float], *, algorithm: str = "RA", pfc: Outcome = BASE, none: Outcome = BASE, name: str = "OLTP"
) -> _matrix.Runs:
    """Return runs with these response times in ms; except for PFC, the counters are those of `none`."""
    cells: dict[str, Cell[Outcome]] = {}
    for coordinator in _matrix.COORDINATORS:
        outcome = pfc if coordinator == "PFC" else none
        cells[coordinator] = Cell(dataclasses.replace(outcome, response_ms=times.get(coordinator, 10.0)))
    workload = _workloads.Workload(name, name, {"arrival": "open"})
    return _matrix.Runs(_matrix.Case(workload, algorithm, "H", 2.0), cells)


def test_gains_are_shares_of_the_slower() -> None:
    case = runs({"PFC": 8.0, "DU": 16.0})
    assert case.gain() == pytest.approx(20.0)
    assert case.gain("DU") == pytest.approx(-60.0)
    assert case.gain("PFC", "DU") == pytest.approx(50.0)
    assert _causes.better(case) and not _causes.worse(case)
    assert case.flags == ""


def test_small_and_saturated_cells_are_flagged() -> None:
    small = dataclasses.replace(BASE, l2_frames=31)
    assert "L2 of 31 pages" in runs({}, none=small).flags
    assert "saturated" in runs({}, pfc=dataclasses.replace(BASE, utilization=0.97)).flags


@pytest.mark.parametrize(
    ("bypass", "readmore", "change", "expected"),
    [
        (12.0, 9.0, {"l2_misses": 60}, "bypass: lost hits"),
        (9.0, 12.0, {"l2_unused": 30, "disk_blocks": 410, "disk_requests": 120}, "readmore: waste"),
        (12.5, 12.0, {"disk_requests": 101}, "bypass: split requests"),
        (9.0, 9.0, {"l2_late": 6, "l2_unused": 21}, "both together: later blocks"),
        (12.0, 10.0, {}, "bypass: waiting alone"),
    ],
)
def test_causes_by_hand(bypass: float, readmore: float, change: dict[str, int], expected: str) -> None:
    # The counters change only in the run that the cause is read from.
    changed = {"bypass": "bypass only", "readmore": "readmore only"}.get(expected.split(":")[0], "PFC")
    case = runs({"PFC": 11.0, "bypass only": bypass, "readmore only": readmore})
    case = dataclasses.replace(case, cells=case.cells | {changed: Cell(dataclasses.replace(case[changed], **change))})
    assert _causes.worse(case)
    assert _causes.cause(case) == expected
    assert expected.split(": ")[1] in _causes.SYMPTOMS
    names = ["none", "PFC"] if changed == "PFC" else ["none", changed, "PFC"]
    assert _causes.account(case).startswith(f"{' / '.join(names)}: L2 misses 50 / {change.get('l2_misses', 50)}")


def test_addresses_beyond_the_drive_are_compacted(traces: Path, tmp_path: Path) -> None:
    # Units one after another: 8 GB and 2 GB are more than 9.1.
    far = b"0,15625000,4096,R,0.0\n1,3906250,4096,R,0.1\n0,15625000,4096,R,0.2\nbad\n"
    (traces / "Financial1.spc").write_bytes(far)
    # 15,625,000 sectors are 1,953,125 pages, 3,906,250 are 488,281 and a quarter: its request takes two.
    assert _workloads.extent_bytes(traces / "Financial1.spc") == 4096 * (1_953_126 + 488_283)
    (traces / "Financial1.spc").write_bytes(far.removesuffix(b"bad\n"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (oltp, web, _) = _workloads.Workloads(scratch).found
    section = oltp.section
    assert (section.get("addresses"), section.get("chunk_blocks"), oltp.whole) == ("compact-chunks", 64, False)
    assert "chunks of 64 pages" in oltp.label
    assert web.section.get("addresses") is None


def test_chunks_fit_the_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every 128th page of two units. The last of unit 0, page 512, and the first of unit 1 behind it, share a chunk: 9.
    path = tmp_path / "a.spc"
    path.write_bytes(b"".join(b"%d,%d,4096,R,0\n" % (at % 2, 8 * 128 * (at // 2)) for at in range(10)))
    assert _workloads.extent_bytes(path) == 4096 * 2 * 513
    for pages, expected in ((64 * 9, 64), (64 * 9 - 1, 32), (2 * 9, 2), (17, 1), (9, 1)):
        monkeypatch.setattr(paper, "DRIVE_BYTES", 4096 * pages)
        assert _workloads.chunk_pages(path) == expected, pages


def test_findings_by_hand() -> None:
    fewer = dataclasses.replace(BASE, l2_prefetches=150, l2_hit_ratio=0.4)
    good = runs({"PFC": 7.0, "DU": 9.0, "bypass only": 8.0, "readmore only": 8.0}, pfc=fewer)
    bad = runs({"PFC": 11.0, "readmore only": 9.0}, algorithm="AMP")
    assert _findings.improves([good]).verdict == "agrees"
    row = _findings.improves([good, bad])
    assert (row.verdict, row.ours) == ("differs", "improves it in 1 of 2")
    row = _findings.size([good, bad])
    assert (row.verdict, row.ours) == ("differs", "up to 30.0 %, on average 10.0 %"), "three quarters of 14.6 are 10.95"
    row = _findings.size([runs({"PFC": 6.6}), runs({"PFC": 10.4})])
    assert (row.verdict, row.ours) == ("agrees", "up to 34.0 %, on average 15.0 %")
    row = _findings.size([good, runs({"PFC": 9.8})])
    assert (row.verdict, row.ours) == ("differs", "up to 30.0 %, on average 16.0 %"), "nine tenths of 35 are 31.5"
    assert _findings.size([good]).verdict == "differs", "30 % on average is too much"
    assert _findings.beats_du([good, bad]).verdict == "differs", "one of two is no majority"
    assert _findings.beats_du([good, good, bad]).verdict == "differs", "a majority, but not around 77 %"
    assert _findings.beats_du([good, good, good, bad]).verdict == "agrees", "75 % is"
    faster = runs({}, pfc=dataclasses.replace(BASE, l2_prefetches=BASE.l2_prefetches + 1))
    assert _findings.speed([*[good] * 9, faster]).verdict == "agrees", "9 and 1 of 10 are like 87 and 9 of 96"
    assert _findings.speed([good]).verdict == "differs", "none is sped up"
    assert _findings.speed([*[good] * 9, bad]).verdict == "differs", "nor here"
    assert _findings.speed([good, bad]).ours == "sped up in 0, slowed down in 1 of 2"
    assert _findings.hit_ratio([good, bad]).verdict == "agrees", "falls in one of two, which improves"
    assert _findings.hit_ratio([good]).verdict == "differs", "falls in all"
    assert _findings.hit_ratio([good, bad, bad]).verdict == "differs", "a third is not about half"
    assert _findings.hit_ratio([runs({"PFC": 11.0}, pfc=fewer), bad]).verdict == "differs", "nor does it improve"
    assert _findings.upper_hit_ratio([good, bad]).verdict == "agrees"
    moved = dataclasses.replace(BASE, l1_hit_ratio=0.7)
    assert _findings.upper_hit_ratio([good, good, good, runs({}, pfc=moved)]).verdict == "differs", "in one it moves"
    wasteful = runs({}, pfc=dataclasses.replace(BASE, l2_unused=21))
    assert _findings.unused_sequential([wasteful, runs({})]).verdict == "differs", "one of two is no majority"
    assert _findings.unused_sequential([wasteful]).ours == "more in 1, less in 0 of 1"
    assert _findings.unused_sequential([wasteful]).verdict == "agrees"
    assert _findings.unused_random([wasteful]).verdict == "not published", "another workload"
    thrifty = runs({}, pfc=dataclasses.replace(BASE, l2_unused=19), name="Web")
    small = dataclasses.replace(thrifty, case=dataclasses.replace(thrifty.case, ratio=0.05))
    assert _findings.unused_random([thrifty]).ours is None, "a large L2"
    assert _findings.unused_random([thrifty, small]).verdict == "agrees"
    assert _findings.disk_work([good]).verdict == "differs", "as many requests, as long"
    shorter = dataclasses.replace(fewer, disk_blocks=399)
    lighter = runs({"PFC": 7.0}, pfc=shorter)
    assert _findings.disk_work([lighter]).verdict == "agrees"
    assert _findings.disk_work([lighter, lighter, lighter, good]).verdict == "differs", "not in all"
    assert "SKIPPED" in _findings.disk_work([bad]).note, "nowhere better with fewer hits"
    assert "SKIPPED" in _findings.amp([good]).note
    assert "SKIPPED" in _findings.single_actions([runs({}, name="Multi")]).note
    assert _findings.gains_most([good, bad]).verdict == "agrees"
    row = _findings.gains_most([good, bad, runs({"PFC": 5.0}, algorithm="SARC", name="Web")])
    assert (row.verdict, row.ours) == ("differs", "RA on OLTP, SARC on Web"), "RA on all traces"
    row = _findings.single_actions([good, bad])
    assert (row.verdict, row.ours) == ("differs", "better than either alone in 1 of 2"), "AMP's are cases too"
    assert _findings.single_actions([good, good, bad]).verdict == "agrees"
    assert _findings.amp([good, bad]).verdict == "agrees"
    worse_alone = runs({"PFC": 9.0}, algorithm="AMP")
    assert _findings.amp([bad, bad, bad, worse_alone]).verdict == "differs", "three of four are not consistently"
    # RA 10 to 7 ms and AMP 12 to 11: the same order. SARC 11 to 6: still before AMP, but now before RA too.
    amp = runs({"none": 12.0, "PFC": 11.0}, algorithm="AMP")
    sarc = runs({"none": 11.0, "PFC": 6.0}, algorithm="SARC")
    assert _findings.order([good, amp]).ours == "1 of 1 pairs of algorithms in the same order"
    assert _findings.order([good, amp, sarc]).ours == "2 of 3 pairs of algorithms in the same order"


@pytest.mark.parametrize("name", list(_rebuilt.RANGES))
def test_a_rebuilt_workload_is_what_is_printed(name: str, tmp_path: Path) -> None:
    ranges = _rebuilt.RANGES[name]
    drawn = _rebuilt.drawn(name, 1)
    for value, (least, greatest) in (
        (drawn.single, ranges.single),
        (drawn.units, ranges.units),
        (drawn.spread, ranges.spread),
        (drawn.pages / ranges.footprint, ranges.pages),
        (drawn.rate or 0, ranges.rate or (0, 0)),
    ):
        assert least - 1e-5 <= value <= greatest + 1e-5
    made = _rebuilt.workload(name, 1, tmp_path)
    info = trace_info(made.section["trace"], block_size="4KiB")
    assert info["distinct_blocks"] == ranges.footprint, "to the page"
    assert abs(100 * (1 - info["sequential_share"]) - paper.RANDOM_PERCENT[name]) <= _draws.RANDOM_POINTS
    assert abs(info["bytes"] / 4096 / drawn.pages - 1) < 0.01
    assert (info["time_span_ns"] > 0) == (ranges.rate is not None)


@pytest.mark.usefixtures("small")
def test_draws_differ_by_their_seed_alone() -> None:
    one = list(_rebuilt.lines("Web", 1))
    assert one == list(_rebuilt.lines("Web", 1)) != list(_rebuilt.lines("Web", 2))


def test_a_finding_on_draws_by_hand() -> None:
    good, bad = runs({"PFC": 7.0}), runs({"PFC": 11.0})
    of = {seed: [good] for seed in (1, 2, 3)}
    (row,) = (row for row in _draws.judged({**of, 4: [bad]}) if row.quantity == "rebuilt: PFC against none")
    assert (row.verdict, row.held, row.tried) == ("agrees", 3, 4)
    (row,) = (row for row in _draws.judged({**of, 4: [bad], 5: [bad]}) if row.quantity == "rebuilt: PFC against none")
    assert (row.verdict, row.held, row.tried) == ("differs", 3, 5), "three of five are less than three quarters"


def test_cells_of_table_1_within_the_spread_of_draws() -> None:
    def draw(gain: float) -> list[_matrix.Runs]:
        made = [runs({"PFC": 10 - gain / 10}, algorithm=name) for name in _matrix.ALGORITHMS]
        return [
            dataclasses.replace(each, case=dataclasses.replace(each.case, ratio=ratio, setting=setting))
            for each in made
            for ratio in (2.0, 0.05)
            for setting in ("H", "L")
        ]

    # OLTP's cells are 5.23 to 35.77: within 5 points of 10 to 31 % are all but 35.77.
    row = _draws.table("OLTP", [draw(10.0), draw(30.0)])
    assert (row.held, row.tried, row.verdict) == (15, 16, "agrees")
    assert _draws.table("OLTP", [draw(20.0)]).verdict == "differs"


def test_the_distribution_by_hand() -> None:
    assert _tables.spread([1.0, 2.0, 3.0, 4.0, 5.0]) == "3.00; 1.00, 2.00, 3.00, 4.00, 5.00"
    assert _tables.spread([1.5]) == "1.50; 1.50, 1.50, 1.50, 1.50, 1.50"


def test_table_1_has_the_papers_mean_and_greatest() -> None:
    cells = [value for row in paper.TABLE_1.values() for value in row.values()]
    assert (len(cells), round(sum(cells) / 48, 2), max(cells), min(cells)) == (48, 14.56, 35.77, 0.7)


def test_cells_are_kept_by_what_they_hold(tmp_path: Path) -> None:
    trace = tmp_path / "a.spc"
    trace.write_bytes(spc(20))
    workload = _workloads.Workload("OLTP", "OLTP", {"trace": str(trace), "block_size": "4KiB", "issue": "whole"})
    scenario = _matrix.Case(workload, "RA", "H", 2.0).scenario({"name": "none"})
    store = Store(tmp_path / "cells", "test 1")
    path = store.path(scenario)
    lab = _matrix.Lab(tmp_path, quiet, 1, store)
    first = lab.ask(scenario).outcome
    assert json.loads(path.read_text()) == dataclasses.asdict(first)
    copy = tmp_path / "elsewhere.spc"
    copy.write_bytes(trace.read_bytes())
    moved = {**scenario, "workload": {**scenario["workload"], "trace": str(copy)}}
    assert Store(tmp_path / "cells", "test 1").path(moved) == path, "where a trace lies does not matter"
    assert Store(tmp_path / "cells", "test 2").path(scenario) != path
    copy.write_bytes(spc(21))
    assert Store(tmp_path / "cells", "test 1").path(moved) != path
    # A stored cell is used, a damaged one is computed anew.
    path.write_text(json.dumps(dataclasses.asdict(dataclasses.replace(first, disk_requests=-1))))
    for content, expected in ((None, -1), ("{", first.disk_requests), ('{"a": 1}', first.disk_requests)):
        if content is not None:
            path.write_text(content)
        lab = _matrix.Lab(tmp_path, quiet, 1, store)
        assert lab.ask(scenario).outcome.disk_requests == expected


def test_the_variables_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACES_VARIABLE, str(tmp_path / "traces"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cells"))
    assert folders() == Folders(traces=tmp_path / "traces", cache=tmp_path / "cells")
    monkeypatch.setenv(TRACES_VARIABLE, "")
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    found = folders()
    assert found.traces is None
    assert found.cache is not None
    assert found.cache.name in ("headstart", "Cache")
    if sys.platform == "linux":
        assert found.cache == tmp_path / "caches" / "headstart"


def test_folders_are_passed_down(traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values given to a study count, whatever the environment says: only the command reads it."""
    monkeypatch.undo()
    monkeypatch.setenv(TRACES_VARIABLE, str(tmp_path / "elsewhere"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "other"))
    given = Folders(traces=traces, cache=tmp_path / "given")
    lab = _matrix.Lab(tmp_path, quiet, 1, folders=given)
    assert lab.workloads.found[0].section["trace"] == str(tmp_path / "financial1_first10k.spc")
    lab.ask(_matrix.Case(lab.workloads.found[0], "RA", "H", 2.0).scenario({"name": "none"}))
    lab.wait()
    assert len(list((tmp_path / "given" / "zhang-pfc").glob("*.json"))) == 1
    assert not (tmp_path / "other").exists()


def test_variants_name_keys_of_the_coordinator() -> None:
    assert _sensitivity.READINGS["as pinned"] == {}
    assert len({json.dumps(keys) for keys in _sensitivity.READINGS.values()}) == len(_sensitivity.READINGS)


def keys_of(case: _matrix.Case) -> list[Any]:
    return [level["policy"] for level in case.scenario({"name": "none"})["level"]]


def test_keys_are_laid_over_the_algorithm() -> None:
    workload = _workloads.Workload("OLTP", "OLTP", {})
    assert keys_of(_matrix.Case(workload, "Linux", "H", 2.0)) == ["linux-2.6", "linux-2.6"]
    apart = dataclasses.replace(_matrix.Case(workload, "RA", "H", 2.0), separate=True).scenario({"name": "none"})
    assert ["separate_prefetch" in level for level in apart["level"]] == [False, True], "a disk request is L2's"
    changed = _matrix.Case(workload, "Linux", "H", 2.0, {"trigger": "window"})
    assert keys_of(changed) == [{"name": "linux-2.6", "trigger": "window"}] * 2
    assert keys_of(_matrix.Case(workload, "RA", "H", 2.0, {"degree": 8})) == [{"name": "ra", "degree": 8}] * 2
    assert _matrix.ALGORITHMS["RA"]["policy"] == {"name": "ra", "degree": 4}, "as before"


def command(*words: str, traces: Path, cache: Path) -> tuple[list[str], dict[str, str]]:
    """Return words and environment of the command with these traces."""
    paths = {TRACES_VARIABLE: str(traces), CACHE_VARIABLE: str(cache)}
    return [str(COMMAND), "reproduce", "zhang-pfc", *words], {**os.environ, **paths}


def test_the_command_writes_json_and_a_page(traces: Path, tmp_path: Path) -> None:
    needs_report()
    page = tmp_path / "page.html"
    words, env = command("figure6", "table1", "--json", "-", "--html", str(page), traces=traces, cache=tmp_path / "c")
    done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert {row["item"] for row in json.loads(done.stdout)} == {"figure6", "table1"}
    html = page.read_text(encoding="utf-8")
    assert html.count("<figure id=") == 1
    assert not re.search(r"<script src|<link|<a href=(?!.#)", html)
    words, env = command("figure9", traces=traces, cache=tmp_path / "c")
    done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r'headstart: .*no item "figure9"; allowed: traces, matrix, .*\n', done.stderr)


def test_ctrl_c_keeps_what_is_done(traces: Path, tmp_path: Path) -> None:
    """It ends at once and quietly; the next run reuses what was stored, and gives the same rows."""
    # Enough requests that the matrix takes some seconds.
    (traces / "Financial1.spc").write_bytes(spc(3000))
    cells = tmp_path / "cells" / "zhang-pfc"
    words, env = command("matrix", "--json", "-", traces=traces, cache=cells.parent)
    with subprocess.Popen(
        words,
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # If the tests run in the background, they ignore the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while len(list(cells.glob("*.json"))) < 5 and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out, errors) == (130, b"", b"")
    kept = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert 5 <= len(kept) < 480
    done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all((cells / name).stat().st_mtime_ns == at for name, at in kept.items()), "not computed again"
    fresh = {**env, CACHE_VARIABLE: str(tmp_path / "other")}
    assert subprocess.run(words, env=fresh, capture_output=True, text=True, check=True).stdout == done.stdout

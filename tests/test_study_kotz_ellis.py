"""The study of kotz-ellis: verdicts by hand on invented runs, the matrix, the charts, and a part of it for real."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from headstart import HeadstartError
from headstart_lab.studies._lab import Cell
from headstart_lab.studies._rows import VERDICTS
from headstart_lab.studies.kotz_ellis import STUDY, _causes, _charts, _reads, _sensitivity, _sweeps, _totals
from headstart_lab.studies.kotz_ellis._matrix import CASES, PINNED, Case, Pair, Variant
from headstart_lab.studies.kotz_ellis._outcome import Interval, Outcome
from tests.conftest import Run, needs_report


def quiet(_text: str, _share: float) -> None:
    """Report nothing."""


BASE = Outcome(
    total_ms=10_000.0,
    read_ms=40.0,
    read_p50_ms=30.0,
    read_max_ms=60.0,
    references=2000,
    misses=2000,
    hits_ready=0,
    hits_unready=0,
    hit_wait_ms=0.0,
    fetches=2000,
    prefetches=0,
    disk_ms=40.0,
    compute_ms=3000.0,
    stall_ms=4000.0,
    barrier_ms=2500.0,
    overhead_ms=0.0,
    idle_ms=500.0,
    action_ms=0.0,
    overruns=0,
    overrun_ms=0.0,
    intervals=(Interval(5000.0, 2500.0), Interval(5000.0, 2000.0)),
)

BETTER = dataclasses.replace(
    BASE,
    total_ms=9000.0,
    read_ms=30.0,
    read_max_ms=70.0,
    misses=100,
    hits_ready=855,
    hits_unready=1045,
    hit_wait_ms=25.0,
    prefetches=1900,
    disk_ms=45.0,
    stall_ms=2800.0,
    barrier_ms=2600.0,
    overhead_ms=200.0,
    idle_ms=400.0,
    action_ms=11.0,
    overruns=500,
    overrun_ms=6.0,
    intervals=(Interval(4000.0, 1600.0), Interval(5000.0, 1900.0)),
)


def pair(case: Case = CASES[0], without: Outcome = BASE, prefetching: Outcome = BETTER, **changes: Any) -> Pair:
    """Return a case with these runs; `changes` apply to the run with prefetching."""
    return Pair(case, ((Cell(without),), (Cell(dataclasses.replace(prefetching, **changes)),)))


def test_the_matrix_is_the_papers() -> None:
    assert len(CASES) == len(set(CASES)) == 44
    assert Case("gw", "portion", 0.0) not in CASES
    scenario = Case("gfp", "200 in all", 30.0).scenario(prefetching=True, variant=PINNED)
    assert scenario["process"]["barrier"] == {"scope": "all", "every": 200}
    assert scenario["process"]["pattern"] == {"name": "gfp", "portion": 200, "stride": 401}
    assert scenario["cache"]["blocks"] == 40
    assert scenario["policy"] == {"name": "rapid-transit"}
    wide = Variant(process={"buffers": 100})
    assert Case("lw", "none", 0.0).scenario(prefetching=False, variant=wide)["cache"]["blocks"] == 120


def test_gains_are_shares_of_the_run_without() -> None:
    assert pair().total_gain == pytest.approx(10.0)
    assert pair().read_gain == pytest.approx(25.0)
    assert pair(total_ms=10_500.0).total_gain == pytest.approx(-5.0)


def test_findings_on_reads_by_hand() -> None:
    good = pair()
    assert _reads.read_time([good]).verdict == "agrees"
    bad = _reads.read_time([good, pair(read_ms=41.0)])
    assert (bad.verdict, bad.ours) == ("differs", "reduced by more than 5 % in 1 of 2")
    assert "lfp, 10 each, 0 ms (-2.5 %)" in bad.note
    assert _reads.miss_ratio([good]).verdict == "agrees"
    assert _reads.miss_ratio([good, pair(misses=1200)]).verdict == "differs", "0.60 is not under 0.60"
    assert _reads.low_miss_ratio([good, pair(misses=900)]).verdict == "agrees", "0.05 and 0.45: half"
    assert _reads.low_miss_ratio([good, good]).verdict == "differs"
    assert _reads.demand_miss_ratio([good]).verdict == "agrees"
    assert _reads.unready([good]).ours == "55 % of the hits of all cases together"
    assert _reads.unready([good]).verdict == "agrees"
    assert _reads.unready([pair(hits_ready=1045 + 855, hits_unready=0)]).verdict == "differs"
    assert _reads.hit_wait([good, pair(hit_wait_ms=31.0)]).verdict == "agrees"
    assert _reads.hit_wait([good]).verdict == "differs", "all is not half"
    assert _reads.hit_wait_and_miss([pair(hit_wait_ms=20.0)]).verdict == "agrees"
    assert _reads.hit_wait_and_miss([good]).verdict == "differs", "25 of 45 ms is smaller, and not much smaller"
    assert _reads.read_time([pair(read_ms=39.0)]).verdict == "differs", "2.5 % is not significant"
    assert _reads.disk_response([good]).verdict == "agrees"
    assert _reads.disk_response([good, pair(disk_ms=39.0)]).verdict == "differs"
    assert _reads.fetches([good]).verdict == "agrees"
    assert _reads.fetches([good, pair(fetches=2001)]).ours == "no more in 1 of 2"
    assert _reads.distribution([good]).verdict == "agrees"
    assert _reads.distribution([pair(read_max_ms=50.0)]).verdict == "differs"
    short = pair(without=dataclasses.replace(BASE, read_ms=20.0), read_ms=10.0)
    assert _reads.shorter_reads([good, short]).verdict == "agrees", "50 % of 20 ms, 25 % of 40 ms"
    assert _reads.shorter_reads([good, pair(short.case, short.without, read_ms=19.0)]).verdict == "differs", "5 %"


def test_correlations() -> None:
    linear = [pair(hit_wait_ms=10.0 * at, read_ms=20.0 + 5.0 * at, misses=100 + 7 * (at % 2)) for at in range(8)]
    row = _reads.read_time_by_hit_wait(linear)
    assert row.verdict == "agrees"
    assert row.ours.startswith("correlation 1.00 with the hit-wait time") if isinstance(row.ours, str) else False
    assert _reads.correlation([1.0, 1.0], [2.0, 3.0]) == 0.0


def test_findings_on_totals_by_hand() -> None:
    good = pair()
    slow = pair(total_ms=10_600.0)
    assert _totals.total([good, good, slow]).verdict == "agrees"
    assert _totals.total([good, slow]).verdict == "differs", "half is not most"
    assert _totals.slowdowns([good, pair(total_ms=10_499.0)]).verdict == "agrees"
    assert _totals.slowdowns([good, slow]).ours == "less than that in 1 of 2"
    lw = pair(Case("lw", "none", 0.0), total_ms=5000.0)
    assert _totals.greatest_gain([good, lw]).verdict == "agrees", "50 % is within 10 points of 53"
    assert _totals.greatest_gain([good, pair(lw.case, total_ms=2000.0)]).verdict == "differs"
    assert _totals.threshold([good]).verdict == "agrees"
    row = _totals.threshold([pair(read_ms=38.0)])
    assert (row.verdict, row.ours) == ("differs", "1 of 1 cases below it improve, and 0 of 0 above")
    assert _totals.synchronisation([good]).verdict == "agrees"
    assert _totals.synchronisation([pair(barrier_ms=2400.0)]).verdict == "differs"
    assert _totals.overrun([good]).verdict == "agrees"
    assert _totals.overrun([pair(overrun_ms=3.9)]).verdict == "differs"
    one = dataclasses.replace(BASE, misses=100, hits_unready=1900)
    assert _totals.lw_misses([pair(lw.case, one, misses=1)]).verdict == "agrees"
    assert _totals.lw_misses([pair(lw.case, one, misses=2)]).verdict == "differs"


def test_findings_on_patterns_by_hand() -> None:
    portions = pair(Case("lrp", "portion", 0.0), barrier_ms=5000.0)
    other = pair(Case("lfp", "portion", 0.0), barrier_ms=4000.0)
    assert _totals.random_portions([other, portions]).verdict == "agrees"
    assert _totals.random_portions([pair(other.case, barrier_ms=6000.0), portions]).verdict == "differs"
    each = pair(Case("gw", "10 each", 0.0))
    faster = pair(Case("gw", "200 in all", 0.0), dataclasses.replace(BASE, total_ms=9500.0), total_ms=8000.0)
    assert _totals.balance([each, faster]).ours == "reduces it in 2 of 2, increases it in 0"
    assert _totals.balance([each, pair(faster.case)]).verdict == "differs"
    ratios = {"lfp": 1000, "lrp": 900, "gw": 200, "gfp": 200, "grp": 300, "lw": 1}
    groups = [pair(Case(name, "none", 0.0), misses=misses) for name, misses in ratios.items()]
    assert _totals.groups(groups).ours == "5 groups, the highest those of lrp and lfp"
    assert _totals.groups([each for each in groups if each.case.pattern != "grp"]).verdict == "agrees"


def test_the_account_adds_up() -> None:
    # -1200 waiting, +200 overrun, +100 barriers, -100 at the end: -1000 in all.
    text = _causes.account(pair())
    assert text.startswith(
        "total -10.0 %, read time -25.0 %; ms: waiting for blocks -1200, overrun and look-ups +200, "
    )
    said = "of the first seed 1 of 2 intervals shorter, waiting for blocks of those critical -1000"
    assert text.endswith(f"barriers +100, idle at the end -100; {said}")


def test_variants_differ() -> None:
    assert _sensitivity.VARIANTS["as pinned"] == PINNED
    keys = [json.dumps(dataclasses.asdict(each), sort_keys=True) for each in _sensitivity.VARIANTS.values()]
    assert len(set(keys)) == len(keys)
    leads = (_sweeps.LEADS, _sweeps.BUFFERS, _sweeps.MIN_TIMES_MS, _sweeps.COMPUTES_MS)
    assert all(list(each) == sorted(set(each)) for each in leads)


def test_an_item_for_real() -> None:
    rows = STUDY.run(["figure3", "findings"], quiet)
    assert [row.item for row in rows] == ["figure3"] * 44 + ["findings"] * len((*_reads.READS, *_totals.TOTALS))
    for row in rows:
        json.dumps(row.to_dict(), allow_nan=False)
        assert row.verdict in VERDICTS
        assert row.verdict == "not published" if row.item != "findings" else row.note
    assert rows == STUDY.run(["figure3", "findings"], quiet), "the same again"
    with pytest.raises(HeadstartError, match='no item "figure9"; allowed: matrix, '):
        STUDY.run(["figure9"], quiet)


def test_figures_are_drawn() -> None:
    needs_report()
    charts: dict[str, Any] = {}
    STUDY.run(["figure8", "matrix"], quiet, charts.__setitem__)
    assert set(charts) == {"figure8"}
    STUDY.run(sorted(_charts.PICTURES), quiet, charts.__setitem__)
    assert set(charts) == set(_charts.PICTURES) == {f"figure{number}" for number in range(3, 9)}
    for chart in charts.values():
        assert "lfp" in chart.to_json()


def test_the_page_has_the_charts(run: Run, tmp_path: Path) -> None:
    done = run("reproduce", "kotz-ellis", "figure8", "--json", "-", "--html", "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)) == 44
    page = (tmp_path / "page.html").read_text()
    assert page.count("<figure id=") == 1

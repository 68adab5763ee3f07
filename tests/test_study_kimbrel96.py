"""The study of kimbrel96: rows, verdicts, the figures that can be computed as published, and what is skipped.

The whole study runs thousands of simulations; here are the items that take seconds, and findings on a small grid.
"""

import dataclasses
import itertools
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from headstart import HeadstartError
from headstart._environment import TRACES_VARIABLE
from headstart_lab.studies import kimbrel96, load
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import VERDICTS, Row
from headstart_lab.studies.kimbrel96 import (
    _caches,
    _comparisons,
    _draws,
    _lab,
    _parameters,
    _rebuilt_reasons,
    _systems,
    _tables,
)
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._lab import Lab
from headstart_lab.studies.kimbrel96._outcome import Cell, Outcome
from headstart_lab.studies.kimbrel96._populations import Population
from headstart_lab.studies.kimbrel96._traces import STAND_INS, Traces, Workload, folders
from tests.conftest import needs_report


def quiet(_text: str, _share: float) -> None:
    """Report nothing."""


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return kimbrel96.STUDY.run(["figure1", "table1", "table2", "synth"], quiet)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, quiet, 2)


def finished(lab: Lab, steps: Steps) -> list[Row]:
    """Step one part to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return list(end.value)
        lab.wait()


def row(rows: list[Row], item: str, *words: str) -> Row:
    """Return the only row of `item` with these words in its quantity."""
    (found,) = (each for each in rows if each.item == item and all(word in each.quantity for word in words))
    return found


def well_formed(row: Row) -> bool:
    """Whether a row's verdict follows from its figures, and the row can be printed as JSON."""
    json.dumps(row.to_dict(), allow_nan=False)
    if isinstance(row.published, int | float) and isinstance(row.ours, int | float):
        assert isinstance(row.tolerance, int | float)
        assert row.difference is not None
        within = abs(row.difference) <= row.tolerance * (1 + 1e-9)
        return row.verdict == ("agrees" if within else "differs")
    if row.published is None:
        return row.verdict == "not published" and row.difference is None
    return isinstance(row.ours, str) and row.verdict != "not published" and bool(row.note)


def test_rows_are_well_formed(rows: list[Row]) -> None:
    assert {each.verdict for each in rows} <= set(VERDICTS)
    assert all(well_formed(each) for each in rows)
    assert [item for item, _ in itertools.groupby(rows, lambda each: each.item)] == [
        "figure1",
        "table1",
        "table2",
        "synth",
    ]


def test_figure_1_agrees(rows: list[Row]) -> None:
    units = {each.quantity.split(":")[0]: each.ours for each in rows if each.item == "figure1"}
    assert units == {
        "aggressive": 7,
        "fixed horizon, H = F": 7,
        "optimum": 6,
        "demand with optimal replacement": 10,
        "fixed horizon, H = 1": 8,
        "forestall, F' = F, horizon 0": 7,
        "reverse aggressive, F = 2": 7,
    }
    assert all(each.verdict == "agrees" for each in rows if each.item == "figure1" and each.published is not None)


def test_synth_meets_its_tolerances(rows: list[Row]) -> None:
    for disks in ("1 disk", "2 disks", "3 disks", "4 disks"):
        assert row(rows, "synth", f"{disks}, fixed horizon").ours == paper.SYNTH_FETCHES_FIXED_HORIZON
        assert row(rows, "table2", f"{disks}, fixed horizon").verdict == "agrees"
        assert row(rows, "table2", f"{disks}, aggressive, batch from our scan").verdict == "agrees"
        assert row(rows, "synth", f"{disks}, aggressive: fetches").verdict == "agrees"
    for disks in ("1 disk", "2 disks", "3 disks"):
        assert row(rows, "synth", f"{disks}, reverse aggressive").verdict == "agrees"
    assert row(rows, "synth", "optimal demand").ours == paper.SYNTH_FETCHES_MIN
    assert row(rows, "synth", "1 disk, aggressive: fetches").ours == paper.SYNTH_FETCHES_AGGRESSIVE[1]


def test_scanned_parameters_say_so(rows: list[Row]) -> None:
    scanned = [each for each in rows if "batch" in each.note and each.item == "synth" and "aggressive" in each.quantity]
    assert scanned
    assert all("our scan, not from the paper" in each.note for each in scanned)
    assert {each.basis for each in scanned} == {"calibrated"}
    basis = {each.quantity: each.basis for each in rows}
    assert basis["synth, 1 disk, fixed horizon: elapsed (s)"] == "calibrated", "the drive's read-ahead decides"
    assert basis["synth, 3 disks, fixed horizon: elapsed (s)"] == "predicted"
    assert basis["1 disk, fixed horizon: fetches"] == "predicted"
    assert basis["sectors of a track"] == "input"
    assert basis["blocks of 8 KB in 100 cylinders (section 3.2)"] == "identity"


def test_what_cannot_be_computed_is_said(rows: list[Row]) -> None:
    missing = row(rows, "table2", "xds")
    assert missing.ours is None
    assert "lost" in missing.note


def test_the_other_simulators_drive_stands_beside_its_column(rows: list[Row]) -> None:
    lightning = [each for each in rows if each.item == "table2" and "IBM 0661" in each.quantity]
    assert len(lightning) == 8
    assert all("its read-ahead is ours" in each.note and each.verdict in ("agrees", "differs") for each in lightning)
    beyond = [each.quantity for each in lightning if "No schedule takes" in each.note]
    assert beyond == ["CMU simulator (IBM 0661), synth on 1 disk by aggressive: elapsed (s)"]


def test_published_figures_name_their_place() -> None:
    # Every constant is followed by a docstring with its section, table or figure.
    lines = Path(paper.__file__).read_text(encoding="utf-8").splitlines()
    starts = [index for index, line in enumerate(lines) if ": Final" in line]
    for index, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        after = "\n".join(lines[index:end])
        assert any(word in after for word in ("ection ", "Table ", "Figure ")), lines[index]


def test_an_unknown_item_is_one_line() -> None:
    with pytest.raises(HeadstartError, match='no item "table9"; allowed: figure1, ') as error:
        kimbrel96.STUDY.run(["table9"], quiet)
    assert "\n" not in str(error.value)


def test_the_study_is_found_by_name() -> None:
    found = load("kimbrel96")
    assert {"figure1", "table1", "synth", "findings", *(f"figure{n}" for n in range(2, 11))} <= set(found.items)
    assert all(found.items.values())
    assert "OSDI 1996" in found.title


def test_shared_runs_run_once(lab: Lab) -> None:
    policy = _lab.fixed_horizon()
    first, second = lab.synth(policy, 1), lab.synth(policy, 1)
    assert first is second
    assert len(lab) == 1


def test_absent_traces_are_rows(tmp_path: Path) -> None:
    lab = Lab(tmp_path, quiet, 1)
    lab.traces = Traces(lab, {"programs": [], "buffer-cache": [tmp_path]})
    rows = finished(lab, _tables.table3(lab))
    skipped = [each for each in rows if "SKIPPED" in each.note]
    assert {each.quantity for each in skipped} == {f"{each.folder}/{each.name}" for each in STAND_INS}
    assert all(each.ours is None and TRACES_VARIABLE in each.note and well_formed(each) for each in skipped)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a tiny trace for each recorded stand-in."""
    header = "time,op,pid,file,offset,size,dur_us\n"
    lines = "".join(f"{k / 1000},R,1,1,{8192 * (k % 7)},8192,1\n" for k in range(50))
    folder = tmp_path / "traces" / "programs"
    folder.mkdir(parents=True)
    for stand_in in (each for each in STAND_INS if each.recorded):
        (folder / f"{stand_in.name}.csv.xz").write_bytes(lzma.compress((header + lines).encode()))
        table = "file,max_offset,disk_size,path\n1,57344,57344,/data\n"
        (folder / f"{stand_in.name}.files.csv.xz").write_bytes(lzma.compress(table.encode()))
    return folder


def test_a_folder_of_traces_is_used(lab: Lab, programs: Path) -> None:
    traces = Traces(lab, {"programs": [programs], "buffer-cache": []})
    ld = [each for each in traces.workloads if each.stand_in.name == "ld"]
    assert [(each.think, each.references, each.distinct) for each in ld] == [
        ("as recorded", 50, 7),
        ("scaled", 50, 7),
    ]
    assert ld[0].frames == paper.CACHE_BLOCKS_SMALL
    assert ld[1].compute_ms_mean == pytest.approx(1000 * 8.2 / 5881)
    assert len([each for each in traces.workloads if each.stand_in.name == "pg_join"]) == 3


@pytest.mark.parametrize("item", [f"figure{number}" for number in (2, 4, 6, 7, 9, 10)])
def test_figures_draw_what_their_rows_say(lab: Lab, programs: Path, item: str) -> None:
    needs_report()
    lab.traces = Traces(lab, {"programs": [programs], "buffer-cache": []})
    steps = kimbrel96.STUDY.steps[item](lab)
    rows = [each for each in finished(lab, steps) if each.ours is not None]
    panels = kimbrel96.STUDY.figures[item](lab).to_dict()["concat"]
    # Bars are drawn in three parts, points on lines as they are.
    elapsed: dict[tuple[str, ...], float] = {}
    for panel in panels:
        for point in panel["data"]["values"]:
            key = (panel["title"], *(str(point[name]) for name in ("disks", "algorithm", "value") if name in point))
            elapsed[key] = elapsed.get(key, 0.0) + point["seconds"]
    assert sorted(elapsed.values()) == pytest.approx(sorted(cast("float", each.ours) for each in rows))
    assert all(any(title in each.quantity for each in rows) for title, *_ in elapsed)


def test_no_trace_no_picture(lab: Lab) -> None:
    lab.traces = Traces(lab, {"programs": [], "buffer-cache": []})
    assert kimbrel96.STUDY.figures["figure4"](lab) is None


def test_the_users_folder_of_traces_is_looked_through(tmp_path: Path) -> None:
    found = folders(tmp_path)
    assert tmp_path / "programs" in found["programs"]
    assert {tmp_path / "buffer-cache", tmp_path / "third-party" / "buffer-cache"} <= set(found["buffer-cache"])


def test_scaled_think_times_have_the_mean_of_table_3(lab: Lab) -> None:
    (_, scaled, swapped) = lab.traces.named("pg_select")
    run = lab.cell(scaled, _lab.DEMAND, 1).outcome
    assert run.compute_s == pytest.approx(scaled.references * 79.2 / 5044, rel=1e-6)
    assert lab.cell(swapped, _lab.DEMAND, 1).outcome.compute_s == pytest.approx(
        scaled.references * 11.5 / 5044, rel=1e-6
    )


def test_a_faster_processor_halves_computing_and_driver(lab: Lab) -> None:
    (recorded, scaled, _) = lab.traces.named("pg_select")
    for workload in (recorded, scaled):
        slow = lab.cell(workload, _lab.DEMAND, 2).outcome
        fast = lab.cell(workload, _lab.DEMAND, 2, speed=2).outcome
        assert fast.compute_s == pytest.approx(slow.compute_s / 2, rel=1e-4)
        assert fast.driver_s == pytest.approx(slow.driver_s / 2)
        assert fast.fetches == slow.fetches


def test_findings_on_a_small_grid(lab: Lab) -> None:
    small = Population("scaled", lab.traces.named("pg_select")[1:2], (1, 4))
    checks = (
        _comparisons.against_demand,
        _comparisons.regimes,
        _comparisons.forestall_range,
        _comparisons.reverse_range,
        _parameters.static_ratio,
        _systems.crossovers,
        _systems.scheduler,
    )
    rows = [each for check in checks for each in finished(lab, check(lab, small))]
    assert len(rows) >= 11
    assert all(well_formed(each) for each in rows)
    demand = lab.cell(small.workloads[0], _lab.DEMAND, 4).outcome
    fixed = lab.cell(small.workloads[0], _lab.fixed_horizon(), 4).outcome
    assert fixed.elapsed_s < demand.elapsed_s
    assert row(rows, "", "against optimal demand fetching").ours == "significantly in 8 of 8 runs"


@pytest.mark.parametrize(
    ("margin", "expected"),
    [
        ({1: -1.0, 2: -2.0, 4: 0.0}, 1),
        ({1: 5.0, 2: 3.0, 4: -0.5, 8: 0.05}, 4),
        ({1: -1.0, 2: 3.0, 4: 0.2}, None),
    ],
)
def test_the_crossover_is_where_fixed_horizon_stays_ahead(margin: dict[int, float], expected: int | None) -> None:
    assert _systems.crossover(margin) == expected


@pytest.mark.parametrize(
    ("where", "published", "fits"),
    [
        (10, "at ten disks", True),
        (12, "at ten disks", False),
        (6, "above five disks", True),
        (None, "above five disks", False),
        (5, "below five disks", False),
    ],
)
def test_a_crossover_is_where_the_paper_has_it(where: int | None, published: str, fits: bool) -> None:
    assert _systems.fits(where, published) is fits


class MadeUp:
    """A study whose runs take the given times, by algorithm (and cache or speed) and disks; otherwise 10 s."""

    def __init__(self, **times: dict[int, float]) -> None:
        self.times = times

    def cell(self, _workload: Workload, policy: _lab.Policy, disks: int, frames: int = 0, speed: int = 1) -> Cell:
        name = policy["name"].replace("-", "_") + (f"_{frames}" if frames else "") + ("_fast" if speed > 1 else "")
        outcome = Outcome(**{field.name: 1 for field in dataclasses.fields(Outcome)})  # type: ignore[arg-type]
        return Cell(dataclasses.replace(outcome, elapsed_s=self.times.get(name, {}).get(disks, 10.0)))

    def reverse_scan(self, workload: Workload, disks: int) -> list[tuple[_lab.Policy, Cell]]:
        policy = _lab.reverse_aggressive(1, 4)
        return [(policy, self.cell(workload, policy, disks))]

    def verdict(self, check: Callable[[Lab, Population], Steps], *disks: int) -> str:
        workload = Workload(STAND_INS[0], "scaled", Path("none"), 1000, 1000, 5000, 1.0)
        steps = check(cast(Lab, self), Population("scaled", [workload], disks))
        next(steps)
        with pytest.raises(StopIteration) as end:
            next(steps)
        found: list[Row] = end.value.value
        return found[0].verdict


def test_criteria_are_as_strict_as_their_sentences() -> None:
    fast = {name: {1: 8.0, 4: 8.0} for name in ("fixed_horizon", "aggressive", "forestall", "reverse_aggressive")}
    assert MadeUp(**fast).verdict(_comparisons.against_demand, 1, 4) == "agrees"
    fast["forestall"] = {1: 8.0, 4: 9.0}
    assert MadeUp(**fast).verdict(_comparisons.against_demand, 1, 4) == "differs", "10 % is not significant"

    # Fixed horizon overtakes aggressive on 2 disks; with a faster processor on 4.
    before = {"aggressive": {1: 9.0}}
    later = MadeUp(**before, aggressive_fast={1: 9.0, 2: 9.0})
    assert later.verdict(_systems.faster_processor, 1, 2, 4) == "agrees"
    same = MadeUp(**before, aggressive_fast={1: 9.0})
    assert same.verdict(_systems.faster_processor, 1, 2, 4) == "differs", "where it stays it does not shift"

    def caches(largest: float) -> str:
        names = ("fixed_horizon", "aggressive", "forestall")
        sizes = zip((640, 1280, 1920), (10.0, 9.0, largest), strict=True)
        times = {f"{name}_{frames}": {1: elapsed} for frames, elapsed in sizes for name in names}
        return MadeUp(**times).verdict(_caches.larger_caches, 1)

    assert caches(8.9) == "agrees"
    assert caches(9.0) == "differs", "as fast as before is no improvement"


@pytest.mark.parametrize(("disks", "batch"), [(1, 80), (2, 40), (3, 40), (4, 16), (5, 16), (6, 8), (7, 8), (16, 4)])
def test_table_6(disks: int, batch: int) -> None:
    assert paper.table6(disks) == batch


def test_a_finding_on_draws_agrees_if_three_quarters_hold() -> None:
    def trials(held: int) -> list[_draws.Trial]:
        return [_draws.Trial(at < held, float(at)) for at in range(20)]

    enough = _draws.row("q", "p", trials(15), "%", tolerance="t", note="n")
    assert (enough.verdict, enough.held, enough.tried, enough.input) == ("agrees", 15, 20, "rebuilt")
    assert enough.ours == "holds in 15 of 20 draws; 0 to 19 %, median 9.5"
    assert _draws.row("q", "p", trials(14), "%", tolerance="t", note="n").verdict == "differs"


def test_a_printed_figure_agrees_within_the_widened_spread() -> None:
    def verdict(published: float) -> str:
        return _draws.printed("q", published, [100.0, 200.0], "s", note="n").verdict

    assert [verdict(each) for each in (94.9, 95, 210, 211)] == ["differs", "agrees", "agrees", "differs"]
    spreads = {1: [0.5, 0.6], 2: [0.2, 0.3], 3: [0.1], 4: [0.1]}
    row = _draws.table("q", {1: 0.45, 2: 0.34, 3: 0.1, 4: 0.3}, spreads, 0.05, note="n")
    assert (row.verdict, row.held, row.tried) == ("agrees", 3, 4)
    assert _draws.table("q", {1: 0.45, 2: 0.36, 3: 0.1, 4: 0.3}, spreads, 0.05, note="n").verdict == "differs"


def test_a_rebuilt_trace_is_drawn_by_its_seed_and_keeps_table_3() -> None:
    draw = _draws.Draw("postgres-join", 7)
    assert draw.section(2) == {
        "generator": "kimbrel96-postgres-join",
        "placement": "random-groups",
        "compute_total": "5750000000ns",
    }
    assert draw.frames == 1280 and _draws.Draw("dinero", 1).frames == 512
    assert _draws.Draw("postgres-join", 7, swapped=True).compute_s == 79.2
    assert len(_draws.draws("xds", "ld")) == 40 and len(_draws.of_seed(3)) == 9


def test_only_rows_that_differ_get_a_reason() -> None:
    def steps() -> Steps:
        yield
        held, failed = [_draws.Trial(True, 1.0)], [_draws.Trial(False, 9.0)]
        words = "rebuilt ld: forestall against the better of aggressive and fixed horizon, at worst"
        return [_draws.row(words, "p", trials, "%", tolerance="t", note="n") for trials in (held, failed)]

    parts = _rebuilt_reasons.explained(steps())
    next(parts)
    with pytest.raises(StopIteration) as end:
        next(parts)
    assert [each.note for each in end.value.value] == ["n", f"n. {_rebuilt_reasons.FOUR_F}"]

"""The figures of the docs stay current: result files match the studies, and tables match the files."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import headstart
from headstart import HeadstartError, _environment
from headstart._environment import Folders
from headstart_lab import studies
from headstart_lab.studies._lab import Lab, Steps
from headstart_lab.studies._rows import INPUTS, finding, number, unpublished
from headstart_lab.studies._study import Study
from tests.conftest import ROOT

QUICK = {
    "file-system": ["quick"],
    "idle-time": ["quick"],
    "imperfect-hints": ["shipped"],
    "kimbrel96": ["figure1", "table1"],
    "kotz-ellis": ["min-time"],
    "levels": ["quick"],
    "li07": ["theory", "figure4"],
    "model-traces": ["shipped"],
    "nodes": ["quick"],
    "predictors": ["shipped"],
    "shriver99": ["table3", "table5", "errors"],
    "tip2": ["quick"],
    "zhang-pfc": ["traces"],
}
"""Items of each study that take seconds; `make results` computes all."""


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that writes files and tables."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import results

    return results


@pytest.fixture
def held(results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results with one file of li07, with invented rows."""
    rows = [
        replace(number("rate (MB/s)", published=50.0, ours=55.5, tolerance=0.01), item="figure4", input="paper"),
        replace(
            finding("bound | a", published="2", ours="2", holds=True, basis="identity", note="1 * n"),
            item="theory",
            input="paper",
        ),
        replace(unpublished("another seed", 12_345.5), item="sensitivity", input="paper"),
    ]
    for quantity, holds, cases in (("x", True, (3, 4)), ("y", False, (3, 4)), ("z", False, (0, 4))):
        row = finding(quantity, published="all", ours="some", holds=holds, cases=cases, note="")
        rows.append(replace(row, item="figure7", input="stand-in"))
    head = {"study": "li07", "title": "T", "headstart": "9.9", "seeds": "1", "unpublished": 1234}
    items = {"theory": "t", "figure4": "f", "figure7": "g", "sensitivity": "s"}
    text = json.dumps({**head, "items": items, "rows": [row.to_dict() for row in rows]})
    (tmp_path / "li07.json").write_text(text, encoding="utf-8")
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return tmp_path


def written(results: ModuleType, mark: str) -> str:
    text = f"before\n<!-- {mark} -->\nold\n<!-- end of results -->\nafter\n"
    new: str = results.rendered(Path("page.md"), text)
    assert results.rendered(Path("page.md"), new) == new, "a table that is up to date stays"
    assert new.startswith(f"before\n<!-- {mark} -->\n") and new.endswith("<!-- end of results -->\nafter\n")
    return new


def test_tables_hold_the_rows_that_their_mark_names(results: ModuleType, held: Path) -> None:
    whole = written(results, "results: li07")
    assert "| figure4 | rate (MB/s) | 50 | 55.5 (+11.00%) | **differs** | predicted | paper |\n" in whole
    assert "| theory | bound \\| a | 2 | 2 | agrees | identity | paper |\n" in whole
    assert "| x | all | some | holds | predicted | stand-in |\n" in whole
    assert "| y | all | some | holds in 3 of 4 | predicted | stand-in |\n" in whole
    assert "| z | all | some | **does not hold** | predicted | stand-in |\n" in whole
    assert "another seed" not in whole
    assert "headstart 9.9; seed 1" in whole
    every = written(results, "rows: li07")
    assert "| 1 | figure4 | rate (MB/s) | 50 | 55.5 | +11.00% | 1.00% | **differs** | predicted | paper |\n" in every
    assert "| 2 | theory | bound \\| a | 2 | 2 | - | - | agrees | identity | paper |\n" in every
    assert every.count("\n- **") == 1 and "- **2**: 1 \\* n\n" in every
    some = written(results, "results: li07 theory")
    assert "bound" in some and "rate" not in some
    assert "| another seed | 12,345.5 |\n" in written(results, "figures: li07 sensitivity")


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("results: li08", 'page.md: results: no results of "li08"; allowed: li07'),
        ("results: li07 figure5", 'page.md: results: li07 has no item "figure5"; allowed: theory, figure4'),
        ("figures: ../li07", 'page.md: figures: no results of "../li07"; allowed: li07'),
        ("figures: li07", "page.md: figures: li07: no rows; allowed: items that have rows without a verdict"),
        ("figures: li07 theory", "page.md: figures: li07 theory: no rows; allowed: items that have rows without"),
    ],
)
def test_wrong_marks_are_refused(results: ModuleType, held: Path, mark: str, message: str) -> None:
    with pytest.raises(HeadstartError) as error:
        written(results, mark)
    assert str(error.value).startswith(message)


def test_a_mark_without_an_end_is_refused(results: ModuleType, held: Path) -> None:
    with pytest.raises(HeadstartError, match=r"page.md: a mark of results has no end; allowed: <!-- end of results"):
        results.rendered(Path("page.md"), "<!-- results: li07 -->\n<!-- end of results --> too late\n")


def test_the_summary_counts_rows_by_what_they_rest_on(
    results: ModuleType, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "names", lambda: ["li07"])
    assert "| [li07](#li07) | 0, 1 | - | - | 1, 0 | 1,234 |\n" in written(results, "results: summary")


def test_the_readme_counts_predicted_rows_by_input(
    results: ModuleType, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "names", lambda: ["li07"])
    text = written(results, "results: predicted")
    assert "| [li07](docs/reproduction.md#li07) | T | 0, 1 | - |\n" in text, "neither identities nor stand-ins"
    assert "1 of 3 findings hold, 1 hold in a part of the cases and 1 do not: " in text.replace("\n", " ")


def test_findings_on_stand_ins_are_counted_apart(
    results: ModuleType, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "names", lambda: ["li07"])
    assert "| [li07](#li07) | 1 | 1 | 1 |\n" in written(results, "results: stand-ins")


def test_each_row_of_each_study_says_what_was_run(results: ModuleType) -> None:
    seen = set()
    for name in studies.names():
        rows = results.load(name)["rows"]
        assert {row.input for row in rows} <= set(INPUTS), name
        assert all(row.tried is None or 0 <= row.held <= row.tried for row in rows), name
        seen |= {(name, row.input) for row in rows}
    assert {("kimbrel96", "paper"), ("kimbrel96", "stand-in"), ("li07", "stand-in"), ("shriver99", "paper")} <= seen
    assert {each for name, each in seen if name == "zhang-pfc"} == {"rebuilt", "stand-in"}


def test_an_item_or_a_row_may_rest_on_something_else_than_its_study() -> None:
    def item(lab: Lab[Any]) -> Steps:
        yield
        return [unpublished("q", 1), unpublished("own", 2, input="rebuilt")]

    study = Study(
        name="t", title="T", seeds="1", lab=Lab, steps={"a": item, "b": item}, input="paper", inputs={"b": "stand-in"}
    )
    rows = study.run([], lambda _text, _share: None)
    assert [row.input for row in rows] == ["paper", "rebuilt", "stand-in", "rebuilt"]


def test_absent_traces_leave_a_file_alone(
    results: ModuleType, held: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def theory(lab: Lab[Any]) -> Steps:
        yield
        return [unpublished("cs", None, note="SKIPPED: absent")]

    study = Study(name="li07", title="T", seeds="1", lab=Lab, steps={"theory": theory}, input="paper")
    monkeypatch.setattr(studies, "load", lambda name: study)
    monkeypatch.setattr(sys, "argv", ["results.py", "li07"])
    before = (held / "li07.json").read_text()
    assert results.main() == 2
    message = "docs/results/li07.json is left as it was: li07: traces are absent for cs; allowed: "
    assert capsys.readouterr().err.startswith(message)
    assert (held / "li07.json").read_text() == before


def test_every_study_has_a_file_of_its_items(results: ModuleType) -> None:
    assert set(QUICK) == set(studies.names())
    for name in studies.names():
        held = results.load(name)
        study = studies.load(name)
        assert (held["title"], held["seeds"], held["items"]) == (study.title, study.seeds, study.items), name
        assert held["headstart"] == headstart.__version__, f"make results ARGS={name}"
        assert {row.item for row in held["rows"]} <= set(held["items"])


def test_the_page_of_reproduction_has_every_row_and_each_difference_its_reason(results: ModuleType) -> None:
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    for name in studies.names():
        assert f"\n## {name}\n" in text and f"<!-- rows: {name} -->" in text
        differing = [row for row in results.load(name)["rows"] if row.verdict == "differs"]
        assert [row.quantity for row in differing if not row.note] == []


@pytest.mark.parametrize("name", sorted(QUICK))
def test_files_hold_what_the_studies_compute(results: ModuleType, name: str, tmp_path: Path) -> None:
    """Each row equals the one in the file, to the last digit; see `make results`."""
    folders = Folders(traces=_environment.folders().traces, cache=tmp_path)
    fresh = studies.load(name).run(QUICK[name], lambda _text, _share: None, folders=folders)
    if absent := [row.quantity for row in fresh if row.note.startswith(results.SKIPPED)]:
        pytest.skip(f"{name}: traces are absent for {', '.join(absent)}: set HEADSTART_TRACES")
    held = [row for row in results.load(name)["rows"] if row.item in QUICK[name]]
    assert held == list(results.kept(name, fresh)), f"docs/results/{name}.json is out of date: make results ARGS={name}"

"""`headstart reproduce`: rows, verdicts, and how they are shown. The studies' own figures are tested elsewhere."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import headstart
from headstart_lab import studies
from headstart_lab.studies._lab import Lab, Steps
from headstart_lab.studies._rows import VERDICTS, finding, number, unpublished
from headstart_lab.studies._study import Study
from tests.conftest import Run

FIELDS = ["item", "quantity", "published", "ours", "difference", "tolerance", "verdict", "basis", "note"]
FIELDS += ["input", "held", "tried"]


def test_numbers_agree_within_their_tolerance() -> None:
    def verdict(published: float, ours: float, tolerance: float) -> str:
        return number("q", published=published, ours=ours, tolerance=tolerance).verdict

    assert verdict(37_280, 37_280, 0) == "agrees"
    assert verdict(37_280, 37_281, 0) == "differs"
    assert verdict(200, 202, 0.01) == "agrees"
    assert verdict(200, 198, 0.01) == "agrees"
    assert verdict(200, 202.1, 0.01) == "differs"
    assert verdict(0.7, 0.707, 0.01) == "agrees", "the last bit of 0.01 does not decide"
    assert verdict(0, 0.5, 0.5) == "agrees", "about 0 a tolerance is absolute"
    assert unpublished("q", 5).verdict == "not published"
    row = number("q", published=200, ours=150, tolerance=0.1)
    assert row.difference == -0.25
    assert list(row.to_dict()) == FIELDS


def test_findings_carry_their_figures_in_the_note() -> None:
    row = finding("prefetchers beat demand", published="always", ours="in 11 of 12", holds=False, note="scan on 1")
    assert (row.verdict, row.note, row.difference) == ("differs", "scan on 1", None)


WITHOUT = """
import importlib.metadata, sys
found = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **keys: [] if keys.get("group") == "headstart.commands" else found(**keys)
from headstart.cli import app
sys.exit(app.run(sys.argv[1:]))
"""
"""The command where headstart-lab is not installed."""


def test_without_the_laboratory_one_line_says_how_to_install_it() -> None:
    for words in (["kimbrel96"], ["kimbrel96", "figure1", "--json", "-"], ["--list", "li07"]):
        command = [sys.executable, "-c", WITHOUT, "reproduce", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        line = "headstart: reproduce: needs the laboratory; allowed: pip install headstart-lab\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
    command = [sys.executable, "-c", WITHOUT, "--help"]
    assert "Comes with headstart-lab" in subprocess.check_output(command, text=True)


def test_the_package_uses_nothing_of_the_laboratory() -> None:
    package = Path(str(headstart.__file__)).parent
    users = [path for path in package.rglob("*.py") if "headstart_lab" in path.read_text(encoding="utf-8")]
    assert users == []


def test_studies_keep_to_the_protocol() -> None:
    assert "kimbrel96" in studies.names()
    for name in studies.names():
        study = studies.load(name)
        assert study.title
        assert study.seeds
        assert all(line and "\n" not in line for line in study.items.values())


def test_an_item_through_the_command(run: Run, tmp_path: Path) -> None:
    done = run("reproduce", "kimbrel96", "figure1", "--json", "-", "--html", "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert rows
    for row in rows:
        assert list(row) == FIELDS
        assert row["item"] == "figure1"
        assert row["verdict"] in VERDICTS
    page = (tmp_path / "page.html").read_text()
    assert not re.search(r"https?:|<script src|<link", page)
    shown = run("reproduce", "kimbrel96", "figure1").stdout
    agree = sum(row["verdict"] == "agrees" for row in rows)
    assert shown.splitlines()[-1].startswith(f"{agree} agree, ")
    assert f'<p class="headline">{agree} agree, ' in page
    told = sum(row["verdict"] == "agrees" and row["basis"] == "predicted" for row in rows)
    assert f"of the predicted: {told} agree, " in shown.splitlines()[-1]
    assert f"of the predicted: {told} agree, " in page
    assert all(f'<td class="text">{row["basis"]}</td>' in page for row in rows if row["verdict"] != "not published")
    listed = run("reproduce", "kimbrel96", "--list").stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(studies.load("kimbrel96").items)


def test_a_study_that_does_not_exist(run: Run) -> None:
    done = run("reproduce", "kimbrel95")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'no study "kimbrel95" (did you mean "kimbrel96"?); allowed: ' in done.stderr


def test_rows_are_shown_by_item_with_notes_once() -> None:
    import io

    from rich.console import Console

    from headstart_lab.reproduce import show

    def table(lab: Lab[Any]) -> Steps:
        """Table 1."""
        yield
        return [
            number("elapsed (s)", published=200, ours=201.5, tolerance=0.01, note="same [note]"),
            number("fetches", published=37_280, ours=37_290, note="same [note]"),
        ]

    def findings(lab: Lab[Any]) -> Steps:
        """Findings."""
        yield
        return [
            finding("order", published="a before b", ours="a before b", holds=True, note="1 and 2"),
            number("scanned", published=3, ours=3, basis="calibrated"),
            unpublished("ours alone", 4),
        ]

    items = {"t1": table, "f1": findings}
    study = Study(name="t", title="A paper [with brackets]", seeds="1", lab=Lab, steps=items, input="paper")
    rows = study.run([], lambda _text, _share: None)
    text = io.StringIO()
    show(Console(file=text, width=120), study.title, study.items, rows)
    out = text.getvalue()
    for part in ("A paper [with brackets]", "t1: Table 1", "f1: Findings", "+0.75%", "1.00%", "exact", "a before b"):
        assert part in out
    assert out.count("same [note]") == 1
    assert "3 agree, 1 differ, 1 not published; of the predicted: 2 agree, 1 differ" in out
    basis = {line.split()[0]: line.split()[-3 if line.endswith("]") else -2] for line in out.splitlines() if line}
    assert (basis["elapsed"], basis["order"], basis["scanned"]) == ("predicted", "predicted", "calibrated")
    assert basis["ours"] == "-", "no verdict, no basis"

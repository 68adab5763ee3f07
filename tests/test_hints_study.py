"""The hints study: its commands and lists, how it judges, what it shows. What needs root is skipped elsewhere."""

import dataclasses
import os
import re
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from headstart._core import HeadstartError
from headstart_lab.hintstudy import __main__ as shown
from headstart_lab.hintstudy import commands, disks, guards, replay, study, ways
from headstart_lab.hintstudy.replay import Piece
from headstart_lab.hintstudy.study import Guarded, Timing, Timings
from headstart_lab.livestudy import platform
from headstart_lab.measured import Page

ROOT = Path(__file__).parents[1]
PLAIN = Timing(
    disk="ibm-36gb-10k",
    command="git status",
    way="plain",
    elapsed_ns=10_000_000_000,
    spread=0.0,
    read_bytes=1,
    plain_ns=10_000_000_000,
    forecast_ns=11_000_000_000,
)


def made(**seconds: float) -> Timings:
    """Return a study of one command, by the seconds of `ours`, `sorted`, `access`, `forecast`."""
    by_way = {study.OURS: seconds["ours"], "sorted": seconds["sorted"], "access order": seconds["access"]}
    forecasts = {study.OURS: int(seconds["forecast"] * 1e9)}
    rows = [
        dataclasses.replace(PLAIN, way=way, elapsed_ns=int(s * 1e9), forecast_ns=forecasts.get(way))
        for way, s in by_way.items()
    ]
    return Timings("a machine", 1, [PLAIN, *rows])


def verdicts(found: Timings) -> dict[str, tuple[str, str]]:
    return {each.quantity.split(": ", 1)[1]: (str(each.ours), each.verdict) for each in study.findings(found)}


def test_findings_by_hand() -> None:
    good = verdicts(made(ours=4.6, sorted=4.0, access=12.0, forecast=4.0))
    assert good == {
        "of plain, geometric mean": ("0.46", "agrees"),
        "of plain, the worst: git status": ("0.46", "agrees"),
        "of the better order of the whole list, the worst: git status": ("1.15", "agrees"),
        "forecasts within 15%": ("2", "agrees"),
    }
    trusted = made(ours=4.6, sorted=4.0, access=12.0, forecast=4.0)
    trusted.rows.append(dataclasses.replace(PLAIN, way=ways.TRUSTED, elapsed_ns=5_100_000_000, forecast_ns=None))
    assert verdicts(trusted) == {**good, "of plain with --trust, geometric mean": ("0.51", "differs")}
    bad = verdicts(made(ours=10.4, sorted=9.0, access=8.0, forecast=4.0))
    assert bad == {
        "of plain, geometric mean": ("1.04", "differs"),
        "of plain, the worst: git status": ("1.04", "differs"),
        "of the better order of the whole list, the worst: git status": ("1.30", "differs"),
        "forecasts within 15%": ("1", "differs"),
    }


def test_what_must_not_become_slower_is_judged() -> None:
    found = made(ours=4.6, sorted=4.0, access=12.0, forecast=4.0)
    found.guarded = [
        Guarded(disk="own", case="all wrong", plain_ns=100, run_ns=103),
        Guarded(disk="own", case="90% wrong", plain_ns=100, run_ns=104),
    ]
    found_by = verdicts(found)
    assert found_by["all wrong"] == ("1.03", "agrees")
    assert found_by["90% wrong"] == ("1.04", "differs")
    found.guarded = [Guarded(disk="own", case="64 MiB", plain_ns=0, run_ns=0, problem="exit status -9")]
    assert verdicts(found)["64 MiB"] == ("exit status -9", "differs")


def test_sorted_puts_metadata_first_and_joins_neighbours_across_small_holes() -> None:
    found = [
        Piece("/b", False, 0, 2, 500),
        Piece("/a", False, 100, 1, 200),
        Piece("/a", False, 0, 1, 100),
        Piece("/a", False, 10, 2, 110),
        Piece("/dev/disk", True, 900, 1, 900),
    ]
    ordered = [(each.path, each.first, each.count) for each in replay.in_order(found)]
    # A hole of 9 pages is read, one of 88 is not.
    assert ordered == [("/dev/disk", 900, 1), ("/a", 0, 12), ("/a", 100, 1), ("/b", 0, 2)]


def test_a_list_names_each_page_once_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(5 * replay.PAGE))
    read = {"file": 0, "start": 0, "pages": 3}
    recorded = {
        "files": [{"path": str(file)}, {"path": "/elsewhere/file"}, {"path": None}],
        "reads": [read, {**read, "start": 1, "pages": 4}, {**read, "file": 1}, {**read, "file": 2}],
    }
    found = replay.pieces(recorded, tmp_path, None)
    assert sum(each.count for each in found) == 5
    assert {each.path for each in found} == {str(file)}
    reading = replay.Replay(found)
    reading.wait()


def test_lists_of_files_are_of_the_repository_and_the_same_each_time(tmp_path: Path) -> None:
    names = guards.files(tmp_path, 1)
    assert names == guards.files(tmp_path, 1) != guards.files(tmp_path, 2)
    assert len(set(names)) == guards.FILES
    assert all(re.fullmatch(r".*/src/lib\d{3}/part\d/file\d{5}\.c", name) for name in names)


def test_a_command_without_its_program_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tree = commands.Tree(tmp_path)
    with pytest.raises(HeadstartError, match="not installed: git"):
        commands.needs("git")
    tree.missing = {"git": "not installed: git"}
    reasons = {each.name: tree.why_not(each) for each in commands.commands()}
    assert reasons["git status"] == "git: not installed: git"
    assert reasons["python stdlib"] is None


def test_disks_are_checked() -> None:
    study.check_disks(study.DISKS)
    with pytest.raises(HeadstartError, match="--disk: floppy: no such disk; allowed: ibm-36gb-10k"):
        study.check_disks(["floppy"])


def test_tables_for_people_and_for_the_docs() -> None:
    found = made(ours=4.6, sorted=4.0, access=12.0, forecast=4.0)
    found.left_out = {"rustc --version": "rust: not installed: rustc"}
    console = Console(width=120)
    with console.capture() as capture:
        shown.show(console, found)
    text = capture.get()
    assert "left out: rustc --version: rust: not installed: rustc" in text
    assert re.search(r"git status +run just-in-time +4\.60 +0\.46 +0% +0\.0 +4\.00 +-13%", text)
    assert "| git status | run just-in-time | 4.60 | 0.46 | 0% | 0.0 | 4.00 | -13% |" in shown.markdown(found)


def test_the_page_has_marks_and_its_table_all_disks_of_the_study(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "hints-study.md").read_text(encoding="utf-8")
    begin, end = "<!-- hints-study: begin -->\n", "<!-- hints-study: end -->"
    table = page[page.index(begin) + len(begin) : page.index(end)]
    assert "| import pandas | plain |" in table
    copy = tmp_path / "page.md"
    copy.write_text(page, encoding="utf-8")
    Page(copy, "hints-study").write("new")
    assert copy.read_text(encoding="utf-8") == page.replace(table, "new\n")
    copy.write_text("no marks", encoding="utf-8")
    with pytest.raises(HeadstartError, match=r"page\.md: has no marks; allowed: "):
        Page(copy, "hints-study")


@pytest.mark.skipif(platform.why_not() is not None, reason=f"SKIPPED: no emulated disk here: {platform.why_not()}")
def test_a_file_system_on_an_emulated_drive_has_cold_caches(tmp_path: Path) -> None:
    (tmp_path / "pg" / "data").mkdir(parents=True)
    (tmp_path / "pg" / "data" / "base").write_bytes(b"x" * 5000)
    (tmp_path / "file").write_bytes(b"y" * 300_000)
    with disks.emulated("ibm-36gb-10k", tmp_path) as disk:
        for _ in range(2):
            disk.cold()
            before = disk.read_bytes()
            assert (disk.root / "file").read_bytes() == b"y" * 300_000
            assert disk.read_bytes() - before >= 300_000
        data = commands.written(disk.root)
        # Written data is there, and is dropped with the caches: the drive is not written.
        (data / "base").write_bytes(b"z")
        assert (disk.root / "pg" / "data" / "base").read_bytes() == b"x" * 5000
        disk.cold()
        assert (data / "base").read_bytes() == b"x" * 5000
    assert not platform.is_mounted(disk.root)


@pytest.mark.skipif(platform.why_not() is not None, reason=f"SKIPPED: no emulated disk here: {platform.why_not()}")
def test_a_cold_disk_has_nothing_in_the_buffer_of_the_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"y" * 40_000_000)
    with disks.emulated("seagate-exos-x20", tmp_path) as disk:

        def from_the_media() -> int:
            """Return how many requests for pages far apart are not served from the drive's buffer."""
            disk.cold()
            before = platform.statistics(disk.root.with_name("drive"))
            with (disk.root / "file").open("rb", buffering=0) as file:
                for place in range(15_000_000, 40_000_000, 10_000_000):
                    os.pread(file.fileno(), 4096, place)
            after = platform.statistics(disk.root.with_name("drive"))
            return int(after.device_requests - after.buffer_hits - (before.device_requests - before.buffer_hits))

        forgotten = min(from_the_media() for _ in range(2))
        assert forgotten >= 3
        monkeypatch.setattr(disks, "forget", lambda _: None)
        assert min(from_the_media() for _ in range(3)) < forgotten, "most of them are in the buffer"


@pytest.mark.skipif(platform.why_not() is not None, reason=f"SKIPPED: no emulated disk here: {platform.why_not()}")
def test_caches_that_another_mount_namespace_keeps_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"y" * 300_000)
    with disks.emulated("ibm-36gb-10k", tmp_path) as disk:
        assert disk.device is not None
        held = ["unshare", "--mount", "sh", "-c", "echo ready; read line"]
        with subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"ready\n"
            with monkeypatch.context() as hurried:
                hurried.setattr(platform, "PATIENCE_S", 0.1)
                with pytest.raises(HeadstartError, match="still mounted in another mount namespace"):
                    disk.cold()
            assert not disks.is_free(disk.device)
            holder.communicate(b"\n")
        disk.cold()
        assert (disk.root / "file").read_bytes() == b"y" * 300_000

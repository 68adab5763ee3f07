"""The live study: what is read and predicted, how it judges, and that it leaves the machine as it was."""

import csv
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import headstart
from headstart.livestudy import image, platform, predict, report, workloads
from headstart.livestudy.image import MB, Placed, Planned
from headstart.livestudy.measure import Host
from headstart.livestudy.study import MEMORY, Row, Study, findings, settings
from headstart.livestudy.workloads import Read, Workload
from tests.conftest import ROOT

COMMAND = [sys.executable, "-m", "headstart.livestudy"]
PATIENCE_S = 120.0
NO_HOST = Host(system_call_ns=0, copy_per_kib_ns=0, request_ns=0)
KIB = 1024

REASON = platform.why_not()
lives = pytest.mark.skipif(REASON is not None, reason=f"no live study here: {REASON}")
TOOLLESS = image.missing_tools()
makes = pytest.mark.skipif(bool(TOOLLESS), reason=f"no image can be made: {', '.join(TOOLLESS)} not installed")


def row(workload: str, setting: str, measured_ns: int, predicted_ns: int = 1_000_000_000) -> Row:
    return Row(
        workload=workload,
        setting=setting,
        read_ahead_kb=128,
        measured_ns=measured_ns,
        spread=0.01,
        predicted_ns=predicted_ns,
        difference=predicted_ns / measured_ns - 1,
        verdict="agrees",
        measured_requests=10,
        predicted_requests=11,
        measured_bytes=5 * MB,
        predicted_bytes=6 * MB,
        lateness_p99_ns=300_000,
        note="",
    )


# What is read.


def test_workloads_read_what_they_say() -> None:
    planned = workloads.files()
    size = {file.name: file.size for file in planned}
    each = {workload.name: workload for workload in workloads.workloads(planned)}
    # 50 MB are 762 reads of 64 KiB and a part.
    assert [(name, found.reads, found.size) for name, found in each.items()] == [
        ("alternating", 2 * 763, 100 * MB),
        ("concurrent", 4 * 763, 200 * MB),
        ("stream", 763, 50 * MB),
        ("random 4 KiB", 300, 300 * 4 * KIB),
        ("random 64 KiB", 300, 300 * 64 * KIB),
        ("short runs", 150 * 4, 150 * 256 * KIB),
    ]
    assert [len(found.readers) for found in each.values()] == [1, 4, 1, 1, 1, 1]
    for workload in each.values():
        for reads in workload.readers:
            seen: dict[str, set[int]] = {}
            for read in reads:
                assert read.offset + read.size <= size[read.file]
                pages = set(range(read.offset // image.BLOCK, -(-(read.offset + read.size) // image.BLOCK)))
                assert not pages & seen.setdefault(read.file, set()), "nothing is read twice"
                seen[read.file] |= pages
    assert each["alternating"].readers[0][:3] == (
        Read("one", 0, 64 * KIB),
        Read("two", 0, 64 * KIB),
        Read("one", 64 * KIB, 64 * KIB),
    )
    assert workloads.workloads(planned) == list(each.values())


def test_the_trace_has_the_same_reads_where_the_files_lie(tmp_path: Path) -> None:
    files = [Placed("b", 8192, 30, 0), Placed("a", 5000, 10, 0)]
    two = Workload("two", "", ((Read("a", 0, 4096), Read("b", 4096, 4096)), (Read("a", 4096, 904),)))
    trace = tmp_path / "reads.csv"
    predict.write_trace(trace, two, files)
    # Blocks 0 to 9 are nobody's, 10 and 11 are a's, 12 to 29 nobody's, 30 and 31 b's.
    assert predict.table(files) == [("", 10 * 4096), ("a", 5000), ("", 18 * 4096), ("b", 8192)]
    with trace.open(encoding="ascii") as lines:
        assert [tuple(map(int, line)) for line in list(csv.reader(lines))[1:]] == [
            (0, 1, 0, 4096),
            (0, 3, 4096, 4096),
            (1, 1, 4096, 904),
        ]
    # On a device with an address of its own for each block, the simulator reads the blocks that the files have.
    found = predict.scenario(trace, "hp97560", predict.read_ahead(128, (6, 18), 1280), NO_HOST)
    foretold = predict.predict(found)
    # The first read of a file begins at its start: both pages, and the second reader finds its own on the way.
    assert (foretold.requests, foretold.bytes) == (2, 3 * 4096)


def test_requests_of_the_simulator_take_their_way(tmp_path: Path) -> None:
    trace = tmp_path / "reads.csv"
    far = Workload("far", "", (tuple(Read("a", at * 400 * 4096, 4096) for at in (5, 1, 3)),))
    predict.write_trace(trace, far, [Placed("a", 3000 * 4096, 0, 0)])

    def elapsed(host: Host) -> int:
        found = predict.scenario(trace, "uniform", predict.read_ahead(128, (6, 18), 1280), host)
        found["device"]["fetch_time"] = "1ms"
        return predict.predict(found).elapsed_ns

    assert elapsed(NO_HOST) == 3_000_000
    # A call, four KiB, and a way for each of three reads.
    host = Host(system_call_ns=1_000, copy_per_kib_ns=100, request_ns=50_000)
    assert elapsed(host) == 3 * (1_000_000 + 1_000 + 400 + 50_000)


def test_depths_and_kernels() -> None:
    pages = headstart.model.competitive("ibm-36gb-10k").average.mean.depth_pages
    assert [(each.name, each.read_ahead_kb) for each in settings(watch=True)] == [
        ("128 KiB", 128),
        ("competitive", 4 * pages),
        ("800 KiB", 800),
        ("tune --watch", None),
    ]
    assert settings(watch=False) == settings(watch=True)[:3]
    versions = [predict.read_ahead(128, kernel, 1280)["version"] for kernel in ((6, 12), (6, 16), (6, 17), (7, 0))]
    assert versions == ["6.12", "6.12", "6.17", "6.17"]


# How it judges.


def test_findings_compare_measured_times() -> None:
    rows = [
        row("alternating", "128 KiB", 1000),
        row("alternating", "competitive", 700),
        row("stream", "128 KiB", 1000),
        row("stream", "competitive", 1015),
        row("stream", "800 KiB", 990),
        row("short runs", "competitive", 1051),
        row("short runs", "800 KiB", 1000),
    ]
    found = [(each.what.split(",")[0], each.found, each.verdict) for each in findings(rows)]
    assert found == [
        ("alternating", "-30.0%", "agrees"),
        ("stream", "+1.5%", "agrees"),
        ("stream", "+2.5%", "differs"),
        ("short runs", "+5.1%", "differs"),
    ]
    assert findings([*rows[:1], row("alternating", "competitive", 701)])[0].verdict == "differs"
    assert [each.what for each in findings([rows[0], row("alternating", "tune --watch", 500)])] == [
        "alternating, tune --watch: elapsed"
    ]


def test_reports_show_every_row_and_note() -> None:
    late = replace(row("stream", "128 KiB", 2_000_000_000), note="answers came late", verdict="differs")
    shown = Study(
        machine="Linux 9.9 on test",
        profile="ibm-36gb-10k",
        quick=True,
        repeats=1,
        host=Host(system_call_ns=1500, copy_per_kib_ns=20, request_ns=90_000),
        rows=[late, row("stream", "competitive", 1_000_000_000)],
        findings=findings([late, row("stream", "competitive", 1_000_000_000)]),
        notes=["tune --watch: skipped"],
    )
    line = "| stream | 128 KiB | 128 | 2.000 | 1.0% | 1.000 | -50.0% | 10 | 11 | 5.0 | 6.0 | differs |"
    text = report.markdown(shown)
    assert line in text.splitlines()
    page = report.html(shown)
    for part in ("Linux 9.9 on test", "1.5 us a read", "answers came late", "tune --watch: skipped", "-50.0%"):
        assert part in text
        assert part in page
    assert "<svg" in page
    assert json.loads(json.dumps(shown.to_dict()))["rows"][0]["verdict"] == "differs"


# What it sets up and takes down.


@makes
def test_the_image_holds_files_in_one_piece_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "disk.img"
    planned = workloads.files(0.01)
    placed = image.make(path, 36_400_000_000, planned)
    assert [(file.name, file.size) for file in placed] == [(file.name, file.size) for file in planned]
    ends = [file.first_block + file.breaks + -(-file.size // image.BLOCK) for file in placed]
    gaps = [after.first_block - end for end, after in zip(ends, placed[1:], strict=False)]
    assert all(0 <= gap <= 1 for gap in gaps), gaps
    assert all(file.breaks <= 1 for file in placed)
    assert path.stat().st_blocks * 512 < 4 * MB, "nothing is written but the file system itself"
    subprocess.run(["e2fsck", "-fn", str(path)], check=True, capture_output=True)
    stat = subprocess.run(["debugfs", "-R", "ex large", str(path)], check=True, capture_output=True, text=True).stdout
    assert "Uninit" not in stat


@makes
def test_an_image_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(headstart.HeadstartError, match="debugfs"):
        image.make(tmp_path / "disk.img", 10 * MB, [Planned("too-large", 50 * MB)])


@pytest.mark.parametrize(
    ("name", "found", "kept"), [("read_ahead_kb", "128\n", "128"), ("scheduler", "[none] bfq\n", "none")]
)
def test_what_was_found_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, found: str, kept: str
) -> None:
    monkeypatch.setattr(platform, "BLOCK_DEVICES", tmp_path)
    path = tmp_path / "loop77" / "queue" / name
    path.parent.mkdir(parents=True)
    path.write_text(found, encoding="ascii")
    with pytest.raises(KeyboardInterrupt), platform.setting(Path("/dev/loop77"), name, "new"):
        assert path.read_text(encoding="ascii") == "new"
        raise KeyboardInterrupt
    assert path.read_text(encoding="ascii") == kept


def test_where_it_cannot_be_done_it_says_so_in_one_line() -> None:
    program = (
        "import os, runpy; os.geteuid = lambda: 1000; runpy.run_module('headstart.livestudy', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "live-study: skipped: not root\n")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--repeats", "0"), "python -m headstart.livestudy: Invalid value for '--repeats'"),
        (("--json", "missing/study.json"), "headstart: missing/study.json: cannot be written"),
        (("--docs", "page.md"), "headstart: page.md: has no marks; allowed: a file with"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    (tmp_path / "page.md").write_text("# No marks\n", encoding="utf-8")
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(problem), done.stderr


def read_aheads() -> dict[str, str]:
    """Of all loop devices, by name."""
    return {path.name: platform.queue(path, "read_ahead_kb") for path in Path("/sys/block").glob("loop*")}


def leftovers() -> list[str]:
    """Loop devices, mounts and files of a study."""
    loops = platform.run("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").splitlines()
    mounts = [f"at {line}" for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    files = [f"in {path}" for path in MEMORY.iterdir()]
    return [line for line in [*loops, *mounts, *files] if "headstart-live-" in line]


@lives
def test_a_quick_study_measures_every_row_and_leaves_nothing(tmp_path: Path) -> None:
    line = [*COMMAND, "--quick", "--json", "-"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, leftovers()) == (0, []), done.stderr
    told = json.loads(done.stdout)
    ways = settings(watch=not told["notes"])
    assert len(told["rows"]) == 6 * len(ways)
    asked = {workload.name: workload.size for workload in workloads.workloads(workloads.files(0.1), 0.1)}
    for found in told["rows"]:
        what = (found["workload"], found["setting"])
        assert found["measured_bytes"] >= asked[found["workload"]], what
        if found["workload"].startswith("random"):
            # One request each, of what was asked for: whatever the machine is at.
            reads = [found["measured_requests"], found["measured_bytes"]]
            assert reads == [found["predicted_requests"], found["predicted_bytes"]], what
    assert {each["what"].split(",")[0] for each in told["findings"]} == {"alternating", "stream", "short runs"}


@lives
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_an_interrupt_leaves_nothing(tmp_path: Path, sent: signal.Signals) -> None:
    before = read_aheads()
    process = subprocess.Popen([*COMMAND, "--quick"], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "  0% alternating, 128 KiB\n"
        assert platform.wait_for(lambda: any(line.startswith("/dev/loop") for line in leftovers()))
        (loop,) = (Path(line.split()[0]).name for line in leftovers() if line.startswith("/dev/loop"))
        process.send_signal(sent)
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        # Of a test that failed.
        process.terminate()
        process.wait(PATIENCE_S)
    assert (process.returncode, leftovers(), "Traceback" in errors) == (130, [], False)
    assert read_aheads()[loop] == before[loop]


def test_the_page_shows_a_whole_study() -> None:
    """Its table is of the present workloads and depths."""
    page = (ROOT / "docs" / "live-study.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    names = {workload.name for workload in workloads.workloads(workloads.files())}
    shown = {(line[0], line[1]) for line in lines if line[0] in names}
    assert {(name, way.name) for name in names for way in settings(watch=False)} <= shown

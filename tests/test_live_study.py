"""The live study: its reads and predictions, how it judges, what it shows."""

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import headstart
from headstart_lab.livestudy import image, predict, report, workloads
from headstart_lab.livestudy.image import MB, Placed
from headstart_lab.livestudy.measure import Host
from headstart_lab.livestudy.study import Timing, Timings, findings, settings
from headstart_lab.livestudy.workloads import Read, Workload
from headstart_lab.page import study_page
from tests.conftest import ROOT

NO_HOST = Host(system_call_ns=0, copy_per_kib_ns=0, request_ns=0)
KIB = 1024


def row(workload: str, setting: str, measured_ns: int, predicted_ns: int = 1_000_000_000) -> Timing:
    return Timing(
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


# The reads.


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
        ("random faults", 100, 100 * 4 * KIB),
    ]
    assert [len(found.readers) for found in each.values()] == [1, 4, 1, 1, 1, 1, 1]
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


def test_what_is_read_around_faults_holds_no_other() -> None:
    (workload,) = (each for each in workloads.workloads(workloads.files()) if each.mapped)
    faults = workload.readers[0]
    for kb in (128, 384, 3384):
        (windows,) = workloads.around(workload, kb, 12_000 * MB).readers
        assert all(window.size == kb * KIB for window in windows)
        for fault, window in zip(faults, windows, strict=True):
            assert window.offset <= fault.offset < window.offset + window.size
            assert fault.offset - window.offset == kb * KIB // 2 // 4096 * 4096
        ends = sorted((window.offset, window.offset + window.size) for window in windows)
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(ends))
    start = Workload("start", "", ((Read("a", 8192, 4096),),), mapped=True)
    assert workloads.around(start, 128, 100_000).readers == ((Read("a", 0, 100_000),),)


def test_the_trace_has_the_same_reads_where_the_files_lie(tmp_path: Path) -> None:
    files = [Placed("b", 8192, 30, 0), Placed("a", 5000, 10, 0)]
    two = Workload("two", "", ((Read("a", 0, 4096), Read("b", 4096, 4096)), (Read("a", 4096, 904),)))
    trace = tmp_path / "reads.csv"
    predict.write_trace(trace, two, files)
    # Blocks 0 to 9 and 12 to 29 belong to no file, 10 and 11 to a, 30 and 31 to b.
    assert predict.table(files) == [("", 10 * 4096), ("a", 5000), ("", 18 * 4096), ("b", 8192)]
    with trace.open(encoding="ascii") as lines:
        assert [tuple(map(int, line)) for line in list(csv.reader(lines))[1:]] == [
            (0, 1, 0, 4096),
            (0, 3, 4096, 4096),
            (1, 1, 4096, 904),
        ]
    # On a device with an address of its own for each block, the simulator reads the blocks that the files have.
    found = predict.scenario(trace, "hp97560", predict.read_ahead(128, "6.18", 1280), NO_HOST)
    foretold = predict.predict(found)
    # The first read of a file begins at its start: both pages, and the second reader finds its own on the way.
    assert (foretold.requests, foretold.bytes) == (2, 3 * 4096)


def test_requests_of_the_simulator_take_their_way(tmp_path: Path) -> None:
    trace = tmp_path / "reads.csv"
    far = Workload("far", "", (tuple(Read("a", at * 400 * 4096, 4096) for at in (5, 1, 3)),))
    predict.write_trace(trace, far, [Placed("a", 3000 * 4096, 0, 0)])

    def elapsed(host: Host) -> int:
        found = predict.scenario(trace, "uniform", predict.read_ahead(128, "6.18", 1280), host)
        found["device"]["fetch_time"] = "1ms"
        return predict.predict(found).elapsed_ns

    assert elapsed(NO_HOST) == 3_000_000
    # A call, four KiB, and one way for each of three reads.
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
    assert [each.name for each in settings(watch=False, mapped=True)][-1] == "3,384 KiB"
    versions = [
        predict.read_ahead(128, kernel, 1280)["version"] for kernel in ("6.12.1", "6.16-rc1", "6.17.0-5-generic", "7.0")
    ]
    assert versions == ["6.12", "6.12", "6.18", "6.18"]


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
    found = [(each.quantity.split(",")[0], each.ours, each.verdict) for each in findings(rows)]
    assert found == [
        ("alternating", "-30.0%", "agrees"),
        ("stream", "+1.5%", "agrees"),
        ("stream", "+2.5%", "differs"),
        ("short runs", "+5.1%", "differs"),
    ]
    assert findings([*rows[:1], row("alternating", "competitive", 701)])[0].verdict == "differs"
    assert [each.quantity for each in findings([rows[0], row("alternating", "tune --watch", 500)])] == [
        "alternating, tune --watch: elapsed"
    ]


def test_reports_show_every_row_and_note() -> None:
    late = replace(row("stream", "128 KiB", 2_000_000_000), note="answers came late", verdict="differs")
    shown = Timings(
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
    rows = report.rows(shown)
    told = study_page(report.TITLE, report.ITEMS, rows, {"times": report.chart(shown)})
    for part in ("Linux 9.9 on test", "1.5 us a read", "answers came late", "tune --watch: skipped", "-50.0"):
        assert part in text
        assert part in told
    assert 'data-figure="times-0"' in told
    first = next(each for each in rows if each.item == "times")
    assert (first.published, first.ours, first.verdict) == (2.0, 1.0, "differs")
    assert [each.ours for each in rows if each.item == "drive"][:2] == ["10, 11", "5000000, 6000000"]
    assert {each.item for each in rows} == {"conditions", "times", "drive", "findings"}


def test_the_page_shows_a_whole_study() -> None:
    """Its table has the present workloads and depths."""
    page = (ROOT / "docs" / "live-study.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    names = {workload.name for workload in workloads.workloads(workloads.files())}
    shown = {(line[0], line[1]) for line in lines if line[0] in names}
    assert {(name, way.name) for name in names for way in settings(watch=False)} <= shown

"""The pages that `linux` reads ahead, compared with those of a kernel: the study, and whole runs of the simulator."""

import bisect
import itertools
import json
import lzma
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart import kernels
from headstart_lab.livestudy import pages, platform
from headstart_lab.livestudy.__main__ import main
from headstart_lab.livestudy.patterns import PAGE, Pattern, patterns
from tests.conftest import ROOT

RECORDED = ROOT / "crates" / "core" / "policy" / "tests" / "readahead" / "recorded"
SHARED = ROOT.parent / "shared" / "kernel" / "linux-6.18-ext4-128KiB.json.xz"
SECOND_NS = 10**9
SECTORS = PAGE // 512


def load(path: Path) -> dict[str, Any]:
    with lzma.open(path, "rt") as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded


def simulated(info: dict[str, Any], ops: list[list[int]], folder: Path) -> list[list[int]]:
    """The pages that each read fetches in a run, with a second of think time after each page, on a fast device."""
    trace = folder / "reads.csv"
    trace.write_text("offset,size\n" + "".join(f"{offset},{size}\n" for _, offset, size in ops), encoding="ascii")
    keys = {
        key: f"{info[f'{name}_kb']}KiB" for key, name in (("read_ahead", "read_ahead"), ("max_request", "max_sectors"))
    }
    timeline = headstart.timelines.run(
        {
            "workload": {"trace": str(trace), "block_size": f"{PAGE}B", "compute": "1s", "issue": "whole"},
            "cache": {"size": "1GiB"},
            "policy": {"name": "linux", **keys},
            "device": {"model": "uniform", "fetch_time": "1us"},
            "host": {"driver_overhead": "0s"},
        }
    )
    counts = [-(-(offset + size) // PAGE) - offset // PAGE for _, offset, size in ops]
    starts = [at * SECOND_NS for at in itertools.accumulate(counts, initial=0)]
    fetched: list[set[int]] = [set() for _ in ops]
    for each in timeline.of("service"):
        first = each["sector"] // SECTORS
        fetched[bisect.bisect(starts, each["issued_ns"]) - 1] |= set(range(first, first + each["sectors"] // SECTORS))
    return [sorted(each) for each in fetched]


def files() -> list[Path]:
    if not SHARED.exists():
        print(f"SKIPPED: {SHARED} is not there")
    return [*sorted(RECORDED.glob("*.xz")), *([SHARED] if SHARED.exists() else [])]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.name))
def test_whole_runs_fetch_what_the_kernel_fetched(path: Path, tmp_path: Path) -> None:
    """Reads of one descriptor, including unaligned ones; the simulator's file has no end, so none is read there."""
    recording = load(path)
    info, seen = recording["info"], 0
    for pattern in recording["patterns"]:
        near = info["size"] - 4 * 1024 * max(1024, info["read_ahead_kb"])
        if pattern.get("kind", "read") != "read" or any(op[0] > 0 or op[1] > near for op in pattern["ops"]):
            continue
        kernel = [sorted(p for first, n in added for p in range(first, first + n)) for added in pattern["added"]]
        assert simulated(info, pattern["ops"], tmp_path) == kernel, pattern["name"]
        seen += 1
    assert seen >= 2


def test_a_kernel_that_reads_otherwise_is_seen() -> None:
    info = {"kernel": "6.18.0", "read_ahead_kb": 128, "max_sectors_kb": 1280, "size": 1 << 20}
    # A page at the start reads 4 pages. The next one touches the mark on page 1: 8 pages from page 4.
    ops: list[tuple[int, int, int | None]] = [(0, 0, PAGE), (0, PAGE, PAGE)]
    singles = [(page, 1) for page in range(4)]
    same = Pattern("same", ops, added=[singles, [(4, 4), (8, 4)]])
    other = Pattern("other", ops, added=[singles, [(4, 4)]])
    (found,) = pages.differences(info, [same, other])
    assert (found.pattern, found.operation, found.kernel) == ("other", 1, [4, 5, 6, 7])
    assert found.simulator == list(range(4, 12))
    # An older kernel has the same windows here; the version is that of its release.
    assert pages.differences({**info, "kernel": "6.12.40"}, [same]) == []


def test_patterns_are_drawn_from_a_seed() -> None:
    of = [[(each.name, each.ops) for each in patterns(seed, 1 << 26, 128, quick=True)] for seed in (1, 1, 2)]
    assert of[0] == of[1] != of[2]
    kinds = {each.kind for each in patterns(1, 1 << 26, 128, quick=False)}
    assert kinds == {"read", "mapped", "text"}


def test_bad_options_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words, line in (
        (["--fs", "ext4,ntfs"], "headstart: --fs: ntfs is not one; allowed: ext4 and xfs\n"),
        (["--read-ahead-kb", "128,7"], "headstart: --read-ahead-kb: 7 is not one; allowed: multiples of 4\n"),
    ):
        assert main(words) == 2
        assert capsys.readouterr().err == line


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="SKIPPED: it mounts, and needs root")
def test_this_kernel_reads_the_same_pages(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if (reason := platform.why_not()) is not None:
        pytest.skip(f"SKIPPED: {reason}")
    if kernels.here() == "6.12":
        pytest.skip("SKIPPED: the kernel is older than those that are compared")
    status = main(["--fs", "ext4", "--read-ahead-kb", "64", "--seed", "99", "--quick", "--out", str(tmp_path)])
    said = capsys.readouterr()
    if status == 2 and "Read-only" in said.err:
        pytest.skip(f"SKIPPED: {said.err}")
    assert status == 0, said.out + said.err
    assert "read_ahead_kb 64: the same pages in" in said.out
    written = load(tmp_path / "ext4-64KiB.json.xz")
    assert pages.differences(written["info"], []) == [] and len(written["patterns"]) > 20

"""`headstart trace` and its Python side."""

import gzip
import json
import re
import struct
from pathlib import Path

import pytest

import headstart
from headstart.report.text import duration_text
from headstart.sizes import size_bytes
from tests.conftest import CSCOPE_1, Run


def test_info_by_hand(run: Run, tmp_path: Path) -> None:
    # Blocks of 8 KiB: 0, 1 | 1 | 5; the second request begins in block 1, but continues no other; one write of three.
    text = "time,op,offset,size\n0,R,0,16384\n0.5,R,8192,8192\n2,W,40960,100\n"
    (tmp_path / "tiny.csv.gz").write_bytes(gzip.compress(text.encode()))
    done = run("trace", "info", "tiny.csv.gz", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    expected = {"requests": 3, "reads": 2, "writes": 1, "references": 4, "distinct_blocks": 3, "block_bytes": 8192}
    assert expected.items() <= found.items()
    assert found["time_span_ns"] == 2_000_000_000
    assert found["read_share"] == 2 / 3
    assert found == headstart.trace_info(tmp_path / "tiny.csv.gz")
    readable = run("trace", "info", "tiny.csv.gz")
    assert "66.7%" in readable.stdout
    assert "2.000 s" in readable.stdout


def test_sizes_have_units(run: Run, tmp_path: Path) -> None:
    (tmp_path / "large.csv").write_text("offset,size\n0,3145728\n6291456,65536\n")
    shown = dict(line.split("  ", 1) for line in run("trace", "info", "large.csv").stdout.splitlines() if "  " in line)
    counts = {name: text.strip() for name, text in shown.items() if name.strip().endswith("bytes")}
    assert counts["bytes"] == "3.06 MiB"
    assert not any(re.search(r"\d{5}|\d,\d{3}", text) for text in counts.values()), counts


@pytest.mark.parametrize(
    ("text", "count"), [("10M", 10_485_760), ("4k", 4096), ("1.5g", 1_610_612_736), ("10MB", 10_000_000), ("77", 77)]
)
def test_sizes_are_understood_as_fio_and_dd_have_them(text: str, count: int) -> None:
    assert size_bytes(text) == count


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"),
        (999, "999 ns"),
        (1_234, "1.23 us"),
        (999_600, "1.00 ms"),
        (999_700_000, "1.00 s"),
        (1.2e12, "1,200 s"),
    ],
)
def test_no_time_rounds_to_a_thousand_of_the_smaller_unit(ns: float, text: str) -> None:
    assert duration_text(ns) == text


def test_convert_keeps_the_references(run: Run, tmp_path: Path) -> None:
    done = run("trace", "convert", CSCOPE_1, "cscope1.csv", "--to", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    before, after = (headstart.trace_info(path) for path in (CSCOPE_1, tmp_path / "cscope1.csv"))
    for name in ("requests", "references", "distinct_blocks", "reads", "time_span_ns"):
        assert before[name] == after[name]
    assert "lost nothing file table" in " ".join(done.stdout.split())
    lirs = tmp_path / "abc.trace"
    lirs.write_text("1\n2\n1\n")
    headstart.trace_convert(lirs, tmp_path / "abc.oracleGeneral", to="oracleGeneral")
    records = list(struct.iter_unpack("<IQIq", (tmp_path / "abc.oracleGeneral").read_bytes()))
    assert [record[1] for record in records] == [1, 2, 1]
    assert [record[3] for record in records] == [3, -1, -1], "the next access counts from 1, -1 is never"


def test_generate_is_what_the_generator_gives_a_scenario(run: Run, tmp_path: Path) -> None:
    words = ("--set", "requests=500", "--set", "blocks=50", "--set", "compute=1ms", "--seed", "7")
    done = run("trace", "generate", "zipf", "zipf.csv", *words)
    assert (done.returncode, done.stderr) == (0, "")
    keys = {"requests": 500, "blocks": 50, "compute": "1ms"}
    rest = {"cache": {"blocks": 10}, "device": {"model": "uniform", "fetch_time": "2ms"}, "seed": 7}
    traced = headstart.simulate({"workload": {"trace": str(tmp_path / "zipf.csv")}, **rest})
    generated = headstart.simulate({"workload": {"generator": "zipf", **keys}, **rest})
    assert traced.references == 500
    assert (traced.misses, traced.elapsed_ns) == (generated.misses, generated.elapsed_ns)
    headstart.trace_generate("zipf", tmp_path / "again.csv", keys=keys, seed=7)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "zipf.csv").read_bytes()
    headstart.trace_generate("zipf", tmp_path / "other.csv", keys=keys, seed=8)
    assert (tmp_path / "other.csv").read_bytes() != (tmp_path / "zipf.csv").read_bytes()

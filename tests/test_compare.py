"""`headstart compare` and `headstart.compare`."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import headstart
from headstart import comparison
from tests.conftest import CSCOPE_1, GLIMPSE, Run

POLICIES = ["demand:min", "fixed-horizon:horizon=10", "forestall"]
WORDS = [GLIMPSE, "--policies", ",".join(POLICIES), "--disks", "1,4", "--cache", "512"]


def test_json_rows_are_single_runs_in_order(run: Run) -> None:
    done = run("compare", *WORDS, "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert {"schema", "version", "scenario", "trace_sha256", "notes", "rows"} <= found.keys()
    assert [(row["disks"], row["policy"]) for row in found["rows"]] == [(d, p) for d in (1, 4) for p in POLICIES]
    for row in found["rows"]:
        scenario = {
            "workload": {"trace": str(GLIMPSE)},
            "cache": {"blocks": 512},
            "policy": comparison.policy_keys(row["policy"]),
            "device": {"model": "hp97560", "count": row["disks"]},
            "host": {"driver_overhead": "0.5ms"},
        }
        single = headstart.simulate(scenario)
        assert {name: getattr(single, name) for name in comparison.COPIED}.items() <= row.items()
        assert row["lower_bound_ns"] == headstart.lower_bound(scenario)["elapsed_ns"]
        assert row["above_bound"] == pytest.approx(row["elapsed_ns"] / row["lower_bound_ns"] - 1)
        assert row["above_bound"] >= 0
    for disks in (1, 4):
        rows = [row for row in found["rows"] if row["disks"] == disks]
        fastest = min(row["elapsed_ns"] for row in rows)
        assert [row["best"] for row in rows] == [row["elapsed_ns"] == fastest for row in rows]


def test_the_table_says_what_the_json_says(run: Run, tmp_path: Path) -> None:
    done = run("compare", *WORDS, "--json", "out.json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    lines = [line for line in done.stdout.splitlines() if line[2:].startswith(("demand", "fixed", "forestall"))]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line.startswith("*" if row["best"] else " ")
        seconds = [f"{row[name] / 1e9:,.3f}" for name in ("elapsed_ns", "compute_ns", "driver_ns", "stall_ns")]
        words = [word for word in line.replace("*", " ").split() if not set(word) & set("█▓▒░")]
        expected = [row["policy"], *seconds, f"{row['fetches']:,}", f"{row['utilization']:.0%}"]
        assert words == [*expected, f"{row['above_bound']:+.1%}"]
    assert "1 disk (times in s, lower bound" in done.stdout
    assert "4 disks" in done.stdout


class Page(HTMLParser):
    """Collects what a browser would load, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "srcset")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_no_network_and_holds_the_figures(run: Run, tmp_path: Path) -> None:
    done = run("compare", *WORDS, "--html", "page.html", "--json", "out.json")
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "page.html").read_text()
    page = Page()
    page.feed(text)
    assert page.loads == []
    assert "script" not in page.tags
    assert not re.search(r"https?:|url\(|@import", text)
    assert page.tags.count("svg") == 2
    for row in json.loads((tmp_path / "out.json").read_text())["rows"]:
        assert f"{row['elapsed_ns'] / 1e9:,.3f} s" in page.text
        assert f"{row['fetches']:,}" in page.text
    bars = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)"', text)
    assert len(bars) == 2 * len(POLICIES) * 4
    assert max(float(left) + float(width) for left, width in bars) <= 900


def test_a_frame_of_the_same_rows() -> None:
    frame = headstart.compare(GLIMPSE, policies=POLICIES, disks=[1, 4], cache=512)
    planned = comparison.plan(GLIMPSE, policies=POLICIES, disks=[1, 4], cache=512).run(jobs=1)
    assert frame.to_dict("records") == planned.to_dict()["rows"]
    assert len(frame) == 6


def test_without_pandas_the_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(headstart.HeadstartError, match=r"headstart\[frame\]"):
        headstart.compare(GLIMPSE, policies=["demand"])


def test_generators_options_and_overrides(run: Run) -> None:
    done = run(
        *("compare", "--generator", "zipf", "--set", "workload.requests=3000", "--set", "workload.blocks=4000"),
        *("--policies", "demand,demand:fifo", "--cache", "5%", "--compute", "exp:1ms", "--compute-total", "2s"),
        *("--scheduler", "fcfs", "--seed", "9", "--limit", "2500", "--jobs", "1", "--json", "-"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["scenario"]["seed"] == 9
    assert found["scenario"]["device"]["scheduler"]["name"] == "fcfs"
    for row in found["rows"]:
        assert row["requests"] == 2500
        assert row["compute_ns"] == pytest.approx(2_000_000_000, rel=1e-6)


def test_a_policy_says_replacement_and_keys() -> None:
    keys = comparison.policy_keys("forestall:batch_size=8:fetch_ratio=dynamic")
    assert keys == {"name": "forestall", "batch_size": 8, "fetch_ratio": "dynamic"}
    assert comparison.policy_keys("demand:arc") == {"name": "demand", "replacement": "arc"}
    assert comparison.cache_keys("5%") == {"footprint": 0.05}
    assert comparison.cache_keys(1280) == comparison.cache_keys("1280") == {"blocks": 1280}
    assert comparison.cache_keys("10MiB") == {"size": "10MiB"}


def test_mistakes_are_found_before_the_first_run() -> None:
    started: list[float] = []
    with pytest.raises(headstart.HeadstartError, match="unknown policy"):
        headstart.compare(CSCOPE_1, policies=["demand", "nonsense"], progress=started.append)
    for policies, disks in (([], [1]), (["demand"], [])):
        with pytest.raises(headstart.HeadstartError, match="none given"):
            headstart.compare(CSCOPE_1, policies=policies, disks=disks, progress=started.append)
    assert started == []


def test_read_aheads_stand_beside_other_policies(run: Run) -> None:
    names = ["demand", "ra", "linux", "amp", "sarc", "ra:degree=8", "linux-2.6:arc"]
    words = ("compare", CSCOPE_1, "--policies", ",".join(names), "--cache", "5%", "--limit", "2000", "--json", "-")
    done = run(*words)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["rows"]
    assert [row["policy"] for row in rows] == names
    alone = json.loads(run(*words[:2], "--policies", "demand", *words[4:]).stdout)["rows"]
    assert rows[0].keys() == alone[0].keys()
    assert rows[0]["elapsed_ns"] == alone[0]["elapsed_ns"]
    for row in rows:
        assert row["above_bound"] >= 0
        assert row["lower_bound_ns"] == rows[0]["lower_bound_ns"] <= alone[0]["lower_bound_ns"]
        assert (row["prefetches"] > 0) == (row["policy"] != "demand")
    assert rows[1]["prefetches"] < rows[5]["prefetches"]


def test_an_unknown_policy_names_those_that_there_are(run: Run) -> None:
    done = run("compare", CSCOPE_1, "--policies", "readahead")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert '"readahead"' in line
    allowed = line.partition("allowed: ")[2].split(", ")
    assert allowed == [entry["name"] for entry in headstart.catalog()["policies"]]


def test_progress_reaches_one_and_its_exception_stops_all() -> None:
    shares: list[float] = []
    headstart.compare(CSCOPE_1, policies=["demand", "forestall"], disks=[1, 2], progress=shares.append)
    assert shares[-1] == max(shares) == 1.0

    def stop(share: float) -> None:
        raise RuntimeError(share)

    with pytest.raises(RuntimeError):
        headstart.compare(CSCOPE_1, policies=["demand", "forestall"], disks=[1, 2], progress=stop)

"""`headstart compare` and `headstart.compare`."""

import fcntl
import json
import os
import pty
import random
import re
import shutil
import struct
import sys
import termios
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart.policies import policy_keys
from headstart.runs.compare import plan
from headstart.runs.plan import cache_keys
from headstart.runs.rows import COPIED
from headstart.sizes import bytes_text
from tests.conftest import COMMAND, CSCOPE_1, FIGURE_1, GLIMPSE, ROOT, TWO_LEVELS, Run

POLICIES = ["demand:min", "fixed-horizon:horizon=10", "forestall"]
WORDS = [GLIMPSE, "--policies", ",".join(POLICIES), "--disks", "1,4", "--cache", "512", "--device", "hp97560"]


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
            "policy": policy_keys(row["policy"]),
            "device": {"model": "hp97560", "count": row["disks"]},
            "host": {"driver_overhead": "0.5ms"},
        }
        single = headstart.simulate(scenario)
        assert {name: getattr(single, name) for name in COPIED}.items() <= row.items()
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
        elapsed, saved, *seconds = (
            f"{row[name] / 1e9:,.3f}" for name in ("elapsed_ns", "saved_ns", "compute_ns", "driver_ns", "stall_ns")
        )
        words = [word for word in line.replace("*", " ").split() if not set(word) & set("█▓▒░")]
        expected = [row["policy"], elapsed, saved, f"{row['speedup']:.2f}x", *seconds, f"{row['fetches']:,}"]
        expected += [*bytes_text(row["wasted_bytes"]).split(), f"{row['utilization']:.0%}"]
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
    assert page.tags.count("figure") == 7
    for row in json.loads((tmp_path / "out.json").read_text())["rows"]:
        assert f"{row['elapsed_ns'] / 1e9:,.3f}" in page.text
        assert f"{row['fetches']:,}" in page.text
        assert f"{row['speedup']:.2f}" in page.text
    # On both numbers of disks, each policy's parts add up to its elapsed time.
    specs = json.loads(re.findall(r"const FIGURES = (.*?);\n", text)[-1])
    for name in ("times-0-0", "times-1-0"):
        layers = specs[name].get("layer", [specs[name]])
        bars = layers[0]["data"]["values"]
        for policy in {bar["run"] for bar in bars}:
            parts = [bar for bar in bars if bar["run"] == policy]
            assert sum(bar["s"] for bar in parts) == pytest.approx(parts[0]["elapsed"])


def test_a_frame_of_the_same_rows() -> None:
    frame = headstart.compare(GLIMPSE, policies=POLICIES, disks=[1, 4], cache=512)
    planned = plan(GLIMPSE, policies=POLICIES, disks=[1, 4], cache=512).run(jobs=1)
    assert frame.to_dict("records") == planned.to_dict()["rows"]
    assert len(frame) == 6


def test_single_values_are_lists_of_one() -> None:
    one = headstart.compare(GLIMPSE, policies="demand", cache="4M", device="nvme", workload={"limit": 500})
    several = headstart.compare(GLIMPSE, policies=["demand"], cache=["4MiB"], device=["nvme"], workload={"limit": 500})
    assert list(one["elapsed_ns"]) == list(several["elapsed_ns"])
    found = headstart.curve(GLIMPSE, policies="lru", cache=100, overrides="workload.limit=500")
    assert [(point.policy, point.blocks) for point in found.points] == [("demand:lru", 100)]


@pytest.mark.parametrize("cache", [10.5, "10.5", [512, 0.5]])
def test_a_part_of_a_block_is_no_cache(cache: Any) -> None:
    share = cache[1] if isinstance(cache, list) else cache
    said = f"^cache: {share} is no whole number of blocks; allowed: blocks such as 1280, a size such as 10MiB"
    with pytest.raises(headstart.HeadstartError, match=said):
        plan(GLIMPSE, policies="demand", cache=cache).run()


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
    keys = policy_keys("forestall:batch_size=8:fetch_ratio=dynamic")
    assert keys == {"name": "forestall", "batch_size": 8, "fetch_ratio": "dynamic"}
    assert policy_keys("demand:arc") == {"name": "demand", "replacement": "arc"}
    assert cache_keys("5%") == {"footprint": 0.05}
    assert cache_keys(1280) == cache_keys("1280") == {"blocks": 1280}
    assert cache_keys("10MiB") == {"size": "10MiB"}


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


def test_time_is_saved_against_demand_in_each_setting() -> None:
    devices, caches = ["sata-ssd", "nvme"], ["64", "1MiB"]
    frame = headstart.compare(GLIMPSE, policies=["linux", "forestall"], device=devices, cache=caches, disks=[1, 2])
    assert len(frame) == 16
    assert list(frame["device"]) == [device for device in devices for _ in range(8)]
    assert list(frame["cache"]) == ["64", "64", "64", "64", "1MiB", "1MiB", "1MiB", "1MiB"] * 2
    assert set(frame["cache_blocks"]) == {64, 128}
    assert list(frame["knows_future"]) == [False, True] * 8
    for row in frame.to_dict("records"):
        setting = {"device": row["device"], "cache": row["cache"], "disks": row["disks"]}
        beside = headstart.compare(GLIMPSE, policies=["demand", row["policy"]], **setting).to_dict("records")
        demand, same = (each["elapsed_ns"] for each in beside)
        if not row["knows_future"]:
            assert same == row["elapsed_ns"]
            assert row["saved_ns"] == demand - row["elapsed_ns"]
            assert row["speedup"] == pytest.approx(demand / row["elapsed_ns"])
            assert row["best_deployable"]
        assert beside[0]["saved_ns"] == 0 and beside[0]["speedup"] == 1.0
        assert row["wasted_bytes"] == row["prefetches_wasted"] * 8192


def test_levels_are_compared_by_coordinator_and_policy(run: Run) -> None:
    policies, coordinators = ["linux-2.6", "linux/demand"], ["none", "pfc"]
    words = ("--policies", ",".join(policies), "--coordinators", ",".join(coordinators), "--json", "-")
    done = run("compare", TWO_LEVELS, "--set", f"workload.trace={GLIMPSE}", *words)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["rows"]
    named = [(row["coordinator"], row["policy"]) for row in rows]
    assert named == [(coordinator, policy) for coordinator in coordinators for policy in policies]
    # The second one is the file unchanged.
    single = headstart.simulate(TWO_LEVELS, overrides=[f"workload.trace={GLIMPSE}"])
    assert rows[2]["elapsed_ns"] == single.elapsed_ns
    assert rows[2]["wasted_bytes"] == sum(level["wasted_bytes"] for level in single.levels)
    assert rows[0]["elapsed_ns"] != rows[2]["elapsed_ns"]
    assert all(row["lower_bound_ns"] is row["above_bound"] is None for row in rows)
    bare = json.loads(run("compare", TWO_LEVELS, "--set", f"workload.trace={GLIMPSE}", "--json", "-").stdout)["rows"]
    assert [(row["policy"], row["coordinator"], row["elapsed_ns"]) for row in bare] == [
        ("linux-2.6", "pfc", single.elapsed_ns)
    ]


def test_files_beside_the_scenario_are_found(run: Run, tmp_path: Path) -> None:
    """Like `simulate`, it finds them: the trace, and the device's profile."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "reads.csv").write_text("offset,size\n0,4096\n8192,4096\n")
    shutil.copy(ROOT / "crates/sim/device/profiles/hp97560.toml", folder / "mine.toml")
    (folder / "s.toml").write_text('workload = {trace = "reads.csv"}\ncache = {blocks = 1}\ndevice = "mine.toml"\n')
    alone = json.loads(run("simulate", "in/s.toml", "--json", "-").stdout)
    compared = json.loads(run("compare", "in/s.toml", "--policies", "demand,linux", "--json", "-").stdout)
    assert compared["rows"][0]["elapsed_ns"] == alone["elapsed_ns"] > 0
    assert json.loads(run("curve", "in/s.toml", "--json", "-").stdout)["distinct_blocks"] == 2


def test_a_scenario_says_what_is_not_given(run: Run) -> None:
    (row,) = json.loads(run("compare", FIGURE_1, "--json", "-").stdout)["rows"]
    assert row["elapsed_ns"] == headstart.simulate(FIGURE_1).elapsed_ns
    assert (row["policy"], row["device"], row["disks"]) == ("aggressive", "uniform", 2)
    frame = headstart.compare({"workload": {"references": ["A", "B"]}, "cache": {"blocks": 2}}, policies=["demand"])
    assert list(frame["device"]) == ["nvme"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((TWO_LEVELS, "--policies", "a/b/c"), '"a/b/c" names 3, for 2 levels'),
        ((CSCOPE_1, "--policies", "linux/ra"), '"linux/ra" names 2, for one level; allowed: one policy'),
        ((CSCOPE_1, "--coordinators", "pfc"), "coordinators (--coordinators): given for a cache of one level"),
        ((CSCOPE_1, "--device", "nvme,,"), "--device: "),
        ((CSCOPE_1, "--device", "nvme,floppy"), 'unknown model "floppy"'),
        ((CSCOPE_1, "--cache", "1MiB,huge"), "cache.size (--cache): "),
        (("absent.toml",), "absent.toml: "),
    ],
)
def test_mistakes_name_the_option(run: Run, words: tuple[str | Path, ...], said: str) -> None:
    done = run("compare", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr and "allowed: " in done.stderr


def on_a_terminal(columns: int, *words: str | Path) -> list[str]:
    """The lines of a command whose output is a terminal of so many columns."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
        os.execve(COMMAND, [str(COMMAND), *map(str, words)], environment)
    out = b""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:
            break
        if not read:
            break
        out += read
    assert os.waitpid(child, 0)[1] == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.decode()).replace("\r", "").splitlines()


@pytest.mark.parametrize("columns", [40, 80, 100, 160])
def test_no_terminal_is_too_narrow_for_a_figure(columns: int, run: Run) -> None:
    policies = "demand,linux:read_ahead=1MiB:version=6.17,demand:min,forestall"
    words = ("compare", CSCOPE_1, "--policies", policies, "--device", "sata-ssd")
    rows = {row["policy"]: row for row in json.loads(run(*words, "--json", "-").stdout)["rows"]}
    lines = on_a_terminal(columns, *words)
    text = "\n".join(lines)
    assert "…" not in text
    for name, row in rows.items():
        line = next(
            line for line in lines if line[2:].startswith(name.split(":")[0]) and line[:2].strip() in ("", "+", "*")
        )
        if name == "demand:min":
            line = next(line for line in lines if "demand:min" in line)
        for figure in (f"{row[key] / 1e9:,.3f}" for key in ("elapsed_ns", "saved_ns", "stall_ns")):
            assert figure in line.split()
        assert line.startswith("*" if row["best"] else "+" if row["best_deployable"] else " ")
    if columns >= 46:
        assert max(map(len, lines)) <= columns
    if columns <= 80:
        assert "left out for want of room: compute" in " ".join(text.split())
        assert "version=6.17" in text


def test_output_to_a_pipe_is_as_wide_as_its_content(run: Run) -> None:
    name = "linux:read_ahead=1MiB:max_request=2MiB:version=6.17:files=1000"
    done = run("compare", CSCOPE_1, "--policies", f"demand,{name},forestall")
    assert "left out" not in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if name in line and "x " in line and "%" in line)
    assert len(line) > 130
    order = [line[2:].split()[0] for line in done.stdout.splitlines()[4:8]]
    assert order == ["demand", name, "future", "forestall"]


def test_settings_that_differ_are_shown(run: Run) -> None:
    policies = "demand,linux,linux:read_ahead=1MiB,forestall"
    text = run("compare", CSCOPE_1, "--policies", policies, "--device", "nvme,seagate-exos-x20").stdout
    assert "driver overhead: 3us (nvme); 10us (seagate-exos-x20)" in text
    assert "requests issued whole" in text
    assert "linux: version 6.18, read_ahead 128KiB" in text
    assert "linux: version 6.18, read_ahead 1MiB" in text
    assert "no device is named" not in text
    assert "no device is named: nvme" in run("compare", CSCOPE_1, "--policies", "demand").stdout
    levels = run("compare", TWO_LEVELS, "--set", f"workload.trace={GLIMPSE}", "--policies", "demand/ra").stdout
    assert "L2: ra: degree 4" in levels


def test_a_bound_that_says_little_is_said_to(tmp_path: Path) -> None:
    """Each random read waits for an arm, in an order that the bound does not know. Sequential reads do not."""
    chance = random.Random(7)
    trace = tmp_path / "reads.csv"

    def says_little(offsets: list[int]) -> bool:
        trace.write_text("offset,size\n" + "".join(f"{offset},8192\n" for offset in offsets))
        done = plan({"trace": str(trace)}, policies=["demand", "linux"], device="hp97560", cache="64").run()
        (bound,) = {row.lower_bound_ns for row in done.rows}
        fastest = min(row.result.elapsed_ns for row in done.rows)
        noted = any(note.startswith("the lower bound says little") for note in done.notes())
        assert bound is not None and noted == (fastest > 2 * bound), (fastest, bound)
        return noted

    assert says_little([chance.randrange(100_000) * 8192 for _ in range(300)])
    assert not says_little([at * 8192 for at in range(300)])

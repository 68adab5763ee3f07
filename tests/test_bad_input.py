"""A user's mistake: exit status 2, nothing on stdout, one line on stderr that says where, what, and what is allowed."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import headstart
from tests.conftest import FIGURE_1, Run

HEADER = b"time,op,offset,size\n"


def truncated_gzip(path: Path) -> None:
    whole = gzip.compress(b"".join(b"%d\n" % (number * 7919 % 5000) for number in range(5000)))
    path.write_bytes(whole[: len(whole) // 2])


def content(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


ONE_OBJECT = bytes([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0]) + b"\xff" * 8
"""A record of oracleGeneral: time 1, object 1, 4,096 bytes, no next request."""

BAD_TRACES: list[tuple[str, Callable[[Path], object], tuple[str, ...]]] = [
    ("cut.trace.gz", truncated_gzip, ("cut.trace.gz", "truncated", "allowed")),
    ("text.csv", content(HEADER + b"0,R,0,8192\n1,R,near,8192\n"), ("text.csv, line 3", '"near"', "offset")),
    ("header.csv", content(HEADER), ("header.csv", "no records")),
    ("zero.csv", content(HEADER + b"0,R,0,0\n"), ("zero.csv", "no records")),
    ("empty.csv", content(b""), ("empty.csv", "no records")),
    ("empty.trace", content(b""), ("empty.trace", "no records")),
    ("beyond.csv", content(HEADER + b"0,R,99999999999999,8192\n"), ("beyond the device", "compact")),
    ("minus.csv", content(HEADER + b"0,R,-8192,8192\n"), ("minus.csv, line 2", "-8192")),
    ("back.csv", content(HEADER + b"-5,R,0,8192\n"), ("back.csv, line 2", "-5")),
    ("part.oracleGeneral", content(ONE_OBJECT + bytes(6)), ("part.oracleGeneral, record 2", "6 bytes of 24")),
    ("what.xyz", content(b"\x00\x01\x02 nothing known"), ("what.xyz", "not recognised", "oracleGeneral")),
]


@pytest.mark.parametrize(("name", "make", "words"), BAD_TRACES, ids=[each[0] for each in BAD_TRACES])
def test_bad_traces(
    run: Run, tmp_path: Path, name: str, make: Callable[[Path], object], words: tuple[str, ...]
) -> None:
    make(tmp_path / name)
    one_line(run("compare", name, "--policies", "demand", "--set", "workload.addresses=error"), *words)
    scenario = {"workload": {"trace": str(tmp_path / name)}}
    for policy in ("demand", "forestall"):
        with pytest.raises(headstart.HeadstartError) as caught:
            headstart.simulate(scenario, overrides=[f"policy.name={policy}"])
        assert all(word in str(caught.value) for word in words)


BAD_SETTINGS = [
    ("cache.blocks=0", ("cache.blocks", "0 blocks", "at least one")),
    ("policy.name=lookahead", ("policy.name", '"lookahead"', "forestall")),
    ("polcy.name=demand", ("polcy", "unknown key", "policy")),
    ("policy.horizon=3", ("policy.horizon", "unknown key", "batch_size")),
    ("workload.compute=-1ms", ("workload.compute", "negative", "1ms")),
    ("host.driver_overhead=-1ms", ("host.driver_overhead", "negative", "time with a unit")),
    ("device.fetch_time=2", ("device.fetch_time",)),
    ("device.count=0", ("device.count: 0 is out of range", "from 1 to")),
    ("device.model=ssd", ("device.model", '"ssd"', "hp97560")),
    ("device.scheduler=elevator", ("device.scheduler", '"elevator"', "cscan")),
    ("device={array='raid0', drive_scheduler='sptf'}", ("device.drive_scheduler", '"raid0"', "no queues of their own")),
    ("workload.limit=0", ("workload.limit", "from 1")),
    ("seed=-1", ("seed", "-1")),
    ("seed", ("seed", "key=value")),
]


@pytest.mark.parametrize(("setting", "words"), BAD_SETTINGS, ids=[each[0] for each in BAD_SETTINGS])
def test_bad_settings(run: Run, setting: str, words: tuple[str, ...]) -> None:
    one_line(run("simulate", FIGURE_1, "--set", setting, "--json", "-"), *words)
    with pytest.raises(headstart.HeadstartError) as caught:
        headstart.simulate(FIGURE_1, overrides=[setting])
    assert all(word in str(caught.value) for word in words)


def test_bad_scenario_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cut.toml").write_text('seed = 1\n[workload]\ntrace = "x\n')
    one_line(run("simulate", "cut.toml"), "cut.toml, line 3")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    one_line(run("simulate", "binary.toml"), "binary.toml")
    one_line(run("simulate", "missing.toml"), "missing.toml")
    one_line(run("simulate", tmp_path), str(tmp_path))
    (tmp_path / "nothing.toml").write_text("")
    one_line(run("simulate", "nothing.toml"), "workload.trace", "generator")


def test_missing_file_and_folder_for_a_trace(run: Run, tmp_path: Path) -> None:
    one_line(run("compare", "missing.csv", "--policies", "demand"), "missing.csv")
    one_line(run("compare", tmp_path, "--policies", "demand"), str(tmp_path), "directory")
    one_line(run("trace", "info", "missing.csv"), "missing.csv")
    one_line(run("trace", "convert", "missing.csv", "x.csv"), "missing.csv")
    assert not (tmp_path / "x.csv").exists()


USAGE = [
    (("simulate",), ("SCENARIO.toml", "; example: headstart simulate examples/")),
    (("simulat", "x"), ("simulat", "simulate", "compare")),
    (("simulate", FIGURE_1, "--jsn", "-"), ("--jsn", "--json")),
    (("simulate", FIGURE_1, "--set"), ("--set",)),
    (("simulate", FIGURE_1, "--json", "no/such/folder/x.json"), ("no/such/folder", "allowed")),
    (("list", "policy"), ("policy", "policies")),
    (("list", "devices", "--json", "no/such/folder/x.json"), ("no/such/folder/x.json: cannot be written", "allowed")),
    (("trace", "inform", "x"), ("inform", "info", "convert")),
    (("trace", "generate", "zipf", "x.csv", "--seed", "-1"), ("--seed", "0")),
    (("trace", "generate", "zopf", "x.csv"), ("zopf", "zipf")),
    (("trace", "generate", "zipf", "x.csv", "--to", "xls"), ("xls", "csv")),
    (("compare",), ("TRACE", "--generator")),
    (("compare", "x.csv", "--generator", "zipf"), ("--generator", "TRACE")),
    (("compare", "x.csv", "--disks", "1,two"), ("--disks", "two", "whole numbers")),
    (("compare", "x.csv", "--disks", "0"), ("device.count (--disks): 0 is out of range",)),
    (("compare", "x.csv", "--policies", "demand,,min"), ("--policies", "empty")),
    (("compare", "x.csv", "--policies", "demand:most"), ("replacement", '"most"', "lru")),
    (("compare", "x.csv", "--limit", "0"), ("--limit", "1")),
    (("compare", "x.csv", "--cache", "0"), ("cache.blocks", "at least one")),
    (("compare", "x.csv", "--cache", "much"), ("cache.size", '"much"')),
    (("compare", "x.csv", "--cache", "much%"), ("cache", "5%")),
    (("compare", "x.csv", "--html", "."), ("cannot be written",)),
    (("reproduce", "kimbrel97"), ("kimbrel97", "kimbrel96")),
    (("reproduce", "kimbrel96", "figure99"), ("figure99", "figure1")),
]


@pytest.mark.parametrize(("arguments", "words"), USAGE, ids=[" ".join(map(str, each[0][:4]))[-40:] for each in USAGE])
def test_usage_errors(run: Run, arguments: tuple[str | Path, ...], words: tuple[str, ...]) -> None:
    one_line(run(*arguments), *words)


def test_values_that_are_no_scenario() -> None:
    with pytest.raises(headstart.HeadstartError, match="scenario"):
        headstart.simulate({"seed": object()})
    with pytest.raises(headstart.HeadstartError, match="scenario"):
        headstart.simulate({"cache": {"footprint": float("nan")}})


def one_line(done: object, *words: str) -> None:
    returncode, stdout, stderr = (getattr(done, name) for name in ("returncode", "stdout", "stderr"))
    assert (returncode, stdout) == (2, ""), stderr
    assert stderr.startswith("headstart")
    assert stderr.endswith("\n")
    assert stderr.count("\n") == 1, stderr
    for word in words:
        assert word in stderr


def test_scenarios_are_regular_files_of_a_bounded_size(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large.toml").open("wb") as file:
        file.truncate((16 << 20) + 1)
    (tmp_path / "binary.toml").write_bytes(b"seed = 1\n\xff\xfe\n")
    cases = [("pipe", "not a regular file"), ("/dev/zero", "not a regular file"), ("large.toml", "larger than 16 MiB")]
    for name, problem in [*cases, ("binary.toml", "not UTF-8 text at line 2"), (".", "is a folder")]:
        one_line(run("simulate", name), f"{name}: {problem}", "allowed: a scenario in TOML")

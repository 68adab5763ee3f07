"""`headstart parallel`: both runs, which process waited for which, and what it refuses."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import headstart
from tests.conftest import FIGURE_1, ROOT, Run

EXAMPLE = ROOT / "examples" / "rapid-transit.toml"


def test_the_setting_of_the_paper_is_the_default(run: Run) -> None:
    done = run("parallel", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    both = json.loads(done.stdout)
    assert list(both) == ["without", "prefetching"]
    without, prefetching = both.values()
    assert without["references"] == prefetching["references"] == 2000
    assert without["prefetches"] == 0 < prefetching["prefetches"]
    assert without["misses"] == without["fetches"] == prefetching["fetches"] == 2000
    assert len(prefetching["processes"]) == len(prefetching["devices"]) == 20
    # 100 reads each: 10 intervals, and possibly one from the last meeting to the end.
    assert {len(each["intervals"]) for each in both.values()} <= {10, 11}
    example = json.loads(run("parallel", EXAMPLE, "--json", "-").stdout)
    assert example["prefetching"]["elapsed_ns"] == prefetching["elapsed_ns"], "the example is the same program"


def test_what_is_shown(run: Run, tmp_path: Path) -> None:
    done = run("parallel", EXAMPLE, "--set", "process.count=3", "--set", "process.pattern={name='gw', reads=90}",
               "--json", "both.json")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0] == "3 processes, gw, barrier: process after 10 reads, 20 x uniform"
    both = json.loads((tmp_path / "both.json").read_text())
    after = both["prefetching"]
    total = next(line for line in lines if line.startswith("total "))
    assert f"{after['elapsed_ns'] / 1e9:.3f} s" in total
    shown = [line.split() for line in lines]
    assert ["misses", "90", str(after["misses"]), f"{after['misses'] / 90:.1%}", "of", "reads"] in shown
    processes = lines.index("processes: without > prefetching") + 2
    assert [lines[processes + at].split()[0] for at in range(3)] == ["0", "1", "2"]
    first = lines[lines.index("intervals between barriers") + 2].split()
    interval = after["intervals"][0]
    assert first[4:] == [
        f"{interval['end_ns'] / 1e6:,.1f}",
        str(interval["critical"]),
        f"{interval['slack_ns'] / 1e6:,.1f}",
    ]


def test_without_barriers_there_are_no_intervals(run: Run) -> None:
    done = run("parallel", "--set", "process.barrier=none", "--set", "process.count=2")
    assert done.returncode == 0
    assert "intervals between barriers" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((FIGURE_1,), ("process", "allowed: a section [process]")),
        (("--set", "policy={name='demand', replacement='ru-set'}"), ("policy.name", '"rapid-transit"')),
        (("--set", "process.count=0"), ("process.count", "from 1")),
        (("absent.toml",), ("absent.toml",)),
    ],
)
def test_what_is_refused(run: Run, arguments: tuple[str | Path, ...], parts: tuple[str, ...]) -> None:
    done = run("parallel", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert all(part in done.stderr for part in parts), done.stderr


def test_an_interval_is_as_long_as_its_critical_process_takes() -> None:
    """The parts of the critical process sum to its length, except for its overrun at the barrier before it."""
    result = headstart.simulate(EXAMPLE)
    intervals: Sequence[Mapping[str, Any]] = result.intervals
    for interval in intervals:
        parts = ("compute", "own_io", "other_io", "overrun")
        length = interval["end_ns"] - interval["start_ns"]
        assert 0 <= length - sum(interval[f"critical_{part}_ns"] for part in parts) <= 20_000_000, (
            "overrun of the start"
        )


def test_the_old_name_is_a_hidden_alias(run: Run) -> None:
    words = ("--set", "process.count=2", "--set", "process.barrier=none", "--json", "-")
    assert run("rapid", *words).stdout == run("parallel", *words).stdout
    listed = run("--help").stdout
    assert "parallel" in listed and "rapid" not in listed

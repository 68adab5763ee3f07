"""`headstart forecast`: its table, its JSON, mistakes; a whole one of a command that was recorded."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headstart import HeadstartError, forecasting
from headstart.cli import app
from headstart.live.core import Record
from headstart.report.forecast import headline
from tests.test_run import PAGES, recording

POLICIES = ["--policies", "just-in-time", "--budget", "8MiB"]


def written(path: Path, data: bytes) -> None:
    """Write a file and sync it, so that it has a place on the disk, which a forecast looks up."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@pytest.fixture
def hints(tmp_path: Path) -> Path:
    """Return a recording of a read of 64 pages, a second long."""
    read = tmp_path / "data"
    written(read, b"x" * (PAGES * 4096))
    return recording(tmp_path / "cat.hints", read)


def test_every_policy_of_run_from_8_mib_up(hints: Path) -> None:
    found = forecasting.forecast(hints, device="ibm-36gb-10k", read_ahead="128KiB")
    assert found.plain.policy == "linux"
    assert found.demand.policy == "demand"
    assert {row.policy for row in found.rows} >= {"just-in-time", "forestall", "aggressive", "fixed-horizon"}
    assert {row.budget_bytes for row in found.rows} == {8 << 20}
    # One read of 256 KiB at the start of the second: there is no time to prefetch it.
    assert found.compute_ns < 10**9 < found.plain.elapsed_ns + 10**9
    assert found.recommendation is None
    assert headline(found).startswith("no benefit: prefetching saves less than 5% of 1.0")
    assert all(row.elapsed_ns >= found.lower_bound_ns for row in (*found.rows, found.plain, found.demand))
    assert Record.from_json(json.dumps(found)) == found


def test_everything_cached_is_thinking(hints: Path) -> None:
    found = forecasting.forecast(hints, device="sata-ssd", cached=True, policies=["just-in-time"])
    assert found.plain.elapsed_ns == found.compute_ns == found.rows[0].elapsed_ns
    assert found.plain.requests == 0


def test_hints_of_another_recording_change_what_is_prefetched_and_nothing_else(hints: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    written(other, b"y" * (PAGES * 4096))
    wrong = recording(tmp_path / "other.hints", other)
    told: dict[str, Any] = {"device": "ibm-36gb-10k", "read_ahead": "128KiB", "policies": ["just-in-time"]}
    own, same, found = (forecasting.forecast(hints, **told, prefetch=by) for by in (None, hints, wrong))
    assert own == same
    assert (found.plain, found.demand, found.lower_bound_ns) == (own.plain, own.demand, own.lower_bound_ns)
    assert found.rows[0].used_bytes == 0
    status = app.run(["forecast", str(hints), "--hints", str(wrong), "--device", "nvme", *POLICIES, "--json", "-"])
    assert status == 0
    assert app.run(["forecast", str(hints), "--hints", str(tmp_path / "none.hints")]) == 2


def test_a_table_and_json(hints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "forecast.json"
    status = app.run(["forecast", str(hints), "--device", "nvme", *POLICIES, "--json", str(target)])
    shown = capsys.readouterr()
    assert status == 0, shown.err
    assert max(map(len, shown.out.splitlines())) <= 110
    assert "just-in-time" in shown.out
    assert "no benefit" in shown.out
    assert json.loads(target.read_text())["schema"] == 1
    assert app.run(["forecast", str(hints), "--device", "nvme", *POLICIES, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(target.read_text())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--device", "no-such"], 'device.model (--device): unknown model "no-such"'),
        (["--device", "nvme", "--on", "/"], "--on: cannot be combined with --device"),
        (["--on", "/no/such/place"], "--on: /no/such/place: No such file or directory"),
        (["--on", "/proc"], "--on: /proc is on no block device"),
        (["--policies", "linux"], 'unknown hinted policy "linux"'),
        (["--policies", "optimum"], "policies (--policies): optimum"),
        (["--budget", "much"], "--budget"),
        (["--read-ahead", "much"], "--read-ahead"),
        (["--scheduler", "no-such"], "scheduler (--scheduler)"),
        (["--json", "/no/such/folder/file"], "/no/such/folder"),
    ],
)
def test_mistakes_are_one_line(
    hints: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["forecast", str(hints), *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert len(shown.err.strip().splitlines()) == 1


def test_files_that_are_no_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["forecast", str(tmp_path / "none.hints")]) == 2
    assert "none.hints" in capsys.readouterr().err
    other = tmp_path / "other.hints"
    other.write_text("nothing of the kind")
    assert app.run(["forecast", str(other)]) == 2
    assert "other.hints" in capsys.readouterr().err
    with pytest.raises(HeadstartError, match=r"none\.hints"):
        forecasting.forecast(tmp_path / "none.hints")


def test_a_recorded_command(tmp_path: Path) -> None:
    """Plain times on a simulated drive lie between thinking and one seek for each page."""
    tracing = Path("/sys/kernel/tracing/events/filemap/mm_filemap_get_pages")
    if os.geteuid() != 0 or not tracing.is_dir():
        pytest.skip("SKIPPED: recording needs root, Linux 6.12 and a tracefs")
    target = tmp_path / "python.hints"
    # A separate file, so that what other programs keep in the page cache does not matter, and enough reads of it that
    # the time in which a busy machine starts Python does not matter, either.
    data = tmp_path / "data"
    data.write_bytes(os.urandom(4 << 20))
    script = (
        f"import os; f = os.open({str(data)!r}, os.O_RDONLY); [os.pread(f, 4096, n << 16) for n in range(63, -1, -1)]"
    )
    with data.open("rb+") as file:
        os.fsync(file)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    command = [sys.executable, "-m", "headstart", "record", "-o", str(target), "--", sys.executable, "-c", script]
    subprocess.run(command, check=True, capture_output=True)
    found = forecasting.forecast(target, device="ibm-36gb-10k", policies=["just-in-time"], trusted=True)
    assert found.compute_ns < found.plain.elapsed_ns
    assert found.compute_ns <= found.recorded_ns
    assert found.recommendation is not None
    assert found.recommendation.gain > 0.05


def test_a_measured_device_without_an_arm_answers_as_measured(hints: Path) -> None:
    point = Record(request_bytes=1 << 20, depth=1, reads=10, requests_per_s=500.0, bytes_per_s=524_288_000.0)
    check = Record(held_out=(), mean_error=0.0, largest_error=0.0, demerit=0.0)
    found = Record(
        schema=1,
        device="/dev/x",
        capacity_bytes=(1 << 40) + 512,
        elapsed_ns=1,
        reads=10,
        seed=1,
        latency=Record(near_ns=90_000, far_ns=100_000, buffered_ns=None),
        by_depth=(point,),
        by_depth_long=(),
        saturating_depth=16,
        arm=None,
        by_size=(point,),
        saturating_bytes=1 << 20,
        notes=(),
        model=Record(name="flash", parameters=(), check=check),
        profile="",
    )
    keys = forecasting.flash_keys(found)
    assert keys["channels"] == 16
    assert keys["capacity"] == f"{1 << 40}B"
    slow = forecasting.forecast(hints, device="nvme", device_keys=keys, policies=["just-in-time"], read_ahead=0)
    # 256 KiB in one request: 64 pages on 16 channels, and 500 us on the link.
    assert 5e5 < slow.plain.elapsed_ns - slow.compute_ns < 2e6

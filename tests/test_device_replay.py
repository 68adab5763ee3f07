"""`headstart device replay` and `import-diskspecs`, and their Python side."""

import json
import math
from pathlib import Path

import pytest

import headstart
from headstart import devices
from tests.conftest import ROOT, Run
from tests.test_bad_input import one_line

DISKS = ROOT.parent / "shared" / "disks"
MEASURED = [
    # Profile, the drive's files, and DiskSim's published RMS demerit in ms.
    ("seagate-cheetah-9lp", "cheetah9LP", 0.107),
    ("seagate-cheetah-4lp", "cheetah4LP", 0.318),
    ("seagate-barracuda-st32171w", "barracuda", 0.349),
    ("quantum-atlas-10k", "atlas10k", 0.268),
]
UNIFORM = {"fetch_time": "2ms"}
THREE = "R Hit 0 4 1000 500\nW Hit 100 8 3000 250\nR Miss 8 16 2000 99\n"


def replayed(tmp_path: Path, name: str, text: str, **options: object) -> devices.Replay:
    (tmp_path / name).write_text(text)
    return devices.replay("uniform", tmp_path / name, keys=UNIFORM, **options)  # type: ignore[arg-type]


def test_three_requests_by_hand(tmp_path: Path) -> None:
    found = replayed(tmp_path, "three.trace", THREE)
    # Each takes 2 ms; pauses of 500 and 250 us between them.
    assert (found.requests, found.elapsed_ns) == (3, 6_750_000)
    every = devices.Times(
        requests=3, mean_ns=2_000_000, p50_ns=2_000_000, p90_ns=2_000_000, p99_ns=2_000_000, max_ns=2_000_000
    )
    assert found.modelled.all == every
    assert found.measured is not None
    assert found.measured.all == devices.Times(
        requests=3, mean_ns=2_000_000, p50_ns=2_000_000, p90_ns=3_000_000, p99_ns=3_000_000, max_ns=3_000_000
    )
    assert (found.measured.reads.requests, found.measured.reads.mean_ns) == (2, 1_500_000)
    assert (found.measured.writes.requests, found.measured.buffer_hits.requests) == (1, 0)
    # Measured 1, 2, 3 ms against 2, 2, 2: distances 1, 0, 1.
    assert found.rms_demerit_ns is not None
    assert found.rms_demerit_ns["all"] == round(1e6 * math.sqrt(2 / 3))
    assert found.rms_demerit_ns["reads"] == round(1e6 * math.sqrt(1 / 2))
    assert found.demerit_share == pytest.approx(math.sqrt(2 / 3) / 2, rel=1e-6)
    assert found.parts_ns_mean == {
        "seek_ns": 0,
        "rotation_ns": 0,
        "transfer_ns": 2_000_000,
        "overhead_ns": 0,
        "wait_ns": 0,
    }
    measured = found.curves["measured_ns"]
    assert measured is not None
    assert (len(measured), measured[0], measured[500], measured[-1]) == (1001, 1_000_000, 2_000_000, 3_000_000)
    assert measured == sorted(measured)
    assert replayed(tmp_path, "three.trace", THREE, limit=2).elapsed_ns == 4_500_000


def test_when_requests_are_issued(tmp_path: Path) -> None:
    # Recorded pauses: 5 ms less the 1 ms that the first request took.
    paused = replayed(tmp_path, "a.csv", "time_ms,lba,nsect,dur_ms\n7,0,8,1\n12,8,8,1\n")
    assert (paused.elapsed_ns, paused.measured is None) == (2_000_000 + 4_000_000 + 2_000_000, False)
    # Issue times alone: the second waits for the first, the third is issued at its time.
    timed = replayed(tmp_path, "b.csv", "time_ms,lba,nsect\n7,0,8\n8,8,8\n17,8,8\n")
    assert (timed.elapsed_ns, timed.measured, timed.rms_demerit_ns) == (12_000_000, None, None)
    assert timed.curves["measured_ns"] is None
    assert replayed(tmp_path, "c.csv", "lba,nsect\n0,8\n8,8\n").elapsed_ns == 4_000_000
    assert len({found.pace for found in (paused, timed)}) == 2


def test_command_json_picture_and_page(run: Run, tmp_path: Path) -> None:
    (tmp_path / "three.trace").write_text(THREE)
    words = ("device", "replay", "hp97560", "three.trace")
    done = run(*words, "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    same = devices.replay("hp97560", tmp_path / "three.trace").to_dict()
    assert {**found, "trace": same["trace"]} == same
    parts = found["parts_ns_mean"].values()
    assert sum(parts) == pytest.approx(found["modelled"]["all"]["mean_ns"], abs=len(parts))
    done = run(*words, "--png", "r.png", "--html", "r.html", "--json", "r.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"RMS demerit {found['rms_demerit_ns']['all'] / 1e6:.3f} ms" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text()) == found
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "r.html").read_text()
    assert all(text in page for text in ('data-figure="replay-0"', "measured", "modelled", "three.trace on hp97560"))
    assert "<script src" not in page


@pytest.mark.parametrize(("profile", "drive", "published_ms"), MEASURED, ids=[each[1] for each in MEASURED])
def test_measured_drives(profile: str, drive: str, published_ms: float, tmp_path: Path) -> None:
    trace = DISKS / f"{drive}.trace.xz"
    if not trace.exists():
        pytest.skip(f"no measured trace {trace}")
    found = devices.replay(profile, trace)
    assert found.requests == 10_000
    assert found.rms_demerit_ns is not None
    assert found.rms_demerit_ns["all"] <= 1.5e6 * published_ms
    imported = devices.import_diskspecs(DISKS / f"{drive}.parv")
    (tmp_path / "imported.toml").write_text(imported.profile)
    again = devices.replay(tmp_path / "imported.toml", trace)
    assert again.rms_demerit_ns is not None
    assert again.rms_demerit_ns["all"] <= 1.5e6 * published_ms
    assert headstart.device(tmp_path / "imported.toml").capacity_bytes == 512 * imported.sectors


def test_import_writes_a_profile_or_prints_it(run: Run, tmp_path: Path) -> None:
    parv = DISKS / "cheetah9LP.parv"
    if not parv.exists():
        pytest.skip(f"no parameters {parv}")
    printed = run("device", "import-diskspecs", parv)
    imported = devices.import_diskspecs(parv)
    assert (printed.returncode, printed.stdout) == (0, imported.profile)
    assert printed.stderr.splitlines() == [f"warning: {warning}" for warning in imported.warnings]
    done = run("device", "import-diskspecs", parv, "--out", "mine.toml")
    assert (done.returncode, done.stdout) == (0, "wrote mine.toml\n")
    assert (tmp_path / "mine.toml").read_text() == imported.profile
    shown = run("device", "show", "mine.toml")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(imported.name)
    one_line(run("device", "import-diskspecs", parv, "--name", "NoSuchDisk"), "NoSuchDisk", "allowed")


def test_mistakes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "objects.trace").write_text("1\n2\n")
    one_line(run("device", "replay", "hp97560", "objects.trace"), "objects.trace", "no addresses", "allowed")
    (tmp_path / "far.trace").write_text("R Hit 0 4 1 1\nR Hit 99999999 4 1 1\n")
    beyond = run("device", "replay", "hp97560", "far.trace")
    one_line(beyond, "far.trace, record 2", "100000003", "beyond the device", "2684016")
    (tmp_path / "two.csv").write_text("lba,nsect,dev\n0,8,0\n8,8,1\n")
    one_line(run("device", "replay", "hp97560", "two.csv"), "two.csv, record 2", "one device")
    (tmp_path / "bad.trace").write_text("R Hit 0 4 1 1\nR Hit x 4 1 1\n")
    one_line(
        run("device", "replay", "hp97560", "bad.trace", "--json", "out.json"), "bad.trace, line 2", '"x"', "sector"
    )
    one_line(run("device", "replay", "hp97560", "none.trace", "--png", "out.png"), "none.trace")
    one_line(run("device", "replay", "hp9756", "far.trace"), '"hp9756"', "hp97560")
    one_line(run("device", "replay", "hp97560", "far.trace", "--format", "nonesuch"), '"nonesuch"', "measured")
    (tmp_path / "long.trace").write_text("R Hit 0 4 1 9000000000000000\nR Hit 0 4 1 1\n")
    one_line(run("device", "replay", "hp97560", "long.trace"), "long.trace, record 2", "146 years")
    (tmp_path / "bad.parv").write_text("disksim_global Global {\n  Init Seed = \n")
    one_line(run("device", "import-diskspecs", "bad.parv", "--out", "out.toml"), "bad.parv")
    one_line(run("device", "import-diskspecs", "none.parv"), "none.parv")
    assert not list(tmp_path.glob("*out.*"))


def test_progress_stops_a_replay(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("lba,nsect\n" + "0,8\n" * 10_000)

    def stop(share: float, requests: int) -> None:
        assert 0 < share <= 1
        raise InterruptedError(f"after {requests}")

    with pytest.raises(InterruptedError, match="after 4096"):
        devices.replay("uniform", tmp_path / "long.csv", keys=UNIFORM, progress=stop)

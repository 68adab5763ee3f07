"""`headstart device show` and `plot`, and their Python side."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headstart
from headstart import devices
from headstart.cli import device as command
from headstart.cli import output
from headstart.report.charts import log_ticks
from tests.conftest import CSCOPE_1, ROOT, Run
from tests.test_bad_input import one_line

CATALOG = headstart.catalog()["devices"]
KEYS = {"uniform": {"fetch_time": "2ms"}}
PROFILE = ROOT / "crates" / "sim" / "device" / "profiles" / "hp97560.toml"


def words_for(name: str) -> list[str]:
    return [word for key, value in KEYS.get(name, {}).items() for word in ("--set", f"{key}={value}")]


@pytest.mark.parametrize("name", [entry["name"] for entry in CATALOG])
def test_every_device_shows_what_it_is_made_of(run: Run, name: str) -> None:
    done = run("device", "show", name, "--json", "-", *words_for(name))
    assert (done.returncode, done.stderr) == (0, "")
    found = headstart.device(name, keys=KEYS.get(name))
    assert json.loads(done.stdout) == json.loads(json.dumps(found.to_dict()))
    entry = next(entry for entry in CATALOG if entry["name"] == name)
    assert (found.name, found.summary, found.source, found.profile) == (name, entry["summary"], entry["source"], None)
    read = found.random_read_8kib
    parts = [read.seek_ns, read.rotation_ns, read.transfer_ns, read.overhead_ns, read.wait_ns]
    assert sum(parts) == pytest.approx(read.mean_ns, abs=len(parts)), "parts are rounded one by one"
    assert read.mean_ns > 0
    assert all(rate > 0 for rate in found.sequential_bytes_per_s.values())
    drive = found.mechanics
    if drive is not None:
        seek = drive.seek_ns
        assert seek.single_cylinder is not None
        assert seek.single_cylinder < seek.mean < seek.full_stroke
        assert found.capacity_bytes is not None
        # A drive may report fewer sectors than its zones hold.
        held = sum(zone.sectors for zone in drive.zones) * 512
        assert 0.95 * held < found.capacity_bytes <= held
        assert drive.revolution_ns == pytest.approx(60e9 / drive.rpm, abs=1)
        assert found.sequential_bytes_per_s["outer"] == drive.zones[0].bytes_per_s
        of = [(zone, size) for size in (8_192, 2**20) for zone in ("outer", "inner")]
        assert [(read.zone, read.bytes) for read in found.sequential_reads] == of
        for each in found.sequential_reads:
            assert each.limit in {"media", "interface", "overheads", "rotations"}
            assert 0 < each.bytes_per_s < 1.02 * found.sequential_bytes_per_s[each.zone], "the media are the most"
        assert 0.3 * drive.revolution_ns < read.rotation_ns < 0.6 * drive.revolution_ns, "half a turn, about"
    else:
        assert found.sequential_reads == ()
    readable = run("device", "show", name, *words_for(name))
    assert (readable.returncode, readable.stderr) == (0, "")
    for text in (found.title, "random 8 KiB read", output.duration(read.mean_ns)):
        assert text in readable.stdout


def test_what_limits_sequential_reads_is_shown(run: Run) -> None:
    shown = run("device", "show", "seagate-cheetah-9lp").stdout
    assert re.search(
        r"sequential 1 MiB read +outer 4\.\d\d MB/s \(interface\), inner 4\.\d\d MB/s \(interface\)", shown
    )
    sheet = run("device", "show", "seagate-cheetah-9lp", "--set", "bus.rate=data-sheet").stdout
    assert re.search(r"sequential 1 MiB read +outer 1\d\.\d\d MB/s \(media\)", sheet)
    small = run("device", "show", "seagate-exos-x20").stdout
    assert re.search(r"sequential 8 KiB read +outer 72\.\d\d MB/s \(overheads\)", small)
    assert re.search(r"sequential 1 MiB read +outer 2\d\d\.\d\d MB/s \(media\)", small)


@pytest.mark.parametrize("name", [entry["name"] for entry in CATALOG])
def test_every_device_has_a_survey(name: str) -> None:
    found = headstart.device(name, keys=KEYS.get(name))
    survey = devices.survey(name, keys=KEYS.get(name))
    if found.mechanics is not None:
        distances = [point["distance_cylinders"] for point in survey.seek]
        assert distances == sorted(set(distances))
        assert (distances[0], distances[-1]) == (1, found.mechanics.cylinders - 1)
        assert survey.seek[0]["ns"] == found.mechanics.seek_ns.single_cylinder
        assert survey.zones == found.mechanics.zones
        assert not survey.by_size
    else:
        alone = [point for point in survey.by_size if point["name"] == "one at a time"]
        sizes = [point["request_bytes"] for point in alone]
        assert sizes == [4096 << power for power in range(13)]
        for point in alone:
            rate = point["request_bytes"] * 1e9 / point["response_ns_mean"]
            assert point["bytes_per_s"] == pytest.approx(rate, rel=1e-3), "one at a time: rate is size over response"
        for point in survey.by_depth:
            # Little's law, except for the first and the last requests, which meet fewer others.
            outstanding = point["requests_per_s"] * point["response_ns_mean"] / 1e9
            assert 0.9 * point["depth"] < outstanding < 1.1 * point["depth"]


def test_a_short_name_stands_for_a_drive_everywhere(run: Run) -> None:
    """`hdd` means the same as in advice: the result names the drive itself."""
    compare = ("compare", CSCOPE_1, "--policies", "demand", "--limit", "200", "--json", "-", "--device")
    found, same = (json.loads(run(*compare, name).stdout) for name in ("hdd", "seagate-exos-x20"))
    assert found["scenario"] == same["scenario"]
    assert found["rows"] == [{**row, "device": "hdd"} for row in same["rows"]]
    assert headstart.device("hdd").keys == headstart.device("seagate-exos-x20").keys
    assert "object-store, hdd, or the path" in run("device", "show", "floppy").stderr


def test_a_uniform_device_by_hand() -> None:
    found = headstart.device("uniform", keys={"fetch_time": "2ms"})
    assert (found.capacity_bytes, found.mechanics, found.random_read_8kib.mean_ns) == (None, None, 2_000_000)
    # 1 MiB in 2 ms.
    assert found.sequential_bytes_per_s["one_at_a_time"] == pytest.approx(2**20 / 0.002, abs=1)
    survey = devices.survey("uniform", keys={"fetch_time": "2ms"})
    # Requests are served one at a time: with d outstanding, a request waits for d - 1 others. The first few wait for
    # fewer.
    for point in survey.by_depth:
        assert point["requests_per_s"] == pytest.approx(500)
        # The writers have written before, and never meet fewer.
        fewer = sum(range(point["depth"])) / 4_000 if point["name"] == "reads" else 0
        mean_ns = 2e6 * (point["depth"] - fewer)
        assert point["response_ns_mean"] == pytest.approx(mean_ns, rel=1e-6)


def test_probes_of_a_uniform_device_by_hand() -> None:
    found = devices.probe("uniform", keys=KEYS["uniform"], requests=10, depth=4, request_bytes=1000)
    # Responses 2, 4, 6 ms and seven times 8 ms; 1000 bytes are two sectors.
    assert (found.request_bytes, found.depth) == (1024, 4)
    assert (found.response_ns_mean, found.response_ns_p50, found.response_ns_max) == (6_800_000, 8_000_000, 8_000_000)
    assert (found.requests_per_s, found.bytes_per_s) == (500, 512_000)
    loads = [
        devices.probe("hp97560", requests=500, depth=32, scheduler=each, seed=3) for each in ("fcfs", "cscan", "cscan")
    ]
    assert loads[1] == loads[2]
    assert loads[1].requests_per_s > loads[0].requests_per_s
    for wrong in ({"depth": 0}, {"requests": 0}, {"request_bytes": 0}, {"seed": -1}, {"scheduler": "lift"}):
        with pytest.raises(headstart.HeadstartError, match=next(iter(wrong))):
            devices.probe("hp97560", **wrong)


def test_a_profile_of_ones_own(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PROFILE.read_text().replace('"HP 97560"', '"Mine"'))
    done = run("device", "show", "mine.toml", "--set", "buffer.size=64KiB", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["name"], found["profile"], found["summary"]) == ("mine.toml", "mine.toml", None)
    assert found["keys"]["buffer"] == {"size": "64KiB", "read_ahead": True}
    same = headstart.device("hp97560").to_dict()
    assert found["random_read_8kib"] == same["random_read_8kib"], "random reads do not see the buffer's size"
    # The keys describe the device completely: a scenario that has them behaves the same.
    assert run("device", "show", "mine.toml").stdout.startswith("Mine\nmine.toml\n")


def test_facts_of_a_drive_with_an_arm() -> None:
    zones = tuple(
        devices.Zone(
            first_sector=first,
            sectors=1000,
            first_cylinder=10 * index,
            cylinders=10,
            sectors_per_track=10 - index,
            bytes_per_s=20_000_000 - index * 5_000_000,
        )
        for index, first in enumerate((0, 1000))
    )
    seek = devices.SeekTimes(single_cylinder=831_000, mean=5_400_000, full_stroke=10_627_000)
    drive = devices.Mechanics(
        rpm=10_000,
        revolution_ns=6_000_000,
        cylinders=20,
        surfaces=10,
        seek_ns=seek,
        head_switch_ns=1_000_000,
        write_settle_ns=500_000,
        zones=zones,
    )
    keys = {"name": "Drive", "rpm": 10_000, "zones": [], "controller": {"overhead": "1ms"}}
    plain = headstart.device("uniform", keys=KEYS["uniform"])
    found = dataclasses.replace(plain, mechanics=drive, keys=keys, capacity_bytes=1_500_000_000)
    told = command.facts(found)
    assert told["capacity"] == "1.50 GB (1.40 GiB), 2,929,687 sectors of 512 bytes"
    assert told["rotation"] == "10,000 rpm, 6.000 ms a turn"
    assert told["geometry"] == "20 cylinders, 10 surfaces, 2 zones"
    assert told["seek"] == "one cylinder 0.831 ms, mean of random pairs 5.400 ms, full stroke 10.627 ms"
    assert told["head switch"] == "1.000 ms, writes settle 0.500 ms longer"
    assert told["controller"] == "overhead=1ms"
    assert "zones" not in told


@pytest.mark.parametrize("name", [CATALOG[0]["name"], CATALOG[1]["name"]])
def test_plot_writes_a_picture_and_a_page_that_needs_nothing(run: Run, tmp_path: Path, name: str) -> None:
    done = run("device", "plot", name, "--png", "d.png", "--html", "d.html", *words_for(name))
    assert (done.returncode, done.stdout, done.stderr) == (0, "wrote d.png\nwrote d.html\n", "")
    picture = (tmp_path / "d.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert width > 1000
    assert height > 400
    page = (tmp_path / "d.html").read_text()
    assert 'data-figure="device-0"' in page
    assert "random 8 KiB read" in page
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"<script|<link|<img|src=|href=|https?://", own)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.html", "d.png"]


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "vl_convert.py").write_text("raise ImportError\n")
    words = [sys.executable, "-m", "headstart", "device", "plot", "hp97560", "--png", "x.png"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    one_line(done, "vl-convert-python", "pip install 'headstart[report]'")
    assert not (tmp_path / "x.png").exists()


USAGE = [
    (("device", "show", "ssd9000"), ('"ssd9000"', "hp97560", ".toml")),
    (("device", "show", "missing.toml"), ("missing.toml",)),
    (("device", "show", "uniform"), ("fetch_time", "is missing", "a time from 1ns")),
    (("device", "show", "hp97560", "--set", "rpm=0"), ("rpm", "whole number")),
    (("device", "show", "hp97560", "--set", "bufer.size=1MiB"), ("bufer", "unknown key", "buffer")),
    (("device", "show", "hp97560", "--set", "rpm"), ("--set", "key=value")),
    (("device", "show", "hp97560", "--set", "rpm=1", "--set", "rpm.a=1"), ("--set", "one of the two")),
    (("device", "plot", "hp97560"), ("--png", "--html")),
    (("device", "plot", "hp97560", "--png", "no/such/folder/x.png"), ("no/such/folder", "allowed")),
    (("device", "plot", "ssd9000", "--png", "x.png"), ('"ssd9000"', "hp97560")),
]


@pytest.mark.parametrize(("arguments", "words"), USAGE, ids=[" ".join(each[0][1:])[-40:] for each in USAGE])
def test_mistakes(run: Run, tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    one_line(run(*arguments), *words)
    assert not list(tmp_path.iterdir())


def test_mistakes_in_a_profile_name_file_and_place(run: Run, tmp_path: Path) -> None:
    text = PROFILE.read_text()
    (tmp_path / "cut.toml").write_text(text[: text.index("surfaces") + 10])
    one_line(run("device", "show", "cut.toml"), "cut.toml", "line 8")
    (tmp_path / "slow.toml").write_text(text.replace("rpm = 4002", "rpm = -4002"))
    one_line(run("device", "show", "slow.toml"), "slow.toml: rpm", "-4002", "whole number")
    with pytest.raises(headstart.HeadstartError, match="keys"):
        headstart.device("hp97560", keys={"rpm": object()})


def test_ticks_of_logarithmic_scales() -> None:
    assert log_ticks([3, 42]) == [2, 5, 10, 20, 50]
    assert log_ticks([0.5, 0.5]) == [0.25, 0.5, 1.0]
    assert log_ticks([7, 70_000]) == [1, 10, 100, 1_000, 10_000, 100_000]

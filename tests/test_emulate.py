"""`headstart emulate` and its Python side: what is mounted, what ends it, what is refused."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart import _core
from headstart.cli import emulate as command
from headstart.live.core import Record
from headstart_lab.livestudy.platform import is_mounted
from tests.conftest import COMMAND, Run
from tests.machines import PATIENCE_S, emulated, mounts, wait_until
from tests.test_bad_input import one_line

UNIFORM = ("uniform", "--set", "fetch_time=1ms")
CONTENT = bytes(range(256)) * 300 + b"the end"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(CONTENT)
    (tmp_path / "mount").mkdir()
    return path


def settled(mount: Path) -> dict[str, Any]:
    """The statistics once each answer has been counted, which happens after it is sent."""

    def counted() -> bool:
        found.update(json.loads((mount / "stats").read_text(encoding="utf-8")))
        return bool(found["lateness_ns"]["count"] == found["requests"])

    found: dict[str, Any] = {}
    wait_until(counted)
    return found


@mounts
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda each: each.name)
def test_signals_unmount_and_a_second_one_does_no_harm(image: Path, sent: signal.Signals) -> None:
    with emulated(image, *UNIFORM, "--json", "-") as (process, mount):
        assert (mount / "disk.img").read_bytes() == CONTENT
        now = settled(mount)
        assert (now["requests"] > 0, now["bytes"]) == (True, len(CONTENT))
        process.send_signal(sent)
        process.send_signal(sent)
        out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors, is_mounted(mount)) == (0, "", False)
    told = json.loads(out)
    assert {key: told[key] for key in now if key not in {"elapsed_ns", "utilization"}} == {
        key: value for key, value in now.items() if key not in {"elapsed_ns", "utilization"}
    }
    assert told["was_in_use"] is False
    assert told["service_ns"] == told["device_requests"] * 1_000_000


@mounts
def test_unmounting_from_outside_ends_it(image: Path) -> None:
    with emulated(image, *UNIFORM) as (process, mount):
        (mount / "disk.img").read_bytes()
        umount = (
            ["umount", str(mount)]
            if shutil.which("umount") and os.geteuid() == 0
            else ["fusermount3", "-u", str(mount)]
        )
        subprocess.run(umount, check=True)
        out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    assert "lateness" in out


@mounts
def test_what_is_in_use_is_unmounted_all_the_same(image: Path) -> None:
    with emulated(image, *UNIFORM) as (process, mount), (mount / "disk.img").open("rb"):
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, is_mounted(mount)) == (0, False)
    assert errors == f"{mount}: was still in use; processes with open files get errors from now on\n"


@mounts
def test_python_says_when_it_ends(image: Path) -> None:
    mount = image.parent / "mount"
    looks: list[Record] = []

    def look(now: Record) -> bool:
        if not looks:
            assert (mount / "disk.img").read_bytes() == CONTENT
        looks.append(now)
        return len(looks) == 3

    ended = headstart.emulate("uniform", image, mount, keys={"fetch_time": "1ms"}, scheduler="clook", progress=look)
    assert (is_mounted(mount), ended.was_in_use, len(looks)) == (False, False, 3)
    assert looks[0].requests == 0
    assert ended.statistics.bytes == len(CONTENT)
    assert (ended.statistics.scheduler, ended.statistics.image) == ("clook", str(image))
    late = ended.statistics.lateness_ns
    assert 0 < late.mean <= late.max
    assert late.count == ended.statistics.requests

    def fail(_: Record) -> bool:
        raise LookupError("of its own")

    with pytest.raises(LookupError, match="of its own"):
        headstart.emulate("uniform", image, mount, keys={"fetch_time": "1ms"}, progress=fail)
    assert not is_mounted(mount)


@mounts
@pytest.mark.skipif(
    not shutil.which("setpriv") or os.geteuid() != 0, reason="SKIPPED: needs root, to be without a right of it"
)
def test_without_the_right_to_mount_it_says_so(image: Path) -> None:
    mount = image.parent / "mount"
    without = ["setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin"]
    line = [*without, str(COMMAND), "emulate", "hp97560", str(image), str(mount)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    allowed = "; allowed: root, or a user where the program fusermount3 is installed"
    one_line(done, f"headstart: {mount}: cannot be mounted: ", allowed)
    assert not is_mounted(mount)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("no-such-drive", "image", "mount"), 'model: unknown model "no-such-drive"; allowed: uniform, '),
        (("uniform", "image", "mount"), "fetch_time: "),
        (("hp97560", "image", "mount", "--set", "rpm"), '--set: "rpm"; allowed: key=value'),
        (("hp97560", "image", "mount", "--set", "rpm=0"), "rpm: "),
        (
            ("hp97560", "image", "mount", "--scheduler", "clok"),
            'scheduler (--scheduler): unknown scheduler "clok" (did you mean',
        ),
        (("hp97560", "missing", "mount"), "missing: No such file or directory; allowed: a regular file or"),
        (("hp97560", "mount", "mount"), "mount: is neither; allowed: a regular file or a block device"),
        (("hp97560", "large", "mount"), "large: is larger than the drive: 2GB; allowed: at most 13"),
        (("hp97560", "image", "missing"), "missing: No such file or directory; allowed: an empty folder"),
        (("hp97560", "image", "."), ".: is not empty; allowed: an empty folder"),
        (("hp97560", "image", "/proc"), "/proc: something is mounted there; allowed: an empty folder"),
        (("hp97560", "image", "mount", "--json", "missing/stats.json"), "missing/stats.json: cannot be written"),
    ],
)
def test_mistakes_are_named(run: Run, image: Path, words: tuple[str, ...], problem: str) -> None:
    with (image.parent / "large").open("wb") as large:
        large.truncate(2_000_000_000)
    done = run("emulate", *words)
    one_line(done)
    assert done.stderr.startswith(f"headstart: {problem}"), done.stderr
    assert not is_mounted(image.parent / "mount")


def test_the_status_line_is_of_the_last_second() -> None:
    fields = json.loads(_core.command_schema("emulate"))["report"]["properties"]
    then = Record({**dict.fromkeys(fields, 0), "lateness_ns": Record(p99=0)})
    more = {"elapsed_ns": 2_000_000_000, "requests": 250, "bytes": 3_000_000, "busy_ns": 1_500_000_000}
    now = Record({**then, **more, "outstanding": 3, "lateness_ns": Record(p99=60_000)})
    line = "125 requests/s, 1.5 MB/s, 75% busy, 3 outstanding; 250 in all, 99 % of them at most 60.000 us late"
    assert command.status(then, now) == line

"""`headstart tune` and its Python side: what it shows, writes and restores, and what it refuses."""

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from headstart import HeadstartError, _core, advice, model, tuning
from headstart.cli import tune as command
from headstart.live import core
from headstart.live.core import Record
from headstart_lab.livestudy.platform import read_only_sysfs
from tests import machines
from tests.conftest import COMMAND, Run
from tests.machines import wait_until
from tests.test_bad_input import one_line

AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
BLOCK = 65_536
CAPACITY = 36_400_000_000
"""The capacity of the drive whose profile is used; the images are entirely holes."""


def why_not() -> str | None:
    """Why no loop device is available here, if none is."""
    if os.geteuid() != 0:
        return "not root"
    if shutil.which("losetup") is None:
        return "no losetup"
    if read_only_sysfs():
        return "/sys is read-only: no device can be set"
    found = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
    return None if found.returncode == 0 else f"no loop device: {found.stderr.strip()}"


def nobody_may() -> bool:
    """Whether an unprivileged user can run the command, which may lie where others may not read."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    words = [*AS_NOBODY, str(COMMAND), "--version"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


REASON = why_not()
loops = pytest.mark.skipif(REASON is not None, reason=f"SKIPPED, tests of real devices: {REASON}")


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """A machine in a folder, with a disk whose number is that of the file system of the folder itself."""
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    block = tmp_path / "sys" / "block" / "sdz"
    backing = tmp_path / "sys" / "class" / "bdi" / number
    for folder in (block / "mq", backing, tmp_path / "sys" / "dev" / "block", tmp_path / "proc/sys/kernel/random"):
        folder.mkdir(parents=True)
    (block / "dev").write_text(f"{number}\n")
    (block / "size").write_text("71093750\n")
    (backing / "read_ahead_kb").write_text("128\n")
    (tmp_path / "sys" / "dev" / "block" / number).symlink_to(block)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("this-boot\n")

    def fields(**more: str) -> dict[str, str]:
        parts = ("sys", "proc", "tracing", "run")
        where = {part: str(tmp_path / part) for part in parts}
        return {"device": str(tmp_path), "state": str(tmp_path / "tune.json"), **where, **more}

    return fields


def ask(action: str, fields: dict[str, str]) -> Record:
    return core.command("tune", {action.replace("-", "_"): True, **fields})


def status(**fields: Any) -> Record:
    """Return a status of a watch."""
    names = json.loads(_core.command_schema("tune-watch"))["report"]["properties"]
    return Record({**dict.fromkeys(names, 0), **fields})


def test_a_path_is_tuned_by_the_disk_below_it(machine: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    fields = machine(profile="ibm-36gb-10k")
    shown = ask("dry-run", fields)
    (bus,) = shown.notes
    assert (shown.device.name, shown.device.kind, shown.now_kb) == ("sdz", "disk", 128) and "bus of the host" in bus
    assert shown.proposed is not None
    assert shown.proposed.seek_ns is not None
    assert 392e3 < shown.proposed.bytes < 394e3
    assert not (tmp_path / "tune.json").exists()
    applied = ask("apply", fields)
    assert (applied.found_kb, applied.now_kb, applied.old_kb) == (128, shown.proposed.kb, 128)
    stored = json.loads((tmp_path / "tune.json").read_text())
    assert (stored["schema"], [entry["old_kb"] for entry in stored["entries"]]) == (1, [128])
    restored = ask("restore", machine())
    assert (restored.found_kb, restored.now_kb, restored.proposed) == (shown.proposed.kb, 128, None)


def test_advice_compares_with_what_the_machine_has(
    machine: Callable[..., dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`advise --on`: the read-ahead of the disk below a path is run, and its depth need not be set again."""
    fields = machine()
    monkeypatch.setattr(tuning, "show", lambda device: ask("dry-run", {**fields, "device": str(device)}))
    (backing,) = (tmp_path / "sys/class/bdi").iterdir()
    trace = tmp_path / "stream.csv"
    trace.write_text("file,offset,size\n" + "\n".join(f"1,{at << 17},131072" for at in range(200)))

    def advised(now_kb: int) -> advice.DeviceAdvice:
        (backing / "read_ahead_kb").write_text(f"{now_kb}\n")
        (each,) = advice.advise(trace, device="object-store", on=tmp_path, seconds=600).devices
        assert each.now is not None and each.now.depth_bytes == now_kb << 10
        return each

    shallow = advised(192)
    assert shallow.now is not None and shallow.now.elapsed_ns > shallow.linux.elapsed_ns
    assert any("read_ahead_kb" in line for line in shallow.commands)
    depth = shallow.linux.depth_bytes
    assert depth is not None
    same = advised(depth >> 10)
    assert same.now == same.linux == shallow.linux
    assert not any("read_ahead_kb" in line for line in same.commands)


def test_a_report_for_people(machine: Callable[..., dict[str, str]]) -> None:
    rows = command.rows(ask("dry-run", machine(profile="ibm-36gb-10k")))
    assert list(rows) == ["device", "now", "proposed", "why"]
    assert rows["now"] == "128 KiB"
    assert rows["why"].startswith("ibm-36gb-10k: (7.53 ms mean seek + 3.00 ms half a turn) x 37.3 MB/s = 39")
    rows = command.rows(ask("apply", machine(depth="400KiB")))
    assert (rows["now"], rows["restore"]) == ("400 KiB; it was 128", "128 KiB")
    assert rows["why"].startswith("409.6 kB as given: ")


def test_a_look_without_a_profile_shows_what_there_is(machine: Callable[..., dict[str, str]]) -> None:
    shown = ask("dry-run", machine())
    assert (shown.found_kb, shown.now_kb, shown.proposed) == (128, 128, None)
    assert any(note.startswith("nothing is proposed: --profile") for note in shown.notes)
    assert list(command.rows(shown)) == ["device", "now"]


@pytest.mark.parametrize("name", ["nvme", "nvme-gen5", "sata-ssd"])
def test_a_shipped_flash_profile_is_as_good_as_a_measured_one(
    machine: Callable[..., dict[str, str]], name: str
) -> None:
    proposed = ask("dry-run", machine(profile=name)).proposed
    assert proposed is not None and proposed.saturating_bytes is not None and proposed.seek_ns is None
    assert proposed.kb << 10 == proposed.saturating_bytes

    assert proposed.bytes_per_second is not None and proposed.profile_bytes is not None
    # A power of two of pages, and its transfers in a second match what the data sheet says of one stream.
    assert proposed.saturating_bytes in [4096 << step for step in range(13)]
    assert 1e8 < proposed.bytes_per_second < 2e10


def test_the_bus_of_the_host_that_measured_a_drive_is_named(machine: Callable[..., dict[str, str]]) -> None:
    """DiskSim's drives were measured over 5 MB/s; the media of a Cheetah 9LP give up to 21.7 MB/s."""
    for name, held in (("seagate-cheetah-9lp", True), ("ibm-36gb-10k", True), ("seagate-146gb-10k", False)):
        notes = [note for note in ask("dry-run", machine(profile=name)).notes if "bus of the host" in note]
        assert bool(notes) == held, name
        assert bool([note for note in model.competitive(name).notes if "bus of the host" in note]) == held
    (note,) = model.competitive("seagate-cheetah-9lp").notes
    factor = re.search(r"up to ([\d.]+) times as fast", note)
    # 254 sectors in a turn of 5.97 ms, less the time of the skews, against one in 0.105 ms.
    assert factor is not None and 3.0 < float(factor[1]) < 254 * 0.105 / 5.973


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            (".", "--apply"),
            "profile: is missing: how deep is not known; allowed: --profile with a name of `headstart list",
        ),
        (
            (".", "--profile", "object-store"),
            'profile (--profile): nothing moves in "object-store": there is no switch',
        ),
        ((".", "--profile", "ibm-36gb"), 'model: unknown model "ibm-36gb"'),
        (
            (".", "--profile", "uniform", "--depth", "1MiB"),
            "depth (--depth): there is a profile too; allowed: one of the two",
        ),
        ((".", "--depth", "1MiB", "--set", "rpm=1"), "set: a depth has no keys; allowed: --set with --profile"),
        ((".", "--depth", "400"), 'depth (--depth): "400" has no unit; allowed: a size with a unit'),
        ((".", "--depth", "1GiB"), "depth (--depth): a depth of 1GiB; allowed: 1B to 16MiB; with --force up to 1GiB"),
        (
            (".", "--depth", "2GiB", "--force"),
            "depth (--depth): a depth of 2GiB; allowed: 1B to 16MiB; with --force up to 1GiB",
        ),
        (
            (".", "--watch"),
            "profile: is missing: to follow an arm takes its seek curve; allowed: --profile with a name of",
        ),
        ((".", "--watch", "--depth", "1MiB"), "--depth: cannot be combined with --watch"),
        ((".", "--apply", "--for", "1s"), "--for: cannot be combined with --apply"),
        (
            (".", "--watch", "--for", "0s", "--profile", "nvme"),
            'profile (--profile): nothing moves in "nvme": there is no switch',
        ),
        (
            (".", "--watch", "--profile", "hp97560", "--for", "1"),
            'duration (--for): "1" has no unit; allowed: a time with',
        ),
        (
            (".", "--watch", "--for", "0s", "--profile", "hp97560", "--openmetrics", "missing/x"),
            "missing/x: cannot be written",
        ),
        (("missing", "--depth", "1MiB"), "missing: No such file or directory; allowed: a disk, a partition or a loop"),
        (("/dev/null", "--depth", "1MiB"), "/dev/null: is a character device; allowed: a disk, a partition or"),
        (("/proc", "--depth", "1MiB"), "/proc: has no read-ahead: there is no backing device 0:"),
        (
            (".", "--apply", "--restore"),
            "--restore: cannot be combined with --apply; allowed: one of --dry-run, --apply",
        ),
        ((".", "--restore", "--depth", "1MiB"), "--depth: cannot be combined with --restore"),
        ((".", "--depth", "1MiB", "--json", "missing/x"), "missing/x: cannot be written"),
    ],
)
def test_mistakes_are_named(run: Run, tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    done = run("tune", *words, "--state", tmp_path / "tune.json")
    one_line(done)
    assert done.stderr.startswith(f"headstart: {problem}"), done.stderr
    assert not (tmp_path / "tune.json").exists()


def test_a_look_at_the_real_machine_needs_no_rights(run: Run, tmp_path: Path) -> None:
    """Whichever device is below the root folder, if it is one with a read-ahead."""
    device = Path("/").stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    if not Path("/sys/dev/block", number).exists():
        pytest.skip(f"SKIPPED: the root folder is on no block device: {number}")
    words = ("tune", "/", "--profile", "ibm-36gb-10k", "--state", tmp_path / "tune.json", "--json", "-")
    done = run(*words)
    assert done.returncode == 0, done.stderr
    report = Record.from_json(done.stdout)
    file = Path("/sys/class/bdi", report.device.number, "read_ahead_kb")
    assert report.now_kb == int(file.read_text()) == report.found_kb


class Loop:
    """A loop device over a file of ours, which is only read: the last free one, since others take the first.

    The file lies in memory if possible: on a disk, attaching and detaching also set the read-ahead.
    """

    def __init__(self, image: Path | None = None) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(prefix="headstart-tune-", dir=memory if memory.is_dir() else None))
        # Open to all users, unlike the tests' own folders.
        self.folder.chmod(0o755)
        self.state = self.folder / "tune.json"
        self.image = image or self.folder / "disk.img"
        if image is None:
            with self.image.open("wb") as file:
                file.truncate(CAPACITY)
        for device in sorted(Path("/dev").glob("loop[0-9]*"), reverse=True):
            self.file = Path("/sys/block", device.name, "queue", "read_ahead_kb")
            self.found = self.file.read_text() if self.file.exists() else "128"
            words = ["losetup", "--read-only", "--direct-io=on", str(device), str(self.image)]
            if subprocess.run(words, capture_output=True, check=False).returncode == 0:
                self.path = str(device)
                try:
                    self.file.write_text("128")
                except OSError as error:
                    self.close()
                    pytest.skip(f"SKIPPED: {self.file} cannot be set: {error.strerror}")
                return
        shutil.rmtree(self.folder)
        pytest.skip("SKIPPED: no loop device is free")

    def kb(self) -> int:
        return int(self.file.read_text())

    def close(self) -> None:
        subprocess.run(["losetup", "--detach", self.path], capture_output=True, check=False)
        # The read-ahead survives that.
        with contextlib.suppress(OSError):
            self.file.write_text(self.found)
        shutil.rmtree(self.folder)


@pytest.fixture
def loop() -> Iterator[Loop]:
    device = Loop()
    try:
        yield device
    finally:
        device.close()


def tune(loop: Loop, *words: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    line = [*before, str(COMMAND), "tune", loop.path, *words, "--state", str(loop.state)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def reported(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@loops
def test_a_device_that_cannot_be_set_is_detached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nine loop devices were once left attached where sysfs was read-only."""
    image, write = machines.sparse(tmp_path / "image", CAPACITY), Path.write_text

    def refused(path: Path, *words: Any, **more: Any) -> int:
        if path.name == "read_ahead_kb":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return write(path, *words, **more)

    monkeypatch.setattr(Path, "write_text", refused)
    with pytest.raises(pytest.skip.Exception, match=r"SKIPPED: /sys/block/loop\d+/queue/read_ahead_kb cannot be set"):
        Loop(image)
    attached = subprocess.run(["losetup", "--associated", str(image)], capture_output=True, text=True, check=True)
    assert attached.stdout == ""


@loops
def test_a_loop_device_is_set_and_set_back(loop: Loop) -> None:
    shown = reported(tune(loop, "--profile", "ibm-36gb-10k", "--json", "-"))
    (bus,) = shown["notes"]
    assert (shown["now_kb"], loop.kb()) == (128, 128) and "bus of the host" in bus
    assert shown["device"]["identity"] == str(loop.image)
    applied = reported(tune(loop, "--profile", "ibm-36gb-10k", "--apply", "--json", "-"))
    assert applied["now_kb"] == loop.kb() == shown["proposed"]["kb"]
    assert reported(tune(loop, "--depth", "1MiB", "--apply", "--json", "-"))["old_kb"] == 128
    assert loop.kb() == 1024
    restored = tune(loop, "--restore")
    assert (restored.returncode, loop.kb()) == (0, 128)
    assert "128 KiB; it was 1,024" in restored.stdout
    assert "nothing has been applied to it" in tune(loop, "--restore").stdout


@loops
@pytest.mark.skipif(not nobody_may(), reason="SKIPPED: without root the command itself cannot be run")
def test_without_root_it_says_so_and_changes_nothing(loop: Loop) -> None:
    for words in (("--depth", "1MiB", "--apply"), ("--restore",)):
        done = tune(loop, *words, before=AS_NOBODY)
        one_line(done, "read_ahead_kb: cannot be written: Permission denied; allowed: root")
        assert (loop.kb(), loop.state.exists()) == (128, False)
    assert reported(tune(loop, "--depth", "1MiB", "--json", "-", before=AS_NOBODY))["now_kb"] == 128


@loops
@pytest.mark.skipif(shutil.which("unshare") is None, reason="SKIPPED: no unshare")
def test_where_sysfs_is_read_only_it_says_so_and_changes_nothing(loop: Loop) -> None:
    remount = ["unshare", "--mount", "sh", "-c", 'mount -o remount,bind,ro /sys && exec "$@"', "sh"]
    if subprocess.run([*remount, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("SKIPPED: no mount namespace of one's own")
    for words in (("--depth", "1MiB", "--apply"), ("--restore",)):
        done = tune(loop, *words, before=remount)
        one_line(done, "read_ahead_kb: cannot be written: Read-only file system; allowed: a sysfs that")
        assert (loop.kb(), loop.state.exists()) == (128, False)


@loops
def test_a_number_that_somebody_else_has_set_stays(loop: Loop) -> None:
    assert tune(loop, "--depth", "1MiB", "--apply").returncode == 0
    loop.file.write_text("512")
    one_line(tune(loop, "--restore"), "is 512, neither ours (1024) nor what was found (128)", "allowed: --force")
    assert loop.kb() == 512
    assert (tune(loop, "--restore", "--force").returncode, loop.kb()) == (0, 128)


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: not root")
@machines.mounts
def test_a_file_system_without_a_device_has_a_read_ahead_of_its_own(tmp_path: Path) -> None:
    """FUSE: the mount of an emulated disk."""
    (tmp_path / "image").write_bytes(bytes(BLOCK))
    (tmp_path / "mount").mkdir()
    state = tmp_path / "tune.json"
    with machines.emulated(tmp_path / "image", "uniform", "--set", "fetch_time=1ms") as (_, mount):
        disk = mount / "disk.img"
        found = tuning.show(disk, depth="1MiB", state=state)
        assert (found.device.kind, found.device.name, found.device.size_bytes) == ("file-system", None, None)
        assert (found.device.identity or "").startswith("fuse")
        (faults,) = found.notes
        assert faults.startswith("1024 KiB are read around each random fault of a mapped file")
        _, no_arm = tuning.show(disk, profile="ibm-36gb-10k", state=state).notes
        assert no_arm.startswith(
            f"{found.device.number} is fuse headstart-emulate, a file system without a block device"
        )
        applied = tuning.apply(disk, depth="1MiB", state=state)
        file = Path("/sys/class/bdi", found.device.number, "read_ahead_kb")
        assert (applied.found_kb, applied.now_kb, int(file.read_text())) == (found.now_kb, 1024, 1024)
        with pytest.raises(HeadstartError, match="has no requests of its own that could be followed; allowed: --apply"):
            tuning.watch(disk, profile="ibm-36gb-10k", state=state)
        assert tuning.restore(mount, state=state).now_kb == found.now_kb == int(file.read_text())


def test_python_refuses_as_the_command_does(machine: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    (tmp_path / "tune.json").write_text("{")
    for action in ("dry-run", "apply", "restore"):
        with pytest.raises(HeadstartError, match=r"tune.json: is damaged: .*; allowed: "):
            ask(action, machine() if action == "restore" else machine(depth="1MiB"))
    assert (tmp_path / "tune.json").read_text() == "{"
    with pytest.raises(HeadstartError, match=r"\(did you mean \"depth\"\?\)"):
        ask("dry-run", machine(deptn="1MiB"))


def give(pipe: Path, text: str, reader: subprocess.Popen[bytes]) -> None:
    """Write into a pipe once another program reads it, which must not have ended before."""

    def written() -> bool:
        assert reader.poll() is None
        try:
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO  # nobody reads it yet
            return False
        os.write(descriptor, text.encode())
        os.close(descriptor)
        return True

    wait_until(written)


def test_one_that_is_killed_before_it_writes_the_number_loses_nothing(
    machine: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    """The value is a pipe: a writer waits for a reader, with the state file written."""
    (file,) = tmp_path.glob("sys/class/bdi/*/read_ahead_kb")
    file.unlink()
    os.mkfifo(file)
    program = "import sys; from headstart import _core; _core.command('tune', sys.argv[1])"
    words = [sys.executable, "-c", program, json.dumps({"apply": True, **machine(depth="1MiB")})]
    with subprocess.Popen(words) as process:
        try:
            give(file, "128\n", process)
            wait_until((tmp_path / "tune.json").exists)
            assert process.poll() is None
        finally:
            process.kill()
    file.unlink()
    file.write_text("128\n")
    shown = ask("dry-run", machine(depth="1MiB"))
    assert (shown.old_kb, shown.now_kb) == (128, 128)
    assert (ask("restore", machine()).notes, file.read_text()) == (["it was 128 already"], "128\n")
    assert json.loads((tmp_path / "tune.json").read_text())["entries"] == []


def test_the_status_line_is_of_the_last_second() -> None:
    then = status()
    more = {"elapsed_ns": 2_000_000_000, "requests": 250, "switches": 100, "seek_ns": 7_530_000, "now_kb": 384}
    now = status(**more, bytes_per_second=37.3e6, bytes=392_769.0)
    line = "125 requests/s, 40% of them switches; seeks 7.53 ms, 37.3 MB/s: 392.8 kB; read-ahead 384 KiB"
    assert command.status_line(then, now) == line


def test_each_note_is_said_once_as_soon_as_there_is_one(
    machine: Callable[..., dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    device = ask("dry-run", machine(depth="1MiB")).device
    watcher = command.Watcher()
    said = []
    for notes in (["one"], ["one"], ["one", "two"]):
        watcher.look(status(device=device, notes=notes))
        said.append([line for line in capsys.readouterr().err.splitlines() if "followed" not in line])
    watcher.say(status(notes=["one", "two", "three"]))
    said.append(capsys.readouterr().err.splitlines())
    assert said == [["one"], [], ["two"], ["three"]]


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        watcher = command.Watcher()
        with watcher.signals():
            signal.raise_signal(signal.SIGHUP)
            assert not watcher.stopped
            signal.raise_signal(signal.SIGTERM)
            assert watcher.stopped
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)

"""What the study changes on the machine, as contexts that undo it: an emulated disk, a loop device, a mount.

Each undoes its changes completely on every exit, including interrupts, even if further signals arrive. Only the
loop device that the study attached has its read-ahead changed, and only the caches of the file system that it unmounts
are dropped.
"""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from headstart._core import HeadstartError
from headstart.live.core import Record
from headstart_lab.livestudy.image import missing_tools

PATIENCE_S = 30.0
TOOLS = ("losetup", "mount", "umount", "unshare")
BLOCK_DEVICES = Path("/sys/block")
ATTEMPTS = 10
"""Maximum attempts to attach a free loop device, which another process may take first."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a study."""


def why_not() -> str | None:
    """Return why the study cannot run here, if it cannot."""
    if sys.platform != "linux":
        return "not Linux"
    if os.geteuid() != 0:
        return "not root"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse does not exist or is not accessible"
    if not Path("/dev/loop-control").exists():
        return "/dev/loop-control does not exist: no loop devices"
    if read_only_sysfs():
        return f"{BLOCK_DEVICES} is read-only: no device can be set"
    if "ext4" not in Path("/proc/filesystems").read_text(encoding="ascii"):
        return "the kernel has no ext4"
    missing = [*missing_tools(), *(tool for tool in TOOLS if shutil.which(tool) is None)]
    return f"not installed: {', '.join(missing)}" if missing else None


def read_only_sysfs() -> bool:
    """Return whether device queues cannot be changed here, as in many containers."""
    return not os.access(BLOCK_DEVICES, os.W_OK)


def run(*words: str) -> str:
    """Run a short program that Ctrl-C does not reach, and return its output.

    A signal that ends the study takes effect after the program has ended: a `mount` that is killed may still mount
    after this process has checked for it.

    Raises:
        HeadstartError: The program failed.
    """
    with undisturbed():
        done = subprocess.run(words, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode != 0:
        raise HeadstartError(f"{' '.join(words)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout.strip()


def wait_for(is_so: Callable[[], bool]) -> bool:
    """Wait until a condition holds, and return whether it did in time."""
    give_up = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True


@contextmanager
def unwinding_on_signals() -> Iterator[None]:
    """Let the signals that end a study undo everything like Ctrl-C, which also works in the background.

    The first signal does; further ones change nothing until the block is left. A process that ignores SIGHUP (`nohup`)
    continues to ignore it.
    """

    def unwind(number: int, frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    heard = [each for each in SIGNALS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, unwind) for each in heard}
    try:
        yield
    finally:
        for each, handler in before.items():
            # `None` if the handler was not set by Python.
            signal.signal(each, handler or signal.SIG_DFL)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let cleanup finish: a signal that ends the study takes effect when the block is left."""
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, frame: came.append(number)) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def background(*words: str, ready: Callable[[], bool], within: Sequence[str] = ()) -> Iterator[None]:
    """Run a command of headstart until the block is left, which begins when it is `ready`; SIGTERM ends it.

    `within`: a program and its arguments that run the command.

    Raises:
        HeadstartError: The command does not become ready.
    """
    line = [*within, sys.executable, "-m", "headstart", *words]
    with subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            up = wait_for(lambda: ready() or process.poll() is not None)
            if not up or process.poll() is not None:
                process.terminate()
                said = process.communicate(timeout=PATIENCE_S)[1].strip()
                raise HeadstartError(f"{' '.join(words)}: {said or 'does not come up'}")
            yield
        finally:
            with undisturbed():
                process.terminate()
                try:
                    process.communicate(timeout=PATIENCE_S)
                finally:
                    process.kill()


@contextmanager
def emulated(profile: str, image: Path, mount: Path) -> Iterator[Path]:
    """`headstart emulate` on `image`; gives the file that is as slow as the drive."""
    stats = mount / "stats"
    try:
        with background("emulate", profile, str(image), str(mount), ready=stats.exists):
            yield mount / "disk.img"
    finally:
        with undisturbed():
            if is_mounted(mount):
                # It has died without unmounting.
                run("umount", "--lazy", str(mount))


def statistics(mount: Path) -> Record:
    """Return the statistics of the emulated disk so far."""
    return Record.from_json((mount / "stats").read_text(encoding="utf-8"))


@contextmanager
def loop_device(file: Path) -> Iterator[Path]:
    """A read-only loop device over `file` that bypasses the page cache of `file`, without a scheduler of its own.

    The kernel sets a loop device's read-ahead when it is attached, and possibly again when it is detached, which
    outlasts the device: the previous value is restored.
    """
    found: dict[str, str] = {}
    try:
        device = attach(file, found)
        if (BLOCK_DEVICES / device.name / "loop" / "dio").read_text(encoding="ascii").strip() != "1":
            raise HeadstartError(f"{device}: the kernel does not read {file} directly")
        with setting(device, "scheduler", "none"):
            yield device
    finally:
        with undisturbed():
            # By its file: an interrupt may have come before the name was known.
            for line in run("losetup", "--associated", str(file)).splitlines():
                detach(Path(line.split(":")[0]), found)


def attach(file: Path, found: dict[str, str]) -> Path:
    """Attach a free loop device to `file`, and store its previous read-ahead in `found`, by its name.

    Raises:
        HeadstartError: There is none.
    """
    for left in reversed(range(ATTEMPTS)):
        device = Path(run("losetup", "--find"))
        found[device.name] = queue(device, "read_ahead_kb")
        try:
            run("losetup", "--read-only", "--direct-io=on", str(device), str(file))
        except HeadstartError:
            if left == 0:
                raise
        else:
            break
    return device


def detach(device: Path, found: dict[str, str]) -> None:
    """Detach a loop device and restore its read-ahead.

    Raises:
        HeadstartError: Another process keeps it open.
    """
    run("losetup", "--detach", str(device))
    # It is removed when the last process with an open descriptor closes it.
    if not wait_for(lambda: not (BLOCK_DEVICES / device.name / "loop").exists()):
        raise HeadstartError(f"{device}: cannot be detached: another process has it open")
    # Detach the next device even if this one cannot be set.
    with suppress(OSError):
        (BLOCK_DEVICES / device.name / "queue" / "read_ahead_kb").write_text(found[device.name], encoding="ascii")


@contextmanager
def setting(device: Path, name: str, value: str) -> Iterator[None]:
    """`value` in a file of the device's queue in sysfs; restores the old value, since it outlasts a loop device."""
    path = BLOCK_DEVICES / device.name / "queue" / name
    found = queue(device, name)
    # A choice lists all names, with the current one in brackets.
    before = found.split("[")[1].split("]")[0] if "[" in found else found
    try:
        path.write_text(value, encoding="ascii")
        yield
    finally:
        with undisturbed():
            path.write_text(before, encoding="ascii")


def queue(device: Path, name: str) -> str:
    """Return the content of a file of the device's queue in sysfs."""
    return (BLOCK_DEVICES / device.name / "queue" / name).read_text(encoding="ascii").strip()


def read_ahead_kb(device: Path) -> int:
    """Return the kernel's read-ahead on the device, which applies to files opened from now on."""
    return int(queue(device, "read_ahead_kb"))


@contextmanager
def mounted(device: Path, folder: Path, kind: str = "ext4", options: str = "ro") -> Iterator[Path]:
    """The file system of `device` at `folder`; unmounting it drops its caches.

    A process that has just ended, or one that was started elsewhere with a copy of all mounts, may keep an earlier
    mount of the device, or this one, for a moment: both steps wait for it.
    """
    words = ("mount", "-t", kind, "-o", f"{options},noatime", str(device), str(folder))
    try:
        if not wait_for(functools.partial(succeeds_unless_busy, *words)):
            run(*words)
        yield folder
    finally:
        with undisturbed():
            unmount(folder)


def unmount(folder: Path) -> None:
    """Unmount `folder` if anything is mounted there.

    Raises:
        HeadstartError: Another process uses it.
    """
    if not wait_for(lambda: not is_mounted(folder) or succeeds_unless_busy("umount", str(folder))):
        raise HeadstartError(f"{folder}: cannot be unmounted: another process uses it")


def succeeds_unless_busy(*words: str) -> bool:
    """Run a program like `run`, and return whether it succeeded, or failed since something is in use."""
    try:
        run(*words)
    except HeadstartError as error:
        if "busy" in str(error):
            return False
        raise
    return True


def is_mounted(folder: Path) -> bool:
    """Return whether anything is mounted at `folder`."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return str(folder) in (line.split()[1] for line in lines)


def with_traces() -> Sequence[str]:
    """Return the prefix that runs a program with a tracefs: empty if there is one, else it mounts one privately."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    if any(line.split()[2] == "tracefs" for line in lines):
        return []
    return ["unshare", "--mount", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"', "sh"]


@contextmanager
def watched(device: Path, profile: str, state: Path) -> Iterator[None]:
    """`headstart tune --watch` on the device: sets the read-ahead, and restores it at the end."""
    before = read_ahead_kb(device)

    def follows() -> bool:
        """Whether the current value was set by the watch, which may equal the previous one."""
        if not state.exists():
            return False
        entries = json.loads(state.read_text(encoding="utf-8"))["entries"]
        return any(entry["ours_kb"][-1:] == [read_ahead_kb(device)] for entry in entries)

    words = ("tune", str(device), "--profile", profile, "--watch", "--state", str(state))
    with background(*words, ready=follows, within=with_traces()):
        yield
    if read_ahead_kb(device) != before:
        raise HeadstartError(f"tune --watch: left read_ahead_kb at {read_ahead_kb(device)}, found {before}")


def why_no_watch(device: Path, profile: str, state: Path) -> str | None:
    """Return why `headstart tune --watch` cannot be used on the device, if it cannot."""
    try:
        with watched(device, profile, state):
            return None
    except HeadstartError as error:
        return str(error)


def machine() -> str:
    """Return a description of this machine, as far as it affects the figures; no names."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    kernel = ".".join(os.uname().release.split("-")[0].split(".")[:2])
    return f"Linux {kernel} on {os.uname().machine}, {os.cpu_count()} processors ({models[0] if models else 'unknown'})"

"""The systemd units in examples/: their permissions, and that the command works with no more than these.

Test machines rarely have systemd: the restrictions are applied by hand, as far as a process can have them without it.
Not covered: PrivateTmp, RemoveIPC, KeyringMode, DevicePolicy and IPAddressDeny, none of which the command uses.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import COMMAND, ROOT
from tests.test_tune import Loop, loop, loops
from tests.test_tune_watch import watches

__all__ = ["loop"]

UNITS = sorted((ROOT / "examples").glob("*.service"))
LEAST_EXPOSURE = 3.0
has_analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="SKIPPED: no systemd-analyze")
has_setpriv = pytest.mark.skipif(
    shutil.which("setpriv") is None or shutil.which("unshare") is None, reason="SKIPPED: no setpriv, or no unshare"
)
RUN = Path("/run/headstart")

SANDBOX = """
set -e
state=$1; shift
mount --make-rprivate /
mkdir -p -m 0700 /run/headstart
test -d /sys/kernel/tracing/events || mount -t tracefs tracefs /sys/kernel/tracing
for kept in "$state" /run/headstart /sys/devices/virtual/bdi; do mount --bind "$kept" "$kept"; done
mounts=$(cut -d' ' -f5 /proc/self/mountinfo)
for mounted in $mounts; do
    case $mounted in
        /proc | /dev | /dev/* | "$state" | /run/headstart | /sys/devices/virtual/bdi | /sys/kernel/tracing) ;;
        *) mount -o remount,bind,ro "$mounted" 2> /dev/null || true ;;
    esac
done
mount -o remount,bind,ro /proc
umask 0077
exec setpriv --bounding-set=-all,+dac_read_search --inh-caps=-all --no-new-privs "$@"
"""
"""ProtectSystem, ReadOnlyPaths and ReadWritePaths; UMask, CapabilityBoundingSet, NoNewPrivileges. The namespaces:"""
UNSHARE = ["unshare", "--mount", "--net", "--ipc", "--uts", "sh", "-c", SANDBOX, "sh"]
NO_NEW_CODE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(65, 1, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""PR_SET_MDWE of Linux 6.3, like MemoryDenyWriteExecute; older kernels do not know it, and go on."""


def settings(unit: Path) -> dict[str, str]:
    lines = [line.split("=", 1) for line in unit.read_text(encoding="utf-8").splitlines() if re.match(r"\w+=", line)]
    return {line[0]: line[1] for line in lines}


def sandboxed(loop: Loop, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    program = [str(COMMAND.with_name("python")), "-c", NO_NEW_CODE, str(COMMAND)]
    line = [*UNSHARE, str(loop.folder), *before, *program, "tune", loop.path, "--state", str(loop.state), *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@has_analyze
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_their_exposure_is_low(unit: Path) -> None:
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said.stdout)
    assert found is not None, said
    assert float(found[1]) < LEAST_EXPOSURE, said.stdout


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_what_they_keep_is_for_root_alone(unit: Path) -> None:
    kept = settings(unit)
    assert (kept["StateDirectoryMode"], kept["RuntimeDirectoryMode"], kept["UMask"]) == ("0700", "0700", "0077")
    assert kept["RuntimeDirectoryPreserve"] == "yes"
    # The sandbox above gives the same permissions as the units.
    assert kept["CapabilityBoundingSet"] == "CAP_DAC_READ_SEARCH"
    assert kept["ReadWritePaths"].split() in (
        ["/sys/devices/virtual/bdi"],
        ["/sys/devices/virtual/bdi", "-/sys/kernel/tracing"],
    )
    assert ("watch" in unit.name) == ("Restart" in kept)


@loops
@watches
@has_setpriv
def test_the_command_works_under_their_restrictions(loop: Loop) -> None:
    profile = ("--profile", "ibm-36gb-10k")
    applied = sandboxed(loop, *profile, "--apply")
    assert (applied.returncode, applied.stderr, loop.kb()) == (0, "", 384)
    restored = sandboxed(loop, "--restore")
    assert (restored.returncode, restored.stderr, loop.kb()) == (0, "", 128)
    watched = sandboxed(loop, *profile, "--watch", "--for", "1s", "--json", "-")
    assert watched.returncode == 0, watched.stderr
    status = json.loads(watched.stdout)
    assert (status["highest_kb"], status["ended"], loop.kb()) == (384, "time", 128)
    # Check the sandbox: nothing else can be written.
    refused = sandboxed(loop, *profile, "--json", str(Path.home() / "report.json"))
    assert refused.returncode == 2, refused


@loops
@watches
@has_setpriv
def test_it_works_from_a_home_that_is_closed_to_others(loop: Loop, tmp_path: Path) -> None:
    """As for a virtual environment under a user's home directory: the folder belongs to the user, with mode 0700."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "drive.toml").write_text(next(ROOT.glob("crates/**/ibm-36gb-10k.toml")).read_text(encoding="utf-8"))
    os.chown(home, 65534, 65534)
    try:
        applied = sandboxed(loop, "--profile", str(home / "drive.toml"), "--apply")
        assert (applied.returncode, applied.stderr, loop.kb()) == (0, "", 384)
    finally:
        os.chown(home, 0, 0)
        sandboxed(loop, "--restore")
    assert loop.kb() == 128


@loops
@watches
@has_analyze
@has_setpriv
@pytest.mark.skipif(shutil.which("strace") is None, reason="SKIPPED: no strace")
def test_the_system_calls_are_those_that_they_allow(loop: Loop, tmp_path: Path) -> None:
    allowed = calls("@system-service") - calls("@privileged") - calls("@resources")
    traced = loop.folder / "calls"
    line = ["strace", "-f", "-qq", "-o", str(traced), str(COMMAND), "tune", loop.path, "--state", str(loop.state)]
    for words in (("--profile", "ibm-36gb-10k", "--apply"), ("--restore",)):
        subprocess.run([*line, *words], capture_output=True, check=True, cwd=tmp_path)
        found = set(re.findall(r"^\d+ +(\w+)\(", traced.read_text(), flags=re.MULTILINE))
        # systemd allows it to start the command; the calls after that count. If no tracefs is mounted, it tries to
        # mount one of
        # its own, and does without if that is refused, as the units do (EPERM).
        assert found - allowed - {"execve", "fsopen", "fsconfig", "fsmount"} == set()


def calls(group: str) -> set[str]:
    """The system calls of a group, including those of nested groups."""
    words = ["systemd-analyze", "syscall-filter", "--no-pager", group]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    names = {line.strip() for line in text.splitlines()[1:] if line.strip() and not line.strip().startswith("#")}
    groups = {name for name in names if name.startswith("@")}
    return (names - groups).union(*(calls(name) for name in groups))

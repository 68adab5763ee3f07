"""`headstart compare TRACE` on real traces: each runs, or prints one line with what to type, which then runs."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run

TRACES = ROOT.parent / "shared" / "traces"
FOLDERS = ("third-party/blocks", "third-party/buffer-cache", "programs")
OF_OBJECTS = ("buffer-cache", ".oracleGeneral.bin")
"""Folders and endings of traces whose numbers are not addresses, except those of P3 and P6."""


def traces() -> list[Path]:
    """Return the available traces, without their file tables."""
    found = (path for folder in FOLDERS for path in (TRACES / folder).glob("*"))
    return sorted(path for path in found if ".files." not in path.name)


@pytest.mark.parametrize("path", traces(), ids=lambda path: path.name)
def test_the_beginning_of_each_runs(run: Run, path: Path) -> None:
    has_addresses = not any(each in str(path) for each in OF_OBJECTS) or path.name.startswith(("P3", "P6"))
    policy = "linux" if has_addresses else "just-in-time"
    # The first 5,000 requests of the trace of a virtual disk are writes.
    done = run("compare", path, "--policies", f"demand,{policy}", "--limit", "20000")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(rf"^[*+]? +{policy} +[\d,]+\.\d{{3}} ", done.stdout, re.MULTILINE)
    if not has_addresses:
        done = run("compare", path, "--policies", "demand,linux")
        assert (done.returncode, "reads ahead by position" in done.stderr) == (2, True)


def test_the_traces_are_there() -> None:
    if not TRACES.is_dir():
        pytest.skip(f"no real traces: {TRACES}")
    assert {path.parent.name for path in traces()} == {"blocks", "buffer-cache", "programs"}


# These touch more than 1.3 GB, the capacity of an HP 97560. So do eternity8 and eternity9, which take minutes.
@pytest.mark.parametrize("name", ["pcmark.trace.xz", "w106.trace.xz"])
def test_what_does_not_fit_says_what_to_type(run: Run, name: str) -> None:
    path = next(TRACES.glob(f"third-party/*/{name}"), None)
    if path is None:
        pytest.skip(f"no real trace: {name}")
    words = ("compare", path, "--policies", "demand", "--device", "hp97560")
    done = run(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    found = re.search(
        r"the trace touches (\d+) blocks \([\d.]+ GiB\), and 1 hp97560 disk holds (\d+) blocks \(1\.3 GiB\); "
        r"allowed: device\.count \(--disks\) = (\d+) or more, or a larger device, such as "
        r"device\.model \(--device\) = \"(\S+)\"",
        done.stderr,
    )
    assert found, done.stderr
    touched, held, disks, model = (*map(int, found.groups()[:3]), found[4])
    assert (disks - 1) * held < touched <= disks * held
    assert run(*words, "--disks", str(disks)).returncode == 0
    assert run(*words, "--disks", str(disks - 1)).returncode == 2
    assert run(*words[:-1], model).returncode == 0

"""headstart record and hints: on the kernel's own trace where this machine allows it, and what is refused."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import headstart
from headstart import HeadstartError, recording
from tests.conftest import COMMAND, Run
from tests.machines import wait_until

TRACING = Path("/sys/kernel/tracing")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not (TRACING / "events/filemap/mm_filemap_get_pages").is_dir(),
    reason="SKIPPED: recording needs root, Linux 6.12 and a tracefs",
)


def instances() -> set[str]:
    """Return our tracefs instances except the one that `headstart run` keeps."""
    names = {path.name for path in (TRACING / "instances").iterdir() if path.name.startswith("headstart-")}
    return names - {"headstart-run"}


@pytest.fixture
def data() -> Iterator[Path]:
    """A file of 40 pages on a device (the folder of a test may be in memory), not cached."""
    path = Path(__file__).parent / f".record-{os.getpid()}"
    path.write_bytes(bytes(40 * 4096))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    yield path
    path.unlink(missing_ok=True)


@needs_root
def test_a_command_is_recorded_shown_and_used_as_a_trace(run: Run, tmp_path: Path, data: Path) -> None:
    done = run("record", "-o", "x.hints", "--", "sh", "-c", f"cat {data} | wc -c; echo told >&2; exit 3")
    assert (done.returncode, done.stdout.strip()) == (3, str(40 * 4096))
    told, line = done.stderr.splitlines()
    assert told == "told"
    assert line.startswith("headstart: x.hints: ")
    found = recording.show(tmp_path / "x.hints")
    (index,) = (at for at, file in enumerate(found["files"]) if file["path"] == str(data))
    reads = [read for read in found["reads"] if read["file"] == index and read["kind"] == "read"]
    pages = {page for read in reads for page in range(read["start"], read["start"] + read["pages"])}
    assert pages == set(range(40))
    assert not reads[0]["hit"]
    shown = run("hints", "show", "x.hints")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"cat {data}" in shown.stdout
    assert json.loads(run("hints", "show", "x.hints", "--json", "-").stdout) == found
    info = headstart.trace_info(tmp_path / "x.hints", block_size="4KiB")
    assert info["requests"] == found["summary"]["references"]
    compared = run("compare", "x.hints", "--device", "sata-ssd", "--cache", "8MiB", "--policies", "demand,linux")
    assert compared.returncode == 0, compared.stderr
    done = run("trace", "record", "-o", "x.csv", "cat", data)
    assert done.returncode == 0
    assert headstart.trace_info(tmp_path / "x.csv")["carries"]["duration"]
    assert str(data) in (tmp_path / "x.files.csv").read_text(encoding="utf-8")


@needs_root
def test_recordings_are_merged_and_checked(run: Run, tmp_path: Path, data: Path) -> None:
    for name in ("a.hints", "b.hints"):
        assert run("record", "-o", name, "--", "cat", data).returncode == 0
    merged = run("hints", "merge", "-o", "both.hints", "a.hints", "b.hints", "--share", "1")
    assert merged.returncode == 0, merged.stderr
    found = recording.show(tmp_path / "both.hints")
    assert found["about"]["recordings"] == 2
    assert str(data) in {file["path"] for file in found["files"]}
    data.write_bytes(b"another")
    exported = run("hints", "export", "a.hints", "--format", "soci", "--root", str(data.parent))
    assert (exported.returncode, json.loads(exported.stdout)) == (0, [f"/{data.name}"])
    stale = run("hints", "check", "a.hints")
    assert stale.returncode == 1
    assert "another size: " in stale.stdout
    data.unlink()
    assert {"path": str(data), "change": "missing"}.items() <= recording.check(tmp_path / "a.hints")["stale"][
        -1
    ].items()


@needs_root
def test_signals_are_the_commands(tmp_path: Path) -> None:
    script = "trap 'echo got; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    words = [str(COMMAND), "record", "-o", "x.hints", "--", "sh", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == "ready\n"
        recorder.send_signal(signal.SIGTERM)
        assert recorder.stdout.read() == "got\n"
        assert recorder.wait() == 7
    assert (tmp_path / "x.hints").exists()


@needs_root
def test_a_killed_recorder_leaves_the_command_and_nothing_else(run: Run, tmp_path: Path) -> None:
    script = "echo ready; sleep 1; echo done"
    words = [str(COMMAND), "record", "-o", "x.hints", "--", "sh", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == "ready\n"
        recorder.kill()
        assert recorder.stdout.read() == "done\n"
    left = {name for name in instances() if name.startswith(f"headstart-{recorder.pid}-")}
    assert len(left) == 1
    assert run("record", "-o", "y.hints", "true").returncode == 0
    # The kernel removes it later, without anything waiting for it.
    wait_until(lambda: not left & instances())


@needs_root
def test_without_root_it_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    program = (
        "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = [sys.executable, "-c", program, str(COMMAND), "record", "-o", "/tmp/headstart-no-root.hints", "true"]
    done = subprocess.run(words, capture_output=True, text=True, cwd="/tmp", check=False)
    if "PermissionError" in done.stderr:
        pytest.skip("the command may not be run by another user here")
    assert done.returncode == 2
    assert "allowed: root, Linux 6.12 or later" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_is_refused_runs_nothing(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "ran"
    with pytest.raises(headstart.HeadstartError, match=r"there is no tracefs; allowed: root, Linux 6\.12"):
        recording.record(["touch", str(target)], tmp_path / "x.hints", tracing=tmp_path)
    assert run("record", "-o", "no/such/x.hints", "touch", target).returncode == 2
    assert run("record", "-o", "x.hints", "--buffer", "9", "touch", target).returncode == 2
    assert run("record", "touch", target).returncode == 2
    assert not target.exists()
    (tmp_path / "no.hints").write_text("no recording", encoding="utf-8")
    for words in (["show", "no.hints"], ["check", "no.hints"], ["merge", "-o", "y", "no.hints"], ["show", "gone"]):
        done = run("hints", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("form", "root", "text"),
    [
        ("nydus", "/image", "/usr/bin/app\n/etc/app\n"),
        ("nydus", "/", "/image/usr/bin/app\n/lib/a\n/image/etc/app\n"),
        ("estargz", "/image/", '{"path": "usr/bin/app"}\n{"path": "etc/app"}\n'),
        ("soci", "/image/usr", '[\n "/bin/app"\n]\n'),
    ],
)
def test_files_below_a_root_are_a_list_for_images(
    monkeypatch: pytest.MonkeyPatch, form: str, root: str, text: str
) -> None:
    paths = {"/image/usr/bin/app": "regular", "/image/usr": "other", "/lib/a": "regular", "/image/etc/app": "regular"}
    files = [{"path": path, "kind": kind} for path, kind in {**paths, "/dev/sda": "device", "": "regular"}.items()]
    monkeypatch.setattr(recording, "show", lambda _path: {"files": files})
    assert recording.export("app.hints", form, root=root) == text
    with pytest.raises(HeadstartError, match="root: no file below /none was read; allowed: a folder"):
        recording.export("app.hints", form, root="/none")
    with pytest.raises(HeadstartError, match='format: "tar" is unknown; allowed: estargz, nydus, soci'):
        recording.export("app.hints", "tar")

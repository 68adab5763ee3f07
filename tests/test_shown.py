"""Names from outside may contain anything, also rich's markup and control characters: no command interprets them."""

import json
import re
from pathlib import Path

import pytest

from headstart.cli import shown
from tests.conftest import ROOT, Run
from tests.machines import emulated, mounts
from tests.test_bad_input import one_line
from tests.test_tune import CAPACITY, Loop, loops, reported, tune

CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = "a[/b]\x1b]0;title\x07\x9b2J\u202e\n[red]"
SHOWN = r"a[/b]\x1b]0;title\x07\x9b2J\u202e\x0a[red]"
DRIVE = (ROOT / "crates" / "sim" / "device" / "src" / "models").rglob("ibm-36gb-10k.toml")


def test_what_is_escaped() -> None:
    assert shown.plain(HOSTILE) == SHOWN
    assert shown.plain("caf\u00e9 \u65e5\u672c [x]") == "caf\u00e9 \u65e5\u672c [x]"
    assert shown.plain("\udc9b2J") == r"\x9b2J"
    assert json.loads(shown.json_text(json.dumps([HOSTILE], ensure_ascii=False))) == [HOSTILE]
    assert CONTROLS.search(shown.json_text(json.dumps([HOSTILE, "\x7f"], ensure_ascii=False))) is None


def test_a_console_escapes_what_a_command_has_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    console = shown.SafeConsole(width=200, highlight=False)
    console.print("\x1b[2J", markup=False)
    console.print("[bold]own[/] line\nand another")
    assert capsys.readouterr().out == "\\x1b[2J\nown line\nand another\n"


def harmless(text: str) -> None:
    found = CONTROLS.search(text)
    assert found is None, (found, text)


@loops
@pytest.mark.xdist_group("machine")
def test_tune_on_a_loop_device_of_such_a_file(tmp_path: Path) -> None:
    """It once failed on the name after it had written."""
    image = tmp_path / HOSTILE.replace("/", "\u2215").replace("\u2215", "")
    slashed = tmp_path / "a[" / "b]"
    slashed.mkdir(parents=True)
    for path in (image, slashed / "disk.img"):
        with path.open("wb") as file:
            file.truncate(CAPACITY)
        loop = Loop(path)
        try:
            for words in (("--apply", "--profile", "ibm-36gb-10k"), ("--profile", "ibm-36gb-10k"), ("--restore",)):
                done = tune(loop, *words)
                assert (done.returncode, done.stderr) == (0, "")
                harmless(done.stdout)
                done = tune(loop, *words, "--json", "-")
                harmless(done.stdout)
                assert reported(done)["device"]["identity"]
            assert loop.kb() == 128
        finally:
            loop.close()


@pytest.fixture
def drive(tmp_path: Path, run: Run) -> Path:
    """A profile with such a path, name, keys and values."""
    folder = tmp_path / "a["
    folder.mkdir()
    path = folder / "b]\x1b]0;x\x07.toml"
    text = next(Path(ROOT).glob("crates/**/ibm-36gb-10k.toml")).read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^name = .*$", r'name = "n[/b]\\u001b[2J\\u009b1m"', text), encoding="utf-8")
    return path


@mounts
@pytest.mark.xdist_group("machine")
def test_commands_with_such_a_profile(run: Run, drive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        f'[workload]\ngenerator = "synth"\nlimit = 50\n[cache]\nblocks = 20\n[policy]\nname = "demand"\n'
        f"[device]\nmodel = {json.dumps(str(drive))}\n",
        encoding="utf-8",
    )
    lines = [
        ("device", "show", str(drive)),
        ("tune", "/", "--profile", str(drive), "--state", str(tmp_path / "tune.json")),
        ("model", "competitive", "--device", str(drive)),
        ("simulate", str(scenario)),
        ("simulate", str(scenario), "--json", "-"),
    ]
    for words in lines:
        done = run(*words)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        harmless(done.stdout + done.stderr)
    image = tmp_path / "image"
    image.write_bytes(bytes(4096))
    monkeypatch.delenv("COLUMNS", raising=False)
    with emulated(image, "hp97560") as (_, mount):
        harmless((mount / "stats").read_text())


@pytest.mark.parametrize("name", ["a[/b]", "\x1b[2J", "\x9b2J", "\u202e"])
def test_mistakes_in_such_names_are_one_harmless_line(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "tune.json").write_text(
        json.dumps({"schema": 1, "entries": [{"backing": "../x", "name": name, name: 1}]}), encoding="utf-8"
    )
    for words in (
        ("device", "show", name),
        ("tune", "/", "--profile", name),
        ("tune", "/", "--profile", "ibm-36gb-10k", "--set", f"{name}=1"),
        ("tune", "/", "--profile", "ibm-36gb-10k", "--state", str(tmp_path / "tune.json")),
        ("emulate", "hp97560", name, "."),
        ("simulate", name),
        ("trace", "info", name),
        ("profile", name),
        (f"no{name}",),
    ):
        done = run(*words)
        one_line(done)
        harmless(done.stderr)

"""The docs: their lists are complete, their output is real, and generated parts are up to date.

tests/test_docs_commands.py runs the commands and programs that they show.
"""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import headstart
from tests.conftest import COMMAND, FIGURE_1, ROOT, TWO_LEVELS

README = (ROOT / "README.md").read_text(encoding="utf-8")
SCENARIO = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")
LEVELS = (ROOT / "docs" / "levels.md").read_text(encoding="utf-8")


def fenced(text: str, language: str) -> list[str]:
    """The blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


COMMANDS = [
    line for block in fenced(README, "sh") for line in block.splitlines() if line.strip().startswith("headstart ")
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder from which the examples can be reached, and into which they may write."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def test_the_readme_shows_at_least_each_command() -> None:
    shown = {line.split()[1] for line in COMMANDS}
    assert shown == {
        *("advise", "simulate", "compare", "parallel", "device", "model", "trace", "list", "reproduce"),
        *("record", "forecast", "run", "show", "sweep", "curve"),
    }


def test_output_shown_in_the_readme_is_real(folder: Path) -> None:
    shown = next(block for block in fenced(README, "text") if "references, cache" in block)
    line = next(line for line in COMMANDS if "--device seagate-exos-x20" in line)
    words = [str(COMMAND), *shlex.split(line)[1:]]
    printed = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=True).stdout
    kept = [line.rstrip() for line in printed.splitlines()]
    assert all(line.rstrip() in kept for line in shown.splitlines())
    (mistake,) = (block for block in fenced(README, "text") if block.startswith("$"))
    command, answer = mistake.splitlines()
    words = [str(COMMAND), *shlex.split(command)[2:]]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (2, answer + "\n")


def test_the_page_on_parallel_programs_has_every_key() -> None:
    """Its table has every key that a resolved [process] has."""
    text = (ROOT / "docs" / "parallel.md").read_text(encoding="utf-8")
    scenario = tomllib.loads(headstart.explain(ROOT / "examples" / "rapid-transit.toml"))
    described = re.findall(r"^\| `(\w+)` \| [^|]*\|", text, flags=re.MULTILINE)
    assert set(scenario["process"]) <= set(described)


def test_the_page_on_ones_own_trace_has_every_column(folder: Path) -> None:
    """Its table has every column that the error of a header lists."""
    text = (ROOT / "docs" / "your-own-trace.md").read_text(encoding="utf-8")
    (folder / "x.csv").write_text("what,size\n1,2\n", encoding="utf-8")
    words = [str(COMMAND), "trace", "info", "x.csv", "--format", "csv"]
    error = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False).stderr
    listed = re.findall(r"[a-z]+", error.partition("allowed: one of ")[2].partition("(each")[0])
    columns = [name for name in listed if name not in {"optional", "or"}]
    assert "latency" in columns
    assert all(f"`{name}`" in text for name in columns), columns


def test_generated_docs_are_up_to_date() -> None:
    words = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_scenario_of_the_docs_is_a_scenario() -> None:
    (text,) = fenced(SCENARIO, "toml")
    scenario = tomllib.loads(text)
    scenario["workload"]["trace"] = str(ROOT / scenario["workload"]["trace"])
    result = headstart.simulate(scenario)
    assert result.scenario["policy"]["name"] == "forestall"
    assert len(result.devices) == 4


def command(scenario: str) -> list[str]:
    """Return the command that runs a scenario, or a grid of them."""
    return ["sweep", "--out", "out"] if "grid" in tomllib.loads(scenario) else ["simulate"]


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.toml")), ids=lambda each: each.stem)
def test_every_example_runs(folder: Path, example: Path) -> None:
    words = [str(COMMAND), *command(example.read_text(encoding="utf-8")), f"examples/{example.name}"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (0, "")


FRAGMENTS = {
    f"{page.stem}-{number}": text
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, text in enumerate(fenced(page.read_text(encoding="utf-8"), "toml"), start=1)
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_every_scenario_of_the_docs_runs(folder: Path, name: str) -> None:
    """Through the command, as text and as JSON; a scenario without a workload gets one."""
    text = FRAGMENTS[name]
    if "workload" not in tomllib.loads(text):
        text += '\n[workload]\ngenerator = "sequential"\n'
    (folder / "block.toml").write_text(text, encoding="utf-8")
    words = [str(COMMAND), *command(text), "block.toml"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    if "sweep" in words:
        return
    assert "elapsed" in done.stdout
    done = subprocess.run([*words, "--json", "-"], capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["elapsed_ns"] > 0


def test_levels_of_one_tier_are_all_shown(folder: Path) -> None:
    """Several first levels above one, with dots in their names: each has a line with the policy of its tier."""
    levels = (
        '[[level]]\nname = "a.b"\nblocks = 8\n[[level]]\nname = "a"\nblocks = 9\nclients = 2\npolicy = "ra"\n'
        '[[level]]\nname = "a.1"\nblocks = 10\nclients = 2\npolicy = "obl"\n'
    )
    workload = '[workload]\ngenerator = "files"\nfiles = 4\nprocesses = "per-pid"\n'
    (folder / "tiers.toml").write_text(workload + levels, encoding="utf-8")
    words = [str(COMMAND), "simulate", "tiers.toml"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("a.")]
    assert shown == [
        *(["a.b." + str(number), "demand"] for number in (1, 2, 3, 4)),
        *(["a." + str(number), "ra"] for number in (1, 2)),
        ["a.1", "obl"],
    ]


def test_the_page_on_levels_shows_what_runs(tmp_path: Path) -> None:
    """Its case takes the computed time, and the table that it shows is printed."""
    text = fenced(LEVELS, "toml")[0]
    result = headstart.simulate(tomllib.loads(text))
    assert result.elapsed_ns == 14_000_000
    assert "14 ms in all" in LEVELS
    (tmp_path / "case.toml").write_text(text, encoding="utf-8")
    words = [str(COMMAND), "simulate", "case.toml"]
    printed = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    (shown,) = fenced(LEVELS, "text")
    printed_lines = [line.split() for line in printed.splitlines()]
    assert all(line.split() in printed_lines for line in shown.splitlines())


def test_the_page_on_levels_names_everything() -> None:
    for entry in headstart.catalog()["coordinators"]:
        assert f"| `{entry['name']}` |" in LEVELS
        assert all(f"`{key}`" in LEVELS for key in entry["keys"])
    for field in ("accuracy", "coverage", "lateness", "lead_ns_mean", "pollution", "wasted_bytes", "wasted_service_ns"):
        assert f"| `{field}` |" in LEVELS


def test_every_key_of_a_level_is_documented() -> None:
    for level in tomllib.loads(headstart.explain(TWO_LEVELS))["level"]:
        assert all(f"`{key}`" in SCENARIO for key in level)
    for key in ("time_scale", "issue", "clients", "link", "alpha", "beta", "coordinator"):
        assert f"`{key}`" in SCENARIO


def test_every_key_and_every_field_is_documented() -> None:
    generated = {"workload": {"generator": "synth"}}
    for scenario in (headstart.explain(FIGURE_1), headstart.explain(generated)):
        for section, keys in tomllib.loads(scenario).items():
            assert f"[{section}]" in SCENARIO or section in SCENARIO
            own = headstart.catalog()["workloads"][0]["keys"] if section == "workload" else {}
            for key in keys.keys() - own.keys() if isinstance(keys, dict) else ():
                assert f"`{key}`" in SCENARIO or f"{key} =" in SCENARIO, key
    result = headstart.simulate(FIGURE_1).to_dict()
    for table in (result, result["levels"][0], result["devices"][0], result["processes"][0]):
        for field in table:
            assert f"`{field}`" in SCENARIO or f"`{field}[]`" in SCENARIO, field
    for entry in headstart.catalog()["policies"]:
        assert f"| `{entry['name']}` |" in SCENARIO
        assert all(f"`{key}`" in SCENARIO for key in entry["keys"])


def test_make_help_names_every_task_of_the_docs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, flags=re.MULTILINE))
    assert targets >= {"setup", "demo", "test", "check", "fmt", "lint", "golden-update", "bench", "docs"}
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(
        re.findall(r"make ([a-z-]+)", " ".join(re.findall(r"`[^`]+`|^make .*$", README + contributing, flags=re.M)))
    )
    assert named <= targets


def test_paths_in_the_docs_exist() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:crates|python|tests|docs|fuzz)/[^`*{}]+)`", README + contributing):
        assert (ROOT / path).exists(), path
    for link in re.findall(r"\]\((?!https:)([^)]+)\)", README):
        assert (ROOT / link.split("#")[0]).exists(), link


def test_no_lock_names_an_index() -> None:
    lock = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    assert "://" not in lock
    assert all("==" in line for line in lock.splitlines() if line and not line.startswith("#"))


def test_security_names_each_instance_of_tracefs() -> None:
    source = (ROOT / "crates" / "live" / "tune" / "src" / "instance.rs").read_text(encoding="utf-8")
    # Requests and faults: each instance is made by a function of its own.
    assert source.count("Self::with(") == 2
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "two instances of tracefs of its own (requests; faults of mapped files" in security

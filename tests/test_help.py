"""Help, the man page, completion and the examples: what a new user sees first."""

import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from headstart import HeadstartError, _examples
from headstart.cli.app import tree
from tests.conftest import COMMAND, ROOT, Run

MAN = ROOT / "packaging" / "data" / "share" / "man" / "man1" / "headstart.1"


def commands(group: Any, path: str = "headstart") -> Iterator[tuple[str, Any]]:
    """Each command that help shows, with its words."""
    for name, command in group.commands.items():
        if not command.hidden:
            yield f"{path} {name}", command
            yield from commands(command, f"{path} {name}") if hasattr(command, "commands") else ()


TREE = dict(commands(typer.main.get_command(tree())))
EXAMPLES = [line for each in TREE.values() for line in re.findall(r"Example: (headstart .*)", each.help or "")]


def test_each_command_has_an_example_of_itself() -> None:
    for path, command in TREE.items():
        shown = re.findall(r"Example: (headstart .*)", command.help or "")
        assert shown, path
        assert shown[0].startswith(path), path


def test_the_files_of_the_examples_ship() -> None:
    """The files that `--help` names under examples/ exist after `headstart example all`."""
    named = {word for line in EXAMPLES for word in shlex.split(line) if word.startswith("examples/")}
    assert named
    assert {word for word in named if not (_examples.FOLDER.parent / word).is_file()} == set()


def test_each_example_says_what_it_is() -> None:
    found = _examples.examples()
    assert {"figure1", "two-levels", "cscope2"} <= set(found)
    for example in found.values():
        assert 10 < len(example.about) < 200, example
    assert set(_examples.ABOUT) <= set(found)


@pytest.mark.parametrize("name", ["two-levels", "training"])
def test_an_example_runs_where_it_was_written(run: Run, tmp_path: Path, name: str) -> None:
    written = run("example", name)
    assert (written.returncode, written.stderr) == (0, "")
    *files, following = written.stdout.splitlines()
    assert all((tmp_path / line.removeprefix("wrote ")).is_file() for line in files)
    done = run(*shlex.split(following.removeprefix("next: headstart ")))
    assert (done.returncode, done.stderr) == (0, "")
    assert "elapsed" in done.stdout


def test_an_example_replaces_no_file(run: Run, tmp_path: Path) -> None:
    assert run("example", "figure1").returncode == 0
    assert run("example", "figure1").returncode == 0
    scenario = tmp_path / "examples" / "figure1.toml"
    scenario.write_text("seed = 2\n", encoding="utf-8")
    done = run("example", "figure1")
    assert done.returncode == 2
    assert "examples/figure1.toml: exists and differs from the example; allowed: another folder by --out" in done.stderr
    assert scenario.read_text(encoding="utf-8") == "seed = 2\n"


def test_mistakes_with_examples_are_one_line(run: Run) -> None:
    for words, text in (
        (("figure2",), 'example: no example "figure2"; allowed: all, app, competitive, '),
        (("figure1", "--out", "nowhere"), "nowhere: no such folder; allowed: --out with a folder that exists"),
        (("--out", "."), "--out: needs the name of an example; allowed: headstart example NAME --out FOLDER"),
    ):
        done = run("example", *words)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert text in done.stderr
    with pytest.raises(HeadstartError, match="no example"):
        _examples.write("../conftest", Path())


def test_the_shell_completes_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        environment = {"_HEADSTART_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "1"}
        environment["COMP_CWORD"] = str(len(words.split()) - (not words.endswith(" ")))
        done = subprocess.run([COMMAND], capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    assert completed("headstart comp") == ["compare"]
    assert completed("headstart compare --pol") == ["--policies"]
    assert "devices" in completed("headstart list d")


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete --command")]
)
def test_completion_is_printed_for_the_named_shell(shell: str, words: str) -> None:
    # Independently of the shell, if any, that started it.
    line = [str(COMMAND), "--show-completion", shell]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_HEADSTART_COMPLETE" in done.stdout
    assert words in done.stdout


def test_the_man_page_has_every_command_and_option() -> None:
    text = MAN.read_text(encoding="utf-8").replace("\\-", "-")
    for path, command in TREE.items():
        if not hasattr(command, "commands"):
            assert f".SS {path}" in text
            for option in command.params:
                shown = option.opts[-1] in text or (option.metavar or "\n\n") in text
                assert shown or getattr(option, "hidden", False), (path, option.opts)
    assert "\t" not in text


def test_the_page_of_the_package_stands_alone() -> None:
    """An index shows it: it has no link into the checkout."""
    text = (ROOT / "docs" / "package.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https://)[^)]*\)", text) == []
    assert "<img" not in text


def test_paragraphs_fill_the_terminal(run: Run) -> None:
    """A line of the help ends where the next word does not fit."""
    for path in TREE:
        head = run(*path.split()[1:], "--help").stdout.split("╭─")[0]
        for paragraph in re.split(r"\n\s*\n", head.strip()):
            lines = [line.strip() for line in paragraph.splitlines()]
            for line, following in itertools.pairwise(lines):
                assert len(line) + 1 + len(following.split()[0]) > 76, f"{path}: {line}"


def test_brackets_in_help_are_shown(run: Run) -> None:
    """They mark styles elsewhere."""
    shown = run("store", "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "s3://BUCKET[/PREFIX]" in shown.stdout

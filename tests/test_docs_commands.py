"""Every command and every program that the docs show runs, page by page, as a reader would type it.

A block that a test cannot run is preceded by a mark with the reason, `<!-- not run: REASON -->`; our commands in it
must still be valid, with these options.
"""

import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from headstart.cli.app import tree
from tests.conftest import COMMAND, ROOT, needs_report

REASONS = {
    "builds or installs": "the toolchain or a package index",
    "needs root": "it changes the machine that the test runs on",
    "needs a device": "it reads a disk of the reader's",
    "takes minutes": "its parts are tested apart",
    "needs a container engine": "it starts a container",
    "serves until it is ended": "tests of the server run it",
    "needs nbdcopy and qemu-img": "tests of the server run them where they are installed",
    "needs a bucket": "tests run it against a store of their own",
    "records a program of the reader's": "it needs strace and the program",
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:^<!-- not run: ([^\n]*) -->\n+)?^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- not run:")
DRAWN = re.compile(r"--(html|png|figures)\b")
FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A file that the reader is told to write."""
DRIVE = ROOT / "crates" / "sim" / "device" / "profiles" / "seagate-cheetah-9lp.toml"
TOY = ROOT / "crates" / "sim" / "diskspecs" / "tests" / "toy_files"
"""A drive in DiskSim's files, in place of one that it ships."""
PRINTS = {"devices.md": "HP 97560 1374216192 ", "README.md": "7000000 "}
"""The start of the output of a page's programs."""
WRITES = {"pages.md": "glimpse/by-disks.svg"}
"""A file that a page's commands write."""


class Block(NamedTuple):
    """A block of a page."""

    reason: str
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The blocks of commands and of Python."""
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the examples, and with a drive and its trace such as a reader may have."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name in ("my-drive.toml", "sdb.toml"):
        shutil.copy(DRIVE, tmp_path / name)
    rows = [f"{4096 * (index * 7919 % 100_000)},4096,{index * 20_000},9000" for index in range(40)]
    (tmp_path / "my-drive.csv").write_text("\n".join(["offset,size,time_us,latency_us", *rows, ""]), encoding="utf-8")
    for name in ("toy.parv", "toy.diskspecs", "toy.model", "toy.seek"):
        shutil.copy(TOY / name, tmp_path / name.replace("toy.parv", "cheetah9LP.parv"))
    measured = "".join(f"R Miss {8 * index} 8 9000 1000\n" for index in (3, 60, 17))
    (tmp_path / "cheetah9LP.trace.xz").write_bytes(lzma.compress(measured.encode()))
    return tmp_path


def parsed(words: list[str]) -> None:
    """Parse one of our commands without running it; a wrong option raises."""
    command: Any = typer.main.get_command(tree())
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words)


def lines(text: str) -> list[str]:
    """The commands of a block; a line that ends in a backslash goes on."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


def test_every_mark_is_before_a_block_and_has_a_known_reason() -> None:
    for page in PAGES:
        marked = [block.reason for block in blocks(page) if block.reason]
        assert len(marked) == len(MARK.findall(page.read_text(encoding="utf-8"))), page.name
        assert set(marked) <= set(REASONS), page.name


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_what_a_page_shows_runs(folder: Path, page: Path) -> None:
    paths = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": paths, "HEADSTART_CACHE": str(folder / "cache")}
    if DRAWN.search("".join(block.text for block in blocks(page) if not block.reason)):
        needs_report()
    for name, text in FILE.findall(page.read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")
    printed = ""
    for block in blocks(page):
        if block.language == "python":
            words = [sys.executable, "-c", block.text]
            done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), block.text
            printed += done.stdout
        for line in lines(block.text) if block.language == "sh" else ():
            if not block.reason:
                words = ["bash", "-c", line]
                done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
                assert (done.returncode, re.sub(r"^warning: .*\n", "", done.stderr)) == (0, ""), line
            elif ours := re.match(r"(?:sudo )?headstart (.*)", line):
                words = shlex.split(ours[1].removesuffix("&"), comments=True)
                parsed(words)
    assert printed.startswith(PRINTS.get(page.name, ""))
    assert (folder / WRITES.get(page.name, "examples")).exists()


def test_a_wrong_option_is_found() -> None:
    parsed(["tune", "/dev/sda", "--restore"])
    with pytest.raises(Exception, match="--restored"):
        parsed(["tune", "/dev/sda", "--restored"])

"""The image of the study's disk: ext4 with files at known places, made without mounting anything and without data.

`mke2fs` makes the file system in a sparse file that is as large as the drive, `debugfs` gives each file its blocks
and marks them as written without writing them: they read as zeros, each through the disk, and take no room.
Metadata is packed at the start of the disk, so that files follow each other without holes.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from headstart._core import HeadstartError

BLOCK = 4096
MB = 10**6
TOOLS = ("mke2fs", "debugfs")

FEATURES = "sparse_super2,^has_journal,^resize_inode,^metadata_csum"
"""No copy of the superblock between files, no journal: the file system is never written through the kernel."""
EXTENDED = "num_backup_sb=0,packed_meta_blocks=1,lazy_itable_init=1,nodiscard"
EXTENT = re.compile(r"^ *(\d+)/ *(\d+) +\d+/ *\d+ +(\d+) - +(\d+) +(\d+) - +(\d+) +(\d+) ", re.MULTILINE)
"""A line of debugfs' `ex`: level, depth, first and last block in the file, on the disk, number of blocks."""


@dataclass(frozen=True)
class Planned:
    """A file for the image, placed after the previous one."""

    name: str
    size: int
    readable: bool = True
    """False: the file only takes up space, and reads as zeros without the disk."""


@dataclass(frozen=True)
class Placed:
    """The place of a file, according to the file system."""

    name: str
    size: int
    first_block: int
    """On the disk, in blocks of 4096 bytes; the file's other blocks follow it."""
    breaks: int
    """Blocks of the file system itself that interrupt it."""


def missing_tools() -> list[str]:
    """Return the required programs that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def make(path: Path, size: int, files: list[Planned]) -> list[Placed]:
    """Make a file system of `size` bytes in the file `path` with `files` one after another, and return their places.

    Raises:
        HeadstartError: A tool fails, or a file is not contiguous.
    """
    with path.open("wb") as image:
        image.truncate(size)
    inodes = str(2 * len(files) + 16)
    _run("mke2fs", "-q", "-F", "-t", "ext4", "-b", str(BLOCK), "-O", FEATURES, "-E", EXTENDED, "-N", inodes, str(path))
    for planned in files:
        blocks = -(-planned.size // BLOCK)
        commands = [
            f"write /dev/null {planned.name}",
            f"fallocate {planned.name} 0 {blocks - 1}",
            f"set_inode_field {planned.name} size {planned.size}",
        ]
        _debugfs(path, commands)
    for planned in files:
        if planned.readable:
            _declare_written(path, planned.name)
    return [_placed(path, planned) for planned in files]


def _extents(path: Path, name: str) -> list[tuple[int, int, int]]:
    """Return the first block in the file, first block of the disk and number of blocks of each extent."""
    lines = EXTENT.findall(_debugfs(path, [f"ex {name}"]))
    return [(int(line[2]), int(line[4]), int(line[6])) for line in lines if line[0] == line[1]]


def _declare_written(path: Path, name: str) -> None:
    """Turn extents that `fallocate` leaves unwritten into written ones."""
    commands = [f"extent_open {name}"]
    for at, block, count in _extents(path, name):
        commands += [f"goto_block {at}", f"replace_node {at} {count} {block}"]
    _debugfs(path, [*commands, "extent_close"])


def _placed(path: Path, planned: Planned) -> Placed:
    extents = _extents(path, planned.name)
    if not extents:
        raise HeadstartError(f"{path}: debugfs shows no blocks of {planned.name}")
    first = extents[0][1]
    last_at, last_block, _ = extents[-1]
    breaks = last_block - first - last_at
    # A long file's extents are listed in blocks of the file system, which lie between them.
    if not 0 <= breaks <= len(extents):
        raise HeadstartError(f"{path}: {planned.name} does not lie in one piece")
    return Placed(planned.name, planned.size, first, breaks)


def _debugfs(path: Path, commands: list[str]) -> str:
    done = _run("debugfs", "-w", "-f", "-", str(path), stdin="\n".join(commands) + "\n")
    # debugfs exits with status 0 even if its commands fail, and prints its version on stderr.
    problems = done.stderr.splitlines()[1:]
    if problems:
        raise HeadstartError(f"{path}: debugfs: {problems[0]}")
    return done.stdout


def _run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HeadstartError(f"{words[0]}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done

"""Checks that the files that one command reads and writes are distinct."""

import os
from pathlib import Path

from headstart._core import HeadstartError
from headstart.cli.shown import plain


def check_distinct(named: dict[str, str | Path | None]) -> None:
    """Refuse two options that name one file, by path, link or hard link. "-" and `None` are not files."""
    files = {option: os.fspath(path) for option, path in named.items() if path is not None and str(path) != "-"}
    options = list(files)
    for index, option in enumerate(options):
        for before in options[:index]:
            if _same(files[before], files[option]):
                # The later option would replace the earlier one's file.
                problem = f"{option}: {plain(files[option])} is the same file as {before}"
                raise HeadstartError(f"{problem}; allowed: a file of its own")


def _same(one: str, other: str) -> bool:
    try:
        if Path(one).samefile(other):
            return True
    except OSError:
        pass
    return os.path.realpath(one) == os.path.realpath(other)

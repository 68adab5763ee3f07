"""Errors for a file given to the wrong command: they name the kind of the file and the right command.

Files are examined only after a command has failed. No file is refused because of this check.
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from headstart._core import is_trace
from headstart._input import plain

GRID, SCENARIO, PROFILE, RECORDING, TRACE = "grid", "scenario", "profile", "recording", "trace"
ALLOWED = {
    GRID: "a grid, which is a scenario with a table [grid] of key paths and lists",
    SCENARIO: "a scenario",
    PROFILE: "a profile",
    RECORDING: "a recording",
    TRACE: "a trace",
}

TAKES = {
    "simulate": (SCENARIO,),
    "show": (SCENARIO,),
    "model fs": (SCENARIO,),
    "model check": (SCENARIO,),
    "model open": (SCENARIO,),
    "model trace": (SCENARIO,),
    "model competitive": (PROFILE,),
    "parallel": (SCENARIO,),
    "sweep": (GRID,),
    "compare": (TRACE, RECORDING, SCENARIO),
    "curve": (TRACE, RECORDING, SCENARIO),
    "advise": (TRACE, RECORDING),
    "play": (TRACE, RECORDING),
    "trace info": (TRACE, RECORDING),
    "trace convert": (TRACE, RECORDING),
    "trace filter": (TRACE, RECORDING),
    "device show": (PROFILE,),
    "forecast": (RECORDING,),
    "hints show": (RECORDING,),
    "hints check": (RECORDING,),
}
"""The kinds of file that each command takes as its first argument."""
PROFILE_OPTIONS = ("--device", "--profile")
GOES_TO = {
    GRID: "`headstart sweep {} --out DIR`",
    SCENARIO: "`headstart simulate {}` or `headstart compare {}`",
    PROFILE: "`headstart device show {}`, or --device {} beside a trace",
    RECORDING: "`headstart hints show {}` or `headstart forecast {}`",
    TRACE: "`headstart advise {}` or `headstart compare {}`",
}
SECTIONS = {"workload", "cache", "policy", "level", "device", "host", "process"}
TOML_BYTES_MAX = 1 << 20


def line(words: Sequence[str]) -> str | None:
    """Return an error for the first file that the command does not take; `None` if there is no such file."""
    for name, takes in _files(words):
        kind = _kind(Path(name))
        if kind is not None and kind not in takes:
            given, allowed = plain(name), ", ".join(ALLOWED[each] for each in takes)
            return f"{given}: is a {kind}, for {GOES_TO[kind].replace('{}', given)}; allowed: {allowed}"
    return None


def _files(words: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return each file whose kind the command line fixes, with the allowed kinds."""
    length = 2 if " ".join(words[:2]) in TAKES else 1
    takes = TAKES.get(" ".join(words[:length]))
    for before, word in zip(words[length - 1 :], words[length:], strict=False):
        if before in PROFILE_OPTIONS:
            yield word, (PROFILE,)
        elif takes is not None and not word.startswith("-") and (not before.startswith("-") or "=" in before):
            yield word, takes
            takes = None


def _kind(path: Path) -> str | None:
    """Return the kind of a file; `None` if that is uncertain or the file does not exist."""
    try:
        # Opening a pipe would block until another process writes to it.
        if not path.is_file():
            return None
        with path.open("rb") as file:
            start = file.read(TOML_BYTES_MAX + 1)
    except OSError:
        return None
    if start.startswith(b"headstart-hints "):
        return RECORDING
    if start and len(start) <= TOML_BYTES_MAX:
        try:
            keys = set(tomllib.loads(start.decode()))
            if "grid" in keys:
                return GRID
            return SCENARIO if keys & SECTIONS else PROFILE if "name" in keys or "model" in keys else None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError):
            pass
    # A file named *.toml that got this far has no recognised scenario keys, so it is not a trace either.
    return TRACE if start and path.suffix != ".toml" and is_trace(path) else None

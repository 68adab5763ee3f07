"""The environment variables of headstart, which are read here once per command and passed on."""

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path

CACHE_VARIABLE = "HEADSTART_CACHE"
TRACES_VARIABLE = "HEADSTART_TRACES"
COMPLETION_VARIABLE = "_HEADSTART_COMPLETE"
"""The variable of typer that is set when a shell requests a completion; the line is in the environment too."""
NAMED_SHELL_VARIABLE = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""The variable of typer that makes its completion options take the name of a shell."""
SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
"""The shells that typer knows."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Folders:
    """Folders of the user that studies work with."""

    traces: Path | None = None
    """Folders that are searched for traces, in addition to the checkout."""
    cache: Path | None = None
    """The folder in which finished cells are kept; `None`: they are not kept."""


def folders() -> Folders:
    """Return the folders of $HEADSTART_TRACES and $HEADSTART_CACHE. The latter defaults to the user's cache folder."""
    import platformdirs  # Not at the start: most commands need no folder.

    traces, cache = os.environ.get(TRACES_VARIABLE), os.environ.get(CACHE_VARIABLE)
    return Folders(
        traces=Path(traces) if traces else None,
        cache=Path(cache) if cache else platformdirs.user_cache_path("headstart", appauthor=False),
    )


def values(names: Iterable[str]) -> dict[str, str]:
    """Return variables by name, empty if they are not set."""
    return {name: os.environ.get(name, "") for name in names}


def completes() -> bool:
    """Return whether a shell requests a completion."""
    return COMPLETION_VARIABLE in os.environ


def take_named_shell(words: list[str]) -> None:
    """If a completion option is followed by a shell's name, let typer take that shell.

    Without a name typer searches for the shell among the parents of the process, and ignores what follows the option.
    """
    if words[:1] in (["--show-completion"], ["--install-completion"]) and words[1:2] and words[1] in SHELLS:
        os.environ[NAMED_SHELL_VARIABLE] = "1"

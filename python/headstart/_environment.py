"""The environment variables of headstart, which are read here once per command and passed on."""

import dataclasses
import os
from pathlib import Path

CACHE_VARIABLE = "HEADSTART_CACHE"
TRACES_VARIABLE = "HEADSTART_TRACES"
COMPLETION_VARIABLE = "_HEADSTART_COMPLETE"
"""The variable of typer that is set when a shell requests a completion; the line is in the environment too."""


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


def completes() -> bool:
    """Return whether a shell requests a completion."""
    return COMPLETION_VARIABLE in os.environ

"""The environment variables of headstart: read here, once for each command, and passed down."""

import dataclasses
import os
from pathlib import Path

CACHE_VARIABLE = "HEADSTART_CACHE"
TRACES_VARIABLE = "HEADSTART_TRACES"
COMPLETION_VARIABLE = "_HEADSTART_COMPLETE"
"""A shell that completes a line hands the line over in the environment, beside this variable of typer's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Folders:
    """Folders of the user that studies work with."""

    traces: Path | None = None
    """Where traces are looked for besides those of the checkout."""
    cache: Path | None = None
    """Where finished cells are kept; they are not kept if `None`."""


def folders() -> Folders:
    """Return the folders of $HEADSTART_TRACES and $HEADSTART_CACHE, the latter by default within the user's caches."""
    import platformdirs  # Not at the start: most commands need no folder.

    traces, cache = os.environ.get(TRACES_VARIABLE), os.environ.get(CACHE_VARIABLE)
    return Folders(
        traces=Path(traces) if traces else None,
        cache=Path(cache) if cache else platformdirs.user_cache_path("headstart", appauthor=False),
    )


def completes() -> bool:
    """Return whether a shell asks for the completion of a line."""
    return COMPLETION_VARIABLE in os.environ

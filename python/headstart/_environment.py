"""The environment variables of headstart: read here and nowhere else."""

import os
import sys
from pathlib import Path

CACHE_VARIABLE = "HEADSTART_CACHE"
TRACES_VARIABLE = "HEADSTART_TRACES"


def cache_folder() -> Path:
    """Return where finished cells are kept: $HEADSTART_CACHE, or a folder of the user's caches."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "headstart"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "headstart" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headstart"


def trace_folders() -> list[Path]:
    """Return the folder that $HEADSTART_TRACES names, if it names one."""
    given = os.environ.get(TRACES_VARIABLE)
    return [Path(given)] if given else []

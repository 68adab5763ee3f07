"""A block server: storage behind the simulator's levels, for NBD clients (docs/serve.md). Linux.

    level = {"size": "64MiB", "policy": "linux"}
    ended = headstart.serve("disk.img", level=level, progress=lambda now: now["elapsed_ns"] > 60e9)
    ended["exports"][0]["level"]["hits_ready"]

The core does the work without the GIL.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from typing import Any

from headstart import _core

Report = dict[str, Any]
"""What `headstart serve --json` writes; docs/serve.md describes each field."""

LISTEN = "127.0.0.1:10809"
"""Where clients connect to, unless something else is said."""
LEVEL: Mapping[str, object] = {"size": "64MiB", "policy": "linux"}
"""The level, unless something else is said."""
LEVEL_OF_OBJECTS: Mapping[str, object] = {**LEVEL, "policy": {"name": "linux", "read_ahead": "16MiB"}}
"""And where all backings are objects: they take long to answer, and answer many reads at once."""
OBJECTS = ("http://", "https://", "s3://", "gs://", "az://")


def default_level(backings: Iterable[str]) -> dict[str, object]:
    """Return the keys of the level before these backings, unless something else is said."""
    return dict(LEVEL_OF_OBJECTS if all(each.startswith(OBJECTS) for each in backings) else LEVEL)


def serve(
    backing: str | PathLike[str] | None = None,
    *,
    exports: Mapping[str, str | PathLike[str]] | None = None,
    listen: str = LISTEN,
    level: Mapping[str, object] | None = None,
    page: str = "4KiB",
    allow_remote: bool = False,
    writable: bool = False,
    record: str | PathLike[str] | None = None,
    openmetrics: str | None = None,
    log: str | PathLike[str] | None = None,
    progress: Callable[[Report], object] | None = None,
) -> Report:
    """Serve `backing` as the default export, and `exports` by their names, until `progress` returns what is true.

    `level` has the keys of a scenario's `[[level]]`: size, policy, replacement, coordinator. `progress` is called with
    the report as soon as clients can connect and 10 times a second; an exception in it ends the serving too. Requests
    that have come by then are answered.

    Raises:
        HeadstartError: A mistake of the caller, or the system refuses a file or an address.
    """
    named = [] if backing is None else [("", fspath(backing))]
    named += [(name, fspath(path)) for name, path in (exports or {}).items()]
    if not named:
        raise _core.HeadstartError(
            "backing: is missing; allowed: a file, a device, mem:SIZE, a URL, or exports with names"
        )
    tell = None if progress is None else lambda text: progress(json.loads(text))
    text = _core.serve(
        named,
        listen=listen,
        level=json.dumps(default_level(path for _, path in named) if level is None else dict(level)),
        page=page,
        allow_remote=allow_remote,
        writable=writable,
        record=record,
        openmetrics=openmetrics,
        log=log,
        on_progress=tell,
    )
    report: Report = json.loads(text)
    return report

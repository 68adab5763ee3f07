"""A block server for NBD clients, with the simulator's levels in front of storage (docs/serve.md). Linux only.

    level = {"size": "64MiB", "policy": "linux"}
    ended = headstart.serve("disk.img", level=level, progress=lambda now: now["elapsed_ns"] > 60e9)
    ended["exports"][0]["level"]["hits_ready"]

The core does the work without the GIL.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any

from headstart import _core
from headstart._input import whole
from headstart.temporary import folder
from headstart.trace import selection, trace_convert

Report = dict[str, Any]
"""The report of `headstart serve --json`; docs/serve.md describes each field."""

LISTEN = "127.0.0.1:10809"
"""The default address for clients."""
LEVEL: Mapping[str, object] = {"size": "64MiB", "policy": "auto"}
"""The default level. "auto": linux, with a depth that the backing's latency and rate require."""


def serve(
    backing: str | PathLike[str] | None = None,
    *,
    exports: Mapping[str, str | PathLike[str]] | None = None,
    listen: str = LISTEN,
    level: Mapping[str, object] | None = None,
    page: str = "4KiB",
    allow_remote: bool = False,
    insecure: bool = False,
    tls_cert: str | PathLike[str] | None = None,
    tls_key: str | PathLike[str] | None = None,
    tls_clients: str | PathLike[str] | None = None,
    writable: bool = False,
    direct: bool = False,
    no_lock: bool = False,
    depth: int | None = None,
    connections: int | None = None,
    memory: str | None = None,
    record: str | PathLike[str] | None = None,
    hints: str | PathLike[str] | None = None,
    hint_policy: str | None = None,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    spill: str | None = None,
    openmetrics: str | None = None,
    log: str | PathLike[str] | None = None,
    progress: Callable[[Report], object] | None = None,
) -> Report:
    """Serve `backing` as the default export, and `exports` by name, until `progress` returns a true value.

    `level` has the keys of a scenario's `[[level]]`: size, policy, replacement, coordinator. `progress` is called with
    the report once clients can connect and 10 times a second; an exception that it raises also stops the server.
    Requests received by then are answered. With `direct`, reads of files and devices bypass the kernel's page cache.
    `depth` limits the concurrent reads per backing, `connections` the connected clients (256), and `memory`, such as
    "1GiB", the caches and the requests and replies of all clients (the caches and 256 MiB).
    Files and devices are locked against other programs as QEMU does, unless `no_lock` is true.

    `hints` is a trace of earlier reads of the only export, such as one written by `record`. `hint_policy` prefetches
    its blocks; the default is "just-in-time". `path`, `pid` and `process` select requests of it, as in `compare`.
    `spill`, "FILE:SIZE", is a local file for pages that are evicted from the cache. The next server reuses it, unless
    the backing has changed.

    Raises:
        HeadstartError: An argument is wrong, or the system refuses a file or an address.
    """
    whole("depth", depth, 1, most=1 << 10)
    whole("connections", connections, 1, most=1 << 20)
    named = [] if backing is None else [("", fspath(backing))]
    named += [(name, fspath(path)) for name, path in (exports or {}).items()]
    if not named:
        raise _core.HeadstartError(
            "backing: is missing; allowed: a file, a device, mem:SIZE, a URL, or exports with names"
        )
    tell = None if progress is None else lambda text: progress(json.loads(text))
    with _selected(hints, path, pid, process) as taken:
        text = _core.serve(
            named,
            listen=listen,
            level=json.dumps(dict(LEVEL if level is None else level)),
            page=page,
            allow_remote=allow_remote,
            insecure=insecure,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_clients=tls_clients,
            writable=writable,
            direct=direct,
            no_lock=no_lock,
            depth=depth,
            connections=connections,
            memory=memory,
            record=record,
            hints=taken,
            hint_policy=hint_policy,
            spill=spill,
            openmetrics=openmetrics,
            log=log,
            on_progress=tell,
        )
    report: Report = json.loads(text)
    return report


@contextmanager
def _selected(
    hints: str | PathLike[str] | None,
    path: str | Sequence[str] | None,
    pid: int | Sequence[int] | None,
    process: str | Sequence[str] | None,
) -> Iterator[str | PathLike[str] | None]:
    """Make a trace of the requests of `hints` that are selected, for the duration of the block."""
    given = selection(path, pid, process).get("select", {})
    if hints is None and given:
        raise _core.HeadstartError(f"{next(iter(given))}: selects requests of hints; allowed: together with hints")
    if hints is None or not given:
        yield hints
        return
    with folder() as own:
        trace_convert(hints, own / "hints.csv", to="csv", path=path, pid=pid, process=process)
        yield own / "hints.csv"

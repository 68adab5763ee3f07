"""Traces: contents, conversion, generation. Ctrl-C and an exception of `progress` stop each of them."""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, cast

from headstart import _core
from headstart._input import whole
from headstart.policies import toml_value
from headstart.simulation import Progress

Info = dict[str, Any]


def selection(
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the keys of [workload] that select requests: to files that fit globs, or of processes; none by default."""
    given = {"path": path, "pid": pid, "process": process}
    select = {key: value if isinstance(value, str | int) else list(value) for key, value in given.items() if value}
    return {"select": select} if select else {}


def select_json(
    path: str | Sequence[str] | None, pid: int | Sequence[int] | None, process: str | Sequence[str] | None
) -> str:
    """Return the key `select` of [workload] for the core."""
    return json.dumps(selection(path, pid, process).get("select", {}))


def trace_info(
    trace: str | PathLike[str],
    *,
    format: str = "auto",
    block_size: str = "8KiB",
    request_size: str | None = None,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Info:
    """Return a summary of a trace: requests, distinct blocks, shares, sizes, popularity, reuse, and parts over time.

    With block size "object" the trace's own units are the blocks. A trace that has offsets but no sizes needs a request
    size. `path`, `pid` and `process` select requests, as in `compare`. `progress` is called as in `simulate`, with 0
    references.
    """
    found = _core.trace_info(
        trace,
        format=format,
        block_size=block_size,
        request_size=request_size,
        select=select_json(path, pid, process),
        on_progress=progress,
    )
    return cast("Info", json.loads(found))


def trace_convert(
    trace: str | PathLike[str],
    target: str | PathLike[str],
    *,
    to: str,
    format: str = "auto",
    block_size: str = "8KiB",
    request_size: str | None = None,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Info:
    """Write `trace` to `target` in the format `to` ("csv" or "oracleGeneral"); return a summary of the output."""
    written = _core.trace_convert(
        trace,
        target,
        to=to,
        format=format,
        block_size=block_size,
        request_size=request_size,
        select=select_json(path, pid, process),
        on_progress=progress,
    )
    return cast("Info", json.loads(written))


def trace_filter(
    trace: str | PathLike[str],
    target: str | PathLike[str],
    *,
    cache: str | int,
    policy: str = "lru",
    to: str = "csv",
    format: str = "auto",
    block_size: str = "8KiB",
    request_size: str | None = None,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Info:
    """Write the requests of `trace` that miss in a cache to `target`; return a summary of the output.

    `policy` is a replacement that does not need the future. Times are kept. Think times add up until the next miss.
    """
    name, *rest = policy.split(":")
    keys = {key: toml_value(value) for key, _, value in (part.partition("=") for part in rest)}
    written = _core.trace_filter(
        trace,
        target,
        cache=str(cache),
        replacement=name,
        keys=json.dumps(keys),
        to=to,
        format=format,
        block_size=block_size,
        request_size=request_size,
        select=select_json(path, pid, process),
        on_progress=progress,
    )
    return cast("Info", json.loads(written))


def trace_generate(
    generator: str,
    target: str | PathLike[str],
    *,
    to: str = "csv",
    keys: Mapping[str, object] | None = None,
    seed: int = 1,
    block_size: str = "8KiB",
    progress: Progress | None = None,
) -> Info:
    """Write the trace that `generator` makes from `keys` and `seed` to `target`; return a summary of the output."""
    whole("seed", seed)
    written = _core.trace_generate(
        generator,
        target,
        to=to,
        keys=json.dumps(dict(keys or {})),
        seed=seed,
        block_size=block_size,
        on_progress=progress,
    )
    return cast("Info", json.loads(written))

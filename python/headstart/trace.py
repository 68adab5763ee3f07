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

    Args:
        trace: Path of a trace.
        format: A name of `headstart list formats`; "auto" detects it.
        block_size: Block size ("8KiB"); with "object", the trace's own units are the blocks.
        request_size: Size of each request ("4KiB"), for a trace that has offsets but no sizes.
        path: Only requests to files that fit one of these globs ("*.parquet"; "*" also stands for "/").
        pid: Only requests of these processes or threads.
        process: Only requests of processes of these names, or globs of them.
        progress: Called with the share done (0 to 1) and 0. An exception stops the function.

    Raises:
        HeadstartError: An argument is wrong, the trace cannot be read, or a line of it is wrong.
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
    """Write a trace to `target` in the format `to` ("csv" or "oracleGeneral"), and return a summary of the output.

    Other arguments are those of `trace_info`.

    Raises:
        HeadstartError: As for `trace_info`, or `target` cannot be written.
    """
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
    """Write the requests of a trace that miss in a cache to `target`, and return a summary of the output.

    The output is what a cache in front of the storage passes on to it. Times are kept. Think times add up until the
    next miss. `cache` is a size ("64MiB") or a number of blocks. `policy` is a replacement that does not need the
    future, with its keys: "lru", "2q:kin=0.3". `to` is "csv" or "oracleGeneral". Other arguments are those of
    `trace_info`.

    Raises:
        HeadstartError: As for `trace_info`, the policy is unknown, or `target` cannot be written.
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
    """Write a generated trace, and return a summary of the output. The same arguments give the same trace.

    Args:
        generator: A name of `headstart list workloads`.
        target: Path of the file to write.
        to: Format of the output: "csv" or "oracleGeneral".
        keys: Keys of the generator.
        seed: Random seed.
        block_size: Block size ("8KiB"), for generators that count in blocks.
        progress: Called with the share done (0 to 1) and 0. An exception stops the function.

    Raises:
        HeadstartError: An argument is wrong, or `target` cannot be written.
    """
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

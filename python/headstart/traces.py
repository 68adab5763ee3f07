"""Traces: what one holds, conversion, generation."""

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any, cast

from headstart import _core

Info = dict[str, Any]


def trace_info(trace: str | PathLike[str], *, format: str = "auto", block_size: str = "8KiB") -> Info:
    """Return what a trace holds: requests, distinct blocks, shares, time span, and what it carries.

    With block size "object" the trace's own units are the blocks.
    """
    return cast("Info", json.loads(_core.trace_info(trace, format=format, block_size=block_size)))


def trace_convert(
    trace: str | PathLike[str],
    target: str | PathLike[str],
    *,
    to: str,
    format: str = "auto",
    block_size: str = "8KiB",
) -> Info:
    """Write `trace` to `target` in the format `to` ("csv" or "oracleGeneral"); return what was written."""
    return cast("Info", json.loads(_core.trace_convert(trace, target, to=to, format=format, block_size=block_size)))


def trace_generate(
    generator: str,
    target: str | PathLike[str],
    *,
    to: str = "csv",
    keys: Mapping[str, object] | None = None,
    seed: int = 1,
    block_size: str = "8KiB",
) -> Info:
    """Write what `generator` makes of its `keys` and `seed` to `target`; return what was written."""
    written = _core.trace_generate(
        generator, target, to=to, keys=json.dumps(dict(keys or {})), seed=seed, block_size=block_size
    )
    return cast("Info", json.loads(written))

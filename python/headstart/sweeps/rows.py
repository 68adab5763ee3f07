"""One run as one row: the scalar figures of its result, or its error.

A row is a dictionary of plain values, which is passed between processes, to a cluster, and to a line of a part file.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from headstart._core import HeadstartError, __version__, without_credentials
from headstart.simulation import Result, Traces, simulate

RESPONSE = ("mean", "p50", "p90", "p99", "max")
LAST = ("error", "trace_sha256", "version", "schema")
"""The last columns of each row."""
FIGURES = tuple(
    name
    for name, field in Result.__dataclass_fields__.items()
    # Fields that do not compare, the cost of Python policies, are not part of the simulated run and differ each time.
    if field.type in (int, "int") and field.compare and name not in ("schema", "seed")
) + tuple(f"response_ns_{name}" for name in RESPONSE)
"""Columns of whole numbers; null where the run has failed."""


def run(
    scenario: Mapping[str, Any],
    overrides: tuple[str, ...],
    *,
    trace: str | None,
    local: str | None,
    traces: Traces,
    progress: Callable[[float, int], object] | None = None,
) -> dict[str, Any]:
    """Run one case; `local` is the path of `trace` on this machine, if that differs from its name."""
    if local is not None and local != trace:
        overrides = (*overrides, f"workload.trace={json.dumps(local, ensure_ascii=False)}")
    try:
        result = simulate(scenario, overrides=overrides, traces=traces, progress=progress)
    except HeadstartError as error:
        text = str(error)
        if local is not None and trace is not None:
            # The message must not depend on the file's location.
            text = text.replace(local, trace)
        return failed(text)
    row: dict[str, Any] = {name: getattr(result, name) for name in ("seed", *FIGURES) if hasattr(result, name)}
    row.update({f"response_ns_{name}": result.response_ns[name] for name in RESPONSE})  # type: ignore[literal-required]
    return {
        **row,
        "error": None,
        "trace_sha256": result.trace_sha256,
        "version": result.version,
        "schema": result.schema,
    }


def failed(error: str) -> dict[str, Any]:
    """Return the row of a run that has failed."""
    return {"error": without_credentials(error), "version": __version__}

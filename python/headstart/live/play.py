"""Replays of traces against live Network Block Device (NBD) servers (docs/play.md).

    played = headstart.playing.play_trace("trace.csv.xz", "nbd://localhost/disk", arrival="open")
    played.response_ns["p99"]

Times are whole nanoseconds. The core does the work without the GIL.
"""

import dataclasses
import json
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, Self, TypedDict

from headstart import _core
from headstart._input import whole
from headstart.results import Response
from headstart.trace import select_json

Progress = Callable[[float, int], object]
"""Called with the share done, 0 to 1, and the number of requests replied to."""


class PlayedProcess(TypedDict):
    """One process of the trace."""

    pid: int
    requests: int
    elapsed_ns: int
    compute_ns: int
    stall_ns: int
    response_ns_mean: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Played:
    """The result of a replay; docs/play.md describes each field."""

    schema: int
    version: str
    to: str
    export_bytes: int
    trace: str
    trace_sha256: str
    arrival: str
    processes_of: str
    writes_as: str
    addresses: str
    speed: float
    depth: int
    connections: int
    notes: list[str]
    elapsed_ns: int
    compute_ns: int
    stall_ns: int
    idle_ns: int
    requests: int
    writes: int
    errors: int
    bytes_read: int
    bytes_written: int
    throughput_bytes_per_s: int
    response_ns: Response
    read_response_ns: Response
    write_response_ns: Response
    late_ns: Response
    processes: list[PlayedProcess]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the result that `text` holds."""
        return cls(**json.loads(text))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as the command's JSON has it."""
        return dataclasses.asdict(self)


def play_trace(
    trace: str | PathLike[str],
    to: str,
    *,
    format: str = "auto",
    request_size: str | None = None,
    arrival: Literal["closed", "open"] = "closed",
    compute: str = "trace",
    speed: float = 1.0,
    depth: int | None = None,
    processes: Literal["merged", "per-pid"] = "merged",
    limit: int | None = None,
    writes: Literal["as-read", "skip", "write"] = "as-read",
    addresses: Literal["error", "wrap"] = "error",
    connections: int = 1,
    seed: int = 1,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Played:
    """Replay a trace against the export of a live server, and measure each request.

    Args:
        trace: The trace.
        to: The server: `nbd://HOST[:PORT][/EXPORT]` or `nbd+unix:///[EXPORT]?socket=PATH`; `nbds` for `nbd` over TLS.
        format: The trace's format: a name of `headstart list formats`.
        request_size: Size of a request, for a trace that has offsets but no sizes.
        arrival: "closed": after the reply to the last request and a think time; "open": at the trace's times.
        compute: Think times of closed arrivals: "trace", "gaps", a time, or "exp:" and a time.
        speed: Divides arrival times and think times.
        depth: Maximum requests in flight: per process if closed (default 1), in total if open (default 1024).
        processes: "merged": one process sends all requests; "per-pid": the trace's processes run concurrently.
        limit: Maximum number of requests.
        writes: "as-read", "skip", or "write", which overwrites data of the export.
        addresses: Handling of addresses beyond the export's end: "error" or "wrap".
        connections: Connections to the server.
        seed: Random seed of think times.
        path: Only requests to files that fit one of these globs.
        pid: Only requests of these processes or threads.
        process: Only requests of processes of these names, or globs of them.
        progress: Called about 10 times a second; an exception that it raises ends the replay.

    Raises:
        HeadstartError: A setting is wrong, the trace does not fit, or the server cannot be reached or disconnects.
    """
    for what, number in (("depth", depth), ("connections", connections)):
        whole(what, number, 1, most=1 << 16)
    whole("limit", limit, 1)
    whole("seed", seed)
    text = _core.play_trace(
        trace,
        to,
        format=format,
        request_size=request_size,
        arrival=arrival,
        compute=compute,
        speed=speed,
        depth=depth,
        processes=processes,
        limit=limit,
        writes=writes,
        addresses=addresses,
        connections=connections,
        seed=seed,
        select=select_json(path, pid, process),
        on_progress=progress,
    )
    return Played.from_json(text)

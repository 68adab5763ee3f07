"""Replays of traces against live Network Block Device (NBD) servers (docs/play.md).

    played = headstart.playing.play_trace("trace.csv.xz", "nbd://localhost/disk", arrival="open")
    played.response_ns["p99"]

Times are whole nanoseconds. The core does the work without the GIL.
"""

from collections.abc import Callable
from os import PathLike
from typing import Unpack

from headstart.live.core import Record, command, told
from headstart.live.options import Play

Progress = Callable[[float, int], object]
"""Called with the share done, 0 to 1, and the number of requests replied to."""


def play_trace(
    trace: str | PathLike[str], to: str, *, progress: Progress | None = None, **options: Unpack[Play]
) -> Record:
    """Replay a trace against the export of a live server, and measure each request.

    Args:
        trace: Path of a trace.
        to: The server: `nbd://HOST[:PORT][/EXPORT]` or `nbd+unix:///[EXPORT]?socket=PATH`; `nbds` is `nbd` over TLS.
        progress: Called up to 50 times a second with the share done (0 to 1) and the number of replies. An exception
            ends the replay.
        **options: Options of `headstart play`.

    Returns:
        The report (docs/play.md), with times in nanoseconds.

    Raises:
        HeadstartError: An option is wrong, the trace does not fit, or the server cannot be reached or disconnects.
    """
    return command("play", {"trace": trace, "to": to, **options}, told(progress))

"""A block server for NBD clients, with the simulator's levels in front of storage (docs/serve.md). Linux only.

    level = {"size": "64MiB", "policy": "linux"}
    ended = headstart.serve("disk.img", level=level, progress=lambda now: now["elapsed_ns"] > 60e9)
    ended["exports"][0]["level"]["hits_ready"]

The core does the work without the GIL.
"""

from collections.abc import Callable
from os import PathLike
from typing import Unpack

from headstart.live.core import Record, command
from headstart.live.options import Serve


def serve(
    backing: str | PathLike[str] | None = None,
    *,
    progress: Callable[[Record], object] | None = None,
    **options: Unpack[Serve],
) -> Record:
    """Serve storage to NBD clients through a simulated cache level, until `progress` returns a true value.

    Args:
        backing: Storage of the default export: a file, a block device, or a form that docs/serve.md lists.
        progress: Called with the report so far once clients can connect, and then 10 times a second. A true return
            value or an exception stops the server. Requests received by then are answered.
        **options: Options of `headstart serve`. `level` has the keys of a scenario's `[[level]]`: size, policy,
            replacement, coordinator.

    Returns:
        The final report (docs/serve.md).

    Raises:
        HeadstartError: An option is wrong, or the system refuses a file or an address.
    """
    return command("serve", {"backing": backing, **options}, progress)

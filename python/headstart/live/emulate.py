"""Emulated disks: a file whose reads take as long as on a simulated drive (docs/emulate.md). Linux only.

    ended = headstart.emulate("ibm-36gb-10k", "disk.img", "/mnt/emulated", progress=lambda now: now.requests >= 1000)
    ended.lateness_ns.p99

Times are whole nanoseconds, sizes bytes. The core does the work without the GIL.
"""

from collections.abc import Callable
from os import PathLike
from typing import Unpack

from headstart.live.core import Record, command
from headstart.live.options import Emulate


class Ended(Record):
    """The end of an emulation: its statistics, and whether the mount was in use or covered."""

    @property
    def statistics(self) -> Record:
        """The statistics."""
        return self


def emulate(
    profile: str | PathLike[str],
    image: str | PathLike[str],
    mount: str | PathLike[str],
    *,
    progress: Callable[[Record], object] | None = None,
    **options: Unpack[Emulate],
) -> Ended:
    """Provide `image` as `disk.img` in the folder `mount`, with a drive's service times, until it is unmounted.

    `profile` is a name of `headstart list devices` or the path of a profile; `keys` override its own. `progress` is
    called once the file is mounted and 10 times a second. A true return value or an exception unmounts the file.

    Raises:
        HeadstartError: An argument is wrong, or the mount fails; then nothing is mounted.
    """
    return Ended(command("emulate", {"profile": profile, "image": image, "mount": mount, **options}, progress))

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
    """The final report of an emulation (docs/emulate.md)."""

    @property
    def statistics(self) -> Record:
        """The statistics until the end."""
        return self


def emulate(
    profile: str | PathLike[str],
    image: str | PathLike[str],
    mount: str | PathLike[str],
    *,
    progress: Callable[[Record], object] | None = None,
    **options: Unpack[Emulate],
) -> Ended:
    """Provide an image as a file whose reads take as long as on a simulated drive, until it is unmounted.

    Args:
        profile: A name of `headstart list devices`, or the path of a profile.
        image: The disk's contents: a file or a block device. It is only read.
        mount: An empty folder, in which the emulated disk appears as the file `disk.img`.
        progress: Called with the statistics (docs/emulate.md) once the file is mounted and 10 times a second. A true
            return value or an exception unmounts the file.
        **options: Options of `headstart emulate`.

    Raises:
        HeadstartError: An argument is wrong, or the mount fails. Nothing is mounted then.
    """
    return Ended(command("emulate", {"profile": profile, "image": image, "mount": mount, **options}, progress))

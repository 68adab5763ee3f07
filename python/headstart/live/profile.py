"""Measured devices: seek curve, rotation, rates by place and useful concurrency, and a model (docs/profile.md). Linux.

    found = headstart.profile("/dev/sdb")
    found.arm.mean_seek_ns, found.arm.competitive_depth_bytes
    Path("sdb.toml").write_text(found.profile)

The device is read, directly (O_DIRECT), and never written; a URL names an object, which is read by ranges. Times are
whole nanoseconds, sizes bytes, rates bytes a second. The core does the work without the GIL.
"""

from collections.abc import Callable
from os import PathLike
from typing import Unpack

from headstart.live.core import Record, command, told
from headstart.live.options import Profile


def is_object(device: str) -> bool:
    """Return whether this is the URL of an object."""
    return "://" in device


def profile(
    device: str | PathLike[str],
    *,
    progress: Callable[[float, str], object] | None = None,
    **options: Unpack[Profile],
) -> Record:
    """Measure the block device or file `device`, or the object at a URL, for about `time_s`.

    `options` are those of `headstart profile`, and `name`, which is written into the profile; the default is the file's
    name. `progress` is called 10 times a second with the share done, 0 to 1, and the current step; an exception that it
    raises ends the measurement.

    Raises:
        HeadstartError: The device has no direct I/O, stops responding, is too small, or has inconclusive times.
    """
    return command("profile", {"device": device, **options}, told(progress))

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
    """Measure a device and write a profile of it, which simulations can use.

    Args:
        device: A block device, a file, or the URL of an object. It is only read.
        progress: Called 10 times a second with the share done (0 to 1) and the current step. An exception ends the
            measurement.
        **options: Options of `headstart profile`, and `name`, the device's name in the profile.

    Returns:
        The report (docs/profile.md): the measured properties, and `profile`, the profile as TOML.

    Raises:
        HeadstartError: The device has no direct I/O, stops responding, is too small, or has inconclusive times.
    """
    return command("profile", {"device": device, **options}, told(progress))

"""Show, set, restore and adapt the read-ahead of real devices (docs/tune.md). Linux only.

    report = tuning.show("/dev/sda", profile="my-drive.toml")
    report.now_kb, report.proposed.kb
    tuning.apply("/dev/sda", profile="my-drive.toml")
    tuning.restore("/dev/sda")
    tuning.watch("/dev/sda", profile="my-drive.toml", duration="1h")

Numbers of the kernel are KiB (`_kb`), other sizes bytes, times whole nanoseconds. The core works without the GIL.
"""

from collections.abc import Callable
from os import PathLike
from typing import Unpack

from headstart.live.core import Record, command
from headstart.live.options import Tune

Path = str | PathLike[str]


def show(device: Path, **options: Unpack[Tune]) -> Record:
    """Return a device's read-ahead beside the competitive depth of `profile`, or beside `depth` ("400KiB").

    `device` is a block device, or a path on the file system whose backing device it is. `profile` is a name of
    `headstart list devices` or the path of a profile; `keys` override its own. More than 16 MiB is probably a mistake
    and requires `force`. The function changes nothing and does not require root.

    Raises:
        HeadstartError: An argument is wrong, or there is no such device.
    """
    return command("tune", {"device": device, "dry_run": True, **options})


def apply(device: Path, **options: Unpack[Tune]) -> Record:
    """Write the depth that `show` proposes; `state` keeps the value from before the first call.

    Raises:
        HeadstartError: As `show`; the caller is not root; the device is watched. The value is then unchanged.
    """
    return command("tune", {"device": device, "apply": True, **options})


def restore(device: Path, **options: Unpack[Tune]) -> Record:
    """Write the value from before the first `apply`; with `force` even if another program has changed it since.

    Raises:
        HeadstartError: The caller is not root; the device is watched; another program has changed the value. The value
            is then unchanged.
    """
    return command("tune", {"device": device, "restore": True, **options})


def watch(device: Path, *, progress: Callable[[Record], object] | None = None, **options: Unpack[Tune]) -> Record:
    """Adapt a device's read-ahead to its seeks for `duration` ("1h"); then restore the original value.

    `openmetrics` names a file for the status, which is replaced every second. `progress` is called at once and 10 times
    a second; a true return value or an exception ends the watch. A process that is killed leaves its value behind. The
    next `watch`, `apply` or `restore` of the device restores the original value.

    Raises:
        HeadstartError: As `apply`; the device has no requests that can be followed, or there is no tracefs.
    """
    return command("tune-watch", {"device": device, "watch": True, **options}, progress)

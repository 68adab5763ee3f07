"""Show, set, restore and adapt the read-ahead of real devices (docs/tune.md). Linux only.

    report = tuning.show("/dev/sda", profile="my-drive.toml")
    report.now_kb, report.proposed.kb
    tuning.apply("/dev/sda", profile="my-drive.toml")
    tuning.restore("/dev/sda")
    tuning.watch("/dev/sda", profile="my-drive.toml", duration="1h")

Numbers of the kernel are KiB (`_kb`), other sizes bytes, times whole nanoseconds. The core works without the GIL.
"""

import dataclasses
import json
import os
from collections.abc import Callable
from os import PathLike
from typing import Any, Literal, Self

from headstart import _core
from headstart.devices import Keys

Path = str | PathLike[str]
DEFAULT_STATE = _core.TUNE_STATE
"""The default file for the original values."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """A backing device, which has its own read-ahead setting."""

    path: str
    """As given by the caller."""
    number: str
    """The device's number, such as "7:0"."""
    name: str | None
    """The kernel's name; `None` for a file system without a block device."""
    kind: Literal["disk", "loop", "stacked", "file-system"]
    partition: str | None
    """The partition given, or the partition that holds the path."""
    made_of: list[str]
    """The devices to which a stacked device passes requests."""
    size_bytes: int | None
    identity: str | None
    """A serial number or similar; the file of a loop device; the source of a FUSE or NFS mount."""
    rotational: bool | None
    """Whether the device reports that it is rotational; `None` if it does not report this."""
    maker: str | None
    """Maker and model, if the device reports them."""
    part_of: list[str]
    """The devices that are built on it or on a partition of it."""
    sequence: int | None
    """Counts media since the boot."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Depth:
    """The proposed read-ahead, and how it was computed."""

    profile: str | None
    """`None` if the depth was given, as are the times and the rate."""
    bytes: float
    """Not rounded."""
    pages: int
    page_bytes: int
    kb: int
    """Whole pages, in KiB."""
    seek_ns: int | None
    half_turn_ns: int | None
    bytes_per_second: float | None
    profile_bytes: int | None
    saturating_bytes: int | None
    """Without an arm: the smallest size with which one read at a time reaches within 5 % of the highest rate."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Process:
    """A process; its start time distinguishes it from others with the same number."""

    pid: int
    start_ticks: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """The original, proposed and written values; docs/tune.md describes each field."""

    schema: int
    version: str
    action: Literal["dry-run", "apply", "restore"]
    device: Device
    found_kb: int
    now_kb: int
    proposed: Depth | None
    old_kb: int | None
    watcher: Process | None
    state: str
    notes: list[str]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the report that the core wrote."""
        fields = json.loads(text)
        proposed, watcher = fields["proposed"], fields["watcher"]
        typed = {
            "device": Device(**fields["device"]),
            "proposed": None if proposed is None else Depth(**proposed),
            "watcher": None if watcher is None else Process(**watcher),
        }
        return cls(**{**fields, **typed})

    def to_dict(self) -> dict[str, Any]:
        """Return it as `headstart tune --json` prints it."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Status:
    """The statistics of a watch; docs/tune.md describes each field."""

    schema: int
    version: str
    device: Device
    profile: str
    elapsed_ns: int
    requests: int
    switches: int
    lost: int
    seek_ns: int
    bytes_per_second: float
    bytes: float
    writes: int
    read_arounds: int
    around_bytes: int
    around_used_bytes: int
    lost_faults: int
    fault_pauses: int
    low_for_faults: bool
    half_turn_ns: int
    found_kb: int
    now_kb: int
    lowest_kb: int | None
    highest_kb: int | None
    ended: Literal["stopped", "time", "gone", "changed"] | None
    notes: list[str]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the status that the core wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "device": Device(**fields["device"])})

    def to_dict(self) -> dict[str, Any]:
        """Return it as `headstart tune --watch --json` prints it."""
        return dataclasses.asdict(self)


def show(
    device: Path,
    *,
    profile: Path | None = None,
    keys: Keys | None = None,
    depth: str | None = None,
    force: bool = False,
    state: Path | None = None,
) -> Report:
    """Return a device's read-ahead beside the competitive depth of `profile`, or beside `depth` ("400KiB").

    `device` is a block device, or a path on the file system whose backing device it is. `profile` is a name of
    `headstart list devices` or the path of a profile; `keys` override its own. More than 16 MiB is probably a mistake
    and requires `force`. The function changes nothing and does not require root.

    Raises:
        HeadstartError: An argument is wrong, or there is no such device.
    """
    return _tune("dry-run", device, profile=profile, keys=keys, depth=depth, force=force, state=state)


def apply(
    device: Path,
    *,
    profile: Path | None = None,
    keys: Keys | None = None,
    depth: str | None = None,
    force: bool = False,
    state: Path | None = None,
) -> Report:
    """Write the depth that `show` proposes; `state` keeps the value from before the first call.

    Raises:
        HeadstartError: As `show`; the caller is not root; the device is watched. The value is then unchanged.
    """
    return _tune("apply", device, profile=profile, keys=keys, depth=depth, force=force, state=state)


def restore(device: Path, *, force: bool = False, state: Path | None = None) -> Report:
    """Write the value from before the first `apply`; with `force` even if another program has changed it since.

    Raises:
        HeadstartError: The caller is not root; the device is watched; another program has changed the value. The value
            is then unchanged.
    """
    return _tune("restore", device, force=force, state=state)


def watch(
    device: Path,
    *,
    profile: Path,
    keys: Keys | None = None,
    duration: str | None = None,
    openmetrics: Path | None = None,
    force: bool = False,
    state: Path | None = None,
    progress: Callable[[Status], object] | None = None,
) -> Status:
    """Adapt a device's read-ahead to its seeks for `duration` ("1h"); then restore the original value.

    `openmetrics` names a file for the status, which is replaced every second. `progress` is called at once and 10 times
    a second; a true return value or an exception ends the watch. A process that is killed leaves its value behind. The
    next `watch`, `apply` or `restore` of the device restores the original value.

    Raises:
        HeadstartError: As `apply`; the device has no requests that can be followed, or there is no tracefs.
    """
    tell = None if progress is None else lambda text: progress(Status.from_json(text))
    metrics = None if openmetrics is None else os.fspath(openmetrics)
    more = {"profile": profile, "duration": duration, "openmetrics": metrics, "force": force}
    asked = question(device, keys=keys, state=state, **more)
    return Status.from_json(_core.tune_watch(asked, on_progress=tell))


def question(device: Path, *, keys: Keys | None, state: Path | None, **more: Any) -> str:
    """Return the arguments for the core, without those that are `None`."""
    asked = {
        "device": os.fspath(device),
        "keys": None if keys is None else dict(keys),
        "state": None if state is None else os.fspath(state),
        **more,
    }
    return json.dumps({key: value for key, value in asked.items() if value is not None}, default=os.fspath)


def _tune(action: str, device: Path, *, keys: Keys | None = None, state: Path | None, **more: Any) -> Report:
    return Report.from_json(_core.tune(action, question(device, keys=keys, state=state, **more)))

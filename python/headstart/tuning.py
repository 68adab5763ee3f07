"""Read-ahead of real devices: what it is, what it should be, set, taken back, and followed (docs/tune.md). Linux.

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
"""Where what was found is kept, unless the caller names another file."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """A backing device: what has a read-ahead of its own."""

    path: str
    """As it was named."""
    number: str
    """The device's number, such as "7:0"."""
    name: str | None
    """The kernel's name; `None` for a file system without a block device."""
    kind: Literal["disk", "loop", "stacked", "file-system"]
    partition: str | None
    """The partition that was named, or on which what was named lies."""
    made_of: list[str]
    """The devices that a stacked one hands requests on to."""
    size_bytes: int | None
    identity: str | None
    """A serial number or the like; of a loop device its file; of FUSE and NFS what is mounted."""
    rotational: bool | None
    """What it says of rotation; `None` where it says nothing."""
    maker: str | None
    """Maker and model, as far as it says."""
    part_of: list[str]
    """The devices that are made of it, or of a partition of it."""
    sequence: int | None
    """Counts media since the boot."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Depth:
    """What the read-ahead should be, and what that comes from."""

    profile: str | None
    """`None` where the depth was given, as the times and the rate."""
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
    """Of a device without an arm: from this size on one read at a time transfers within 5 % of the most."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Process:
    """A process, told from others of its number by when it started."""

    pid: int
    start_ticks: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What was found, proposed and written; docs/tune.md describes each field."""

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
    """What a watch has seen and done; docs/tune.md describes each field."""

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
    `headstart list devices` or the path of a profile, `keys` are laid over its own. More than 16 MiB is a slip most
    likely, and takes `force`. Nothing is changed; needs no root.

    Raises:
        HeadstartError: A mistake of the caller, or there is no such device.
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
    """Write what `show` proposes; `state` keeps what was found before the first time.

    Raises:
        HeadstartError: As `show`; not root; the device is watched. Then the number is as it was.
    """
    return _tune("apply", device, profile=profile, keys=keys, depth=depth, force=force, state=state)


def restore(device: Path, *, force: bool = False, state: Path | None = None) -> Report:
    """Write what was found before the first `apply`; with `force` even if another program has changed it since.

    Raises:
        HeadstartError: Not root; the device is watched, or another program has changed it. It is then left unchanged.
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
    """Set a device's read-ahead by what its arm does, until `duration` ("1h") is over; then write what was found.

    `openmetrics` names a file that holds the status, new every second. `progress` is called at once and 10 times a
    second; returning what is true ends it, and so does an exception. A process that is killed leaves its number behind:
    the next `watch`, `apply` or `restore` of the device writes what it had found.

    Raises:
        HeadstartError: As `apply`; the device has no requests that could be followed, or there is no tracefs.
    """
    tell = None if progress is None else lambda text: progress(Status.from_json(text))
    metrics = None if openmetrics is None else os.fspath(openmetrics)
    more = {"profile": profile, "duration": duration, "openmetrics": metrics, "force": force}
    asked = question(device, keys=keys, state=state, **more)
    return Status.from_json(_core.tune_watch(asked, on_progress=tell))


def question(device: Path, *, keys: Keys | None, state: Path | None, **more: Any) -> str:
    """Return what the core takes: what is `None` is not there."""
    asked = {
        "device": os.fspath(device),
        "keys": None if keys is None else dict(keys),
        "state": None if state is None else os.fspath(state),
        **more,
    }
    return json.dumps({key: value for key, value in asked.items() if value is not None}, default=os.fspath)


def _tune(action: str, device: Path, *, keys: Keys | None = None, state: Path | None, **more: Any) -> Report:
    return Report.from_json(_core.tune(action, question(device, keys=keys, state=state, **more)))

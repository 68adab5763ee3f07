"""Emulated disks: a file whose reads take as long as on a simulated drive (docs/emulate.md). Linux only.

    ended = headstart.emulate("ibm-36gb-10k", "disk.img", "/mnt/emulated", progress=lambda now: now.requests >= 1000)
    ended.statistics.lateness_ns.p99

Times are whole nanoseconds, sizes bytes. The core does the work without the GIL.
"""

import dataclasses
import json
from collections.abc import Callable
from os import PathLike, fspath
from typing import Any, Self

from headstart import _core
from headstart.devices import Keys


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spread:
    """A distribution of times."""

    count: int
    mean: int
    p50: int
    p99: int
    max: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Statistics:
    """Statistics of an emulated disk since it was mounted; docs/emulate.md describes each field."""

    schema: int
    version: str
    profile: str
    scheduler: str
    image: str
    image_bytes: int
    capacity_bytes: int | None
    """`None` where the device has no limit."""
    elapsed_ns: int
    requests: int
    device_requests: int
    bytes: int
    sequential: int
    sequential_share: float
    buffer_hits: int
    busy_ns: int
    utilization: float
    seek_ns: int
    rotation_ns: int
    transfer_ns: int
    overhead_ns: int
    wait_ns: int
    service_ns: int
    queue_ns: int
    response_ns: int
    outstanding: int
    queue_depth_max: int
    failed: int
    lateness_ns: Spread
    real_time: bool
    fuse_round_trip_ns: int | None
    """`None` if it could not be measured."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the statistics that the core wrote, in the mount's file `stats` too."""
        fields = json.loads(text)
        return cls(**{**fields, "lateness_ns": Spread(**fields["lateness_ns"])})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of an emulation."""

    statistics: Statistics
    was_in_use: bool
    """Whether processes still had its files open. They get I/O errors from now on."""
    was_covered: bool
    """Whether another file system was mounted on it. Both mounts stay, and its files give I/O errors from now on."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as `headstart emulate --json` prints it."""
        return {**dataclasses.asdict(self.statistics), "was_in_use": self.was_in_use, "was_covered": self.was_covered}


def emulate(
    profile: str | PathLike[str],
    image: str | PathLike[str],
    mount: str | PathLike[str],
    *,
    keys: Keys | None = None,
    scheduler: str = "fcfs",
    progress: Callable[[Statistics], object] | None = None,
) -> Ended:
    """Provide `image` as `disk.img` in the folder `mount`, with a drive's service times, until it is unmounted.

    `profile` is a name of `headstart list devices` or the path of a profile; `keys` override its own. `progress` is
    called once the file is mounted and 10 times a second. A true return value or an exception unmounts the file.

    Raises:
        HeadstartError: An argument is wrong, or the mount fails; then nothing is mounted.
    """
    tell = None if progress is None else lambda text: progress(Statistics.from_json(text))
    text, was_in_use, was_covered = _core.emulate(
        fspath(profile), image, mount, keys=json.dumps(dict(keys or {})), scheduler=scheduler, on_progress=tell
    )
    return Ended(statistics=Statistics.from_json(text), was_in_use=was_in_use, was_covered=was_covered)

"""Measured devices: seek curve, rotation, rates by place and useful concurrency, and a model (docs/profile.md). Linux.

    found = headstart.profile("/dev/sdb")
    found.arm.mean_seek_ns, found.arm.competitive_depth_bytes
    Path("sdb.toml").write_text(found.profile)

The device is read, directly (O_DIRECT), and never written; a URL names an object, which is read by ranges. Times are
whole nanoseconds, sizes bytes, rates bytes a second. The core does the work without the GIL.
"""

import dataclasses
import json
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from headstart import _core
from headstart._input import whole

TIME_S = 60.0
"""Default duration of a measurement."""
LONGEST_S = 110


@dataclasses.dataclass(frozen=True, kw_only=True)
class Latency:
    """Median times of reads of 4 KiB."""

    near_ns: int
    """At most 1 MiB before the one before."""
    far_ns: int
    """Anywhere."""
    buffered_ns: int | None
    """A repeated read from the device's buffer; `None` if the device reads the medium again or has no arm."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """Random reads of one size, with a constant number outstanding."""

    request_bytes: int
    depth: int
    reads: int
    requests_per_s: float
    bytes_per_s: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seek:
    """The seek over a distance."""

    tracks: int
    ns: int
    reads: int
    """Number of reads."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZoneRate:
    """A run of sectors (of 512 bytes) whose tracks are alike."""

    first_sector: int
    sectors: int
    sectors_per_track: int
    bytes_per_s: int
    """Of a long read."""
    bus_bound: bool
    """The bus keeps it from being faster."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arm:
    """A drive with an arm."""

    turn_ns: int
    turn_error_ns: int
    """Error at 95 % confidence, like the other errors."""
    rpm: int
    turn_fit: float
    """Fit of the reads' end times to that rotation time, 0 to 1."""
    overhead_ns: int
    """Time of a read besides arm, media and bus."""
    overhead_error_ns: int
    bus_bytes_per_s: int | None
    """`None` if no reads are served from a buffer."""
    bus_error_bytes_per_s: int | None
    segments: int
    """Number of places that the buffer keeps, at most 64; 0 without a buffer."""
    zones: tuple[ZoneRate, ...]
    """Outermost first."""
    seeks: tuple[Seek, ...]
    """By distance."""
    mean_seek_ns: int
    """Between two places drawn evenly."""
    mean_seek_error_ns: int
    mean_bytes_per_s: int
    """Of a long read: the mean over all places."""
    mean_error_bytes_per_s: int
    competitive_depth_bytes: int
    """Data transferred in the time of a mean seek and half a rotation."""
    competitive_depth_error_bytes: int
    competitive_depth_pages: int
    """Whole pages of 4 KiB, at least one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameter:
    """A number of the model of a device."""

    name: str
    """The profile's key; with an arm, what the figure is called."""
    value: float
    unit: str
    """"ns", "bytes", "bytes/s", or "" for a count."""
    error: float | None
    """How far off it may be, as the other errors; `None` where reads do not tell."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Reads of one kind that nothing was fitted to, measured and simulated: the time of one."""

    request_bytes: int
    depth: int
    places: str
    """"anywhere", "nearby" (a little before the last one) or "in-order"."""
    reads: int
    measured_ns: float
    simulated_ns: float
    chance_ns: float | None
    """How far apart chance alone may put the two, nineteen times out of twenty; `None` with several outstanding."""
    demerit: float | None
    """Root mean square distance of the distributions of times, as a share of the mean measured; `None` as above."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """The error of the model as a whole, on reads that nothing was fitted to: shares of what was measured."""

    held_out: tuple[HeldOut, ...]
    mean_error: float
    """Over the kinds of reads, regardless of sign."""
    largest_error: float
    demerit: float
    """Over those kinds that were timed read by read."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """The model that the profile holds."""

    name: str
    """"mechanical", "flash" or "object-store"."""
    parameters: tuple[Parameter, ...]
    check: Check

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Return what the core has found."""
        held_out = tuple(HeldOut(**row) for row in fields["check"]["held_out"])
        parameters = tuple(Parameter(**parameter) for parameter in fields["parameters"])
        return cls(name=fields["name"], parameters=parameters, check=Check(**{**fields["check"], "held_out": held_out}))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a measurement."""

    schema: int
    device: str
    """As the caller named it."""
    capacity_bytes: int
    elapsed_ns: int
    reads: int
    seed: int
    latency: Latency
    by_depth: tuple[Point, ...]
    """Reads of 4 KiB by the number outstanding."""
    saturating_depth: int
    """From this depth on throughput is within 5 % of the best; with an arm, 10 %."""
    arm: Arm | None
    """`None` if the time of a read does not depend on its place."""
    by_size: tuple[Point, ...]
    """Of a device without an arm: reads one at a time, by size."""
    saturating_bytes: int | None
    """Of a device without an arm: from this size on throughput is within 5 % of the best."""
    by_depth_long: tuple[Point, ...]
    """Of a device without an arm: reads of 256 KiB by how many are outstanding."""
    model: Model
    """The model of the profile, with the error of each number and of the whole."""
    notes: tuple[str, ...]
    """Remarks on these numbers."""
    profile: str
    """TOML with the origin of each number."""

    @classmethod
    def from_json(cls, device: str, text: str, profile: str) -> Self:
        """Return what the core has found."""
        fields = json.loads(text)
        arm = fields["arm"]
        if arm is not None:
            zones = tuple(ZoneRate(**zone) for zone in arm["zones"])
            fields["arm"] = Arm(**{**arm, "zones": zones, "seeks": tuple(Seek(**seek) for seek in arm["seeks"])})
        fields["latency"] = Latency(**fields["latency"])
        fields["model"] = Model.from_fields(fields["model"])
        for points in ("by_depth", "by_size", "by_depth_long"):
            fields[points] = tuple(Point(**point) for point in fields[points])
        return cls(**{**fields, "notes": tuple(fields["notes"]), "device": device, "profile": profile})

    def to_dict(self) -> dict[str, Any]:
        """Return it as `headstart profile --json` prints it."""
        return {"version": _core.__version__, **dataclasses.asdict(self)}


def is_object(device: str) -> bool:
    """Return whether this is the URL of an object."""
    return "://" in device


def profile(
    device: str | PathLike[str],
    *,
    time_s: float = TIME_S,
    seed: int = 1,
    name: str | None = None,
    progress: Callable[[float, str], object] | None = None,
) -> Found:
    """Measure the block device or file `device`, or the object at a URL, for about `time_s`.

    `seed` is that of the places that are read. `name` is written into the profile; the default is the file's name.
    `progress` is called 10 times a second with the share done, 0 to 1, and the current step; an exception that it
    raises ends the measurement.

    Raises:
        HeadstartError: The device has no direct I/O, stops responding, is too small, or has inconclusive times.
    """
    if not 1 <= time_s <= LONGEST_S:
        raise _core.HeadstartError(f"time: {time_s:g} s; allowed: from 1 to {LONGEST_S} s")
    whole("seed", seed)
    path = fspath(device)
    text, toml = _core.profile(
        path, name=name or Path(path).name, time_ns=round(time_s * 1e9), seed=seed, on_progress=progress
    )
    return Found.from_json(path, text, toml)

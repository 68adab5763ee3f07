"""Devices: what one is made of and how it answers.

    drive = headstart.device("hp97560")
    drive.capacity_bytes, drive.mechanics.seek_ns.mean, drive.random_read_8kib.mean_ns

A device is named by its row of `headstart list devices`, or by the path of a profile. Times are whole nanoseconds,
sizes bytes, rates bytes a second. The core does the work without the GIL.
"""

import dataclasses
import json
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any, Self

from headstart import _core

SCHEMA = 1
"""Version of the shape of `Device.to_dict()`."""

Keys = Mapping[str, object]
"""Keys laid over a device's own, nested as in its profile: `{"buffer": {"size": "1MiB"}}`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeekTimes:
    """Times of a read's seek; `None` where the drive has one cylinder."""

    single_cylinder: int | None
    mean: int
    """Between two cylinders drawn evenly and apart from each other."""
    full_stroke: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Zone:
    """Cylinders with the same number of sectors a track."""

    first_sector: int
    sectors: int
    first_cylinder: int
    cylinders: int
    sectors_per_track: int
    bytes_per_s: int
    """Of a long sequential read, switches of heads and cylinders included."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mechanics:
    """What a drive with an arm is made of."""

    rpm: int
    revolution_ns: int
    cylinders: int
    surfaces: int
    seek_ns: SeekTimes
    head_switch_ns: int
    write_settle_ns: int
    """What a write's movement takes longer than a read's."""
    zones: tuple[Zone, ...]
    """Outermost first."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServiceParts:
    """Mean service time of requests that come one at a time, and the parts that it is the sum of."""

    requests: int
    """How many were simulated."""
    mean_ns: int
    seek_ns: int
    rotation_ns: int
    transfer_ns: int
    overhead_ns: int
    wait_ns: int
    """Within the device, before it began."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """What a device is made of and how it answers."""

    name: str
    """As the caller wrote it."""
    profile: str | None
    """The profile's file name where the caller named a path."""
    summary: str | None
    source: str | None
    """Where the numbers come from; `None` of a profile of one's own, which says so itself."""
    keys: dict[str, Any]
    """Every key with its value; laid over a scenario's `[device]` they give this device."""
    capacity_bytes: int | None
    """`None` where there is no limit."""
    concurrency: int
    """Requests that it serves at once."""
    nominal_service_ns: int
    mechanics: Mechanics | None
    """`None` where nothing moves."""
    random_read_8kib: ServiceParts
    sequential_bytes_per_s: dict[str, int]
    """Of long reads: `outer` and `inner` zone, or of 1 MiB reads `one_at_a_time` and `all_in_parallel`."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the device that the core described."""
        fields = json.loads(text)
        mechanics = fields["mechanics"]
        if mechanics is not None:
            zones = tuple(Zone(**zone) for zone in mechanics["zones"])
            fields["mechanics"] = Mechanics(
                **{**mechanics, "seek_ns": SeekTimes(**mechanics["seek_ns"]), "zones": zones}
            )
        fields["random_read_8kib"] = ServiceParts(**fields["random_read_8kib"])
        return cls(**fields)

    @property
    def title(self) -> str:
        """The name that the profile gives, or else the one that the caller gave."""
        return str(self.keys.get("name", self.name))

    def to_dict(self) -> dict[str, Any]:
        """Return the device as `headstart device show --json` prints it."""
        return {"schema": SCHEMA, "version": _core.__version__, **dataclasses.asdict(self)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    """The curves of a device's picture. A device with an arm has the first two, others the last two."""

    seek: tuple[dict[str, int], ...] = ()
    """`distance_cylinders`, `ns`; by distance."""
    zones: tuple[Zone, ...] = ()
    by_size: tuple[dict[str, Any], ...] = ()
    """Random reads: `name` of the series, `request_bytes`, `depth`, `response_ns_mean`, `response_ns_p99`,
    `requests_per_s`, `bytes_per_s`."""
    by_depth: tuple[dict[str, Any], ...] = ()
    """The same of random 4 KiB reads and writes, by queue depth."""


def device(name: str | PathLike[str], *, keys: Keys | None = None) -> Device:
    """Return what a device is made of and how it answers; `keys` are laid over its own.

    Raises:
        HeadstartError: No such device, or its profile or a key is at fault.
    """
    return Device.from_json(_core.device_show(fspath(name), keys=_text(keys)))


def survey(name: str | PathLike[str], *, keys: Keys | None = None) -> Survey:
    """Return the curves of a device's picture: seek time by distance and rates by place, or response by load.

    Raises:
        HeadstartError: As for `device`.
    """
    found = json.loads(_core.device_survey(fspath(name), keys=_text(keys)))
    found["zones"] = [Zone(**zone) for zone in found.get("zones", ())]
    return Survey(**{curve: tuple(points) for curve, points in found.items()})


def _text(keys: Keys | None) -> str:
    try:
        return json.dumps(dict(keys or {}), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _core.HeadstartError(f"keys: {error}; allowed: text, numbers, lists and tables") from error

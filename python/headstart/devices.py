"""Devices: properties, service times, and replays of a trace.

    drive = headstart.device("hp97560")
    drive.capacity_bytes, drive.mechanics.seek_ns.mean, drive.random_read_8kib.mean_ns
    replay = headstart.devices.replay("seagate-cheetah-9lp", "cheetah9LP.trace.xz")
    replay.modelled.reads.p99_ns, replay.rms_demerit_ns["all"]

A device is named by its row of `headstart list devices`, or by the path of a profile. Times are whole nanoseconds,
sizes bytes, rates bytes a second. The core does the work without the GIL.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

from headstart import _core, _input
from headstart.simulation import Progress
from headstart.trace import select_json

SCHEMA = 1
"""Version of the shape of `Device.to_dict()`."""

Keys = Mapping[str, object]
"""Keys that override a device's own, nested as in its profile: `{"buffer": {"size": "1MiB"}}`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeekTimes:
    """Times of a read's seek; `None` if the drive has one cylinder."""

    single_cylinder: int | None
    mean: int
    """Mean over pairs of different cylinders, drawn uniformly."""
    full_stroke: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Zone:
    """Cylinders with the same number of sectors per track."""

    first_sector: int
    sectors: int
    first_cylinder: int
    cylinders: int
    sectors_per_track: int
    bytes_per_s: int
    """Rate of a long sequential read, including head and cylinder switches."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mechanics:
    """Mechanical properties of a drive with an arm."""

    rpm: int
    revolution_ns: int
    cylinders: int
    surfaces: int
    seek_ns: SeekTimes
    head_switch_ns: int
    write_settle_ns: int
    """Additional seek time of a write compared with a read."""
    zones: tuple[Zone, ...]
    """Outermost first."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServiceParts:
    """Mean service time of requests issued one at a time, and its parts."""

    requests: int
    """Number of simulated requests."""
    mean_ns: int
    seek_ns: int
    rotation_ns: int
    transfer_ns: int
    overhead_ns: int
    wait_ns: int
    """Wait within the device before the service began."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SequentialRead:
    """Sequential reads, one at a time, simulated on the model."""

    zone: str
    """`outer` or `inner`."""
    bytes: int
    """Size of each read."""
    bytes_per_s: int
    limit: str
    """The bottleneck of the rate: `media`, `interface`, `overheads`, or `rotations` lost between reads."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """Properties and service times of a device."""

    name: str
    """The name that the caller gave."""
    profile: str | None
    """The profile's file name if the caller gave a path."""
    summary: str | None
    source: str | None
    """Source of the numbers; `None` for a user's own profile, which names its source itself."""
    keys: dict[str, Any]
    """All keys with their values; in a scenario's `[device]` they give this device."""
    capacity_bytes: int | None
    """`None` if there is no limit."""
    concurrency: int
    """Number of requests that it serves concurrently."""
    nominal_service_ns: int
    mechanics: Mechanics | None
    """`None` for a device without an arm."""
    random_read_8kib: ServiceParts
    sequential_bytes_per_s: dict[str, int]
    """Rate of the media in the `outer` and `inner` zone. For a device without an arm, rate of 1 MiB reads,
    `one_at_a_time` and `all_in_parallel`."""
    sequential_reads: tuple[SequentialRead, ...]
    """Rates that the host gets with reads of 8 KiB and of 1 MiB; empty for a device without an arm."""

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
        fields["sequential_reads"] = tuple(SequentialRead(**read) for read in fields["sequential_reads"])
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
    """The curves of a device's plot. A device with an arm has the first two, other devices the last two."""

    seek: tuple[dict[str, int], ...] = ()
    """`distance_cylinders`, `ns`; by distance."""
    zones: tuple[Zone, ...] = ()
    by_size: tuple[dict[str, Any], ...] = ()
    """Random reads: `name` of the series, `request_bytes`, `depth`, `response_ns_mean`, `response_ns_p99`,
    `requests_per_s`, `bytes_per_s`."""
    by_depth: tuple[dict[str, Any], ...] = ()
    """The same of random 4 KiB reads and writes, by queue depth."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probe:
    """The response of a device to a steady load."""

    request_bytes: int
    """Whole sectors of 512."""
    depth: int
    response_ns_mean: int
    response_ns_p50: int
    response_ns_p90: int
    response_ns_p99: int
    response_ns_max: int
    requests_per_s: float
    bytes_per_s: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Times:
    """Exact service times of a set of requests; a percentile is the least time that this share does not exceed."""

    requests: int
    mean_ns: int = 0
    p50_ns: int = 0
    p90_ns: int = 0
    p99_ns: int = 0
    max_ns: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimesByKind:
    """Service times of all requests, of reads and writes, and of those that began in the model's buffer or did not."""

    all: Times
    reads: Times
    writes: Times
    buffer_hits: Times
    others: Times


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replay:
    """Modelled times of a trace on a device, and the measured times if the trace has them."""

    device: str
    trace: str
    pace: str
    """The issue times of requests, as text."""
    requests: int
    elapsed_ns: int
    """Modelled time to the end of the last request."""
    modelled: TimesByKind
    measured: TimesByKind | None
    parts_ns_mean: dict[str, int]
    """Of the modelled service time: `seek_ns`, `rotation_ns`, `transfer_ns`, `overhead_ns`, `wait_ns`."""
    rms_demerit_ns: dict[str, int] | None
    """Root mean square of the distance between the cumulative curves of measured and modelled times (Ruemmler and
    Wilkes 1994): of `all`, `reads`, `writes`, `buffer_hits`, `others`."""
    curves: dict[str, list[int] | None]
    """`modelled_ns` and `measured_ns`: the times at 1001 even levels of the cumulative curves, 0 to 1."""

    @property
    def demerit_share(self) -> float | None:
        """The demerit of all requests as a share of the measured mean; `None` without measured times."""
        if self.measured is None or self.rms_demerit_ns is None or not self.measured.all.mean_ns:
            return None
        return self.rms_demerit_ns["all"] / self.measured.all.mean_ns

    def to_dict(self) -> dict[str, Any]:
        """Return the replay as `headstart device replay --json` prints it."""
        return {"schema": SCHEMA, "version": _core.__version__, **dataclasses.asdict(self)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Imported:
    """A drive read from DiskSim's parameter files."""

    name: str
    profile: str
    """TOML, with a comment on the origin of each group of numbers."""
    warnings: tuple[str, ...]
    """Parameters that affect timing and are not modelled, and suspicious values; one line each."""
    files: tuple[str, ...]
    """The files that were read."""
    sectors: int
    """Sectors of 512 bytes."""


def device(name: str | PathLike[str], *, keys: Keys | None = None) -> Device:
    """Return a device's properties and its simulated service times, in nanoseconds.

    Args:
        name: A name of `headstart list devices`, or the path of a profile.
        keys: Keys that override the device's own, nested as in a profile: {"buffer": {"size": "1MiB"}}.

    Raises:
        HeadstartError: There is no such device, or its profile or a key is wrong.
    """
    return Device.from_json(_core.device_show(_device(name), keys=_text(keys)))


def survey(name: str | PathLike[str], *, keys: Keys | None = None) -> Survey:
    """Return the curves of a device's plot: seek time by distance and rate by position, or response by load.

    Raises:
        HeadstartError: As for `device`.
    """
    found = json.loads(_core.device_survey(_device(name), keys=_text(keys)))
    found["zones"] = [Zone(**zone) for zone in found.get("zones", ())]
    return Survey(**{curve: tuple(points) for curve, points in found.items()})


def probe(
    name: str | PathLike[str],
    *,
    keys: Keys | None = None,
    requests: int = 20_000,
    warm_up: int = 0,
    request_bytes: int = 8192,
    depth: int = 1,
    write: bool = False,
    sequential: bool = False,
    scheduler: str = "fcfs",
    seed: int = 1,
) -> Probe:
    """Serve random requests with a constant number of outstanding requests, and return their response times.

    Args:
        name: A name of `headstart list devices`, or the path of a profile.
        keys: Keys that override the device's own.
        requests: Number of requests that are measured.
        warm_up: Number of requests before the measured ones, to fill buffers.
        request_bytes: Size of a request in bytes, rounded up to whole sectors of 512 bytes.
        depth: Number of outstanding requests.
        write: Whether to write instead of read.
        sequential: Whether requests are sequential instead of random.
        scheduler: A name of `headstart list schedulers`.
        seed: Random seed. The same seed gives the same requests.

    Raises:
        HeadstartError: The device, its profile, a key or a number is wrong.
    """
    numbers = {"requests": requests, "depth": depth, "request_bytes": request_bytes, "warm_up": warm_up, "seed": seed}
    for what, number in numbers.items():
        least, most = (0 if what in ("warm_up", "seed") else 1, 2**63 if what == "seed" else 2**32)
        _input.whole(what, number, least, most=most - 1)
    sectors = -(-request_bytes // 512)
    text = _core.device_probe(
        _device(name),
        keys=_text(keys),
        requests=requests,
        warm_up=warm_up,
        sectors=sectors,
        depth=depth,
        write=write,
        sequential=sequential,
        scheduler=scheduler,
        seed=seed,
    )
    fields = json.loads(text)
    fields.pop("name")
    return Probe(**fields)


def replay(
    name: str | PathLike[str],
    trace: str | PathLike[str],
    *,
    format: str = "auto",
    request_size: str | None = None,
    keys: Keys | None = None,
    limit: int | None = None,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Serve the requests of a trace, one at a time, on a device.

    The trace must have addresses, and all its requests go to one device. With think times, or issue and service times,
    a request is issued when the previous one is done and the recorded pause is over. With issue times only, requests
    are issued at those times and served in order of arrival. Without times, they are issued back to back. If the trace
    has service times, the result compares them with the modelled ones by the demerit figure of Ruemmler and Wilkes
    (IEEE Computer 27(3), 1994).

    Args:
        name: A name of `headstart list devices`, or the path of a profile.
        trace: Path of a trace.
        format: Format of the trace: a name of `headstart list formats`.
        request_size: Size of each request ("4KiB"), for a trace that has offsets but no sizes.
        keys: Keys that override the device's own.
        limit: Maximum number of requests.
        path: Only requests to files that fit one of these globs ("*.parquet"; "*" also stands for "/").
        pid: Only requests of these processes or threads.
        process: Only requests of processes of these names, or globs of them.
        progress: Called as in `simulate`.

    Raises:
        HeadstartError: The device, its profile, a key or the trace is wrong, or a request lies beyond the device.
    """
    _input.whole("limit", limit, 1)
    device, file = _device(name), _input.name(trace, "trace")
    text = _core.device_replay(
        device,
        file,
        keys=_text(keys),
        format=format,
        request_size=request_size,
        limit=limit,
        select=select_json(path, pid, process),
        on_progress=progress,
    )
    fields = json.loads(text)
    for side in ("modelled", "measured"):
        if fields[side] is not None:
            fields[side] = TimesByKind(**{kind: Times(**times) for kind, times in fields[side].items()})
    return Replay(device=device, trace=file, **fields)


def import_diskspecs(path: str | PathLike[str], *, disk: str | None = None) -> Imported:
    """Return the profile of the drive that DiskSim's parameter file (.parv, .diskspecs, .model) describes.

    Files that it names are read too. `disk` selects one of several disks.

    Raises:
        HeadstartError: A file cannot be read or has a wrong line; there are several disks and none is selected.
    """
    disk = None if disk is None else _input.name(disk, "disk")
    fields = json.loads(_core.device_import_diskspecs(_input.name(path, "file"), disk=disk))
    return Imported(**{**fields, "warnings": tuple(fields["warnings"]), "files": tuple(fields["files"])})


def _device(name: str | PathLike[str]) -> str:
    return _input.name(name, "device")


def _text(keys: Keys | None) -> str:
    try:
        return _input.name(json.dumps(dict(keys or {}), allow_nan=False, ensure_ascii=False), "keys")
    except (TypeError, ValueError) as error:
        raise _core.HeadstartError(f"keys: {error}; allowed: text, numbers, lists and tables") from error

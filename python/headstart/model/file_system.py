"""The time that a 4.4BSD file system takes to read files: the equations of Shriver, Small and Smith (USENIX 1999).

Parameters that the paper leaves open were fitted to its tables. Think time, flash and costs per request are additions;
docs/model.md lists them. The core evaluates the equations; this module has names and types.
"""

from __future__ import annotations

import array
import dataclasses
import json
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from headstart import _core
from headstart.devices import Keys

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
    Number: TypeAlias = float | npt.ArrayLike

Size: TypeAlias = "str | Number"
"""Bytes, or text with a unit: 65536, "64KiB", an array of bytes."""
Time: TypeAlias = "str | Number"
"""Nanoseconds, or text with a unit: 500_000, "0.5ms", an array of nanoseconds."""
Rate: TypeAlias = "str | Number"
"""Bytes a second, or text with a unit: 20e6, "20MB/s", an array."""
Value: TypeAlias = "float | FloatArray"
"""A number, or an array of the shape that the arguments broadcast to."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drive:
    """A drive in numbers, as papers print it.

    Its seek time over a distance of x cylinders is `a_ms + b_ms * sqrt(x)` up to `e` cylinders, `c_ms + d_ms * x`
    beyond, and nothing over none (equation 1). The other fields are defaults of the arguments of that name.
    """

    a_ms: float
    b_ms: float
    c_ms: float
    d_ms: float
    e: float
    cylinders: int
    rpm: float
    disk_rate: str | float
    """Off the surface."""
    bus_rate: str | float
    """From the drive's cache to the host."""
    overhead: str | float
    """Fixed time of a request that goes to the surface."""
    hit_overhead: str | float | None = None
    """The same if the drive's cache serves it; equal if `None`."""
    cache_segments: int = 1
    """Streams that the drive's cache can read ahead for."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Response:
    """The mean request of the application and its parts, in nanoseconds; numbers, or arrays.

    `response_ns` is the sum of the six terms behind it.
    """

    response_ns: Value
    """From a request to its data, on average. FSRT in the paper."""
    overhead_ns: Value
    """Fixed times of disk requests."""
    seek_ns: Value
    rotation_ns: Value
    transfer_ns: Value
    file_system_ns: Value
    """System calls and copying."""
    hidden_ns: Value
    """Time hidden behind the application's computing; never positive."""
    total_ns: Value
    """Sum of the response times of a file's requests. TotalFSRT in the paper."""
    elapsed_ns: Value
    """From a file's first request to its end, thinking included."""
    requests: Value
    """Of the application, for each file."""
    disk_requests: Value
    """For each file, indirect blocks included."""
    busy: Value
    """The disk's share of busy time, 0 to 1."""

    def to_dict(self) -> dict[str, Any]:
        """Return the terms by name; arrays stay arrays."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def file_system(
    *,
    drive: Drive | str | PathLike[str],
    file_size: Size = "64KiB",
    request: Size = "8KiB",
    streams: Number = 1,
    think: Time = 0,
    lone_seek: Number = 0.0,
    block_size: Size = "8KiB",
    direct_blocks: Number = 12,
    cluster: Size = "64KiB",
    fragment: Size | None = None,
    prefetch_first: Size | None = None,
    prefetch_limit: Size | None = None,
    first_alone: bool = True,
    system_call: Time = 0,
    copy_per_kib: Time = 0,
    form: Literal["tables", "4.4bsd"] = "tables",
    scheduler: Literal["clook", "cscan", "fcfs"] = "clook",
    cache_segments: Number | None = None,
    read_ahead: bool | None = None,
    read_ahead_on_sequence: bool | None = None,
    read_during_overhead: bool | None = None,
    overhead: Time | None = None,
    hit_overhead: Time | None = None,
    rpm: Number | None = None,
    disk_rate: Rate | None = None,
    bus_rate: Rate | None = None,
    keys: Keys | None = None,
) -> Response:
    """Return the mean response time of a file system's reads, term by term.

    Each of `streams` processes reads a file of `file_size` from start to end, `request` bytes at a time, and computes
    for `think` after each request. Numbers may be numpy arrays (the extra `numpy`): they broadcast, and the terms are
    arrays of that shape. Sizes are bytes, times nanoseconds, rates bytes a second, or text with a unit.

    Args:
        drive: A name of `headstart list devices` or a profile's path, whose keys `keys` overrides; or a `Drive`.
        file_size: Bytes of each file.
        request: Bytes per request of the application.
        streams: Files that are read at the same time.
        think: Think time of the application after each request.
        lone_seek: With one stream: the share of files before which the arm is elsewhere, 0 to 1.
        block_size: Of the file system.
        direct_blocks: Blocks whose addresses are in the inode; further blocks need indirect blocks.
        cluster: Bytes of a file that lie contiguously.
        fragment: Unit to which the last block of a small file is rounded up; an eighth of a block if `None`.
        prefetch_first: The first disk request of a file; a block if `None`. Requests double from there.
        prefetch_limit: The largest disk request; the cluster if `None`, and 0 turns prefetching off.
        first_alone: With `form="tables"`: the first block after an indirect block is a disk request alone, as Table 3
            needs it.
        system_call: Time of one.
        copy_per_kib: Time to copy 1024 bytes to the application.
        form: "tables": the equations fitted to the paper's tables, with two calls for each disk request and the copy of
            one block per file. "4.4bsd": follows 4.4BSD's code and the order of the queue request by request, as a
            simulation does, with a call for each request and a copy of every byte. Slower: it goes through the file.
        scheduler: Order of the driver's queue.
        cache_segments: Streams that the drive's cache can read ahead for; the drive's own if `None`, as all below.
        read_ahead: The drive reads ahead.
        read_ahead_on_sequence: The drive reads ahead only after a request that continues an earlier one; only for
            `form="4.4bsd"`.
        read_during_overhead: It also reads ahead while its controller receives the next request; only for
            `form="4.4bsd"`.
        overhead: Fixed time of a disk request that goes to the surface, and of one that does not if `hit_overhead` is
            `None`.
        hit_overhead: The same if the drive's cache serves it.
        rpm: Rotations per minute.
        disk_rate: Off the surface.
        bus_rate: From the drive's cache to the host.
        keys: Keys that override those of the named device.

    Raises:
        HeadstartError: The drive is unknown or has random times, a number is out of range, arrays do not broadcast, or
            there are arrays and numpy is not installed.
    """
    asked: dict[str, Any] = {"scheduler": str(scheduler), "form": str(form), "first_alone": bool(first_alone)}
    flags = {
        "read_ahead": read_ahead,
        "read_ahead_on_sequence": read_ahead_on_sequence,
        "read_during_overhead": read_during_overhead,
    }
    for name, flag in flags.items():
        if flag is not None:
            asked[name] = bool(flag)
    numbers: dict[str, Any] = {
        "file_size": file_size,
        "request": request,
        "streams": streams,
        "think": think,
        "lone_seek": lone_seek,
        "block_size": block_size,
        "direct_blocks": direct_blocks,
        "cluster": cluster,
        "fragment": fragment,
        "prefetch_first": prefetch_first,
        "prefetch_limit": prefetch_limit,
        "system_call": system_call,
        "copy_per_kib": copy_per_kib,
        "cache_segments": cache_segments,
        "overhead": overhead,
        "hit_overhead": hit_overhead,
        "rpm": rpm,
        "disk_rate": disk_rate,
        "bus_rate": bus_rate,
    }
    if isinstance(drive, Drive):
        if keys:
            raise _core.HeadstartError("keys: there is no device to lay them over; allowed: beside a device's name")
        times = {name: getattr(drive, f"{name}_ms") * 1e6 for name in "abcd"}
        asked["drive"] = {**times, "e": drive.e, "cylinders": drive.cylinders}
        _fill(numbers, drive)
    else:
        asked["drive"] = {"name": fspath(drive), "keys": dict(keys or {})}
    given = {name: value for name, value in numbers.items() if value is not None}
    asked["texts"] = {name: value for name, value in given.items() if isinstance(value, str)}
    return _evaluate(asked, {name: value for name, value in given.items() if not isinstance(value, str)})


def _fill(numbers: dict[str, Any], drive: Drive) -> None:
    """Fill in the drive's values for missing parameters. A single overhead applies to both kinds of request."""
    if numbers["overhead"] is None and numbers["hit_overhead"] is None:
        numbers["hit_overhead"] = drive.hit_overhead
    for name in ("rpm", "disk_rate", "bus_rate", "overhead", "cache_segments"):
        if numbers[name] is None:
            numbers[name] = getattr(drive, name)


def _evaluate(asked: Mapping[str, Any], numbers: Mapping[str, Any]) -> Response:
    """Pass numbers to the core as columns of doubles; return its terms in the shape of the arguments."""
    try:
        question = json.dumps(asked, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _core.HeadstartError(f"drive: {error}; allowed: finite numbers, text, lists and tables") from error
    terms = [field.name for field in dataclasses.fields(Response)]
    arrays = [name for name, value in numbers.items() if not isinstance(value, (int, float))]
    if arrays:
        return _evaluate_arrays(question, numbers, arrays, terms)
    columns = [(name, array.array("d", [value])) for name, value in numbers.items()]
    out = array.array("d", bytes(8 * len(terms)))
    _core.model_file_system(question, columns, out)
    return Response(**dict(zip(terms, out, strict=True)))


def _evaluate_arrays(question: str, numbers: Mapping[str, Any], arrays: Sequence[str], terms: list[str]) -> Response:
    try:
        import numpy as np
    except ImportError:
        problem = f"{arrays[0]}: numpy is not installed"
        raise _core.HeadstartError(f"{problem}; allowed: single numbers, or pip install 'headstart[numpy]'") from None
    try:
        given = {name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}
        shape = np.broadcast_shapes(*(each.shape for each in given.values()))
    except (TypeError, ValueError) as error:
        names = ", ".join(arrays)
        problem = " ".join(str(error).split())
        raise _core.HeadstartError(f"{names}: {problem}; allowed: arrays of numbers that broadcast") from error
    # A single number is not broadcast.
    columns = [
        (name, np.ascontiguousarray(each if each.size == 1 else np.broadcast_to(each, shape)).ravel())
        for name, each in given.items()
    ]
    out = np.empty((len(terms), *shape))
    _core.model_file_system(question, columns, out)
    return Response(**dict(zip(terms, out, strict=True)))

"""The prefetch depth for streams of unknown length: Li, Shen and Papathanasiou (EuroSys 2007).

The depth is the amount of data that the drive transfers in the time of one switch: a seek plus half a rotation. With
it, the disk is busy less than twice as long as with prefetching that knows each stream's length. docs/competitive.md
states the assumptions. The core computes the depth; this module has names and types.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any, Self

from headstart import _core
from headstart.devices import Keys

SCHEMA = 1
"""Version of the shape of `Competitive.to_dict()`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Depth:
    """The competitive depth at a place."""

    place: str
    """"outer", "mean" or "inner"; "given" of numbers."""
    bytes_per_s: int
    """Of a long read there; "mean" is the mean over all sectors."""
    depth_bytes: int
    depth_pages: int
    """The nearest whole number of pages, at least one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Switch:
    """The average time of a switch, and the depths that balance it."""

    requests: int
    """From which the scheduler may choose the nearest; two are two random places."""
    seek_ns: int
    rotation_ns: int
    """Half a turn."""
    switch_ns: int
    """Seek and rotation."""
    depths: tuple[Depth, ...]
    """Outer, mean, inner; of numbers one."""

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the switch that the core described."""
        return cls(**{**fields, "depths": tuple(Depth(**depth) for depth in fields["depths"])})

    @property
    def mean(self) -> Depth:
        """The depth at the mean rate, or at the only one."""
        return self.depths[len(self.depths) // 2]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The cost of a stream relative to the optimum, if each switch takes the average and the rate is the mean."""

    whole_pages: bool
    """The depth is rounded to pages."""
    depth_bytes: int
    slow_prefetches: int
    """Of a slow start, 0 without one. P in the paper."""
    slow_bytes: int
    """Bytes of these prefetches. T in the paper."""
    bound: float | None
    """2 + P: every stream costs less. `None` where the depth is rounded, which the paper's proof is not for."""
    worst_ratio: float
    """The supremum over all lengths of a stream."""
    worst_above_bytes: int | None
    """Streams just longer than this come near it; `None` if ever longer ones do."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Competitive:
    """Competitive prefetching on a drive, or with numbers."""

    drive: str | None
    """As the caller named it; `None` of numbers."""
    dataset_bytes: int | None
    """What the data spread over; `None` of numbers."""
    page_bytes: int
    slow_start_bytes: int
    """The first prefetch of the slow start; 0 without one."""
    average: Switch
    """Between two random places."""
    concurrency: tuple[Switch, ...]
    """By requests at once; empty of numbers, which have no seek curve."""
    guarantees: tuple[Guarantee, ...]
    """Without and with a slow start, each at the exact depth and in whole pages."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as `headstart model competitive --json` prints it."""
        return {"schema": SCHEMA, "version": _core.__version__, **dataclasses.asdict(self)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Defeat:
    """A stream on which a schedule of depths costs more than a factor."""

    length_bytes: float
    prefetch: int
    """The one that the stream ends in, from 1."""
    ratio: float
    """Its cost, divided by the optimum's."""


def defeat(sizes: Sequence[float], *, alpha: float, switch_ns: float, bytes_per_s: float) -> Defeat:
    """Return the stream on which a schedule costs more than `alpha` times its optimum, equations (9) to (13).

    Args:
        sizes: Bytes of a stream's first, second, ... prefetch; each after the last fetches as much as the last.
        alpha: Any factor below 2.
        switch_ns: Seek and rotation.
        bytes_per_s: Of the transfer.

    Raises:
        HeadstartError: The factor is not between 0 and 2, or a number is not above 0.
    """
    length, prefetch, ratio = _core.model_defeat(
        [float(size) for size in sizes], alpha=alpha, switch_ns=switch_ns, bytes_per_second=bytes_per_s
    )
    return Defeat(length_bytes=length, prefetch=prefetch, ratio=ratio)


def competitive(
    drive: str | PathLike[str] | None = None,
    *,
    seek: str | float | None = None,
    rotation: str | float | None = None,
    rate: str | float | None = None,
    concurrency: Sequence[int] | None = None,
    page: str | float = "4KiB",
    slow_start: str | float = "64KiB",
    dataset: str | float | None = None,
    keys: Keys | None = None,
) -> Competitive:
    """Return the depth of competitive prefetching by place and by concurrency, and its guarantees.

    Sizes are bytes, times nanoseconds, rates bytes a second, or text with a unit: "64KiB", "7.53ms", "37.3MB/s".

    Args:
        drive: A name of `headstart list devices` or a profile's path, whose keys `keys` overrides; or none, with
            `seek`, `rotation` and `rate` instead.
        seek: Average seek time, without a drive.
        rotation: Average rotational delay, half a turn, without a drive.
        rate: Rate of a long read, without a drive.
        concurrency: Numbers of queued requests that the scheduler chooses from; 1, 2, 4, ... 64 if `None`. Needs a
            drive.
        page: Page size for depths in pages.
        slow_start: The first prefetch of a slow start, which doubles up to the depth; 0 for none.
        dataset: Size of the data on the drive, counted from its start; the whole drive if `None`.
        keys: Keys that override the drive's own.

    Raises:
        HeadstartError: The drive is unknown or has no arm; a number is missing, cannot be combined with the others or
            is out of range.
    """
    required = {"page": page, "slow_start": slow_start}
    optional = {"seek": seek, "rotation": rotation, "rate": rate, "dataset": dataset}
    amounts = required | {name: value for name, value in optional.items() if value is not None}
    for name, value in amounts.items():
        if not isinstance(value, (str, int, float)):
            raise _core.HeadstartError(f"{name}: {value!r}; allowed: a number, or text with a unit")
    asked: dict[str, Any] = {"keys": dict(keys or {}), **amounts}
    if drive is not None:
        asked["drive"] = fspath(drive)
    if concurrency is not None:
        asked["concurrency"] = [_count(count) for count in concurrency]
    try:
        question = json.dumps(asked, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _core.HeadstartError(f"competitive: {error}; allowed: finite numbers, text, lists and tables") from error
    fields = json.loads(_core.model_competitive(question))
    return Competitive(
        **{
            **fields,
            "drive": asked.get("drive"),
            "average": Switch.from_dict(fields["average"]),
            "concurrency": tuple(Switch.from_dict(row) for row in fields["concurrency"]),
            "guarantees": tuple(Guarantee(**row) for row in fields["guarantees"]),
            "notes": tuple(fields["notes"]),
        }
    )


def _count(count: object) -> int:
    if isinstance(count, int) and 0 <= count < 2**32:
        return count
    raise _core.HeadstartError(f"concurrency: {count!r}; allowed: whole numbers from 1 to 65536")

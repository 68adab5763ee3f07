"""Forecasts of the time that prefetching from hints saves: a recorded command on simulated disks (docs/forecast.md).

    found = forecasting.forecast("status.hints", device="ibm-36gb-10k", budgets=["32MiB"])
    found.plain.elapsed_ns, found.recommendation

Sizes are bytes, times whole nanoseconds. The core works without the GIL.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Self

from headstart import _core
from headstart.live.profile import Found

BENEFIT_MIN = 0.05
"""Share of the plain time that prefetching must save to be recommended."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One run of the command."""

    policy: str
    """"linux": plain, with the kernel's read-ahead; "demand": without read-ahead; otherwise a hinted policy."""
    budget_bytes: int | None
    """Maximum of prefetched but unused data; `None` without prefetching."""
    elapsed_ns: int
    """From the start of the command to its end; with trusted hints from its head start on."""
    gain: float
    """Share of the plain time that is saved, 0 to 1; negative if the run takes longer."""
    requests: int
    """Requests to the devices."""
    read_bytes: int
    """Total that the devices read."""
    prefetched_bytes: int
    used_bytes: int
    late_bytes: int
    wasted_bytes: int
    stopped: str | None
    """The reason why prefetching stops early; `None` if it does not."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Disk:
    """A device with files that the command reads, and its simulated model."""

    name: str
    """As in /dev; empty if it has no name."""
    profile: str
    scheduler: str
    read_ahead_bytes: int
    read_bytes: int
    """Bytes that the recorded run read from it; each page counts once."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The command to run."""

    policy: str
    budget_bytes: int
    elapsed_ns: int
    gain: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Forecast:
    """A recorded command, plain and prefetched."""

    schema: int
    version: str
    command: list[str]
    devices: list[Disk]
    trusted: bool
    recorded_ns: int
    """Time of the command when it was recorded."""
    hinted_bytes: int
    """Total of the hinted pages; each page counts once."""
    compute_ns: int
    """With everything in the page cache."""
    lower_bound_ns: int
    """Lower bound of the time with any prefetching."""
    plain: Row
    """With the kernel's read-ahead: the baseline of the comparison."""
    demand: Row
    """Without read-ahead."""
    rows: list[Row]
    """Prefetched: by policy and budget."""
    recommendation: Recommendation | None
    """The best of these runs; `None` if it saves less than `BENEFIT_MIN`."""
    notes: list[str]

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Return the forecast that `to_dict` gave."""
        best = value["recommendation"]
        return cls(
            **{
                **value,
                "devices": [Disk(**each) for each in value["devices"]],
                "plain": Row(**value["plain"]),
                "demand": Row(**value["demand"]),
                "rows": [Row(**each) for each in value["rows"]],
                "recommendation": None if best is None else Recommendation(**best),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return dataclasses.asdict(self)


def forecast(
    hints: str | PathLike[str],
    *,
    prefetch: str | PathLike[str] | None = None,
    device: str | PathLike[str] | None = None,
    device_keys: Mapping[str, object] | None = None,
    scheduler: str | None = None,
    policies: Sequence[str] | None = None,
    budgets: Sequence[str | int] | None = None,
    read_ahead: str | int | None = None,
    trusted: bool = False,
    cached: bool = False,
    progress: Callable[[float], object] | None = None,
) -> Forecast:
    """Forecast the command of `hints`, a recording, from an empty page cache: plain, and as by `headstart run`.

    Args:
        hints: A recording of `headstart record`.
        prefetch: Another recording to prefetch from: an older one, or that of another command; `hints` if `None`.
        device: Model of the device that the recorded run waited for most: a name of `headstart list devices`, or the
            path of a profile. If `None`, it is derived from the recorded waits and the system's information.
        device_keys: Keys that override that device's own.
        scheduler: Scheduler of that device's queue; the kernel's setting if `None`.
        policies: Hinted policies; all that `headstart run` supports if `None`.
        budgets: Limits of prefetched but unused data; from 8 MiB up to the amount that the hints need if `None`.
        read_ahead: The kernel's read-ahead; its current setting if `None`.
        trusted: As `headstart run --trust`.
        cached: Start with all data in the page cache.
        progress: Called with the share done, between runs.

    Raises:
        HeadstartError: The recording cannot be read, or an argument is wrong.
    """
    question: dict[str, Any] = {"hints": fspath(hints), "trusted": trusted, "cached": cached}
    question["device_keys"] = dict(device_keys or {})
    given = {
        "prefetch": None if prefetch is None else fspath(prefetch),
        "device": None if device is None else fspath(device),
        "scheduler": scheduler,
        "policies": None if policies is None else list(policies),
        "budgets": None if budgets is None else [_size(budget) for budget in budgets],
        "read_ahead": None if read_ahead is None else _size(read_ahead),
    }
    question |= {key: value for key, value in given.items() if value is not None}
    return Forecast.from_dict(json.loads(_core.forecast_hints(json.dumps(question), progress=progress)))


def _size(size: str | int) -> str:
    """Return a size as the core reads it."""
    return f"{size}B" if isinstance(size, int) else size


def flash_keys(found: Found) -> dict[str, object]:
    """Return keys that override those of "nvme" to model a measured device without an arm.

    A read of 4 KiB takes the measured time of a single read. The device serves as many reads at once as saturated the
    measured one. The link's rate is the highest measured rate.
    """
    rate = max(point.bytes_per_s for point in (*found.by_size, *found.by_depth))
    page = 4096
    link_ns = round(page / rate * 1e9)
    return {
        "capacity": f"{max(found.capacity_bytes // page * page, page)}B",
        "page_size": f"{page}B",
        "channels": found.saturating_depth,
        "queue_depth": max(found.saturating_depth, 32),
        "read_time": f"{max(found.latency.far_ns - link_ns, 1)}ns",
        "read_overhead": "0ns",
        "link_bytes_per_second": round(rate),
        "link_command": "0ns",
    }

"""What prefetching from hints would save: a recorded command on simulated disks (docs/forecast.md).

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
from headstart.profiling import Found

BENEFIT_MIN = 0.05
"""Share of the plain time that has to be saved for prefetching to be recommended."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One run of the command."""

    policy: str
    """"linux": plain, with the kernel's read-ahead; "demand": without it; else a hinted policy."""
    budget_bytes: int | None
    """Prefetched and not yet used, at most; `None` without prefetching."""
    elapsed_ns: int
    """From the start of the command to its end."""
    gain: float
    """The part of the plain time that is saved, 0 to 1; negative where it takes longer."""
    requests: int
    """Requests to the devices."""
    read_bytes: int
    """What the devices read in all."""
    prefetched_bytes: int
    used_bytes: int
    late_bytes: int
    wasted_bytes: int
    stopped: str | None
    """Why prefetching stops before it is done; `None` if it does not."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Disk:
    """A device that holds what the command reads, and what it was simulated as."""

    name: str
    """As in /dev; empty if it has no name."""
    profile: str
    scheduler: str
    read_ahead_bytes: int
    read_bytes: int
    """Bytes of it that the recorded run has read, each page once."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recommendation:
    """What to run."""

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
    """How long the command took when it was recorded."""
    hinted_bytes: int
    """What the hints name, each page once."""
    compute_ns: int
    """With everything in the page cache."""
    lower_bound_ns: int
    """No prefetching takes less."""
    plain: Row
    """With the kernel's read-ahead: what the others are compared with."""
    demand: Row
    """Without read-ahead."""
    rows: list[Row]
    """Prefetched: by policy and budget."""
    recommendation: Recommendation | None
    """The best of them; `None` where it saves less than `BENEFIT_MIN`."""
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
        prefetch: Another recording by which to prefetch: an older one, or that of another command; `hints` if `None`.
        device: The device that the recorded run waited for most: a name of `headstart list devices`, or the path of a
            profile; by its waits in the recording and what the system says if `None`.
        device_keys: Laid over that device's own.
        scheduler: Orders that device's queue; as the kernel's is set if `None`.
        policies: Hinted policies; all that `headstart run` takes if `None`.
        budgets: Sizes of what is prefetched and not yet used, at most; from 8 MiB up to what the hints need if `None`.
        read_ahead: The kernel's read-ahead; as it is set if `None`.
        trusted: As `headstart run --trust`.
        cached: Everything is in the page cache already.
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
    """Return the keys of a device without an arm that answers as the measured one does, over those of "nvme".

    A read of 4 KiB takes what one read took alone, as many at once as saturated the device; the link's rate is the best
    that was seen.
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

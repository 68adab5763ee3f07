"""Forecasts of the time that prefetching from hints saves: a recorded command on simulated disks (docs/forecast.md).

    found = forecasting.forecast("status.hints", device="ibm-36gb-10k", budgets=["32MiB"])
    found.plain.elapsed_ns, found.recommendation

Sizes are bytes, times whole nanoseconds. The core works without the GIL.
"""

from collections.abc import Callable
from os import PathLike
from typing import Unpack

from headstart.live.core import Record, command, told
from headstart.live.options import Forecast

BENEFIT_MIN = 0.05
"""Share of the plain time that prefetching must save to be recommended."""


def forecast(
    hints: str | PathLike[str],
    *,
    progress: Callable[[float], object] | None = None,
    **options: Unpack[Forecast],
) -> Record:
    """Simulate a recorded command from an empty page cache: as it is, and with its reads prefetched.

    Args:
        hints: Path of a recording made by `headstart record`.
        progress: Called with the share done (0 to 1) between the simulated runs. An exception stops the forecast.
        **options: Options of `headstart forecast`. Sizes may be numbers of bytes.

    Returns:
        The report (docs/forecast.md), with times in nanoseconds.

    Raises:
        HeadstartError: The recording cannot be read, or an argument is wrong.
    """
    return command("forecast", {"hints": hints, **options}, told(progress))


def flash_keys(found: Record) -> dict[str, object]:
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

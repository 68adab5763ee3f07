"""The result types of advice."""

import dataclasses
from typing import Any

from headstart._core import __version__

SCHEMA = 1
"""Version of the shape of `Advice.to_dict()`."""
BENEFIT_MIN = 0.05
"""A gain below this share of the time without prefetching does not count as a benefit."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timed:
    """A policy on the whole trace, or on the sample if nothing else was possible."""

    policy: str
    elapsed_ns: int
    saved_ns: int
    """Relative to no prefetching."""
    speedup: float
    wasted_bytes: int
    depth_bytes: int | None
    """The read-ahead of Linux; 0 for no read-ahead, `None` for other policies."""
    knows_future: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Confidence:
    """The reliability of the advice."""

    level: str
    """ "high", "medium" or "low"."""
    confirmed: bool
    """The recommended policy and no prefetching ran on the whole trace."""
    thirds: tuple[bool, ...]
    """Whether no other policy saves 5 % more of the time without prefetching, in each third; empty if not known."""
    seeds: tuple[bool, ...]
    """The same with other seeds; empty if nothing is random."""
    unconfirmed: tuple[str, ...]
    """Policies that could not be run in the available time."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceAdvice:
    """The advice for one device and cache."""

    device: str
    """As the caller wrote it; "hdd" is a Seagate Exos X20."""
    profile: str
    """Name of the device's model."""
    cache_bytes: int | None
    """`None` if the size of a block is unknown."""
    cache_blocks: int
    verdict: str
    """ "change", "keep the default", "disclose" (no setting helps, reading ahead of what the program knows does), "no
    benefit", or "no addresses" (nothing can be read ahead by position)."""
    recommended: Timed
    demand: Timed
    linux_default: Timed | None
    """Linux's default: 128 KiB."""
    linux: Timed
    """The best that Linux can be set to, chosen in the same way."""
    now: Timed | None
    """The read-ahead that the machine's device has; `None` if no device of the machine is named."""
    fastest_tried: Timed
    """The fastest policy that does not know the future, even if it cannot be set."""
    hints: Timed | None
    """The fastest policy that knows the future."""
    lower_bound_ns: int | None
    above_bound: float | None
    cache_enough_blocks: int | None
    cache_enough_bytes: int | None
    """The sufficient size: a larger cache saves less than 1 %. `None` if there was no time to determine it."""
    cache_sweep: tuple[tuple[int, int], ...]
    """Blocks and elapsed time of the recommended policy, largest cache first."""
    confidence: Confidence
    commands: tuple[str, ...]
    """The commands for the machine."""
    tried: tuple[Timed, ...]
    """Every policy on the whole trace, fastest first."""

    @property
    def disclosed_ns(self) -> int | None:
        """Time that disclosing the program's reads saves in addition to the setting; `None` if that is no benefit."""
        return disclosed_ns(self.recommended, self.hints)


def disclosed_ns(setting: Timed, hints: Timed | None) -> int | None:
    """Return the time that `hints` save in addition to a setting, if that is a benefit."""
    # Excludes replacement that knows the future: a program cannot disclose that to the system.
    if hints is None or hints.policy.startswith("demand"):
        return None
    more = setting.elapsed_ns - hints.elapsed_ns
    return more if more >= BENEFIT_MIN * (setting.elapsed_ns + setting.saved_ns) else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Advice:
    """The advice for a trace, device by device."""

    workload: str
    trace_sha256: str
    seed: int
    seconds: float
    block_size: str
    requests: int
    footprint_blocks: int
    footprint_bytes: int | None
    sample_requests: int | None
    """Requests of the sample; `None` if it is the whole trace."""
    stream_share: float
    """Share of reads that Linux's read-ahead predicts; below 0.05 the trace counts as random."""
    notes: tuple[str, ...]
    devices: tuple[DeviceAdvice, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as `headstart advise --json` prints it."""
        fields = dataclasses.asdict(self)
        sweeps = fields["devices"]
        for each in sweeps:
            each["cache_sweep"] = [{"blocks": blocks, "elapsed_ns": elapsed} for blocks, elapsed in each["cache_sweep"]]
        return {"schema": SCHEMA, "version": __version__, **fields}

"""The shapes within a result: its levels, devices, processes and intervals, as dictionaries with known keys.

    level = result.levels[0]
    level["prefetches_used"] / level["prefetches"]

Keys and types are known to type checkers. docs/scenario.md describes each figure.
"""

from typing import NotRequired, TypedDict


class Response(TypedDict):
    """A request's time from issue to reply (from arrival, where arrivals are open)."""

    mean: int
    p50: int
    p90: int
    p99: int
    max: int


class Counts(TypedDict):
    """Counts of references, and of what was fetched for them."""

    # Written by `make docs` from crates/core/engine/src/counts.rs.
    references: int
    """Blocks requested, including those still waited for; = `hits_ready` + `hits_unready` + `misses`."""
    hits_ready: int
    """References that found their block resident."""
    hits_unready: int
    """References that found their block in flight, requested at an earlier instant."""
    misses: int
    """All other references; = `demand_fetches` + `write_misses`, with one process."""
    hit_wait_ns_mean: int
    """Mean wait of `hits_unready` until their blocks arrived."""
    fetches: int
    """= `demand_fetches` + `prefetches`."""
    demand_fetches: int
    """Fetches of a block that a process waits for or is about to reference."""
    prefetches: int
    """Fetches of other blocks; = `prefetches_used` + `prefetches_wasted`."""
    prefetches_used: int
    """Those of `prefetches` whose block was referenced before it was evicted."""
    prefetches_late: int
    """Those of `prefetches_used` that were still in flight when referenced."""
    prefetches_wasted: int
    """Those of `prefetches` whose block was not referenced."""
    evictions: int
    """Number of evicted blocks."""
    writes: int
    """Those of `references` that wrote, where writes reach the devices."""
    write_misses: int
    """Those of `misses` that wrote: the block took a frame without a fetch."""
    blocks_written: int
    """Blocks written to devices, or to the level below."""
    # End of what is written.


class Level(Counts):
    """A level: its counts, the value of its prefetches, and the traffic to the level above."""

    name: str
    blocks: int
    dirty_blocks: int
    # Written by `make docs` from crates/core/engine/src/counts.rs.
    accuracy: float
    """`prefetches_used` over `prefetches`, 0 to 1."""
    coverage: float
    """`prefetches_used` over these plus the read misses, 0 to 1: the share of misses that prefetching avoided."""
    lateness: float
    """`prefetches_late` over `prefetches_used`, 0 to 1."""
    lead_ns_mean: int
    """Mean time from a used prefetch's arrival to its first request; late prefetches count as zero."""
    pollution: int
    """Demand misses on blocks that were evicted to make room for a prefetch."""
    wasted_bytes: int
    """Bytes of `prefetches_wasted`."""
    wasted_service_ns: int
    """Service time of prefetches that were evicted unused, each with its share of its request."""
    silent_hits: int
    """Those of `bypass_blocks` that were resident: served without the policy's knowledge."""
    bypass_blocks: int
    """Those of `references` that bypassed the policy."""
    bypass_fetches: int
    """Those of `demand_fetches` whose block bypassed the policy; not stored unless the policy also requested it."""
    readmore_blocks: int
    """Blocks that a coordinator added to requests."""
    # End of what is written.
    link_ns: int


class Disk(TypedDict):
    """Statistics of a device."""

    requests: int
    writes: int
    merged: int
    blocks: int
    busy_ns: int
    utilization: float
    seek_ns: int
    rotation_ns: int
    transfer_ns: int
    overhead_ns: int
    wait_ns: int
    queue_ns: int
    service_ns_mean: int
    response_ns_mean: int
    buffer_hits: int


class Process(TypedDict):
    """The parts of a process's time."""

    references: int
    hits_ready: int
    hits_unready: int
    misses: int
    hit_wait_ns_mean: int
    read_ns_mean: int
    elapsed_ns: int
    compute_ns: int
    driver_ns: int
    overhead_ns: int
    stall_ns: int
    barrier_ns: int
    idle_ns: int
    own_io_ns: int
    other_io_ns: int
    actions: int
    action_ns: int
    overrun_ns: int
    overruns: int
    remote_reads: NotRequired[int]
    """Absent where no buffer is remote."""
    own_io_periods: int
    own_io_necessary_ns: int
    own_io_actual_ns: int
    other_io_periods: int
    other_io_necessary_ns: int
    other_io_actual_ns: int
    barrier_periods: int
    barrier_necessary_ns: int
    barrier_actual_ns: int


class Interval(TypedDict):
    """The time from one barrier to the next."""

    start_ns: int
    end_ns: int
    critical: int
    """The process that arrives last."""
    slack_ns: int
    references: int
    hits_ready: int
    hits_unready: int
    misses: int
    read_ns_mean: int
    action_ns: int
    overrun_ns: int
    critical_compute_ns: int
    critical_own_io_ns: int
    critical_other_io_ns: int
    critical_overrun_ns: int


class DiskBound(TypedDict):
    """The least that a disk has to do."""

    misses: int
    busy_ns: int
    transfer_ns: int


class LowerBound(TypedDict):
    """The least elapsed time of a scenario under any policy, and its parts."""

    elapsed_ns: int
    processor_ns: int
    """The processor's time with as few fetches as MIN needs."""
    min_fetches: int
    disks: list[DiskBound]

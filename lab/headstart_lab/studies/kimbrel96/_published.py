"""What the paper prints, and where. Nothing here is ever a result of ours.

Source: Kimbrel, Tomkins, Patterson, Bershad, Cao, Felten, Gibson, Karlin and Li, "A Trace-Driven Comparison of
Algorithms for Parallel Prefetching and Caching", OSDI 1996. Times are in the unit that the name ends in.
"""

import dataclasses
from typing import Final

DISKS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
"""Sizes of the simulated arrays (section 3)."""

CACHE_BLOCKS: Final = 1280
"""10 MB of 8 KB blocks (section 3.1)."""

CACHE_BLOCKS_SMALL: Final = 512
"""For traces that refer to fewer than 1280 distinct blocks (section 3.1)."""

CACHE_BLOCKS_VARIED: Final = (640, 1280, 1920)
"""Section 4.4, "Processor speed and cache size"."""

DRIVER_OVERHEAD_MS: Final = 0.5
"""Processor time of each I/O operation (section 3.1)."""

HORIZON: Final = 62
"""H of fixed horizon: 15 ms over 243 us (section 2.6)."""

HORIZON_FAST: Final = 124
"""H with a processor twice as fast (section 4.4)."""

STATIC_FETCH_RATIOS: Final = (1, 2, 4, 8, 15, 30, 60)
"""Fixed values of forestall's F' (section 5)."""

TABLE_6: Final = {1: 80, 2: 40, 3: 40, 4: 16, 5: 16, 6: 8, 7: 8}
"""Aggressive's and forestall's batches by number of disks (Table 6)."""

TABLE_6_BEYOND: Final = 4
"""The same for more than 7 disks (Table 6)."""

TABLE_1: Final = {
    "sector (bytes)": 512,
    "sectors of a track": 72,
    "tracks of a cylinder": 19,
    "cylinders": 1962,
    "rotational speed (rpm)": 4002,
    "disk cache (KiB)": 128,
    "bus (MB/s)": 10,
}
"""HP 97560 (Table 1)."""

ACCESS_8K_MS: Final = 22.8
"""Average access time of 8 KB (Table 1)."""

GROUP_BLOCKS: Final = 8550
"""Blocks of 8 KB in 100 cylinders (section 3.2)."""

GROUP_SEEK_MS: Final = 7.24
"""Longest seek within 100 cylinders (section 3.2)."""

RESPONSE_ASSUMED_MS: Final = 15.0
"""Assumed average disk response time, "usually an overestimate in our simulations" (section 2.6)."""

TABLE_2_SYNTH_S: Final = {"fixed horizon": (201.4, 130.9, 118.9, 118.9), "aggressive": (155.8, 121.7, 150.4, 150.1)}
"""Elapsed times of synth on 1 to 4 disks, UW simulator (Table 2)."""

TABLE_2_SYNTH_CMU_S: Final = {
    "fixed horizon": (213.0, 136.3, 118.9, 118.9),
    "aggressive": (168.5, 126.9, 149.5, 150.4),
}
"""Elapsed times of synth on 1 to 4 disks, CMU simulator with IBM 0661 drives (Table 2)."""

TABLE_2_XDS_DISKS: Final = (1, 2, 3, 4, 5)
"""Columns of Table 2 for xds."""

TABLE_2_XDS_S: Final = {"fixed horizon": (65.6, 38.0, 36.2, 34.2, 33.5), "aggressive": (63.7, 34.3, 33.7, 35.1, 34.4)}
"""Elapsed times of xds by `TABLE_2_XDS_DISKS`, UW simulator (Table 2)."""

SYNTH_FETCHES_MIN: Final = 37_280
"""Section 4.2."""

SYNTH_FETCHES_FIXED_HORIZON: Final = 38_000
"""Section 4.2, each number of disks."""

SYNTH_FETCHES_AGGRESSIVE: Final = {1: 39_240, 2: 41_902}
"""Section 4.2, by disks. With three "every block for every reference": the 100,000 references of Table 3."""

SYNTH_FETCHES_REVERSE_AGGRESSIVE: Final = {1: 39_265, 2: 42_000, 3: 37_907}
"""Section 4.2, by disks."""

SYNTH_WASTED_3_DISKS: Final = 994
"""Fetches that aggressive wastes on three disks (section 4.2)."""

SYNTH_RESPONSE_MS: Final = (3.0, 4.0)
"""Average response times of synth lie between these (section 4.2)."""


@dataclasses.dataclass(frozen=True)
class Summary:
    """A row of Table 3."""

    reads: int
    distinct: int
    """Blocks of 8 KB."""
    compute_s: float

    @property
    def compute_ms_mean(self) -> float:
        """Milliseconds of computing a read."""
        return 1000 * self.compute_s / self.reads


TABLE_3: Final = {
    "dinero": Summary(8867, 986, 103.5),
    "cscope1": Summary(8673, 1073, 24.9),
    "cscope2": Summary(20206, 2462, 37.1),
    "cscope3": Summary(30200, 3910, 74.1),
    "glimpse": Summary(27981, 5247, 38.7),
    "ld": Summary(5881, 2882, 8.2),
    "postgres-join": Summary(8896, 3793, 11.5),
    "postgres-select": Summary(5044, 3085, 79.2),
    "xds": Summary(10435, 5392, 30.8),
    "synth": Summary(100_000, 2000, 99.9),
}
"""Trace summary data (Table 3)."""

TABLE_4: Final = {
    "demand": (0.82, 0.41, 0.27, 0.20, 0.16, 0.13, 0.12, 0.10, 0.08, 0.07, 0.05),
    "fixed horizon": (0.98, 0.90, 0.82, 0.72, 0.66, 0.58, 0.50, 0.45, 0.36, 0.30, 0.22),
    "aggressive": (0.99, 0.92, 0.87, 0.81, 0.70, 0.63, 0.62, 0.56, 0.43, 0.35, 0.26),
    "reverse aggressive": (0.98, 0.92, 0.85, 0.80, 0.69, 0.60, 0.50, 0.42, 0.35, 0.28, 0.21),
}
"""Disk utilisation on postgres-select by `DISKS` (Table 4)."""

TABLE_5: Final = {
    "fixed horizon": (14.9, 4.85, 2.59, 0.53, -0.62, -0.68, -2.15, -0.42, -0.05, 0.0, 0.0),
    "aggressive": (19.2, 11.3, 8.36, 3.59, -0.77, -0.31, -0.45, -0.17, 0.09, 0.11, 0.0),
    "reverse aggressive": (24.0, 22.1, 19.9, 6.71, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}
"""Percent by which CSCAN is better than FCFS on postgres-select by `DISKS` (Table 5)."""

TABLE_7_DISKS: Final = (1, 2, 4, 8, 16)
"""Columns of Table 7."""

TABLE_7: Final = {
    640: (6.0, 14.7, 24.8, 7.3, -2.6),
    1280: (11.3, 20.2, 24.5, 5.7, -3.8),
    1920: (13.8, 25.0, 21.7, 5.7, -3.8),
}
"""Percent by which fixed horizon is slower than aggressive on glimpse, by blocks of cache (Table 7)."""

TABLE_8: Final = (0.99, 0.92, 0.87, 0.81, 0.68, 0.63, 0.62, 0.54, 0.39, 0.30, 0.32)
"""Disk utilisation of forestall on postgres-select by `DISKS` (Table 8)."""

CSCAN_GAIN_PERCENT: Final = {"reverse aggressive": 24.0, "aggressive": 19.0, "fixed horizon": 15.0}
"""The most that CSCAN improves on FCFS over all traces (section 4.4)."""

CSCAN_LOSS_PERCENT: Final = 3.6
"""The most that CSCAN loses to FCFS (section 4.4)."""

TABLE_6_LOSS_PERCENT: Final = (0.7, 11.0)
"""Table 6's batches against the best batch: on average, at most (section 4.4)."""

FORESTALL_PERCENT: Final = (-2.0, 5.8)
"""Forestall against the better of aggressive and fixed horizon: at worst, at best (section 5.1)."""

REVERSE_PERCENT: Final = (-3.6, 10.7)
"""Reverse aggressive against the better of the two: at worst, at best, cscope3 left out (section 4.3)."""

SIGNIFICANT_PERCENT: Final = 10.7
"""An improvement is "significant" beyond this: up to 10.7 % (section 4.3), "reverse aggressive does not significantly
outperform the other algorithms" (section 1.4)."""

STATIC_LOSS_PERCENT: Final = (6.8, 1.4, 1.2)
"""Static F' against the dynamic one: one value, one a trace, one a configuration (section 5)."""

CROSSOVER: Final = {
    "ld": "at ten disks",
    "postgres-select": "above five disks",
    "glimpse": "above five disks",
    "cscope2": "above five disks",
    "postgres-join": "below five disks",
    "dinero": "below five disks",
    "cscope1": "below five disks",
    "xds": "below five disks",
}
"""Where fixed horizon overtakes aggressive (section 4.3)."""


CURVE_FETCH_MS: Final = (10.4, 8.4)
"""Mean fetch time of aggressive on cscope2 and one disk, batch 4 and 160 (section 4.4)."""

CURVE_FETCHES: Final = (6771, 9806)
"""Fetches of the same, batch 160 and 1280 (section 4.4)."""

CURVE_FETCHES_5_DISKS: Final = (11_325, 11_399)
"""Fetches of the same with five disks, batch 160 and 1280 (section 4.4)."""

HORIZON_FETCHES: Final = (4959, 8535)
"""Fetches of fixed horizon on cscope1 and one disk, H = 64 and 2048 (section 4.4)."""


def table6(disks: int) -> int:
    """Return Table 6's batch for `disks` disks."""
    return TABLE_6.get(disks, TABLE_6_BEYOND)

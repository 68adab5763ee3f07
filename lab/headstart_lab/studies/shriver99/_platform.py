"""The paper's two machines, and its workloads as scenarios.

Disk overhead, bus rate and the file system's costs are the paper's (sections 4.1, 4.2, Table 1), the same for every
row; the rest is the drive's own extracted file. Where the paper is silent:

- the drive reads ahead on while its controller takes in a command (`read_during_overhead`), as a controller cannot
  move the arm before it has decoded the command; the item `sensitivity` has the other reading;
- a single file is opened, that is its inode read, right before it is read, and lies in the inode's group; of several
  all are opened before, and the arm stands at the one opened last (appendix A: all files were opened at the beginning);
- files are spread over the disk evenly, and so the angle at which a file begins is random; `SEEDS` runs are averaged.
"""

from collections.abc import Mapping
from typing import Any, Final

SLOW_SINGLE_MS: Final = 1.8
"""Disk overhead with one file on the slow machine (section 4.2)."""
SLOW_SEVERAL_MS: Final = 1.2
"""The same with several; and in Table 5, of one file without prefetching: its computed column has 1.2 ms in it."""
FAST_MS: Final = 0.34
"""Disk overhead on the fast machine (section 4.2)."""

MB_PER_S: Final = 1024 * 1000
"""1 MB/s is 1 KB a millisecond in the paper, as its tables show."""
SLOW_BUS: Final = round(9.3 * MB_PER_S)
FAST_BUS: Final = round(18.2 * MB_PER_S)
"""Transfer rates (section 4.2)."""

SLOW_COSTS: Final = {"system_call": "10us", "copy_per_kib": "10us"}
FAST_COSTS: Final = {"system_call": "5us", "copy_per_kib": "5us"}
"""Table 1 and section 4.1."""

SINGLE_FILES: Final = 100
"""Files read one after another: the paper repeats its experiments with one file 100 times (appendix A)."""
SEEDS: Final = 200
"""Runs averaged for several files: four times the 50 of the paper (appendix A), for half of the sampling error."""
CACHE_BLOCKS: Final = 1600
"""Blocks of 8 KB: a tenth of the machine's 128 MB, as 4.4BSD has it. No workload here fills it."""

DRIVE: Final = "seagate-cheetah-4lp"
"""The paper's drive (section 5); its file says 3 cache segments, as the paper does."""


def device(overhead_ms: float, bus: int, **more: Any) -> dict[str, Any]:
    """Return the section `[device]`: the drive with the paper's overhead and bus; `more` replaces keys of it."""
    keys: dict[str, Any] = {
        "model": DRIVE,
        "scheduler": "clook",
        "controller": {"overhead": f"{round(overhead_ms * 1e6)}ns"},
        "bus": {"bytes_per_second": bus},
        "buffer": {"read_during_overhead": True},
    }
    keys["buffer"] |= more.pop("buffer", {})
    return {**keys, **more}


def scenario(
    *,
    file_kb: float,
    request_kb: float,
    device: Mapping[str, Any],
    costs: Mapping[str, str],
    streams: int = 1,
    seed: int = 1,
    think: str = "0ms",
    cluster_kb: int = 64,
    policy: Mapping[str, Any] | str = "ffs",
    placement: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a run of `streams` files side by side, each read by its process; of one stream, `SINGLE_FILES` in turn."""
    several = streams > 1
    return {
        "seed": seed,
        "workload": {
            "generator": "files",
            "files": streams if several else SINGLE_FILES,
            "file_size": size(file_kb),
            "request": size(request_kb),
            "compute": think,
            "processes": "per-pid" if several else "merged",
            "placement": {
                "name": "ffs",
                "cluster": size(cluster_kb),
                "opens": "before" if several else "read",
                **(placement or {}),
            },
        },
        "cache": {"blocks": CACHE_BLOCKS},
        "policy": policy if isinstance(policy, str) else dict(policy),
        "device": dict(device),
        "host": dict(costs),
    }


def size(kb: float) -> str:
    """Return a size of `kb` KB as a scenario has it."""
    return f"{round(kb * 1024)}B"

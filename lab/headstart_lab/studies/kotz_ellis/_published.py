"""What the paper prints: its setting, and the figures that findings are held against. Never a result of ours."""

from typing import Final

PROCESSES: Final = 20
"""Section 5.4: processors, one process each; also disks (section 5.1: each processor has one)."""

DISK_MS: Final = 30.0
"""Section 5.1: constant access time."""

FILE_BLOCKS: Final = 2000
"""Section 5.4: of 1 KiB; also the reads of all processes together."""

COMPUTE_MS: Final = 30.0
"""Section 5.4: mean of the exponential delay after each read, where there is one."""

EACH: Final = 10
"""Section 5.4: reads of each process between two barriers."""

ALL: Final = 200
"""Section 5.4: reads of all together between two barriers."""

RU_SIZE: Final = 1
"""Section 5.4: blocks of a process's recently-used list."""

BUFFERS: Final = 20
"""Section 5.4: buffers for prefetched blocks that have not been used yet."""

ACTION_MS: Final = (6.0, 16.0)
"""Section 6.3: the length of a prefetch action. An input here."""

MISS_RATIO_MOST: Final = 0.60
"""Section 6.1: every miss ratio with prefetching is below."""

MISS_RATIO_LOW: Final = 0.08
"""Section 6.1: nearly half of them are below."""

MISS_RATIO_LW: Final = 0.05
"""Section 6.4: lw without prefetching."""

UNREADY_SHARE: Final = (0.50, 0.60)
"""Section 6.1: unready hits as a share of all hits."""

TOTAL_GAIN: Final = 53.0
"""Section 6.2: the greatest reduction of total execution time (%)."""

SLOWDOWN: Final = 5.0
"""Section 6.2: every slowdown is below (%)."""

READ_GAIN_NEEDED: Final = 16.0
"""Section 6.2: the reduction of the mean read time (%) below which the total shows no improvement."""

OVERRUN_MS: Final = (4.0, 14.0)
"""Section 6.3."""

GROUPS: Final = 4
"""Section 6.4: groups into which the miss ratio falls by pattern (Figure 8)."""

READ_LEFT: Final = 0.75
"""Section 6.5: what is left of the mean read time at best while the compute time is varied."""

LEAD_MISS_GLOBAL: Final = 0.80
"""Section 6.5: the miss ratio that global patterns climb to with the minimum lead."""

LEAD_MISS_LFP: Final = 0.90
"""Section 6.5: and lfp."""

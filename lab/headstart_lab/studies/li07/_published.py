"""What the paper prints, and when ours agrees with it. Never a result of ours.

The curves and bars of Figures 6 to 13 are pictures without numbers: only what the text says of them can be compared.
The criteria were first written before any run with the competitive policy or the oracle was looked at. They were
tightened afterwards, with the results known, until each is at least as strict as its sentence; none was widened.
"""

from typing import Final, NamedTuple

# Section 5.
SEEK_MS: Final = {"ibm": 7.53, "seagate": 7.98, "raid0": 7.98}
"""Printed as average seeks. The Seagate's and the array's fit their depths only as seek and rotation together."""
ROTATION_MS: Final = 3.00
"""Half a turn, printed of the IBM drive; all drives turn at 10,000 rpm."""
RATE_MB: Final = {"ibm": 37.3, "seagate": 55.8, "raid0": 80.9}
RATE_LIMIT_MB: Final = 37.5
"""Of the IBM drive on Linux 2.6.10, by software."""
DEPTH_KB: Final = {"ibm": 393, "seagate": 446, "raid0": 646}
"""Average competitive depths, in KB of 1000 bytes."""
LINUX: Final = "128KiB"
"""The greatest depth of Linux 2.6.10 (sections 5 and 6.2)."""
AGGRESSIVE: Final = "800KiB"
"""AP, section 6.2."""
SLOW_START: Final = ("64KiB", 98 * 4096, 3, 112 * 4096)
"""Section 4.3's example: first prefetch, depth, P, T."""
BOUND: Final = 2.0
"""Equation (8); 2 + P with a slow start, equation (15)."""
CONCURRENCY: Final = (1, 2, 4, 8, 16, 32, 64)
"""Clients of the servers. The figures' axes are not in the text: the issue's choice."""


class Range(NamedTuple):
    """Percent by which CP improves on Linux, the least and the greatest that the text names."""

    least: float
    greatest: float


# Section 6.2, Figures 6 and 7: throughput of servers over concurrency; execution time cut.
ONE_RAND: Final = Range(16, 24)
TWO_RAND: Final = Range(10, 35)
INDEX: Final = Range(10, 28)
DIFF_5: Final = 31.0
DIFF_50: Final = 34.0
TPC_H: Final = 8.0
# Section 6.3, Figure 8: "up to".
BLIND_ONE_WHOLE: Final = 71.0
# Section 6.4, Figures 10 and 11.
RAID_DIFF_50: Final = 53.0
"""Execution time of 2diff50 on the array; section 6.6 has it as the greatest improvement of all ("up to 53 %")."""
RAID_TWO_RAND: Final = 52.0
"""Throughput of Two-Rand-0 on the array ("up to 52 %")."""
INDEX_DEVICES: Final = Range(19, 26)
INDEX_AGGRESSIVE: Final = 15.0
"""AP over Linux there, at most."""
INDEX_BELOW: Final = INDEX_DEVICES.least - INDEX_AGGRESSIVE
"""Points by which AP is "significantly" less than CP there: the printed 19 and 15 % are no nearer."""
FIGURE_11_CLIENTS: Final = 4
# Section 6.5, Figure 12: execution time cut, alone.
ALONE_DIFF: Final = 33.0
ALONE_INDEX: Final = 18.0
ALONE_Q2: Final = 25.0
# Sections 4.3, 6.2 and 6.6.
HALF: Final = 0.5
"""CP's throughput over OPT's is at least that, on all microbenchmarks."""
BEHIND: Final = 0.42
"""CP trails OPT by no more, on all microbenchmarks."""

# When ours agrees. Drives, layouts and workloads are in part guesses, hence the width.
POINTS: Final = 10.0
"""The most points by which ours may be off a printed percentage; of a range both ends count. See `points`."""
EQUAL: Final = 0.05
"""Policies "perform equally well", vary "relatively little", or one has "little or no" effect, if the worst is at most
so far behind the best. The least that the text calls an improvement is 8 %."""
BETTER: Final = 0.05
"""A policy "improves" on another, or makes a request's latency longer, by more than this where no figure is named."""
SIGNIFICANT: Final = 0.10
"""A difference is "significant" beyond this: the least that the text calls so is 10 % (section 6.2, Two-Rand-0)."""
NONE: Final = 0.01
""""No degradation": no more than this. Ours: a simulation has no noise of measurement, only luck with places."""
HARDLY: Final = 0.05
"""AP is "hardly better" than CP if it is by no more than this."""
THEORY: Final = 0.005
"""Of depths that follow from printed numbers: the printed digits are rounded."""
PROFILE: Final = 0.01
"""Of our profiles' averages, which were made to come out as printed."""
ARRAY: Final = 0.10
"""Of the array of two of our drives, for which nothing was made to come out: rate, seek, depth."""


def points(printed: float) -> float:
    """Return by how many points ours may be off a printed percentage: half of it, 10 at most.

    A claim of 8 % is not met by no effect at all.
    """
    return min(POINTS, abs(printed) / 2)

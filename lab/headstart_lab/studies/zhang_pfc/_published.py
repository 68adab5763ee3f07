"""What the paper prints: settings that runs take, and figures that rows are set beside. Never a result of ours."""

from typing import Final

PAGE_BYTES: Final = 4096
"""Pages of section 4.1's link cost; their size is our reading, that of Linux on the machines of the time."""

LINK: Final = {"alpha": "6ms", "beta": "30us"}
"""Section 4.1: alpha = 6 ms, beta = 0.03 ms a page."""

DRIVE: Final = "seagate-cheetah-9lp"
"""Section 4.2."""

RA_DEGREE: Final = 4
"""P of RA, section 2.2."""

DRIVE_BYTES: Final = 9_100_000_000
"""Section 4.2: the drive's capacity, 9.1 GB."""

SHARES: Final = {"H": 0.05, "L": 0.01}
"""L1 as a share of the footprint, section 4.3."""

RATIOS: Final = (2.0, 1.0, 0.1, 0.05)
"""L2 over L1, section 4.3."""

DATA_BYTES: Final = 10 * 10**9
"""Section 4.2: of the SPC traces the first 10 GB of data requests."""

IMPROVED_CASES: Final = 96
"""Section 4.3: PFC improves every case."""

MEAN_PERCENT: Final = 14.6
"""Section 4.3: the mean improvement over the cases."""

GREATEST_PERCENT: Final = 35.0
"""Section 4.3: the greatest ("up to 35 %"; Table 1 has 35.77)."""

FOOTPRINT_MB: Final = {"OLTP": 529, "Web": 8392, "Multi": 792}
"""Section 4.2."""

RANDOM_PERCENT: Final = {"OLTP": 11, "Web": 74, "Multi": 25}
"""Section 4.2: the share of random accesses. The paper does not say how it tells them."""

BETTER_THAN_DU: Final = 0.77
"""Section 4.3: the share of cases in which PFC outperforms DU."""

SPED_UP: Final = 9
"""Section 4.3: cases in which L2's prefetching is sped up; it is slowed in the other 87."""

TABLE_1: Final[dict[tuple[str, float, str], dict[str, float]]] = {
    ("OLTP", 2.0, "H"): {"AMP": 13.98, "SARC": 8.49, "RA": 31.53, "Linux": 5.23},
    ("OLTP", 2.0, "L"): {"AMP": 9.77, "SARC": 10.88, "RA": 35.77, "Linux": 9.50},
    ("OLTP", 0.05, "H"): {"AMP": 10.94, "SARC": 6.74, "RA": 34.87, "Linux": 5.26},
    ("OLTP", 0.05, "L"): {"AMP": 7.80, "SARC": 11.41, "RA": 24.87, "Linux": 15.10},
    ("Web", 2.0, "H"): {"AMP": 14.66, "SARC": 0.70, "RA": 14.83, "Linux": 18.23},
    ("Web", 2.0, "L"): {"AMP": 12.54, "SARC": 26.43, "RA": 16.42, "Linux": 29.28},
    ("Web", 0.05, "H"): {"AMP": 6.56, "SARC": 19.21, "RA": 15.57, "Linux": 27.20},
    ("Web", 0.05, "L"): {"AMP": 5.76, "SARC": 20.59, "RA": 14.80, "Linux": 27.12},
    ("Multi", 2.0, "H"): {"AMP": 5.65, "SARC": 11.13, "RA": 24.85, "Linux": 5.03},
    ("Multi", 2.0, "L"): {"AMP": 5.43, "SARC": 8.29, "RA": 25.22, "Linux": 5.18},
    ("Multi", 0.05, "H"): {"AMP": 5.98, "SARC": 11.30, "RA": 25.61, "Linux": 5.52},
    ("Multi", 0.05, "L"): {"AMP": 5.86, "SARC": 10.39, "RA": 25.39, "Linux": 5.87},
}
"""Table 1: percent by which PFC improves the mean response time, by trace, L2 over L1 and L1's setting."""

FIGURE_5: Final = {"best": ("OLTP", "RA", "L", 2.0), "worst": ("Web", "SARC", "H", 2.0)}
"""Figure 5's two cases: the greatest and the least improvement (of Table 1)."""

"""The findings of the figures beside Linux's read-ahead as it was, in place of `fixed-depth` with 128 KiB.

The paper's Linux is 2.6.10, below a virtual machine 2.6.16 (sections 6.2 and 6.3). `linux-2.6.10` and `linux-2.6.16`
are their read-aheads after the source. CP and AP remain those of the figures, which detect streams in another way: the
paper's prototype had 2.6.10's, so that rows of `sensitivity` give all three the windows of 2.6.10.

Criteria are those of the figures (`_published`): each finding is judged as it is there, on the same cases. The
baseline of the figures is to change if more findings agree beside these than beside `fixed-depth`, and none is lost.
"""

from typing import Final

from headstart.studies._lab import Steps
from headstart.studies._rows import Row
from headstart.studies.li07 import _published as paper
from headstart.studies.li07 import _servers, _tools
from headstart.studies.li07._claims import equal, improves, rate_row, time_row, up_to, within
from headstart.studies.li07._system import LINUX_2_6_10, LINUX_2_6_16, POLICIES, Keys, Lab, Runs

KERNEL: Final[dict[str, Keys]] = {**POLICIES, "Linux": LINUX_2_6_10}
GUEST: Final[dict[str, Keys]] = {**POLICIES, "Linux": LINUX_2_6_16}
BESIDE: Final = "beside Linux 2.6.10 as it was: "
BESIDE_GUEST: Final = "beside Linux 2.6.16 as it was: "


def kernels(lab: Lab) -> Steps:
    """Figures 6 to 12 beside the read-ahead of the paper's kernels as it was."""
    servers = {item: _servers.panels(lab, item, KERNEL) for item in ("figure6", "figure11")}
    guest = _servers.panels(lab, "figure8", GUEST)
    tools = {item: _tools.panels(lab, item, KERNEL) for item in ("figure7", "figure10", "figure12")}
    hidden = list(_tools.panels(lab, "figure9", GUEST).values())
    yield
    runs = [each for found in (*servers.values(), guest) for panel in found.values() for each in panel]
    timed = [each for found in tools.values() for each in found.values()] + hidden
    return [
        *(rate_row(each) for each in runs),
        *(time_row(each) for each in timed),
        *_figure6(servers["figure6"]),
        *_figure8(guest),
        improves(f"{BESIDE_GUEST}2cp5, 2cp50, cp5+diff5, cp50+diff50", "CP improves on Linux", hidden),
        *_figure11(servers["figure11"]),
        *_programs(tools),
    ]


def _figure6(found: dict[str, list[Runs]]) -> list[Row]:
    practical = _servers.PRACTICAL
    return [
        equal(f"{BESIDE}One-Whole-0", "all practical policies equally well", found["one-whole"], practical),
        within(f"{BESIDE}One-Rand-10: CP", paper.ONE_RAND, found["one-rand"]),
        within(f"{BESIDE}Two-Rand-0: CP", paper.TWO_RAND, found["two-rand"]),
        equal(f"{BESIDE}Four-64KB-0", "all policies perform similarly", found["four-64kb"], practical),
        equal(f"{BESIDE}media clips: CP", "no further improvement", found["media-server"], ("Linux", "CP")),
        within(f"{BESIDE}index searching: CP", paper.INDEX, found["index-search"]),
    ]


def _figure8(found: dict[str, list[Runs]]) -> list[Row]:
    several = [each for each in found["media-server"] if each.case.workload["concurrency"] > 1]
    return [
        up_to(f"{BESIDE_GUEST}One-Whole-0: CP", paper.BLIND_ONE_WHOLE, found["one-whole"]),
        improves(f"{BESIDE_GUEST}media clips, 2 clients and more", "CP improves on Linux", several),
    ]


def _figure11(found: dict[str, list[Runs]]) -> list[Row]:
    return [
        up_to(f"{BESIDE}Two-Rand-0: CP, of the array", paper.RAID_TWO_RAND, found["two-rand"][-1:]),
        within(f"{BESIDE}index searching on three drives: CP", paper.INDEX_DEVICES, found["index-search"]),
    ]


def _programs(found: dict[str, dict[str, Runs]]) -> list[Row]:
    together, drives, alone = (found[item] for item in ("figure7", "figure10", "figure12"))
    cut = _tools.cut
    return [
        equal(
            f"{BESIDE}2cp5, 2cp50",
            "relatively small variation",
            [together["2cp5"], together["2cp50"]],
            ("Linux", "CP", "AP"),
        ),
        cut(f"{BESIDE}2diff5: CP", paper.DIFF_5, together["2diff5"]),
        cut(f"{BESIDE}2diff50: CP", paper.DIFF_50, together["2diff50"]),
        cut(f"{BESIDE}2TPC-H: CP", paper.TPC_H, together["2TPC-H"]),
        cut(f"{BESIDE}2diff50 on the array: CP", paper.RAID_DIFF_50, drives["2diff50 on RAID0"]),
        equal(
            f"{BESIDE}cp, kernel build, TPC-H, media clips alone: CP",
            "little or no impact",
            [alone[name] for name in _tools.UNTOUCHED],
            ("Linux", "CP"),
        ),
        *(cut(f"{BESIDE}{name} alone: CP", paper.ALONE_DIFF, alone[name]) for name in ("diff5", "diff50")),
        cut(f"{BESIDE}index searching alone: CP", paper.ALONE_INDEX, alone["index searching"]),
        cut(f"{BESIDE}TPC-H Q2 alone: CP", paper.ALONE_Q2, alone["TPC-H Q2"]),
    ]

"""The findings of the figures beside Linux's read-ahead as it was, in place of `fixed-depth` with 128 KiB.

The paper's Linux is 2.6.10, below a virtual machine 2.6.16 (sections 6.2 and 6.3). `linux-2.6.10` and `linux-2.6.16`
are their read-aheads after the source. CP and AP remain those of the figures, which detect streams in another way: the
paper's prototype had 2.6.10's, so that rows of `sensitivity` give all three the windows of 2.6.10.

Criteria are those of the figures (`_published`): each finding is judged as it is there, on the same cases. The
baseline of the figures is to change if more findings agree beside these than beside `fixed-depth`, and none is lost.

Item `baselines` has the same findings beside four read-aheads, each in place of Linux in every figure, and how far
each is from the percentages that the paper prints. It has no verdicts.
"""

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Basis, Row, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07 import _servers, _tools
from headstart_lab.studies.li07._claims import basis_of, equal, improves, rate_row, time_row, up_to, within
from headstart_lab.studies.li07._system import LINUX_2_6_10, LINUX_2_6_16, POLICIES, Keys, Lab, Runs

HOST: Final = "beside Linux 2.6.10 as it was: "
GUEST: Final = "beside Linux 2.6.16 as it was: "

FIXED_DEPTH: Final = "fixed-depth"
READ_AHEADS: Final[dict[str, Keys]] = {
    FIXED_DEPTH: POLICIES["Linux"],
    "linux": {"name": "linux", "version": "6.12", "read_ahead": paper.LINUX},
    "linux-2.6.10": LINUX_2_6_10,
    "linux-2.6.16": LINUX_2_6_16,
}
"""The figures' own; Linux from 2.6.23 on; the two of the paper's kernels."""
AS_THE_PAPER: Final = "linux-2.6.10 and, below a virtual machine, linux-2.6.16"


@dataclasses.dataclass(frozen=True)
class Found:
    """The runs of Figures 6 to 12 beside one read-ahead, or one for the host and one for virtual machines."""

    servers: dict[str, dict[str, list[Runs]]]
    """By figure and workload."""
    programs: dict[str, dict[str, Runs]]
    """By figure and case."""


def kernels(lab: Lab) -> Steps:
    """Figures 6 to 12 beside the read-ahead of the paper's kernels as it was."""
    found = _ask(lab, LINUX_2_6_10, LINUX_2_6_16)
    yield
    runs = [each for panels in found.servers.values() for panel in panels.values() for each in panel]
    timed = [each for panel in found.programs.values() for each in panel.values()]
    return [
        *(rate_row(each) for each in runs),
        *(time_row(each) for each in timed),
        *_findings(found, HOST, GUEST),
    ]


def baselines(lab: Lab) -> Steps:
    """The printed percentages of Figures 6 to 12 beside four read-aheads of Linux."""
    found = {name: _ask(lab, keys, keys) for name, keys in READ_AHEADS.items()}
    both = _ask(lab, LINUX_2_6_10, LINUX_2_6_16)
    yield
    gains = {name: _gains(each) for name, each in found.items()}
    names = ", ".join(READ_AHEADS)
    held = {name: _holding(each) for name, each in {**found, AS_THE_PAPER: both}.items()}
    return [
        *(
            unpublished(
                f"{gain.quantity}, printed {gain.printed_text}: {names} (%)",
                "; ".join(each[at].ours_text for each in gains.values()),
            )
            for at, gain in enumerate(gains[FIXED_DEPTH])
        ),
        _distances("predicted figures", names, gains, "predicted"),
        _distances("calibrated figures", names, gains, "calibrated"),
        *(_agreeing(name, holding, held[FIXED_DEPTH]) for name, holding in held.items()),
    ]


def _ask(lab: Lab, host: Keys, guest: Keys) -> Found:
    """Ask for all runs with these read-aheads in place of Linux'."""
    above, below = {**POLICIES, "Linux": host}, {**POLICIES, "Linux": guest}
    servers = {item: _servers.panels(lab, item, above) for item in ("figure6", "figure11")}
    programs = {item: _tools.panels(lab, item, above) for item in ("figure7", "figure10", "figure12")}
    return Found(
        servers | {"figure8": _servers.panels(lab, "figure8", below)},
        programs | {"figure9": _tools.panels(lab, "figure9", below)},
    )


def _findings(found: Found, host: str = "", guest: str = "") -> list[Row]:
    """Return the findings; `host` and `guest` name the baselines."""
    return [
        *_figure6(found.servers["figure6"], host),
        *_figure8(found.servers["figure8"], guest),
        improves(
            f"{guest}2cp5, 2cp50, cp5+diff5, cp50+diff50",
            "CP improves on Linux",
            list(found.programs["figure9"].values()),
        ),
        *_figure11(found.servers["figure11"], host),
        *_programs(found.programs, host),
    ]


@dataclasses.dataclass(frozen=True)
class Gain:
    """By how many percent CP improves on Linux, as printed and as we find it: one figure, or both ends of a range."""

    quantity: str
    printed: tuple[float, ...]
    ours: tuple[float, ...]
    basis: Basis

    @property
    def distance(self) -> float:
        """By how many points ours is off, for a range the mean of both ends."""
        return statistics.fmean(abs(ours - printed) for ours, printed in zip(self.ours, self.printed, strict=True))

    @property
    def printed_text(self) -> str:
        """What the paper prints."""
        return " to ".join(f"{each:g}" for each in self.printed)

    @property
    def ours_text(self) -> str:
        """What we find."""
        return " to ".join(f"{each:.1f}" for each in self.ours)


def _gains(found: Found) -> list[Gain]:
    """Return all gains that the paper prints as a percentage."""
    figure6, figure8, figure11 = (found.servers[item] for item in ("figure6", "figure8", "figure11"))
    together, drives, alone = (found.programs[item] for item in ("figure7", "figure10", "figure12"))
    ranges = (
        ("One-Rand-10", paper.ONE_RAND, figure6["one-rand"]),
        ("Two-Rand-0", paper.TWO_RAND, figure6["two-rand"]),
        ("index searching", paper.INDEX, figure6["index-search"]),
        ("index searching on three drives", paper.INDEX_DEVICES, figure11["index-search"]),
    )
    greatest = (
        ("One-Whole-0 below a virtual machine, at most", paper.BLIND_ONE_WHOLE, figure8["one-whole"]),
        ("Two-Rand-0 on the array", paper.RAID_TWO_RAND, figure11["two-rand"][-1:]),
    )
    cuts = (
        ("2diff5", paper.DIFF_5, together["2diff5"]),
        ("2diff50", paper.DIFF_50, together["2diff50"]),
        ("2TPC-H", paper.TPC_H, together["2TPC-H"]),
        ("2diff50 on the array", paper.RAID_DIFF_50, drives["2diff50 on RAID0"]),
        ("diff5 alone", paper.ALONE_DIFF, alone["diff5"]),
        ("diff50 alone", paper.ALONE_DIFF, alone["diff50"]),
        ("index searching alone", paper.ALONE_INDEX, alone["index searching"]),
        ("TPC-H Q2 alone", paper.ALONE_Q2, alone["TPC-H Q2"]),
    )
    return [
        *(Gain(name, tuple(printed), _ends(runs), basis_of(runs)) for name, printed, runs in ranges),
        *(Gain(name, (printed,), _ends(runs)[1:], basis_of(runs)) for name, printed, runs in greatest),
        *(Gain(name, (printed,), (runs.cut(),), basis_of([runs])) for name, printed, runs in cuts),
    ]


def _ends(runs: Sequence[Runs]) -> tuple[float, float]:
    gains = [each.gain() for each in runs]
    return min(gains), max(gains)


def _distances(what: str, names: str, gains: dict[str, list[Gain]], basis: Basis) -> Row:
    """Return how far each read-ahead is from the printed figures, on the figures of this basis."""
    of = {name: [gain for gain in each if gain.basis == basis] for name, each in gains.items()}
    return unpublished(
        f"mean distance from the printed percentages, {len(of[FIXED_DEPTH])} {what}: {names} (points)",
        "; ".join(f"{statistics.fmean(gain.distance for gain in each):.1f}" for each in of.values()),
        note="of a range the mean of both ends; each figure counts once",
    )


def _holding(found: Found) -> dict[str, bool]:
    return {row.quantity: row.verdict == "agrees" for row in _findings(found)}


def _agreeing(name: str, holding: dict[str, bool], before: dict[str, bool]) -> Row:
    """Return how many findings agree, and which are won and lost by the change from `fixed-depth`."""
    won = [quantity for quantity, holds in holding.items() if holds and not before[quantity]]
    lost = [quantity for quantity, holds in holding.items() if before[quantity] and not holds]
    return unpublished(
        f"findings that agree beside {name}, of {len(holding)}",
        sum(holding.values()),
        note=f"beside {FIXED_DEPTH} these do not: {'; '.join(won) or 'none'}; only there: {'; '.join(lost) or 'none'}",
    )


def _figure6(found: dict[str, list[Runs]], beside: str) -> list[Row]:
    practical = _servers.PRACTICAL
    return [
        equal(f"{beside}One-Whole-0", "all practical policies equally well", found["one-whole"], practical),
        within(f"{beside}One-Rand-10: CP", paper.ONE_RAND, found["one-rand"]),
        within(f"{beside}Two-Rand-0: CP", paper.TWO_RAND, found["two-rand"]),
        equal(f"{beside}Four-64KB-0", "all policies perform similarly", found["four-64kb"], practical),
        equal(f"{beside}media clips: CP", "no further improvement", found["media-server"], ("Linux", "CP")),
        within(f"{beside}index searching: CP", paper.INDEX, found["index-search"]),
    ]


def _figure8(found: dict[str, list[Runs]], beside: str) -> list[Row]:
    several = [each for each in found["media-server"] if each.case.workload["concurrency"] > 1]
    return [
        up_to(f"{beside}One-Whole-0: CP", paper.BLIND_ONE_WHOLE, found["one-whole"]),
        improves(f"{beside}media clips, 2 clients and more", "CP improves on Linux", several),
    ]


def _figure11(found: dict[str, list[Runs]], beside: str) -> list[Row]:
    return [
        up_to(f"{beside}Two-Rand-0: CP, of the array", paper.RAID_TWO_RAND, found["two-rand"][-1:]),
        within(f"{beside}index searching on three drives: CP", paper.INDEX_DEVICES, found["index-search"]),
    ]


def _programs(found: dict[str, dict[str, Runs]], beside: str) -> list[Row]:
    together, drives, alone = (found[item] for item in ("figure7", "figure10", "figure12"))
    cut = _tools.cut
    return [
        equal(
            f"{beside}2cp5, 2cp50",
            "relatively small variation",
            [together["2cp5"], together["2cp50"]],
            ("Linux", "CP", "AP"),
        ),
        cut(f"{beside}2diff5: CP", paper.DIFF_5, together["2diff5"]),
        cut(f"{beside}2diff50: CP", paper.DIFF_50, together["2diff50"]),
        cut(f"{beside}2TPC-H: CP", paper.TPC_H, together["2TPC-H"]),
        cut(f"{beside}2diff50 on the array: CP", paper.RAID_DIFF_50, drives["2diff50 on RAID0"]),
        equal(
            f"{beside}cp, kernel build, TPC-H, media clips alone: CP",
            "little or no impact",
            [alone[name] for name in _tools.UNTOUCHED],
            ("Linux", "CP"),
        ),
        *(cut(f"{beside}{name} alone: CP", paper.ALONE_DIFF, alone[name]) for name in ("diff5", "diff50")),
        cut(f"{beside}index searching alone: CP", paper.ALONE_INDEX, alone["index searching"]),
        cut(f"{beside}TPC-H Q2 alone: CP", paper.ALONE_Q2, alone["TPC-H Q2"]),
    ]

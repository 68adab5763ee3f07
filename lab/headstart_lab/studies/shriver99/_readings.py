"""What "17 to 23 %" with the disk's read-ahead may mean: readings that were tried, none of which gives it.

Figures 1 and 2 set measured times with read-ahead beside computed ones without, of the fast machine, and print no
number but this range. What the paper does print are the slow machine's times (Table 3) and the equations: a reading
says what the disk does more without read-ahead, and how often; on which machine; whether a file's first request seeks,
as equation (2) has it, or not, as the tables have it; and whether the percentage is of the time without read-ahead or
of that with it. A reading gives the range if both ends are within a point of it.
"""

import itertools
from typing import Final, NamedTuple

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.shriver99 import _published as paper
from headstart_lab.studies.shriver99._figures import REQUESTS_KB, spread
from headstart_lab.studies.shriver99._runs import Lab, model_ms

HALF_TURN_MS: Final = 3.0
"""E[RotLat] at 10,000 rpm (section 4.2)."""
SEEK_MS: Final = 3.597 + 0.002 * 6526 / 3
"""E[SeekTime] over a third of the cylinders (sections 4.2 and 4.4)."""

MOVES_MS: Final = {
    "half a turn": HALF_TURN_MS,
    "a turn": 2 * HALF_TURN_MS,
    "a seek and half a turn": SEEK_MS + HALF_TURN_MS,
}
COUNTS: Final = {
    "for each disk request but the first": {64: 3, 128: 6},
    "once a file": {64: 1, 128: 1},
    "once each 64 KB": {64: 1, 128: 2},
    "once a cluster, as NumClusters counts them": {64: 1, 128: 3},
}
"""By KB of the file. Section 5 has 4 requests of 64 KB, the tables 7 of 128 KB; NumClusters is in section 4.4."""

POINT: Final = 0.01
NEAREST: Final = 6
"""Number of readings shown."""
LITERAL: Final = (": half a turn more for each disk request but the first", "Table 5 over 3, measured")
"""How the words end of those that are shown as well: equation (2), and what the paper's tables have to compare."""


class Reading(NamedTuple):
    """A reading, and the ratios of response times that it gives: with read-ahead over without."""

    words: str
    ratios: list[float]

    @property
    def lower(self) -> tuple[float, float]:
        """By how much the time with read-ahead is lower, least and greatest."""
        return 1 - max(self.ratios), 1 - min(self.ratios)

    @property
    def longer(self) -> tuple[float, float]:
        """By how much the time without read-ahead is longer."""
        return 1 / max(self.ratios) - 1, 1 / min(self.ratios) - 1

    @property
    def off(self) -> float:
        """How far the farther end is from the printed one, by the nearer of both ways to take a percentage."""
        printed = sorted(1 - ratio for ratio in paper.READ_AHEAD)
        return min(
            max(abs(ours - theirs) for ours, theirs in zip(way, printed, strict=True))
            for way in (self.lower, self.longer)
        )


def readings(lab: Lab) -> Steps:
    """Readings of "17 to 23 %" with the disk's read-ahead (section 5), none of which gives it."""
    del lab
    yield
    found = sorted(tried(), key=lambda each: each.off)
    near = [each for each in found if each.off <= POINT]
    shown = [*found[:NEAREST], *(each for each in found[NEAREST:] if each.words.endswith(LITERAL))]
    return [
        unpublished(
            f"readings of {len(found)}, each as a reduction and as an increase, that give 17 to 23 %",
            len(near),
            note="both ends within a point; " + ("; ".join(each.words for each in near) or "none"),
        ),
        *(_row(each) for each in shown),
    ]


def tried() -> list[Reading]:
    """Return all readings."""
    found = []
    for machine, seek_ms, move, count in itertools.product(("fast", "slow"), (0.0, SEEK_MS), MOVES_MS, COUNTS):
        ratios = [
            (with_ms + seek_ms) / (with_ms + seek_ms + times * MOVES_MS[move])
            for file_kb, times in COUNTS[count].items()
            for with_ms in _totals(machine, file_kb)
        ]
        first = ", the first request seeks" if seek_ms else ""
        found.append(Reading(f"{machine} machine{first}: {move} more {count}", ratios))
    for words, column in (("measured", "measured_ms"), ("computed", "computed_ms")):
        ratios = [
            getattr(on, column) / getattr(off, column) for on, off in zip(paper.TABLE_3, paper.TABLE_5, strict=True)
        ]
        found.append(Reading(f"the file system's prefetching in place of the disk's: Table 5 over 3, {words}", ratios))
    return found


def _totals(machine: str, file_kb: int) -> list[float]:
    """Return the time to read a file with read-ahead: measured on the slow machine, by the equations on the fast."""
    if machine == "slow":
        return [row.measured_ms * file_kb / row.request_kb for row in paper.TABLE_3 if row.file_kb == file_kb]
    return [model_ms("fast", file_kb=file_kb, request_kb=kb) * file_kb / kb for kb in REQUESTS_KB]


def _row(reading: Reading) -> Row:
    return unpublished(
        f"with read-ahead beside without, {reading.words}",
        f"{spread([1 - share for share in reading.lower])}, {spread([1 + share for share in reading.longer])}",
        note=f"the farther end {100 * reading.off:.1f} points off",
    )

"""The matrix: six patterns, four synchronisations, with and without compute, each with and without prefetching.

Setting: sections 5.1 and 5.4. What the paper does not print is guessed or found by scanning, and swept by the item
`sensitivity`: the portions' lengths and places (guesses, those of the patterns' defaults), the frames of the cache
(`Variant.spare`), when an action's request enters the disk's queue (`ACTION_ISSUES`), and how long each look-up holds
the shared structures (`CONTENTION_MS`).
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import Any, Final

from headstart_lab.studies import _lab
from headstart_lab.studies._lab import Cell
from headstart_lab.studies.kotz_ellis import _published as paper
from headstart_lab.studies.kotz_ellis._outcome import Outcome, mean, share

ACTION_ISSUES: Final = "start"
"""Found by scanning for the findings as a whole: with "end" some read times rise, and slowdowns exceed 5 %."""

CONTENTION_MS: Final = 0.75
"""Of each look-up. Found by scanning for the findings as a whole, in steps of 0.25: at 0.75 no finding is lost that
holds with less, and the greatest reduction of a total is nearest to the published 53 %. The 6 to 16 ms of an action
(section 6.3) are measured and include all contention, so actions hold nothing beside them; `sensitivity` has the other
reading."""

PATTERNS: Final = ("lfp", "lrp", "lw", "gfp", "grp", "gw")
GLOBAL: Final = ("gfp", "grp", "gw")
WHOLE: Final = ("lw", "gw")

SYNCS: dict[str, dict[str, Any]] = {
    "10 each": {"scope": "process", "every": paper.EACH},
    "200 in all": {"scope": "all", "every": paper.ALL},
    "none": {"scope": "none"},
    "portion": {"scope": "portion"},
}
"""Section 5.4. lw and gw have one portion: nothing to meet after."""

COMPUTES: Final = (0.0, paper.COMPUTE_MS)

SEEDS: Final = (1, 2, 3, 4, 5)
"""Every case is the mean of a run with each: some findings would hold with one seed and not with another."""


@dataclasses.dataclass(frozen=True, order=True)
class Case:
    """A program."""

    pattern: str
    sync: str
    compute_ms: float

    @property
    def label(self) -> str:
        """The name in rows: "gw, 10 each, 30 ms"."""
        return f"{self.pattern}, {self.sync}, {self.compute_ms:g} ms"

    def scenario(self, *, prefetching: bool, variant: "Variant", seed: int = SEEDS[0]) -> dict[str, Any]:
        """Return the scenario of one run."""
        keys = {**BASE, **variant.process}
        frames = paper.PROCESSES * paper.RU_SIZE + int(keys["buffers"]) + variant.spare
        if not prefetching:
            keys = {name: value for name, value in keys.items() if name in WITHOUT}
        return {
            "seed": seed,
            "workload": {
                "compute": f"exp:{self.compute_ms:g}ms" if self.compute_ms else "0ms",
                "block_size": "1KiB",
            },
            "process": {
                "count": paper.PROCESSES,
                "pattern": {"name": self.pattern, **variant.portions(self.pattern)},
                "barrier": SYNCS[self.sync],
                **keys,
            },
            "cache": {"blocks": frames},
            "policy": {"name": "rapid-transit"} if prefetching else {"name": "demand", "replacement": "ru-set"},
            "device": {
                "model": {"name": "uniform", "fetch_time": f"{paper.DISK_MS:g}ms"},
                "count": paper.PROCESSES,
                "stripe_unit": "1KiB",
                "scheduler": "fcfs",
            },
        }


BASE: dict[str, Any] = {
    "prefetch_action": f"uniform:{paper.ACTION_MS[0]:g}ms:{paper.ACTION_MS[1]:g}ms",
    "buffers": paper.BUFFERS,
    "for_others": True,
    "action_issues": ACTION_ISSUES,
    "contention": f"{CONTENTION_MS:g}ms",
}
"""Keys of [process]."""

WITHOUT: Final = ("contention",)
"""The keys that have a meaning without prefetching."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """What differs from the pinned setting."""

    seeds: tuple[int, ...] = SEEDS
    process: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Keys of [process]."""
    portion: int = 10
    """Blocks of a local portion; of lrp their mean, and that of the gaps. A guess: as many as a process reads between
    two barriers."""
    together: int = paper.PROCESSES
    """How many times as long the portions are that processes read together: a process's share is as long as a local
    one. A guess."""
    apart: int = 0
    """Blocks between the beginnings of lfp's processes; 0: an even share of the file and one more."""
    spare: int = 0
    """Frames beyond one for each process and one for each prefetched block. A guess: how many the cache had in all is
    not printed, only the size of the RU-sets and how many buffers are for prefetching alone."""

    def portions(self, pattern: str) -> dict[str, Any]:
        """Return the keys of `pattern`."""
        if pattern in WHOLE:
            return {}
        length = self.portion * (self.together if pattern in GLOBAL else 1)
        if pattern in ("lrp", "grp"):
            return {"portion_mean": length, "gap_mean": length}
        # Two portions are skipped after each one: three times round the file all blocks have been read.
        return {"portion": length, "stride": 2 * length + 1} | ({"apart": self.apart} if pattern == "lfp" else {})


PINNED: Final = Variant()


@dataclasses.dataclass(frozen=True)
class Pair:
    """A case without and with prefetching."""

    case: Case
    cells: tuple[tuple[Cell[Outcome], ...], tuple[Cell[Outcome], ...]]
    """A run of each seed without prefetching, and with it."""

    @functools.cached_property
    def without(self) -> Outcome:
        """The runs without prefetching, their mean."""
        return mean([cell.outcome for cell in self.cells[0]])

    @functools.cached_property
    def prefetching(self) -> Outcome:
        """The runs with it, their mean."""
        return mean([cell.outcome for cell in self.cells[1]])

    @property
    def total_gain(self) -> float:
        """By how many percent prefetching shortens the total execution time."""
        return 100 * share(self.without.total_ms - self.prefetching.total_ms, self.without.total_ms)

    @property
    def read_gain(self) -> float:
        """By how many percent it shortens the mean read time."""
        return 100 * share(self.without.read_ms - self.prefetching.read_ms, self.without.read_ms)


class Lab(_lab.Lab[Outcome]):
    """The laboratory, and pairs of runs from it."""

    outcome = Outcome

    def pair(self, case: Case, variant: Variant = PINNED) -> Pair:
        """Ask for a case without and with prefetching."""

        def runs(prefetching: bool) -> tuple[Cell[Outcome], ...]:
            of = (case.scenario(prefetching=prefetching, variant=variant, seed=seed) for seed in variant.seeds)
            return tuple(map(self.ask, of))

        return Pair(case, (runs(False), runs(True)))

    def matrix(self, variant: Variant = PINNED) -> list[Pair]:
        """Ask for all cases."""
        return [self.pair(case, variant) for case in CASES]


def cases() -> list[Case]:
    """Return all cases, in the paper's order."""
    combined = itertools.product(PATTERNS, SYNCS, COMPUTES)
    return [Case(*each) for each in combined if not (each[0] in WHOLE and each[1] == "portion")]


CASES: Final = cases()

"""Why CP gains less than printed on three workloads and on the array: one cause at a time, and together.

CP's gain over Linux is a third to a half of the printed one on One-Rand-10, Two-Rand-0 and index searching (Figure 6),
and on Two-Rand-0 on the array (Figure 11). What may be the reason:

- the baseline: the figures' Linux is `fixed-depth`; here the read-ahead of Linux 2.6.10 as it was;
- the scheduler: ours knows the clients from before, the paper's handlers may be threads that it does not. A wait of
  1 ms in place of 6, and none at all, are the two ends;
- mapped files: Linux 2.6.10 reads around a page fault, half of the 128 KiB before the page, which a sequential reader
  has, half from it on, and nothing ahead of the reader (mm/filemap.c, filemap_nopage): 64 KiB at a time, waited for.
  The paper does not say that its search engine maps files; section 2 says that some programs do. CP is either as in the
  figures, or reads around as well, half of its depth at a time;
- the array: 24 GB of data lie on a twelfth of ours. On half of it seeks are as long as the paper takes them to be.

None of these is a choice for the figures: the paper tells of none which it was. The share of the gap is how much nearer
to the printed gain a change brings ours, of the range the mean of both ends; more than 100 % is beyond it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._claims import rests_on
from headstart_lab.studies.li07._servers import NAMES
from headstart_lab.studies.li07._system import AWARE, LINUX_2_6_10, POLICIES, RAID0, Case, Keys, Lab, Runs, server

PRINTED: Final[dict[str, tuple[float, ...]]] = {
    "one-rand": paper.ONE_RAND,
    "two-rand": paper.TWO_RAND,
    "index-search": paper.INDEX,
}
ARRAY: Final = "Two-Rand-0 on the array"

BASELINES: Final[dict[str, Keys]] = {"": POLICIES["Linux"], "beside Linux 2.6.10 as it was": LINUX_2_6_10}
SCHEDULERS: Final[dict[str, Keys | str]] = {
    "": AWARE,
    "waiting 1 ms for a process": {"name": AWARE, "wait": "1ms"},
    "no anticipation": "deadline",
}
SPREAD: Final = 36_000
"""Files of 4 MiB: half of the array."""

AROUND: Final = "64KiB"
"""What a fault on a mapped page reads from the page on, of Linux' 128 KiB."""
CP_AROUND: Final = "196KiB"
"""The same of CP's average depth on the IBM drive, 393 KB."""

DEMAND: Final[Keys] = {"name": "demand", "replacement": "lru"}


def gap(lab: Lab) -> Steps:
    """What explains the gap to the printed gains of CP on three workloads and on the array."""
    asked: dict[str, dict[str, list[Runs]]] = {}
    for words, baseline, scheduler in _changes():
        asked[words] = {
            NAMES[generator]: [
                _runs(lab, generator, clients, baseline, scheduler=scheduler) for clients in paper.CONCURRENCY
            ]
            for generator in PRINTED
        }
        asked[words][ARRAY] = [_array(lab, baseline, scheduler)]
    for words, runs in _mapped(lab).items():
        asked[words] = {NAMES["index-search"]: runs}
    for words, baseline, scheduler in _changes():
        if scheduler in (AWARE, "deadline"):
            asked[_and("data on half of the array", words)] = {ARRAY: [_array(lab, baseline, scheduler, files=SPREAD)]}
    yield
    printed = {NAMES[generator]: tuple(ends) for generator, ends in PRINTED.items()} | {ARRAY: (paper.RAID_TWO_RAND,)}
    return [
        unpublished(f"printed: {', '.join(printed)} (%)", "; ".join(_text(ends, ".0f") for ends in printed.values())),
        *(_row(words, runs, printed, asked[""]) for words, runs in asked.items()),
    ]


def _changes() -> list[tuple[str, Keys, Keys | str]]:
    """Return baseline and scheduler, each as in the figures and changed, with words."""
    return [
        (_and(first, second), baseline, scheduler)
        for first, baseline in BASELINES.items()
        for second, scheduler in SCHEDULERS.items()
    ]


def _and(*words: str) -> str:
    return ", ".join(filter(None, words))


def _runs(lab: Lab, generator: str, clients: int, baseline: Keys, **system: Any) -> Runs:
    case = Case(NAMES[generator], server(generator, clients), **system)
    return lab.runs(case, {"Linux": baseline, "CP": POLICIES["CP"]})


def _array(lab: Lab, baseline: Keys, scheduler: Keys | str, **workload: Any) -> Runs:
    case = Case(ARRAY, server("two-rand", paper.FIGURE_11_CLIENTS, **workload), RAID0, scheduler)
    return lab.runs(case, {"Linux": baseline, "CP": POLICIES["CP"]})


def _mapped(lab: Lab) -> dict[str, list[Runs]]:
    """Ask for index searching on mapped files: demand fetches of what a fault reads stand for reading around."""
    found: dict[str, list[Runs]] = {"mapped files": [], "mapped files, CP reads around too": []}
    for clients in paper.CONCURRENCY:
        case, coarse = (
            Case(NAMES["index-search"], server("index-search", clients, read=size)) for size in (AROUND, CP_AROUND)
        )
        linux = lab.one(case, DEMAND)
        found["mapped files"].append(Runs(case, {"Linux": linux, "CP": lab.one(case, POLICIES["CP"])}))
        around = Runs(coarse, {"Linux": linux, "CP": lab.one(coarse, DEMAND)})
        found["mapped files, CP reads around too"].append(around)
    return found


def _row(
    words: str,
    runs: Mapping[str, Sequence[Runs]],
    printed: Mapping[str, tuple[float, ...]],
    figures: Mapping[str, Sequence[Runs]],
) -> Row:
    told = []
    for name, of in runs.items():
        ends = _ends(of, printed[name])
        share = 1 - _short(printed[name], ends) / _short(printed[name], _ends(figures[name], printed[name]))
        told.append(_text(ends, ".1f") + (f" ({100 * share:.0f} %)" if words else ""))
    return unpublished(
        f"{words or 'as in the figures'}: {', '.join(runs)} (%; share of the gap)",
        "; ".join(told),
        input=rests_on(each for of in runs.values() for each in of)["input"],
    )


def _ends(runs: Sequence[Runs], printed: tuple[float, ...]) -> tuple[float, ...]:
    gains = [each.gain() for each in runs]
    return (min(gains), max(gains)) if len(printed) > 1 else (max(gains),)


def _short(printed: tuple[float, ...], ours: tuple[float, ...]) -> float:
    """Return by how many points ours is below the printed gain, for a range the mean of both ends."""
    return sum(theirs - each for theirs, each in zip(printed, ours, strict=True)) / len(printed)


def _text(ends: tuple[float, ...], digits: str) -> str:
    return " to ".join(format(each, digits) for each in ends)

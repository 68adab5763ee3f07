"""imperfect-hints: hinted policies when hints are missing, wrong or in the wrong order, on recorded programs.

Kimbrel et al. (OSDI 1996) leave this open and state an expectation (section 6): "Aggressive prefetching increases both
disk utilization and cache utilization. Therefore, disks are more likely to be busy when unhinted accesses occur. [...]
Since fixed horizon places the least load on the disks and the cache, it is likely to be least affected by unhinted
accesses and to have the smallest impact on other executing processes." This study tests it.

A place is a recorded program with one kind of think time (as recorded, or scaled to the mean of the paper's trace of
that kind) on 1, 2, 4, 8 or 16 disks; drives, cache and driver overhead are those of kimbrel96. The slowdown of a policy
is its elapsed time over its own with perfect hints at the same place. Means of slowdowns and of times are geometric,
over all places.

The criteria, written before the first results. They compare the paper's three practical policies: fixed horizon
(H = 62), aggressive and forestall (batches of Table 6).

- unhinted: with a tenth, half and nine tenths of the hints missing, fixed horizon has the least mean slowdown.
- places: at each of these shares it has the least slowdown, ties included, in more than half of the places.
- time: with half of the hints missing, the least affected policy is also the fastest: fixed horizon's mean time, beside
  that of demand fetching, is the least.
- utilisation: with half of the hints missing, aggressive keeps the disks busier than fixed horizon does in the mean,
  and in no place less busy by more than 0.01, the paper's last digit.
- queues: there, a disk request takes longer from queue to end under aggressive than under fixed horizon, in the mean.
- load: with half of the hints missing, fixed horizon fetches no more blocks than aggressive and forestall, each summed
  over all places.
- wrong: with a tenth of the hints wrong, fixed horizon has the least mean slowdown. The paper names missing hints only:
  this is the same argument, that less prefetching loads disks and cache less.
- reordered: with a fifth of the hints displaced by up to 16 references, as well.

Reverse aggressive (F of 10 ms over the mean think time, batches of Table 6), just in time and demand fetching with MIN,
which evicts by its hints, stand beside them without a verdict. Hints are drawn with seed 1; the item seeds repeats the
slowdowns with seeds 2 and 3.
"""

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headstart.report.charts import COLOURS, HEIGHT, WIDTH, altair
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies._study import Study
from headstart_lab.studies.kimbrel96 import _lab
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._outcome import Cell, Outcome
from headstart_lab.studies.kimbrel96._traces import Workload

PRACTICAL: Final = ("fixed-horizon", "aggressive", "forestall")
POLICIES: Final = (*PRACTICAL, "reverse-aggressive", "just-in-time", "demand with min")
DISKS: Final = (1, 2, 4, 8, 16)
LEAST: Final = PRACTICAL[0]

Hints = Mapping[str, float | int]
PERFECT: Final = "perfect"
MISSING: Final = {"a tenth missing": 0.1, "half missing": 0.5, "nine tenths missing": 0.9}
HALF: Final = "half missing"
WRONG: Final = "a tenth wrong"
REORDERED: Final = "a fifth reordered"
KINDS: Final[Mapping[str, Hints]] = {
    PERFECT: {},
    **{kind: {"fraction": round(1 - share, 1)} for kind, share in MISSING.items()},
    WRONG: {"wrong": 0.1},
    "half wrong": {"wrong": 0.5},
    REORDERED: {"reordered": 0.2},
    "all three": {"fraction": 0.9, "wrong": 0.05, "reordered": 0.1},
}
"""What is wrong with the hints, as in `policy.hints`."""
NO_HINTS: Final = "no hints"
SEEDS: Final = (2, 3)
PRINTED: Final = 0.01
"""The last digit of a utilisation as the paper prints it."""

Place = tuple[Workload, int]
"""A workload and a number of disks."""
Cells = Mapping[tuple[Place, str, str], Cell]
"""By place, policy and kind of hints."""


class Lab(_lab.Lab):
    """kimbrel96's laboratory: its stand-ins, drives and caches."""

    kept = "imperfect-hints 1"

    @functools.cached_property
    def programs(self) -> list[Workload]:
        """The recorded programs that exist, with both kinds of think time."""
        return [
            each for each in self.traces.workloads if each.stand_in.recorded and each.think != "scaled, rows swapped"
        ]

    def absent(self) -> list[Row]:
        """Return a row for each recorded program that is absent."""
        names = [each.stands_for for each in self.traces.missing if each.recorded and each.stands_for]
        return self.skipped(*names) if names else []


def _policy(name: str, workload: Workload, disks: int, hints: Hints, seed: int) -> dict[str, Any]:
    """Return the policy with hints of this kind; perfect ones are not written."""
    batch = paper.table6(disks)
    policies: dict[str, dict[str, Any]] = {
        "fixed-horizon": _lab.fixed_horizon(),
        "aggressive": _lab.aggressive(batch),
        "forestall": _lab.forestall(batch),
        "reverse-aggressive": _lab.reverse_aggressive(round(_lab.SCAN_SERVICE_MS / workload.compute_ms_mean, 3), batch),
        "just-in-time": {"name": "just-in-time"},
        "demand with min": _lab.DEMAND,
    }
    return policies[name] | ({"hints": {**hints, "seed": seed}} if hints else {})


def _cells(
    lab: Lab,
    places: Sequence[Place],
    policies: Sequence[str] = POLICIES,
    kinds: Sequence[str] = tuple(KINDS),
    seed: int = 1,
) -> dict[tuple[Place, str, str], Cell]:
    """Ask for every policy with every kind of hints at every place, and for LRU without hints."""
    cells = {
        ((workload, disks), name, kind): lab.cell(workload, _policy(name, workload, disks, KINDS[kind], seed), disks)
        for workload, disks in places
        for name in policies
        for kind in kinds
    }
    for workload, disks in places:
        cells[(workload, disks), NO_HINTS, PERFECT] = lab.cell(workload, {"name": "demand"}, disks)
    return cells


def _places(workloads: Sequence[Workload], disks: Sequence[int] = DISKS) -> list[Place]:
    return [(workload, count) for workload in workloads for count in disks]


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def _slowdowns(cells: Cells, places: Sequence[Place], name: str, kind: str) -> list[float]:
    """Return by place the policy's time over its own with perfect hints."""
    return [
        cells[place, name, kind].outcome.elapsed_s / cells[place, name, PERFECT].outcome.elapsed_s for place in places
    ]


def _times(cells: Cells, places: Sequence[Place], name: str, kind: str) -> list[float]:
    """Return by place the policy's time over that of demand fetching with LRU, without hints."""
    return [
        cells[place, name, kind].outcome.elapsed_s / cells[place, NO_HINTS, PERFECT].outcome.elapsed_s
        for place in places
    ]


def _by_policy(figures: Mapping[str, float], digits: int = 3) -> str:
    return ", ".join(f"{name} {figure:.{digits}f}" for name, figure in figures.items())


def _least(
    quantity: str, figures: Mapping[str, float], *, published: str, tolerance: str, note: str, digits: int = 3
) -> Row:
    """Return the finding that fixed horizon's figure is the least of these."""
    others = [figure for name, figure in figures.items() if name != LEAST]
    return finding(
        quantity,
        published=published,
        ours=_by_policy(figures, digits),
        holds=figures[LEAST] < min(others),
        tolerance=tolerance,
        note=note,
    )


UNHINTED: Final = "fixed horizon is likely to be least affected by unhinted accesses"


def _unhinted(cells: Cells, places: Sequence[Place]) -> list[Row]:
    rows = []
    for kind in MISSING:
        by_place = {name: _slowdowns(cells, places, name, kind) for name in PRACTICAL}
        means = {name: _mean(values) for name, values in by_place.items()}
        worst = {name: max(values) for name, values in by_place.items()}
        rows.append(
            _least(
                f"unhinted: slowdown, {kind}",
                means,
                published=UNHINTED,
                tolerance="the least geometric mean",
                note=f"section 6; {len(places)} places; greatest: {_by_policy(worst, 2)}",
            )
        )
        least = [at for at, value in enumerate(by_place[LEAST]) if value <= min(each[at] for each in by_place.values())]
        rows.append(
            finding(
                f"places: least slowdown, {kind}",
                published=UNHINTED,
                ours=f"fixed horizon in {len(least)} of {len(places)} places",
                cases=(len(least), len(places)),
                holds=2 * len(least) > len(places),
                tolerance="in more than half; ties count",
                note="section 6; by disks: "
                + ", ".join(
                    f"{disks}: {sum(places[at][1] == disks for at in least)} of "
                    f"{sum(place[1] == disks for place in places)}"
                    for disks in DISKS
                ),
            )
        )
    return rows


def _loads(cells: Cells, places: Sequence[Place]) -> list[Row]:
    """The reasons: disks are busier under aggressive, queues longer, fetches more."""
    runs = {name: [cells[place, name, HALF].outcome for place in places] for name in PRACTICAL}
    busy = {name: statistics.fmean(run.utilization for run in of) for name, of in runs.items()}
    gaps = [mine.utilization - its.utilization for mine, its in zip(runs["aggressive"], runs[LEAST], strict=True)]
    response = {name: _mean([run.response_ms for run in of]) for name, of in runs.items()}
    fetches = {name: float(sum(run.fetches for run in of)) for name, of in runs.items()}
    return [
        finding(
            f"utilisation, {HALF}",
            published="aggressive prefetching increases disk utilization",
            ours=_by_policy(busy),
            holds=busy["aggressive"] > busy[LEAST] and min(gaps) >= -PRINTED,
            tolerance="higher in the mean, nowhere lower by more than 0.01",
            note=f"section 6; aggressive beside fixed horizon, least and greatest {min(gaps):+.3f}, {max(gaps):+.3f}; "
            f"lower by more than 0.01 in {sum(gap < -PRINTED for gap in gaps)} of {len(gaps)} places",
        ),
        finding(
            f"queues: response of a disk request (ms), {HALF}",
            published="disks are more likely to be busy when unhinted accesses occur",
            ours=_by_policy(response, 1),
            holds=response["aggressive"] > response[LEAST],
            tolerance="longer under aggressive in the geometric mean",
            note="section 6; from queue to end, prefetches and demand fetches together",
        ),
        finding(
            f"load: fetches of all places, {HALF}",
            published="fixed horizon places the least load on the disks and the cache",
            ours=_by_policy(fetches, 0),
            holds=fetches[LEAST] <= min(fetches.values()),
            tolerance="no more than either",
            note="section 6; wasted: "
            + _by_policy({name: float(sum(run.wasted for run in of)) for name, of in runs.items()}, 0),
        ),
    ]


def findings(lab: Lab) -> Steps:
    """The paper's expectation on unhinted accesses, why it should hold, and the same of wrong and reordered hints."""
    places = _places(lab.programs)
    cells = _cells(lab, places, PRACTICAL, (PERFECT, *MISSING, WRONG, REORDERED))
    yield
    if absent := lab.absent():
        return absent
    times = {name: _mean(_times(cells, places, name, HALF)) for name in PRACTICAL}
    rows = _unhinted(cells, places)
    rows.append(
        _least(
            f"time beside demand fetching, {HALF}",
            times,
            published="least affected, so fastest (our reading of what the expectation is good for)",
            tolerance="the least geometric mean",
            note="with perfect hints: "
            + _by_policy({name: _mean(_times(cells, places, name, PERFECT)) for name in PRACTICAL}),
        )
    )
    rows += _loads(cells, places)
    for words, kind in (("wrong", WRONG), ("reordered", REORDERED)):
        by_place = {name: _slowdowns(cells, places, name, kind) for name in PRACTICAL}
        rows.append(
            _least(
                f"{words}: slowdown, {kind}",
                {name: _mean(values) for name, values in by_place.items()},
                published="the least load on disks and cache: least affected by mistakes too (our extension)",
                tolerance="the least geometric mean",
                note=f"{len(places)} places; greatest: "
                + _by_policy({name: max(values) for name, values in by_place.items()}, 2),
            )
        )
    return rows


def _figures(cells: Cells, places: Sequence[Place], name: str, kind: str) -> str:
    runs: list[Outcome] = [cells[place, name, kind].outcome for place in places]
    wasted, fetches = sum(run.wasted for run in runs), sum(run.fetches for run in runs)
    return (
        f"slowdown {_mean(_slowdowns(cells, places, name, kind)):.3f}, time beside demand's "
        f"{_mean(_times(cells, places, name, kind)):.3f}, waste {wasted / fetches if fetches else 0:.3f}"
    )


def _table(cells: Cells, places: Sequence[Place], where: str = "") -> list[Row]:
    return [
        unpublished(f"{where}{name}, {kind}", _figures(cells, places, name, kind))
        for name in POLICIES
        for kind in KINDS
    ]


def summary(lab: Lab) -> Steps:
    """Each policy with each kind of hints: slowdown, time beside demand's without hints, waste, over all places."""
    places = _places(lab.programs)
    cells = _cells(lab, places)
    yield
    return lab.absent() or _table(cells, places)


def by_disks(lab: Lab) -> Steps:
    """The same, by number of disks."""
    places = _places(lab.programs)
    cells = _cells(lab, places)
    yield
    if absent := lab.absent():
        return absent
    return [
        row
        for disks in DISKS
        for row in _table(cells, [place for place in places if place[1] == disks], f"{_lab.count(disks)}, ")
    ]


def by_program(lab: Lab) -> Steps:
    """The same, by program and kind of think time."""
    places = _places(lab.programs)
    cells = _cells(lab, places)
    yield
    if absent := lab.absent():
        return absent
    return [row for each in lab.programs for row in _table(cells, _places([each]), f"{each.label}, ")]


def seeds(lab: Lab) -> Steps:
    """The slowdowns of the paper's three practical policies with hints drawn from other seeds."""
    places = _places(lab.programs)
    kinds = (PERFECT, *MISSING, WRONG, REORDERED)
    cells = {seed: _cells(lab, places, PRACTICAL, kinds, seed) for seed in SEEDS}
    yield
    if absent := lab.absent():
        return absent
    return [
        unpublished(
            f"slowdown, {kind}, seed {seed}",
            _by_policy({name: _mean(_slowdowns(cells[seed], places, name, kind)) for name in PRACTICAL}),
        )
        for seed in SEEDS
        for kind in kinds
        if kind != PERFECT
    ]


def shipped(lab: Lab) -> Steps:
    """Two programs that ship with headstart, think times as recorded, on two disks: the same figures."""
    places = [(workload, 2) for workload in lab.traces.named("cscope1", "ml_slice") if workload.think == "as recorded"]
    cells = _cells(lab, places)
    yield
    return _table(cells, places)


def drawn(lab: Lab) -> Any:
    """Return the slowdown by share of missing hints, a line for each policy and a panel for each number of disks."""
    if lab.absent():
        return None
    alt = altair("--html")
    places = _places(lab.programs)
    cells = _cells(lab, places, PRACTICAL, (PERFECT, *MISSING))
    lab.wait()
    points = [
        {"disks": _lab.count(disks), "policy": name, "missing": share, "slowdown": _mean(values)}
        for disks in DISKS
        for name in PRACTICAL
        for kind, share in ((PERFECT, 0.0), *MISSING.items())
        if (values := _slowdowns(cells, [place for place in places if place[1] == disks], name, kind))
    ]
    colours = alt.Scale(domain=list(PRACTICAL), range=list(COLOURS[: len(PRACTICAL)]))
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X("missing:Q", title="share of hints missing"),
            y=alt.Y("slowdown:Q", title="time over that with perfect hints"),
            color=alt.Color("policy:N", scale=colours, title=None),
        )
        .properties(width=WIDTH // 2, height=HEIGHT // 2)
        .facet(facet=alt.Facet("disks:N", sort=[_lab.count(disks) for disks in DISKS], title=None), columns=3)
    )


STUDY = Study(
    name="imperfect-hints",
    title="Hints that are missing, wrong or reordered, and what they cost each hinted policy",
    seeds="1; 2 and 3 in the item seeds",
    lab=Lab,
    input="stand-in",
    steps={
        "findings": findings,
        "summary": summary,
        "by-disks": by_disks,
        "by-program": by_program,
        "seeds": seeds,
        "shipped": shipped,
    },
    figures={"findings": drawn},
)

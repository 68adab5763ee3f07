"""Figures 7, 9, 10 and 12: programs that are not servers, side by side and alone."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07 import _reasons as why
from headstart_lab.studies.li07._claims import about, by_case, equal, improves, noted, rests_on, time_row
from headstart_lab.studies.li07._system import BLIND, DEVICES, FREE_BUS, Case, Keys, Lab, Runs, server, tools

Q2: Final[Keys] = server("tpc-h", alternating=1.0, mixed=0.0)
"""Queries that all alternate as Q2 does, in sequence."""
TOGETHER: Final[dict[str, Keys]] = {
    "2cp5": tools(5, copies=2),
    "2cp50": tools(50, copies=2),
    "2diff5": tools(5, diffs=2),
    "2diff50": tools(50, diffs=2),
    "cp5+diff5": tools(5, copies=1, diffs=1),
    "cp50+diff50": tools(50, copies=1, diffs=1),
    "2TPC-H": server("tpc-h", 2),
}
"""Figure 7."""
HIDDEN: Final = ("2cp5", "2cp50", "cp5+diff5", "cp50+diff50")
"""Figure 9."""
DIFFS: Final = ("2diff5", "2diff50")
"""Figure 10."""
ALONE: Final[dict[str, Keys]] = {
    "cp5": tools(5, copies=1),
    "cp50": tools(50, copies=1),
    "diff5": tools(5, diffs=1),
    "diff50": tools(50, diffs=1),
    "kernel build": server("kernel-build", writes="back"),
    "TPC-H": server("tpc-h"),
    "TPC-H Q2": Q2,
    "media clips": server("media-server"),
    "index searching": server("index-search"),
}
"""Figure 12."""
UNTOUCHED: Final = ("cp5", "cp50", "kernel build", "TPC-H", "media clips")
"""Programs on which competitive prefetching has "little or no performance impact", section 6.5."""


def figure7(lab: Lab) -> Steps:
    """Figure 7: time of seven programs side by side, IBM drive."""
    found = panels(lab, "figure7")
    yield
    copies = [found["2cp5"], found["2cp50"]]
    return [
        *(time_row(each) for each in found.values()),
        equal("2cp5, 2cp50", "relatively small variation", copies, ("Linux", "CP", "AP")),
        cut("2diff5: CP", paper.DIFF_5, found["2diff5"]),
        cut("2diff50: CP, fitted by where the files lie", paper.DIFF_50, found["2diff50"]),
        cut("2TPC-H: CP", paper.TPC_H, found["2TPC-H"]),
        hardly("AP beside CP", list(found.values()), why.DEEPER),
    ]


def figure9(lab: Lab) -> Steps:
    """Figure 9: time of four programs side by side where the scheduler knows no processes."""
    found = list(panels(lab, "figure9").values())
    yield
    return [
        *(time_row(each) for each in found),
        improves("2cp5, 2cp50, cp5+diff5, cp50+diff50", "CP improves on Linux", found),
    ]


def figure10(lab: Lab) -> Steps:
    """Figure 10: time of 2diff5 and 2diff50 on three drives."""
    found = panels(lab, "figure10")
    yield
    last = found["2diff50 on RAID0"]
    return [
        *(time_row(each) for each in found.values()),
        cut("2diff50 on the array: CP", paper.RAID_DIFF_50, last),
        _more_on_array(found),
    ]


def figure12(lab: Lab) -> Steps:
    """Figure 12: time of programs and servers alone, IBM drive."""
    found = panels(lab, "figure12")
    yield
    everything = list(found.values())
    untouched = [found[name] for name in UNTOUCHED]
    return [
        *(time_row(each) for each in everything),
        equal("cp, kernel build, TPC-H, media clips: CP", "little or no impact", untouched, ("Linux", "CP")),
        *(cut(f"{name}: CP", paper.ALONE_DIFF, found[name]) for name in ("diff5", "diff50")),
        cut("index searching: CP", paper.ALONE_INDEX, found["index searching"]),
        cut("TPC-H Q2: CP", paper.ALONE_Q2, found["TPC-H Q2"], why.Q2),
        no_degradation(everything),
    ]


def panels(lab: Lab, item: str, policies: Mapping[str, Keys] | None = None) -> dict[str, Runs]:
    """Ask for the runs of a figure, by the name of the case, with `policies` in place of the figures' own."""
    blind: dict[str, Any] = {"device": FREE_BUS, "scheduler": BLIND}
    cases = {
        "figure7": [Case(name, workload) for name, workload in TOGETHER.items()],
        "figure9": [Case(name, TOGETHER[name], **blind) for name in HIDDEN],
        "figure10": [
            Case(f"{name} on {drive}", TOGETHER[name], device) for name in DIFFS for drive, device in DEVICES.items()
        ],
        "figure12": [Case(name, workload) for name, workload in ALONE.items()],
    }[item]
    return {case.name: lab.runs(case, policies) for case in cases}


def cut(quantity: str, printed: float, runs: Runs, reason: str = "") -> Row:
    """CP shortens the time by a printed percentage."""
    what = "less time than Linux"
    return about(quantity, printed, runs.cut(), what, rests=rests_on([runs]), note=runs.case.name, why=reason)


def hardly(quantity: str, runs: Sequence[Runs], reason: str = "", *, hurts: bool = False) -> Row:
    """AP brings very little beyond CP; `hurts`: and in certain cases it is worse."""
    more = [each.gain("AP", over="CP") for each in runs]
    count = sum(percent <= 100 * paper.HARDLY for percent in more)
    worse = sum(percent < -100 * paper.BETTER for percent in more)
    holds = count == len(runs) and (worse > 0 or not hurts)
    return finding(
        quantity,
        published="very little additional improvement" + (", in certain cases it hurts" if hurts else ""),
        ours=f"no more than {100 * paper.HARDLY:.0f} % faster in {count} of {len(runs)}"
        + (f", more than {100 * paper.BETTER:.0f} % slower in {worse}" if hurts else ""),
        cases=(count, len(runs)),
        holds=holds,
        tolerance="no more in each" + (", slower in one at least" if hurts else ""),
        **rests_on(runs),
        note=noted("AP over CP: " + by_case(runs, more), reason, holds),
    )


def _more_on_array(found: dict[str, Runs]) -> Row:
    cuts = {name: runs.cut() for name, runs in found.items()}
    largest = [
        name for name in DIFFS if cuts[f"{name} on RAID0"] > max(cuts[f"{name} on IBM"], cuts[f"{name} on Seagate"])
    ]
    return finding(
        "2diff5, 2diff50: CP on the array beside single drives",
        published="more pronounced on the array",
        ours=f"more in {len(largest)} of {len(DIFFS)}",
        holds=len(largest) == len(DIFFS),
        tolerance="than on each drive, in both",
        **rests_on(found.values()),
        note=", ".join(f"{name} {percent:.1f} %" for name, percent in cuts.items()),
    )


def no_degradation(runs: Sequence[Runs]) -> Row:
    """CP makes nothing slower than Linux."""
    cuts = [each.cut() for each in runs]
    return finding(
        "no degradation by CP",
        published="in none of the experimental workloads",
        ours=f"in {sum(cut < -100 * paper.NONE for cut in cuts)} of {len(runs)}",
        cases=(sum(cut >= -100 * paper.NONE for cut in cuts), len(runs)),
        holds=min(cuts) >= -100 * paper.NONE,
        tolerance=f"{100 * paper.NONE:.0f} % more time than Linux at most",
        **rests_on(runs),
        note=by_case(runs, cuts),
    )

"""Figures 6, 8 and 11: servers by clients, where the scheduler knows processes and where not, on three drives."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07 import _reasons as why
from headstart_lab.studies.li07._claims import (
    by_case,
    equal,
    half_of_oracle,
    improves,
    noted,
    rate_row,
    rests_on,
    up_to,
    within,
)
from headstart_lab.studies.li07._system import BLIND, DEVICES, FREE_BUS, Case, Keys, Lab, Runs, server

NAMES: Final = {
    "one-whole": "One-Whole-0",
    "one-rand": "One-Rand-10",
    "two-rand": "Two-Rand-0",
    "four-64kb": "Four-64KB-0",
    "media-server": "media clips",
    "index-search": "index searching",
}
"""The paper's names, panels A to F of Figure 6; the first four are the microbenchmarks."""
MICRO: Final = ("one-whole", "one-rand", "two-rand", "four-64kb")
PRACTICAL: Final = ("Linux", "CP", "AP")
"""Policies without knowledge of the future."""


def figure6(lab: Lab) -> Steps:
    """Figure 6: throughput of four microbenchmarks, media clips and index searching by concurrency, IBM drive."""
    found = panels(lab, "figure6")
    yield
    by = {generator: found[generator] for generator in NAMES}
    rows = _rows(found)
    rows.append(equal("A, One-Whole-0", "all practical policies equally well", by["one-whole"], PRACTICAL))
    rows.append(within("B, One-Rand-10: CP", paper.ONE_RAND, by["one-rand"], why.ONE_RAND))
    rows.append(within("C, Two-Rand-0: CP", paper.TWO_RAND, by["two-rand"], why.TWO_RAND))
    rows.append(equal("D, Four-64KB-0", "all policies perform similarly", by["four-64kb"], PRACTICAL))
    rows.append(half_of_oracle("A to D: CP beside OPT", [each for generator in MICRO for each in by[generator]]))
    rows.append(equal("E, media clips: CP beside Linux", "no further improvement", by["media-server"], ("Linux", "CP")))
    rows.append(within("F, index searching: CP", paper.INDEX, by["index-search"], why.INDEX))
    rows.append(worse("F, index searching: AP", by["index-search"], why.INDEX))
    return rows


def figure8(lab: Lab) -> Steps:
    """Figure 8: One-Whole-0 and media clips where the scheduler knows no processes."""
    found = panels(lab, "figure8")
    yield
    rows = _rows(found)
    rows.append(up_to("A, One-Whole-0: CP", paper.BLIND_ONE_WHOLE, found["one-whole"], why.BLIND))
    rows.append(half_of_oracle("A, One-Whole-0: CP beside OPT", found["one-whole"]))
    several = [each for each in found["media-server"] if each.case.workload["concurrency"] > 1]
    rows.append(improves("B, media clips, 2 clients and more", "CP improves on Linux", several, why.CLIPS))
    return rows


def figure11(lab: Lab) -> Steps:
    """Figure 11: Two-Rand-0 and index searching with 4 clients on three drives."""
    found = panels(lab, "figure11")
    yield
    rows = _rows(found)
    two, index = found["two-rand"], found["index-search"]
    rows.append(up_to("A, Two-Rand-0: CP, of the array", paper.RAID_TWO_RAND, two[-1:], why.ARRAY))
    rows.append(half_of_oracle("A, Two-Rand-0: CP beside OPT", two))
    rows.append(within("B, index searching: CP", paper.INDEX_DEVICES, index))
    rows.append(aggressive(index))
    rows.append(array_no_larger(index))
    return rows


def panels(lab: Lab, item: str, policies: Mapping[str, Keys] | None = None) -> dict[str, list[Runs]]:
    """Ask for the runs of a figure, by workload, with `policies` in place of the figures' own."""
    if item == "figure6":
        return {
            generator: [_case(lab, generator, clients, policies) for clients in paper.CONCURRENCY]
            for generator in NAMES
        }
    if item == "figure8":
        blind: dict[str, Any] = {"device": FREE_BUS, "scheduler": BLIND}
        return {
            generator: [_case(lab, generator, clients, policies, **blind) for clients in paper.CONCURRENCY]
            for generator in ("one-whole", "media-server")
        }
    return {
        generator: [
            _case(lab, generator, paper.FIGURE_11_CLIENTS, policies, on=f" on {name}", device=device)
            for name, device in DEVICES.items()
        ]
        for generator in ("two-rand", "index-search")
    }


def _case(
    lab: Lab, generator: str, clients: int, policies: Mapping[str, Keys] | None, on: str = "", **system: Any
) -> Runs:
    many = "client" if clients == 1 else "clients"
    name = f"{NAMES[generator]}{on}" if on else f"{NAMES[generator]}, {clients} {many}"
    return lab.runs(Case(name, server(generator, clients), **system), policies)


def _rows(found: dict[str, list[Runs]]) -> list[Row]:
    return [rate_row(each) for runs in found.values() for each in runs]


def worse(quantity: str, runs: Sequence[Runs], reason: str = "") -> Row:
    """AP is significantly worse than CP."""
    behind = [each.gain("AP", over="CP") for each in runs]
    count = sum(percent < -100 * paper.SIGNIFICANT for percent in behind)
    holds = count == len(runs)
    return finding(
        quantity,
        published="significantly worse than CP",
        ours=f"significantly worse in {count} of {len(runs)}",
        cases=(count, len(runs)),
        holds=holds,
        tolerance=f"throughput more than {100 * paper.SIGNIFICANT:.0f} % below CP's in each",
        **rests_on(runs),
        note=noted("AP over CP: " + by_case(runs, behind), reason, holds),
    )


def aggressive(runs: Sequence[Runs]) -> Row:
    """AP gains significantly less than CP on index searching."""
    gains = [each.gain("AP") for each in runs]
    below = [each.gain() - gain for each, gain in zip(runs, gains, strict=True)]
    holds = max(gains) <= paper.INDEX_AGGRESSIVE and min(below) >= paper.INDEX_BELOW
    return finding(
        "B, index searching: AP",
        published=f"at most {paper.INDEX_AGGRESSIVE:g} % over Linux, significantly less than CP",
        ours=f"at most {max(gains):.1f} %, at least {min(below):.1f} points less than CP",
        holds=holds,
        tolerance=f"no more, and {paper.INDEX_BELOW:g} points less than CP on each, as printed",
        **rests_on(runs),
        note=by_case(runs, gains),
    )


def array_no_larger(runs: Sequence[Runs]) -> Row:
    """CP gains no more on the array than on single drives."""
    *alone, array = [each.gain() for each in runs]
    exceeded = sum(array > each for each in alone)
    return finding(
        "B, index searching: CP on the array beside single drives",
        published="not larger",
        ours=f"larger than on {exceeded} of {len(alone)}",
        holds=not exceeded,
        tolerance="than on each drive",
        **rests_on(runs),
        note=noted(by_case(runs, [*alone, array]), why.INDEX_ARRAY, not exceeded),
    )

"""Section 6.6: what all figures say together."""

import statistics
from collections.abc import Sequence

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07 import _reasons as why
from headstart_lab.studies.li07 import _servers, _tools
from headstart_lab.studies.li07._claims import about, half_of_oracle, rests_on
from headstart_lab.studies.li07._system import Lab, Runs
from headstart_lab.studies.li07._tools import hardly


def summary(lab: Lab) -> Steps:
    """Section 6.6: CP beside the oracle everywhere, its greatest gain, and what going deeper brings."""
    servers = {item: _servers.panels(lab, item) for item in ("figure6", "figure8", "figure11")}
    tools = {item: list(_tools.panels(lab, item).values()) for item in ("figure7", "figure9", "figure10", "figure12")}
    yield
    micro = [
        each for found in servers.values() for name, runs in found.items() if name in _servers.MICRO for each in runs
    ]
    other = [
        each
        for found in servers.values()
        for name, runs in found.items()
        if name not in _servers.MICRO
        for each in runs
    ]
    programs = [each for runs in tools.values() for each in runs]
    base = [each for runs in servers["figure6"].values() for each in runs] + tools["figure7"]
    return [
        half_of_oracle("all microbenchmarks: CP beside OPT", [worst(micro)]),
        _behind(micro),
        _shares("microbenchmarks", micro),
        _shares("media clips and index searching", other),
        _shares("cp, diff, kernel build, TPC-H", programs),
        _greatest([*other, *programs]),
        hardly("base case: AP beside CP", base, why.DEEPER, hurts=True),
    ]


def worst(runs: Sequence[Runs]) -> Runs:
    """Return the runs in which CP reaches the least share of OPT's throughput."""
    return min(runs, key=Runs.of_oracle)


def _behind(runs: Sequence[Runs]) -> Row:
    behind = 1 - worst(runs).of_oracle()
    return finding(
        "all microbenchmarks: CP behind OPT",
        published=f"by no more than {100 * paper.BEHIND:.0f} %",
        ours=f"by up to {100 * behind:.1f} %",
        holds=behind <= paper.BEHIND,
        tolerance="the same",
        **rests_on(runs),
        note=f"{worst(runs).case.name}, of {len(runs)} cases",
    )


def _shares(what: str, runs: Sequence[Runs]) -> Row:
    shares = sorted(each.of_oracle() for each in runs)
    least = worst(runs)
    return unpublished(
        f"CP's share of OPT's throughput, {what}: least, median, greatest",
        ", ".join(f"{share:.3f}" for share in (shares[0], statistics.median(shares), shares[-1])),
        note=f"{len(shares)} cases, the least with {least.case.name}",
        input=rests_on(runs)["input"],
    )


def _greatest(runs: Sequence[Runs]) -> Row:
    best = max(runs, key=Runs.cut)
    return about(
        "applications: greatest improvement by CP",
        paper.RAID_DIFF_50,
        best.cut(),
        "less time than Linux, at most",
        rests=rests_on(runs),
        note=best.case.name,
        at_most=True,
    )

"""levels: what zhang-pfc's authors say of more than one client, more than two levels and mixed algorithms.

Source: the sentences of Zhang, Lee, Ma and Zhou (ICDCS 2008) that their evaluation leaves untested: "when multiple
such uncoordinated software layers are stacked together, there is a compounding effect causing overly aggressive
prefetching" and PFC "enables coordinated prefetching across more than two levels, and potentially the stacking of
different prefetching algorithms" (section 1); "PFC can be easily extended to work with both multi-client systems and
multi-stream workloads" and "it is easy to extend PFC to maintain per-client or per-file contexts, in order to better
handle multiple access streams" (section 3). Workloads, algorithms, drive and links are those of zhang-pfc; a first
level holds 5 % of the footprint.

- Stacked: the same algorithm on two levels and on three of one size, and on three with L2 and L3 of other sizes.
- Mixed: each ordered pair of two different algorithms on two levels, L2 of 200 and of 10 % of L1.
- Clients: two or four recorded programs, each a process with a first level of its own, over one server whose cache is
  twice or a tenth of all first levels together; PFC with one context, one for each client, one for each file.
- Servers: an "n-to-m mapping between the clients and servers" (section 1). One client, its files striped in units of
  64 KiB over four servers with a drive each, whose caches together are twice or a tenth of L1; and the groups of four
  programs, each with a first level of its own, over two servers of which each holds whole files.

The gain of a coordinator is the share of the mean response time that it saves beside none in the same case.

The criteria, written before the first results:

- compounding: without a coordinator, three levels of one size waste more prefetched blocks (of all levels) than the
  first two of them do as two levels, summed over the workloads, for each of the four algorithms.
- three levels: PFC between both pairs of levels gains in the mean, and in more than half of the cases.
- lower pair: PFC between both pairs gains more in the mean than PFC between L2 and L3 alone.
- mixed: PFC gains in the mean of the mixed pairs, and in more than half of the cases.
- clients: PFC with one context gains in the mean of the cases of several clients, and in more than half of them.
- contexts by client, contexts by file: each gains more in the mean than one context there. A row each.

A coordinator of our own, `duel`, has criteria of its own: those of the task that it was written for, older than the
coordinator. Its constants were scanned on the 96 cases of zhang-pfc and on the cases of several clients, so that rows
of these are calibrated. On mixed algorithms earlier values had been run, but none was chosen by them; generators and
three levels were run once, with the final values.

- safe: in no case is the mean response time more than 1 % above that of none. A row for each of five sets of cases.
- better than PFC: a greater gain in the mean of the 96 cases. The same of the other sets.

The criteria of the item `servers`, written before its results. A coordinator stands on each server.

- spread: without coordinators four servers respond sooner than one with as much cache as all of them together, in every
  case of one client. Expected: four drives serve at once.
- one client on four servers, four clients on two servers: PFC gains in the mean, and in more than half of the cases. A
  row each.
- contexts by client: it gains more in the mean than one context with four clients on two servers.
- duel: safe and better than PFC, as above, on all cases of the item. Nothing was run of it before; predicted.
"""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Basis, Row, finding, unpublished
from headstart_lab.studies._study import Study
from headstart_lab.studies.levels._cases import (
    BOTH,
    CLIENTS,
    CONTEXTS,
    COORDINATORS,
    DUEL,
    LOSS_PERCENT,
    LOWER,
    NONE,
    SERVERS,
    Cases,
    Lab,
    clients_on_servers,
    generated,
    mixed_algorithms,
    of_clients,
    one_client,
    three_levels,
    two_levels,
)
from headstart_lab.studies.zhang_pfc._matrix import ALGORITHMS
from headstart_lab.studies.zhang_pfc._matrix import cases as zhang_pfc_cases


def _gains(cases: Cases, coordinator: str) -> dict[str, float]:
    """Return the percent of the mean response time that the coordinator saves, by case."""
    gains = {}
    for case, cells in cases.items():
        before = cells[NONE].outcome.response_ms
        gains[case] = 100 * (before - cells[coordinator].outcome.response_ms) / before if before else 0.0
    return gains


def _told(gains: Mapping[str, float]) -> str:
    worst, best = (choose(gains, key=gains.__getitem__) for choose in (min, max))
    better = sum(gain > 0 for gain in gains.values())
    return (
        f"{statistics.fmean(gains.values()):.1f} % in the mean, better in {better} of {len(gains)}; "
        f"{gains[worst]:+.1f} % ({worst}) to {gains[best]:+.1f} % ({best})"
    )


def _gain(quantity: str, cases: Cases, coordinator: str, published: str, note: str = "") -> Row:
    """Return the finding that the coordinator gains in the mean and in more than half of the cases."""
    gains = _gains(cases, coordinator)
    mean, better = statistics.fmean(gains.values()), sum(gain > 0 for gain in gains.values())
    return finding(
        quantity,
        published=published,
        ours=f"{mean:.1f} % in the mean, better in {better} of {len(gains)}",
        cases=(better, len(gains)),
        holds=mean > 0 and 2 * better > len(gains),
        tolerance="a gain in the mean and in more than half of the cases",
        note=_told(gains) + note,
    )


def _more(quantity: str, cases: Cases, one: str, other: str, published: str) -> Row:
    """Return the finding that `one` gains more than `other` in the mean."""
    means = {name: statistics.fmean(_gains(cases, name).values()) for name in (one, other)}
    return finding(
        quantity,
        published=published,
        ours=f"{one} {means[one]:.1f} %, {other} {means[other]:.1f} %",
        holds=means[one] > means[other],
        tolerance="a greater mean gain",
        note="; ".join(f"{name}: {_told(_gains(cases, name))}" for name in (one, other)),
    )


def _table(cases: Cases, coordinators: Sequence[str]) -> list[Row]:
    return [
        unpublished(case, ", ".join(f"{name} {_gains({case: cells}, name)[case]:+.1f} %" for name in coordinators))
        for case, cells in cases.items()
    ]


def stacked(lab: Lab) -> Steps:
    """Three levels: what they waste uncoordinated beside two, and what PFC gains."""
    if absent := lab.absent():
        return absent
    cases = three_levels(lab)
    two = two_levels(lab)
    yield
    rows = []
    for algorithm in ALGORITHMS:
        of_two = sum(sum(cell.outcome.wasted) for (_, name), cell in two.items() if name == algorithm)
        of_three = sum(
            sum(cases[f"{each.name}, {algorithm}, L2 1 of L1, L3 1 of L2"][NONE].outcome.wasted)
            for each in lab.workloads.found
        )
        rows.append(
            finding(
                f"compounding: prefetched blocks never used, {algorithm}",
                published="stacked uncoordinated layers compound to overly aggressive prefetching",
                ours=f"{of_three:,} on three levels, {of_two:,} on two",
                holds=of_three > of_two,
                tolerance="more on three levels",
                note="section 1; all levels together, levels of one size, three workloads",
            )
        )
    rows.append(
        _gain(
            "three levels: gain of PFC", cases, BOTH, "PFC enables coordinated prefetching across more than two levels"
        )
    )
    rows.append(_more("lower pair", cases, BOTH, LOWER, "coordination between all levels (our reading)"))
    return rows + _table(cases, ("DU", BOTH, LOWER))


def mixed(lab: Lab) -> Steps:
    """Two levels of different algorithms: what PFC gains."""
    if absent := lab.absent():
        return absent
    cases = mixed_algorithms(lab, (NONE, "DU", "PFC"))
    yield
    published = "and potentially the stacking of different prefetching algorithms"
    first = _gain("mixed algorithms: gain of PFC", cases, "PFC", published, f"; DU: {_told(_gains(cases, 'DU'))}")
    return [first, *_table(cases, ("DU", "PFC"))]


def clients(lab: Lab) -> Steps:
    """Several clients of one server: what PFC gains, with one context, one for each client, one for each file."""
    cases = of_clients(lab, CLIENTS)
    yield
    published = "PFC can be easily extended to work with multi-client systems"
    rows = [
        _gain("clients: gain of PFC", cases, "PFC", published, f"; DU: {_told(_gains(cases, 'DU'))}"),
        *(
            _more(f"contexts: {name}", cases, name, "PFC", "contexts handle multiple access streams better")
            for name in CONTEXTS
            if name != "PFC"
        ),
    ]
    return rows + _table(cases, ("DU", *CONTEXTS, DUEL))


def servers(lab: Lab) -> Steps:
    """A client of four servers, and four clients of two: what PFC and duel gain."""
    if absent := lab.absent():
        return absent
    one = one_client(lab, 1, (NONE,))
    spread = one_client(lab, SERVERS, (NONE, "DU", "PFC", DUEL))
    many = clients_on_servers(lab, [group for group in CLIENTS if len(group) == SERVERS], tuple(COORDINATORS))
    yield
    times = {
        case: cells[NONE].outcome.response_ms / one[case][NONE].outcome.response_ms for case, cells in spread.items()
    }
    slowest = max(times, key=times.__getitem__)
    sooner = sum(each < 1 for each in times.values())
    published = "an n-to-m mapping between the clients and servers"
    rows = [
        finding(
            "spread: four servers beside one, without coordinators",
            published="four drives serve at once (expected)",
            ours=f"sooner in {sooner} of {len(times)}",
            cases=(sooner, len(times)),
            holds=sooner == len(times),
            tolerance="every case",
            note=f"mean response {statistics.fmean(times.values()):.2f} of it in the mean; most in {slowest}, "
            f"{times[slowest]:.2f}",
        ),
        _gain("one client, four servers: gain of PFC", spread, "PFC", published),
        _gain("four clients, two servers: gain of PFC", many, "PFC", published),
        _more(
            "four clients, two servers: PFC by client",
            many,
            "PFC by client",
            "PFC",
            "contexts handle multiple access streams better",
        ),
        *_duels("servers", {**spread, **many}, "predicted"),
    ]
    return rows + _table(spread, ("DU", "PFC", DUEL)) + _table(many, ("DU", *CONTEXTS, DUEL))


def quick(lab: Lab) -> Steps:
    """Two clients of one server, as in the item clients."""
    cases = of_clients(lab, CLIENTS[2:3])
    yield
    return _table(cases, ("DU", *CONTEXTS, DUEL))


def _duels(name: str, cases: Cases, basis: Basis) -> list[Row]:
    """Return the findings that `duel` is safe in these cases, and better than PFC in their mean."""
    gains = _gains(cases, DUEL)
    slower = sum(gain < -LOSS_PERCENT for gain in gains.values())
    safe = finding(
        f"duel: safe, {name}",
        published=f"no case more than {LOSS_PERCENT:g} % slower than none (ours)",
        ours=f"{slower} of {len(gains)} more than {LOSS_PERCENT:g} % slower, the worst {min(gains.values()):+.1f} %",
        cases=(len(gains) - slower, len(gains)),
        holds=slower == 0,
        tolerance="all cases",
        basis=basis,
        note=_told(gains),
    )
    better = _more(f"duel: against PFC, {name}", cases, DUEL, "PFC", "a greater gain than PFC's (ours)")
    return [safe, dataclasses.replace(better, basis=basis)]


def duel(lab: Lab) -> Steps:
    """The coordinator `duel` on the 96 cases, several clients, mixed algorithms, three levels and generators."""
    if absent := lab.absent():
        return absent
    three = (NONE, "PFC", DUEL)
    sets: dict[str, tuple[Cases, Basis]] = {
        "96 cases": (
            {
                case.label: {name: lab.ask(case.scenario(COORDINATORS[name])) for name in three}
                for case in zhang_pfc_cases(lab.workloads.found)
            },
            "calibrated",
        ),
        "clients": (of_clients(lab, CLIENTS), "calibrated"),
        "mixed algorithms": (mixed_algorithms(lab, three), "predicted"),
        "three levels": (three_levels(lab), "predicted"),
        "generators": (generated(lab, three), "predicted"),
    }
    yield
    rows = [row for name, (cases, basis) in sets.items() for row in _duels(name, cases, basis)]
    return rows + [row for cases, _ in sets.values() for row in _table(cases, ("PFC", DUEL))]


STUDY = Study(
    name="levels",
    title="More clients, more levels and mixed algorithms, as zhang-pfc's authors expect them",
    seeds="1; nothing is random",
    lab=Lab,
    input="stand-in",
    steps={
        "stacked": stacked,
        "mixed": mixed,
        "clients": clients,
        "servers": servers,
        "duel": duel,
        "quick": quick,
    },
)

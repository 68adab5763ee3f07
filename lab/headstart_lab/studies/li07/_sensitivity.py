"""How much our readings and guesses matter, one at a time: the experiments behind the notes of rows that differ."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._claims import rests_on
from headstart_lab.studies.li07._servers import NAMES
from headstart_lab.studies.li07._system import (
    AWARE,
    BLIND,
    FREE_BUS,
    LINUX_2_6_10,
    POLICIES,
    RAID0,
    Case,
    Keys,
    Lab,
    Runs,
    server,
    tools,
)
from headstart_lab.studies.li07._tools import Q2

CLIENTS: Final = 4

Change = Callable[[Case], Case]


def _keys(**keys: Any) -> Change:
    return lambda case: dataclasses.replace(case, workload={**case.workload, **keys})


def _device(**keys: Any) -> Change:
    return lambda case: dataclasses.replace(case, device={**case.device, **keys})


def _scheduler(scheduler: str | Keys) -> Change:
    return lambda case: dataclasses.replace(case, scheduler=scheduler)


def _seed(seed: int) -> Change:
    return lambda case: dataclasses.replace(case, seed=seed)


SERVERS: Final = {
    generator: Case(NAMES[generator], server(generator, CLIENTS))
    for generator in ("one-whole", "one-rand", "two-rand", "index-search", "media-server")
}
DIFFS: Final = {name: Case(name, tools(size, diffs=2)) for name, size in (("2diff5", 5), ("2diff50", 50))}
BELOW: Final = {
    clients: Case(f"One-Whole-0, blind, {clients}", server("one-whole", clients), FREE_BUS, BLIND)
    for clients in (2, 16)
}
ARRAY: Final = Case("Two-Rand-0 on RAID0", server("two-rand", CLIENTS), RAID0)
QUERY: Final = Case("TPC-H Q2", Q2)
INDEX: Final = (
    SERVERS["index-search"],
    Case("index searching on RAID0", server("index-search", CLIENTS), RAID0),
)
EVERY: Final = (*SERVERS.values(), *DIFFS.values(), *BELOW.values(), ARRAY, QUERY, INDEX[1])

VARIANTS: Final[dict[str, tuple[Change, tuple[Case, ...]]]] = {
    "as in the figures": (lambda case: case, EVERY),
    "another seed": (_seed(2), tuple(SERVERS.values())),
    "no anticipation (deadline)": (_scheduler("deadline"), (*SERVERS.values(), *BELOW.values(), ARRAY)),
    "waits 1 ms for a process": (
        _scheduler({"name": AWARE, "wait": "1ms"}),
        (SERVERS["one-rand"], SERVERS["two-rand"]),
    ),
    "the drive reads nothing ahead": (
        _device(buffer={"read_ahead": "none"}),
        (*SERVERS.values(), *DIFFS.values(), ARRAY),
    ),
    "the drive repositions for what lies ahead": (
        _device(buffer={"hit_ahead": False}),
        (*SERVERS.values(), *DIFFS.values(), ARRAY),
    ),
    "no limit of the bus": (_device(bus=FREE_BUS["bus"]), tuple(SERVERS.values())),
    "held to 37.5 MB/s": (_device(bus={"bytes_per_second": 37_500_000}), tuple(BELOW.values())),
    "files side by side": (_keys(apart="0B"), tuple(DIFFS.values())),
    "files 64 MiB apart": (_keys(apart="64MiB"), tuple(DIFFS.values())),
    "files 1 GiB apart": (_keys(apart="1GiB"), tuple(DIFFS.values())),
    "files 4 GiB apart": (_keys(apart="4GiB"), (*DIFFS.values(), QUERY)),
    "no time to compute": (_keys(compute="0s"), (QUERY,)),
    "no time to compute, files 4 GiB apart": (_keys(compute="0s", apart="4GiB"), (QUERY,)),
    "36,000 files": (_keys(files=36_000), (ARRAY,)),
    "1500 lists": (_keys(lists=1500), INDEX),
    "6000 lists": (_keys(lists=6000), INDEX),
    "20,000 lists": (_keys(lists=20_000), INDEX),
}
"""The change, and the cases that it applies to."""

POLICY_VARIANTS: Final[dict[str, Mapping[str, Keys]]] = {
    "Linux as Linux 6.12 reads ahead": {"Linux": {"name": "linux", "version": "6.12", "read_ahead": paper.LINUX}},
    "Linux as linux-2.6": {"Linux": {"name": "linux-2.6"}},
    "Linux as Linux 2.6.10 was": {"Linux": LINUX_2_6_10},
    "all within Linux 2.6.10's windows, CP with 393 kB always": {
        "Linux": LINUX_2_6_10,
        "CP": {**LINUX_2_6_10, "read_ahead": "393kB"},
        "AP": {**LINUX_2_6_10, "read_ahead": paper.AGGRESSIVE},
    },
    "CP with the depth of two random places, always": {"CP": {"name": "fixed-depth", "depth": "393kB"}},
    "CP counts every I/O of the drive as a seek": {"CP": {**POLICIES["CP"], "seeks": "all"}},
    "CP shrinks its depth": {"CP": {"name": "competitive"}},
    "OPT in requests of up to 512 KiB": {"OPT": {"name": "oracle-depth"}},
}
"""Policies that stand in for those of the figures, of servers with 4 clients and of diff."""

BESIDE_2_6_10: Final = ("files side by side", "files 64 MiB apart", "files 1 GiB apart")
"""Variants that are also run beside Linux 2.6.10 as it was: where files lie was scanned beside `fixed-depth`. Of 16,
64, 128, 256 and 512 MiB, 64 come nearest to what is printed of 2diff5."""

ON_ARRAY: Final[dict[str, Keys]] = {
    "CP with 646 kB, the array's depth of two random places": {"name": "fixed-depth", "depth": "646kB"}
}


def sensitivity(lab: Lab) -> Steps:
    """What readings and guesses matter: CP over Linux, and beside OPT, with one of them changed at a time."""
    asked = [(name, lab.runs(change(case))) for name, (change, cases) in VARIANTS.items() for case in cases]
    asked += [
        (name, lab.runs(case, {**POLICIES, **changed}))
        for name, changed in POLICY_VARIANTS.items()
        for case in (*SERVERS.values(), *DIFFS.values())
    ]
    asked += [
        (f"{name}, Linux as Linux 2.6.10 was", lab.runs(change(case), {**POLICIES, "Linux": LINUX_2_6_10}))
        for name in BESIDE_2_6_10
        for change, cases in (VARIANTS[name],)
        for case in cases
    ]
    asked += [(name, lab.runs(ARRAY, {**POLICIES, "CP": keys})) for name, keys in ON_ARRAY.items()]
    yield
    return [_row(name, runs) for name, runs in asked]


def _row(name: str, runs: Runs) -> Row:
    return unpublished(
        f"{name}: {runs.case.name}, CP over Linux (% of throughput)",
        round(runs.gain(), 1),
        note=f"less time by {runs.cut():.1f} %; AP {runs.gain('AP'):+.1f} %; CP/OPT {runs.of_oracle():.2f}; "
        + ", ".join(f"{policy} {runs[policy].throughput_mb:.2f}" for policy in runs.cells)
        + " MB/s",
        input=rests_on([runs])["input"],
    )

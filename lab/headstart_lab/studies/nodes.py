"""nodes: what Kotz and Ellis left open of the machine: where buffers are, and processors for I/O alone.

Source: Kotz and Ellis, "Prefetching in File Systems for MIMD Multiprocessors" (RAPID Transit), section 3: buffers may
be scattered, at the site of a block's first request, or at the processor that its disk is attached to; "it appears that
this is a crucial issue", and its evaluation "is beyond the scope of this paper"; file system software may be
"multiprogrammed on the same processors with the application program" or run "on dedicated I/O processors". Section 7:
"further experiments with variations of file system organization and cache management (e.g. locality of buffers) are
also planned". They print no results of either.

The setting is that of kotz-ellis: its programs, its guesses (portions, frames), its two readings that were found by
scanning, five seeds. So is every row calibrated.

Memory: `buffer_place` is shared, requester or disk; a read of a block in another node's memory takes 1 ms more. The
paper prints no such time. A guess: 256 words of 4 bytes at some 4 us each, a Butterfly's remote reference.

Processors: the 20 of the paper for processes and actions alike ("both"); 16 of them for processes and 4 for actions
("split"); 20 for processes and 1, 2, 4 or 8 more for actions ("added"). The programs read as many blocks in all.

The criteria, written before the first results. Programs are the 44 cases, with prefetching unless said otherwise; means
of times are geometric.

- disk: most first requests experience remote access: at least 90 % of all reads are remote, in every program, with
  prefetching and without.
- requester: the locality of first requests is strengthened: without prefetching at most 5 % of the reads are remote in
  every program but lw's, whose processes read the same blocks.
- requester, prefetching for own processes only (`for_others = false`): the same.
- requester beside shared: fewer remote reads in every program.
- crucial: between the best and the worst of the three places the total differs by 1 % at least in more than half of the
  programs.
- requester total: shorter than with shared buffers in the mean.
- no overrun: with I/O processors no process is held up by an action, split or added. True by construction.
- split: 16 and 4 are slower than 20 for both in the mean of the programs with compute, for a fifth of the processors
  computes nothing.
- added: in the mean of all programs the total with 1, 2, 4 and 8 more falls with each step, and with 8 it is shorter
  than with 20 for both.
- idle time is free: 20 for both are faster than 20 and 1 more in the mean: one processor cannot take on what 20 idle
  ones do (an action takes 11 ms in the mean, so that one begins 91 a second, of some 400 reads a second).

The item `sensitivity` has no verdicts and was added after the first results, to test reasons for what differs: remote
reads that take 4 and 10 ms more, and 19 disks in place of 20. With as many disks as processes, processes that keep
their order read a shared string's blocks from one disk each.
"""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from headstart.simulation import Result
from headstart_lab.studies import _lab
from headstart_lab.studies._lab import Cell, Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies._study import Study
from headstart_lab.studies.kotz_ellis import _published as paper
from headstart_lab.studies.kotz_ellis._matrix import CASES, PINNED, SEEDS, Case

REMOTE_MS: Final = 1.0
PLACES: Final = ("shared", "requester", "disk")
OWN_ONLY: Final = "requester, own only"
WITHOUT: Final = " without prefetching"

LOCAL: Final = 0.05
REMOTE: Final = 0.90
CRUCIAL: Final = 0.01

COSTS_MS: Final = (4.0, 10.0)
FEWER_DISKS: Final = paper.PROCESSES - 1
SHARED_STRING: Final = "a shared string is every process's own"

COMPUTING: Final = 16
SPLIT: Final = "split"
BOTH: Final = "both"
ADDED: Final = (1, 2, 4, 8)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The part of a run that the rows need."""

    total_ms: float
    references: int
    remote: int
    overrun_ms: float

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return it of a result."""
        return cls(
            total_ms=result.elapsed_ns / 1e6,
            references=result.references,
            remote=sum(each.get("remote_reads", 0) for each in result.processes),
            overrun_ms=sum(each["overrun_ns"] for each in result.processes) / 1e6,
        )


class Lab(_lab.Lab[Outcome]):
    """The laboratory."""

    outcome = Outcome


Cells = Mapping[str, Mapping[str, Sequence[Cell[Outcome]]]]
"""By machine and program: a run of each seed."""


def _scenario(case: Case, seed: int, process: Mapping[str, Any], *, prefetching: bool = True) -> dict[str, Any]:
    scenario = case.scenario(prefetching=prefetching, variant=PINNED, seed=seed)
    return {**scenario, "process": {**scenario["process"], **process}}


def _asked(
    lab: Lab,
    cases: Sequence[Case],
    machines: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int],
    disks: int = paper.PROCESSES,
) -> Cells:
    def cell(case: Case, seed: int, name: str) -> Cell[Outcome]:
        scenario = _scenario(case, seed, machines[name], prefetching=not name.endswith(WITHOUT))
        return lab.ask({**scenario, "device": {**scenario["device"], "count": disks}})

    return {name: {case.label: [cell(case, seed, name) for seed in seeds] for case in cases} for name in machines}


def _total(cells: Sequence[Cell[Outcome]]) -> float:
    return statistics.fmean(cell.outcome.total_ms for cell in cells)


def _remote(cells: Sequence[Cell[Outcome]]) -> float:
    """Return the share of the reads that are remote."""
    return sum(cell.outcome.remote for cell in cells) / sum(cell.outcome.references for cell in cells)


def _beside(cells: Cells, one: str, other: str, labels: Sequence[str] = ()) -> float:
    """Return the totals of one machine beside those of another, in the geometric mean."""
    labels = labels or list(cells[one])
    ratios = [_total(cells[one][label]) / _total(cells[other][label]) for label in labels]
    return math.exp(statistics.fmean(map(math.log, ratios)))


def _places(remote_ms: float) -> dict[str, dict[str, Any]]:
    return {place: {"buffer_place": place, "remote_cost": f"{remote_ms:g}ms"} for place in PLACES}


def _buffers() -> dict[str, dict[str, Any]]:
    at = _places(REMOTE_MS)
    at |= {f"{place}{WITHOUT}": keys for place, keys in list(at.items())}
    return at | {OWN_ONLY: {**at["requester"], "for_others": False}}


def memory(lab: Lab) -> Steps:
    """Buffers at any node, at the requester's, at the disk's: remote reads and totals."""
    cells = _asked(lab, CASES, _buffers(), SEEDS)
    yield
    rows = [
        _few("requester: remote reads without prefetching, all programs but lw's", cells[f"requester{WITHOUT}"]),
        _few(
            "requester: remote reads with prefetching for own processes only, but lw's", cells[OWN_ONLY], SHARED_STRING
        ),
        _most(cells),
        _fewer(cells),
        _crucial(cells),
        _requester(cells),
    ]
    return rows + [_of_places(cells, label) for label in cells["shared"]]


def _few(quantity: str, programs: Mapping[str, Sequence[Cell[Outcome]]], remark: str = "") -> Row:
    shares = {label: _remote(each) for label, each in programs.items() if not label.startswith("lw")}
    most = max(shares, key=shares.__getitem__)
    return finding(
        quantity,
        published="strengthens the locality of access for the first request",
        ours=f"at most {shares[most]:.1%}, {sum(each <= LOCAL for each in shares.values())} of {len(shares)} under 5 %",
        holds=shares[most] <= LOCAL,
        tolerance="at most 5 % in every program",
        basis="calibrated",
        note=f"section 3; most in {most}; {_by_pattern(programs)}" + (f"; {remark}" if remark else ""),
    )


def _by_pattern(programs: Mapping[str, Sequence[Cell[Outcome]]]) -> str:
    """Say the share of the remote reads of each pattern, in the mean of its programs."""
    shares: dict[str, list[float]] = {}
    for label, each in programs.items():
        shares.setdefault(label.split(",")[0], []).append(_remote(each))
    return ", ".join(f"{pattern} {statistics.fmean(each):.0%}" for pattern, each in shares.items())


def _most(cells: Cells) -> Row:
    shares = [_remote(each) for name in ("disk", f"disk{WITHOUT}") for each in cells[name].values()]
    return finding(
        "disk: remote reads",
        published="even most first requests experience remote access",
        ours=f"{min(shares):.1%} to {max(shares):.1%}",
        holds=min(shares) >= REMOTE,
        tolerance="at least 90 % in every program, with and without prefetching",
        basis="calibrated",
        note=f"section 3; without prefetching {_by_pattern(cells[f'disk{WITHOUT}'])}; with prefetching "
        f"{_by_pattern(cells['disk'])}; processes that keep their order read a shared string's blocks from one disk "
        "each, as there are as many disks as processes: sensitivity has 19 disks",
    )


def _fewer(cells: Cells) -> Row:
    pairs = [(_remote(cells["requester"][label]), _remote(cells["shared"][label])) for label in cells["shared"]]
    fewer = sum(one < other for one, other in pairs)
    means = [statistics.fmean(each) for each in zip(*pairs, strict=True)]
    return finding(
        "requester: remote reads beside shared buffers, with prefetching",
        published="strengthens the locality of access",
        ours=f"fewer in {fewer} of {len(pairs)}",
        holds=fewer == len(pairs),
        tolerance="in every program",
        basis="calibrated",
        note=f"in the mean {means[0]:.1%} of the reads and {means[1]:.1%}; requester "
        f"{_by_pattern(cells['requester'])}; without prefetching {_by_pattern(cells[f'requester{WITHOUT}'])}: "
        "the processor that prefetches a block of a shared string is seldom the one that reads it",
    )


def _apart(cells: Cells) -> dict[str, float]:
    """Return by how much the total with the worst place is above that with the best, by program."""
    apart = {}
    for label in cells["shared"]:
        totals = [_total(cells[place][label]) for place in PLACES]
        apart[label] = max(totals) / min(totals) - 1
    return apart


def _crucial(cells: Cells) -> Row:
    apart = _apart(cells)
    much = sum(each >= CRUCIAL for each in apart.values())
    most = max(apart, key=apart.__getitem__)
    return finding(
        "crucial: the total with the worst place beside the best",
        published="it appears that this is a crucial issue",
        ours=f"1 % or more in {much} of {len(apart)}",
        holds=2 * much > len(apart),
        tolerance="in more than half of the programs",
        basis="calibrated",
        note=f"section 3; at the median {statistics.median(apart.values()):.1%}, most in {most}, {apart[most]:.1%}; "
        f"the time of a remote read is a guess, {REMOTE_MS:g} ms: sensitivity has others",
    )


def _requester(cells: Cells) -> Row:
    change = _beside(cells, "requester", "shared") - 1
    return finding(
        "requester: total beside shared buffers",
        published="local buffers cost less (expected)",
        ours=f"{change:+.2%} in the mean",
        holds=change < 0,
        tolerance="shorter in the mean",
        basis="calibrated",
        note=f"disk beside shared {_beside(cells, 'disk', 'shared') - 1:+.2%}; own processes only beside shared "
        f"{_beside(cells, OWN_ONLY, 'shared') - 1:+.2%}",
    )


def _of_places(cells: Cells, label: str) -> Row:
    def told(name: str) -> str:
        return f"{name} {_total(cells[name][label]):,.0f} ms, {_remote(cells[name][label]):.0%} remote"

    names = ("requester", "disk", OWN_ONLY)
    return unpublished(
        f"{label}, total with shared buffers (ms)",
        round(_total(cells["shared"][label]), 3),
        note=", ".join(map(told, names)) + f"; shared {_remote(cells['shared'][label]):.0%} remote",
    )


def _machines() -> dict[str, dict[str, Any]]:
    added = {f"{count} more": {"io_processors": count} for count in ADDED}
    # As many buffers as with 20 processes, so that only the processors differ.
    split = {"count": COMPUTING, "io_processors": paper.PROCESSES - COMPUTING}
    return {BOTH: {}, SPLIT: split, **added}


def processors(lab: Lab) -> Steps:
    """Processors for processes and actions alike, and for one of the two: totals."""
    cells = _asked(lab, CASES, _machines(), SEEDS)
    yield
    with_compute = [case.label for case in CASES if case.compute_ms]
    dedicated = [name for name in cells if name != BOTH]
    overrun = sum(cell.outcome.overrun_ms for name in dedicated for each in cells[name].values() for cell in each)
    split = _beside(cells, SPLIT, BOTH, with_compute) - 1
    more = {count: _beside(cells, f"{count} more", BOTH) for count in ADDED}
    told = ", ".join(f"{count}: {each - 1:+.1%}" for count, each in more.items())
    falls = list(more.values()) == sorted(more.values(), reverse=True)
    rows = [
        finding(
            "no overrun: time for which actions hold processes up, with I/O processors",
            published="prefetching competes with the computation for cycles where processors do both",
            ours=f"{overrun:g} ms",
            holds=overrun == 0,
            tolerance="0",
            basis="identity",
            note="section 3; split and added, every program and seed",
        ),
        finding(
            "split: total with 16 and 4 beside 20 for both, programs with compute",
            published="a processor for I/O computes nothing (expected)",
            ours=f"{split:+.1%} in the mean",
            holds=split > 0,
            tolerance="longer in the mean",
            basis="calibrated",
            note=f"all programs: {_beside(cells, SPLIT, BOTH) - 1:+.1%}",
        ),
        finding(
            "added: total with 1, 2, 4, 8 more beside 20 for both",
            published="more processors for I/O, less waiting (expected)",
            ours=told,
            holds=falls and more[ADDED[-1]] < 1,
            tolerance="falls with each step; shorter with 8",
            basis="calibrated",
            note=f"programs with compute: {_beside(cells, f'{ADDED[-1]} more', BOTH, with_compute) - 1:+.1%} with 8",
        ),
        finding(
            "idle time is free: total with 1 more beside 20 for both",
            published="prefetching ideally occurs during application idle time",
            ours=f"{more[ADDED[0]] - 1:+.1%} in the mean",
            holds=more[ADDED[0]] > 1,
            tolerance="longer in the mean",
            basis="calibrated",
            note="section 3",
        ),
    ]
    return rows + [
        unpublished(
            f"{label}, total with 20 for both (ms)",
            round(_total(cells[BOTH][label]), 3),
            note=", ".join(f"{name} {_total(cells[name][label]):,.0f}" for name in dedicated),
        )
        for label in cells[BOTH]
    ]


def sensitivity(lab: Lab) -> Steps:
    """Reasons for what differs: other times of a remote read, and a disk less than there are processes."""
    costly = {cost: _asked(lab, CASES, _places(cost), SEEDS) for cost in COSTS_MS}
    machines = {name: keys for name, keys in _buffers().items() if name in ("disk", f"disk{WITHOUT}")}
    fewer = _asked(lab, CASES, machines, SEEDS, disks=FEWER_DISKS)
    yield
    rows = []
    for cost, cells in costly.items():
        apart = _apart(cells)
        much = sum(each >= CRUCIAL for each in apart.values())
        rows += [
            unpublished(f"remote reads of {cost:g} ms: programs whose total with the worst place is 1 % longer", much),
            unpublished(
                f"remote reads of {cost:g} ms: the same, without compute",
                sum(each >= CRUCIAL for label, each in apart.items() if label.endswith(" 0 ms")),
            ),
            unpublished(
                f"remote reads of {cost:g} ms: total with requester beside shared buffers, mean (%)",
                round(100 * (_beside(cells, "requester", "shared") - 1), 2),
                note=f"disk {_beside(cells, 'disk', 'shared') - 1:+.2%}",
            ),
        ]
    for name, programs in fewer.items():
        shares = [_remote(each) for each in programs.values()]
        rows.append(
            unpublished(
                f"{FEWER_DISKS} disks, {name}: fewest remote reads of a program (%)",
                round(100 * min(shares), 1),
                note=_by_pattern(programs),
            )
        )
    return rows


def quick(lab: Lab) -> Steps:
    """One program with one seed on each machine: for tests."""
    case = Case("lfp", "10 each", paper.COMPUTE_MS)
    cells = _asked(lab, [case], {**_buffers(), **_machines()}, SEEDS[:1])
    yield
    return [
        unpublished(
            f"{case.label}, {name}: total (ms)",
            round(_total(each[case.label]), 3),
            note=f"{_remote(each[case.label]):.1%} of the reads remote",
        )
        for name, each in cells.items()
    ]


STUDY = Study(
    name="nodes",
    title="Where buffers are, and processors for I/O alone, which Kotz and Ellis (RAPID Transit) left open",
    seeds="1 to 5",
    lab=Lab,
    input="paper",
    steps={"memory": memory, "processors": processors, "sensitivity": sensitivity, "quick": quick},
)

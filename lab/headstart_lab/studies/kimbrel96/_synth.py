"""The synthetic trace: section 4.2's counts and the synth half of Table 2.

synth is 50 passes over 2000 sequential blocks with think times that sum to 99.9 s. What the paper leaves open, and
what we did: aggressive's batches here are 40, 8, 4, 4 for 1 to 4 disks, and reverse aggressive's (F, batch) pairs
(4, 40), (6, 40), (40, 4), all found by our own scan for the counts that section 4.2 prints; with the batches of
Table 6, which the paper says only of section 4.3, other rows show what comes out.
"""

import statistics

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Basis, Row, finding, number, unpublished
from headstart_lab.studies.kimbrel96 import _published as paper
from headstart_lab.studies.kimbrel96._lab import (
    DEMAND,
    STALL_SHARE,
    Lab,
    Policy,
    aggressive,
    count,
    fixed_horizon,
    reverse_aggressive,
)
from headstart_lab.studies.kimbrel96._outcome import Cell

DISKS = (1, 2, 3, 4)

SCANNED_BATCH = {1: 40, 2: 8, 3: 4, 4: 4}
"""Aggressive's batch by disks: our scan's, not the paper's."""

SCANNED_REVERSE = {1: (4.0, 40), 2: (6.0, 40), 3: (40.0, 4)}
"""Reverse aggressive's F and batch by disks: our scan's, not the paper's."""

TOLERANCE_FIXED_HORIZON = {1: 0.01, 2: 0.01, 3: 0.1 / 118.9, 4: 0.1 / 118.9}
"""1 %; 0.1 s where nothing stalls."""

TOLERANCE_LIGHTNING = 0.02
"""Ours: the paper cross-validates the two simulators and prints no bound."""

TOLERANCE_AGGRESSIVE = {1: 0.02, 2: 0.02, 3: 0.01, 4: 0.01}

LIGHTNING = {"name": "ibm-0661", "buffer": {"size": "128KiB", "read_ahead": True}}
"""The CMU simulator's drive. The paper says no more of it than its name and "as modified at CMU"; the read-ahead is
ours, the HP 97560's: without it fixed horizon on one disk takes 779 s."""

LIGHTNING_8K_MS = 16 / 48 * 60_000 / 4316
"""What 8 KB take below the 0661's heads: 16 of a track's 48 sectors (its profile has the sources)."""

LIGHTNING_SEEDS = range(1, 11)
"""Seeds of the think times, for the rows of the CMU simulator; those of the HP 97560 use seed 1 alone. Aggressive on
two of these drives takes 126.3 to 130.5 s, and 7 of the 10 seeds are within the tolerance. In each other row all 10
are, or none is."""

SCANNED = "from our scan, not from the paper"

STALLING = (1, 2)
"""Disks on which synth stalls. There the drive decides, and how its read-ahead goes on between requests and breaks off
was found by trying for Table 2. Fixed horizon on more disks has no stalls to be fitted."""


def table2(lab: Lab) -> Steps:
    """Table 2: elapsed times of synth on 1 to 4 disks."""
    fixed = {disks: lab.synth(fixed_horizon(), disks) for disks in DISKS}
    scanned = {disks: lab.synth(aggressive(SCANNED_BATCH[disks]), disks) for disks in DISKS}
    table6 = {disks: lab.synth(aggressive(paper.table6(disks)), disks) for disks in DISKS}
    lightning = {
        "fixed horizon": [_lightning(lab, fixed_horizon(), disks) for disks in DISKS],
        "aggressive": [_lightning(lab, aggressive(SCANNED_BATCH[disks]), disks) for disks in DISKS],
    }
    yield
    printed = paper.TABLE_2_SYNTH_S
    rows = [
        number(
            f"synth, {count(disks)}, fixed horizon: elapsed (s)",
            published=printed["fixed horizon"][disks - 1],
            ours=fixed[disks].outcome.elapsed_s,
            tolerance=TOLERANCE_FIXED_HORIZON[disks],
            basis=_basis("fixed horizon", disks),
            note=f"H = {paper.HORIZON}; {fixed[disks].outcome.split}",
        )
        for disks in DISKS
    ]
    batches = {f"batch {SCANNED}": (scanned, SCANNED_BATCH)}
    batches["batch of Table 6"] = (table6, {disks: paper.table6(disks) for disks in DISKS})
    for words, (cells, sizes) in batches.items():
        rows += [_aggressive(words, disks, sizes[disks], cells[disks]) for disks in DISKS]
    for name, runs in lightning.items():
        rows += [_cmu(name, disks, cells) for disks, cells in zip(DISKS, runs, strict=True)]
    rows.append(unpublished("xds on both simulators", None, note="not computed: the trace of xds is lost"))
    return rows


def _lightning(lab: Lab, policy: Policy, disks: int) -> list[Cell]:
    return [lab.synth(policy, disks, LIGHTNING, seed) for seed in LIGHTNING_SEEDS]


def _cmu(name: str, disks: int, cells: list[Cell]) -> Row:
    published = paper.TABLE_2_SYNTH_CMU_S[name][disks - 1]
    times = [cell.outcome.elapsed_s for cell in cells]
    within = sum(abs(time / published - 1) <= TOLERANCE_LIGHTNING for time in times)
    return number(
        f"CMU simulator (IBM 0661), synth on {count(disks)} by {name}: elapsed (s)",
        published=published,
        ours=statistics.mean(times),
        tolerance=TOLERANCE_LIGHTNING,
        basis=_basis(name, disks),
        note="the drive as its profile has it; its read-ahead is ours, and what CMU changed in RaidSim is not known: "
        f"8 KB of its track take 4.6 ms, 5.0 with the skew; mean of seeds 1 to {len(times)}, standard deviation "
        f"{statistics.stdev(times):.2f} s, {within} of them within the tolerance; of seed 1: {cells[0].outcome.split}"
        + _too_fast(published, disks),
    )


def _too_fast(published: float, disks: int) -> str:
    """Return the note on a printed time that the drive cannot reach with its maker's figures."""
    least_s = paper.SYNTH_FETCHES_MIN * LIGHTNING_8K_MS / 1000 / disks
    if published >= least_s:
        return ""
    return (
        f". No schedule takes {published:g} s on this drive: the {paper.SYNTH_FETCHES_MIN} fetches that Belady's MIN "
        f"needs take {least_s:.1f} s below its heads, so that the simulator's drive was a faster one"
    )


def _basis(name: str, disks: int) -> Basis:
    """Return the basis of an elapsed time of Table 2."""
    return "predicted" if name == "fixed horizon" and disks not in STALLING else "calibrated"


def _aggressive(words: str, disks: int, batch: int, cell: Cell) -> Row:
    return number(
        f"synth, {count(disks)}, aggressive, {words}: elapsed (s)",
        published=paper.TABLE_2_SYNTH_S["aggressive"][disks - 1],
        ours=cell.outcome.elapsed_s,
        tolerance=TOLERANCE_AGGRESSIVE[disks],
        basis=_basis("aggressive", disks),
        note=f"batch {batch}; {cell.outcome.split}"
        + ("" if "Table 6" not in words else "; the paper says of section 4.3 only that it used Table 6"),
    )


def synth(lab: Lab) -> Steps:
    """Section 4.2: fetches, waste and stalls of synth."""
    demand = lab.synth(DEMAND, 1)
    fixed = {disks: lab.synth(fixed_horizon(), disks) for disks in DISKS}
    greedy = {disks: lab.synth(aggressive(SCANNED_BATCH[disks]), disks) for disks in DISKS}
    reverse = {
        disks: lab.synth(reverse_aggressive(ratio, batch), disks) for disks, (ratio, batch) in SCANNED_REVERSE.items()
    }
    longer = lab.synth(aggressive(paper.table6(2)), 2)
    unbatched = lab.synth(reverse_aggressive(SCANNED_REVERSE[3][0], 1), 3)
    yield
    rows = [_fetches("optimal demand fetching", 1, paper.SYNTH_FETCHES_MIN, demand, 0.0, "")]
    for disks, cell in fixed.items():
        rows.append(_fetches("fixed horizon", disks, paper.SYNTH_FETCHES_FIXED_HORIZON, cell, 0.0, ""))
    every = paper.TABLE_3["synth"].reads
    for disks, cell in greedy.items():
        published = paper.SYNTH_FETCHES_AGGRESSIVE.get(disks, every)
        words = f"batch {SCANNED_BATCH[disks]}, {SCANNED}"
        if disks not in paper.SYNTH_FETCHES_AGGRESSIVE:
            words += '; published as "every block for every reference"'
        tolerance = 0.0 if disks == 1 else 0.05
        rows.append(_fetches("aggressive", disks, published, cell, tolerance, words))
    for disks, cell in reverse.items():
        ratio, batch = SCANNED_REVERSE[disks]
        published = paper.SYNTH_FETCHES_REVERSE_AGGRESSIVE[disks]
        words = f"F {ratio:g}, batch {batch}, {SCANNED}"
        rows.append(_fetches("reverse aggressive", disks, published, cell, 0.002, words))
    rows.append(_waste(greedy))
    three = {"fixed horizon": fixed[3], "aggressive": greedy[3], "reverse aggressive": reverse[3]}
    rows.append(_stalls(three, unbatched))
    rows.append(_two_disks({"fixed horizon": fixed[2], "aggressive": greedy[2], "reverse aggressive": reverse[2]}))
    rows.append(_service({"fixed horizon": fixed, "aggressive": greedy, "reverse aggressive": reverse}, longer))
    return rows


def _fetches(name: str, disks: int, published: int, cell: Cell, tolerance: float, words: str) -> Row:
    run = cell.outcome
    return number(
        f"{count(disks)}, {name}: fetches",
        published=published,
        ours=run.fetches,
        tolerance=tolerance,
        # What a scan found it found for these counts; those of the other algorithms have no free parameter.
        basis="calibrated" if SCANNED in words else "predicted",
        note="; ".join(part for part in (words, f"elapsed {run.elapsed_s:.1f} s: {run.split}") if part),
    )


def _waste(greedy: dict[int, Cell]) -> Row:
    wasted = ", ".join(f"{cell.outcome.wasted} on {count(disks)}" for disks, cell in greedy.items())
    return number(
        "3 disks, aggressive: wasted fetches",
        published=paper.SYNTH_WASTED_3_DISKS,
        ours=greedy[3].outcome.wasted,
        tolerance=0.05,
        basis="calibrated",
        note=f"known open; batch {SCANNED_BATCH[3]}, {SCANNED}. Ours: {wasted}. A block fetched ahead on one disk "
        "gives way to one needed sooner on another; how often depends on which disk is ahead when a batch is filled, "
        "which the paper does not pin down",
    )


def _stalls(cells: dict[str, Cell], unbatched: Cell) -> Row:
    shares = {name: cell.outcome.stall_s / cell.outcome.elapsed_s for name, cell in cells.items()}
    gone = all(share <= STALL_SHARE for share in shares.values())
    return finding(
        "3 disks: stall time",
        published="stall time is eliminated by all three algorithms",
        ours="eliminated by all three" if gone else "not eliminated by all three",
        holds=gone,
        tolerance=f"at most {100 * STALL_SHARE:g} % of the elapsed time; ours",
        basis="calibrated",
        note=", ".join(
            f"{name} {cell.outcome.stall_s:.3f} s ({100 * shares[name]:.3f} %)" for name, cell in cells.items()
        )
        + f". Reverse aggressive's F and batch were scanned for the printed fetches; with batch 1 it stalls "
        f"{unbatched.outcome.stall_s:.3f} s and makes {unbatched.outcome.fetches} fetches. The paper names neither",
    )


SIMILAR = 0.08
"""Elapsed times no further apart than this are similar: Table 2's two are 7.6 % apart."""


def _two_disks(cells: dict[str, Cell]) -> Row:
    times = {name: cell.outcome.elapsed_s for name, cell in cells.items()}
    apart = max(times.values()) / min(times.values()) - 1
    return finding(
        "2 disks: the three elapsed times",
        published="similar under all three algorithms",
        ours=f"{100 * apart:.1f} % apart",
        holds=apart <= SIMILAR,
        tolerance=f"{100 * SIMILAR:g} % apart; ours",
        basis="calibrated",
        note=", ".join(f"{name} {time:.1f} s" for name, time in times.items()),
    )


def _service(cells: dict[str, dict[int, Cell]], longer: Cell) -> Row:
    low, high = paper.SYNTH_RESPONSE_MS
    times = {
        f"{name}, {count(disks)}": cell.outcome.service_ms
        for name, by_disks in cells.items()
        for disks, cell in by_disks.items()
    }
    within = all(low <= time <= high for time in times.values())
    return finding(
        "mean time of a disk request",
        published="between 3 and 4 ms",
        ours=f"between {min(times.values()):.2f} and {max(times.values()):.2f} ms",
        holds=within,
        basis="calibrated",
        note="service without queueing: "
        + ", ".join(f"{name} {time:.2f}" for name, time in times.items())
        + "; aggressive on 2 disks: "
        + ", ".join(f"{part} {time:.2f}" for part, time in cells["aggressive"][2].outcome.service_parts_ms.items())
        + f" ms: its batches of {SCANNED_BATCH[2]} break the stream more often; with {paper.table6(2)} it takes "
        f"{longer.outcome.service_ms:.2f} ms",
    )

"""Rows of runs, and the paper's claims on them as verdicts, by the criteria of `_published`."""

from collections.abc import Iterable, Sequence
from typing import TypedDict

from headstart_lab.studies._rows import Basis, Input, Row, finding, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._system import Runs


def rate_row(runs: Runs) -> Row:
    """Return the throughputs of a server."""
    return unpublished(
        f"{runs.case.name}: {', '.join(runs.cells)} (MB/s)",
        ", ".join(f"{runs[name].throughput_mb:.2f}" for name in runs.cells),
        note="over Linux: "
        + ", ".join(f"{name} {runs.gain(name):+.1f} %" for name in runs.cells if name != "Linux")
        + f"; CP/OPT {runs.of_oracle():.2f}; {account(runs)}",
        input=rests_on([runs])["input"],
    )


def time_row(runs: Runs) -> Row:
    """Return the times of programs that are not servers."""
    return unpublished(
        f"{runs.case.name}: {', '.join(runs.cells)} (s)",
        ", ".join(f"{runs[name].elapsed_s:.3f}" for name in runs.cells),
        note="less than Linux: "
        + ", ".join(f"{name} {runs.cut(name):.1f} %" for name in runs.cells if name != "Linux")
        + f"; CP/OPT {runs.of_oracle():.2f}; {account(runs)}",
        input=rests_on([runs])["input"],
    )


def account(runs: Runs) -> str:
    """Return what the drive did: the mean request, and the share of useless reads."""
    sizes = "/".join(f"{runs[name].request_kb:.0f}" for name in runs.cells)
    waste = "/".join(f"{100 * runs[name].wasted / max(runs[name].disk_blocks, 1):.0f}" for name in runs.cells)
    return f"KiB of a request {sizes}, % read in vain {waste}"


def basis_of(runs: Iterable[Runs]) -> Basis:
    """Return the basis of a verdict on these runs: one scanned parameter makes it calibrated."""
    return "calibrated" if any(each.case.calibrated for each in runs) else "predicted"


class Rests(TypedDict):
    """The foundation of a verdict."""

    basis: Basis
    input: Input | None


def rests_on(runs: Iterable[Runs]) -> Rests:
    """Return the foundation of a verdict on these runs: one stand-in is enough, and without any the item's holds."""
    runs = list(runs)
    stand_in = any(each.case.stands_in for each in runs)
    return Rests(basis=basis_of(runs), input="stand-in" if stand_in else None)


def by_case(runs: Iterable[Runs], percents: Iterable[float]) -> str:
    """Return figures with the cases that they belong to."""
    pairs = zip(runs, percents, strict=True)
    return ", ".join(f"{each.case.name} {percent:+.1f} %" for each, percent in pairs)


def within(quantity: str, printed: paper.Range, runs: Sequence[Runs], why: str = "") -> Row:
    """CP raises throughput by a printed range."""
    gains = [each.gain() for each in runs]
    ends = zip((min(gains), max(gains)), printed, strict=True)
    holds = all(abs(ours - theirs) <= paper.points(theirs) for ours, theirs in ends)
    return finding(
        quantity,
        published=f"{printed.least:g} to {printed.greatest:g} % more throughput than Linux",
        ours=f"{min(gains):.1f} to {max(gains):.1f} %",
        holds=holds,
        tolerance=f"the ends within {paper.points(printed.least):g} and {paper.points(printed.greatest):g} points",
        **rests_on(runs),
        note=noted(by_case(runs, gains), why, holds),
    )


def about(
    quantity: str,
    printed: float,
    percent: float,
    what: str,
    *,
    rests: Rests,
    note: str,
    at_most: bool = False,
    why: str = "",
) -> Row:
    """A printed percentage, whatever it is of; `at_most`: the greatest of several ("up to"), which none exceeds."""
    holds = abs(percent - printed) <= paper.points(printed) and not (at_most and percent > printed)
    return finding(
        quantity,
        published=f"{printed:g} % {what}",
        ours=f"{percent:.1f} %",
        holds=holds,
        tolerance=f"{paper.points(printed):g} points" + (" less, none more" if at_most else ""),
        **rests,
        note=noted(note, why, holds),
    )


def up_to(quantity: str, printed: float, runs: Sequence[Runs], why: str = "") -> Row:
    """CP raises throughput by up to a printed percentage."""
    gains = [each.gain() for each in runs]
    what = "more throughput than Linux, at most"
    note = by_case(runs, gains)
    return about(quantity, printed, max(gains), what, rests=rests_on(runs), note=note, at_most=True, why=why)


def equal(
    quantity: str,
    published: str,
    runs: Sequence[Runs],
    policies: Sequence[str],
    *,
    why: str = "",
) -> Row:
    """These policies perform alike in each case."""
    apart = [each.apart(*policies) for each in runs]
    holds = max(apart) <= paper.EQUAL
    return finding(
        quantity,
        published=published,
        ours=f"the slowest of {', '.join(policies)} at most {100 * max(apart):.1f} % behind",
        holds=holds,
        tolerance=f"{100 * paper.EQUAL:.0f} % behind the fastest",
        **rests_on(runs),
        note=noted(by_case(runs, (100 * each for each in apart)), why, holds),
    )


def improves(quantity: str, published: str, runs: Sequence[Runs], why: str = "") -> Row:
    """CP improves on Linux in each case."""
    gains = [each.gain() for each in runs]
    count = sum(gain > 100 * paper.BETTER for gain in gains)
    holds = count == len(runs)
    return finding(
        quantity,
        published=published,
        ours=f"better in {count} of {len(runs)}",
        cases=(count, len(runs)),
        holds=holds,
        tolerance=f"throughput more than {100 * paper.BETTER:.0f} % above Linux's in each",
        **rests_on(runs),
        note=noted(by_case(runs, gains), why, holds),
    )


def half_of_oracle(quantity: str, runs: Sequence[Runs], why: str = "") -> Row:
    """CP's throughput is at least half the oracle's in each case."""
    shares = [each.of_oracle() for each in runs]
    holds = min(shares) >= paper.HALF
    return finding(
        quantity,
        published="CP at least half of OPT",
        ours=f"at least {min(shares):.2f} of it",
        holds=holds,
        tolerance=f"{paper.HALF:g} in each case",
        **rests_on(runs),
        note=noted(", ".join(f"{each.case.name} {each.of_oracle():.2f}" for each in runs), why, holds),
    )


def noted(figures: str, why: str, holds: bool) -> str:
    """Return the note of a finding; the reason only where it does not hold."""
    return figures if holds or not why else f"{figures}. {why}"

"""Figures 3 to 8: every case of the matrix, without and with prefetching. The paper draws them without figures."""

from collections.abc import Callable

from headstart_lab.studies._lab import Steps, item
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.kotz_ellis._causes import account
from headstart_lab.studies.kotz_ellis._matrix import Lab, Pair


def matrix(lab: Lab) -> Steps:
    """Every case: by how much the total falls, and where the time went."""
    pairs = lab.matrix()
    yield
    return [
        unpublished(
            f"{each.case.label}: total reduced by (%)",
            round(each.total_gain, 2),
            note=f"{each.without.total_ms:.0f} to {each.prefetching.total_ms:.0f} ms; {account(each)}",
        )
        for each in pairs
    ]


def _figure(line: str, what: str, of: Callable[[Pair], str]) -> Callable[[Lab], Steps]:
    """Return an item: `line` describes it, `what` and `of` make the row of a case."""

    def ask(lab: Lab) -> Callable[[], list[Row]]:
        pairs = lab.matrix()
        return lambda: [unpublished(f"{each.case.label}: {what}", of(each)) for each in pairs]

    return item(line, ask)


def _both(field: str, digits: int = 2) -> Callable[[Pair], str]:
    """Return a function that formats a figure without and with prefetching."""
    return lambda pair: f"{getattr(pair.without, field):.{digits}f}, {getattr(pair.prefetching, field):.{digits}f}"


def _shares(pair: Pair) -> str:
    run = pair.prefetching
    return ", ".join(f"{count / run.references:.3f}" for count in (run.misses, run.hits_unready, run.hits_ready))


FIGURES: dict[str, Callable[[Lab], Steps]] = {
    "figure3": _figure(
        "Figure 3: mean read time with prefetching by that without.",
        "mean read time without, with prefetching (ms)",
        _both("read_ms"),
    ),
    "figure4": _figure(
        "Figure 4: misses, unready and ready hits with prefetching as shares of the reads.",
        "misses, unready hits, ready hits with prefetching",
        _shares,
    ),
    "figure5": _figure(
        "Figure 5: mean read time by mean hit-wait time, with prefetching.",
        "mean hit-wait, read time with prefetching (ms)",
        lambda pair: f"{pair.prefetching.hit_wait_ms:.2f}, {pair.prefetching.read_ms:.2f}",
    ),
    "figure6": _figure(
        "Figure 6: mean response time of the disks with prefetching by that without.",
        "mean response of the disks without, with prefetching (ms)",
        _both("disk_ms"),
    ),
    "figure7": _figure(
        "Figure 7: total execution time with prefetching by that without.",
        "total execution time without, with prefetching (ms)",
        _both("total_ms"),
    ),
    "figure8": _figure(
        "Figure 8: the miss ratio by pattern.", "miss ratio without, with prefetching", _both("miss_ratio", 4)
    ),
}
"""By item."""

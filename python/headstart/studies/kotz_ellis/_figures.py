"""Figures 3 to 8: every case of the matrix, without and with prefetching. The paper draws them without figures."""

from collections.abc import Callable

from headstart.studies._lab import Steps
from headstart.studies._rows import Row
from headstart.studies.kotz_ellis._causes import account
from headstart.studies.kotz_ellis._matrix import Pair, Study


def matrix(study: Study) -> Steps:
    """Every case: by how much the total falls, and where the time went."""
    pairs = study.matrix()
    yield
    return [
        Row(
            item="matrix",
            quantity=f"{each.case.label}: total reduced by (%)",
            published=None,
            ours=round(each.total_gain, 2),
            note=f"{each.without.total_ms:.0f} to {each.prefetching.total_ms:.0f} ms; {account(each)}",
        )
        for each in pairs
    ]


def figure3(study: Study) -> Steps:
    """Figure 3: mean read time with prefetching by that without."""
    of = _both("mean read time", "read_ms", "ms")
    return (yield from _figure(study, "figure3", of))


def figure4(study: Study) -> Steps:
    """Figure 4: misses, unready and ready hits with prefetching as shares of the reads."""

    def of(pair: Pair) -> tuple[str, str]:
        run = pair.prefetching
        shares = (run.misses, run.hits_unready, run.hits_ready)
        text = ", ".join(f"{count / run.references:.3f}" for count in shares)
        return "misses, unready hits, ready hits with prefetching", text

    return (yield from _figure(study, "figure4", of))


def figure5(study: Study) -> Steps:
    """Figure 5: mean read time by mean hit-wait time, with prefetching."""

    def of(pair: Pair) -> tuple[str, str]:
        run = pair.prefetching
        return "mean hit-wait, read time with prefetching (ms)", f"{run.hit_wait_ms:.2f}, {run.read_ms:.2f}"

    return (yield from _figure(study, "figure5", of))


def figure6(study: Study) -> Steps:
    """Figure 6: mean response time of the disks with prefetching by that without."""
    of = _both("mean response of the disks", "disk_ms", "ms")
    return (yield from _figure(study, "figure6", of))


def figure7(study: Study) -> Steps:
    """Figure 7: total execution time with prefetching by that without."""
    of = _both("total execution time", "total_ms", "ms")
    return (yield from _figure(study, "figure7", of))


def figure8(study: Study) -> Steps:
    """Figure 8: the miss ratio by pattern."""
    of = _both("miss ratio", "miss_ratio", "", digits=4)
    return (yield from _figure(study, "figure8", of))


def _both(what: str, field: str, unit: str, digits: int = 2) -> Callable[[Pair], tuple[str, str]]:
    def of(pair: Pair) -> tuple[str, str]:
        values = (getattr(run, field) for run in (pair.without, pair.prefetching))
        text = ", ".join(f"{value:.{digits}f}" for value in values)
        return f"{what} without, with prefetching{f' ({unit})' if unit else ''}", text

    return of


def _figure(study: Study, item: str, of: Callable[[Pair], tuple[str, str]]) -> Steps:
    pairs = study.matrix()
    yield
    return [_row(item, each.case.label, *of(each)) for each in pairs]


def _row(item: str, label: str, what: str, values: str) -> Row:
    return Row(item=item, quantity=f"{label}: {what}", published=None, ours=values)

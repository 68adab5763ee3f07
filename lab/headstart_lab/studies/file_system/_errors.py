"""The paper's measure of its equations, applied to ours: typically within 4 %, at most 9 %."""

import statistics
from collections.abc import Sequence
from typing import Final

from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies.shriver99 import _published as paper
from headstart_lab.studies.shriver99._runs import Pair

TYPICAL: Final = 0.04
"""The paper's predictions "were typically within 4% of measured values" (abstract)."""


def verdicts(what: str, pairs: Sequence[Pair], remark: str = "") -> list[Row]:
    """Return the verdicts on the median and the greatest of the equations' errors, and the worst of them."""
    remark = remark and f"; {remark}"
    order = sorted(pairs, key=lambda pair: abs(pair.error))
    sizes = [abs(pair.error) for pair in order]
    median, worst = statistics.median(sizes), order[-1]
    over = sum(size > paper.WITHIN for size in sizes)
    mean = statistics.fmean(pair.error for pair in pairs)
    note = f"{len(sizes)} scenarios; mean of the errors with their signs {mean:+.1%}{remark}"
    return [
        finding(
            f"{what}: the equations are typically near the simulation",
            published=f"typically within {TYPICAL:.0%}",
            ours=f"median error {median:.1%}",
            holds=median < TYPICAL,
            tolerance=f"median below {TYPICAL:.0%}",
            note=note,
        ),
        finding(
            f"{what}: the equations are never far from the simulation",
            published=f"at most {paper.WITHIN:.0%}",
            ours=f"at most {sizes[-1]:.1%}",
            holds=sizes[-1] <= paper.WITHIN,
            tolerance=f"greatest error at most {paper.WITHIN:.0%}",
            note=f"{over} of {len(sizes)} are further; the furthest is {worst.series}: simulated "
            f"{worst.simulated_ms:.2f} ms, by the equations {worst.model_ms:.2f} ms{remark}",
        ),
    ]


def parts(what: str, groups: dict[str, list[Pair]]) -> list[Row]:
    """Return the median error of each group of scenarios."""
    return [
        unpublished(
            f"{what}, median error where {name} (%)",
            round(100 * statistics.median(abs(pair.error) for pair in pairs), 2),
            note=f"greatest {max(abs(pair.error) for pair in pairs):.1%}, mean with signs "
            f"{statistics.fmean(pair.error for pair in pairs):+.1%}",
        )
        for name, pairs in groups.items()
    ]

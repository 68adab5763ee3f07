"""Figures 4 to 7. The paper draws them and prints few of their figures: ours stand alone."""

import itertools
from collections.abc import Callable

from headstart.studies._lab import Steps
from headstart.studies._rows import Row
from headstart.studies.zhang_pfc import _published as paper
from headstart.studies.zhang_pfc._matrix import ALGORITHMS, Runs, Study
from headstart.studies.zhang_pfc._outcome import Outcome
from headstart.studies.zhang_pfc._tables import mean


def figure4(study: Study) -> Steps:
    """Figure 4: mean response time and unused prefetch with H: none, DU, PFC."""
    runs = [each for each in study.matrix() if each.case.setting == "H"]
    yield
    rows = study.skipped("figure4")
    for each in runs:
        names = ("none", "DU", "PFC")
        rows.append(
            _plain(
                "figure4",
                f"{each.case.label}: mean response none, DU, PFC (ms)",
                each,
                _list([f"{each[name].response_ms:.3f}" for name in names]),
            )
        )
        rows.append(
            _plain(
                "figure4",
                f"{each.case.label}: unused prefetch of L2 none, DU, PFC (pages)",
                each,
                _list([str(each[name].l2_unused) for name in names]),
            )
        )
    return rows


def figure5(study: Study) -> Steps:
    """Figure 5: what PFC changes in the paper's best and worst case, and in ours."""
    runs = study.matrix()
    yield
    rows = study.skipped("figure5")
    for which, (name, algorithm, setting, ratio) in paper.FIGURE_5.items():
        wanted = (algorithm, setting, ratio)
        for each in runs:
            if each.case.workload.name == name and (each.case.algorithm, each.case.setting, each.case.ratio) == wanted:
                rows += _study_of(f"the paper's {which} case", each)
    if runs:
        rows += _study_of("our best case", max(runs, key=lambda each: each.gain()))
        rows += _study_of("our worst case", min(runs, key=lambda each: each.gain()))
    return rows


def figure6(study: Study) -> Steps:
    """Figure 6: L2's hit ratio without and with PFC, mean of the eight cases of a workload and an algorithm."""
    runs = study.matrix()
    yield
    rows = study.skipped("figure6")
    for workload, algorithm in itertools.product(study.workloads.found, ALGORITHMS):
        group = [each for each in runs if each.case.workload == workload and each.case.algorithm == algorithm]
        ratios = [100 * mean(each[name].l2_hit_ratio for each in group) for name in ("none", "PFC")]
        ours = f"{ratios[0]:.1f}, {ratios[1]:.1f}"
        quantity = f"{workload.name}, {algorithm}: hit ratio of L2 none, PFC (%)"
        note = f"silent hits among PFC's. {workload.label}"
        rows.append(Row(item="figure6", quantity=quantity, published=None, ours=ours, note=note))
    return rows


def figure7(study: Study) -> Steps:
    """Figure 7: both actions, bypass only and readmore only, OLTP and Web."""
    runs = study.matrix("OLTP", "Web")
    yield
    rows = study.skipped("figure7", "OLTP", "Web")
    names = ("PFC", "bypass only", "readmore only")
    for each in runs:
        ours = _list([f"{each.gain(name):.2f}" for name in names])
        quantity = f"{each.case.label}: mean response time shortened by PFC, bypass only, readmore only (%)"
        rows.append(_plain("figure7", quantity, each, ours))
    return rows


def _study_of(which: str, runs: Runs) -> list[Row]:
    def ratio(outcome: Outcome) -> str:
        return f"{100 * outcome.l2_hit_ratio:.1f}"

    metrics: dict[str, Callable[[Outcome], str]] = {
        "mean response (ms)": lambda outcome: f"{outcome.response_ms:.3f}",
        "hit ratio of L2 (%)": ratio,
        "unused prefetch of L2 (pages)": lambda outcome: str(outcome.l2_unused),
        "disk requests": lambda outcome: str(outcome.disk_requests),
        "disk I/O (pages)": lambda outcome: str(outcome.disk_blocks),
    }
    label = f"{which}, {runs.case.label}"
    return [
        _plain("figure5", f"{label}: {name} none, PFC", runs, f"{of(runs['none'])}, {of(runs['PFC'])}")
        for name, of in metrics.items()
    ]


def _plain(item: str, quantity: str, runs: Runs, ours: str) -> Row:
    return Row(item=item, quantity=quantity, published=None, ours=ours, note=f"{runs.case.workload.label}{runs.flags}")


def _list(parts: list[str]) -> str:
    return ", ".join(parts)

"""Figures 4 to 7. The paper draws them and prints few of their figures: ours stand alone."""

import itertools
from collections.abc import Callable

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._matrix import ALGORITHMS, Lab, Runs
from headstart_lab.studies.zhang_pfc._outcome import Outcome
from headstart_lab.studies.zhang_pfc._tables import mean


def figure4(lab: Lab) -> Steps:
    """Figure 4: mean response time and unused prefetch with H: none, DU, PFC."""
    runs = [each for each in lab.matrix() if each.case.setting == "H"]
    yield
    rows = lab.skipped()
    for each in runs:
        names = ("none", "DU", "PFC")
        rows.append(
            _plain(
                f"{each.case.label}: mean response none, DU, PFC (ms)",
                each,
                _list([f"{each[name].response_ms:.3f}" for name in names]),
            )
        )
        rows.append(
            _plain(
                f"{each.case.label}: unused prefetch of L2 none, DU, PFC (pages)",
                each,
                _list([str(each[name].l2_unused) for name in names]),
            )
        )
    return rows


def figure5(lab: Lab) -> Steps:
    """Figure 5: what PFC changes in the paper's best and worst case, and in ours."""
    runs = lab.matrix()
    yield
    rows = lab.skipped()
    for which, each in case_studies(runs):
        label = f"{which}, {each.case.label}"
        for name, (of, form) in METRICS.items():
            # No thousands separators in a list.
            ours = _list([format(of(each[run]), form.removeprefix(",")) for run in ("none", "PFC")])
            rows.append(_plain(f"{label}: {name} none, PFC", each, ours))
    return rows


METRICS: dict[str, tuple[Callable[[Outcome], float], str]] = {
    "mean response (ms)": (lambda outcome: outcome.response_ms, ".3f"),
    "hit ratio of L2 (%)": (lambda outcome: 100 * outcome.l2_hit_ratio, ".1f"),
    "unused prefetch of L2 (pages)": (lambda outcome: outcome.l2_unused, ",d"),
    "disk requests": (lambda outcome: outcome.disk_requests, ",d"),
    "disk I/O (pages)": (lambda outcome: outcome.disk_blocks, ",d"),
}
"""The metrics of Figure 5, each with its format."""


def case_studies(runs: list[Runs]) -> list[tuple[str, Runs]]:
    """Return the paper's best and worst case among `runs`, and ours."""
    found = []
    for which, (name, algorithm, setting, ratio) in paper.FIGURE_5.items():
        wanted = (name, algorithm, setting, ratio)
        for each in runs:
            case = each.case
            if (case.workload.name, case.algorithm, case.setting, case.ratio) == wanted:
                found.append((f"the paper's {which} case", each))
    if runs:
        found.append(("our best case", max(runs, key=lambda each: each.gain())))
        found.append(("our worst case", min(runs, key=lambda each: each.gain())))
    return found


def figure6(lab: Lab) -> Steps:
    """Figure 6: L2's hit ratio without and with PFC, mean of the eight cases of a workload and an algorithm."""
    runs = lab.matrix()
    yield
    rows = lab.skipped()
    for workload, algorithm in itertools.product(lab.workloads.found, ALGORITHMS):
        group = [each for each in runs if each.case.workload == workload and each.case.algorithm == algorithm]
        ratios = [100 * mean(each[name].l2_hit_ratio for each in group) for name in ("none", "PFC")]
        ours = f"{ratios[0]:.1f}, {ratios[1]:.1f}"
        quantity = f"{workload.name}, {algorithm}: hit ratio of L2 none, PFC (%)"
        note = f"silent hits among PFC's. {workload.label}"
        rows.append(unpublished(quantity, ours, note=note))
    return rows


def figure7(lab: Lab) -> Steps:
    """Figure 7: by how much both actions, bypass only and readmore only shorten the response time, OLTP and Web."""
    runs = lab.matrix("OLTP", "Web")
    yield
    rows = lab.skipped("OLTP", "Web")
    names = ("PFC", "bypass only", "readmore only")
    for each in runs:
        ours = _list([f"{each.gain(name):.2f}" for name in names])
        quantity = f"{each.case.label}: gain of PFC, bypass only, readmore only (%)"
        rows.append(_plain(quantity, each, ours))
    return rows


def _plain(quantity: str, runs: Runs, ours: str) -> Row:
    return unpublished(quantity, ours, note=f"{runs.case.workload.label}{runs.flags}")


def _list(parts: list[str]) -> str:
    return ", ".join(parts)

"""Tables of results and the verdict, by the criteria of the README beside this file."""

from __future__ import annotations

import statistics
from typing import Any

from rig import SUPPLIES
from systems import SYSTEMS

FASTER, SHORTER, WORKLOADS_MIN = 1.5, 0.1, 3
OWN = "headstart"
Rows = list[dict[str, Any]]
HEAD = [
    "| workload | system | steady s (spread) | stall s | last epoch's first step s | bytes / optimum | GETs | runs |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
]


def medians(rows: Rows) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the median of each figure by supply, workload and system."""
    groups: dict[tuple[str, str, str], Rows] = {}
    for row in rows:
        if "error" not in row:
            groups.setdefault((row["supply"], row["workload"], row["system"]), []).append(row)
    return {
        key: {
            "steady_s": statistics.median(row["steady_s"] for row in group),
            "stall_s": statistics.median(row["stall_s"] for row in group),
            "spread_s": max(row["steady_s"] for row in group) - min(row["steady_s"] for row in group),
            "first_s": statistics.median(row["first_s"][-1] for row in group),
            "over": statistics.median(row["bytes"] / row["optimum_bytes"] for row in group),
            "gets": statistics.median(row["gets"] for row in group),
            "rounds": len(group),
        }
        for key, group in groups.items()
    }


def text(rows: Rows) -> str:
    """Return all tables in Markdown."""
    middle = medians(rows)
    parts = []
    for supply in SUPPLIES:
        names = [name for name in dict.fromkeys(row["workload"] for row in rows) if (supply, name, OWN) in middle]
        if not names:
            continue
        parts += [f"### Supply: {supply}", "", *verdict(middle, supply, names), *HEAD]
        for workload in names:
            parts += one(middle, supply, workload)
        parts.append("")
    failed = sorted({(row["system"], row["workload"], row["error"][-200:]) for row in rows if "error" in row})
    parts += [f"- {system}, {workload}: {why!r}" for system, workload, why in failed]
    return "\n".join(parts)


def one(middle: dict[tuple[str, str, str], dict[str, float]], supply: str, workload: str) -> list[str]:
    """Return the rows of a workload, fastest first."""
    found = {system: middle[supply, workload, system] for system in SYSTEMS if (supply, workload, system) in middle}
    marks = {"converted": " ‡", "noted": " (noted)", "peer": "", "store": ""}
    return [
        f"| {workload} | {system}{marks[SYSTEMS[system].group]} | {row['steady_s']:.2f} ({row['spread_s']:.2f}) | "
        f"{row['stall_s']:.3f} | {row['first_s']:.3f} | {row['over']:.2f} | {row['gets']:.0f} | {row['rounds']:.0f} |"
        for system, row in sorted(found.items(), key=lambda pair: pair[1]["steady_s"])
    ]


def verdict(middle: dict[tuple[str, str, str], dict[str, float]], supply: str, names: list[str]) -> list[str]:
    """Return the verdict of a supply: beside all peers, without those of converted data, and with the noted ones."""
    figure, ratio_of = ("stall_s", "store's wait over the least of the others'")
    ample = SUPPLIES[supply].of_need > 1
    if not ample:
        figure, ratio_of = "steady_s", "least time of the others over the store's"
    lines = [
        f"| {supply}: {ratio_of} | all peers (the verdict) | same order, files as they are | with the noted |",
        "| --- | ---: | ---: | ---: |",
    ]
    passed = [0, 0, 0]
    for workload in names:
        cells = []
        own = middle[supply, workload, OWN][figure]
        for column, kinds in enumerate((("peer", "converted"), ("peer",), ("peer", "converted", "noted"))):
            others = {
                system: middle[supply, workload, system][figure]
                for system in SYSTEMS
                if SYSTEMS[system].group in kinds and (supply, workload, system) in middle
            }
            if not others:
                cells.append("")
                continue
            best = min(others, key=lambda system: others[system])
            ratio = own / max(others[best], 1e-9) if ample else others[best] / own
            good = ratio < SHORTER if ample else ratio >= FASTER
            passed[column] += good
            cells.append(f"{ratio:.3f} {best}{' **pass**' if good else ''}")
        lines.append(f"| {workload} | {' | '.join(cells)} |")
    lines.append("| passed | " + " | ".join(f"{count} of {len(names)}" for count in passed) + " |")
    return [*lines, ""]

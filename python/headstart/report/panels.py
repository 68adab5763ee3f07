"""Panels shared by several pages: the prefetches of levels, and the activity of devices."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from headstart import plot
from headstart.report.figures import Figure
from headstart.report.page import table
from headstart.report.text import time_text
from headstart.results import Disk, Level


def prefetch_figure(name: str, rows: Sequence[Mapping[str, Any]], on: str = "") -> Figure | None:
    """Return a figure of the blocks prefetched by all rows that prefetch; `None` if there are none."""
    prefetching = [row for row in rows if row["prefetches"]]
    if not prefetching:
        return None
    caption = f"Blocks prefetched{on}: used in time, used but still under way when referenced (late), wasted."
    return Figure(name, plot.prefetches(prefetching), caption)


def level_table(levels: Mapping[str, Sequence[Level]]) -> str:
    """Return a table of the prefetches of each level of each run."""
    several = any(len(each) > 1 for each in levels.values())
    header = (
        *("policy", *(("level",) if several else ()), "prefetches", "used", "late", "wasted", "accuracy", "coverage"),
        *("mean lead ms", "pollution", "wasted MiB"),
    )
    lines = []
    for name, each in levels.items():
        for level in each:
            used, late = level["prefetches_used"], level["prefetches_late"]
            counts = (level["prefetches"], used, late, level["prefetches_wasted"])
            accuracy = f"{level['accuracy']:.1%}" if level["prefetches"] else "-"
            cells = [escape(name), *([escape(level["name"])] if several else []), *(f"{count:,}" for count in counts)]
            cells += [accuracy, f"{level['coverage']:.1%}", time_text(level["lead_ns_mean"]), f"{level['pollution']:,}"]
            lines.append(("", [*cells, f"{level['wasted_bytes'] / 1024**2:,.2f}"]))
    return table(header, lines)


def device_table(devices: Mapping[str, Sequence[Disk]], of: str = "policy") -> str:
    """Return a table of the device statistics of each run, all disks together."""
    header = (of, "requests", "busy", "service ms", "response ms", "queue ms", "buffer hits", "merged")
    lines = []
    for name, disks in devices.items():
        requests = sum(disk["requests"] for disk in disks)

        def mean(total: int, of: int = requests) -> str:
            return time_text(total / of if of else 0.0)

        cells = [
            f"{requests:,}",
            f"{sum(disk['utilization'] for disk in disks) / max(len(disks), 1):.1%}",
            mean(sum(disk["service_ns_mean"] * disk["requests"] for disk in disks)),
            mean(sum(disk["response_ns_mean"] * disk["requests"] for disk in disks)),
            mean(sum(disk["queue_ns"] for disk in disks)),
            f"{sum(disk['buffer_hits'] for disk in disks):,}",
            f"{sum(disk['merged'] for disk in disks):,}",
        ]
        lines.append(("", [escape(name), *cells]))
    return table(header, lines)

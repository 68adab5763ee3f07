"""The page of one run: the parts of its time, the prefetches of each level, and the activity of the devices."""

from html import escape
from typing import Any

from headstart import plot
from headstart._input import plain
from headstart.report.figures import Figure
from headstart.report.page import details, facts, notes, page, table
from headstart.report.panels import device_table, level_table, prefetch_figure
from headstart.report.text import time_text
from headstart.simulation import PARTS, Result

PROCESSES_MAX = 64
"""Maximum number of processes in a picture."""


def simulation_page(name: str, result: Result) -> str:
    """Return the page; `name` is that of the scenario."""
    return page(f"{plain(name)}: where the time goes", *_content(result))


def simulation_figures(result: Result) -> list[Figure]:
    """Return the figures of the page."""
    return _content(result)[1]


def _content(result: Result) -> tuple[list[str], list[Figure]]:
    device = result.scenario["device"]
    workload = result.scenario["workload"]
    shown = {
        "workload": plain(workload.get("trace") or workload.get("generator") or "inline references"),
        "policy": plain(plot.policy(result)),
        "cache": f"{result.levels[0]['blocks']:,} blocks",
        "device": f"{device['count']} x {plain(device['model']['name'])}",
        "references": f"{result.references:,}",
        "seed": result.seed,
    }
    body = [f'<p class="headline">{escape(headline(result))}</p>', facts(shown)]
    figures: list[Figure] = []

    def show(figure: Figure | None) -> None:
        if figure is not None:
            figures.append(figure)
            body.append(figure.html())

    rows: list[dict[str, Any]] = [{"policy": "run", **{name: getattr(result, name) for name in FIELDS}}]
    if 1 < len(result.processes) <= PROCESSES_MAX:
        rows = [{"policy": f"process {index}", **each} for index, each in enumerate(result.processes)]
    show(Figure("times", plot.times(rows), "Elapsed time, and where it goes."))
    body.append(_times_table(result))
    body.append("<h2>Prefetches</h2>")
    levels = [{"policy": plain(level["name"]), "elapsed_ns": result.elapsed_ns, **level} for level in result.levels]
    show(prefetch_figure("prefetches", levels))
    body.append(level_table({"all" if len(result.levels) == 1 else "run": result.levels}))
    body.append("<h2>Devices</h2>")
    show(Figure("devices", plot.devices(result), "Mean service time of a request, in its parts, disk by disk."))
    body.append(device_table({f"disk {index}": [disk] for index, disk in enumerate(result.devices)}, "disk"))
    response = result.response_ns
    body.append("<h2>Response time of a request</h2>")
    header = ("", "mean ms", "50 % ms", "90 % ms", "99 % ms", "max ms")
    values = (response["mean"], response["p50"], response["p90"], response["p99"], response["max"])
    body.append(table(header, [("", ["requests", *(time_text(value) for value in values)])]))
    body.append(notes(result.notes))
    body.append(details("Scenario, with every default", result.scenario))
    body.append(f"<p>SHA-256 of the trace: {result.trace_sha256}</p>")
    return body, figures


FIELDS = ("elapsed_ns", *(f"{part}_ns" for part in PARTS))


def headline(result: Result) -> str:
    """Return one sentence on the parts of the time and one on the prefetches."""
    whole = result.elapsed_ns or 1
    parts = sorted(result.parts_ns().items(), key=lambda each: -each[1])
    name, most = parts[0]
    text = f"The run takes {result.elapsed_ns / 1e9:,.3f} s, most of it {name} ({most / whole:.1%})"
    if name != "stall":
        text += f"; stall is {result.stall_ns / whole:.1%}"
    if not result.prefetches:
        return f"{text}. Nothing is prefetched."
    used = result.prefetches_used / result.prefetches
    return f"{text}. Of {result.prefetches:,} prefetches {used:.1%} are used, {result.prefetches_late:,} of them late."


def _times_table(result: Result) -> str:
    rows = {"elapsed": result.elapsed_ns, **result.parts_ns()}
    whole = result.elapsed_ns or 1
    lines = [("", [name, f"{ns / 1e9:,.3f}", f"{ns / whole:.1%}"]) for name, ns in rows.items()]
    return table(("time", "s", "share"), lines)

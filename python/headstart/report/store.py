"""The page of a store: what readers waited for, and what was fetched beside the least possible."""

from collections.abc import Mapping
from html import escape
from typing import Any

from headstart._input import plain
from headstart.report.charts import COLOURS, altair
from headstart.report.figures import Figure
from headstart.report.page import facts, page, table
from headstart.report.text import duration_text
from headstart.sizes import bytes_text

LEVELS = {
    "in memory": "memory_hit_bytes",
    "on its way": "coming_bytes",
    "on the local disk": "spill_hit_bytes",
    "missed": "missed_bytes",
}


def store_page(report: Mapping[str, Any]) -> str:
    """Return the page for a report of a store."""
    waited, elapsed = report["waited_ns"], report["elapsed_ns"]
    headline = (
        f"Readers waited {duration_text(waited)} in {duration_text(elapsed)}. {bytes_text(report['fetched_bytes'])} "
        f"were fetched for {bytes_text(report['read_bytes'])} that were read{_beside(report)}."
    )
    named = {
        "cache": bytes_text(report["cache_bytes"]),
        "local disk": bytes_text(report["spill_bytes"]) if report["spill_bytes"] else "none",
        "read requests": f"{report['read_requests']:,}",
        "GETs": f"{report['get_requests']:,}",
        "repeated": f"{report['repeated_requests']:,}",
        "sent twice": f"{report['hedged_requests']:,}",
        "disclosed": f"{report['disclosed_entries']:,} entries",
        "fetched ahead": f"{bytes_text(report['prefetched_bytes'])}, {bytes_text(report['wasted_bytes'])} unused",
    }
    if report["next_gib_saves_bytes"] is not None:
        named["1 GiB more would save"] = bytes_text(report["next_gib_saves_bytes"])
    read = max(report["read_bytes"], 1)
    levels = [("", [name, f"{report[key] / 1e6:,.1f}", f"{report[key] / read:.1%}"]) for name, key in LEVELS.items()]
    times = [
        ("", [name, *(duration_text(report[key][each]) for each in ("mean", "p50", "p90", "p99", "max"))])
        for name, key in (("readers' requests", "wait_ns"), ("requests to the source", "response_ns"))
    ]
    figures = store_figures(report)
    body = [f'<p class="headline">{escape(headline)}</p>', facts(named), *(figure.html() for figure in figures)]
    body += ["<h2>Where the bytes that were read were found</h2>", table(("level", "MB", "share"), levels)]
    body += ["<h2>Times</h2>", table(("time", "mean", "median", "90 %", "99 %", "maximum"), times)]
    return page(plain(report["source"]), body, figures)


def _beside(report: Mapping[str, Any]) -> str:
    least = report["optimum_bytes"]
    if least is None:
        return ""
    ratio = f", {report['fetched_bytes'] / least:.2f} times the least possible with this cache" if least else ""
    return f"{ratio} ({bytes_text(least)})" if ratio else ""


def store_figures(report: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of the page: waits and bytes over time."""
    alt = altair("store --html")
    history = report["history"]
    seconds = history["interval_ns"] / 1e9
    x = alt.X("time:Q", title="time (s)")
    waits = [
        {"time": index * seconds, "waiting": waited / history["interval_ns"]}
        for index, waited in enumerate(history["waited_ns"])
    ]
    bytes_ = [
        {"time": index * seconds, "MB/s": count / seconds / 1e6, "bytes": name}
        for name, key in (("read", "read_bytes"), ("fetched", "fetched_bytes"))
        for index, count in enumerate(history[key])
    ]
    waiting = (
        alt.Chart(alt.Data(values=waits))
        .mark_area(interpolate="step-after", color=COLOURS[1])
        .encode(x=x, y=alt.Y("waiting:Q", title="readers waiting"))
    )
    colour = alt.Color("bytes:N", title=None, scale=alt.Scale(domain=["read", "fetched"], range=list(COLOURS[:2])))
    rates = (
        alt.Chart(alt.Data(values=bytes_))
        .mark_line(interpolate="step-after")
        .encode(x=x, y=alt.Y("MB/s:Q", title="MB/s"), color=colour)
    )
    length = duration_text(history["interval_ns"])
    return [
        Figure("waits", waiting, f"Readers that wait, on average over {length}: 1 is one reader that always waits."),
        Figure("bytes", rates, f"Bytes that readers asked for, and bytes from the source, over {length}."),
    ]

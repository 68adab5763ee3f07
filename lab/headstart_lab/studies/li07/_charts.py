"""Figures 4 and 6 to 13 as pictures for the page. They show the rows."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headstart.report.charts import COLOURS, DASHES, HEIGHT, WIDTH, altair
from headstart_lab.studies.li07 import _drives, _latency, _servers, _tools
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._system import POLICIES, Lab, Runs

SHADES = dict(zip(("Linux", "CP", "AP", "OPT"), ("#8b8d98", COLOURS[0], COLOURS[1], COLOURS[2]), strict=True))
"""A colour for each policy, the same in every picture."""

PANEL = 300
"""Width of a panel where there are several, in points."""


def figure4(lab: Lab) -> Any:
    """Rates by place, and seek times by distance."""
    alt = altair("--html")
    rates = [
        {"series": curve.name, "x": place, "y": rate}
        for curve in _drives.rates(lab)
        for place, rate in zip(curve.places_gb, curve.rates_mb, strict=True)
    ]
    seeks = [
        {"series": name, "x": share, "y": ms} for name in ("IBM", "Seagate") for share, ms in _drives.seek_curve(name)
    ]
    colours = dict(zip(_drives.MEASURED, COLOURS, strict=False))
    x = alt.X("x:Q", title="starting place (GB)")
    distance = alt.X("x:Q", title="distance, share of all cylinders")
    panels = (
        _lines(alt, rates, colours, x, "sequential rate (MB/s)", WIDTH),
        _lines(alt, seeks, colours, distance, "seek time (ms)", WIDTH),
    )
    return alt.hconcat(*panels, spacing=36)


def figure13(lab: Lab) -> Any:
    """Latency of a page, Linux being 1."""
    bars = [
        {"case": str(each.clients), "policy": name, "value": each.of(name) / each.of("Linux")}
        for each in _latency.latencies(lab)
        for name in each.runs.cells
    ]
    return _bars(bars, "latency of a page, Linux being 1", "clients of Two-Rand-0 in the background")


def _by_clients(lab: Lab, item: str) -> Any:
    """Return a panel for each server, a line for each policy."""
    alt = altair("--html")
    scale = alt.Scale(type="log", base=2)
    x = alt.X("x:Q", title="clients", scale=scale, axis=alt.Axis(values=list(paper.CONCURRENCY)))
    panels = [
        _lines(alt, _points(runs), SHADES, x, "throughput (MB/s)", PANEL).properties(title=_servers.NAMES[generator])
        for generator, runs in _servers.panels(lab, item).items()
    ]
    rows = [alt.hconcat(*panels[at : at + 3], spacing=30) for at in range(0, len(panels), 3)]
    return alt.vconcat(*rows, spacing=30)


def _points(runs: Sequence[Runs]) -> list[dict[str, Any]]:
    return [
        {"series": name, "x": each.case.workload["concurrency"], "y": each[name].throughput_mb}
        for each in runs
        for name in each.cells
    ]


def _lines(alt: Any, points: list[dict[str, Any]], colours: Mapping[str, str], x: Any, y_title: str, width: int) -> Any:
    """Return lines of `x` and `y`, one for each `series`."""
    names = list(dict.fromkeys(point["series"] for point in points))
    scale = alt.Scale(domain=names, range=[colours[name] for name in names])
    dashes = alt.Scale(domain=names, range=list(DASHES[: len(names)]))
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=len(points) < 8 * len(names))
        .encode(
            x=x,
            y=alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=True)),
            color=alt.Color("series:N", sort=names, scale=scale, title=None),
            strokeDash=alt.StrokeDash("series:N", sort=names, scale=dashes, title=None),
        )
        .properties(width=width, height=HEIGHT)
    )


def _normal(runs: Iterable[Runs], title: str = "time, Linux being 1") -> Any:
    """Return bars of times over Linux's, for each case."""
    bars = [
        {"case": each.case.name, "policy": name, "value": each[name].elapsed_s / each["Linux"].elapsed_s}
        for each in runs
        for name in each.cells
    ]
    return _bars(bars, title)


def _bars(bars: list[dict[str, Any]], title: str, x_title: str | None = None) -> Any:
    alt = altair("--html")
    cases = list(dict.fromkeys(bar["case"] for bar in bars))
    names = [name for name in POLICIES if any(bar["policy"] == name for bar in bars)]
    colours = alt.Scale(domain=names, range=[SHADES[name] for name in names])
    # "Two-Rand-0 on RAID0" takes two lines.
    axis = alt.Axis(labelAngle=0, labelFontSize=11, labelLimit=110, labelExpr="split(datum.label, ' on ')")
    return (
        alt.Chart(alt.Data(values=bars))
        .mark_bar()
        .encode(
            x=alt.X("case:N", sort=cases, title=x_title, axis=axis),
            xOffset=alt.XOffset("policy:N", sort=names),
            y=alt.Y("value:Q", title=title),
            color=alt.Color("policy:N", sort=names, scale=colours, title=None),
        )
        .properties(width=max(2 * WIDTH, 96 * len(cases)), height=HEIGHT)
    )


def _programs(lab: Lab, item: str) -> Any:
    return _normal(_tools.panels(lab, item).values())


def figure11(lab: Lab) -> Any:
    """Inverse of the throughput of two servers on three drives."""
    found = _servers.panels(lab, "figure11")
    return _normal((each for runs in found.values() for each in runs), "inverse of throughput, Linux being 1")


PICTURES: dict[str, Callable[[Lab], Any]] = {
    "figure4": figure4,
    **{item: functools.partial(_by_clients, item=item) for item in ("figure6", "figure8")},
    **{item: functools.partial(_programs, item=item) for item in ("figure7", "figure9", "figure10", "figure12")},
    "figure11": figure11,
    "figure13": figure13,
}
"""By item."""

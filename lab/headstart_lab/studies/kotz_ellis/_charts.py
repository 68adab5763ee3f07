"""Figures 3 to 8 drawn. Patterns differ in colour and shape; programs that compute are filled."""

import functools
from collections.abc import Callable
from typing import Any

from headstart.report.charts import COLOURS, HEIGHT, WIDTH, altair
from headstart_lab.studies.kotz_ellis import _published as paper
from headstart_lab.studies.kotz_ellis._matrix import PATTERNS, Lab, Pair

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def _picture(draw: Callable[[Any, list[dict[str, Any]]], Any]) -> Callable[[Lab], Any]:
    """Return a function that draws the matrix, whose runs must be done."""
    return lambda lab: draw(altair("--html"), [_point(each) for each in lab.matrix()])


def _point(pair: Pair) -> dict[str, Any]:
    run, before = pair.prefetching, pair.without
    point: dict[str, Any] = {
        "pattern": pair.case.pattern,
        "case": pair.case.label,
        "compute": f"{pair.case.compute_ms:g} ms",
        "miss_ratio": run.miss_ratio,
        "miss": run.miss_ratio,
        "unready hit": run.hits_unready / run.references,
        "ready hit": run.hits_ready / run.references,
        "hit_wait_ms": run.hit_wait_ms,
    }
    for name, value in (("read_ms", "read_ms"), ("disk_ms", "disk_ms"), ("total_ms", "total_ms")):
        point[name], point[f"{name}_0"] = getattr(run, value), getattr(before, value)
    point["total_s"], point["total_s_0"] = run.total_ms / 1e3, before.total_ms / 1e3
    return point


def _marks(alt: Any, points: list[dict[str, Any]], x: Any, y: Any) -> Any:
    patterns = [name for name in PATTERNS if any(point["pattern"] == name for point in points)]
    colours = alt.Scale(domain=list(PATTERNS), range=list(COLOURS))
    shapes = alt.Scale(domain=list(PATTERNS), range=list(SHAPES))
    legend = alt.Legend(values=patterns, columns=6)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_point(size=55, filled=False, strokeWidth=1.5)
        .encode(
            x=x,
            y=y,
            color=alt.Color("pattern:N", title=None, scale=colours, legend=legend),
            fill=alt.Fill("pattern:N", title=None, scale=colours, legend=legend),
            shape=alt.Shape("pattern:N", title=None, scale=shapes, legend=legend),
            fillOpacity=alt.condition("datum.compute == '0 ms'", alt.value(0.0), alt.value(0.6)),
            tooltip="case:N",
        )
        .properties(width=WIDTH * 1.4, height=HEIGHT * 1.3)
    )


def _scatter(alt: Any, points: list[dict[str, Any]], field: str, what: str, unit: str) -> Any:
    top = 1.05 * max(max(point[field], point[f"{field}_0"]) for point in points)
    scale = alt.Scale(domain=[0, top], nice=False)
    x = alt.X(f"{field}_0:Q", title=f"{what} without prefetching ({unit})", scale=scale)
    y = alt.Y(f"{field}:Q", title=f"{what} with prefetching ({unit})", scale=scale)
    return alt.layer(_line(alt, [(0.0, 0.0), (top, top)], field), _marks(alt, points, x, y))


def _line(alt: Any, ends: list[tuple[float, float]], field: str) -> Any:
    """Return a reference line on the axes of a scatter."""
    values = [{f"{field}_0": x, field: y} for x, y in ends]
    return (
        alt.Chart(alt.Data(values=values))
        .mark_line(color="#60646c", strokeDash=[4, 3], strokeWidth=1)
        .encode(x=f"{field}_0:Q", y=f"{field}:Q")
    )


def _shares(alt: Any, points: list[dict[str, Any]]) -> Any:
    kinds = ["miss", "unready hit", "ready hit"]
    ordered = [point["case"] for point in sorted(points, key=lambda point: (point["miss_ratio"], point["case"]))]
    values = [
        {"case": point["case"], "kind": kind, "order": at, "share": point[kind]}
        for point in points
        for at, kind in enumerate(kinds)
    ]
    colours = alt.Scale(domain=kinds, range=[COLOURS[1], "#c9ccd1", COLOURS[0]])
    return (
        alt.Chart(alt.Data(values=values))
        .mark_bar()
        .encode(
            x=alt.X(
                "case:N", sort=ordered, title="cases, by miss ratio", axis=alt.Axis(labelFontSize=8, labelAngle=-60)
            ),
            y=alt.Y("share:Q", title="share of the reads", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("kind:N", title=None, sort=kinds, scale=colours),
            order="order:Q",
        )
        .properties(width=WIDTH * 1.8, height=HEIGHT)
    )


def _waits(alt: Any, points: list[dict[str, Any]]) -> Any:
    x = alt.X("hit_wait_ms:Q", title="mean hit-wait time (ms)", scale=alt.Scale(zero=True))
    y = alt.Y("read_ms:Q", title="mean read time with prefetching (ms)", scale=alt.Scale(zero=True))
    marks = _marks(alt, points, x, y)
    fit = (
        alt.Chart(alt.Data(values=points))
        .transform_regression("hit_wait_ms", "read_ms")
        .mark_line(color="#60646c", strokeDash=[4, 3], strokeWidth=1)
        .encode(x="hit_wait_ms:Q", y="read_ms:Q")
    )
    return alt.layer(fit, marks)


def _ratios(alt: Any, points: list[dict[str, Any]]) -> Any:
    x = alt.X("miss_ratio:Q", title="miss ratio with prefetching", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("pattern:N", sort=list(PATTERNS), title=None)
    limit = (
        alt.Chart(alt.Data(values=[{"miss_ratio": paper.MISS_RATIO_MOST}]))
        .mark_rule(color="#60646c", strokeDash=[4, 3])
        .encode(x="miss_ratio:Q")
    )
    return alt.layer(limit, _marks(alt, points, x, y))


PICTURES: dict[str, Callable[[Lab], Any]] = {
    "figure3": _picture(functools.partial(_scatter, field="read_ms", what="mean read time", unit="ms")),
    "figure4": _picture(_shares),
    "figure5": _picture(_waits),
    "figure6": _picture(functools.partial(_scatter, field="disk_ms", what="mean response of the disks", unit="ms")),
    "figure7": _picture(functools.partial(_scatter, field="total_s", what="total execution time", unit="s")),
    "figure8": _picture(_ratios),
}
"""By item."""

"""Figures 2 to 10 as pictures for the page. They show the rows of `_figures`.

Bars stand side by side, algorithm by algorithm, and are made up as in the paper: computing, driver, stall, from the
bottom up, ever paler. Each workload has a panel with a scale of its own; that of lines does not begin at 0.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from headstart.report.charts import COLOURS, HEIGHT, WIDTH, altair
from headstart_lab.studies.kimbrel96._figures import FIGURES, BarFigure, Curve, finished, label
from headstart_lab.studies.kimbrel96._lab import Lab

SHADES = {
    "optimal demand": "#8b8d98",
    "fixed horizon": COLOURS[0],
    "aggressive": COLOURS[1],
    "reverse aggressive": COLOURS[2],
    "forestall": COLOURS[3],
}
"""A colour for each algorithm, the same in every picture."""

PARTS = ("computing", "driver", "stall")
"""The parts of the elapsed time."""


SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
"""The shapes of points on lines, by disks."""


def bars(lab: Lab, figure: BarFigure) -> Any:
    """Return a panel for each workload, a bar for each number of disks and algorithm."""
    alt = altair("--html")
    panels: dict[str, list[dict[str, Any]]] = {}
    for (workload, disks, name), bar in figure.bars(lab).items():
        outcome, _ = finished(bar)
        times = (outcome.compute_s, outcome.driver_s, outcome.stall_s)
        panels.setdefault(label(workload), []).extend(
            {"disks": disks, "algorithm": name, "part": part, "order": order, "seconds": seconds}
            for order, (part, seconds) in enumerate(zip(PARTS, times, strict=True))
        )
    names = list(figure.names)
    colours = alt.Scale(domain=names, range=[SHADES[name] for name in names])
    opacities = alt.Scale(domain=list(PARTS), range=[1.0, 0.3])

    def panel(points: list[dict[str, Any]]) -> Any:
        return (
            alt.Chart(alt.Data(values=points))
            .mark_bar()
            .encode(
                x=alt.X("disks:O", title="disks", axis=alt.Axis(labelAngle=0)),
                xOffset=alt.XOffset("algorithm:N", sort=names),
                y=alt.Y("seconds:Q", title="elapsed (s)", stack="zero"),
                order=alt.Order("order:Q"),
                color=alt.Color("algorithm:N", sort=names, scale=colours, title=None),
                opacity=alt.Opacity("part:N", sort=list(PARTS), scale=opacities, title=None),
            )
        )

    return _stacked(alt, {title: panel(points) for title, points in panels.items()}, 2 * WIDTH, 1)


def lines(lab: Lab, curve: Callable[[Lab], Curve], name: str) -> Any:
    """Return a panel for each workload, a line for each number of disks."""
    alt = altair("--html")
    panels: dict[str, list[dict[str, Any]]] = {}
    for (workload, disks, value), cell in curve(lab).items():
        point = {"disks": disks, "value": value, "seconds": cell.outcome.elapsed_s}
        panels.setdefault(workload.label, []).append(point)

    def panel(points: list[dict[str, Any]]) -> Any:
        values = sorted({point["value"] for point in points})
        return (
            alt.Chart(alt.Data(values=points))
            .mark_line(point={"size": 45})
            .encode(
                x=alt.X(
                    "value:Q",
                    title=name,
                    scale=alt.Scale(type="log", base=2, domain=[values[0], values[-1]], nice=False),
                    axis=alt.Axis(values=values),
                ),
                y=alt.Y("seconds:Q", title="elapsed (s)", scale=alt.Scale(zero=False)),
                color=alt.Color("disks:O", scale=alt.Scale(range=list(COLOURS)), title="disks"),
                shape=alt.Shape("disks:O", scale=alt.Scale(range=list(SHAPES)), legend=None),
            )
        )

    return _stacked(alt, {title: panel(points) for title, points in panels.items()}, WIDTH, 2)


def _stacked(alt: Any, panels: Mapping[str, Any], width: int, columns: int) -> Any:
    drawn = [panel.properties(title=title, width=width, height=HEIGHT) for title, panel in panels.items()]
    # Panels with more disks have thinner bars.
    return alt.concat(*drawn, columns=columns, spacing=30).resolve_scale(xOffset="independent") if drawn else None


PICTURES: dict[str, Callable[[Lab], Any]] = {
    item: functools.partial(bars, figure=figure)
    if isinstance(figure, BarFigure)
    else functools.partial(lines, curve=figure.curve, name=figure.name)
    for item, figure in FIGURES.items()
}
"""By item."""

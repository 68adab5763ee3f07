"""Figures 1 to 6 drawn, simulated and by the equations; and the grid, one side by the other."""

from typing import TYPE_CHECKING, Any

from headstart.report.charts import COLOURS, HEIGHT, WIDTH, altair, styled
from headstart.studies.shriver99._runs import Pair

if TYPE_CHECKING:
    from headstart.report.charts import Chart

FIGURES = ("figure1", "figure2", "figure3", "figure4", "figure5", "figure6")
DRAWN = {*FIGURES, "grid"}
"""The items that have a chart."""


def drawn(item: str, pairs: list[Pair]) -> "Chart":
    """Return an item's chart.

    Raises:
        HeadstartError: `headstart[report]` is not installed.
    """
    alt = altair("--html")
    return styled(_grid(alt, pairs) if item == "grid" else _figure(alt, pairs))


def _figure(alt: Any, pairs: list[Pair]) -> Any:
    """Bars for what is simulated, ticks for the equations; as in the paper, response time by request or file size."""
    xs = list(dict.fromkeys(pair.x for pair in pairs))
    series = list(dict.fromkeys(pair.series for pair in pairs))
    points = [
        {"x": pair.x, "series": pair.series, "simulated": pair.simulated_ms, "by the equations": pair.model_ms}
        for pair in pairs
    ]
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("x:N", sort=xs, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("series:N", sort=series),
        tooltip=[
            "series:N",
            "x:N",
            alt.Tooltip("simulated:Q", format=".2f"),
            alt.Tooltip("by the equations:Q", format=".2f"),
        ],
    )
    colour = alt.Color("series:N", sort=series, scale=alt.Scale(range=list(COLOURS)), title=None)
    bars = base.mark_bar().encode(
        y=alt.Y("simulated:Q", title="mean response (ms): bars simulated, lines by the equations"), color=colour
    )
    ticks = base.mark_tick(thickness=3, color="black").encode(y=alt.Y("by the equations:Q"))
    return (bars + ticks).properties(width=WIDTH, height=HEIGHT)


def _grid(alt: Any, pairs: list[Pair]) -> Any:
    """The model's response time by the simulated one; on the line they are equal."""
    points = [
        {"point": pair.series, "streams": pair.x, "simulated": pair.simulated_ms, "model": pair.model_ms}
        for pair in pairs
    ]
    times = [time for pair in pairs for time in (pair.simulated_ms, pair.model_ms)]
    ends = [{"v": min(times)}, {"v": max(times)}]
    scale = alt.Scale(type="log")
    streams = sorted({pair.x for pair in pairs}, key=int)
    dots = (
        alt.Chart(alt.Data(values=points))
        .mark_point(filled=True, size=40, opacity=0.7)
        .encode(
            x=alt.X("simulated:Q", scale=scale, title="simulated mean response (ms)"),
            y=alt.Y("model:Q", scale=scale, title="by the equations (ms)"),
            color=alt.Color("streams:N", sort=streams, scale=alt.Scale(range=list(COLOURS)), title="streams"),
            tooltip=["point:N", alt.Tooltip("simulated:Q", format=".2f"), alt.Tooltip("model:Q", format=".2f")],
        )
    )
    line = alt.Chart(alt.Data(values=ends)).mark_line(color="grey").encode(x="v:Q", y="v:Q")
    return (line + dots).properties(width=WIDTH, height=HEIGHT)

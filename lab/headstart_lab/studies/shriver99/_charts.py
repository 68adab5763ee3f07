"""Figures 1 to 6 drawn, simulated and by the equations; and the grid, one against the other."""

from collections.abc import Callable
from typing import Any

from headstart.report.charts import COLOURS, HEIGHT, WIDTH, altair
from headstart_lab.studies.shriver99._runs import Lab, Pair


def figure(pairs: list[Pair]) -> Any:
    """Bars for the simulation, ticks for the equations; as in the paper, response time by request or file size."""
    alt = altair("--html")
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


def grid(pairs: list[Pair]) -> Any:
    """The model's response time by the simulated one; on the line they are equal."""
    alt = altair("--html")
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


def _picture(item: str, draw: Callable[[list[Pair]], Any]) -> Callable[[Lab], Any]:
    return lambda lab: draw(lab.pairs[item])


PICTURES: dict[str, Callable[[Lab], Any]] = {
    **{f"figure{number}": _picture(f"figure{number}", figure) for number in range(1, 7)},
    "grid": _picture("grid", grid),
}
"""By item."""

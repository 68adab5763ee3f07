"""Figures 4 and 6 to 13 as pictures, for the page. What is drawn is what the rows say."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headstart.report.charts import COLOURS, DASHES, HEIGHT, WIDTH, altair, styled
from headstart.studies.li07 import _drives
from headstart.studies.li07._system import Study

if TYPE_CHECKING:
    from headstart.report.charts import Chart


def figure4(study: Study) -> "Chart":
    """Rates by place, and seek times by distance."""
    alt = altair("figure4")
    rates = [
        {"device": curve.name, "gb": place, "rate": rate}
        for curve in _drives.rates(study)
        for place, rate in zip(curve.places_gb, curve.rates_mb, strict=True)
    ]
    seeks = [
        {"device": name, "share": share, "ms": ms}
        for name in ("IBM", "Seagate")
        for share, ms in _drives.seek_curve(name)
    ]
    lines = alt.hconcat(
        _lines(alt, rates, "gb", "starting place (GB)", "rate", "sequential rate (MB/s)"),
        _lines(alt, seeks, "share", "distance, share of all cylinders", "ms", "seek time (ms)"),
        spacing=36,
    )
    return styled(lines)


def _lines(alt: Any, points: list[dict[str, Any]], x: str, x_title: str, y: str, y_title: str) -> Any:
    colour = alt.Color("device:N", sort=list(_drives.MEASURED), scale=alt.Scale(range=list(COLOURS)), title=None)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(interpolate="linear")
        .encode(
            x=alt.X(f"{x}:Q", title=x_title),
            y=alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(zero=True)),
            color=colour,
            strokeDash=alt.StrokeDash(
                "device:N", sort=list(_drives.MEASURED), scale=alt.Scale(range=list(DASHES)), title=None
            ),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )


PICTURES: dict[str, Callable[[Study], "Chart | None"]] = {"figure4": figure4}
"""By item."""

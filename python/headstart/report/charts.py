"""Charts as pictures: altair describes them, vl-convert draws them without a browser or a network.

Both belong to the extra `headstart[report]`. Colours are those of Okabe and Ito, which are distinguishable with colour
blindness. Series also differ in their dashes, for printing without colours.
"""

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headstart._core import HeadstartError
from headstart._input import plain

if TYPE_CHECKING:
    import altair as alt

    Chart = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])

WIDTH, HEIGHT = 380, 260
"""Size of a panel in points."""

SCALE = 2.0
"""Pixels per point of a PNG."""


def altair(needed_for: str) -> Any:
    """Return altair, if all drawing packages are installed.

    Raises:
        HeadstartError: One of them is not installed.
    """
    try:
        import altair as alt
        import vl_convert  # noqa: F401
    except ImportError as error:
        what = f"{needed_for}: pictures need altair and vl-convert-python"
        raise HeadstartError(f"{what}; allowed: pip install 'headstart[report]'") from error
    alt.data_transformers.disable_max_rows()
    return alt


def styled(chart: "Chart") -> "Chart":
    """Return the chart in the common style."""
    font = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
    styled: Chart = (
        chart.configure(font=font, background="white", padding=12)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=13,
            titleFontWeight="normal",
            titlePadding=8,
            gridColor="#e3e3e6",
            domainColor="#60646c",
            tickColor="#60646c",
            labelColor="#1c2024",
            titleColor="#1c2024",
        )
        .configure_title(fontSize=14, anchor="start", fontWeight="bold", color="#1c2024", subtitleColor="#60646c")
        .configure_legend(labelFontSize=12, titleFontSize=12, symbolStrokeWidth=2, labelLimit=0, orient="top")
        .configure_tick(color="#1c2024")
        .configure_view(stroke=None)
    )
    return styled


def log_ticks(values: Sequence[float]) -> list[float]:
    """Return the ticks of a logarithmic scale that holds `values`, from its lower to its upper end.

    1, 2, 5 of each decade; over more than three decades only powers of ten, including the ends.
    """
    low, high = min(values), max(values)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if high / low < 1_000 else (1,)
    steps = [digit * 10.0**decade for decade in decades for digit in digits]
    below = max((step for step in steps if step <= low), default=steps[0])
    above = min((step for step in steps if step >= high), default=steps[-1])
    if below == above:
        return [below / 2, below, below * 2]
    return [step for step in steps if below <= step <= above]


def png(chart: "Chart") -> bytes:
    """Return the chart as PNG."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(_specification(chart), scale=SCALE)
    return drawn


def svg(chart: "Chart") -> str:
    """Return the chart as a standalone SVG."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(_specification(chart))
    return drawn


def _specification(chart: "Chart") -> str:
    """Return the chart as escaped JSON: a control character, for example of a file name, would crash vl-convert."""
    return json.dumps(plain_values(json.loads(chart.to_json())))


def plain_values(value: Any) -> Any:
    """Return a value of JSON with the control characters of its texts escaped."""
    if isinstance(value, dict):
        return {plain_values(key): plain_values(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain_values(each) for each in value]
    return plain(value) if isinstance(value, str) else value

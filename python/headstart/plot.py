"""Charts of results, drawn by altair (`headstart[report]`); the pages of `--html` show the same charts.

    frame = headstart.compare("trace.csv.xz", policies=["demand", "linux", "forestall"], disks=[1, 4])
    headstart.plot.times(frame)
    headstart.plot.curve(frame, x="disks")
    headstart.plot.devices(headstart.simulate("scenario.toml"))

Each function takes the result of `compare`, one result, or several by name, and returns an altair chart. A notebook
shows the chart; `chart.save("times.png")` or `.svg` writes it.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headstart._core import HeadstartError
from headstart._input import plain
from headstart.report.charts import COLOURS, altair, log_ticks
from headstart.simulation import PARTS, Result

if TYPE_CHECKING:
    from headstart.report.charts import Chart

Rows = Any
"""A frame of `compare`, a `Result`, a mapping of results by name, or the rows as dictionaries."""

TICKS_MAX = 20
"""Maximum number of ticks along x."""
WIDTH, BAR, LINES = 560, 26, 280
"""Width of a chart, height of a bar with its gap, height of a chart of lines; in points."""
LABEL_MAX = 170
"""Width of a policy's name; a longer name is cut, and shown in full in the tooltip."""
DISKS_MAX = 64
"""Maximum number of disks in a picture."""

BYTES = " : ".join(
    [
        *(
            f"abs(datum.value) < {1000 * 1024**power} ? format(datum.value / {1024**power}, '.3~r') + ' {unit}'"
            for power, unit in enumerate(("B", "KiB", "MiB", "GiB"))
        ),
        f"format(datum.value / {1024**4}, ',.3~r') + ' TiB'",
    ]
)
"""A label for a number of bytes, with three digits, as an expression of Vega."""

SETTINGS = ("device", "cache", "disks", "coordinator")
"""Columns that identify the run of a row, together with the policy."""

COLOUR = {
    "compute": "#009E73",
    "driver": "#E69F00",
    "overhead": "#56B4E9",
    "stall": "#D55E00",
    "barrier": "#CC79A7",
    "idle": "#9aa0a6",
    "in time": "#009E73",
    "late": "#E69F00",
    "wasted": "#D55E00",
    "seek": "#D55E00",
    "rotation": "#E69F00",
    "transfer": "#009E73",
    "other": "#56B4E9",
}
"""Colour of each part, the same in every chart."""


def times(rows: Rows) -> "Chart":
    """Return elapsed time by policy, split into its parts; a line marks the lower bound if one is known.

    Raises:
        HeadstartError: `headstart[report]` is not installed, or there is nothing to draw.
    """
    return _by_setting(altair("plot.times"), _rows(rows), _times)


def _times(alt: Any, found: Sequence[dict[str, Any]]) -> Any:
    bars = [
        {**_names(row), "part": part, "order": order, "s": row[f"{part}_ns"] / 1e9, "elapsed": row["elapsed_ns"] / 1e9}
        for row in found
        for order, part in enumerate(PARTS)
        if row.get(f"{part}_ns")
    ]
    x = alt.X("s:Q", title="elapsed time (s)")
    tooltip = [
        alt.Tooltip("run:N", title="policy"),
        alt.Tooltip("part:N"),
        alt.Tooltip("s:Q", title="time (s)", format=",.3f"),
        alt.Tooltip("elapsed:Q", title="elapsed (s)", format=",.3f"),
    ]
    bounds = [
        {**_names(row), "s": row["lower_bound_ns"] / 1e9, "part": "lower bound of any policy"}
        for row in found
        if row.get("lower_bound_ns")
    ]
    mark = _stacked(alt, bars, PARTS, x, tooltip)
    if bounds:
        bound = alt.Chart(alt.Data(values=bounds)).mark_tick(thickness=2, size=BAR - 4)
        said = [alt.Tooltip("part:N", title="line"), alt.Tooltip("s:Q", title="time (s)", format=",.3f")]
        mark = alt.layer(mark, bound.encode(x=x, y=_policies(alt, bounds), tooltip=said))
    return _sized(mark, len(found))


def prefetches(rows: Rows) -> "Chart":
    """Return the blocks prefetched by policy: used in time, used but still in flight when referenced (late), wasted.

    Raises:
        HeadstartError: `headstart[report]` is not installed, or there is nothing to draw.
    """
    return _by_setting(altair("plot.prefetches"), _rows(rows), _prefetches)


def _prefetches(alt: Any, found: Sequence[dict[str, Any]]) -> Any:
    kinds = ("in time", "late", "wasted")
    bars = []
    for row in found:
        used, late, wasted = (int(row[f"prefetches_{name}"]) for name in ("used", "late", "wasted"))
        for order, (kind, blocks) in enumerate(zip(kinds, (used - late, late, wasted), strict=True)):
            share = blocks / (used + wasted) if used + wasted else 0.0
            bars.append({**_names(row), "part": kind, "order": order, "blocks": blocks, "share": share})
    x = alt.X("blocks:Q", title="blocks prefetched", axis=alt.Axis(format="~s"))
    tooltip = [
        alt.Tooltip("run:N", title="policy"),
        alt.Tooltip("part:N", title="prefetches"),
        alt.Tooltip("blocks:Q", format=","),
        alt.Tooltip("share:Q", title="share", format=".1%"),
    ]
    return _sized(_stacked(alt, bars, kinds, x, tooltip), len(found))


def curve(rows: Rows, *, x: str = "disks", y: str = "elapsed_ns") -> "Chart":
    """Return one line per policy over a column: "disks", "cache_blocks", "cache", "device".

    `y` is a column of the frame; one that ends in `_ns` is shown in seconds.

    Raises:
        HeadstartError: There is no such column; `headstart[report]` is not installed; there is nothing to draw.
    """
    found = _rows(rows)
    for name in (x, y):
        if name not in found[0]:
            raise HeadstartError(f'plot.curve: no column "{name}"; allowed: {", ".join(found[0])}')
    unit = 1e9 if y.endswith("_ns") else 1
    others = [name for name in SETTINGS if name != x and not (name == "cache" and x == "cache_blocks")]
    varying = [name for name in others if len({row.get(name) for row in found}) > 1]
    points = []
    for row in found:
        if row[y] is not None and row[x] is not None:
            words = [str(row["policy"]), *(_words(name, row[name]) for name in varying if row.get(name) is not None)]
            points.append({"series": ", ".join(words), "x": row[x], "y": row[y] / unit})
    title = y.removesuffix("_ns").replace("_", " ") + (" (s)" if unit != 1 else "")
    return lines(points, x.replace("_", " "), title)


def devices(rows: Rows) -> "Chart":
    """Return the mean service time of a request and its parts: by disk for one result, by policy for several.

    Raises:
        HeadstartError: The rows are those of a frame, which has no devices; `headstart[report]` is not installed.
    """
    alt = altair("plot.devices")
    if isinstance(rows, Result):
        cases = [(f"disk {index}", [disk]) for index, disk in enumerate(rows.devices[:DISKS_MAX])]
    elif isinstance(rows, Mapping):
        cases = [(str(name), result.devices) for name, result in rows.items()]
    else:
        raise HeadstartError("plot.devices: rows have no devices; allowed: a result, or results by name")
    kinds = ("seek", "rotation", "transfer", "other")
    bars = []
    for name, disks in cases:
        requests = sum(disk["requests"] for disk in disks)
        busy_ns = sum(disk["busy_ns"] for disk in disks)
        parts = [sum(disk["seek_ns"] for disk in disks), sum(disk["rotation_ns"] for disk in disks)]
        parts += [sum(disk["transfer_ns"] for disk in disks)]
        parts.append(sum(disk["overhead_ns"] + disk["wait_ns"] for disk in disks))
        for order, (kind, time_ns) in enumerate(zip(kinds, parts, strict=True)):
            ms = time_ns / requests / 1e6 if requests else 0.0
            service = busy_ns / requests / 1e6 if requests else 0.0
            bars.append({"run": name, "part": kind, "order": order, "ms": ms, "requests": requests, "busy": service})
    x = alt.X("ms:Q", title="mean service time of a request (ms)")
    tooltip = [
        alt.Tooltip("run:N", title="of"),
        alt.Tooltip("part:N"),
        alt.Tooltip("ms:Q", title="mean (ms)", format=",.3f"),
        alt.Tooltip("requests:Q", format=","),
    ]
    return _sized(_stacked(alt, bars, kinds, x, tooltip), len(cases))


def _rows(rows: Rows) -> list[dict[str, Any]]:
    """Return the rows that have run, each with a policy, from any supported input."""
    if isinstance(rows, Result):
        rows = {policy(rows): rows}
    if isinstance(rows, Mapping):
        return [
            {"policy": str(name), **{key: getattr(result, key) for key in result.__dataclass_fields__}}
            for name, result in rows.items()
        ]
    if hasattr(rows, "rows") and not hasattr(rows, "columns"):
        rows = [row.to_dict() for row in rows.rows]
    elif hasattr(rows, "to_dicts"):
        rows = rows.to_dicts()
    elif hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    found = [dict(row) for row in rows if not _absent(row["elapsed_ns"])]
    if not found:
        raise HeadstartError("plot: nothing to draw; allowed: at least one run")
    return [{key: None if _absent(value) else value for key, value in row.items()} for row in found]


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def policy(result: Result) -> str:
    """Return the policies of a result's levels, in words."""
    levels = result.scenario.get("level")
    keys = [level["policy"] for level in levels] if levels else [result.scenario["policy"]]
    return ", ".join(str(each["name"] if isinstance(each, Mapping) else each) for each in keys)


def _words(name: str, value: Any) -> str:
    match name:
        case "disks":
            return f"{value} disk{'s' if value != 1 else ''}"
        case "cache":
            return f"cache {value}"
        case _:
            return str(value)


def setting(row: Mapping[str, Any], varying: Sequence[str]) -> str:
    """Return the setting of a row as text, from the columns that differ between rows."""
    return ", ".join(_words(name, row[name]) for name in varying if not _absent(row.get(name)))


def varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns other than the policy that differ between rows."""
    return [name for name in SETTINGS if len({row.get(name) for row in rows}) > 1]


def _names(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"run": plain(row["policy"])}


def _policies(alt: Any, bars: Sequence[Mapping[str, Any]]) -> Any:
    names = list(dict.fromkeys(bar["run"] for bar in bars))
    return alt.Y("run:N", sort=names, title=None, axis=alt.Axis(labelLimit=LABEL_MAX, ticks=False, domain=False))


def _stacked(alt: Any, bars: Sequence[dict[str, Any]], parts: Sequence[str], x: Any, tooltip: list[Any]) -> Any:
    """Return stacked bars of `parts`, each with its own colour."""
    shown = [part for part in parts if any(bar["part"] == part for bar in bars)]
    scale = alt.Scale(domain=shown, range=[COLOUR[part] for part in shown])
    return (
        alt.Chart(alt.Data(values=list(bars)))
        .mark_bar(height={"band": 0.72})
        .encode(
            x=x,
            y=_policies(alt, bars),
            color=alt.Color("part:N", sort=shown, scale=scale, title=None),
            order=alt.Order("order:Q"),
            tooltip=tooltip,
        )
    )


def _sized(chart: Any, bars: int) -> "Chart":
    sized: Chart = chart.properties(width=WIDTH, height=BAR * bars)
    return sized


def _by_setting(alt: Any, rows: Sequence[dict[str, Any]], draw: Callable[[Any, list[dict[str, Any]]], Any]) -> "Chart":
    """Return one panel, or panels with a common scale, one below another, if the rows have several settings."""
    columns = varying(rows)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(setting(row, columns), []).append(row)
    if len(groups) == 1:
        only: Chart = draw(alt, list(rows))
        return only
    panels = [draw(alt, group).properties(title=plain(name)) for name, group in groups.items()]
    chart: Chart = alt.vconcat(*panels).resolve_scale(x="shared")
    return chart


def _powers_of_two(values: Sequence[float]) -> list[int]:
    """Return at most ten powers of two among `values`, which are at least 1."""
    first, last = math.ceil(math.log2(min(values))), math.floor(math.log2(max(values)))
    return [2**power for power in range(first, last + 1, (last - first) // 10 + 1)]


def _angle(places: Sequence[Any]) -> int:
    """Return the angle of labels, so that long ones do not overlap."""
    return -30 if max(len(str(place)) for place in places) * len(places) > WIDTH // 8 else 0


def lines(
    points: Sequence[dict[str, Any]],
    x_title: str,
    y_title: str,
    *,
    share: bool = False,
    x_bytes: bool = False,
    names: Sequence[str] = (),
) -> "Chart":
    """Return lines of `x` and `y`, one per `series`; names on the x axis keep their order.

    Values over a wide range have a logarithmic scale, unless they are a `share` of 0 to 100 %. With `x_bytes` each `x`
    is a number of bytes, and its label has a suitable unit. `names` are the series of several charts: each keeps
    its colour in all of them.
    """
    alt = altair("plot")
    series = list(dict.fromkeys(plain(point["series"]) for point in points))
    known = list(dict.fromkeys([*map(plain, names), *series]))
    places = list(dict.fromkeys(point["x"] for point in points))
    numbers = all(isinstance(place, int | float) for place in places)
    if numbers:
        low, high = min(places), max(places)
        ticks: dict[str, Any] = {"values": sorted(places)}
        if len(places) > TICKS_MAX:
            steps = _powers_of_two if x_bytes else log_ticks
            ticks = {"values": [tick for tick in steps(places) if low <= tick <= high]} if low > 0 else {}
        labels = {"labelExpr": BYTES} if x_bytes else {"format": ",~r"}
        axis = alt.Axis(labelOverlap="greedy", **labels, **ticks)
        scale = alt.Scale(type="log", nice=False) if min(places) > 0 and len(places) > 1 else alt.Scale(zero=False)
        x = alt.X("x:Q", title=x_title, scale=scale, axis=axis)
    else:
        x = alt.X("x:N", sort=places, title=x_title, axis=alt.Axis(labelAngle=_angle(places), labelLimit=0))
    values = [point["y"] for point in points]
    wide = not share and min(values) > 0 and max(values) > 30 * min(values)
    decades = log_ticks(values) if wide else []
    y_scale = alt.Scale(type="log", domain=[decades[0], decades[-1]], nice=False) if wide else alt.Scale(zero=True)
    y_axis = alt.Axis(values=decades, format=",~r") if wide else alt.Axis()
    colours = [COLOURS[known.index(name) % len(COLOURS)] for name in series]
    scaled = functools.partial(alt.Scale, domain=series)
    legend = alt.Legend(symbolType="stroke", symbolSize=300)
    dashes = [([1, 0], [6, 3], [2, 2])[known.index(name) // len(COLOURS) % 3] for name in series]
    chart: Chart = (
        alt.Chart(alt.Data(values=[{**point, "series": plain(point["series"])} for point in points]))
        .mark_line(point={"size": 40, "filled": True}, strokeWidth=2)
        .encode(
            x=x,
            y=alt.Y("y:Q", title=y_title, scale=y_scale, axis=y_axis),
            color=alt.Color("series:N", sort=series, title=None, scale=scaled(range=colours), legend=legend),
            strokeDash=alt.StrokeDash("series:N", sort=series, title=None, scale=scaled(range=dashes), legend=legend),
            tooltip=[
                alt.Tooltip("series:N", title="run"),
                alt.Tooltip(f"x:{'Q' if numbers else 'N'}", title=f"{x_title} (bytes)" if x_bytes else x_title),
                alt.Tooltip("y:Q", title=y_title, format=",.4~g"),
            ],
        )
        .properties(width=WIDTH, height=LINES)
    )
    return chart

"""The picture of a device: seek curve and rate by place, or response and throughput by load."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart._input import plain
from headstart.devices import Device, Replay, Survey
from headstart.report.charts import COLOURS, DASHES, HEIGHT, WIDTH, altair, log_ticks
from headstart.report.figures import Figure
from headstart.report.page import page, table

if TYPE_CHECKING:
    from headstart.report.charts import Chart

SECTOR_BYTES = 512
ARM_CAPTION = "Seek time of a read by distance, and the rate of a long sequential read by place."
LOAD_CAPTION = "Throughput and response of random requests, by size and by how many are outstanding."

Points = Sequence[dict[str, Any]]


def device_chart(device: Device, survey: Survey) -> "Chart":
    """Return the picture.

    Raises:
        HeadstartError: `headstart[report]` is not installed.
    """
    alt = altair("plot")
    rows = [_arm_panels(alt, device, survey)] if survey.zones else _load_panels(alt, survey)
    lines = (alt.hconcat(*row, spacing=36).resolve_scale(color="independent", strokeDash="independent") for row in rows)
    title = alt.TitleParams(device.title, fontSize=16, offset=14)
    chart: Chart = alt.vconcat(*lines, spacing=28).properties(title=title)
    return chart


def _arm_panels(alt: Any, device: Device, survey: Survey) -> list[Any]:
    points = [{"cylinders": point["distance_cylinders"], "ms": point["ns"] / 1e6} for point in survey.seek]
    seek = (
        alt.Chart(alt.Data(values=points))
        .mark_line(color=COLOURS[0], strokeWidth=2, tooltip=True)
        .encode(
            x=alt.X("cylinders:Q", title="seek distance (cylinders)", axis=alt.Axis(format=",d", tickCount=6)),
            y=alt.Y(
                "ms:Q", title="seek time of a read (ms)", scale=alt.Scale(zero=True, nice=6), axis=alt.Axis(tickCount=6)
            ),
        )
    )
    rate = (
        alt.Chart(alt.Data(values=_ends(device, survey)))
        .mark_line(color=COLOURS[1], strokeWidth=2)
        .encode(
            x=alt.X(
                "gb:Q", title="place (GB from the outer edge)", axis=alt.Axis(tickCount=6), scale=alt.Scale(nice=False)
            ),
            y=alt.Y(
                "mb_per_s:Q",
                title="sequential read (MB/s)",
                scale=alt.Scale(zero=True, nice=6),
                axis=alt.Axis(tickCount=6),
            ),
            order="order:Q",
            tooltip=[alt.Tooltip("gb:Q", title="GB from the outer edge"), alt.Tooltip("mb_per_s:Q", title="MB/s")],
        )
    )
    return [_panel(alt, seek, "Seek curve"), _panel(alt, rate, "Transfer rate by place")]


def _ends(device: Device, survey: Survey) -> list[dict[str, float]]:
    """Return both ends of each zone, in order; a drive may report fewer sectors than its zones hold."""
    capacity = (device.capacity_bytes or 0) // SECTOR_BYTES
    ends: list[dict[str, float]] = []
    for zone in survey.zones:
        for sector in (zone.first_sector, zone.first_sector + zone.sectors):
            place = min(sector, capacity) * SECTOR_BYTES / 1e9
            ends.append({"order": len(ends), "gb": place, "mb_per_s": zone.bytes_per_s / 1e6})
    return ends


def _load_panels(alt: Any, survey: Survey) -> list[list[Any]]:
    sizes = [
        {
            "series": point["name"],
            "x": point["request_bytes"] / 1024,
            "ms": point["response_ns_mean"] / 1e6,
            "mb_per_s": point["bytes_per_s"] / 1e6,
        }
        for point in survey.by_size
    ]
    rates = [
        {"series": point["name"], "x": point["depth"], "per_s": point["requests_per_s"]} for point in survey.by_depth
    ]
    times = [
        {"series": f"{point['name']}, {kind}", "x": point["depth"], "ms": point[f"response_ns_{kind}"] / 1e6}
        for kind in ("mean", "p99")
        for point in survey.by_depth
    ]
    size, depth = "size of a random read (KiB)", "random 4 KiB requests outstanding"
    return [
        [
            _lines(alt, sizes, "Throughput by size", ("x", size), ("mb_per_s", "throughput (MB/s)")),
            _lines(alt, sizes, "Response by size", ("x", size), ("ms", "mean response (ms)")),
        ],
        [
            _lines(alt, rates, "Throughput by queue depth", ("x", depth), ("per_s", "requests a second")),
            _lines(alt, times, "Response by queue depth", ("x", depth), ("ms", "response (ms)")),
        ],
    ]


def _lines(alt: Any, points: Points, title: str, x: tuple[str, str], y: tuple[str, str]) -> Any:
    """Return lines on two logarithmic scales, one for each `series`; `x` and `y` are field and title."""
    series = list(dict.fromkeys(point["series"] for point in points))
    legend = alt.Legend(symbolType="stroke", symbolSize=500) if len(series) > 1 else None
    colours, dashes = (alt.Scale(domain=series, range=each[: len(series)]) for each in (COLOURS, DASHES))
    places = sorted({point[x[0]] for point in points})
    ticks = log_ticks([point[y[0]] for point in points])
    base = alt.Chart(alt.Data(values=list(points))).encode(
        x=alt.X(
            f"{x[0]}:Q",
            title=x[1],
            scale=alt.Scale(type="log", base=2, nice=False),
            axis=alt.Axis(values=places[::2], format=",d"),
        ),
        y=alt.Y(
            f"{y[0]}:Q",
            title=y[1],
            scale=alt.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False),
            axis=alt.Axis(values=ticks, format=",~r", labelOverlap=False),
        ),
        color=alt.Color("series:N", title=None, sort=series, scale=colours, legend=legend),
    )
    line = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.StrokeDash("series:N", title=None, sort=series, scale=dashes, legend=legend)
    )
    return _panel(alt, alt.layer(line, base.mark_point(size=22, filled=True, opacity=1, tooltip=True)), title)


def _panel(alt: Any, chart: Any, title: str) -> Any:
    """Return a panel of a picture: its size, and its title above the plot's left edge."""
    return chart.properties(width=WIDTH, height=HEIGHT, title=alt.TitleParams(title, frame="group", fontSize=13))


def device_page(device: Device, chart: "Chart", facts: dict[str, str]) -> str:
    """Return the page: the picture, and the device's properties by name."""
    said = table(
        ("property", "value"),
        (("", (escape(name), f'<td class="text">{escape(value)}</td>')) for name, value in facts.items()),
    )
    body = [f'<p class="headline">{escape(device.summary or device.profile or device.name)}</p>']
    if device.source:
        body.append(f"<p>Source: {escape(device.source)}</p>")
    caption = ARM_CAPTION if device.mechanics is not None else LOAD_CAPTION
    figure = Figure("device", chart, caption)
    body += [figure.html(), said]
    if device.mechanics is not None:
        header = ("zone", "cylinders", "from cylinder", "sectors a track", "capacity GB", "MB/s")
        rows = [
            (
                f"{zone.cylinders:,}",
                f"{zone.first_cylinder:,}",
                f"{zone.sectors_per_track:,}",
                f"{zone.sectors * SECTOR_BYTES / 1e9:,.3f}",
                f"{zone.bytes_per_s / 1e6:,.2f}",
            )
            for zone in device.mechanics.zones
        ]
        body += ["<h2>Zones</h2>", table(header, (("", (str(index), *row)) for index, row in enumerate(rows)))]
    return page(device.title, body, [figure])


def replay_chart(replay: Replay) -> "Chart":
    """Return both cumulative curves of service times in one plot, measured and modelled.

    Raises:
        HeadstartError: `headstart[report]` is not installed.
    """
    alt = altair("replay")
    series = [name for name in ("measured", "modelled") if replay.curves[f"{name}_ns"]]
    points = []
    for name in series:
        times = replay.curves[f"{name}_ns"] or []
        levels = max(len(times) - 1, 1)
        points += [{"series": name, "ms": ns / 1e6, "share": level / levels} for level, ns in enumerate(times)]
    colours, dashes = (alt.Scale(domain=series, range=each[: len(series)]) for each in (COLOURS, DASHES))
    legend = alt.Legend(symbolType="stroke", symbolSize=500) if len(series) > 1 else None
    chart: Chart = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2, interpolate="step-after", tooltip=True)
        .encode(
            x=alt.X("ms:Q", title="service time (ms)", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=10)),
            y=alt.Y("share:Q", title="share of the requests", axis=alt.Axis(format=".0%", tickCount=6)),
            color=alt.Color("series:N", title=None, sort=series, scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("series:N", title=None, sort=series, scale=dashes, legend=legend),
            order="share:Q",
        )
        .properties(width=1.4 * WIDTH, height=1.2 * HEIGHT)
    )
    return chart


def replay_picture(replay: Replay, chart: "Chart") -> "Chart":
    """Return the chart with its own title, for use on its own."""
    title = altair("replay").TitleParams(
        replay_title(replay), subtitle=replay_subtitle(replay), fontSize=14, frame="group"
    )
    titled: Chart = chart.properties(title=title)
    return titled


def replay_title(replay: Replay) -> str:
    """Return the trace and the device of a replay, in one line."""
    return plain(f"{Path(replay.trace).name} on {Path(replay.device).name}")


def replay_subtitle(replay: Replay) -> str:
    """Return the mean times and the demerit, in a line."""
    modelled = f"{replay.requests:,} requests, modelled mean {replay.modelled.all.mean_ns / 1e6:.3f} ms"
    if replay.measured is None or replay.rms_demerit_ns is None:
        return modelled
    demerit = f"RMS demerit {replay.rms_demerit_ns['all'] / 1e6:.3f} ms"
    share = "" if replay.demerit_share is None else f" ({replay.demerit_share:.1%})"
    return f"{modelled}, measured {replay.measured.all.mean_ns / 1e6:.3f} ms, {demerit}{share}"


def replay_rows(replay: Replay) -> list[tuple[str, ...]]:
    """Return a line of figures for each kind of request, modelled and measured; times in ms."""
    rows = []
    for kind in ("all", "reads", "writes", "buffer_hits", "others"):
        for side in ("modelled", "measured"):
            times = getattr(getattr(replay, side), kind, None)
            if times is None or not times.requests:
                continue
            demerit = replay.rms_demerit_ns if side == "modelled" else None
            figures = (times.mean_ns, times.p50_ns, times.p90_ns, times.p99_ns, times.max_ns)
            said = [f"{ns / 1e6:,.3f}" for ns in figures]
            last = f"{demerit[kind] / 1e6:,.3f}" if demerit is not None else ""
            rows.append((kind.replace("_", " "), side, f"{times.requests:,}", *said, last))
    return rows


REPLAY_HEADER = ("requests", "times", "number", "mean", "50 %", "90 %", "99 %", "max", "RMS demerit")


def replay_page(replay: Replay, chart: "Chart") -> str:
    """Return the page: both cumulative curves, and the figures of each kind of request."""
    rows = (("", tuple(escape(cell) for cell in row)) for row in replay_rows(replay))
    parts = ", ".join(f"{name.removesuffix('_ns')} {ns / 1e6:.3f}" for name, ns in replay.parts_ns_mean.items() if ns)
    figure = Figure("replay", chart, "Share of the requests that took no longer than a time.")
    body = [
        f'<p class="headline">{escape(replay_subtitle(replay))}</p>',
        figure.html(),
        "<p>Service times in ms</p>",
        table(REPLAY_HEADER, rows),
        f"<p>Modelled mean in parts (ms): {escape(parts)}</p>",
        f"<p>Issued {escape(replay.pace)}</p>",
    ]
    return page(replay_title(replay), body, [figure])

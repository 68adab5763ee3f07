"""Figures 4 to 7 as pictures for the page. They show the rows of `_figures`.

Bars stand side by side, coordinator by coordinator; those of a case that carries a flag (`Runs.flags`) are pale.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headstart.report.charts import COLOURS, altair, log_ticks
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._figures import METRICS, case_studies
from headstart_lab.studies.zhang_pfc._matrix import ALGORITHMS, Lab, Runs
from headstart_lab.studies.zhang_pfc._tables import mean

Bar = dict[str, Any]
"""One bar: the fields that a picture encodes."""

ORDER = ("none", "DU", "PFC", "bypass only", "readmore only")
SHADES = dict(zip(ORDER, ("#8b8d98", COLOURS[1], COLOURS[0], COLOURS[2], COLOURS[3]), strict=True))
"""A colour for each coordinator, the same in every picture."""

HEIGHT = 190
"""The height of a panel, in points."""

INK = "#1c2024"

PALE = "pale: L2 under 32 pages, or a saturated disk"


def figure4(lab: Lab) -> Any:
    """Mean response time and unused prefetch with H, workload by workload."""
    alt = altair("--html")
    runs = [each for each in lab.matrix() if each.case.setting == "H"]
    names = ("none", "DU", "PFC")
    lines = []
    for workload, group in _by_workload(runs):
        times = [_bar(each, name, each[name].response_ms) for each in group for name in names]
        unused = [_bar(each, name, max(each[name].l2_unused, 1)) for each in group for name in names]
        panels = [
            _by_ratio(alt, times, names, f"{workload}: response time", _linear(alt, "mean response time (ms)")),
            _by_ratio(alt, unused, names, f"{workload}: unused prefetch of L2", _log(alt, "pages never used", unused)),
        ]
        lines.append(alt.hconcat(*panels, spacing=36))
    return _stacked(alt, lines, "Figure 4: L1 of 5 % of the footprint (H)")


def figure5(lab: Lab) -> Any:
    """What PFC changes in four cases, metric by metric."""
    alt = altair("--html")
    names = ("none", "PFC")
    lines = []
    for which, runs in case_studies(lab.matrix()):
        panels = []
        for metric, (of, form) in METRICS.items():
            bars = [
                {"run": name, "value": of(runs[name]), "text": format(of(runs[name]), form), "pale": bool(runs.flags)}
                for name in names
            ]
            panels.append(_pair(alt, bars, names, metric))
        gain = runs.gain()
        said = f"{abs(gain):.1f} % {'shorter' if gain > 0 else 'longer'} response"
        label = f"{which[0].upper()}{which[1:]}: {runs.case.label}, {said}"
        lines.append(alt.hconcat(*panels, spacing=24).properties(title=_title(alt, label, frame="bounds")))
    return _stacked(alt, lines, "Figure 5: what PFC changes")


def figure6(lab: Lab) -> Any:
    """L2's hit ratio with and without PFC, by workload and algorithm."""
    alt = altair("--html")
    names = ("none", "PFC")
    panels = []
    for workload, group in _by_workload(lab.matrix()):
        bars = []
        for algorithm, name in itertools.product(ALGORITHMS, names):
            ratio = mean(each[name].l2_hit_ratio for each in group if each.case.algorithm == algorithm)
            bars.append({"algorithm": algorithm, "run": name, "value": 100 * ratio, "pale": False})
        y = _linear(alt, "hit ratio of L2 (%)", domain=(0, 100))
        panel = _bars(alt, bars, names, "algorithm", tuple(ALGORITHMS), y, title="algorithm")
        panels.append(panel.properties(width=260, height=HEIGHT, title=_title(alt, workload)))
    lines = [alt.hconcat(*panels, spacing=28)] if panels else []
    return _stacked(alt, lines, "Figure 6: mean over the eight cases of a workload and an algorithm", pale=False)


def figure7(lab: Lab) -> Any:
    """By how much both actions, and each alone, shorten the response time of OLTP and Web."""
    alt = altair("--html")
    names = ("PFC", "bypass only", "readmore only")
    lines = []
    for workload, group in _by_workload(lab.matrix("OLTP", "Web")):
        panels = []
        for setting in dict.fromkeys(each.case.setting for each in group):
            cases = [each for each in group if each.case.setting == setting]
            gains = [_bar(each, name, each.gain(name)) for each in cases for name in names]
            title = f"{workload}, {setting}: gain over none"
            panels.append(_by_ratio(alt, gains, names, title, _linear(alt, "response time shortened by (%)")))
        lines.append(alt.hconcat(*panels, spacing=36).resolve_scale(y="shared"))
    return _stacked(alt, lines, "Figure 7: both actions of PFC, and each alone")


PICTURES: dict[str, Callable[[Lab], Any]] = {
    "figure4": figure4,
    "figure5": figure5,
    "figure6": figure6,
    "figure7": figure7,
}
"""By item; `None` if no trace exists."""


def _by_workload(runs: Iterable[Runs]) -> list[tuple[str, list[Runs]]]:
    groups: dict[str, list[Runs]] = {}
    for each in runs:
        groups.setdefault(each.case.workload.name, []).append(each)
    return list(groups.items())


def _bar(runs: Runs, name: str, value: float) -> Bar:
    ratio = f"{100 * runs.case.ratio:g}"
    return {"algorithm": runs.case.algorithm, "ratio": ratio, "run": name, "value": value, "pale": bool(runs.flags)}


def _title(alt: Any, text: str, frame: str = "group") -> Any:
    return alt.TitleParams(text, fontSize=13, frame=frame, offset=10)


def _linear(alt: Any, title: str, domain: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return the encodings of a linear scale that holds 0."""
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=True)
    return {"y": alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5, format="~r"))}


def _log(alt: Any, title: str, bars: Sequence[Bar]) -> dict[str, Any]:
    """Return the encodings of a logarithmic scale from 1 on, where bars stand."""
    ticks = log_ticks([1.0, max([10.0, *(bar["value"] for bar in bars)])])
    scale = alt.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False)
    y = alt.Y("value:Q", title=f"{title} (log)", scale=scale, axis=alt.Axis(values=ticks, format="~s"))
    return {"y": y, "y2": alt.Y2Datum(1)}


def _bars(
    alt: Any,
    bars: Sequence[Bar],
    names: Sequence[str],
    field: str,
    order: Sequence[str],
    y: Mapping[str, Any],
    title: str | None = None,
) -> Any:
    """Return bars, one of each name side by side for each value of `field`; `y` are the encodings of heights."""
    colours = alt.Scale(domain=list(names), range=[SHADES[name] for name in names])
    opacity = alt.Scale(domain=[False, True], range=[1.0, 0.4])
    return (
        alt.Chart(alt.Data(values=list(bars)))
        .mark_bar()
        .encode(
            x=alt.X(f"{field}:N", sort=list(order), title=title, axis=alt.Axis(labelAngle=0, labelFontSize=11)),
            color=alt.Color("run:N", sort=list(names), scale=colours, title=None),
            opacity=alt.Opacity("pale:N", scale=opacity, legend=None),
            **({"xOffset": alt.XOffset("run:N", sort=list(names))} | dict(y)),
        )
    )


def _by_ratio(alt: Any, bars: Sequence[Bar], names: Sequence[str], title: str, y: Mapping[str, Any]) -> Any:
    """Return a panel: algorithms side by side, in a column for each ratio of L2 over L1."""
    order = [f"{100 * ratio:g}" for ratio in paper.RATIOS]
    header = alt.Header(labelExpr="'L2 = ' + datum.value + ' % of L1'", labelFontSize=11, labelPadding=4)
    column = alt.Column("ratio:N", sort=order, title=None, header=header)
    chart = _bars(alt, bars, names, "algorithm", tuple(ALGORITHMS), y).properties(width=122, height=HEIGHT)
    return chart.facet(column=column, spacing=8, title=_title(alt, title))


def _pair(alt: Any, bars: Sequence[Bar], names: Sequence[str], metric: str) -> Any:
    """Return a small panel of one metric, its values written over the bars."""
    top = 1.2 * max([bar["value"] for bar in bars] + [1e-9])
    zero = "datum.value ? datum.label : '0'"
    axis = alt.Axis(tickCount=3, format="~s", labelExpr=zero, minExtent=30, titleFontSize=12)
    y = alt.Y("value:Q", title=metric, scale=alt.Scale(domain=[0, top], nice=False), axis=axis)
    # Without an offset, as there is one bar for each place.
    chart = _bars(alt, bars, names, "run", names, {"y": y, "xOffset": alt.Undefined})
    text = chart.mark_text(dy=-7, fontSize=11).encode(text="text:N", color=alt.value(INK), opacity=alt.value(1))
    return alt.layer(chart, text).properties(width=120, height=170)


def _stacked(alt: Any, lines: Sequence[Any], title: str, *, pale: bool = True) -> Any:
    if not lines:
        return None
    said = alt.TitleParams(title, subtitle=PALE if pale else "", fontSize=16, offset=14)
    return alt.vconcat(*lines, spacing=30).properties(title=said)

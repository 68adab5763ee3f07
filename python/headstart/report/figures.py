"""Figures of a page: drawn in the browser by vega, which the page embeds once; also written as PNG and SVG.

A figure adapts to the available width and to the light or dark colour scheme, and shows tooltips. Charts side by side
become separate figures, which are placed below one another if the page is narrow.
"""

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from headstart.report.charts import plain_values, png, styled, svg

if TYPE_CHECKING:
    from headstart.report.charts import Chart


@dataclasses.dataclass(frozen=True)
class Figure:
    """A chart with a caption, and a name for files and anchors."""

    name: str
    chart: "Chart"
    caption: str

    def html(self) -> str:
        """Return the figure's place in a page."""
        caption, name = escape(self.caption), escape(self.name)
        places = "".join(
            f'<div class="chart" data-figure="{name}-{index}" role="img" aria-label="{caption}"></div>'
            for index in range(len(self.panels()))
        )
        shown = f'<div class="charts">{places}</div><figcaption>{caption}</figcaption>'
        return f'<figure id="{name}">{shown}</figure>'

    def panels(self) -> list[dict[str, Any]]:
        """Return the specifications of its charts, without widths and colours of their own."""
        return list(_panels(json.loads(self.chart.to_json())))

    def files(self) -> Mapping[str, bytes]:
        """Return the figure as PNG and SVG, by file name."""
        drawn = styled(self.chart)
        return {f"{self.name}.png": png(drawn), f"{self.name}.svg": svg(drawn).encode()}


def _panels(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    shared: dict[str, Any] = {key: spec[key] for key in ("$schema", "datasets", "data") if key in spec}
    for each in spec.get("hconcat") or spec.get("vconcat") or spec.get("concat") or ():
        yield from _panels({**shared, **each})
    if not {"hconcat", "vconcat", "concat"} & set(spec):
        yield {key: value for key, value in spec.items() if key not in ("config", "background")}


def _responsive(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the chart at the width of its place; several plots in one keep their width, and their place scrolls."""
    spec = _hoverable(spec)
    if {"facet", "repeat", "spec"} & set(spec) or {"row", "column", "facet"} & set(spec.get("encoding", {})):
        return spec
    return {**spec, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}


def _hoverable(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the chart with invisible points on its lines: a line itself shows no tooltip between its ends."""
    mark = spec.get("mark")
    if "layer" in spec:
        return {**spec, "layer": [_hoverable(each) for each in spec["layer"]]}
    if isinstance(mark, Mapping) and mark.get("type") == "line" and not mark.get("point"):
        return {**spec, "mark": {**mark, "point": "transparent"}}
    return spec


def script(figures: Sequence[Figure]) -> str:
    """Return the script that draws the figures, the library included."""
    specs = {
        f"{figure.name}-{index}": plain_values(_responsive(panel))
        for figure in figures
        for index, panel in enumerate(figure.panels())
    }
    # A "</script>" or "<!--" within a text must not end the script.
    data = json.dumps(specs, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f"<script>{_library()}</script>\n<script>const FIGURES = {data};\n{DRAW}</script>"


@functools.cache
def _library() -> str:
    import vl_convert

    library: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return library.replace("</script", "<\\/script")


DRAW = """
const dark = matchMedia("(prefers-color-scheme: dark)");
let drawnWidth = 0;
function theme() {
  const style = getComputedStyle(document.documentElement), of = name => style.getPropertyValue(name).trim();
  const text = {labelColor: of("--ink"), titleColor: of("--ink")};
  return {
    background: "transparent", font: "system-ui, sans-serif", numberFormat: ",.4~r",
    axis: {...text, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", gridColor: of("--line"),
            domainColor: of("--quiet"), tickColor: of("--quiet")},
    axisX: {labelOverlap: true, labelSeparation: 8},
    legend: {...text, labelFontSize: 12, orient: "top", labelLimit: 0},
    title: {color: of("--ink"), fontSize: 13, anchor: "start"},
    header: {labelColor: of("--ink"), titleColor: of("--ink")},
    text: {color: of("--ink")}, tick: {color: of("--ink")}, mark: {tooltip: true}, view: {stroke: null},
  };
}
async function draw() {
  const tooltip = {theme: dark.matches ? "dark" : "light"};
  for (const place of document.querySelectorAll("[data-figure]")) {
    const actions = {export: true, source: false, compiled: false, editor: false};
    const spec = FIGURES[place.dataset.figure], config = theme();
    // As many entries of a legend side by side as there is room for, right of the labels of rows.
    const {color, y} = (spec.layer?.[0] ?? spec).encoding ?? {};
    const entries = color?.scale?.domain ?? [], rows = Array.isArray(y?.sort) ? y.sort : [];
    const longest = texts => Math.max(0, ...texts.map(text => String(text).length));
    const left = Math.max(60, 7 * longest(rows) + 20);
    const room = Math.floor((place.clientWidth - left) / (7 * longest(entries) + 40));
    config.legend.columns = Math.max(1, Math.min(entries.length, room));
    await vegaEmbed(place, spec, {config, tooltip, actions, renderer: "svg"});
  }
  drawnWidth = document.body.clientWidth;
  document.documentElement.dataset.drawn = "yes";
}
dark.addEventListener("change", draw);
addEventListener("resize", () => {
  if (Math.abs(document.body.clientWidth - drawnWidth) > 60) draw();
});
draw();
"""

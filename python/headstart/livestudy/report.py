"""The study on a console, in Markdown, and as a page with a chart."""

from html import escape
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from headstart.livestudy.study import TOLERANCE, Row, Study
from headstart.report import charts
from headstart.report.page import page, table

if TYPE_CHECKING:
    from headstart.report.charts import Chart

TITLE = "The kernel on an emulated disk, and the simulator"
HEADER = (
    "workload",
    "read-ahead",
    "KiB",
    "measured s",
    "spread",
    "predicted s",
    "difference",
    "requests",
    "predicted",
    "MB",
    "predicted",
    "verdict",
)
FOUND = ("finding", "required", "found", "verdict")
CLASSES = {"agrees": "good", "differs": "bad"}
COLOURS = {"agrees": "green", "differs": "red"}


def cells(row: Row) -> list[str]:
    """Return a row as text, column by column of `HEADER`."""
    return [
        row.workload,
        row.setting,
        f"{row.read_ahead_kb:,}",
        f"{row.measured_ns / 1e9:,.3f}",
        f"{row.spread:.1%}",
        f"{row.predicted_ns / 1e9:,.3f}",
        f"{row.difference:+.1%}",
        f"{row.measured_requests:,}",
        f"{row.predicted_requests:,}",
        f"{row.measured_bytes / 1e6:,.1f}",
        f"{row.predicted_bytes / 1e6:,.1f}",
        row.verdict,
    ]


def found(study: Study) -> list[list[str]]:
    """Return the findings as text, column by column of `FOUND`."""
    return [[each.what, each.required, each.found, each.verdict] for each in study.findings]


def conditions(study: Study) -> list[str]:
    """Return under which conditions the figures hold, a sentence each."""
    host = study.host
    runs = "once" if study.repeats == 1 else f"{study.repeats} times, the median is shown"
    late = max((row.lateness_p99_ns for row in study.rows), default=0)
    lines = [
        f"{study.machine}; drive {study.profile}; each run {runs}; tolerance {TOLERANCE:.0%}.",
        f"Beside the drive, measured apart and given to the simulator: {host.system_call_ns / 1e3:.1f} us a read, "
        f"{host.copy_per_kib_ns / 1e3:.2f} us a KiB, {host.request_ns / 1e3:.0f} us a request of the drive.",
        f"At most 1 % of the drive's answers were later than {late / 1e6:.2f} ms.",
    ]
    notes = [f"{row.workload}, {row.setting}: {row.note}." for row in study.rows if row.note]
    short = ["Quick: files of a tenth and a tenth of the random reads; its findings are not those of the study."]
    return [*lines, *(short if study.quick else []), *notes, *(f"{note}." for note in study.notes)]


def print_study(console: Console, study: Study) -> None:
    """Print it for people; what the drive was asked is in the other forms."""
    shown = Table(title=TITLE, title_justify="left", title_style="bold", box=None, pad_edge=False)
    times = HEADER.index("requests")
    for index, name in enumerate([*HEADER[:times], HEADER[-1]]):
        shown.add_column(name, justify="left" if index < 2 or name == "verdict" else "right", no_wrap=True)
    for row in study.rows:
        *figures, verdict = cells(row)
        shown.add_row(*figures[:times], f"[{COLOURS[verdict]}]{verdict}[/]")
    console.print(shown)
    console.print()
    for what, required, figure, verdict in found(study):
        console.print(f"[{COLOURS[verdict]}]{verdict}[/]  {what} {figure} ({required})")
    for line in conditions(study):
        console.print(line, style="dim", markup=False)


def markdown(study: Study) -> str:
    """Return it as Markdown."""
    parts = [_rows(HEADER, [cells(row) for row in study.rows]), _rows(FOUND, found(study))]
    return "\n".join([*conditions(study), "", parts[0], "", parts[1]])


def _rows(header: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def html(study: Study) -> str:
    """Return it as a page that needs nothing but a browser."""
    rows = (("", _with_verdict(cells(row))) for row in study.rows)
    seen = (("", _with_verdict(line)) for line in found(study))
    body = [
        *(f"<p>{escape(line)}</p>" for line in conditions(study)),
        f"<figure>{charts.svg(chart(study))}</figure>",
        table(HEADER, rows),
        table(FOUND, seen),
    ]
    return page(TITLE, body)


def _with_verdict(line: list[str]) -> list[str]:
    *figures, verdict = line
    return [*(escape(figure) for figure in figures), f'<td class="verdict {CLASSES[verdict]}">{verdict}</td>']


def chart(study: Study) -> "Chart":
    """Return bars of elapsed time: a panel for each workload, a pair for each depth."""
    alt = charts.altair("--html")
    points = [
        {"workload": row.workload, "setting": row.setting, "who": who, "seconds": nanoseconds / 1e9}
        for row in study.rows
        for who, nanoseconds in (("measured", row.measured_ns), ("predicted", row.predicted_ns))
    ]
    names = list(dict.fromkeys(row.workload for row in study.rows))
    depths = list(dict.fromkeys(row.setting for row in study.rows))
    bars = (
        alt.Chart(alt.Data(values=points), width=190, height=170)
        .mark_bar()
        .encode(
            x=alt.X("setting:N", title=None, sort=depths),
            xOffset=alt.XOffset("who:N", sort=["measured", "predicted"]),
            y=alt.Y("seconds:Q", title="elapsed s"),
            color=alt.Color("who:N", title=None, scale=alt.Scale(range=list(charts.COLOURS[:2]))),
            facet=alt.Facet("workload:N", title=None, columns=3, sort=names),
        )
        .resolve_scale(y="independent")
    )
    styled: Chart = charts.styled(bars)
    return styled

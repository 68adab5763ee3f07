"""The study as rows of `headstart reproduce`, in Markdown, and as a chart."""

import dataclasses
from typing import TYPE_CHECKING

from headstart.report import charts
from headstart_lab.livestudy.study import TOLERANCE, Timing, Timings
from headstart_lab.measured import FOUND, judged, markdown_table
from headstart_lab.studies._rows import Row, number, unpublished

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
ITEMS = {
    "conditions": "the machine, and what was measured apart and given to the simulator",
    "times": "elapsed time at each depth; published: measured on the kernel, ours: predicted by the simulator",
    "drive": "requests of the drive and bytes, measured and predicted",
    "findings": "what the competitive depth gains and costs, measured",
}
"""Of `headstart reproduce li07-live`."""


def cells(row: Timing) -> list[str]:
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


def conditions(study: Timings) -> list[str]:
    """Return the conditions under which the figures hold, a sentence each."""
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


def rows(study: Timings) -> list[Row]:
    """Return the study as rows of `headstart reproduce`."""
    said = " ".join(conditions(study))
    of = {"conditions": [unpublished(study.machine, None, note=said)], "times": [], "drive": [], "findings": []}
    for row in study.rows:
        case = f"{row.workload}, {row.setting}"
        note = f"read-ahead {row.read_ahead_kb:,} KiB, spread {row.spread:.1%}" + (f"; {row.note}" if row.note else "")
        measured_s, predicted_s = row.measured_ns / 1e9, row.predicted_ns / 1e9
        of["times"].append(
            number(f"{case}: elapsed (s)", published=measured_s, ours=predicted_s, tolerance=TOLERANCE, note=note)
        )
        requests, sizes = (row.measured_requests, row.predicted_requests), (row.measured_bytes, row.predicted_bytes)
        of["drive"].append(unpublished(f"{case}: requests measured, predicted", "{}, {}".format(*requests)))
        of["drive"].append(unpublished(f"{case}: bytes measured, predicted", "{}, {}".format(*sizes)))
    of["findings"] = study.findings
    return [dataclasses.replace(row, item=item, input="paper") for item, group in of.items() for row in group]


def markdown(study: Timings) -> str:
    """Return the study as Markdown."""
    parts = [markdown_table(HEADER, [cells(row) for row in study.rows]), markdown_table(FOUND, judged(study.findings))]
    return "\n".join([*conditions(study), "", parts[0], "", parts[1]])


def chart(study: Timings) -> "Chart":
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

"""The page of a recording: the reads of a command over time, its waits for them, and its files."""

import collections
from collections.abc import Mapping, Sequence
from html import escape
from itertools import accumulate
from typing import Any

from headstart._input import plain
from headstart.report.charts import COLOURS, altair
from headstart.report.figures import Figure
from headstart.report.page import facts, page, table
from headstart.report.text import time_text

KINDS = {"cached": COLOURS[5], "from a device": COLOURS[1], "metadata": COLOURS[3]}
MARKS_MAX = 6_000
"""Maximum number of reads that are drawn: more are slow in a browser and cannot be distinguished."""
ROWS_MAX = 500


def file_name(file: Mapping[str, Any]) -> str:
    """Return the name of a file of a recording."""
    if file["kind"] == "device":
        return f"metadata on {file['path']}"
    return file["path"] or f"inode {file['inode']} of device {file['device']}"


def recording_page(found: Mapping[str, Any]) -> str:
    """Return the page for a result of `headstart.recording.show`."""
    about, summary = found["about"], found["summary"]
    elapsed = f"{about['elapsed_ns'] / 1e9:,.3f} s"
    headline = (
        f"{elapsed}, of which {summary['wait_ns'] / 1e9:,.3f} s of waiting for "
        f"{(summary['miss_bytes'] + summary['metadata_bytes']) / 1e6:,.1f} MB from devices."
    )
    named = {
        "reads": f"{summary['references']:,}",
        "of which cached": f"{summary['hits']:,}",
        "files": f"{summary['files']:,}",
        "processes": f"{len(found['processes']):,}",
        "exit status": about["exit_status"],
        "caches": "cold" if about["cold"] else "as they were",
        "folder": about["folder"],
        "Linux": about["kernel"],
    }
    figures = recording_figures(found)
    body = [f'<p class="headline">{escape(headline)}</p>', facts({name: plain(each) for name, each in named.items()})]
    body.extend(figure.html() for figure in figures)
    body.extend(["<h2>Files</h2>", _table(found)])
    return page(plain(" ".join(about["command"])), body, figures)


def recording_figures(found: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of the page: reads by time and place, and the waits."""
    alt = altair("hints show --html")
    reads = [read for read in found["reads"] if read["kind"] != "read-ahead"]
    step = -(-len(reads) // MARKS_MAX) or 1
    drawn = f"; one read of {step} is drawn" if step > 1 else ""
    x = alt.X("from:Q", title="time (s)")
    colour = alt.Color("read:N", title=None, scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())))
    places = (
        alt.Chart(alt.Data(values=_marks(found, reads[::step])))
        .mark_tick(thickness=3, orient="horizontal", size=6)
        .encode(
            x=x,
            y=alt.Y("place:Q", title="pages, file after file"),
            color=colour,
            tooltip=["file:N", "page:Q", "read:N", "wait ms:Q"],
        )
    )
    waited = accumulate((read["wait_ns"] for read in reads), initial=0)
    waits = [{"time": read["time_ns"] / 1e9, "wait": wait / 1e9} for read, wait in zip(reads, waited, strict=False)]
    curve = (
        alt.Chart(alt.Data(values=waits[::step]))
        .mark_line(interpolate="step-after")
        .encode(x=alt.X("time:Q", title="time (s)"), y=alt.Y("wait:Q", title="waited so far (s)"))
    )
    return [
        Figure("reads", places, f"What is read when; files in the order in which they are first read{drawn}."),
        Figure("waits", curve, "The time that the command has waited for devices; of several processes, the sum."),
    ]


def _marks(found: Mapping[str, Any], reads: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the reads with their places on an axis of all pages read, file after file."""
    lowest: dict[int, int] = {}
    highest: dict[int, int] = {}
    for read in reads:
        file = read["file"]
        lowest[file] = min(lowest.get(file, read["start"]), read["start"])
        highest[file] = max(highest.get(file, 0), read["start"] + read["pages"])
    order = list(dict.fromkeys(read["file"] for read in reads))
    # Metadata is scattered over the whole device, so its reads are placed one after another.
    is_device = [file["kind"] == "device" for file in found["files"]]
    counts = collections.Counter(read["file"] for read in reads)
    sizes = [counts[file] if is_device[file] else highest[file] - lowest[file] for file in order]
    base = dict(zip(order, accumulate(sizes, initial=0), strict=False))
    met: collections.Counter[int] = collections.Counter()
    marks = []
    for read in reads:
        file = read["file"]
        offset = met[file] if is_device[file] else read["start"] - lowest[file]
        met[file] += 1
        marks.append(
            {
                "from": read["time_ns"] / 1e9,
                "place": base[file] + offset,
                "read": "metadata" if is_device[file] else "cached" if read["hit"] else "from a device",
                "file": file_name(found["files"][file]),
                "page": read["start"],
                "wait ms": read["wait_ns"] / 1e6,
            }
        )
    return marks


def _table(found: Mapping[str, Any]) -> str:
    reads: collections.Counter[int] = collections.Counter()
    pages: collections.Counter[int] = collections.Counter()
    missed: collections.Counter[int] = collections.Counter()
    waits: collections.Counter[int] = collections.Counter()
    for read in found["reads"]:
        if read["kind"] != "read-ahead":
            file = read["file"]
            reads[file] += 1
            pages[file] += read["pages"]
            missed[file] += 0 if read["hit"] else read["pages"]
            waits[file] += read["wait_ns"]
    page_bytes = found["about"]["page_bytes"]
    lines = [
        (
            "",
            [
                escape(plain(file_name(found["files"][file]))),
                f"{reads[file]:,}",
                f"{count * page_bytes / 1e6:,.2f}",
                f"{missed[file] * page_bytes / 1e6:,.2f}",
                time_text(waits[file]),
            ],
        )
        for file, count in pages.most_common(ROWS_MAX)
    ]
    more = f"<p>The {ROWS_MAX} files with most pages, of {len(pages):,}.</p>" if len(pages) > ROWS_MAX else ""
    return table(("file", "reads", "MB", "MB not cached", "wait ms"), lines) + more

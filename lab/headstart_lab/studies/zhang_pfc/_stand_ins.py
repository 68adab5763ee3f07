"""The traces of the matrix, compared with those of the paper."""

from headstart.trace import trace_info
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, number, unpublished
from headstart_lab.studies.zhang_pfc import _published as paper
from headstart_lab.studies.zhang_pfc._matrix import Lab
from headstart_lab.studies.zhang_pfc._workloads import Workload

FOOTPRINT_TOLERANCE = 0.05
"""For the paper's own trace: the end of the first 10 GB, and the definition of a page, are readings."""

RANDOM_TOLERANCE = 0.25
"""The paper does not say which accesses are random."""

RANDOM = "a request is random unless it begins where the one before it in its file (or unit) ended"


def traces(lab: Lab) -> Steps:
    """The three traces: footprint, share of random requests, rate, beside those of the paper."""
    yield
    return lab.skipped() + [row for workload in lab.workloads.found for row in _rows(workload)]


def _rows(workload: Workload) -> list[Row]:
    info = trace_info(workload.section["trace"], block_size=workload.section["block_size"])
    footprint = info["distinct_blocks"] * info["block_bytes"] / 1e6
    random = 100 * (1 - info["sequential_share"])
    rows = [
        _row(workload, "footprint (MB)", paper.FOOTPRINT_MB, footprint, FOOTPRINT_TOLERANCE, ""),
        _row(workload, "random requests (%)", paper.RANDOM_PERCENT, random, RANDOM_TOLERANCE, f"; {RANDOM}"),
        unpublished(
            f"{workload.name}: requests",
            info["requests"],
            note=f"{100 * info['read_share']:.1f} % reads, {info['bytes'] / info['requests'] / 1024:.1f} KiB each; "
            + workload.label,
        ),
    ]
    if "arrival" in workload.section and info["time_span_ns"]:
        scale = workload.section.get("time_scale", 1.0)
        rate = info["requests"] / (info["time_span_ns"] / 1e9)
        rows.append(
            unpublished(
                f"{workload.name}: requests a second",
                round(rate / scale, 1),
                note=f"{rate:.1f} a second by the trace's own clock; {workload.label}",
            )
        )
    return rows


def _row(workload: Workload, what: str, published: dict[str, int], ours: float, tolerance: float, more: str) -> Row:
    quantity, theirs = f"{workload.name}: {what}", published[workload.name]
    if workload.whole:
        told = workload.label + more
        return number(quantity, published=theirs, ours=round(ours, 1), tolerance=tolerance, note=told, input="paper")
    note = f"the paper has {theirs} on its trace; ours is a stand-in: {workload.label}{more}"
    return unpublished(quantity, round(ours, 1), note=note)

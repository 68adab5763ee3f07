"""As many cache segments as there are open files."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies.shriver99 import _platform as platform
from headstart_lab.studies.shriver99._runs import Lab, Runs

OPEN: Final = "open-files"
THREE: Final = "the drive's 3"
EIGHT: Final = "8 from the start"
STEADY: Final[dict[str, dict[str, Any]]] = {
    OPEN: {"cache_segments": OPEN},
    THREE: {},
    EIGHT: {"cache_segments": 8},
}
SIXTEEN: Final = "16 from the start"
FIFTEEN: Final[dict[str, dict[str, Any]]] = {OPEN: STEADY[OPEN], SIXTEEN: {"cache_segments": 16}}
ENOUGH: Final = {8: EIGHT, 15: SIXTEEN}
"""By number of files: a fixed number of segments that is large enough."""
LONGER_KB: Final = (64, 256, 1024)
LONGER_SEEDS: Final = 40
MINIMUM: Final = 112
"""Sectors that the drive always reads ahead: 56 KB, what a cluster of 64 KB has after its first block."""

SIZES_KB: Final = {64: 8, 256: 4, 1024: 2, 4096: 1}
"""Files by size: how many of them are open falls from 15 to 1."""
FIXED: Final = (1, 2, 3, 4, 6, 8, 12, 16)
CHANGING_SEEDS: Final = 50
NEAR: Final = 0.02
REQUEST: Final = 8192


def open_files(lab: Lab) -> Steps:
    """Cache segments that follow the open files: eight files, one, and a number of files that falls."""
    steady = {name: _files(lab, keys, streams=8) for name, keys in STEADY.items()}
    alone = {name: _files(lab, STEADY[name], streams=1) for name in (OPEN, THREE)}
    trace = _trace(lab.scratch)
    settings: dict[str, dict[str, Any]] = {OPEN: STEADY[OPEN], THREE: {}}
    settings |= {f"{count}": {"cache_segments": count} for count in FIXED}
    changing = {name: lab.of([*_changing(trace, keys)]) for name, keys in settings.items()}
    yield
    return [
        _steady(steady),
        _gain(steady),
        _changes(changing),
        _alone(alone),
        *(
            unpublished(f"files of four sizes, {name} segments: mean response (ms)", round(run.response_ms, 3))
            for name, run in changing.items()
        ),
    ]


def _device(keys: dict[str, Any]) -> dict[str, Any]:
    return platform.device(platform.FAST_MS, platform.FAST_BUS, buffer={"read_ahead_minimum": MINIMUM}, **keys)


def _files(lab: Lab, keys: dict[str, Any], streams: int, file_kb: int = 64, seeds: int = platform.SEEDS) -> Runs:
    sizes = {"file_kb": file_kb, "request_kb": 8}
    return lab.runs(streams=streams, seeds=seeds, device=_device(keys), costs=platform.FAST_COSTS, **sizes)


def _trace(scratch: Path) -> Path:
    """Write the files of four sizes, each read from start to end by a process of its own."""
    sizes = list(itertools.chain.from_iterable([kb] * count for kb, count in SIZES_KB.items()))
    path = scratch / "four-sizes.csv"
    with path.open("w", encoding="utf-8") as text:
        text.write("time,op,pid,file,offset,size,dur_us\n")
        for file, kb in enumerate(sizes):
            for offset in range(0, kb * 1024, REQUEST):
                text.write(f"0.0,R,{file},{file},{offset},{REQUEST},0\n")
    return path


def _changing(trace: Path, keys: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for seed in range(1, CHANGING_SEEDS + 1):
        yield {
            "seed": seed,
            "workload": {
                "trace": str(trace),
                "compute": "0ms",
                "processes": "per-pid",
                "placement": {"name": "ffs"},
            },
            "cache": {"blocks": platform.CACHE_BLOCKS},
            "policy": "ffs",
            "device": _device(keys),
            "host": dict(platform.FAST_COSTS),
        }


def _lost(fixed: Runs, following: Runs) -> str:
    """Say what the changes of the number of segments cost."""
    hits = [runs.mean("buffer_hits") for runs in (fixed, following)]
    return f"{hits[0]:.1f} and {hits[1]:.1f} requests find their blocks in the drive's buffer, which a change empties"


def sensitivity(lab: Lab) -> Steps:
    """Reasons for what differs: the same with longer files, and fifteen files of one size."""
    cells = {
        (streams, file_kb): {name: _files(lab, keys, streams, file_kb, LONGER_SEEDS) for name, keys in settings.items()}
        for streams, settings in ((8, STEADY), (15, FIFTEEN))
        for file_kb in LONGER_KB
    }
    yield
    return [
        unpublished(
            f"{streams} files of {file_kb} KB, {name}: mean response (ms)",
            round(run.response_ms, 2),
            note=f"{run.mean('buffer_hits'):.2f} requests find their blocks in the drive's buffer",
        )
        for (streams, file_kb), runs in cells.items()
        for name, run in runs.items()
    ] + [
        unpublished(
            f"{streams} files of {file_kb} KB: requests that find their blocks in the buffer, fixed less {OPEN}",
            round(runs[ENOUGH[streams]].mean("buffer_hits") - runs[OPEN].mean("buffer_hits"), 2),
        )
        for (streams, file_kb), runs in cells.items()
    ]


def _steady(runs: dict[str, Runs]) -> Row:
    ratio = runs[OPEN].response_ms / runs[EIGHT].response_ms
    return finding(
        "eight files, as many segments as open files beside eight from the start",
        published="dynamically modify the number of segments",
        ours=f"{ratio - 1:+.1%}",
        holds=abs(ratio - 1) <= NEAR,
        tolerance=f"within {NEAR:.0%}",
        note=f"{runs[EIGHT].response_ms:.2f} ms and {runs[OPEN].response_ms:.2f} ms{runs[OPEN].spread}; "
        f"{_lost(runs[EIGHT], runs[OPEN])}",
    )


def _gain(runs: dict[str, Runs]) -> Row:
    gains = {name: 1 - runs[name].response_ms / runs[THREE].response_ms for name in (OPEN, EIGHT)}
    return finding(
        "eight files, lower response than with the drive's three segments",
        published="as with eight segments",
        ours=f"{gains[OPEN]:.1%} lower, and {gains[EIGHT]:.1%} with eight from the start",
        holds=gains[OPEN] > 0 and abs(gains[OPEN] - gains[EIGHT]) <= NEAR,
        tolerance="lower, within 2 points",
        note="the paper has 44 to 46 % for eight segments beside three, of which its equations give the former; "
        f"{_lost(runs[EIGHT], runs[OPEN])}",
    )


def _changes(runs: dict[str, Runs]) -> Row:
    best = min((f"{count}" for count in FIXED), key=lambda name: runs[name].response_ms)
    ratio = runs[OPEN].response_ms / runs[best].response_ms
    return finding(
        "15 open files that become fewer, beside the best fixed number of segments",
        published="the number of files being concurrently accessed",
        ours=f"{ratio - 1:+.1%}",
        holds=ratio <= 1 + NEAR,
        tolerance=f"at most {NEAR:.0%} more",
        note=f"the best of {', '.join(f'{count}' for count in FIXED)} is {best}: {runs[best].response_ms:.3f} ms; "
        f"{runs[OPEN].response_ms:.3f} ms with as many as open files, {runs[THREE].response_ms:.3f} ms with three; "
        f"{_lost(runs[best], runs[OPEN])}",
    )


def _alone(runs: dict[str, Runs]) -> Row:
    ratio = runs[OPEN].response_ms / runs[THREE].response_ms
    return finding(
        "one file after another, beside the drive's three segments",
        published="no harm",
        ours=f"{ratio - 1:+.1%}",
        holds=ratio <= 1 + NEAR,
        tolerance=f"at most {NEAR:.0%} more",
        note=f"{runs[THREE].response_ms:.3f} ms and {runs[OPEN].response_ms:.3f} ms",
    )

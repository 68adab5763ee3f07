"""A drive that reads ahead only when it detects a sequence."""

import itertools
import statistics
from collections import defaultdict
from typing import Any, Final

from headstart import model
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies.file_system._errors import parts, verdicts
from headstart_lab.studies.shriver99 import _platform as platform
from headstart_lab.studies.shriver99 import _published as paper
from headstart_lab.studies.shriver99._published import Printed
from headstart_lab.studies.shriver99._runs import MS, Lab, Pair, Runs

ALWAYS: Final = "reads ahead always"
SUSPECTED: Final = "on a sequence"
DRIVES: Final[dict[str, dict[str, Any]]] = {ALWAYS: {}, SUSPECTED: {"buffer": {"read_ahead_on_sequence": True}}}

MODELS: Final = ("seagate-cheetah-4lp", "seagate-cheetah-9lp")
FILES_KB: Final = (32, 96, 192, 512)
REQUESTS_KB: Final = (8, 64)
STREAMS: Final = (1, 2, 3, 5, 8)
GRID_SEEDS: Final = 20
SINGLES: Final = 8
TURN_MS: Final = 60_000 / 10_033
"""From the drive's extracted file: 10,033 turns a minute."""


def sequence(lab: Lab) -> Steps:
    """A drive that reads ahead only on a suspected sequence: Tables 3 and 4, and the equations on a grid."""
    tables = [
        (printed, overhead, {name: _printed(lab, printed, overhead, drive) for name, drive in DRIVES.items()})
        for table, overhead in ((paper.TABLE_3, platform.SLOW_SINGLE_MS), (paper.TABLE_4, platform.SLOW_SEVERAL_MS))
        for printed in table
    ]
    singles = {name: _files(lab, drive, streams=SINGLES, file_kb=8, request_kb=8) for name, drive in DRIVES.items()}
    alone = {name: _files(lab, drive, streams=1, file_kb=64, request_kb=64) for name, drive in DRIVES.items()}
    points = [
        (point, scenarios, lab.of(scenarios))
        for point in itertools.product(MODELS, FILES_KB, REQUESTS_KB, STREAMS)
        if (scenarios := _scenarios(*point))
    ]
    yield
    pairs = [
        Pair(
            f"{drive.removeprefix('seagate-')}, {streams} of {file_kb} KB by {request_kb} KB",
            f"{streams}",
            run.response_ms,
            float(model.of_scenario(scenarios[0]).response.response_ns) / MS,
        )
        for (drive, file_kb, request_kb, streams), scenarios, run in points
    ]
    groups: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[f"streams are {pair.x}"].append(pair)
    return [
        _tables([(printed, runs) for printed, _, runs in tables]),
        _wait(alone),
        _single(singles),
        *verdicts("on a sequence", pairs),
        *parts("on a sequence", groups),
        *_by_table([(printed, runs) for printed, _, runs in tables]),
    ]


def _printed(lab: Lab, printed: Printed, overhead_ms: float, drive: dict[str, Any]) -> Runs:
    return lab.runs(
        streams=printed.streams,
        file_kb=printed.file_kb,
        request_kb=printed.request_kb,
        device=platform.device(overhead_ms, platform.SLOW_BUS, **drive),
        costs=platform.SLOW_COSTS,
    )


def _files(lab: Lab, drive: dict[str, Any], **sizes: Any) -> Runs:
    device = platform.device(platform.FAST_MS, platform.FAST_BUS, **drive)
    return lab.runs(device=device, costs=platform.FAST_COSTS, **sizes)


def _scenarios(drive: str, file_kb: int, request_kb: int, streams: int) -> list[dict[str, Any]]:
    seeds = range(1, GRID_SEEDS + 1) if streams > 1 else (1,)
    return [
        platform.scenario(
            file_kb=file_kb,
            request_kb=request_kb,
            streams=streams,
            seed=seed,
            device=platform.device(platform.SLOW_SEVERAL_MS, platform.SLOW_BUS, model=drive, **DRIVES[SUSPECTED]),
            costs=platform.SLOW_COSTS,
        )
        for seed in seeds
    ]


Tables = list[tuple[Printed, dict[str, Runs]]]


def _error(rows: Tables, drive: str) -> float:
    return statistics.fmean(abs(runs[drive].response_ms / printed.measured_ms - 1) for printed, runs in rows)


def _tables(rows: Tables) -> Row:
    errors = {name: _error(rows, name) for name in DRIVES}
    several = {streams: [row for row in rows if (row[0].streams > 1) == streams] for streams in (False, True)}
    told = ", ".join(
        f"{'several files' if streams else 'one file'} {_error(of, SUSPECTED):.1%} and {_error(of, ALWAYS):.1%}"
        for streams, of in several.items()
        if of
    )
    return finding(
        "the drive of the measurements reads ahead on a sequence: simulated Tables 3 and 4 with such a drive",
        published="no further from the measured columns",
        ours=f"mean error {errors[SUSPECTED]:.1%}, and {errors[ALWAYS]:.1%} with one that always reads ahead",
        holds=errors[SUSPECTED] <= errors[ALWAYS],
        note=f"28 rows; {told}; the drive's other numbers, and that it reads on during the overhead, are those of "
        "shriver99; the second request of each sequence waits for its place to come by again",
    )


def _by_table(rows: Tables) -> list[Row]:
    """Both drives by number of streams."""
    found = []
    for streams in dict.fromkeys(printed.streams for printed, _ in rows):
        of = [(printed, runs) for printed, runs in rows if printed.streams == streams]
        for name in DRIVES:
            signed = statistics.fmean(runs[name].response_ms / printed.measured_ms - 1 for printed, runs in of)
            files = f"{streams} file{'s' if streams > 1 else ''}"
            found.append(unpublished(f"{name}, {files}: simulated beside measured, mean (%)", round(100 * signed, 1)))
    return found


def _wait(alone: dict[str, Runs]) -> Row:
    more = alone[SUSPECTED].response_ms - alone[ALWAYS].response_ms
    return finding(
        "reading one file of 64 KB waits for a turn more",
        published="half a turn to a turn",
        ours=f"{more:.2f} ms, {more / TURN_MS:.2f} turns",
        holds=TURN_MS / 2 <= more <= TURN_MS,
        tolerance=f"{TURN_MS / 2:.2f} to {TURN_MS:.2f} ms",
        note=f"{alone[ALWAYS].response_ms:.2f} to {alone[SUSPECTED].response_ms:.2f} ms, on the fast machine",
    )


def _single(singles: dict[str, Runs]) -> Row:
    always, suspected = singles[ALWAYS].response_ms, singles[SUSPECTED].response_ms
    return finding(
        f"{SINGLES} files of one block take no longer",
        published="read ahead only where a sequence is suspected",
        ours=f"{suspected:.3f} ms, and {always:.3f} ms where the drive always reads ahead",
        holds=suspected <= always,
        note=f"of {SINGLES} requests {singles[SUSPECTED].mean('buffer_hits'):.3g} and "
        f"{singles[ALWAYS].mean('buffer_hits'):.3g} are for what the drive read ahead behind another file, in the mean",
    )

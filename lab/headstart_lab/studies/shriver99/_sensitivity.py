"""How our own choices affect the tables: each reading changed, one at a time."""

from typing import Any, Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import unpublished
from headstart_lab.studies.shriver99 import _platform as platform
from headstart_lab.studies.shriver99 import _published as paper
from headstart_lab.studies.shriver99._runs import Lab, Runs

BUFFER: Final = {"read_during_overhead": False}
READINGS: Final[dict[str, dict[str, Any]]] = {
    "as everywhere": {},
    "the drive breaks its read-ahead off the instant a command comes": {"buffer": BUFFER},
    "CSCAN, with its full stroke": {"scheduler": {"name": "cscan", "full_stroke": True}},
    "FCFS": {"scheduler": "fcfs"},
}
LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "half of each cylinder group taken, in free runs of 64 KB on average": {"full": 0.5},
    "the same, of 16 KB": {"full": 0.5, "free_run": "16KiB"},
    "a rotational delay of 4 ms between clusters": {"rotational_delay": "4ms"},
}
CASES: Final = (
    (1, platform.SLOW_SINGLE_MS),
    (2, platform.SLOW_SEVERAL_MS),
    (3, platform.SLOW_SEVERAL_MS),
    (8, platform.SLOW_SEVERAL_MS),
)


def sensitivity(lab: Lab) -> Steps:
    """Tables 3 and 4 (files of 64 KB, requests of 64 KB) with other readings, orders and layouts."""
    runs: dict[tuple[str, int], Runs] = {}
    for streams, overhead_ms in CASES:
        keys: dict[str, Any] = {"streams": streams, "file_kb": 64, "request_kb": 64, "costs": platform.SLOW_COSTS}
        for name, more in READINGS.items():
            runs[name, streams] = lab.runs(device=platform.device(overhead_ms, platform.SLOW_BUS, **more), **keys)
        for name, placement in LAYOUTS.items():
            device = platform.device(overhead_ms, platform.SLOW_BUS)
            runs[name, streams] = lab.runs(device=device, placement=placement, **keys)
    yield
    measured = {
        each.streams: each.measured_ms
        for each in (*paper.TABLE_3, *paper.TABLE_4)
        if (each.request_kb, each.file_kb) == (64, 64)
    }
    return [
        unpublished(
            f"{name}: {streams} file{'s' if streams > 1 else ''} of 64 KB, mean response (ms)",
            round(run.response_ms, 3),
            note=f"measured in the paper {measured[streams]} ms: {_off(run, measured[streams])}{run.spread}",
        )
        for (name, streams), run in runs.items()
    ]


def _off(run: Runs, measured_ms: float) -> str:
    return f"{100 * (run.response_ms / measured_ms - 1):+.1f} %"

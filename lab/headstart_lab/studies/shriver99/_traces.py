"""Recorded programs read through the file system, without and with prefetching. The paper has none."""

from pathlib import Path
from typing import Any, Final

from headstart import _examples
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import unpublished
from headstart_lab.studies.shriver99 import _platform as platform
from headstart_lab.studies.shriver99._runs import Lab, Runs

FOLDER: Final = _examples.TRACES
"""Programs recorded for this project, which ship with it."""
DIRECTORY_FILES: Final = 50
"""Files of a directory. A guess: the traces' paths are those of another file system."""


def traces(lab: Lab) -> Steps:
    """Recorded programs through the file system: elapsed time without prefetching and with."""
    found = sorted(FOLDER.glob("*.csv.xz"))
    names = [path for path in found if not path.name.endswith(".files.csv.xz")]
    runs: dict[tuple[str, str], Runs] = {
        (path.name, policy): lab.of([_scenario(path, policy)]) for path in names for policy in ("demand", "ffs")
    }
    yield
    if not names:
        note = "no recorded program here: they lie in examples/traces of the package"
        return [unpublished("recorded programs", None, note=note)]
    return [
        unpublished(
            f"{path.name.removesuffix('.csv.xz')}: elapsed with prefetching beside without (%)",
            round(100 * (_elapsed(runs, path, "ffs") / _elapsed(runs, path, "demand") - 1), 2),
            note=f"{_elapsed(runs, path, 'demand') / 1e3:.2f} to {_elapsed(runs, path, 'ffs') / 1e3:.2f} s; "
            f"{runs[path.name, 'demand'].mean('disk_requests'):.0f} to "
            f"{runs[path.name, 'ffs'].mean('disk_requests'):.0f} requests of the disk",
        )
        for path in names
    ]


def _elapsed(runs: dict[tuple[str, str], Runs], path: Path, policy: str) -> float:
    return runs[path.name, policy].mean("elapsed_ms")


def _scenario(path: Path, policy: str) -> dict[str, Any]:
    return {
        "workload": {
            "trace": str(path),
            "placement": {"name": "ffs", "opens": "read", "directory_files": DIRECTORY_FILES},
        },
        "cache": {"blocks": platform.CACHE_BLOCKS},
        "policy": policy,
        "device": platform.device(platform.FAST_MS, platform.FAST_BUS),
        "host": dict(platform.FAST_COSTS),
    }

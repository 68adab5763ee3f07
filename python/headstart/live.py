"""Live runs: what the simulator simulates, by real threads and a real clock (docs/parallel.md)."""

from collections.abc import Sequence

from headstart import _core
from headstart.simulation import Progress, Result, Scenario, source_of


def play(
    scenario: Scenario, *, overrides: Sequence[str] = (), speed: float = 1.0, progress: Progress | None = None
) -> Result:
    """Play the parallel program of a scenario with a thread for each process and each in-memory disk.

    Computing, prefetch actions and disks' service are sleeps, `speed` times as short as the scenario says; times in the
    result are the scenario's. Two runs never give the same times.

    Raises:
        HeadstartError: The scenario is at fault, or asks for what cannot be played.
    """
    text = _core.play(**source_of(scenario), overrides=list(overrides), speed=speed, on_progress=progress)
    return Result.from_json(text)

"""Live runs of simulated scenarios, with real threads and a real clock (docs/parallel.md)."""

from collections.abc import Sequence

from headstart import _core
from headstart.simulation import Progress, Result, Scenario, source_of


def play(
    scenario: Scenario, *, overrides: Sequence[str] = (), speed: float = 1.0, progress: Progress | None = None
) -> Result:
    """Run the parallel program of a scenario with real threads, one for each process and each in-memory disk.

    Computing, prefetch actions and the disks' service are sleeps. Unlike `simulate`, two runs never give the same
    times.

    Args:
        scenario: As for `simulate`.
        overrides: As for `simulate`.
        speed: Factor by which sleeps are shorter than the times of the scenario. Times of the result are in the
            scenario's scale.
        progress: As for `simulate`.

    Raises:
        HeadstartError: The scenario is wrong, or cannot be run live.
    """
    text = _core.play(**source_of(scenario), overrides=list(overrides), speed=speed, on_progress=progress)
    return Result.from_json(text)

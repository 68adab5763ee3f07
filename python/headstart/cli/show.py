"""`headstart show`: a small run, drawn over time."""

from pathlib import Path
from typing import Annotated

import typer

from headstart import timelines
from headstart.cli import options, output
from headstart.cli.progress import watched
from headstart.cli.shown import plain
from headstart.cli.simulate import policy_words
from headstart.report.drawing import check, drawing

WIDTH = 80
"""Columns if stdout is not a terminal."""
EVENTS_MAX = 20_000
"""Limit of a run that can be drawn."""


def show(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="What to run; see docs/scenario.md.")],
    overrides: options.Set = None,
    json: options.Json = None,
) -> None:
    """Draw a small run: the activity of each process and each disk over time.

    A process runs, stalls or waits at a barrier; its row names the blocks that it references. A disk's row shows the
    requests that it serves, each with its block. The limit is 200 references, 16 processes and 16 disks; for longer
    runs, use simulate --timeline, which writes a file.

    Example: headstart show examples/figure1.toml
    """
    output.check_targets(json)
    done = watched(
        f"simulating {scenario}",
        lambda tell: timelines.run(scenario, overrides=overrides or [], progress=tell, events_max=EVENTS_MAX),
    )
    check(done)
    if json != "-":
        console = output.console()
        result = done.result
        width = console.width if console.is_terminal else WIDTH
        words = f"{policy_words(result)}, {result.levels[0]['blocks']:,} blocks of cache, {len(result.devices)} x "
        typer.echo(plain(f"{words}{result.scenario['device']['model']['name']}"))
        typer.echo(f"elapsed {output.duration(result.elapsed_ns)}, stall {output.duration(result.stall_ns)}")
        typer.echo("")
        for line in drawing(done, width):
            typer.echo(plain(line))
    if json is not None:
        text = {"result": done.result.to_dict(), "names": done.names(), "events": done.events}
        output.write_json(json, output.as_json(text))

"""`headstart simulate`: one scenario."""

import itertools
import operator
from collections.abc import Sequence
from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headstart import pftrace, simulation, timelines
from headstart._core import HeadstartError
from headstart.cli import options, output, pages
from headstart.cli.progress import Tell, watched
from headstart.cli.shown import plain, safe
from headstart.report.simulation import simulation_figures, simulation_page
from headstart.results import Disk, Level
from headstart.sweeps.folder import pyarrow

OPTIONS = {"workload.request_size": "--request-size"}
"""The option of each key, if there is one."""
DISKS_SHOWN = 64
"""Maximum rows of the disk table. More rows fill screens, and laying out 100,000 takes a minute."""


@options.selecting
def simulate(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="What to run; see docs/scenario.md.")],
    overrides: options.Set = None,
    request_size: options.RequestSize = None,
    select: options.Selection = options.ALL,
    json: options.Json = None,
    html: options.Html = None,
    figures: options.Figures = None,
    timeline: Annotated[
        str | None,
        typer.Option(
            "--timeline",
            metavar="FILE",
            help="Write a timeline for ui.perfetto.dev: JSON, or FILE.pftrace.",
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", metavar="FILE.parquet", help="Write every event as a row of a Parquet file."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the scenario with all defaults, without running it.")
    ] = False,
) -> None:
    """Simulate one scenario and show where the time goes.

    Example: headstart simulate examples/figure1.toml --set policy.name=forestall --json -
    """
    laid_over = list(overrides or [])
    if request_size is not None:
        laid_over.append(f"workload.request_size={dumps(request_size)}")
    laid_over += options.selected(select)
    naming = options.named(OPTIONS) if request_size is not None else nullcontext()
    if explain:
        with naming:
            typer.echo(simulation.explain(scenario, overrides=laid_over), nl=False)
        return
    output.check_targets(json, timeline, events)
    if "-" in (timeline, events):
        raise HeadstartError("--timeline, --events: - is no file; allowed: the name of a file")
    if events is not None:
        pyarrow("--events")
    if timeline is not None and timeline.endswith(pftrace.SUFFIX):
        pftrace.library()
    pages.check("simulate", html, figures)
    with naming:
        result = watched(f"simulating {scenario}", lambda tell: _run(scenario, laid_over, tell, timeline, events))
    if json != "-":
        show(output.console(), result)
    if json is not None:
        output.write_json(json, result.to_json())
    name = scenario.name
    pages.write(html, figures, lambda: simulation_page(name, result), lambda: simulation_figures(result))


def _run(
    scenario: Path, overrides: Sequence[str], tell: Tell, timeline: str | None, events: str | None
) -> simulation.Result:
    if timeline is None and events is None:
        return simulation.simulate(scenario, overrides=overrides, progress=tell)
    done = timelines.run(scenario, overrides=overrides, progress=tell)
    if timeline is not None and timeline.endswith(pftrace.SUFFIX):
        output.write_bytes(Path(timeline), pftrace.encoded(done.chrome()))
    elif timeline is not None:
        output.write_text(Path(timeline), done.chrome_json())
    if events is not None:
        done.write_parquet(events)
    return done.result


def show(console: Console, result: simulation.Result) -> None:
    """Print a result as text."""
    device = result.scenario["device"]
    machine = safe(f"{device['count']} x {device['model']['name']}")
    levels = result.scenario.get("level", [])
    if levels:
        console.print(f"{len(levels)} levels, {machine}")
    else:
        frames = result.levels[0]["blocks"]
        console.print(f"{safe(_policy(result.scenario['policy']))}, {frames:,} blocks of cache, {machine}")
    console.print(_times(result))
    console.print(_counts(result))
    if levels:
        console.print(_levels(result.levels, levels))
    elif result.prefetches:
        console.print(_worth(result.levels[0]), markup=False)
    response = result.response_ns
    console.print(
        "response per request: "
        + ", ".join(f"{name} {output.seconds(response[name])}" for name in ("mean", "p50", "p90", "p99", "max"))
    )
    console.print(_devices(result.devices))
    for note in result.notes:
        console.print(f"note: {plain(note)}", markup=False)
    if result.python_calls:
        spent = f"{result.python_calls:,} calls, {output.seconds(result.python_ns)} of this machine's time"
        console.print(f"note: policies in Python: {spent}", markup=False)


def policy_words(result: simulation.Result) -> str:
    """Return the policies of a result's levels, nearest the application first."""
    levels = result.scenario.get("level") or [result.scenario]
    return " over ".join(_policy(level["policy"]) for level in levels)


def _named(value: str | dict[str, Any]) -> str:
    return str(value["name"]) if isinstance(value, dict) else value


def _policy(policy: dict[str, Any]) -> str:
    replacement = _named(policy.get("replacement", ""))
    return f"{policy['name']} with {replacement}" if replacement else str(policy["name"])


def _times(result: simulation.Result) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("time")
    table.add_column("", justify="right")
    table.add_column("share", justify="right")
    parts = ("elapsed", "compute", "driver", "overhead", "stall", "barrier", "idle")
    for part in parts:
        value: int = getattr(result, f"{part}_ns")
        if value or part in ("elapsed", "compute", "driver", "stall"):
            share = value / result.elapsed_ns if result.elapsed_ns else 0.0
            table.add_row(part, output.seconds(value), f"{share:.1%}")
    return table


def _counts(result: simulation.Result) -> Table:
    rows = {
        "requests": result.requests,
        "references": result.references,
        "hits": result.hits_ready,
        "late hits": result.hits_unready,
        "misses": result.misses,
        "fetches": result.fetches,
        "prefetches": result.prefetches,
        "used": result.prefetches_used,
        "wasted": result.prefetches_wasted,
        "evictions": result.evictions,
    }
    table = Table(box=None, pad_edge=False)
    for name in rows:
        table.add_column(name, justify="right")
    table.add_row(*(f"{count:,}" for count in rows.values()))
    return table


def _levels(levels: Sequence[Level], keys: list[dict[str, Any]]) -> Table:
    """Return a table of the levels, grouped by tier."""
    table = Table(box=None, pad_edge=False)
    table.add_column("level", style="bold", overflow="fold")
    table.add_column("policy", overflow="fold")
    for name in ("blocks", "hits", "misses", "used", "wasted", "late", "accuracy", "coverage", "link"):
        table.add_column(name, justify="right", no_wrap=True)
    for level, tier in zip(levels, _tiers(keys), strict=True):
        coordinator = _named(tier.get("coordinator", "none"))
        policy = safe(_policy(tier["policy"]) + (f", {coordinator}" if coordinator != "none" else ""))
        prefetches = [level["prefetches_used"], level["prefetches_wasted"], level["prefetches_late"]]
        counts = [level["blocks"], level["hits_ready"] + level["hits_unready"], level["misses"]]
        shares = [f"{level['accuracy']:.1%}" if level["prefetches"] else "", f"{level['coverage']:.1%}"]
        table.add_row(
            safe(level["name"]),
            policy,
            *(f"{count:,}" for count in (*counts, *prefetches)),
            *shares,
            output.seconds(level["link_ns"]),
        )
    return table


def _tiers(keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the keys of each level of the result: one by client of the tier below, and by server above it."""
    tiers: list[dict[str, Any]] = []
    count = 1
    servers = list(itertools.accumulate((int(each.get("servers") or 1) for each in keys), operator.mul))
    for each, of_servers in zip(reversed(keys), reversed(servers), strict=True):
        tiers = [each] * (count * of_servers) + tiers
        count *= int(each.get("clients", 1))
    return tiers


def _worth(level: Level) -> str:
    """Return the accuracy and coverage of a level's prefetches as one line."""
    lead = output.duration(level["lead_ns_mean"])
    return (
        f"prefetches: accuracy {level['accuracy']:.1%}, coverage {level['coverage']:.1%}, "
        f"late {level['lateness']:.1%}, {lead} ahead on average, pollution {level['pollution']:,}"
    )


def _devices(devices: Sequence[Disk]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("disk", "requests", "busy", "service", "response", "buffer hits"):
        table.add_column(name, justify="right")
    for index, device in enumerate(devices[:DISKS_SHOWN]):
        table.add_row(
            str(index),
            f"{device['requests']:,}",
            f"{device['utilization']:.1%}",
            output.seconds(device["service_ns_mean"]),
            output.seconds(device["response_ns_mean"]),
            f"{device['buffer_hits']:,}",
        )
    if len(devices) > DISKS_SHOWN:
        table.caption = f"and {len(devices) - DISKS_SHOWN:,} more disks: --json has all"
        table.caption_justify = "left"
    return table

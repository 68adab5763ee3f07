"""`headstart curve`: misses and elapsed time over the size of a cache."""

from typing import Annotated

import typer

from headstart import curves
from headstart.cli import compare as comparing
from headstart.cli import options, output, pages
from headstart.cli.progress import watched
from headstart.report.curve import curve_figures, curve_page, curve_shown

SAMPLE = "Sample"
OPTIONS = {**comparing.OPTIONS, "rate": "--rate", "sample_blocks": "--sample-blocks", "admit": "--admit"}


def curve(
    trace: comparing.Trace = None,
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            "--policy",
            help="Names, separated by commas: replacements (lru, arc), or policies as in compare (linux, demand:min).",
        ),
    ] = "lru",
    cache: Annotated[
        str | None,
        typer.Option(help=f"{comparing.CACHE} Default: --points of them."),
    ] = None,
    points: Annotated[
        int, typer.Option(min=1, help="Number of sizes, from 0.1 % to all of the distinct blocks, in equal ratios.")
    ] = curves.DEFAULT_POINTS,
    device: Annotated[
        str | None,
        typer.Option(help="Run each policy at each size on this device, a name or a profile: elapsed times too."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Look at this share of the blocks only, as in 0.01. No times.", rich_help_panel=SAMPLE),
    ] = None,
    sample_blocks: Annotated[
        int | None,
        typer.Option(
            min=1, help="Look at so many blocks at most, in bounded memory. No times.", rich_help_panel=SAMPLE
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Samples, whose spread is shown.", rich_help_panel=SAMPLE)
    ] = curves.DEFAULT_SEEDS,
    admit: Annotated[
        str | None,
        typer.Option(help="Objects larger than this, as in 1MiB, pass the cache by; where a trace has their sizes."),
    ] = None,
    generator: comparing.Generator = None,
    format: comparing.Format = None,
    block_size: comparing.BlockSize = None,
    request_size: comparing.RequestSize = None,
    writes: comparing.Writes = None,
    limit: comparing.Limit = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; by default one for each processor.")] = None,
    overrides: options.Set = None,
    json: options.Json = None,
    html: options.Html = None,
    figures: options.Figures = None,
) -> None:
    """Find the misses of policies over the size of the cache; with --device, their elapsed times.

    LRU takes one pass over the trace for all sizes, other replacements one with all sizes side by side. Policies that
    prefetch or know the future are run at each size. --rate makes large traces cheap, and shows
    the spread of the estimate.

    Example: headstart curve examples/traces/cscope1.csv.xz --policies lru,arc,demand:min

    With times: headstart curve examples/traces/cscope1.csv.xz --policies lru,linux --device nvme --points 5
    """
    output.check_targets(json)
    pages.check("curve", html, figures)
    given = {
        "format": format,
        "block_size": block_size,
        "request_size": request_size,
        "writes": writes,
        "limit": limit,
    }
    with options.named(OPTIONS):
        source = comparing.source(trace, generator)
        done = watched(
            f"reading {trace or generator}",
            lambda tell: curves.curve(
                source,
                policies=options.names("--policies", policies),
                cache=None if cache is None else options.names("--cache", cache),
                points=points,
                rate=rate,
                sample_blocks=sample_blocks,
                seeds=seeds,
                device=device,
                admit=admit,
                workload={key: value for key, value in given.items() if value is not None},
                overrides=overrides or [],
                jobs=jobs,
                progress=tell,
            ),
        )
    if json != "-":
        curve_shown(output.console(), done)
    if json is not None:
        output.write_json(json, output.as_json(done.to_dict()))
    pages.write(html, figures, lambda: curve_page(done), lambda: curve_figures(done))

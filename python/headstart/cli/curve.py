"""`headstart curve`: misses and elapsed time by cache size."""

from typing import Annotated

import typer

from headstart.cli import compare as comparing
from headstart.cli import options, output, pages
from headstart.cli.progress import watched
from headstart.report.curve import curve_figures, curve_page, curve_shown
from headstart.runs import curve as curves

SAMPLE = "Sample"
OPTIONS = {**comparing.OPTIONS, "rate": "--rate", "sample_blocks": "--sample-blocks", "admit": "--admit"}


@options.selecting
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
        typer.Option(help=f"{comparing.CACHE} Default: --points sizes."),
    ] = None,
    points: Annotated[
        int,
        typer.Option(
            min=1, help="Number of sizes, from 0.1 % to all of the distinct blocks, evenly spaced on a log scale."
        ),
    ] = curves.DEFAULT_POINTS,
    device: Annotated[
        str | None,
        typer.Option(
            help="Also report elapsed times: run each policy at each size on this device, a name or a profile."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Sample this share of the blocks: 0.01. Misses only, no times.", rich_help_panel=SAMPLE),
    ] = None,
    sample_blocks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Sample at most this many blocks, in bounded memory. Misses only, no times.",
            rich_help_panel=SAMPLE,
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of samples; their spread is shown.", rich_help_panel=SAMPLE)
    ] = curves.DEFAULT_SEEDS,
    admit: Annotated[
        str | None,
        typer.Option(
            help="Largest object that is cached: 1MiB; larger ones bypass the cache. For traces with object sizes."
        ),
    ] = None,
    generator: comparing.Generator = None,
    format: comparing.Format = None,
    block_size: comparing.BlockSize = None,
    request_size: comparing.RequestSize = None,
    writes: comparing.Writes = None,
    limit: comparing.Limit = None,
    select: options.Selection = options.ALL,
    jobs: Annotated[int | None, typer.Option(min=1, help="Parallel runs. Default: one per processor.")] = None,
    overrides: options.Set = None,
    json: options.Json = None,
    html: options.Html = None,
    figures: options.Figures = None,
) -> None:
    """Compute the misses of policies by cache size; with --device, also their elapsed times.

    LRU needs one pass over the trace for all sizes. Other replacements need one pass that simulates all sizes side by
    side. Policies that prefetch or know the future are run once per size. --rate samples the blocks of a large trace
    and shows the spread of the estimate.

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
                **select,
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

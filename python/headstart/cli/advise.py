"""`headstart advise`: how far to read ahead on a device, for one trace; with `--order`, which cache a reader needs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from headstart import advice
from headstart.cli import options, output, pages
from headstart.cli import order as known
from headstart.cli.compare import MACHINE, WORKLOAD, Compute, Format, Generator, Limit, RequestSize, source
from headstart.cli.progress import watched
from headstart.report.advice import advice_shown, sampled_text
from headstart.report.advice_page import advice_figures, advice_page

OPTIONS = {
    "seed": "--seed",
    "seconds": "--seconds",
    "workload.trace": "TRACE",
    "workload.generator": "--generator",
    **{
        f"workload.{key}": f"--{key.replace('_', '-')}"
        for key in ("format", "block_size", "request_size", "compute", "limit")
    },
    **dict.fromkeys(("cache.blocks", "cache.size", "cache.footprint", "cache"), "--cache"),
    "device.model": "--device",
}
"""The option that sets each key of the scenario."""


@options.selecting
def advise(
    trace: Annotated[str | None, typer.Argument(metavar="TRACE", help="A trace file, or use --generator.")] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Names of `headstart list devices`, profiles' paths, or hdd, separated by commas. "
            f"Default: {','.join(advice.DEVICES)}."
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            help="Sizes (1GiB), blocks, or shares of the distinct blocks (5%), separated by commas. Default: a quarter "
            "of the distinct blocks, but at least 64 MiB or all of them. With --order: sizes, items, or shares of the "
            "data over the nodes; by default 10%,30%,50%,80%,100%."
        ),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(help="Further policies to try: mine.py:Mine, linux:read_ahead=1MiB, separated by commas."),
    ] = None,
    on: Annotated[
        Path | None,
        typer.Option(
            "--on",
            metavar="DEVICE",
            readable=False,
            help="A device of this machine, or a path on it: its present read-ahead is compared.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for the search.")] = 60.0,
    generator: Generator = None,
    format: Format = None,
    block_size: Annotated[
        str,
        typer.Option(help='Size of a block, or "object" for the trace\'s own units.', rich_help_panel=WORKLOAD),
    ] = advice.BLOCK_SIZE,
    request_size: RequestSize = None,
    compute: Compute = None,
    limit: Limit = None,
    order: known.Order = None,
    items: known.Items = None,
    epochs: known.Epochs = None,
    nodes: known.Nodes = None,
    neighbours: known.Neighbours = None,
    sizes: known.Sizes = None,
    weights: known.Weights = None,
    select: options.Selection = options.ALL,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.", rich_help_panel=WORKLOAD)] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Parallel runs. Default: one per processor.", rich_help_panel=MACHINE),
    ] = None,
    overrides: options.Set = None,
    json: options.Json = None,
    html: options.Html = None,
    figures: options.Figures = None,
) -> None:
    """Recommend a read-ahead for a trace on each device, with the time it saves and a sufficient cache size.

    The command tries what can be set on the device: a few depths, then those beside the best. It compares them with a
    lower bound of the elapsed time and with policies that know the future. Of a long trace, the answer for its start
    comes first, on stderr.

    With --order, no trace is read: it compares LRU, a cache that never evicts, and one that knows the next use, for a
    reader that knows its order, such as a training run.

    Example: headstart advise examples/traces/multi6.csv.xz --device hdd,nvme

    A known order: headstart advise --order shuffled --items 100000 --nodes 4 --cache 30%,50%
    """
    options_given = dict(locals())
    if order is not None:
        known.advise_order(advise, options_given)
        return
    known.check_without(options_given)
    output.check_targets(json)
    pages.check("advise", html, figures)
    given = {"format": format, "request_size": request_size, "compute": compute, "limit": limit}
    section = source(trace, generator)
    with options.named(OPTIONS):
        done = watched(
            f"advising on {trace or generator}",
            lambda tell: advice.advise(
                section,
                device=None if device is None else options.names("--device", device),
                cache=None if cache is None else options.names("--cache", cache),
                seconds=seconds,
                block_size=block_size,
                workload={key: value for key, value in given.items() if value is not None},
                **select,
                seed=seed,
                policies=[] if policies is None else options.names("--policies", policies),
                on=on,
                overrides=overrides or [],
                jobs=jobs,
                progress=tell,
                sampled=lambda done: print(sampled_text(done), file=sys.stderr, flush=True),
            ),
        )
    if json != "-":
        advice_shown(output.console(wide=True), done)
    if json is not None:
        output.write_json(json, output.as_json(done.to_dict()))
    pages.write(html, figures, lambda: advice_page(done), lambda: advice_figures(done))

"""`headstart compare`: policies side by side on one trace."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headstart import comparison
from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.progress import watched
from headstart.cli.shown import plain
from headstart.report.comparison import comparison_page

BAR_COLUMNS = 22
WITHOUT_BAR = 96
"""A console narrower than this has no room for the bars."""
PARTS = (("compute", "█", "green"), ("driver", "▓", "yellow"), ("overhead", "▒", "cyan"), ("stall", "░", "red"))
"""The parts of elapsed time, how a bar draws them, in the order of the bar."""

OPTIONS = {
    "seed": "--seed",
    "workload.trace": "TRACE",
    "workload.generator": "--generator",
    **{
        f"workload.{key}": f"--{key.replace('_', '-')}"
        for key in ("format", "block_size", "compute", "compute_total", "placement", "addresses", "writes", "limit")
    },
    **dict.fromkeys(("cache.blocks", "cache.size", "cache.footprint"), "--cache"),
    **dict.fromkeys(("policy.name", "policy.replacement"), "--policies"),
    "device.model": "--device",
    "device.count": "--disks",
    "device.scheduler": "--scheduler",
    "host.driver_overhead": "--driver-overhead",
}
"""The option by which a key of the scenario is set."""

WORKLOAD = "Workload"
MACHINE = "Machine"


def compare(
    trace: Annotated[str | None, typer.Argument(metavar="TRACE", help="A trace file, or use --generator.")] = None,
    policies: Annotated[
        str,
        typer.Option(help="Names, separated by commas; demand:min names a replacement, aggressive:batch_size=8 a key."),
    ] = "demand:min,fixed-horizon,aggressive,reverse-aggressive,forestall",
    disks: Annotated[str, typer.Option(help="Numbers of disks, separated by commas.")] = "1",
    cache: Annotated[
        str, typer.Option(help="A size (10MiB), blocks (1280), or a share of the distinct blocks (5%).")
    ] = "10MiB",
    device: Annotated[str, typer.Option(help="A name of `headstart list devices`, or a profile's path.")] = "hp97560",
    generator: Annotated[
        str | None,
        typer.Option(
            help="Generate the workload instead of reading TRACE: a name of `headstart list workloads`.",
            rich_help_panel=WORKLOAD,
        ),
    ] = None,
    format: Annotated[str, typer.Option(help="A name of `headstart list formats`.", rich_help_panel=WORKLOAD)] = "auto",
    block_size: Annotated[
        str, typer.Option(help='Size of a block, or "object" for the trace\'s own units.', rich_help_panel=WORKLOAD)
    ] = "8KiB",
    compute: Annotated[
        str | None,
        typer.Option(help='Think time after each reference: trace, "1ms", "exp:1ms".', rich_help_panel=WORKLOAD),
    ] = None,
    compute_total: Annotated[
        str | None, typer.Option(help="Scale think times to this sum, as in 99.9s.", rich_help_panel=WORKLOAD)
    ] = None,
    placement: Annotated[
        str | None, typer.Option(help="address, table-order, random-groups or ffs.", rich_help_panel=WORKLOAD)
    ] = None,
    addresses: Annotated[
        str | None,
        typer.Option(
            help="Addresses beyond the device: auto, error, compact or compact-chunks; auto by default.",
            rich_help_panel=WORKLOAD,
        ),
    ] = None,
    writes: Annotated[str, typer.Option(help="as-read or skip.", rich_help_panel=WORKLOAD)] = "as-read",
    issue: Annotated[
        str | None,
        typer.Option(
            help="whole or blocks: how requests are issued. Default: whole where a read-ahead is compared.",
            rich_help_panel=WORKLOAD,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of requests.", rich_help_panel=WORKLOAD)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.", rich_help_panel=WORKLOAD)] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="A name of `headstart list schedulers`.", rich_help_panel=MACHINE)
    ] = None,
    driver_overhead: Annotated[
        str | None,
        typer.Option(
            help="Processor time of each device request; by default that of the device's class.",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Cases that run at a time; by default one for each processor.", rich_help_panel=MACHINE
        ),
    ] = None,
    overrides: options.Set = None,
    json: options.Json = None,
    html: options.Html = None,
) -> None:
    """Run policies on one trace and several numbers of disks, and say where the time goes.

    The best on each number of disks is marked; "above bound" is the distance to a lower bound that no policy beats.
    Recorded think times are those of the machine that recorded: --compute-total scales them.

    Example: headstart compare examples/traces/cscope2.csv.xz --policies demand:min,forestall --disks 1,4 --cache 10MiB
    """
    output.check_targets(json, html)
    workload: dict[str, Any] = {"block_size": block_size, "writes": writes}
    given = {
        "compute": compute,
        "compute_total": compute_total,
        "placement": placement,
        "addresses": addresses,
        "limit": limit,
    }
    workload.update({key: value for key, value in given.items() if value is not None})
    if format != "auto":
        workload["format"] = format
    plan = comparison.plan(
        _source(trace, generator),
        policies=options.names("--policies", policies),
        disks=options.numbers("--disks", disks),
        cache=cache,
        device=device,
        scheduler=scheduler,
        driver_overhead=driver_overhead,
        issue=issue,
        workload=workload,
        seed=seed,
        overrides=overrides or [],
    )
    with options.named(OPTIONS):
        done = watched(f"comparing on {trace or generator}", lambda tell: plan.run(jobs=jobs, progress=tell))
    # First, so that a file that cannot be written takes no result with it.
    if json != "-":
        show(output.console(), done)
    if json is not None:
        output.write_json(json, output.as_json(done.to_dict()))
    if html is not None:
        output.write_text(Path(html), comparison_page(done))


def _source(trace: str | None, generator: str | None) -> dict[str, str]:
    match trace, generator:
        case str(), None:
            return {"trace": trace}
        case None, str():
            return {"generator": generator}
        case None, None:
            raise HeadstartError("TRACE: missing; allowed: a trace file, or --generator NAME")
        case _:
            raise HeadstartError("--generator: given beside TRACE; allowed: one of the two")


def show(console: Console, done: comparison.Comparison) -> None:
    """Print a comparison for people: one table for each number of disks."""
    first = done.rows[0].result
    blocks = first.levels[0]["blocks"]
    model = first.scenario["device"]["model"]["name"]
    console.print(
        f"{plain(done.workload())}: {first.references:,} references, cache of {blocks:,} blocks, {plain(model)}",
        markup=False,
    )
    with_bar = console.width >= WITHOUT_BAR
    for disks, rows in done.blocks():
        console.print()
        console.print(_block(disks, rows, done.refusals(disks), with_bar=with_bar))
    console.print()
    if with_bar:
        console.print(
            "[dim]bars: " + ", ".join(f"[{colour}]{glyph}[/] {name}" for name, glyph, colour in PARTS) + "[/]"
        )
    console.print("[dim]* best on these disks; above bound: over the least time that any policy could take[/]")
    for note in done.notes():
        console.print(f"note: {plain(note)}", markup=False)


def _block(disks: int, rows: list[comparison.Row], refusals: list[comparison.Refusal], *, with_bar: bool) -> Table:
    bound = f"{rows[0].lower_bound_ns / 1e9:,.3f}"
    title = f"{disks} disk{'s' if disks > 1 else ''} (times in s, lower bound {bound})"
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, collapse_padding=True
    )
    table.add_column("", width=1)
    names = [row.policy for row in rows] + [refusal.policy for refusal in refusals]
    table.add_column("policy", no_wrap=True, min_width=max(map(len, names)))
    for name in ("elapsed", "compute", "driver", "stall"):
        table.add_column(name, justify="right", no_wrap=True)
    if with_bar:
        table.add_column("", no_wrap=True, min_width=BAR_COLUMNS)
    for name in ("fetches", "disk use", "above bound"):
        table.add_column(name, justify="right", no_wrap=True)
    longest = max(row.result.elapsed_ns for row in rows)
    for row in rows:
        result = row.result
        times = (result.elapsed_ns, result.compute_ns, result.driver_ns, result.stall_ns)
        cells = [f"{time / 1e9:,.3f}" for time in times]
        bar = [stacked_bar(row, longest)] if with_bar else []
        tail = [f"{result.fetches:,}", f"{result.utilization:.0%}", f"{row.above_bound:+.1%}"]
        mark, style = ("*", "bold") if row.best else ("", None)
        table.add_row(mark, escape(row.policy), *cells, *bar, *tail, style=style)
    for refusal in refusals:
        # Its reason is one of the notes.
        table.add_row("", escape(refusal.policy), "see note", style="dim")
    return table


def stacked_bar(row: comparison.Row, longest_ns: int) -> str:
    """Return the parts of elapsed time as a bar; the longest run fills it."""
    pieces: list[str] = []
    done_ns, drawn = 0, 0
    for name, glyph, colour in PARTS:
        done_ns += getattr(row.result, f"{name}_ns")
        # Ends are rounded, not lengths: the whole bar is never off by more than half a column.
        end = round(BAR_COLUMNS * done_ns / longest_ns) if longest_ns else 0
        if end > drawn:
            pieces.append(f"[{colour}]{glyph * (end - drawn)}[/]")
            drawn = end
    return "".join(pieces)

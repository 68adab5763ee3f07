"""`headstart model competitive`: the competitive prefetch depth of a drive, and its guarantee."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headstart import model
from headstart.cli import options, output
from headstart.cli.options import keys_of
from headstart.cli.shown import plain


def competitive(
    drive: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEVICE]", help="A drive with an arm: a name of `headstart list devices`, or a profile's path."
        ),
    ] = None,
    seek: Annotated[str | None, typer.Option(metavar="TIME", help="Average seek time, without DEVICE.")] = None,
    rotation: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time of half a rotation, without DEVICE.")
    ] = None,
    rate: Annotated[str | None, typer.Option(metavar="RATE", help="Sequential transfer rate, without DEVICE.")] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...", help="Numbers of queued requests that the scheduler chooses from. [1,2,4 to 64]"
        ),
    ] = None,
    page: Annotated[str, typer.Option("--pages", "--page", metavar="SIZE", help="Page size.")] = "4KiB",
    slow_start: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Size of a stream's first prefetch, which doubles up to the depth; 0B: no slow start."
        ),
    ] = "64KiB",
    dataset: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Size of the data on DEVICE, counted from its start.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the device: rpm=7200. Repeatable."),
    ] = None,
    json: options.Json = None,
) -> None:
    """Compute the competitive prefetch depth of a drive (Li, Shen, Papathanasiou 2007).

    The depth is the amount of data that the drive transfers in the time of a switch: a seek plus half a rotation. With
    it, the disk is busy less than twice as long as with prefetching that knows the lengths of the streams.

    Example: headstart model competitive ibm-36gb-10k --concurrency 2,4,8
    """
    output.check_targets(json)
    found = model.competitive(
        drive,
        seek=seek,
        rotation=rotation,
        rate=rate,
        concurrency=None if concurrency is None else options.numbers("concurrency", concurrency),
        page=page,
        slow_start=slow_start,
        dataset=dataset,
        keys=keys_of(settings),
    )
    if json is not None:
        output.write_json(json, output.as_json(found.to_dict()))
    if json != "-":
        print_competitive(output.console(), found)


def print_competitive(console: Console, found: model.Competitive) -> None:
    """Print the result as text."""
    average = found.average
    console.print(
        f"competitive prefetching on {plain(found.drive or 'a drive of these numbers')}", style="bold", markup=False
    )
    spread = "" if found.dataset_bytes is None else f" within {found.dataset_bytes / 1e9:,.1f} GB"
    console.print(
        f"a switch between two random places{spread} takes {_ms(average.switch_ns)} ms: "
        f"seek {_ms(average.seek_ns)} ms, half a turn {_ms(average.rotation_ns)} ms"
    )
    console.print()
    console.print(_places(found))
    if found.concurrency:
        console.print()
        console.print(_concurrency(found))
    console.print()
    console.print(_guarantees(found))
    for note in found.notes:
        console.print(f"note: {note}", markup=False)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="dim", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _places(found: model.Competitive) -> Table:
    table = _table("depth by place", "place", "MB/s", "depth kB", f"pages of {found.page_bytes // 1024:,} KiB")
    for depth in found.average.depths:
        rate, size = f"{depth.bytes_per_s / 1e6:,.2f}", f"{depth.depth_bytes / 1e3:,.1f}"
        table.add_row(depth.place, rate, size, f"{depth.depth_pages:,}")
    return table


def _concurrency(found: model.Competitive) -> Table:
    places = (f"{depth.place} kB" for depth in found.average.depths)
    table = _table("depth by requests at once", "requests", "seek ms", "switch ms", *places)
    for row in found.concurrency:
        depths = (f"{depth.depth_bytes / 1e3:,.1f}" for depth in row.depths)
        table.add_row(f"{row.requests:,}", _ms(row.seek_ns), _ms(row.switch_ns), *depths)
    return table


def _guarantees(found: model.Competitive) -> Table:
    table = _table(
        "cost of a stream over the optimum",
        "depth kB",
        "slow start kB",
        "less than",
        "supremum",
        "of streams just over",
    )
    for row in found.guarantees:
        depth = f"{row.depth_bytes / 1e3:,.1f}{' (pages)' if row.whole_pages else ' (exact)'}"
        slow = f"{row.slow_bytes / 1e3:,.1f} in {row.slow_prefetches}" if row.slow_prefetches else "none"
        bound = "" if row.bound is None else f"{row.bound:g}"
        above = "ever longer" if row.worst_above_bytes is None else f"{row.worst_above_bytes / 1e3:,.1f} kB"
        table.add_row(depth, slow, bound, f"{row.worst_ratio:.4f}", above)
    return table


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.3f}"

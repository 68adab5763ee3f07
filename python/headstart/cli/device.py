"""`headstart device`: show, plot, replay and import device models."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headstart import _input, devices
from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.listing import keys_text
from headstart.cli.options import keys_of
from headstart.cli.progress import watched
from headstart.cli.shown import plain, safe
from headstart.report import charts
from headstart.report import device as report

app = typer.Typer(invoke_without_command=True)


@app.callback()
def root(context: typer.Context) -> None:
    """Show a device's properties, plot it, replay measured requests on it, or import a drive's description.

    Example: headstart device show hp97560
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


Name = Annotated[
    str, typer.Argument(metavar="NAME|PROFILE", help="A name of `headstart list devices`, or a profile's path.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the device: buffer.size=1MiB. Repeatable."),
]
Png = Annotated[str | None, typer.Option("--png", metavar="FILE", help="Write a picture.")]


def tell_written(*targets: str | None) -> None:
    """Print the names of the written files."""
    for target in targets:
        if target is not None:
            typer.echo(f"wrote {plain(target)}")


@app.command("show")
def show(name: Name, settings: Set = None, json: options.Json = None) -> None:
    """Show a device's geometry, seek times, overheads, mean service times and transfer rates.

    Example: headstart device show hp97560 --json -
    """
    _input.name(name, "device")
    output.check_targets(json)
    found = watched(f"looking at {name}", lambda _: devices.device(name, keys=keys_of(settings)))
    if json is not None:
        output.write_json(json, output.as_json(found.to_dict()))
    if json != "-":
        print_device(output.console(), found)


RATE = "bytes_per_second"
TOLD = {"name", "rpm", "surfaces", "head_switch", "write_settle", "nominal_service", "zones", "seek"}
"""Keys of a drive with an arm that have their own lines in the output."""


def print_device(console: Console, found: devices.Device) -> None:
    """Print a device for people."""
    console.print(plain(found.title), style="bold", markup=False)
    console.print(plain(found.summary or found.profile or found.name), markup=False)
    if found.source:
        console.print(f"source: {plain(found.source)}", markup=False, style="dim")
    console.print()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in facts(found).items():
        table.add_row(safe(name), safe(value))
    console.print(table)
    if found.mechanics is not None:
        console.print()
        console.print(_zones(found.mechanics))


def facts(found: devices.Device) -> dict[str, str]:
    """Return the properties of a device by name."""
    told = {"profile": found.profile} if found.profile else {}
    told["capacity"] = _capacity(found.capacity_bytes)
    if found.mechanics is None:
        told["at once"] = f"{found.concurrency:,} request{'s' if found.concurrency > 1 else ''}"
    else:
        told.update(_mechanics(found.mechanics))
    own = {
        key: value
        for key, value in found.keys.items()
        if key not in told and (found.mechanics is None or key not in TOLD)
    }
    told.update(_key_line(key, value) for key, value in own.items() if key != "name")
    read = found.random_read_8kib
    parts = ("seek", "rotation", "transfer", "overhead", "wait")
    times = {part: getattr(read, f"{part}_ns") for part in parts}
    of = ", ".join(f"{part} {output.duration(time)}" for part, time in times.items() if time)
    told["random 8 KiB read"] = f"{output.duration(read.mean_ns)}: {of} (mean of {read.requests:,}, one at a time)"
    rates = found.sequential_bytes_per_s.items()
    name = "sequential read" if found.mechanics is None else "media rate"
    told[name] = ", ".join(f"{end.replace('_', ' ')} {_rate(rate)}" for end, rate in rates)
    for each in found.sequential_reads:
        shown = f"{each.zone} {_rate(each.bytes_per_s)} ({each.limit})"
        name = f"sequential {_size(each.bytes)} read"
        told[name] = f"{told[name]}, {shown}" if name in told else shown
    return told


def _mechanics(drive: devices.Mechanics) -> dict[str, str]:
    seek = drive.seek_ns
    one = "" if seek.single_cylinder is None else f"one cylinder {output.duration(seek.single_cylinder)}, "
    mean, full = output.duration(seek.mean), output.duration(seek.full_stroke)
    zones = "1 zone" if len(drive.zones) == 1 else f"{len(drive.zones)} zones"
    settle = f", writes settle {output.duration(drive.write_settle_ns)} longer" if drive.write_settle_ns else ""
    return {
        "rotation": f"{drive.rpm:,} rpm, {output.duration(drive.revolution_ns)} a turn",
        "geometry": f"{drive.cylinders:,} cylinders, {drive.surfaces} surfaces, {zones}",
        "seek": f"{one}mean of random pairs {mean}, full stroke {full}",
        "head switch": f"{output.duration(drive.head_switch_ns)}{settle}",
    }


def _zones(drive: devices.Mechanics) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("zone", "cylinders", "from", "sectors/track", "capacity", "MB/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for index, zone in enumerate(drive.zones):
        capacity = f"{zone.sectors * 512 / 1e9:,.2f} GB"
        rate = f"{zone.bytes_per_s / 1e6:,.2f}"
        counts = (zone.cylinders, zone.first_cylinder, zone.sectors_per_track)
        table.add_row(str(index), *(f"{count:,}" for count in counts), capacity, rate)
    return table


def _capacity(capacity_bytes: int | None) -> str:
    if capacity_bytes is None:
        return "no limit"
    decimal, binary = _scaled(capacity_bytes, 1000), _scaled(capacity_bytes, 1024)
    return f"{decimal} ({binary}), {capacity_bytes // 512:,} sectors of 512 bytes"


def _scaled(size: float, base: int) -> str:
    units = ("B", "kB", "MB", "GB", "TB") if base == 1000 else ("B", "KiB", "MiB", "GiB", "TiB")
    for unit in units[:-1]:
        if size < base:
            return f"{size:,.2f} {unit}"
        size /= base
    return f"{size:,.2f} {units[-1]}"


def _size(size: int) -> str:
    return f"{size >> 20} MiB" if size % 2**20 == 0 else f"{size / 1024:g} KiB"


def _rate(bytes_per_s: int) -> str:
    return f"{bytes_per_s / 1e6:,.2f} MB/s"


def _key_line(key: str, value: Any) -> tuple[str, str]:
    """Return a key of a device and its value as text, rates with a unit."""
    if isinstance(value, dict):
        rates = {name: _rate(rate) for name, rate in value.items() if name == RATE}
        return key.replace("_", " "), keys_text({**value, **rates})
    if key.endswith(RATE):
        return key.removesuffix(RATE).replace("_", " ") + "rate", _rate(value)
    return key.replace("_", " "), keys_text({"": value}).removeprefix("=")


@app.command("plot")
def plot(name: Name, settings: Set = None, png: Png = None, html: options.Html = None) -> None:
    """Plot a drive's seek curve and its transfer rate by position; for other devices, response and throughput by load.

    Example: headstart device plot hp97560 --png hp97560.png --html hp97560.html
    """
    if png is None and html is None:
        raise HeadstartError("device plot: nothing to write; allowed: --png FILE, --html FILE, or both")
    output.check_targets(png, html)
    charts.altair("device plot")
    _input.name(name, "device")
    keys = keys_of(settings)

    def draw(_: object) -> None:
        found = devices.device(name, keys=keys)
        chart = report.device_chart(found, devices.survey(name, keys=keys))
        if png is not None:
            output.write_bytes(Path(png), charts.png(charts.styled(chart)))
        if html is not None:
            output.write_text(Path(html), report.device_page(found, chart, facts(found)))

    watched(f"drawing {name}", draw)
    tell_written(png, html)


@app.command("replay")
@options.selecting
def replay(
    name: Name,
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A trace with addresses, preferably with measured service times.")
    ],
    settings: Set = None,
    format: options.Format = "auto",
    request_size: options.RequestSize = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of requests.")] = None,
    select: options.Selection = options.ALL,
    json: options.Json = None,
    png: Png = None,
    html: options.Html = None,
) -> None:
    """Serve a trace's requests one at a time on a device; show service times, their parts and the error.

    If the trace has measured service times, the command reports the RMS demerit: the root mean square of the distance
    between the cumulative distributions of measured and modelled service times. --png and --html plot both.

    Example: headstart device replay seagate-cheetah-9lp cheetah9LP.trace.xz --png cheetah9LP.png
    """
    _input.name(name, "device")
    _input.name(trace, "trace")
    output.check_targets(json, png, html)
    if png is not None or html is not None:
        charts.altair("device replay")
    keys = keys_of(settings)
    done = watched(
        f"replaying {trace}",
        lambda tell: devices.replay(
            name,
            trace,
            format=format,
            request_size=request_size,
            keys=keys,
            limit=limit,
            **select,
            progress=tell,
        ),
    )
    if png is not None or html is not None:
        chart = report.replay_chart(done)
        if png is not None:
            output.write_bytes(Path(png), charts.png(charts.styled(report.replay_picture(done, chart))))
        if html is not None:
            output.write_text(Path(html), report.replay_page(done, chart))
    if json is not None:
        output.write_json(json, output.as_json(done.to_dict()))
    if json != "-":
        print_replay(output.console(), done)
        tell_written(png, html)


def print_replay(console: Console, done: devices.Replay) -> None:
    """Print a replay for people."""
    console.print(plain(report.replay_title(done)), style="bold", markup=False)
    console.print(f"{done.requests:,} requests, issued {done.pace}", markup=False)
    console.print()
    table = Table(title="service times in ms", title_justify="left", title_style="dim", box=None, pad_edge=False)
    for index, column in enumerate(report.REPLAY_HEADER):
        table.add_column(column, justify="left" if index < 2 else "right", no_wrap=True)
    for row in report.replay_rows(done):
        table.add_row(*map(safe, row))
    console.print(table)
    console.print()
    parts = ((part.removesuffix("_ns"), time) for part, time in done.parts_ns_mean.items())
    said = ", ".join(f"{part} {output.duration(time)}" for part, time in parts if time)
    console.print(f"modelled mean {output.duration(done.modelled.all.mean_ns)}: {said}")
    if done.rms_demerit_ns is not None:
        share = "" if done.demerit_share is None else f", {done.demerit_share:.1%} of the measured mean"
        console.print(f"RMS demerit {done.rms_demerit_ns['all'] / 1e6:.3f} ms{share}", style="bold")


@app.command("import-diskspecs")
def import_diskspecs(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .parv, .diskspecs or .model file of DiskSim.")],
    disk: Annotated[
        str | None, typer.Option("--name", metavar="DISK", help="The disk, if the file has several.")
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="FILE|-", help="The profile to write; stdout with -.")] = "-",
) -> None:
    """Convert a drive's DiskSim parameters to a profile. Files that FILE sources are read too.

    A line on stderr names each parameter that affects timing and that a profile cannot express.

    Example: headstart device import-diskspecs cheetah9LP.parv --out cheetah9LP.toml
    """
    _input.name(file, "file")
    output.check_targets(out)
    imported = watched(f"reading {file}", lambda _: devices.import_diskspecs(file, disk=disk))
    for warning in imported.warnings:
        typer.echo(f"warning: {plain(warning)}", err=True)
    if out == "-":
        typer.echo(imported.profile, nl=False)
    else:
        output.write_text(Path(out), imported.profile)
        tell_written(out)

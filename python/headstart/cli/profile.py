"""`headstart profile`: a device's parameters, measured with reads."""

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from headstart import devices
from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.device import facts, tell_written
from headstart.cli.progress import LIVE_TIDY_S, watched
from headstart.cli.shown import plain, safe
from headstart.live import profile as profiling
from headstart.live.core import Record
from headstart.report import charts
from headstart.report import device as report
from headstart.sizes import bytes_text


@options.of_core("profile")
def profile(
    given: options.Given,
    out: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|-",
            help="The profile to write. Default: DEVICE's name with .toml, in the current folder.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing profile.")] = False,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Plot the profile on a self-contained HTML page.")
    ] = None,
    json: options.Json = None,
) -> None:
    """Measure a device with direct reads: seeks, rotation, rates, latency, parallelism, and a prefetch depth.

    The command never writes to the device. Nothing else should use the device during the measurement. The profile holds
    a model of the device: a drive with an arm, a solid-state drive, or storage behind a network. `simulate`, `compare`,
    `emulate`, `tune` and `device show` load it. Each number has an error estimate, and a set of reads that no parameter
    was fitted to gives the error of the whole model. Requires Linux; block devices require root. docs/profile.md
    describes the measurements and their accuracy.

    Of a URL it measures an object store: the time to the first byte, the rate of a connection, and how many requests at
    once are worth it. The requests transfer up to some gigabytes, which may cost money.

    Example: headstart profile /dev/sdb --output sdb.toml --plot sdb.html

    An object: headstart profile s3://bucket/data.bin --output store.toml
    """
    device = given["device"]
    target = out if out is not None else f"{Path(device).stem}.toml"
    check(target, force=force)
    output.check_targets(plot, json)
    options.check_files("profile", given, {"--output": target, "--plot": plot, "--json": json})
    if plot is not None:
        charts.altair("profile")
    if target == "-" and json == "-":
        raise HeadstartError(
            "--output - and --json -: only one of them can go to stdout; allowed: a file for the other"
        )
    with terminated():
        found = watched(
            f"opening {device}",
            lambda tell: profiling.profile(**given, progress=tell),
            tidy_s=LIVE_TIDY_S,
        )
    written = [write(found, target, force=force), draw(found, plot)]
    if json is not None:
        output.write_json(json, output.as_json(found))
    if "-" not in (target, json):
        print_found(output.console(), found)
        tell_written(*written)


def check(target: str, *, force: bool) -> None:
    """Refuse a profile that cannot be written, before the measurement starts."""
    if target == "-":
        return
    output.check_targets(target)
    if Path(target).exists() and not force:
        raise HeadstartError(f"{target}: exists already; allowed: another --output, or --force")


@contextmanager
def terminated() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C."""

    def stop(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def write(found: Record, target: str, *, force: bool) -> str | None:
    """Write the profile; return the file written, if any."""
    if target == "-":
        typer.echo(found.profile, nl=False)
        return None
    # Another process may have created the file in the meantime.
    check(target, force=force)
    output.write_text(Path(target), found.profile)
    return target


def draw(found: Record, target: str | None) -> str | None:
    """Draw the profile as `device plot` does; return the file written, if any."""
    if target is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{Path(found.device).stem}.toml"
        path.write_text(found.profile, encoding="utf-8")
        shown = devices.device(path)
        chart = report.device_chart(shown, devices.survey(path))
        output.write_text(Path(target), report.device_page(shown, chart, facts(shown)))
    return target


def print_found(console: Console, found: Record) -> None:
    """Print the results as tables."""
    seconds = output.seconds(found.elapsed_ns)
    console.print(plain(found.device), style="bold", markup=False)
    console.print(f"{bytes_text(found.capacity_bytes)}; {found.reads:,} reads in {seconds}", markup=False, style="dim")
    console.print()
    if profiling.is_object(found.device):
        rows = remote(found)
    else:
        rows = latency(found) | (flat(found) if found.arm is None else moving(found.arm)) | together(found)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in rows.items():
        table.add_row(name, safe(value))
    console.print(table)
    console.print()
    print_model(console, found.model)
    for note in found.notes:
        console.print(f"note: {plain(note)}", markup=False)
    if found.arm is not None:
        pages = found.arm.competitive_depth_pages
        depth = found.arm.competitive_depth_bytes / 1e3
        error = found.arm.competitive_depth_error_bytes / 1e3
        console.print(f"competitive depth: {depth:,.1f} +- {error:,.1f} kB, {pages:,} pages of 4 KiB", style="bold")
    else:
        seeks = "" if profiling.is_object(found.device) else "no seeks: "
        console.print(f"{seeks}the model is {found.model.name}", style="bold")


def print_model(console: Console, model: Record) -> None:
    """Print the numbers of a model without an arm, and how far the model is off."""
    check = model.check
    if model.name != "mechanical":
        numbers = Table(box=None, show_header=False, pad_edge=False)
        numbers.add_column(style="dim", no_wrap=True)
        numbers.add_column()
        for each in model.parameters:
            numbers.add_row(each.name, shown(each))
        console.print(numbers)
        console.print()
    console.print(
        f"held out: the model is off by {check.mean_error:.1%} on average, {check.largest_error:.1%} at most; "
        f"demerit {check.demerit:.1%}",
        markup=False,
    )
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("reads", "outstanding", "measured", "simulated", "off", "by chance", "demerit"):
        table.add_column(name, justify="left" if name == "reads" else "right")
    for row in check.held_out:
        table.add_row(
            f"{row.reads:,} of {row.request_bytes // 1024:,} KiB, {row.places.replace('-', ' ')}",
            f"{row.depth}",
            output.duration(round(row.measured_ns)),
            output.duration(round(row.simulated_ns)),
            f"{row.simulated_ns / row.measured_ns - 1:+.1%}",
            "" if row.chance_ns is None else f"{row.chance_ns / row.measured_ns:.1%}",
            "" if row.demerit is None else f"{row.demerit:.1%}",
        )
    console.print(table)
    console.print()


def shown(each: Record) -> str:
    """Return a number of a model with its unit and its error."""
    forms: dict[str, Callable[[float], str]] = {
        "ns": lambda value: output.duration(round(value)),
        "bytes/s": lambda value: f"{value / 1e6:,.1f} MB/s",
        "bytes": lambda value: bytes_text(round(value)),
    }
    form: Callable[[float], str] = forms.get(each.unit, lambda value: f"{value:,.0f}")
    return form(each.value) + ("" if each.error is None else f" +- {form(each.error)}")


def latency(found: Record) -> dict[str, str]:
    """Return the times of reads of 4 KiB."""
    times = found.latency
    buffered = "" if times.buffered_ns is None else f", again {output.duration(times.buffered_ns)}"
    near, far = output.duration(times.near_ns), output.duration(times.far_ns)
    return {"4 KiB read": f"anywhere {far}, nearby {near}{buffered} (medians)"}


def with_error(ns: int, error_ns: int) -> str:
    """Return a time and its error."""
    return f"{output.duration(ns)} +- {output.duration(error_ns)}"


def moving(arm: Record) -> dict[str, str]:
    """Return the properties of a drive with an arm."""
    rates = [zone.bytes_per_s / 1e6 for zone in arm.zones]
    first, last = arm.seeks[0], arm.seeks[-1]
    seek = with_error(arm.mean_seek_ns, arm.mean_seek_error_ns)
    rate = f"{arm.mean_bytes_per_s / 1e6:,.2f} +- {arm.mean_error_bytes_per_s / 1e6:,.2f} MB/s"
    bus = "not to be told" if arm.bus_bytes_per_s is None else f"{arm.bus_bytes_per_s / 1e6:,.1f} MB/s"
    return {
        "seek": f"mean {seek}; next track {output.duration(first.ns)}, "
        f"{last.tracks:,} tracks {output.duration(last.ns)}",
        "rotation": f"{with_error(arm.turn_ns, arm.turn_error_ns)} a turn, {arm.rpm:,} rpm",
        "overhead": with_error(arm.overhead_ns, arm.overhead_error_ns),
        "long read": f"mean {rate}; outer {rates[0]:,.2f}, inner {rates[-1]:,.2f}",
        "zones": f"{len(arm.zones)}, {arm.zones[0].sectors_per_track:,} to {arm.zones[-1].sectors_per_track:,} sectors "
        "a track",
        "buffer": f"{arm.segments} segments" if arm.segments else "none that is seen",
        "bus": bus,
    }


def flat(found: Record) -> dict[str, str]:
    """Return the properties of a device without an arm."""
    best = max(point.bytes_per_s for point in found.by_size)
    saturating = found.saturating_bytes or 0
    return {
        "arm": "none: reads take the same time wherever they are",
        "one at a time": f"{best / 1e6:,.1f} MB/s at most; within 5 % of that from {saturating // 1024:,} KiB on",
    }


def remote(found: Record) -> dict[str, str]:
    """Return the properties of an object store; its model has them with their errors."""
    alone, best = found.by_depth_long[0], max(found.by_depth_long, key=lambda point: point.bytes_per_s)
    gain = f"{best.bytes_per_s / alone.bytes_per_s:,.1f} times one" if alone.bytes_per_s else ""
    return {
        "4 KiB read": f"{output.duration(found.latency.far_ns)} (median)",
        f"{bytes_text(alone.request_bytes)} reads": f"{alone.bytes_per_s / 1e6:,.1f} MB/s one at a time; "
        f"{best.bytes_per_s / 1e6:,.1f} MB/s with {best.depth} at once, {gain}",
    } | together(found)


def together(found: Record) -> dict[str, str]:
    """Return the throughput of parallel reads."""
    best = max(point.requests_per_s for point in found.by_depth)
    reads = "1 outstanding" if found.saturating_depth == 1 else f"{found.saturating_depth} outstanding"
    near = 5 if found.arm is None else 10
    return {"4 KiB reads at once": f"at most {best:,.0f}/s; within {near} % of that from {reads} on"}

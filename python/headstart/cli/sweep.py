"""`headstart sweep`: every combination of a grid's values, on all cores or on a cluster."""

from pathlib import Path
from typing import Annotated

import typer

from headstart import sweeps
from headstart._core import HeadstartError
from headstart.cli import options, output, pages
from headstart.cli.progress import watched
from headstart.cli.shown import plain
from headstart.report.sweep import sweep_figures, sweep_page


@options.selecting
def sweep(
    grid: Annotated[
        Path, typer.Argument(metavar="GRID.toml", help="A scenario with a table `grid` of key paths and lists.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for results.parquet. An interrupted sweep in this folder is resumed."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes. Default: one per processor.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on the workers of this dask.distributed scheduler: tcp://HOST:8786."),
    ] = None,
    overrides: options.Set = None,
    select: options.Selection = options.ALL,
    html: options.Html = None,
    figures: options.Figures = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the number of runs, without running them.")] = False,
) -> None:
    """Run every combination of a grid's values and write one row per run to DIR/results.parquet.

    A failed run has a row with its error. The file does not depend on the number of workers, byte for byte. A sweep
    that was killed can be restarted: it does not repeat finished runs, and its file is the same.

    Example: headstart sweep examples/sweep.toml --out sweep
    """
    found = sweeps.read(grid, [*(overrides or []), *options.selected(select)])
    if dry_run:
        found.check()
        sizes = " x ".join(f"{len(values)} {plain(key)}" for key, values in found.axes.items())
        typer.echo(f"{len(found):,} runs: {sizes}")
        return
    if out is None:
        raise HeadstartError("--out: missing; allowed: a folder for results.parquet, or --dry-run")
    pages.check("sweep", html, figures)
    done = watched(
        f"sweep: {len(found):,} runs",
        lambda tell: sweeps.run(
            found,
            out,
            workers=workers,
            cluster=cluster,
            tell=lambda tally: tell(tally.share, f"sweep: {tally.text()}"),
        ),
        time_left=True,
    )
    show(done)
    pages.write(html, figures, lambda: sweep_page(plain(grid.name), done), lambda: sweep_figures(done))


def show(done: sweeps.Sweep) -> None:
    """Print a summary of the runs and the path of the results."""
    tally = done.tally
    failed = done.failed()
    typer.echo(f"{plain(done.path)}: {tally.runs:,} runs" + (f", {len(failed):,} failed" if failed else ""))
    if failed:
        typer.echo(f"first failure: {plain(failed[0])}")
    if tally.before:
        typer.echo(f"{tally.before:,} of them had finished before")
    if tally.done:
        where = f"{tally.workers} worker{'s' if tally.workers != 1 else ''}"
        memory = f", peak memory {tally.peak_bytes / 1024**2:,.0f} MiB" if tally.has_peaks else ""
        rate = f"{tally.done / max(done.elapsed_s, 1e-9):,.1f} runs/s"
        typer.echo(f"{output.seconds(round(done.elapsed_s * 1e9))} with {where}, {rate}{memory}")

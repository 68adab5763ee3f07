"""`headstart hints`: show, merge and check recordings."""

from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from headstart.cli import options, output, pages
from headstart.cli.record import described, notes
from headstart.cli.shown import plain, safe
from headstart.live import record as recording
from headstart.report.recording import file_name, recording_figures, recording_page

app = typer.Typer(invoke_without_command=True)

FILES_SHOWN = 12
COLUMNS = 40
SHADES = " ░▒▓█"

Recording = Annotated[Path, typer.Argument(metavar="FILE", help="A recording of `headstart record`.")]


@app.callback()
def root(context: typer.Context) -> None:
    """Show recordings of the pages that commands read, merge them, and check whether they are still valid.

    Example: headstart hints show git.hints
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("show")
def show(
    file: Recording, json: options.Json = None, html: options.Html = None, figures: options.Figures = None
) -> None:
    """Show the contents of a recording: how much of each file was read, and when.

    The chart has a row per file and a column per time interval. Darker cells have more pages.

    Example: headstart hints show git.hints
    """
    output.check_targets(json)
    pages.check("hints show", html, figures)
    found = recording.show(file)
    pages.write(html, figures, lambda: recording_page(found), lambda: recording_figures(found))
    if json is not None:
        output.write_json(json, output.as_json(found))
    if json == "-":
        return
    console = output.console()
    about = found["about"]
    caches = "cold caches" if about["cold"] else "caches as they were"
    count = len(found["processes"])
    merged = f", merged of {about['recordings']}" if about["recordings"] > 1 else ""
    console.print(plain(" ".join(about["command"])), markup=False)
    console.print(
        f"{output.seconds(about['elapsed_ns'])}, exit status {about['exit_status']}, {caches}, "
        f"{count} process{'es' * (count != 1)}{merged}",
        markup=False,
    )
    console.print(described(found["summary"]), markup=False)
    for note in notes(found["summary"]):
        console.print(note, markup=False)
    console.print(_picture(found))


@app.command("merge")
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Recordings of one command.")],
    target: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write.", show_default=False)
    ],
    share: Annotated[
        float, typer.Option(metavar="SHARE", help="Keep pages that occur in at least this share of the recordings.")
    ] = 0.5,
    json: options.Json = None,
) -> None:
    """Merge recordings: keep the pages that occur in at least half of them.

    The pages keep the order of the recording that has the most of them; docs/record.md gives the rule.

    Example: headstart hints merge -o git.hints monday.hints tuesday.hints
    """
    output.check_targets(json)
    output.check_file(str(target))
    done = recording.merge(files, target, share=share)
    if json is not None:
        output.write_json(json, output.as_json(done))
    if json != "-":
        output.console().print(f"{plain(target)}: {described(done['summary'])}", markup=False)


@app.command("check")
def check(file: Recording, json: options.Json = None) -> None:
    """List recorded files that have since been removed, replaced or changed. The exit status is 1 if any have.

    Example: headstart hints check git.hints
    """
    output.check_targets(json)
    found = recording.check(file)
    if json is not None:
        output.write_json(json, output.as_json(found))
    if json != "-":
        console = output.console()
        for stale in found["stale"]:
            console.print(f"{CHANGES[stale['change']]}: {plain(stale['path'])}", markup=False)
        console.print(
            f"{len(found['stale']):,} of {found['files']:,} files are not as they were recorded", markup=False
        )
    if found["stale"]:
        raise typer.Exit(1)


@app.command("export")
def export(
    file: Recording,
    form: Annotated[
        Literal["estargz", "nydus", "soci"], typer.Option("--format", help="The tool that reads the list.")
    ],
    root: Annotated[
        str, typer.Option(metavar="FOLDER", help="The image's root on the machine that recorded it.")
    ] = "/",
    target: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The file to write. Default: stdout.")
    ] = None,
) -> None:
    """Write the recorded files as a prefetch list for a lazily loaded container image, in order of their first read.

    Formats: estargz (nerdctl image convert --estargz-record-in), nydus (nydusify convert --prefetch-patterns) and soci
    (soci create --prefetch-files-json).

    Example: headstart hints export app.hints --format soci -o prefetch.json
    """
    if target is not None:
        output.check_file(str(target))
    with options.named({"format": "--format", "root": "--root"}):
        text = recording.export(file, form, root=root)
    if target is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(target, text)


CHANGES = {
    "missing": "missing",
    "replaced": "replaced by another file",
    "size": "another size",
    "time": "written since",
}


def _picture(found: dict[str, Any]) -> Table:
    """Return a row for each of the files with the most pages, and a column for each time interval."""
    of_file: dict[int, int] = defaultdict(int)
    when: dict[int, list[int]] = defaultdict(lambda: [0] * COLUMNS)
    elapsed = max(found["about"]["elapsed_ns"], 1)
    for read in found["reads"]:
        if read["kind"] != "read-ahead":
            of_file[read["file"]] += read["pages"]
            column = min(read["time_ns"] * COLUMNS // elapsed, COLUMNS - 1)
            when[read["file"]][column] += read["pages"]
    table = Table(box=None, pad_edge=False)
    table.add_column("MB", justify="right", no_wrap=True)
    table.add_column(f"when, of {output.seconds(elapsed)}", no_wrap=True, min_width=COLUMNS)
    table.add_column("file", overflow="fold")
    largest = sorted(of_file, key=lambda file: -of_file[file])
    most = max((max(row) for row in when.values()), default=1)
    # In order of first read, as in the table of files.
    for file in sorted(largest[:FILES_SHOWN]):
        row = "".join(_shade(each, most) for each in when[file])
        table.add_row(_megabytes(of_file[file], found), row, safe(file_name(found["files"][file])))
    rest = largest[FILES_SHOWN:]
    if rest:
        row = "".join(_shade(sum(when[file][at] for file in rest), most) for at in range(COLUMNS))
        table.add_row(_megabytes(sum(of_file[file] for file in rest), found), row, f"{len(rest):,} more files")
    return table


def _megabytes(pages: int, found: dict[str, Any]) -> str:
    return f"{pages * found['about']['page_bytes'] / 1e6:,.2f}"


def _shade(pages: int, most: int) -> str:
    if pages == 0:
        return SHADES[0]
    return SHADES[min(1 + 3 * pages // max(most, 1), len(SHADES) - 1)]

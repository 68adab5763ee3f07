"""`headstart example`: scenarios and recorded traces to try the commands on."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from headstart import _examples
from headstart._core import HeadstartError
from headstart.cli import output
from headstart.cli.shown import plain, safe


def example(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The example to write, or all. Default: list the examples.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write into FOLDER/examples. Default: the working folder.")
    ] = None,
) -> None:
    """List the examples, or write one together with its traces.

    The files are written under examples/, where the example commands in every --help expect them.

    Example: headstart example two-levels
    """
    found = _examples.examples()
    if name is None:
        if out is not None:
            raise HeadstartError("--out: needs the name of an example; allowed: headstart example NAME --out FOLDER")
        table = Table(box=None, pad_edge=False)
        table.add_column("name", style="bold", no_wrap=True)
        table.add_column("what it is", overflow="fold")
        for each in found.values():
            table.add_row(safe(each.name), safe(each.about))
        output.console().print(table)
        return
    folder = out or Path()
    if out is not None and not out.is_dir():
        raise HeadstartError(f"{plain(out)}: no such folder; allowed: --out with a folder that exists")
    for path in _examples.write(name, folder):
        typer.echo(f"wrote {plain(path)}")
    if name != "all":
        where = "" if out is None else f"cd {plain(out)}; "
        typer.echo(f"next: {where}{found[name].command}")

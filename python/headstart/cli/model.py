"""`headstart model`: models in closed form. One file for each command, one line here."""

import typer

from headstart.cli import model_competitive, model_fs, model_open

app = typer.Typer(invoke_without_command=True)
app.command("fs")(model_fs.file_system)
app.command("check")(model_fs.check)
app.command("open")(model_open.open_arrivals)
app.command("competitive")(model_competitive.competitive)


@app.callback()
def root(context: typer.Context) -> None:
    """Ask a model in closed form: an answer without a simulation.

    Example: headstart model fs examples/file-system.toml --advise
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())

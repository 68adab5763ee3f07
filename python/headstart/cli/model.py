"""`headstart model`: models in closed form. One file for each command, one line here."""

import typer

from headstart.cli import model_competitive

app = typer.Typer(invoke_without_command=True)
app.command("competitive")(model_competitive.competitive)


@app.callback()
def root(context: typer.Context) -> None:
    """Ask a model in closed form: an answer without a simulation.

    Example: headstart model competitive ibm-36gb-10k
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())

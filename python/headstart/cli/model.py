"""`headstart model`: closed-form models. Each command has its own file and one line here."""

import typer

from headstart.cli import model_competitive, model_fs, model_open, model_trace

app = typer.Typer(invoke_without_command=True)
app.command("fs")(model_fs.file_system)
app.command("check")(model_fs.check)
app.command("open")(model_open.open_arrivals)
app.command("trace")(model_trace.traced)
app.command("competitive")(model_competitive.competitive)


@app.callback()
def root(context: typer.Context) -> None:
    """Evaluate closed-form models, without a simulation.

    Example: headstart model fs examples/file-system.toml --advise
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())

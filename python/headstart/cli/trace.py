"""`headstart trace`: what a trace holds, conversion, generation."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from headstart import traces
from headstart.cli import options, output, record
from headstart.cli.progress import watched
from headstart.cli.shown import safe
from headstart.comparison import policy_keys

app = typer.Typer(invoke_without_command=True)


@app.callback()
def root(context: typer.Context) -> None:
    """Look into a trace, convert it, or generate one.

    Example: headstart trace info examples/traces/cscope1.csv.xz
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("record", context_settings={"allow_interspersed_args": False})(record.record_trace)

Trace = Annotated[
    Path, typer.Argument(metavar="TRACE", help="A trace; .gz, .bz2, .xz and .zst are decompressed while reading.")
]
Target = Annotated[Path, typer.Argument(metavar="TARGET", help="The file to write.")]
To = Annotated[str, typer.Option("--to", help="csv or oracleGeneral.")]


@app.command("info")
def info(
    trace: Trace,
    format: options.Format = "auto",
    block_size: options.BlockSize = "8KiB",
    request_size: options.RequestSize = None,
    json: options.Json = None,
) -> None:
    """Summarize a trace: requests, distinct blocks, shares, time span, and the fields that it carries.

    Example: headstart trace info examples/traces/cscope1.csv.xz --json -
    """
    output.check_targets(json)
    found = watched(
        f"reading {trace}",
        lambda _: traces.trace_info(trace, format=format, block_size=block_size, request_size=request_size),
    )
    _give(found, json)


@app.command("convert")
def convert(
    trace: Trace,
    target: Target,
    to: To = "csv",
    format: options.Format = "auto",
    block_size: options.BlockSize = "8KiB",
    request_size: options.RequestSize = None,
    json: options.Json = None,
) -> None:
    """Write a trace in another format.

    Example: headstart trace convert examples/traces/cscope1.csv.xz cscope1.bin --to oracleGeneral
    """
    output.check_targets(json)
    output.check_file(str(target))
    written = watched(
        f"converting {trace}",
        lambda _: traces.trace_convert(
            trace, target, to=to, format=format, block_size=block_size, request_size=request_size
        ),
    )
    _give(written, json)


@app.command("generate")
def generate(
    generator: Annotated[str, typer.Argument(metavar="GENERATOR", help="A name of `headstart list workloads`.")],
    target: Target,
    to: To = "csv",
    keys: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A key of the generator, as in blocks=5000. Repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 1,
    block_size: options.BlockSize = "8KiB",
    json: options.Json = None,
) -> None:
    """Write what a workload generator makes.

    Example: headstart trace generate zipf zipf.csv --set requests=50000 --set alpha=0.9 --seed 7
    """
    own = policy_keys(":".join([generator, *(keys or [])]))
    own.pop("name")
    output.check_targets(json)
    output.check_file(str(target))
    written = watched(
        f"generating {target}",
        lambda _: traces.trace_generate(generator, target, to=to, keys=own, seed=seed, block_size=block_size),
    )
    _give(written, json)


def _give(facts: dict[str, Any], json: str | None) -> None:
    if json == "-":
        output.write_json(json, output.as_json(facts))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        if value is not None:
            table.add_row(name.replace("_ns", "").replace("_", " "), safe(_readable(name, value)))
    output.console().print(table)
    if json is not None:
        output.write_json(json, output.as_json(facts))


def _readable(name: str, value: Any) -> str:
    match value:
        case dict():
            return ", ".join(key for key, carried in value.items() if carried) or "nothing more"
        case bool() | str():
            return escape(str(value))
        case float() if name.endswith("_share"):
            return f"{value:.1%}"
        case int() | float() if "_ns" in name:
            return output.seconds(round(value))
        case int():
            return f"{value:,}"
        case _:
            return str(value)

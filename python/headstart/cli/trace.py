"""`headstart trace`: summarize, convert, filter and generate traces."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from headstart import trace as traces
from headstart.cli import options, output, pages, record
from headstart.cli.progress import watched
from headstart.cli.shown import plain
from headstart.policies import policy_keys
from headstart.report.trace import ANALYSIS, in_words, info_figures, info_page
from headstart.sizes import bytes_text

app = typer.Typer(invoke_without_command=True)


@app.callback()
def root(context: typer.Context) -> None:
    """Summarize, record, convert, filter or generate a trace.

    Example: headstart trace info examples/traces/cscope1.csv.xz
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("record", context_settings={"allow_interspersed_args": False})(record.record_trace)

Trace = Annotated[
    Path, typer.Argument(metavar="TRACE", help="A trace. Files in .gz, .bz2, .xz and .zst are decompressed on the fly.")
]
Target = Annotated[Path, typer.Argument(metavar="TARGET", help="The file to write.")]
To = Annotated[str, typer.Option("--to", help="csv or oracleGeneral.")]


@app.command("info")
@options.selecting
def info(
    trace: Trace,
    format: options.Format = "auto",
    block_size: options.BlockSize = "8KiB",
    request_size: options.RequestSize = None,
    select: options.Selection = options.ALL,
    json: options.Json = None,
    html: options.Html = None,
    figures: options.Figures = None,
) -> None:
    """Summarize a trace: requests, distinct blocks, time span, sizes, popularity, reuse, shares over time.

    Example: headstart trace info examples/traces/cscope1.csv.xz --html cscope1.html
    """
    output.check_targets(json)
    pages.check("trace info", html, figures)
    found = watched(
        f"reading {trace}",
        lambda tell: traces.trace_info(
            trace,
            format=format,
            block_size=block_size,
            request_size=request_size,
            **select,
            progress=tell,
        ),
    )
    _give(found, json, in_words(found))
    pages.write(html, figures, lambda: info_page(str(trace), found, _facts(found)), lambda: info_figures(found))


@app.command("convert")
@options.selecting
def convert(
    trace: Trace,
    target: Target,
    to: To = "csv",
    format: options.Format = "auto",
    block_size: options.BlockSize = "8KiB",
    request_size: options.RequestSize = None,
    select: options.Selection = options.ALL,
    json: options.Json = None,
) -> None:
    """Write a trace in another format.

    Example: headstart trace convert examples/traces/cscope1.csv.xz cscope1.bin --to oracleGeneral
    """
    output.check_targets(json)
    output.check_file(str(target))
    written = watched(
        f"converting {trace}",
        lambda tell: traces.trace_convert(
            trace,
            target,
            to=to,
            format=format,
            block_size=block_size,
            request_size=request_size,
            **select,
            progress=tell,
        ),
    )
    _give(written, json)


@app.command("filter")
@options.selecting
def filter_trace(
    trace: Trace,
    target: Annotated[Path, typer.Option("--output", "-o", metavar="TARGET", help="The file to write.")],
    cache: Annotated[str, typer.Option(help="Size of the cache: 10MiB, or a number of blocks.")],
    policy: Annotated[
        str,
        typer.Option(
            help="The cache's replacement: a name of `headstart list replacements` that does not need the future."
        ),
    ] = "lru",
    to: To = "csv",
    format: options.Format = "auto",
    block_size: options.BlockSize = "8KiB",
    request_size: options.RequestSize = None,
    select: options.Selection = options.ALL,
    json: options.Json = None,
) -> None:
    """Write the requests that miss in a cache in front of the storage, with their times.

    Example: headstart trace filter examples/traces/cscope1.csv.xz --cache 4MiB -o below.csv
    """
    output.check_targets(json)
    output.check_file(str(target))
    written = watched(
        f"filtering {trace}",
        lambda tell: traces.trace_filter(
            trace,
            target,
            cache=cache,
            policy=policy,
            to=to,
            format=format,
            block_size=block_size,
            request_size=request_size,
            **select,
            progress=tell,
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
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the generator: blocks=5000. Repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 1,
    block_size: options.BlockSize = "8KiB",
    json: options.Json = None,
) -> None:
    """Generate a trace with a workload generator.

    Example: headstart trace generate zipf zipf.csv --set requests=50000 --set alpha=0.9 --seed 7
    """
    own = policy_keys(":".join([generator, *(keys or [])]))
    own.pop("name")
    output.check_targets(json)
    output.check_file(str(target))
    written = watched(
        f"generating {target}",
        lambda tell: traces.trace_generate(
            generator, target, to=to, keys=own, seed=seed, block_size=block_size, progress=tell
        ),
    )
    _give(written, json)


def _give(facts: dict[str, Any], json: str | None, words: Mapping[str, str] | None = None) -> None:
    if json == "-":
        output.write_json(json, output.as_json(facts))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in {**_facts(facts), **(words or {})}.items():
        table.add_row(name, escape(text))
    output.console().print(table)
    if json is not None:
        output.write_json(json, output.as_json(facts))


def _facts(facts: dict[str, Any]) -> dict[str, str]:
    """Return the facts as text."""
    shown = {name: value for name, value in facts.items() if value is not None and name not in ANALYSIS}
    return {name.replace("_ns", "").replace("_", " "): plain(_readable(name, value)) for name, value in shown.items()}


def _readable(name: str, value: Any) -> str:
    match value:
        case dict():
            return ", ".join(key for key, carried in value.items() if carried) or "nothing more"
        case list():
            return ", ".join(map(str, value)) or "nothing"
        case bool() | str():
            return str(value)
        case float() if name.endswith("_share"):
            return f"{value:.1%}"
        case int() | float() if "_ns" in name:
            return output.seconds(round(value))
        case int() if name.endswith("bytes"):
            return bytes_text(value)
        case int():
            return f"{value:,}"
        case _:
            return str(value)

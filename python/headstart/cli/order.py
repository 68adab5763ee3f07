"""`headstart advise --order`: which cache a reader needs whose order is known."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.progress import watched

PANEL = "A known order, without a trace"
Order = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="SAMPLER|FILE",
        help="Compare caches for a reader that knows its order: shuffled, sequential, weighted[:SPREAD], groups:K, "
        "windows:K, or a file with an item id a line, perhaps followed by its size.",
        rich_help_panel=PANEL,
    ),
]
Items = Annotated[int | None, typer.Option(help="Items of the sampler.", rich_help_panel=PANEL)]
Epochs = Annotated[
    int | None, typer.Option(help="Epochs. Default: 5; of a file 1.", show_default=False, rich_help_panel=PANEL)
]
Nodes = Annotated[
    int | None,
    typer.Option(help="Nodes that share each epoch, each with a cache. Default: 1.", rich_help_panel=PANEL),
]
Neighbours = Annotated[
    bool | None,
    typer.Option(
        "--neighbours",
        help="Also compute what the store delivers to 1, 2, 4, ... --nodes nodes that serve each other's misses.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
Sizes = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE|FILE", help="Size of an item: 128KiB, or a file with one a line.", rich_help_panel=PANEL
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(metavar="FILE", readable=False, help="Weights of weighted, one a line.", rich_help_panel=PANEL),
]
OWN = ("items", "epochs", "nodes", "neighbours", "sizes", "weights")
SHARED = ("order", "cache", "seed", "json")


def check_without(given: Mapping[str, Any]) -> None:
    """Refuse options of an order if none is given."""
    for key in OWN:
        if given[key] is not None:
            raise HeadstartError(f"--{key}: given without --order; allowed: beside --order SAMPLER|FILE")


def advise_order(command: Callable[..., None], given: Mapping[str, Any]) -> None:
    """Run `advise` for a known order; `given` has all of the parameters of `command`."""
    for key, parameter in inspect.signature(inspect.unwrap(command)).parameters.items():
        if key not in (*OWN, *SHARED) and given[key] != parameter.default:
            what = "TRACE" if key == "trace" else f"--{key.replace('_', '-')}"
            what = "--set" if key == "overrides" else "--path, --pid, --process" if key == "select" else what
            allowed = ", ".join(f"--{each}" for each in (*SHARED[1:], *OWN))
            raise HeadstartError(f"{what}: given beside --order, which reads no trace; allowed: {allowed}")
    # Imported late, so that the help of `advise` does not load it.
    from headstart.advice import order as advice
    from headstart.report.order import order_shown

    cache, json = given["cache"], given["json"]
    output.check_targets(json)
    with options.at_options({key: f"--{key}" for key in (*OWN, *SHARED)}):
        done = watched(
            f"comparing caches for {given['order']}",
            lambda tell: advice.advise_order(
                given["order"],
                **{key: given[key] for key in OWN if given[key] is not None},
                cache=None if cache is None else options.names("--cache", cache),
                seed=given["seed"],
                progress=tell,
            ),
        )
    if json != "-":
        order_shown(output.console(), done)
    if json is not None:
        output.write_json(json, output.as_json(done.to_dict()))

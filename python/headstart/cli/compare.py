"""`headstart compare`: policies side by side on one trace."""

from typing import Annotated

import typer

from headstart._core import HeadstartError
from headstart.cli import options, output, pages
from headstart.cli.progress import watched
from headstart.report.comparison import comparison_figures, comparison_page
from headstart.report.console import comparison_shown
from headstart.runs.compare import DEFAULT_POLICIES
from headstart.runs.compare import plan as planned
from headstart.runs.plan import DEFAULT_CACHE, DEFAULT_DEVICE
from headstart.runs.rows import Refusal
from headstart.trace import selection

OPTIONS = {
    "seed": "--seed",
    "workload.trace": "TRACE",
    "workload.generator": "--generator",
    **{
        f"workload.{key}": f"--{key.replace('_', '-')}"
        for key in (
            "format",
            "block_size",
            "request_size",
            "compute",
            "compute_total",
            "placement",
            "addresses",
            "writes",
            "limit",
        )
    },
    **dict.fromkeys(("cache.blocks", "cache.size", "cache.footprint"), "--cache"),
    **dict.fromkeys(("policy.name", "policy.replacement", "policies"), "--policies"),
    "coordinators": "--coordinators",
    "device.model": "--device",
    "device.count": "--disks",
    "device.scheduler": "--scheduler",
    "host.driver_overhead": "--driver-overhead",
}
"""The option that sets each key of the scenario."""

WORKLOAD = "Workload"
MACHINE = "Machine"
CACHE = "Sizes (10MiB), blocks (1280), or shares of the distinct blocks (5%), separated by commas."

Trace = Annotated[
    str | None,
    typer.Argument(
        metavar="TRACE", help="A trace file, or a SCENARIO.toml that supplies the other settings; or use --generator."
    ),
]
Generator = Annotated[
    str | None,
    typer.Option(
        help="Generate the workload instead of reading TRACE: a name of `headstart list workloads`.",
        rich_help_panel=WORKLOAD,
    ),
]
Format = Annotated[str | None, typer.Option(help="A name of `headstart list formats`.", rich_help_panel=WORKLOAD)]
BlockSize = Annotated[
    str | None,
    typer.Option(
        help='Size of a block, or "object" for the trace\'s own units. Default: 8KiB.', rich_help_panel=WORKLOAD
    ),
]
RequestSize = Annotated[
    str | None,
    typer.Option(help="Request size, for a trace that has offsets but no sizes: 4KiB.", rich_help_panel=WORKLOAD),
]
Writes = Annotated[
    str | None,
    typer.Option(
        help="Treatment of writes: back (they take frames and no process waits for them), through, skip or as-read. "
        "Default: back.",
        rich_help_panel=WORKLOAD,
    ),
]
Compute = Annotated[
    str | None,
    typer.Option(help='Think time after each reference: trace, "1ms", "exp:1ms".', rich_help_panel=WORKLOAD),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Maximum number of requests.", rich_help_panel=WORKLOAD)]


@options.selecting
def compare(
    trace: Trace = None,
    policies: Annotated[
        str | None,
        typer.Option(
            help="Names, separated by commas. demand:min selects a replacement, aggressive:batch_size=8 sets a key, "
            "and the exit status is 2 if a named policy does not run. "
            f"linux/ra sets the policies of two levels. Default: {','.join(DEFAULT_POLICIES)}."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Names of `headstart list devices`, or profiles' paths, separated by commas. "
            f"Default: {DEFAULT_DEVICE}."
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(help=f"{CACHE} Default: {DEFAULT_CACHE}."),
    ] = None,
    disks: Annotated[str | None, typer.Option(help="Disk counts, separated by commas. Default: 1.")] = None,
    coordinators: Annotated[
        str | None,
        typer.Option(help="Names, separated by commas, for a SCENARIO.toml with several levels: none,du,pfc."),
    ] = None,
    generator: Generator = None,
    format: Format = None,
    block_size: BlockSize = None,
    request_size: RequestSize = None,
    compute: Compute = None,
    compute_total: Annotated[
        str | None, typer.Option(help="Scale think times to this total: 99.9s.", rich_help_panel=WORKLOAD)
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(help="Placement of files: address, table-order, random-groups or ffs.", rich_help_panel=WORKLOAD),
    ] = None,
    addresses: Annotated[
        str | None,
        typer.Option(
            help="Handling of addresses beyond the device: auto, error, compact or compact-chunks. Default: auto.",
            rich_help_panel=WORKLOAD,
        ),
    ] = None,
    writes: Writes = None,
    issue: Annotated[
        str | None,
        typer.Option(
            help="Issue requests whole or block by block: whole or blocks. Default: whole.",
            rich_help_panel=WORKLOAD,
        ),
    ] = None,
    limit: Limit = None,
    select: options.Selection = options.ALL,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed. Default: 1.", rich_help_panel=WORKLOAD)] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A name of `headstart list schedulers`.", rich_help_panel=MACHINE)
    ] = None,
    driver_overhead: Annotated[
        str | None,
        typer.Option(
            help="Processor time per device request. Default: by the device's class.",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Parallel runs. Default: one per processor.", rich_help_panel=MACHINE),
    ] = None,
    overrides: options.Set = None,
    json: options.Json = None,
    html: options.Html = None,
    figures: options.Figures = None,
) -> None:
    """Compare policies on one trace over devices, cache sizes and disk counts, and show where the time goes.

    Savings are relative to demand fetching. * marks the fastest policy, + the fastest that does not know the future.
    "above bound" is the distance to a lower bound of the elapsed time. Recorded think times are those of the recording
    machine; --compute-total scales them.

    Example: headstart compare examples/traces/cscope2.csv.xz --policies demand,linux,forestall --device nvme,sata-ssd

    Levels: headstart compare examples/two-levels.toml --coordinators none,du,pfc
    """
    output.check_targets(json)
    pages.check("compare", html, figures)
    given = {
        "format": format,
        "block_size": block_size,
        "request_size": request_size,
        "compute": compute,
        "compute_total": compute_total,
        "placement": placement,
        "addresses": addresses,
        "writes": writes,
        "limit": limit,
    }
    with options.named(OPTIONS):
        plan = planned(
            source(trace, generator),
            policies=_names("--policies", policies),
            disks=None if disks is None else options.numbers("--disks", disks),
            cache=_names("--cache", cache),
            device=_names("--device", device),
            coordinators=_names("--coordinators", coordinators),
            scheduler=scheduler,
            driver_overhead=driver_overhead,
            issue=issue,
            workload={key: value for key, value in given.items() if value is not None} | selection(**select),
            seed=seed,
            overrides=overrides or [],
        )
        done = watched(f"comparing on {trace or generator}", lambda tell: plan.run(jobs=jobs, progress=tell))
    # Printed first, so that a file that cannot be written does not lose the result.
    if json != "-":
        comparison_shown(output.console(wide=True), done)
    if json is not None:
        output.write_json(json, output.as_json(done.to_dict()))
    pages.write(html, figures, lambda: comparison_page(done), lambda: comparison_figures(done))
    refused = next((case for case in done.cases if isinstance(case, Refusal)), None)
    if policies is not None and refused is not None:
        raise HeadstartError(f"--policies: {refused.policy} does not run: {refused.reason}")


def _names(option: str, text: str | None) -> list[str] | None:
    return None if text is None else options.names(option, text)


def source(trace: str | None, generator: str | None) -> str | dict[str, str]:
    """Return the workload given by TRACE or --generator.

    Raises:
        HeadstartError: Neither or both are given.
    """
    match trace, generator:
        case str(), None:
            return trace
        case None, str():
            return {"generator": generator}
        case None, None:
            raise HeadstartError("TRACE: missing; allowed: a trace file, or --generator NAME")
        case _:
            raise HeadstartError("--generator: given beside TRACE; allowed: one of the two")

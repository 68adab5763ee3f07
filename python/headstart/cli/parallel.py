"""`headstart parallel`: one parallel program without and with idle-time prefetching, and its waits by process.

`simulated` makes the two runs. Live runs have results of the same shape and are shown the same way.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headstart import simulation
from headstart._core import HeadstartError
from headstart.cli import options, output
from headstart.cli.live import beside, check_options
from headstart.cli.progress import LIVE_TIDY_S, Tell, watched
from headstart.cli.shown import plain
from headstart.live.parallel import play
from headstart.simulation import Result

PAPER: Mapping[str, Any] = {
    "workload": {"compute": "exp:30ms", "block_size": "1KiB"},
    "process": {"count": 20, "pattern": "gw", "barrier": {"every": 10, "scope": "process"}},
    "cache": {"blocks": 40},
    "policy": {"name": "rapid-transit"},
    "device": {
        "model": {"name": "uniform", "fetch_time": "30ms"},
        "count": 20,
        "stripe_unit": "1KiB",
        "scheduler": "fcfs",
    },
}
"""The setting of Kotz and Ellis, sections 5.1 and 5.4: 20 processes read 2000 blocks together."""

ACTIONS = (
    "prefetch_action",
    "action_issues",
    "min_time",
    "min_lead",
    "buffers",
    "for_others",
    "prefetch_for",
    "predictor",
    "idle_order",
    "min_slack",
    "io_processors",
    "contention_scope",
)
"""Keys of [process] that are only valid with prefetching."""

INTERVALS = 24
"""Number of intervals shown; --json has all."""


def parallel(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SCENARIO.toml]", help="A scenario with a section `process`. Default: the setting of kotz-ellis."
        ),
    ] = None,
    overrides: options.Set = None,
    json: options.Json = None,
    live: Annotated[
        bool, typer.Option("--live", help="Run it in real time, with a thread per process and per in-memory disk.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="With --live: also simulate the run, and show both.")
    ] = False,
    speed: Annotated[
        float | None, typer.Option("--speed", metavar="X", help="With --live: run X times as fast as the scenario.")
    ] = None,
) -> None:
    """Run a parallel program without and with prefetching in its idle time, and show the waits between processes.

    Example: headstart parallel --set process.pattern=lw --set process.barrier=none --set workload.compute=0ms

    Live: headstart parallel --live --compare --speed 2
    """
    output.check_targets(json)
    check_options(live, compare, speed)
    if live:
        _live(scenario or PAPER, overrides or [], json, compare=compare, speed=1.0 if speed is None else speed)
        return
    text = f"running {scenario or 'the setting of kotz-ellis'}"
    without, prefetching = watched(text, lambda tell: simulated(scenario or PAPER, overrides or [], tell))
    if json is not None:
        both = {"without": without.to_dict(), "prefetching": prefetching.to_dict()}
        output.write_json(json, output.as_json(both))
    if json != "-":
        show(output.console(), without, prefetching)


def _live(
    scenario: simulation.Scenario, overrides: Sequence[str], json: str | None, *, compare: bool, speed: float
) -> None:
    """Run both live and show them; with `compare`, show each beside its simulation."""
    playing = partial(play, speed=speed)
    both = watched("playing", lambda tell: simulated(scenario, overrides, tell, playing), tidy_s=LIVE_TIDY_S)
    found = dict(zip(("without", "prefetching"), both, strict=True))
    results: dict[str, Any] = {name: result.to_dict() for name, result in found.items()}
    if compare:
        models = watched("simulating", lambda tell: simulated(scenario, overrides, tell))
        expected = dict(zip(found, models, strict=True))
        results["simulated"] = {name: result.to_dict() for name, result in expected.items()}
    if json is not None:
        output.write_json(json, output.as_json(results))
    if json == "-":
        return
    console = output.console()
    if not compare:
        show(console, *both)
        return
    for name, title in (("without", "without prefetching"), ("prefetching", "with prefetching")):
        console.print(beside(title, expected[name], found[name]))
        for note in found[name].notes:
            console.print(f"note: {plain(note)}", markup=False)


def simulated(
    scenario: simulation.Scenario,
    overrides: Sequence[str],
    tell: Tell,
    run: Callable[..., Result] = simulation.simulate,
) -> tuple[Result, Result]:
    """Return the run without prefetching and the scenario's run; `run` performs each of them.

    Raises:
        HeadstartError: The scenario is wrong, has no parallel program, or has a policy that does not prefetch.
    """
    prefetching = run(scenario, overrides=overrides, progress=lambda share, _: tell(0.5 * share, "with prefetching"))
    policy = prefetching.scenario.get("policy", {})
    if "process" not in prefetching.scenario:
        raise HeadstartError("process: missing; allowed: a section [process], see docs/parallel.md")
    if policy.get("name") == "demand":
        raise HeadstartError('policy.name: "demand" does not prefetch; allowed: "rapid-transit"')
    process = {key: value for key, value in prefetching.scenario["process"].items() if key not in ACTIONS}
    demand = {
        **prefetching.scenario,
        "process": process,
        "policy": {"name": "demand", "replacement": policy["replacement"]},
    }
    without = run(demand, progress=lambda share, _: tell(0.5 + 0.5 * share, "without prefetching"))
    return without, prefetching


def show(console: Console, without: Result, prefetching: Result) -> None:
    """Print both runs as text: totals, processes, intervals."""
    process = prefetching.scenario["process"]
    device = prefetching.scenario["device"]
    pattern, barrier = process["pattern"]["name"], process["barrier"]
    every = f" after {barrier['every']} reads" if barrier["scope"] in ("process", "all") else ""
    console.print(
        f"{len(without.processes)} processes, {_io_processors(prefetching)}{pattern}, "
        f"barrier: {barrier['scope']}{every}, {device['count']} x {plain(device['model']['name'])}",
        markup=False,
    )
    console.print()
    console.print(_whole(without, prefetching))
    console.print()
    console.print(_processes(without, prefetching))
    if prefetching.intervals:
        console.print()
        console.print(_intervals(without, prefetching))
        if (more := len(prefetching.intervals) - INTERVALS) > 0:
            console.print(f"and {more} more; --json has all")
    for note in dict.fromkeys((*without.notes, *prefetching.notes)):
        console.print(f"note: {plain(note)}", markup=False)


def _io_processors(result: Result) -> str:
    count = result.scenario["process"].get("io_processors", 0)
    return f"{count} I/O processors, " if count else ""


def _of_program(result: Result) -> Sequence[Mapping[str, Any]]:
    """Return the records of the processes; those of processors without a process follow them."""
    count: int = len(result.processes) - result.scenario["process"].get("io_processors", 0)
    return result.processes[:count]


def _whole(without: Result, prefetching: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in ("without", "prefetching", "change"):
        table.add_column(name, justify="right")
    for name, of in TIMES.items():
        before, after = of(without), of(prefetching)
        change = f"{(after - before) / before:+.1%}" if before else ""
        table.add_row(name, output.seconds(before), output.seconds(after), change)
    for name in ("references", "hits_ready", "hits_unready", "misses", "fetches", "prefetches"):
        before, after = getattr(without, name), getattr(prefetching, name)
        share = f"{after / prefetching.references:.1%} of reads" if name.startswith(("hits", "miss")) else ""
        table.add_row(NAMES.get(name, name), f"{before:,}", f"{after:,}", share)
    return table


NAMES = {"references": "reads", "hits_ready": "ready hits", "hits_unready": "unready hits"}


def _disk_response(result: Result) -> int:
    requests = sum(device["requests"] for device in result.devices)
    return _quotient(sum(device["requests"] * device["response_ns_mean"] for device in result.devices), requests)


def _mean(result: Result, key: str, over: str | None = None) -> int:
    """Return a sum over the processes, divided by their number or by another sum."""
    processes: Sequence[Mapping[str, Any]] = result.processes
    count = sum(each[over] for each in processes) if over else len(_of_program(result))
    return _quotient(sum(each[key] for each in processes), count)


def _quotient(sum_ns: int, count: int) -> int:
    return sum_ns // count if count else 0


TIMES: dict[str, Callable[[Result], int]] = {
    "total": lambda result: result.elapsed_ns,
    "mean read": lambda result: result.response_ns["mean"],
    "mean hit-wait of unready hits": lambda result: result.hit_wait_ns_mean,
    "mean disk response": _disk_response,
    "of a process: waiting for blocks": lambda result: _mean(result, "stall_ns"),
    "of a process: at barriers": lambda result: _mean(result, "barrier_ns"),
    "of a process: overrun": lambda result: _mean(result, "overrun_ns"),
    "mean action": lambda result: _mean(result, "action_ns", "actions"),
    "mean overrun, where there is one": lambda result: _mean(result, "overrun_ns", "overruns"),
}


def _processes(without: Result, prefetching: Result) -> Table:
    """Return a row per process: its waits without and with prefetching, and its actions."""
    table = Table(box=None, pad_edge=False, title="processes: without > prefetching", title_justify="left")
    for name in ("process", "reads", "own I/O", "others' I/O", "barriers", "actions", "overrun", "done at"):
        table.add_column(name, justify="right")
    for index, (before, after) in enumerate(zip(without.processes, _of_program(prefetching), strict=True)):
        waits = (f"{_ms(before[key])} > {_ms(after[key])}" for key in ("own_io_ns", "other_io_ns", "barrier_ns"))
        done = (each["elapsed_ns"] - each["idle_ns"] for each in (before, after))
        table.add_row(
            str(index),
            f"{before['references']} > {after['references']}",
            *waits,
            f"{after['actions']}",
            _ms(after["overrun_ns"]),
            " > ".join(_ms(each) for each in done),
        )
    for index, each in enumerate(prefetching.processes[len(without.processes) :], start=len(without.processes)):
        table.add_row(str(index), "I/O", "", "", "", f"{each['actions']}", "", "")
    table.caption = "times in ms"
    table.caption_justify = "left"
    return table


def _intervals(without: Result, prefetching: Result) -> Table:
    """Return a row per interval between barriers: the last process to arrive, and how much later it arrived."""
    table = Table(box=None, pad_edge=False, title="intervals between barriers", title_justify="left")
    for name in ("interval", "without", "critical", "slack", "prefetching", "critical", "slack"):
        table.add_column(name, justify="right")
    for index, after in enumerate(prefetching.intervals[:INTERVALS]):
        before = without.intervals[index] if index < len(without.intervals) else None
        table.add_row(str(index), *(_interval(before) if before else ("", "", "")), *_interval(after))
    table.caption = "times in ms; critical: the process that came last, slack: by how much later than the one before it"
    table.caption_justify = "left"
    return table


def _interval(interval: Mapping[str, Any]) -> tuple[str, str, str]:
    return _ms(interval["end_ns"] - interval["start_ns"]), str(interval["critical"]), _ms(interval["slack_ns"])


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.1f}"

"""The simulator against the second implementation of parallel programs, to the nanosecond, over random small systems.

Nothing inside a system is random: compute, actions and the disk are constant, and strings are those of the regular
patterns, laid out here independently, or of the random ones, read from the output of `trace_generate`.
"""

import csv
import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest

import headstart
from tests.parallel_model import Machine, System

SYSTEMS = 160
"""Random systems of each seed."""

REGULAR = ("lw", "gw", "lfp", "gfp")
IRREGULAR = ("lrp", "grp")

Keys = dict[str, Any]
Strings = tuple[list[list[int]], list[list[int]]]


def strings_of(name: str, keys: Keys, processes: int, folder: Path, seed: int) -> Strings:
    """Return the strings of a pattern and where their portions end."""
    if name in REGULAR:
        return regular(name, keys, processes)
    return irregular(name, keys, processes, folder, seed)


def regular(name: str, keys: Keys, processes: int) -> Strings:
    """Lay the strings of a regular pattern out: portions of equal length and spacing on a ring of blocks."""
    laid: dict[str, int] = {"portion": keys["blocks"], "stride": 1, "apart": 0, **keys}
    blocks, reads, length = laid["blocks"], laid["reads"], laid["portion"]
    spacing = length + laid["stride"] - 1
    count = 1 if name.startswith("g") else processes
    strings, portions = [], []
    for index in range(count):
        share = reads // count + (index < reads % count)
        first = index * laid["apart"]
        firsts = [first + spacing * at for at in range(share // length + 1)]
        string = [(begin + at) % blocks for begin in firsts for at in range(length)][:share]
        strings.append(string)
        portions.append(sorted({min(length * (at + 1), share) for at in range(len(firsts))}))
    return strings, portions


def irregular(name: str, keys: Keys, processes: int, folder: Path, seed: int) -> Strings:
    """Read the strings of a random pattern off its trace. A portion ends where the next block is not the next one.

    Gaps of no block, which would not be recognised as gaps, are practically excluded by the size of the gaps.
    """
    target = folder / f"{name}-{seed}.csv"
    headstart.trace_generate(name, target, keys={**keys, "count": processes}, seed=seed, block_size="1KiB")
    with target.open() as lines:
        reads = [(int(line["pid"]), int(line["offset"]) // 1024) for line in csv.DictReader(lines)]
    by_process = [[block for pid, block in reads if pid == index] for index in range(processes)]
    strings = [[block for _, block in reads]] if name.startswith("g") else by_process
    portions = []
    for string in strings:
        jumps = [at + 1 for at in range(len(string) - 1) if string[at + 1] != (string[at] + 1) % keys["blocks"]]
        portions.append([*jumps, len(string)])
    return strings, portions


def keys_of(name: str, processes: int, draw: random.Random) -> Keys:
    """Draw a pattern's keys."""
    keys: Keys = {"reads": draw.randint(processes, 30 * processes)}
    if name in IRREGULAR:
        return keys | {"blocks": 200_000, "portion_mean": draw.randint(1, 6), "gap_mean": 20_000}
    keys["blocks"] = draw.choice((draw.randint(2, 30), draw.randint(30, 300)))
    if name in ("lfp", "gfp"):
        keys |= {"portion": draw.randint(1, 12), "stride": draw.randint(1, 20)}
    if name == "lfp":
        keys["apart"] = draw.randint(1, 40)
    return keys


def drawn(draw: random.Random, folder: Path, seed: int) -> tuple[System, Keys]:
    """Draw a system, for the model and as a scenario."""
    name = draw.choice((*REGULAR, *REGULAR, *IRREGULAR))
    processes = draw.randint(1, 6)
    keys = keys_of(name, processes, draw)
    strings, portions = strings_of(name, keys, processes, folder, seed)
    scope = draw.choice(("none", "process", "all", "portion"))
    system = System(
        strings=strings,
        portions=portions,
        shared=name.startswith("g"),
        regular=name in REGULAR,
        processes=processes,
        disks=draw.randint(1, 5),
        disk_ns=draw.choice((30_000_000, draw.randint(1, 50_000_000))),
        compute_ns=draw.choice((0, 0, 30_000_000, draw.randint(1, 60_000_000))),
        action_ns=draw.choice((0, 10_000_000, draw.randint(1, 40_000_000))),
        scope=scope,
        every=draw.randint(1, 12),
        size=draw.choice((1, 1, 2, 3)),
        buffers=draw.randint(1, 8),
        min_lead=draw.choice((0, 0, draw.randint(1, 20))),
        min_time_ns=draw.choice((0, 0, draw.randint(1, 30_000_000))),
        for_others=draw.random() < 0.7,
        issues=draw.choice(("start", "end")),
        contention_ns=draw.choice((0, 0, draw.randint(1, 5_000_000))),
        actions_contend=draw.random() < 0.5,
        idle_order=draw.choice(("longest", "longest", "shortest", "number", "slack", "slack")),
        min_slack=draw.choice((0, 0, draw.randint(1, 4))),
        prefetches=draw.random() < 0.85,
    )
    # Nothing is prefetched for others if processors prefetch only for their own processes.
    system = dataclasses.replace(system, critical=system.for_others and draw.random() < 0.5)
    # Drawn last, so that the systems of a seed stay the same as before.
    system = dataclasses.replace(
        system,
        io_processors=draw.choice((0, 0, 0, draw.randint(1, 3))) if system.prefetches and system.for_others else 0,
        buffer_place=draw.choice(("shared", "requester", "disk")),
        remote_ns=draw.choice((0, draw.randint(1, 5_000_000))),
    )
    return system, scenario(system, name, keys, seed)


def scenario(system: System, name: str, keys: Keys, seed: int) -> Keys:
    """Return the system as a scenario."""
    replacement = {"name": "ru-set", "size": system.size}
    barrier: Keys = {"scope": system.scope}
    if system.scope in ("process", "all"):
        barrier["every"] = system.every
    process: Keys = {
        "count": system.processes,
        "pattern": {"name": name, **keys},
        "barrier": barrier,
        "contention": f"{system.contention_ns}ns",
        "buffer_place": system.buffer_place,
        "remote_cost": f"{system.remote_ns}ns",
    }
    if system.prefetches:
        process |= {
            "prefetch_action": f"{system.action_ns}ns",
            "action_issues": system.issues,
            "min_time": f"{system.min_time_ns}ns",
            "min_lead": system.min_lead,
            "buffers": system.buffers,
            "for_others": system.for_others,
            "idle_order": system.idle_order,
            "min_slack": system.min_slack,
            "prefetch_for": "critical" if system.critical else "own",
            "io_processors": system.io_processors,
            "contention_scope": "all" if system.actions_contend else "look-ups",
        }
    return {
        "seed": seed,
        "workload": {"compute": f"{system.compute_ns}ns", "block_size": "1KiB"},
        "process": process,
        "cache": {"blocks": system.processes * system.size + system.buffers},
        "policy": {"name": "rapid-transit" if system.prefetches else "demand", "replacement": replacement},
        "device": {
            "model": {"name": "uniform", "fetch_time": f"{system.disk_ns}ns"},
            "count": system.disks,
            "stripe_unit": "1KiB",
            "scheduler": "fcfs",
        },
    }


def told_by_model(system: System) -> Keys:
    """Run the model; return what is compared."""
    machine = Machine(system)
    elapsed = machine.run()
    counts = machine.counts
    return {
        "elapsed_ns": elapsed,
        "hits_ready": counts.hits_ready,
        "hits_unready": counts.hits_unready,
        "misses": counts.misses,
        "demand_fetches": counts.demand_fetches,
        "prefetches": counts.prefetches,
        "processes": [
            {
                "references": each.references,
                "done_ns": each.finish_ns,
                "own_io_ns": sum(each.waited["own"]),
                "other_io_ns": sum(each.waited["other"]),
                "barrier_ns": sum(each.waited["barrier"]),
                "actions": each.actions,
                "action_ns": each.action_ns,
                "overrun_ns": each.overrun_ns,
                "overruns": each.overruns,
                "remote_reads": each.remote_reads,
                "overhead_ns": each.overrun_ns + each.structures_ns + each.remote_reads * system.remote_ns,
            }
            for each in machine.processes
        ],
        "intervals": machine.intervals,
    }


def told_by_simulator(scenario: Keys) -> Keys:
    """Run the simulator; return what is compared."""
    result = headstart.simulate(scenario).to_dict()
    told = {name: result[name] for name in ("elapsed_ns", "hits_ready", "hits_unready", "misses")}
    told |= {name: result[name] for name in ("demand_fetches", "prefetches")}
    names = ("references", "own_io_ns", "other_io_ns", "barrier_ns", "actions", "action_ns", "overrun_ns", "overruns")
    told["processes"] = [
        {
            **{name: each[name] for name in (*names, "overhead_ns")},
            "remote_reads": each.get("remote_reads", 0),
            "done_ns": each["elapsed_ns"] - each["idle_ns"],
        }
        for each in result["processes"]
    ]
    told["intervals"] = [
        (each["start_ns"], each["end_ns"], each["critical"], each["slack_ns"]) for each in result["intervals"]
    ]
    return told


@pytest.mark.parametrize("seed", range(8))
def test_the_simulator_equals_the_model(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    for number in range(SYSTEMS):
        system, keys = drawn(draw, tmp_path, 1000 * seed + number)
        assert told_by_simulator(keys) == told_by_model(system), keys


def test_the_model_by_hand() -> None:
    # Two processes share a b c d on two disks of 10; both miss at 0. An action takes 4. Process 0 begins one at 0, for
    # c; its request enters disk 0's queue at 4 and is done at 20. Process 1 begins one for d likewise. At 4 nothing is
    # left. At 10 both go on and find c and d on their way: 10 more.
    system = System(
        strings=[[0, 1, 2, 3]],
        portions=[[4]],
        shared=True,
        regular=True,
        processes=2,
        disks=2,
        disk_ns=10,
        compute_ns=0,
        action_ns=4,
        buffers=2,
    )
    told = told_by_model(system)
    assert (told["elapsed_ns"], told["misses"], told["hits_unready"], told["prefetches"]) == (20, 2, 2, 2)
    assert [each["other_io_ns"] for each in told["processes"]] == [10, 10]
    # An action of 14 holds them up until 14, and the requests are done at 24.
    late = told_by_model(System(**{**system.__dict__, "action_ns": 14}))
    assert (late["elapsed_ns"], [each["overrun_ns"] for each in late["processes"]]) == (24, [4, 4])
    # Issued at the start they are done at 20, 6 after the actions.
    early = told_by_model(System(**{**system.__dict__, "action_ns": 14, "issues": "start"}))
    assert (early["elapsed_ns"], [each["other_io_ns"] for each in early["processes"]]) == (20, [6, 6])


def test_strings_by_hand() -> None:
    keys = {"blocks": 10, "reads": 10, "portion": 2, "stride": 3, "apart": 5}
    assert regular("lfp", keys, 2) == ([[0, 1, 4, 5, 8], [5, 6, 9, 0, 3]], [[2, 4, 5], [2, 4, 5]])
    assert regular("gw", {"blocks": 4, "reads": 6}, 3) == ([[0, 1, 2, 3, 0, 1]], [[4, 6]])

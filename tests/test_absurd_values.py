"""Absurd values of keys: each runs within memory and time, or is refused in one line that names a key.

The cases run in a child with limited memory, where an excessive allocation aborts, and where an alarm ends a case that
hangs. The parent detects which case ended the child, and continues with the next one.
"""

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from headstart.registry import catalog

MEMORY_BYTES = 4 << 30
CASE_S = 120
"""For one case, generous: they take milliseconds on an idle machine, the largest a few seconds."""
WHOLE = (0, 1, 2**31, 2**53, 2**63 - 1, -1)
SIZES = ("0B", "1B", "1GiB", "1EiB", "15EiB")
TIMES = ("0s", "1ns", "1000h", "5000000h")
SHARES = (0.0, 1e-300, 1.0, 1e300)

CHILD = f"""
import json, resource, signal, sys
import headstart
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for number, line in enumerate(sys.stdin):
    signal.alarm({CASE_S})
    try:
        headstart.simulate(json.loads(line))
        said = ""
    except headstart.InternalError as error:
        said = "internal: " + str(error)
    except headstart.HeadstartError as error:
        said = "refused: " + str(error)
    print(json.dumps(said), flush=True)
"""

Case = dict[str, Any]


def outcomes(cases: list[Case]) -> list[str]:
    """Return the outcome of each case: "" if it ran, the error, or what ended the child."""
    found: list[str] = []
    while len(found) < len(cases):
        text = "".join(json.dumps(case) + "\n" for case in cases[len(found) :])
        child = subprocess.run([sys.executable, "-c", CHILD], input=text, capture_output=True, text=True, check=False)
        found += [json.loads(line) for line in child.stdout.splitlines()]
        if child.returncode != 0:
            last = (child.stderr.splitlines() or [""])[-1]
            name = signal.Signals(-child.returncode).name if child.returncode < 0 else str(child.returncode)
            found.append(f"died: {name} {last}")
    return found


def check(cases: list[Case]) -> None:
    """Fail with every case that neither ran nor was refused in one line naming a key."""
    wrong = []
    for case, said in zip(cases, outcomes(cases), strict=True):
        problem = said.removeprefix("refused: ")
        key = problem.partition(":")[0]
        clear = said == "" or (problem != said and "\n" not in said and "allowed" in said and " " not in key)
        if not clear:
            wrong.append(f"{json.dumps(case)}: {said}")
    assert not wrong, "\n".join(wrong)


def scenario(**sections: Any) -> Case:
    """Return a small scenario with these sections laid over it."""
    base: Case = {
        "workload": {"generator": "sequential", "blocks": 100, "passes": 2},
        "cache": {"blocks": 20},
        "policy": {"name": "demand"},
        "device": {"model": "hp97560"},
    }
    for name, keys in sections.items():
        base[name] = {**base.get(name, {}), **keys} if isinstance(keys, dict) else keys
    return base


def values_of(default: object) -> tuple[object, ...]:
    """Return absurd values of the kind of a key's default."""
    match default:
        case bool():
            return ()
        case int():
            return WHOLE
        case float():
            return SHARES
        case str() if default[-1:] == "B":
            return SIZES
        case str() if default[-1:] == "s":
            return TIMES
        case _:
            return ()


def generators() -> list[tuple[str, dict[str, object]]]:
    """Return each generator with its defaults."""
    return [(str(row["name"]), dict(row["keys"])) for row in catalog()["workloads"]]


def of_generator(name: str, defaults: dict[str, object]) -> Iterator[Case]:
    """Yield a case for each key and each absurd value, of 50 requests at most, with and without the future known."""
    for (key, default), policy in itertools.product(defaults.items(), ("demand", "fixed-horizon")):
        for value in values_of(default):
            workload = {"generator": name, key: value, "limit": 50}
            yield {"workload": workload, "cache": {"blocks": 20}, "policy": {"name": policy}}


@pytest.mark.parametrize(("name", "defaults"), generators(), ids=[name for name, _ in generators()])
def test_generators(name: str, defaults: dict[str, object]) -> None:
    cases = list(of_generator(name, defaults))
    assert cases or not defaults
    check(cases)


def registry(kind: str) -> list[tuple[str, dict[str, object]]]:
    """Return the rows of a registry that have keys, with their defaults."""
    rows = ((str(row["name"]), dict(row.get("keys") or {})) for row in catalog()[kind])
    return [(name, keys) for name, keys in rows if keys]


def values(keys: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield each key with each absurd value."""
    for key, default in keys.items():
        for value in values_of(default):
            yield key, value


def named(section: str, key: str, **sections: Any) -> list[Case]:
    """Return a case for each row of a registry and each absurd value of its keys, as table `key` of a section."""
    kind = {"replacement": "replacements", "scheduler": "schedulers", "model": "devices"}[key]
    rows = [(name, each, value) for name, keys in registry(kind) for each, value in values(keys)]
    return [scenario(**{section: {key: {"name": name, each: value}}}, **sections) for name, each, value in rows]


LEVELS = [{"blocks": 20, "policy": "ra"}, {"blocks": 20, "policy": "ra", "link": {"alpha": "1us"}}]


def levels(number: int, **keys: object) -> Case:
    """Return a scenario of two levels with keys laid over one of them."""
    both = [{**level, **(keys if at == number else {})} for at, level in enumerate(LEVELS)]
    base = scenario()
    return {"workload": base["workload"], "device": base["device"], "level": both}


def program(**keys: object) -> Case:
    """Return a parallel program with keys laid over its processes."""
    process = {"count": 4, "pattern": {"name": "gw", "reads": 200}, "barrier": {"every": 10}, **keys}
    return {"workload": {"compute": "1ms"}, "process": process, "cache": {"blocks": 40}, "policy": "rapid-transit"}


def host_and_caches() -> list[Case]:
    """Return absurd sizes of caches, levels, blocks, limits, costs and times."""
    cases = [scenario() | {"cache": {"blocks": each}} for each in (*WHOLE, 10**12)]
    cases += [scenario() | {"cache": {"size": each}} for each in (*SIZES, "8PiB")]
    cases += [scenario() | {"cache": {"footprint": each}} for each in SHARES]
    cases += [levels(at, blocks=each) for at in (0, 1) for each in (*WHOLE, 10**12)]
    cases += [levels(1, blocks=20, clients=each) for each in WHOLE]
    for policy in ("demand", "forestall", "reverse-aggressive", "linux"):
        cases += [scenario(cache={"blocks": each}, policy={"name": policy}) for each in (2**31, 2**32 - 2, 10**12)]
        cases += [scenario(workload={"block_size": each}, policy={"name": policy}) for each in SIZES]
    cases += [scenario(workload={"limit": each}) for each in WHOLE]
    cases += [scenario(workload={"addresses": "compact-chunks", "chunk_blocks": each}) for each in WHOLE]
    cases += [scenario(workload={key: each}) for key in ("compute_scale", "alpha") for each in SHARES]
    cases += [scenario(workload={"arrival": "open", "time_scale": each}) for each in SHARES]
    cases += [scenario(workload={"compute_total": each}) for each in TIMES]
    cases += [scenario(host={key: each}) for key in ("driver_overhead", "hit_time", "copy_per_kib") for each in TIMES]
    cases += [scenario() | {"seed": each} for each in WHOLE]
    return cases


def disks_and_queues() -> list[Case]:
    """Return absurd numbers of disks, depths of queues and units of striping."""
    cases = []
    for count, array in itertools.product((*WHOLE, 10**9, 100_000), ("stripe", "concat", "raid1", "raid5")):
        cases += [scenario(device={"count": count, "array": array}, policy={"name": name}) for name in ("demand", "ra")]
    cases += [
        scenario(device={"count": 100_000}, policy={"name": name}) for name in ("forestall", "reverse-aggressive")
    ]
    for model in ("hp97560", "nvme", "object-store"):
        cases += [scenario(device={"model": model, "queue_depth": each}) for each in (*WHOLE, 65_536)]
    cases += [scenario(device={"stripe_unit": each, "count": 3}) for each in SIZES]
    cases += [scenario(device={"cache_segments": each}) for each in WHOLE]
    return cases


def hints_and_actions() -> list[Case]:
    """Return absurd hints, processes and keys of their patterns."""
    hinted = ("demand", "fixed-horizon", "forestall", "aggressive", "reverse-aggressive")
    cases = []
    for name, given in itertools.product(
        hinted,
        [{"window": each} for each in WHOLE]
        + [{key: share} for key in ("fraction", "wrong", "reordered") for share in SHARES]
        + [{"reordered": 0.5, "distance": each} for each in WHOLE],
    ):
        replacement = {"replacement": "min"} if name == "demand" else {}
        cases.append(scenario(policy={"name": name, "hints": given, **replacement}))
    cases += [program(count=each) for each in (*WHOLE, 10**9, 2**20)]
    cases += [program(barrier={"every": each}) for each in WHOLE]
    cases += [program(**{key: each}) for key in ("buffers", "min_lead") for each in WHOLE]
    cases += [program(**{key: each}) for key in ("contention", "min_time", "prefetch_action") for each in TIMES]
    for name, keys in registry("workloads"):
        if "reads" in keys:
            own = {key: value for key, value in keys.items() if key not in ("count", "compute")}
            cases += [program(pattern={"name": name, key: value}) for key, value in values(own)]
    return cases


def policies() -> list[Case]:
    """Return each policy with absurd values of its keys."""
    rows = [(name, key, value) for name, keys in registry("policies") for key, value in values(keys)]
    return [scenario(policy={"name": name, key: value}) for name, key, value in rows if name != "rapid-transit"]


def coordinators() -> list[Case]:
    """Return each coordinator with absurd values of its keys."""
    rows = [(name, key, value) for name, keys in registry("coordinators") for key, value in values(keys)]
    return [levels(1, coordinator={"name": name, key: value}) for name, key, value in rows]


TABLES = {
    "caches": host_and_caches,
    "disks": disks_and_queues,
    "hints": hints_and_actions,
    "policies": policies,
    "replacements": lambda: named("policy", "replacement"),
    "schedulers": lambda: named("device", "scheduler"),
    "models": lambda: named("device", "model"),
    "coordinators": coordinators,
}


@pytest.mark.parametrize("table", TABLES)
def test_keys_of_scenarios(table: str) -> None:
    cases = TABLES[table]()
    assert cases
    check(cases)

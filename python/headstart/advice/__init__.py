"""Advice for a trace: the read-ahead on a device, the time that it saves, and a sufficient cache size.

The search, for each device and cache (docs/advise.md discusses its reliability):

0. One run determines whether the trace has streams. A random trace gets no read-ahead.
1. What can be set runs on a sample, the start of the trace: a few depths, then those beside the best one. So do the
   policies that know the future.
2. No prefetching, Linux's default, the best depth and those beside it, and the best hints run on the whole trace.
3. Of the policies that can be set on the machine, the simplest within 1 % of the fastest is recommended.
4. It is compared with the next best in each third of the trace and, if the run has random parts, with other seeds.
5. Runs with smaller caches determine a sufficient size.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from headstart import custom
from headstart._core import HeadstartError
from headstart._input import listed
from headstart.advice.result import Advice, Confidence, DeviceAdvice, Timed
from headstart.advice.runs import LINUX, TOO_FEW, Measured, Runs
from headstart.advice.search import BLOCK_SIZE, SettingSearch, Trace, search_all
from headstart.live import tune as tuning
from headstart.runs.compare import WORKLOAD
from headstart.runs.compare import plan as planned
from headstart.runs.plan import AT_ONCE, Case, Plan, refuse_writes_only
from headstart.runs.rows import Setting
from headstart.simulation import simulate
from headstart.sizes import bytes_text, size_bytes, size_text
from headstart.trace import selection, trace_info

__all__ = ["BLOCK_SIZE", "DEVICES", "Advice", "Confidence", "DeviceAdvice", "Timed", "advise"]

HDD = "seagate-exos-x20"
DEVICES = ("hdd", "sata-ssd", "nvme", "object-store")
"""The default devices; "hdd" is a Seagate Exos X20."""
CACHE_BYTES_MIN = 64 << 20
"""The default cache is a quarter of what the trace touches, and at least this: all of a small trace."""


def advise(
    trace: str | PathLike[str] | Mapping[str, Any],
    *,
    device: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    cache: str | int | Sequence[str | int] | None = None,
    seconds: float = 60.0,
    block_size: str = BLOCK_SIZE,
    workload: Mapping[str, Any] | None = None,
    path: str | Sequence[str] | None = None,
    pid: int | Sequence[int] | None = None,
    process: str | Sequence[str] | None = None,
    seed: int = 1,
    policies: Any | Sequence[Any] = (),
    on: str | PathLike[str] | None = None,
    overrides: str | Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[float, str], object] | None = None,
    sampled: Callable[[Advice], object] | None = None,
) -> Advice:
    """Recommend a read-ahead and a cache size for a trace on each device, and estimate the time that they save.

    Read-aheads that can be set on a machine are compared with no prefetching, Linux's default, and prefetching from
    hints (Kimbrel et al., OSDI 1996). docs/advise.md says how far to trust the answer.

    Args:
        trace: Path of a trace, or a [workload] section such as {"generator": "sequential"}.
        device: Names of devices, or paths of profiles; hdd, sata-ssd, nvme and object-store if `None`.
        cache: Sizes ("1GiB"), numbers of blocks (1280), or shares of the distinct blocks ("5%"). If `None`, a quarter
            of the distinct blocks, but at least 64 MiB or all of them.
        seconds: Time limit of the search in seconds. The result names what could not be confirmed in this time.
        block_size: Block size of the cache, by default that of scenarios.
        workload: Further keys of [workload], such as {"compute": "1ms"}.
        path: Only requests to files that fit one of these globs ("*.parquet"; "*" also stands for "/").
        pid: Only requests of these processes or threads.
        process: Only requests of processes of these names, or globs of them.
        seed: Random seed.
        policies: Further policies to try, such as "mine.py:Mine" or a user-defined class.
        on: A device of this machine, or a path on it. Its current read-ahead is compared as well. Linux only.
        overrides: "a.b=value" settings that override keys in every run.
        jobs: Number of parallel runs; one per processor if `None`. It does not change the advice.
        progress: Called with the share done (0 to 1) and the current step, from the threads that run.
        sampled: Called with the advice for the start of a long trace, before the whole trace is run.

    Returns:
        The advice: one `DeviceAdvice` for each device and cache, with times in nanoseconds.

    Raises:
        HeadstartError: An argument or the trace is wrong, or `seconds` is too short for any run.
    """
    deadline = time.monotonic() + seconds
    if not seconds > 0:
        raise HeadstartError(f"seconds: {seconds}; allowed: a number above 0")
    if not isinstance(trace, Mapping) and fspath(trace).endswith(".toml"):
        raise HeadstartError(
            f"{fspath(trace)}: is a scenario; allowed: a trace, as `headstart compare` takes scenarios"
        )
    source = dict(trace) if isinstance(trace, Mapping) else {"trace": fspath(trace)}
    section = {"block_size": block_size, **source, **selection(path, pid, process), **(workload or {})}
    policies, overrides = listed(policies), listed(overrides)
    _refuse(section, overrides)
    names = listed(DEVICES if device is None else device)
    if not names:
        raise HeadstartError("device: none given; allowed: names of `headstart list devices`")
    plan = planned(
        section,
        policies=("demand", LINUX, "forestall", *policies),
        device=[HDD if name == "hdd" else name for name in names],
        cache=1,
        seed=seed,
        overrides=overrides,
    )
    plan.check()
    extra = [custom.text_of(policy) for policy in policies]
    addresses = bool(plan.carries["addresses"])
    if not addresses:
        # Refuses policies named by the caller that need addresses.
        dataclasses.replace(plan, policies=("demand", *extra)).fitting()
    plan = dataclasses.replace(plan, defaulted=True).fitting()
    now_bytes = None if on is None else tuning.show(on).now_kb << 10
    found = dataclasses.replace(_look(plan, section, deadline), addresses=addresses, now_bytes=now_bytes)
    sizes = [str(_default_cache(found))] if cache is None else [str(size) for size in listed(cache)]
    named = [
        (name, Setting(device=HDD if name == "hdd" else name, cache=size, disks=1))
        for name in dict.fromkeys(names)
        for size in dict.fromkeys(sizes)
    ]
    plan = dataclasses.replace(plan, settings=tuple(dict.fromkeys(setting for _, setting in named)))
    plan.check()
    runs = Runs(plan, deadline=deadline, jobs=jobs, told=progress)
    searches = {
        setting: SettingSearch(setting, found, seed=seed, cache_bytes=_cache_bytes(setting.cache, found), more=extra)
        for setting in plan.settings
    }

    def found_so_far(stream_share: float) -> Advice:
        return Advice(
            workload=str(section.get("trace") or section.get("generator") or "inline references"),
            trace_sha256=first.measured["demand"].trace_sha256,
            seed=seed,
            seconds=seconds,
            block_size=str(section["block_size"]),
            requests=found.requests,
            footprint_blocks=found.blocks,
            footprint_bytes=found.bytes(found.blocks),
            sample_requests=found.sample(),
            stream_share=stream_share,
            notes=_notes(found, [each.sampled["demand"] for each in searches.values()], runs, defaulted=cache is None),
            devices=tuple(
                dataclasses.replace(searches[setting].advice(runs.given_up), device=name) for name, setting in named
            ),
        )

    def tell_sampled(stream_share: float) -> None:
        if sampled is not None:
            sampled(found_so_far(stream_share))

    first = next(iter(searches.values()))
    return found_so_far(search_all(list(searches.values()), plan, runs, tell_sampled))


def _refuse(section: Mapping[str, Any], overrides: Sequence[str]) -> None:
    """Refuse keys that do not apply to parts of a trace, and keys that the search sets itself."""
    instead = {
        "workload.compute_total": "workload.compute_scale, as parts of the trace are run",
        "workload.limit": "--limit",
        "workload.block_size": "--block-size",
        "seed": "--seed",
        "device.model": "--device",
        "device.count": "a device that is an array, in the profile",
        "policy.name": "`headstart compare --policies`",
    }
    given = {each.partition("=")[0].strip() for each in overrides}
    given |= {"workload.compute_total"} & {f"workload.{key}" for key in section}
    for key in sorted(given & instead.keys()):
        raise HeadstartError(f"{key}: advice sets it; allowed: {instead[key]}")


def _look(plan: Plan, section: Mapping[str, Any], deadline: float) -> Trace:
    """Return the facts about the trace that the search needs."""

    def in_time(_share: float, _references: int) -> None:
        if time.monotonic() > deadline:
            raise HeadstartError(f"seconds: {TOO_FEW}")

    size = str(section["block_size"])
    limit = section.get("limit")
    if "trace" in section and limit is None:
        known = {key: section[key] for key in ("format", "request_size") if key in section}
        known |= section.get("select", {})
        info = trace_info(section["trace"], block_size=size, **known)
        requests, references, blocks = info["requests"], info["references"], info["distinct_blocks"]
        # Sections and overrides may turn writes into reads.
        if "writes" not in section and not any(each.startswith("workload.writes") for each in plan.overrides):
            refuse_writes_only({**WORKLOAD, **section}, requests, info["writes"])
    else:
        setting = dataclasses.replace(plan.settings[0], cache="100%")
        scenario, overrides = plan.run_of(Case(setting=setting, policy="demand"))
        result = simulate(scenario, overrides=overrides, progress=in_time, traces=plan.traces)
        requests, references, blocks = result.requests, result.references, int(result.levels[0]["blocks"])
        refuse_writes_only(result.scenario["workload"], references, result.writes)
    if not references:
        raise HeadstartError(f"{section.get('trace', 'the workload')}: has no reads; allowed: a trace with reads")
    block_bytes = None if size == "object" else size_bytes(size)
    return Trace(requests=requests, references=references, blocks=blocks, block_bytes=block_bytes, limit=limit)


def _default_cache(trace: Trace) -> int:
    """Return the default size of the cache in blocks."""
    least = CACHE_BYTES_MIN // trace.unit_bytes
    return max(1, min(trace.blocks, max(least, trace.blocks // 4)))


def _cache_bytes(cache: str, trace: Trace) -> int:
    """Return the size in bytes of a cache given by the caller; blocks of unknown size count as `BLOCK_SIZE`."""
    if cache.endswith("%"):
        return int(float(cache[:-1]) / 100 * trace.blocks) * trace.unit_bytes
    return int(cache) * trace.unit_bytes if cache.isdigit() else size_bytes(cache)


def _notes(trace: Trace, measured: Sequence[Measured], runs: Runs, *, defaulted: bool) -> tuple[str, ...]:
    """Return the notes needed to interpret the advice."""
    notes = []
    if defaulted:
        size = trace.bytes(_default_cache(trace))
        said = f"{_default_cache(trace):,} blocks" if size is None else bytes_text(size)
        what = (
            "all that the trace touches"
            if _default_cache(trace) == trace.blocks
            else "a quarter of what the trace touches, or 64 MiB"
        )
        notes.append(f"no cache is given: {said}, {what}")
    block = size_text(trace.block_bytes) if trace.block_bytes else "one object"
    notes.append(f"a page cache is simulated: blocks of {block}, empty at the start, LRU, requests issued whole")
    if all(each.compute_ns == 0 for each in measured):
        notes.append(
            "the trace has no think times, as of a program that only reads: --compute 1ms sets one for each reference"
        )
    if runs.plan.at_once:
        notes.append(AT_ONCE)
    if not trace.addresses:
        notes.append("the trace has no addresses: no policy that reads ahead by position is tried")
    sample = trace.sample()
    if sample is not None:
        notes.append(f"screened on the first {sample:,} of {trace.requests:,} requests")
    if runs.given_up:
        notes.append("the time ran out: what was not confirmed is named; a larger --seconds confirms more")
    of_runs = (note for each in measured for note in each.notes)
    return tuple(dict.fromkeys((*notes, *of_runs)))

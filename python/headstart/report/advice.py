"""Advice on the console: a table of the devices, then a paragraph for each."""

import re

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headstart._input import plain
from headstart.advice.choice import NEAR
from headstart.advice.result import Advice, DeviceAdvice, Timed
from headstart.advice.search import STREAMS_MIN
from headstart.report.text import duration_text as time_text
from headstart.runs.plan import LOOSE
from headstart.sizes import bytes_text, size_text

FAR = 10.0
"""From this multiple of the bound on, the distance is given as a factor."""


def policy_text(timed: Timed) -> str:
    """Return a policy as text with its settings."""
    if timed.depth_bytes is None:
        return timed.policy
    return f"read ahead {depth_text(timed.depth_bytes)}" if timed.depth_bytes else "no read-ahead"


def depth_text(depth: int) -> str:
    """Return a depth as text: 1 MiB."""
    return re.sub(r"(\d)([A-Z])", r"\1 \2", size_text(depth))


def brief(each: DeviceAdvice) -> str:
    """Return the advice for a device in a few words."""
    match each.verdict:
        case "no benefit":
            return "no benefit: " + ("no read-ahead" if each.commands else "leave it as it is")
        case "no addresses":
            return "no read-ahead: no addresses"
        case "disclose":
            return "no setting helps; hints do"
        case "keep the default":
            return f"keep the default, {depth_text(each.recommended.depth_bytes or 0)}"
        case _:
            return policy_text(each.recommended)


def headline(each: DeviceAdvice) -> str:
    """Return the advice for a device, with the time that it saves and the cache that it holds for."""
    with_cache = f"with a cache of {_cache(each)}"
    match each.verdict:
        case "disclose" if each.hints is not None:
            whole = each.recommended.elapsed_ns
            saved = f"{time_text(whole - each.hints.elapsed_ns)} of {time_text(whole)}"
            return (
                f"no read-ahead setting helps; {saved} could be saved by reading ahead of what the program knows, "
                f"{with_cache}"
            )
        case "no addresses":
            return f"the trace has no addresses, so that nothing is read ahead by position, {with_cache}"
        case "no benefit":
            return f"{brief(each)}, {with_cache}"
        case _:
            saved = f"saves {time_text(each.recommended.saved_ns)} of {time_text(each.demand.elapsed_ns)}"
            if each.disclosed_ns is not None:
                more = f"{time_text(each.disclosed_ns)} more could be saved by reading ahead of what the program knows"
                return f"{brief(each)}: {saved}; {more}, {with_cache}"
            return f"{brief(each)}: {saved}, {with_cache}"


def sampled_text(done: Advice) -> str:
    """Return the advice for the start of a trace as text that says so."""
    lines = [f"so far, from the first {done.sample_requests:,} of {done.requests:,} requests:"]
    lines += [f"  {device_text(each, done)}: {headline(each)}" for each in done.devices]
    return "\n".join(plain(line) for line in lines)


def advice_shown(console: Console, done: Advice) -> None:
    """Print advice as text."""
    size = "" if done.footprint_bytes is None else f" ({bytes_text(done.footprint_bytes)})"
    touched = f"{done.requests:,} requests, touching {done.footprint_blocks:,} blocks{size}"
    console.print(plain(f"{done.workload}: {touched}"), markup=False)
    console.print()
    console.print(_table(done))
    for each in done.devices:
        console.print()
        console.print(plain(f"{device_text(each, done)}: {headline(each)}"), style="bold", markup=False)
        for line in paragraph(each, done):
            console.print(f"  {plain(line)}", markup=False)
        if each.commands:
            console.print("  to do, any of:" if each.disclosed_ns is not None else "  to type, one of:")
        else:
            console.print("  to type: nothing")
        for line in each.commands:
            # Never break a line that is to be copied.
            console.print(f"    {plain(line)}", markup=False, soft_wrap=True)
    console.print()
    for note in done.notes:
        console.print(f"note: {plain(note)}", markup=False)


def device_text(each: DeviceAdvice, done: Advice) -> str:
    """Return a device's name, with its model and cache if these distinguish it from others."""
    name = each.device if each.device == each.profile else f"{each.device} ({each.profile})"
    if len({(other.cache_blocks) for other in done.devices}) == 1:
        return name
    return f"{name}, cache {_cache(each)}"


def _cache(each: DeviceAdvice) -> str:
    return f"{each.cache_blocks:,} blocks" if each.cache_bytes is None else bytes_text(each.cache_bytes)


def _table(done: Advice) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("device", style="bold", no_wrap=True)
    with_cache = len({each.cache_blocks for each in done.devices}) > 1
    if with_cache:
        table.add_column("cache", justify="right", no_wrap=True)
    table.add_column("advice", no_wrap=True)
    for name in ("demand", "advised", "speedup", "wasted", "trust"):
        table.add_column(name, justify="left" if name == "trust" else "right", no_wrap=True)
    for each in done.devices:
        best = each.recommended
        table.add_row(
            escape(plain(each.device)),
            *([_cache(each)] if with_cache else []),
            escape(brief(each)),
            time_text(each.demand.elapsed_ns),
            time_text(best.elapsed_ns),
            f"{best.speedup:.2f}x",
            bytes_text(best.wasted_bytes),
            each.confidence.level + ("" if each.confidence.confirmed else ", sample"),
        )
    return table


def paragraph(each: DeviceAdvice, done: Advice) -> list[str]:
    """Return the sentences on one device."""
    return [*_gain(each, done), *_ceiling(each), *_cache_enough(each, done), *_trust(each)]


def _gain(each: DeviceAdvice, done: Advice) -> list[str]:
    best, demand = each.recommended, each.demand
    lines = []
    if best.policy != "demand":
        lines.append(
            f"saves {time_text(best.saved_ns) if best.saved_ns else 'nothing'} of {time_text(demand.elapsed_ns)}"
            f" against no prefetching ({best.speedup:.2f}x), wastes {bytes_text(best.wasted_bytes)}"
        )
    default = each.linux_default
    if default is not None and default.policy != best.policy:
        less = default.elapsed_ns - best.elapsed_ns
        if abs(less) >= NEAR * best.elapsed_ns:
            lines.append(f"{time_text(abs(less))} {'less' if less >= 0 else 'more'} than Linux's 128 KiB takes")
    if each.now is not None:
        more = each.now.elapsed_ns - best.elapsed_ns
        said = f"{time_text(abs(more))} {'more' if more >= 0 else 'less'} than what is advised"
        lines.append(f"this machine has {policy_text(each.now)} now: {said if more else 'as fast as what is advised'}")
    if each.linux.policy not in (best.policy, "linux", "demand"):
        lines.append(f"Linux, set to {policy_text(each.linux)}, saves {time_text(each.linux.saved_ns)}")
    other = each.fastest_tried
    if other.elapsed_ns < (1 - NEAR) * best.elapsed_ns:
        why = "" if done.stream_share >= STREAMS_MIN else ", as chance neighbours fill the empty cache"
        lines.append(
            f"fastest tried: {other.policy} would save {time_text(best.elapsed_ns - other.elapsed_ns)} more{why}"
        )
    return lines


def _ceiling(each: DeviceAdvice) -> list[str]:
    lines = []
    if each.hints is not None:
        more = each.recommended.elapsed_ns - each.hints.elapsed_ns
        share = more / each.recommended.elapsed_ns if each.recommended.elapsed_ns else 0.0
        if share >= NEAR:
            lines.append(
                f"hints from the program ({each.hints.policy}) would save {time_text(more)} more ({share:.0%})"
            )
        else:
            lines.append("hints from the program would add nothing")
    if each.above_bound is not None and each.lower_bound_ns is not None:
        far = f"{each.above_bound:.0%} above" if each.above_bound < FAR else f"{each.above_bound + 1:,.0f} times"
        lines.append(f"{far} the lower bound of any policy, {time_text(each.lower_bound_ns)}")
        fastest = min(timed.elapsed_ns for timed in each.tried)
        if fastest > LOOSE * each.lower_bound_ns:
            lines.append(
                f"the bound says little here: all that was tried takes {fastest / each.lower_bound_ns:,.1f} times it"
            )
    return lines


def _cache_enough(each: DeviceAdvice, done: Advice) -> list[str]:
    blocks, size = each.cache_enough_blocks, each.cache_enough_bytes
    if blocks is None:
        return []
    said = f"{blocks:,} blocks" if size is None else bytes_text(size)
    if blocks == done.footprint_blocks:
        return [f"cache: a larger one gains up to all that the trace touches, {said}"]
    return [f"cache: nothing is gained beyond {said}"]


def _trust(each: DeviceAdvice) -> list[str]:
    sure = each.confidence
    if not sure.confirmed:
        return ["trust: low: from the sample alone; the time did not suffice for the whole trace"]
    parts = []
    if sure.thirds:
        parts.append(f"holds in {sum(sure.thirds)} of {len(sure.thirds)} thirds of the trace")
    if sure.seeds:
        parts.append(f"with {sum(sure.seeds)} of {len(sure.seeds)} other seeds")
    said = " and ".join(parts) or "the trace was not divided"
    lines = [f"trust: {sure.level}: {said}"]
    if sure.unconfirmed:
        lines.append(f"not confirmed on the whole trace: {', '.join(sure.unconfirmed)}")
    return lines

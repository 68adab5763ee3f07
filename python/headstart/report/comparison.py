"""The page of a comparison: the runs, the answer as text, figures, and all their numbers in tables."""

import collections
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from headstart import plot
from headstart._input import plain
from headstart.policies import policy_keys
from headstart.registry import catalog
from headstart.report.figures import Figure
from headstart.report.page import details, facts, notes, page, table
from headstart.report.panels import device_table, level_table, prefetch_figure
from headstart.runs.rows import Comparison, Row

DRAWN_MAX = 12
"""Maximum number of settings with figures of their own; the tables have all."""


def comparison_page(done: Comparison) -> str:
    """Return the page."""
    return page(f"{done.workload()}: policies compared", *_content(done))


def comparison_figures(done: Comparison) -> list[Figure]:
    """Return the figures of the page."""
    return _content(done)[1]


def _content(done: Comparison) -> tuple[list[str], list[Figure]]:
    first = done.rows[0].result
    named = [(row, _labelled(row)) for row in done.rows]
    columns = plot.varying([values for _, values in named])
    groups: dict[str, list[tuple[Row, dict[str, Any]]]] = {}
    for row, values in named:
        groups.setdefault(plain(plot.setting(values, columns)), []).append((row, values))
    shown = {
        "trace": done.workload(),
        "references": f"{first.references:,}",
        "device": ", ".join(dict.fromkeys(str(row.result.scenario["device"]["model"]["name"]) for row in done.rows)),
        "cache": ", ".join(dict.fromkeys(f"{row.result.levels[0]['blocks']:,} blocks" for row in done.rows)),
        "seed": first.seed,
    }
    body = [f'<p class="headline">{escape(headline(groups))}</p>', facts(shown)]
    figures: list[Figure] = []

    def show(figure: Figure | None) -> None:
        if figure is not None:
            figures.append(figure)
            body.append(figure.html())

    for figure in _curves([values for _, values in named], columns):
        show(figure)
    for index, (name, group) in enumerate(groups.items()):
        rows, results = [values for _, values in group], {values["policy"]: row.result for row, values in group}
        if name:
            body.append(f"<h2>{escape(name)}</h2>")
        suffix = f"-{index}" if len(groups) > 1 else ""
        on = f", {name}" if name else ""
        if index < DRAWN_MAX:
            caption = f"Elapsed time by policy{on}, and where it goes."
            if any(row["lower_bound_ns"] for row in rows):
                caption += " The line across is a lower bound that no policy beats."
            show(Figure(f"times{suffix}", plot.times(rows), caption))
        refused = [case.to_dict() for case in done.cases if not isinstance(case, Row)]
        refused = [case for case in refused if plain(plot.setting(case, columns)) == name]
        body.append(_times_table(group, [str(case["policy"]) for case in refused]))
        if index < DRAWN_MAX:
            show(prefetch_figure(f"prefetches{suffix}", rows, on))
        if any(row["prefetches"] for row in rows):
            body.append(level_table({policy: result.levels for policy, result in results.items()}))
        if index < DRAWN_MAX:
            caption = f"Mean service time of a request of the device{on}, in its parts."
            show(Figure(f"devices{suffix}", plot.devices(results), caption))
        body.append(device_table({policy: result.devices for policy, result in results.items()}))
    if len(groups) > DRAWN_MAX:
        body.append(f"<p>Only the first {DRAWN_MAX} settings have figures of their own.</p>")
    body.append(notes(done.notes()))
    body.append(details("Scenario, with every default", done.to_dict()["scenario"]))
    body.append(f"<p>SHA-256 of the trace: {first.trace_sha256}</p>")
    return body, figures


def _labelled(row: Row) -> dict[str, Any]:
    """Return a row's columns, with policy and coordinator as one escaped label."""
    return {**row.to_dict(), "policy": plain(row.label), "coordinator": None}


def headline(groups: Mapping[str, Sequence[tuple[Row, Mapping[str, Any]]]]) -> str:
    """Return the answer in a sentence or two: the fastest policy, and the time that it saves."""
    if len(groups) > 1:
        parts = [f"Fastest: {_winners(groups, lambda values: True)}."]
        if any(values.get("knows_future") for group in groups.values() for _, values in group):
            today = _winners(groups, lambda values: not values.get("knows_future"))
            parts.append(f"Of the policies that need no knowledge of the future: {today}.")
        return " ".join(parts)
    (group,) = groups.values()
    best, values = min(group, key=lambda each: each[0].result.elapsed_ns)
    parts = [_sentence(f"{values['policy']} is fastest", best)]
    deployable = [each for each in group if not each[1].get("knows_future")]
    if values.get("knows_future") and deployable:
        row, found = min(deployable, key=lambda each: each[0].result.elapsed_ns)
        parts.append(_sentence(f"Without knowledge of the future it is {found['policy']}", row))
    return " ".join(parts)


def _winners(groups: Mapping[str, Sequence[tuple[Row, Mapping[str, Any]]]], counts: Any) -> str:
    won: collections.Counter[str] = collections.Counter()
    for group in groups.values():
        rows = [each for each in group if counts(each[1])]
        if rows:
            won[min(rows, key=lambda each: each[0].result.elapsed_ns)[1]["policy"]] += 1
    return ", ".join(f"{policy} in {count} of {len(groups)} settings" for policy, count in won.most_common())


def _sentence(what: str, row: Row) -> str:
    result = row.result
    text = f"{what}: {result.elapsed_ns / 1e9:,.3f} s, of which {result.stall_ns / 1e9:,.3f} s is stall"
    if row.baseline_ns and row.saved_ns is not None and abs(row.saved_ns) > 0.001 * row.baseline_ns:
        share = row.saved_ns / row.baseline_ns
        text += f"; {abs(share):.1%} {'less' if share > 0 else 'more'} than without prefetching"
    return f"{text}."


def _curves(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[Figure]:
    """Return elapsed time over those of devices, caches, disks and depths that differ between the runs."""
    figures = []
    for column in ("device", "cache", "disks"):
        if column in columns:
            x = "cache_blocks" if column == "cache" and "cache_blocks" in rows[0] else column
            chart = plot.curve(rows, x=x)
            figures.append(Figure(f"by-{column}", chart, f"Elapsed time by policy over {x.replace('_', ' ')}."))
    depths = _depths(rows, columns)
    if depths:
        key = depths[0]["key"]
        chart = plot.lines(depths, f"{key.replace('_', ' ')} (KiB)" if depths[0]["bytes"] else key, "elapsed time (s)")
        figures.append(Figure("by-depth", chart, f"Elapsed time over {key.replace('_', ' ')}: how deep pays."))
    return figures


def _depths(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the points of a policy that was run with several values of one key, such as linux:read_ahead=1MiB.

    A run without the key has the key's default.
    """
    given = {row["policy"]: policy_keys(row["policy"]) for row in rows if not set("/,") & set(row["policy"])}
    named = [(keys["name"], key) for keys in given.values() for key in keys if key not in ("name", "replacement")]
    for name, key in dict.fromkeys(named):
        defaults: Mapping[str, Any] = next(
            (entry["keys"] for entry in catalog()["policies"] if entry["name"] == name), {}
        )
        points = []
        for row in rows:
            keys = given.get(row["policy"], {})
            if keys.get("name") == name and not set(keys) - {"name", key}:
                x, is_bytes = _number(keys.get(key, defaults.get(key)))
                if x is not None:
                    words = ", ".join(each for each in (name, plot.setting(row, columns)) if each)
                    points.append(
                        {"series": words, "x": x, "y": row["elapsed_ns"] / 1e9, "key": key, "bytes": is_bytes}
                    )
        if len({point["x"] for point in points}) > 1:
            return sorted(points, key=lambda point: point["x"])
    return []


def _number(value: object) -> tuple[float | None, bool]:
    """Return a number or a size, a size in KiB, and whether it is one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), False
    units = {"KiB": 1, "MiB": 1024, "GiB": 1024**2}
    text = str(value)
    try:
        unit = next(unit for unit in units if text.endswith(unit))
        return float(text.removesuffix(unit)) * units[unit], True
    except (StopIteration, ValueError):
        return None, False


def _times_table(group: Sequence[tuple[Row, Mapping[str, Any]]], refused: Sequence[str]) -> str:
    times = ("elapsed s", "compute s", "driver s", "stall s")
    header = ("policy", *times, "saved", "speedup", "fetches", "wasted MiB", "disk use", "above bound")
    lines = []
    for row, values in group:
        result = row.result
        ns = (result.elapsed_ns, result.compute_ns, result.driver_ns, result.stall_ns)
        cells = [escape(values["policy"]), *(f"{each / 1e9:,.3f}" for each in ns)]
        cells.append(f"{row.saved_ns / row.baseline_ns:.1%}" if row.baseline_ns and row.saved_ns is not None else "-")
        cells.append("-" if row.speedup is None else f"{row.speedup:.2f}")
        cells += [f"{result.fetches:,}", f"{row.wasted_bytes / 1024**2:,.2f}", f"{result.utilization:.0%}"]
        cells.append("-" if row.above_bound is None else f"{row.above_bound:+.1%}")
        lines.append(("best" if row.best else "", cells))
    empty = [""] * (len(header) - 2)
    lines.extend(("", [escape(plain(policy)), "see note", *empty]) for policy in refused)
    return table(header, lines)

"""A comparison on the console: a table for each setting, and the differences between the runs.

A table is as wide as the terminal allows and never cuts a figure. Columns that do not fit are omitted, the least
important first, and named below the table. If the output is not a terminal, no column is omitted.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from headstart._input import plain
from headstart.runs.rows import Comparison, Refusal, Row
from headstart.sizes import bytes_text

BAR_COLUMNS = 22
PARTS = (("compute", "█", "green"), ("driver", "▓", "yellow"), ("overhead", "▒", "cyan"), ("stall", "░", "red"))
"""The parts of elapsed time and their glyphs, in the order of the bar."""
POLICY_COLUMNS = 20
"""Longer policy names are broken at colons if the table does not fit otherwise."""
UNBOUNDED = 100_000
"""Columns of a console on which everything fits."""
SHARED = {
    "block size": ("workload", "block_size"),
    "requests issued": ("workload", "issue"),
    "driver overhead": ("host", "driver_overhead"),
    "scheduler": ("device", "scheduler"),
    "replacement": ("policy", "replacement"),
}
"""Settings that are shown below the tables, and where they are in a resolved scenario."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of figures."""

    name: str
    text: Callable[[Row], str]
    dropped: int = 0
    """Order in which columns that do not fit are dropped, from 1; 0: never."""


def comparison_shown(console: Console, done: Comparison) -> None:
    """Print a comparison for people."""
    console.print(_header(done), markup=False)
    unit, name = _unit(done)
    columns = _columns(done, unit)
    left_out: set[str] = set()
    for setting, rows in done.blocks():
        console.print()
        longest = max(max(row.result.elapsed_ns, _parts_ns(row)) for row in rows)
        bound = rows[0].lower_bound_ns
        title = f"{done.title(setting)} (times in {name}"
        title += ")" if bound is None else f", lower bound {bound / unit:,.3f})"
        kept = list(columns)
        broken = False
        while True:
            table = _table(plain(title), kept, rows, done.refusals(setting), longest, broken=broken)
            needed = Measurement.get(console, console.options.update(width=UNBOUNDED), table).maximum
            last = max(kept, key=lambda column: column.dropped)
            if needed <= console.width or not last.dropped:
                break
            if last.name and not broken:
                broken = True
                continue
            kept.remove(last)
            left_out.add(last.name)
        if needed > console.width:
            # The terminal wraps the line: no figure is cut.
            console.width = needed
        console.print(table)
    console.print()
    _legend(console, done, columns, left_out)
    for line in settings_text(done):
        console.print(line, markup=False, style="dim")
    for note in done.notes():
        console.print(f"note: {plain(note)}", markup=False)
    for policy in dict.fromkeys(row.policy for row in done.rows if row.result.python_calls):
        results = [row.result for row in done.rows if row.policy == policy]
        calls, time_ns = (sum(getattr(each, key) for each in results) for key in ("python_calls", "python_ns"))
        console.print(f"note: {plain(policy)}: {calls:,} calls of Python, {time_ns / 1e9:.3f} s", markup=False)


def _header(done: Comparison) -> str:
    first = done.rows[0].result
    parts = [f"{first.references:,} references"]
    if len({case.setting.cache for case in done.cases}) == 1 and len({_frames(row) for row in done.rows}) == 1:
        parts.append(f"cache of {_frames(done.rows[0])} blocks")
    models = {row.result.scenario["device"]["model"]["name"] for row in done.rows}
    if len(models) == 1:
        parts.append(models.pop())
    return plain(f"{done.workload()}: {', '.join(parts)}")


def _frames(row: Row) -> str:
    return " and ".join(f"{level['blocks']:,}" for level in row.result.levels)


def _unit(done: Comparison) -> tuple[float, str]:
    """Return a unit of time that suits the longest run."""
    longest = max(row.result.elapsed_ns for row in done.rows)
    if longest >= 100_000_000:
        return 1e9, "s"
    return (1e6, "ms") if longest >= 100_000 else (1e3, "us")


def _columns(done: Comparison, unit: float) -> list[Column]:
    def time(value: int | None) -> str:
        return "-" if value is None else f"{value / unit:,.3f}"

    columns = [
        Column("elapsed", lambda row: time(row.result.elapsed_ns)),
        Column("saved", lambda row: time(row.saved_ns)),
        Column("speedup", lambda row: "-" if row.speedup is None else f"{row.speedup:.2f}x"),
        Column("compute", lambda row: time(row.result.compute_ns), 5),
        Column("driver", lambda row: time(row.result.driver_ns), 3),
        Column("stall", lambda row: time(row.result.stall_ns)),
        Column("", lambda row: "", 6),
        Column("fetches", lambda row: f"{row.result.fetches:,}", 2),
        Column("wasted", lambda row: bytes_text(row.wasted_bytes)),
        Column("disk use", lambda row: f"{row.result.utilization:.0%}", 4),
        Column("above bound", lambda row: "-" if row.above_bound is None else f"{row.above_bound:+.1%}", 1),
    ]
    if all(row.lower_bound_ns is None for row in done.rows):
        columns.pop()
    if any(row.coordinator is not None for row in done.rows):
        columns.insert(0, Column("coordinator", lambda row: plain(row.coordinator or "")))
    return columns


def _table(
    heading: str, columns: list[Column], rows: list[Row], refusals: list[Refusal], longest_ns: int, *, broken: bool
) -> Table:
    def named(policy: str) -> str:
        text = plain(policy)
        return escape(text.replace(":", ":\n  ") if broken and len(text) > POLICY_COLUMNS else text)

    table = Table(
        title=escape(heading), title_justify="left", title_style="bold", box=None, pad_edge=False, collapse_padding=True
    )
    table.add_column("", width=1)
    table.add_column("policy", no_wrap=True)
    for column in columns:
        words = column.name in ("coordinator", "")
        title = column.name.replace(" ", "\n") if broken else column.name
        table.add_column(title, justify="left" if words else "right", no_wrap=True)
    deployable = [row for row in rows if not row.knows_future]
    told = [row for row in rows if row.knows_future]
    for group in (deployable, told):
        if group is told and told:
            table.add_row("", "future known:", style="dim")
        for row in group:
            bar = stacked_bar(row, longest_ns)
            cells = [escape(column.text(row)) if column.name else bar for column in columns]
            mark = "*" if row.best else "+" if row.best_deployable else ""
            table.add_row(mark, named(row.policy), *cells, style="bold" if row.best else None)
    for refusal in refusals:
        # Its reason is one of the notes.
        cell = [plain(refusal.coordinator)] if refusal.coordinator is not None else []
        table.add_row("", named(refusal.policy), *map(escape, cell), "see note", style="dim")
    return table


def _parts_ns(row: Row) -> int:
    """Return the sum of the bar's parts, which exceeds elapsed time if there are several processes."""
    return sum(int(getattr(row.result, f"{name}_ns")) for name, _, _ in PARTS)


def stacked_bar(row: Row, longest_ns: int) -> str:
    """Return the parts of elapsed time as a bar; the longest run fills it."""
    pieces: list[str] = []
    done_ns, drawn = 0, 0
    for name, glyph, colour in PARTS:
        done_ns += getattr(row.result, f"{name}_ns")
        # Round ends, not lengths, so that the whole bar is never off by more than half a column.
        end = round(BAR_COLUMNS * done_ns / longest_ns) if longest_ns else 0
        if end > drawn:
            pieces.append(f"[{colour}]{glyph * (end - drawn)}[/]")
            drawn = end
    return "".join(pieces) + " " * (BAR_COLUMNS - drawn)


def _legend(console: Console, done: Comparison, columns: list[Column], left_out: set[str]) -> None:
    if "" not in left_out:
        console.print(
            "[dim]bars: " + ", ".join(f"[{colour}]{glyph}[/] {part}" for part, glyph, colour in PARTS) + "[/]"
        )
    marks = "* fastest"
    if any(row.best_deployable and not row.best for row in done.rows):
        marks += ", + fastest without knowing the future"
    if any(row.saved_ns is not None for row in done.rows):
        marks += "; saved, speedup: against demand (no prefetching)"
    if "above bound" not in left_out and any(column.name == "above bound" for column in columns):
        marks += "; above bound: over the least time that any policy could take"
    console.print(marks, style="dim", markup=False)
    named = [column.name for column in columns if column.name and column.name in left_out]
    if named:
        console.print(
            f"left out for want of room: {', '.join(named)} (a wider terminal or --json has them)", style="dim"
        )


def settings_text(done: Comparison) -> list[str]:
    """Return lines on the settings behind the rows: what all share, and what differs between them."""
    shared, differing = [], []
    for name, (section, key) in SHARED.items():
        values: dict[str, list[Row]] = {}
        for row in done.rows:
            scenario = row.result.scenario
            found = scenario.get(section, {}).get(key)
            if found is not None:
                values.setdefault(_value_text(found), []).append(row)
        if len(values) == 1:
            shared.append(f"{name} {next(iter(values))}")
        elif values:
            said = (f"{value} ({', '.join(_whose(rows, done))})" for value, rows in values.items())
            differing.append(f"{name}: {'; '.join(said)}")
    policies = dict.fromkeys(text for row in done.rows for text in _policies(row.result.scenario))
    lines = [f"settings: {', '.join(shared)}"] if shared else []
    return [plain(line) for line in (*lines, *differing, *policies)]


def _whose(rows: list[Row], done: Comparison) -> Iterable[str]:
    """Return the shortest names for some of the rows: devices or policies if these identify them."""
    others = [row for row in done.rows if row not in rows]
    tells: tuple[Callable[[Row], str], ...] = (lambda row: row.setting.device, lambda row: row.policy)
    for name in tells:
        if not {name(row) for row in rows} & {name(row) for row in others}:
            return dict.fromkeys(name(row) for row in rows)
    return dict.fromkeys(f"{row.label} on {row.setting.device}" for row in rows)


def _policies(scenario: Mapping[str, Any]) -> Iterable[str]:
    """Return each policy with its keys; with several levels, also the level's name."""
    levels = scenario.get("level")
    for level in levels or [scenario]:
        keys = {key: value for key, value in level["policy"].items() if key not in ("name", "replacement", "files")}
        if keys:
            where = f"{level['name']}: " if levels else ""
            said = ", ".join(f"{key} {_value_text(value)}" for key, value in keys.items())
            yield f"{where}{level['policy']['name']}: {said}"


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value["name"]) if "name" in value else ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)

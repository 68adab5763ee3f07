"""Advice for a known order on the console: a table of each measure, then the verdict."""

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from headstart._input import plain
from headstart.advice.caches import POLICIES
from headstart.advice.neighbours import SHARED_POLICIES
from headstart.advice.order import OrderAdvice, OrderPoint, percent
from headstart.sizes import bytes_text

Measure = Callable[[OrderPoint], float | None]


def order_shown(console: Console, done: OrderAdvice) -> None:
    """Print the advice as text."""
    size = "" if done.data_bytes is None else f" ({bytes_text(done.data_bytes)})"
    nodes = f"{done.nodes} nodes" if done.nodes > 1 else "1 node"
    epochs = f"{done.epochs} epochs" if done.epochs > 1 else "1 epoch"
    console.print(
        plain(f"{done.order}: {done.items:,} items{size}, {epochs} on {nodes}, {done.reads:,} reads"),
        style="bold",
        markup=False,
        soft_wrap=True,
    )
    for title, measure in _measures(done).items():
        console.print()
        console.print(title, markup=False, soft_wrap=True)
        console.print(_table(done, measure))
    if done.neighbours:
        console.print()
        after = " after the first epoch" if done.epochs > 1 else ""
        title = f"bytes from the store{after}, %; with neighbours that serve misses, and what these serve then"
        console.print(title, soft_wrap=True)
        console.print(_neighbours(done))
    console.print()
    for line in done.verdict:
        console.print(plain(line), markup=False, soft_wrap=True)


def _measures(done: OrderAdvice) -> dict[str, Measure]:
    """Return the measures by their titles: after the first epoch and in total, and bytes if they differ from reads."""
    found: dict[str, Measure] = {}
    differ = any(point.cache_items is None for point in done.points)
    if done.epochs > 1:
        found["reads that go to the store after the first epoch, %"] = lambda point: point.steady_read_share
        if differ:
            found["bytes from the store after the first epoch, %"] = lambda point: point.steady_byte_share
    found["reads that go to the store, %"] = lambda point: point.read_share
    if differ:
        found["bytes from the store, %"] = lambda point: point.byte_share
    return found


def _table(done: OrderAdvice, measure: Measure) -> Table:
    table = Table(box=None, pad_edge=False)
    first = done.of(POLICIES[0])
    table.add_column("cache of a node" if done.nodes > 1 else "cache", justify="right", no_wrap=True)
    by_items, by_bytes = first[0].cache_items is not None, first[0].cache_bytes is not None
    for name in (["items"] if by_items else []) + (["size"] if by_bytes else []):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("LRU", "never evict", "next use known"):
        table.add_column(name, justify="right", no_wrap=True)
    for points in zip(*map(done.of, POLICIES), strict=True):
        cache = points[0]
        cells = [percent(cache.cache_share)]
        cells += [f"{cache.cache_items:,}"] if by_items else []
        cells += [bytes_text(cache.cache_bytes or 0)] if by_bytes else []
        table.add_row(*cells, *(f"{(measure(point) or 0) * 100:.1f}" for point in points))
    return table


def _neighbours(done: OrderAdvice) -> Table:
    """Return a row for each size and number of nodes: what each policy takes from the store and from neighbours."""
    table = Table(box=None, pad_edge=False)
    sized = done.neighbours[0].network_bytes is not None
    for name in ("cache of a node", "nodes"):
        table.add_column(name, justify="right", no_wrap=True)
    columns = ["never evict", "with", "moved", "next use", "with", "moved"] + (["a node, an epoch"] if sized else [])
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    each = len(SHARED_POLICIES)
    for at in range(0, len(done.neighbours), each):
        points = done.neighbours[at : at + each]
        cells = [percent(points[0].cache_share), f"{points[0].nodes}"]
        shares = [(point.store_share, point.shared_store_share, point.network_share) for point in points]
        cells += [f"{share * 100:.1f}" for of_policy in shares for share in of_policy]
        table.add_row(*cells, *([bytes_text(points[-1].network_bytes or 0)] if sized else []))
    return table

"""What the store delivers if a node takes what it misses from a node that has it, for any number of nodes.

The idea is NoPFS's (Dryden et al., SC 2021). The rule that is counted here: nodes read in step, the first draw of each
node, then the second of each. What no node has is fetched from the store by the node that reads it, which alone keeps
it. The others read it there and keep no copy, so that the nodes keep as much distinct data as fits. Their caches count
as one cache of all their bytes: it never evicts, or it evicts what any node reads last of all (Belady). No placement
with caches of that size fetches fewer bytes from the store than the latter. A node's own limit is not enforced, and a
transfer takes no time.

One pass over the order of all nodes for each size and policy, beside the passes over the nodes' own orders.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headstart.advice.caches import count_all, never_evict, next_use, uses_around
from headstart.advice.known import KnownOrder, numpy

if TYPE_CHECKING:
    from headstart.advice.known import Ints

SHARED_POLICIES = ("never-evict", "next-use")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeighbourPoint:
    """One cache of each of `nodes` nodes; after the first epoch, if there are several. Shares are of the bytes read."""

    nodes: int
    policy: str
    """ "never-evict" or "next-use"."""
    cache_share: float
    """Size of the cache over a node's share of the data."""
    store_share: float
    """Share of the bytes that the store serves if no node serves another."""
    shared_store_share: float
    """Share of the bytes that the store serves if nodes serve each other."""
    network_share: float
    """Share of the bytes that come from another node then."""
    network_bytes: int | None
    """These bytes, for each node and epoch; `None` if sizes are not known."""


def up_to(nodes: int) -> list[int]:
    """Return 1, 2, 4, ... and `nodes`."""
    return [1 << power for power in range((nodes - 1).bit_length())] + [nodes]


def shared(
    known: KnownOrder,
    weights: "Ints",
    item_bytes: int | None,
    capacities: dict[int, list[int]],
    tell: Callable[[float], object],
) -> list[NeighbourPoint]:
    """Return the points by size, number of nodes and policy.

    `weights` are in items or bytes, of which each of the former has `item_bytes` if known; so are `capacities`, the
    sizes of a node's cache by number of nodes.
    """
    np = numpy()
    reads = np.concatenate([epoch.ravel() for epoch in known.epochs])
    draws = np.concatenate([np.repeat(np.arange(len(epoch)), epoch.shape[1]) for epoch in known.epochs])
    steady = known.epochs[0].size if len(known.epochs) > 1 else 0
    rounds = max(len(known.epochs) - 1, 1)
    read_bytes = weights[reads]
    before, after = uses_around(reads)
    total, all_bytes = int(weights.sum()), int(read_bytes[steady:].sum())
    rows: list[list[NeighbourPoint]] = []
    for done, (nodes, sizes) in enumerate(capacities.items()):
        alone = count_all(known, nodes, weights, sorted(set(sizes)), lambda _: None)
        row = []
        for capacity in sizes:
            pool = min(capacity * nodes, total)
            missed_by = {
                "never-evict": never_evict(reads, before, read_bytes, pool),
                "next-use": next_use(after, read_bytes, pool),
            }
            for policy, missed in missed_by.items():
                own = alone[capacity, policy]
                moved = _moved(reads, missed, read_bytes, draws % nodes)[steady:].sum()
                row.append(
                    NeighbourPoint(
                        nodes=nodes,
                        policy=policy,
                        cache_share=capacity * nodes / total,
                        store_share=own["byte_share" if own["steady_byte_share"] is None else "steady_byte_share"],
                        shared_store_share=float(missed[steady:].sum() / all_bytes),
                        network_share=float(moved / all_bytes),
                        network_bytes=None if item_bytes is None else int(moved * item_bytes / nodes / rounds),
                    )
                )
        rows.append(row)
        tell((done + 1) / len(capacities))
    each = len(SHARED_POLICIES)
    return [point for at in range(0, len(rows[0]), each) for row in rows for point in row[at : at + each]]


def _moved(reads: "Ints", missed: "Ints", sizes: "Ints", node: "Ints") -> Any:
    """Return the bytes of each read that come from another node: the one that last fetched all of the item."""
    np = numpy()
    order = np.argsort(reads, kind="stable")
    whole = (missed == sizes)[order]
    # The first read of each item fetches all of it, so that no item takes the place of another's.
    fetched = np.maximum.accumulate(np.where(whole, np.arange(len(order)), 0))
    holder = np.empty_like(node)
    holder[order] = node[order][fetched]
    return np.where(holder != node, sizes - missed, 0)


def worth(points: Sequence[NeighbourPoint], factor: float) -> list[tuple[float, int | None]]:
    """Return, by size (a share), from how many nodes on the store delivers `factor` times fewer bytes.

    Both sides know the next use. `None`: not with any of these numbers of nodes.
    """
    most = max(point.nodes for point in points)
    best = [point for point in points if point.policy == "next-use"]
    found: list[tuple[float, int | None]] = []
    first: int | None = None
    for point in best:
        gains = point.store_share >= factor * point.shared_store_share and point.store_share > 0
        first = (first or point.nodes) if gains else None
        if point.nodes == most:
            found.append((point.cache_share, first))
            first = None
    return found

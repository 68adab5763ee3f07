"""Where the saved read time went, according to the accounting.

The time of every process is compute, waiting for blocks (stall), overhead (overrun of actions, waits for the shared
structures), barriers, and idle once it has read all: the changes of these parts sum to the change of the total. The
intervals say which process was critical: what others save there the barrier takes back (section 4, Figure 2).
"""

from headstart_lab.studies.kotz_ellis._matrix import Pair

PARTS = {"compute": "compute", "stall": "waiting for blocks", "overhead": "overrun and look-ups", "barrier": "barriers"}


def account(pair: Pair) -> str:
    """Return the change of the total and of its parts, of the mean process (ms)."""
    before, after = pair.without, pair.prefetching
    parts = {name: getattr(after, f"{part}_ms") - getattr(before, f"{part}_ms") for part, name in PARTS.items()}
    parts["idle at the end"] = after.idle_ms - before.idle_ms
    changes = ", ".join(f"{name} {change:+.0f}" for name, change in parts.items() if abs(change) >= 0.5)
    return f"total {-pair.total_gain:+.1f} %, read time {-pair.read_gain:+.1f} %; ms: {changes}{_intervals(pair)}"


def _intervals(pair: Pair) -> str:
    """Return how many intervals became shorter, and what their critical processes saved, where both runs have them."""
    before, after = pair.without.intervals, pair.prefetching.intervals
    if len(before) != len(after) or len(before) < 2:
        return ""
    shorter = sum(new.length_ms < old.length_ms for old, new in zip(before, after, strict=True))
    waits = (sum(each.critical_wait_ms for each in intervals) for intervals in (after, before))
    change = next(waits) - next(waits)
    of = f"{shorter} of {len(before)} intervals shorter"
    return f"; of the first seed {of}, waiting for blocks of those critical {change:+.0f}"

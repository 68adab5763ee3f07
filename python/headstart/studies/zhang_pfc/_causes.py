"""Why PFC is slower than no coordination in a case, from the accounting.

Which action it is, two runs tell: that with bypass only and that with readmore only. The slower of those that are
slower than none is named; if neither is, it takes both together. What the action does to the system, the counters of
its own run against those of none tell; the first that holds, in this order, is named:

- lost hits: L2 misses more. What is bypassed is not stored below and, since L2's read-ahead does not see it, triggers
  nothing; L1 asks again, and the disk with it.
- waste: L2 misses no more than before, but more prefetched blocks are never used, and the disk reads more.
- split requests: the disk serves more requests, for what is bypassed and for the rest, of no more blocks.
- later blocks: nothing of this; more of what L1 asks for is still on its way.
- waiting alone: the same blocks in another order.
"""

from headstart.studies.zhang_pfc._matrix import Runs
from headstart.studies.zhang_pfc._outcome import Outcome

NOISE_PERCENT = 0.05
"""Mean response times that differ by less count as equal."""

ALONE = {"bypass": "bypass only", "readmore": "readmore only"}
"""The run that shows each action by itself."""

TOGETHER = "both together"

SYMPTOMS = ("lost hits", "waste", "split requests", "later blocks", "waiting alone")


def worse(runs: Runs) -> bool:
    """Whether PFC is slower than none."""
    return runs.gain() < -NOISE_PERCENT


def better(runs: Runs) -> bool:
    """Whether PFC is faster than none."""
    return runs.gain() > NOISE_PERCENT


def action(runs: Runs) -> str:
    """Which of the two actions makes it slower."""
    slower = min(ALONE, key=lambda name: runs.gain(ALONE[name]))
    return slower if runs.gain(ALONE[slower]) < -NOISE_PERCENT else TOGETHER


def symptom(none: Outcome, pfc: Outcome) -> str:
    """What PFC, or one of its actions, does to the system; one of `SYMPTOMS`."""
    if pfc.l2_misses > none.l2_misses:
        return "lost hits"
    if pfc.l2_unused > none.l2_unused and pfc.disk_blocks > none.disk_blocks:
        return "waste"
    if pfc.disk_requests > none.disk_requests:
        return "split requests"
    if pfc.l2_late > none.l2_late:
        return "later blocks"
    return "waiting alone"


def cause(runs: Runs) -> str:
    """Return the cause in words: "bypass: lost hits"."""
    name = action(runs)
    return f"{name}: {symptom(runs['none'], runs[ALONE.get(name, 'PFC')])}"


def account(none: Outcome, pfc: Outcome) -> str:
    """Return the counters that the cause rests on, before and after."""
    return (
        f"L2 misses {none.l2_misses} to {pfc.l2_misses}, unused {none.l2_unused} to {pfc.l2_unused} "
        f"({none.l2_wasted_service_ms:.0f} to {pfc.l2_wasted_service_ms:.0f} ms of the disk), late {none.l2_late} to "
        f"{pfc.l2_late}, disk requests {none.disk_requests} to {pfc.disk_requests} of {none.disk_blocks} to "
        f"{pfc.disk_blocks} pages; bypassed {pfc.bypass_blocks} pages, {pfc.silent_hits} silent hits, "
        f"{pfc.bypass_fetches} fetched past L2; readmore {pfc.readmore_blocks} pages"
    )

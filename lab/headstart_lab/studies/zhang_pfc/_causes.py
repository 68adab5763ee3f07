"""Why PFC is slower than no coordination in a case, from the accounting.

Two runs tell which action it is: that with bypass only and that with readmore only. The slower of those that are
slower than none is named; if neither is, it takes both together. The counters of the action's own run against those of
none tell what it does to the system; the first that holds, in this order, is named:

- lost hits: L2 misses more. What is bypassed is not stored below and, since L2's read-ahead does not see it, triggers
  nothing; L1 asks again, and the disk with it.
- waste: L2 misses no more than before, but more prefetched blocks are never used, and the disk reads more.
- split requests: the disk serves more requests, for what is bypassed and for the rest, of no more blocks.
- later blocks: nothing of this; more of what L1 asks for is still on its way.
- waiting alone: the same blocks in another order.
"""

from collections.abc import Callable

from headstart_lab.studies.zhang_pfc._matrix import Runs
from headstart_lab.studies.zhang_pfc._outcome import Outcome

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


def account(runs: Runs) -> str:
    """Return the counters that the cause rests on: of none, of the action by itself, and of PFC."""
    names = list(dict.fromkeys(["none", ALONE.get(action(runs), "PFC"), "PFC"]))
    counters: dict[str, Callable[[Outcome], str]] = {
        "L2 misses": lambda run: str(run.l2_misses),
        "unused": lambda run: f"{run.l2_unused} ({run.l2_wasted_service_ms:.0f} ms of the disk)",
        "late": lambda run: str(run.l2_late),
        "disk requests": lambda run: f"{run.disk_requests} of {run.disk_blocks} pages",
        "bypassed": lambda run: f"{run.bypass_blocks} ({run.silent_hits} silent hits, {run.bypass_fetches} fetched)",
        "readmore": lambda run: str(run.readmore_blocks),
    }
    told = [f"{name} {' / '.join(of(runs[each]) for each in names)}" for name, of in counters.items()]
    return f"{' / '.join(names)}: {'; '.join(told)}"

"""What section 7 says may help where a deep prefetch hurts: priorities, admission control, a depth that gives way.

*Priorities*: Figure 13's experiment, with a queue in which demands go before prefetches (`deadline` with
`demand-first`) beside the same queue without. The anticipatory scheduler of the other figures has no priorities, so
`deadline` stands beside itself. Semi-preemptible I/O is left out: a request that has begun is served whole.

*Memory contention*: Two-Rand-0 with 64 clients in `SCARCE` of memory: two streams of a client with two windows of
393 KB each need 100 MB. Admission control lets in so many clients at a time; the others wait. In a closed system
without think time that is a run with so many clients, whose requests are the same (the generator's header).
"""

import dataclasses
from typing import Final

from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07 import _reasons as why
from headstart_lab.studies.li07._claims import noted
from headstart_lab.studies.li07._latency import Latency, case
from headstart_lab.studies.li07._system import POLICIES, Case, Keys, Lab, Runs, server

QUEUES: Final[dict[str, Keys]] = {
    "no priorities": {"name": "deadline"},
    "demand first": {"name": "deadline", "priority": "demand-first"},
}
PRACTICAL: Final = {name: POLICIES[name] for name in ("Linux", "CP")}

SCARCE: Final = "64MiB"
CONTENDED: Final[dict[str, Keys]] = {**PRACTICAL, "CP, shrinking": {"name": "competitive"}}


@dataclasses.dataclass(frozen=True)
class Contended:
    """Runs with this many clients admitted, by policy, with little memory and with enough."""

    clients: int
    scarce: Runs
    plenty: Runs

    def rate(self, policy: str = "CP") -> float:
        """Throughput with little memory, MB/s."""
        return self.scarce[policy].throughput_mb

    def kept(self, policy: str = "CP") -> float:
        """The share of the throughput with enough memory that is left."""
        return self.scarce[policy].throughput_mb / self.plenty[policy].throughput_mb


def remedies(lab: Lab) -> Steps:
    """Section 7: priorities beside Figure 13's reader; admission control and a smaller depth where memory is short."""
    queues = {name: [_beside(lab, clients, queue) for clients in paper.CONCURRENCY] for name, queue in QUEUES.items()}
    memory = [_contended(lab, clients) for clients in paper.CONCURRENCY]
    yield
    plain, first = queues["no priorities"], queues["demand first"]
    rows = [_latencies(name, each) for name, found in queues.items() for each in found]
    rows += [_alleviates(plain, first), _as_linux(plain, first), _price(plain, first)]
    rows += [_memory(each) for each in memory]
    rows += [_degrades(memory[-1]), _admission(memory), _gives_way(memory[-1])]
    return rows


def _beside(lab: Lab, clients: int, queue: Keys) -> Latency:
    return Latency(clients, lab.runs(dataclasses.replace(case(lab, clients), scheduler=queue), PRACTICAL))


def _contended(lab: Lab, clients: int) -> Contended:
    name = f"Two-Rand-0, {clients} of {paper.CONCURRENCY[-1]} clients let in"
    plenty = Case(name, server("two-rand", clients))
    scarce = dataclasses.replace(plenty, name=f"{name}, {SCARCE}", cache=SCARCE)
    return Contended(clients, lab.runs(scarce, CONTENDED), lab.runs(plenty, PRACTICAL))


def _latencies(queue: str, each: Latency) -> Row:
    return unpublished(
        f"{queue}: latency of a page {each.runs.case.name}: Linux, CP (ms)",
        f"{each.of('Linux'):.1f}, {each.of('CP'):.1f}",
        note=f"CP over Linux {each.of('CP') / each.of('Linux'):.2f}"
        + ("" if each.covered else "; INVALID: the background ended first"),
    )


def _alleviates(plain: list[Latency], first: list[Latency]) -> Row:
    pairs = [(old, new) for old, new in zip(plain, first, strict=True) if old.covered and new.covered]
    longer = [(old, new) for old, new in pairs if old.of("CP") / old.of("Linux") > 1 + paper.BETTER]
    ratios = [new.of("CP") / old.of("CP") for old, new in longer]
    count = sum(ratio < 1 - paper.BETTER for ratio in ratios)
    return finding(
        "priorities: latency with CP, where it is longer than Linux's",
        published="priority-based disk queues can alleviate this problem",
        ours=f"shorter than without priorities in {count} of {len(longer)}",
        holds=bool(longer) and count == len(longer),
        tolerance=f"by more than {100 * paper.BETTER:.0f} % in each",
        note=", ".join(f"{old.clients}: {ratio:.2f}" for (old, _), ratio in zip(longer, ratios, strict=True)),
    )


def _as_linux(plain: list[Latency], first: list[Latency]) -> Row:
    ratios = [
        new.of("CP") / old.of("Linux") for old, new in zip(plain, first, strict=True) if old.covered and new.covered
    ]
    return unpublished(
        "priorities: latency with CP over Linux's without: least, greatest",
        f"{min(ratios):.2f}, {max(ratios):.2f}" if ratios else None,
        note=", ".join(f"{ratio:.2f}" for ratio in ratios),
    )


def _price(plain: list[Latency], first: list[Latency]) -> Row:
    """What the background pays: its end is the run's."""
    more = [
        100 * (new.runs["CP"].elapsed_s / old.runs["CP"].elapsed_s - 1) for old, new in zip(plain, first, strict=True)
    ]
    return unpublished(
        "priorities: more time of the background, CP: least, greatest (%)",
        f"{min(more):.1f}, {max(more):.1f}",
        note=", ".join(f"{percent:+.1f}" for percent in more),
    )


def _memory(each: Contended) -> Row:
    runs = each.scarce
    return unpublished(
        f"{runs.case.name}: {', '.join(runs.cells)} (MB/s)",
        ", ".join(f"{each.rate(name):.2f}" for name in runs.cells),
        note=f"of the throughput with 1500 MiB: Linux {each.kept('Linux'):.2f}, CP {each.kept():.2f}; "
        f"% of CP's blocks read in vain {100 * runs['CP'].wasted / max(runs['CP'].disk_blocks, 1):.0f}",
    )


def _degrades(many: Contended) -> Row:
    lost = 1 - many.kept()
    return finding(
        f"memory contention: CP with {many.clients} clients",
        published="may lead to significant performance degradation",
        ours=f"{100 * lost:.1f} % less throughput than with enough memory",
        holds=lost > paper.SIGNIFICANT,
        tolerance=f"more than {100 * paper.SIGNIFICANT:.0f} %",
        note=f"{SCARCE}; Linux loses {100 * (1 - many.kept('Linux')):.1f} %",
    )


def _admission(memory: list[Contended]) -> Row:
    *limited, many = memory
    best = max(limited, key=Contended.rate)
    holds = best.kept() >= 1 - paper.EQUAL and best.rate() > (1 + paper.BETTER) * many.rate()
    return finding(
        "memory contention: CP with admission control",
        published="can be avoided by limiting the server concurrency level",
        ours=f"with {best.clients} let in {best.rate():.2f} MB/s, {best.kept():.2f} of what enough memory brings; "
        f"{many.rate():.2f} with all {many.clients}",
        holds=holds,
        tolerance=f"the best limit: at most {100 * paper.EQUAL:.0f} % below enough memory, more than "
        f"{100 * paper.BETTER:.0f} % above no limit",
        note=noted(", ".join(f"{each.clients}: {each.rate():.2f}" for each in memory), why.ADMISSION, holds),
    )


def _gives_way(many: Contended) -> Row:
    gain = many.rate("CP, shrinking") / many.rate() - 1
    return finding(
        "memory contention: CP that shrinks its depth",
        published="a possible method to avoid performance degradation",
        ours=f"{100 * gain:+.1f} % of throughput",
        holds=gain > paper.BETTER,
        tolerance=f"more than {100 * paper.BETTER:.0f} % above CP that does not",
        note=noted(many.scarce.case.name, why.SHRINKING, gain > paper.BETTER),
    )

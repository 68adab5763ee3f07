"""Figure 13: how a deep prefetch affects a single small request among the requests of others.

Clients of Two-Rand-0 run in the background; one process more reads `PROBES` pages at random places, one every
`THINK_MS`. How many clients, and how small the request, the text does not say: 1 to 64, a page. The background is
written as a trace with the reader's records behind it; that it lasted longer than the reader is checked. OPT is left
out: it knows no latencies.
"""

import dataclasses
import random
from typing import Any, Final

from headstart.trace import trace_generate
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies.li07 import _published as paper
from headstart_lab.studies.li07._system import POLICIES, Case, Lab, Runs

PROBES: Final = 60
THINK_MS: Final = 100
PRACTICAL: Final = ("Linux", "CP", "AP")
BACKGROUND: Final = 1024
"""Requests of the background, of all its clients: Two-Rand-0 serves some five a second."""
FILES: Final = 6000
FILE_PAGES: Final = 1024
PAGE: Final = 4096
SEED: Final = 13


@dataclasses.dataclass(frozen=True)
class Latency:
    """Latencies of the reader, by policy, beside this number of clients."""

    clients: int
    runs: Runs

    def of(self, policy: str) -> float:
        """Mean, in ms."""
        return self.runs[policy].last_read_ms

    @property
    def covered(self) -> bool:
        """Whether the background went on until the reader had ended, under each policy."""
        return all(self.runs[policy].last_idle_s > 0 for policy in self.runs.cells)


def figure13(lab: Lab) -> Steps:
    """Figure 13: latency of a small request while Two-Rand-0 runs in the background."""
    found = latencies(lab)
    yield
    rows = [_row(each) for each in found]
    return [*rows, *(_longer(found, *pair) for pair in (("CP", "Linux"), ("AP", "CP")))]


def latencies(lab: Lab) -> list[Latency]:
    """Ask for the runs, by clients in the background."""
    policies = {name: POLICIES[name] for name in PRACTICAL}
    return [Latency(clients, lab.runs(case(lab, clients), policies)) for clients in paper.CONCURRENCY]


def case(lab: Lab, clients: int) -> Case:
    """Return the reader beside `clients` clients; its trace is written into the scratch folder."""
    path = lab.scratch / f"two-rand-{clients}.csv"
    if not path.exists():
        keys = {"requests": max(BACKGROUND, clients), "concurrency": clients, "files": FILES}
        trace_generate("two-rand", path, keys=keys, block_size="4KiB")
        with path.open("a", encoding="utf-8") as trace:
            trace.writelines(probes(clients))
    workload: dict[str, Any] = {"trace": str(path)}
    return Case(f"beside {clients} client{'s' if clients > 1 else ''}", workload)


def probes(pid: int) -> list[str]:
    """Return the records of the reader, process `pid`: never a file's first page, where a read-ahead might begin."""
    draw = random.Random(SEED)
    places = [(draw.randrange(FILES), draw.randrange(1, FILE_PAGES)) for _ in range(PROBES)]
    return [f"{pid},{file},{page * PAGE},{PAGE},{THINK_MS * 1000}\n" for file, page in places]


def _row(each: Latency) -> Row:
    names = list(each.runs.cells)
    return unpublished(
        f"latency of a page {each.runs.case.name}: {', '.join(names)} (ms)",
        ", ".join(f"{each.of(name):.1f}" for name in names),
        note="over Linux: "
        + ", ".join(f"{name} {each.of(name) / each.of('Linux'):.2f}" for name in names if name != "Linux")
        + ("" if each.covered else "; INVALID: the background ended first"),
    )


def _longer(found: list[Latency], deep: str, shallow: str) -> Row:
    valid = [each for each in found if each.covered]
    ratios = [each.of(deep) / each.of(shallow) for each in valid]
    count = sum(ratio > 1 + paper.BETTER for ratio in ratios)
    return finding(
        f"latency with {deep} beside {shallow}",
        published="large depths can lead to increased latencies" if deep == "CP" else "the deeper, the more",
        ours=f"longer in {count} of {len(valid)}",
        holds=bool(valid) and count > len(valid) / 2,
        tolerance=f"by more than {100 * paper.BETTER:.0f} % in more than half",
        note=", ".join(f"{each.clients}: {ratio:.2f}" for each, ratio in zip(valid, ratios, strict=True)),
    )

"""model-traces: a file system's equations on traces of web servers, scientific programs and databases.

Shriver, Small and Smith (USENIX 1999, section 6) leave this open: "We would like to use our analytic model to compare
different file system prefetching polices and parameter settings to determine the 'best' setting for a particular
workload. Workloads which seem promising are web server, scientific workloads [Miller91], and database benchmarking
workloads." Here `headstart model trace` predicts the mean response of recorded programs, and the simulation of the
same scenario is what it is held against. No trace of those workloads of 1999 is at hand: other programs stand for
them (`KINDS`).

A case is a trace read in one of three ways (`WAYS`): demand fetching and the file system's read-ahead, by a program
that computes nothing, and the read-ahead with the recorded think times. Writes are left out, the requests of all
processes come in their recorded order, and the cache holds all that is read. Drive, bus and costs are those of the
paper's faster machine; a trace of more data than its drive holds lies on a larger one (`LARGE`). Model and simulation
have the same layout, seed 1.

The criteria, written before the first results:

- error, for each of the four kinds: the median of the sizes of the model's errors is at most 10 %.
- worst: no case is more than 25 % off.
- requests: in each case the model's requests of the disk are within 1 % of the simulated ones.
- best setting: of each trace that read-ahead makes at least 2 % faster or slower than demand fetching, both without
  think times, the model says which of the two is faster.

The item `writes` came later, since the paper's model "does not handle file system writes" (section 6): the traces of
which at least a tenth of the requests write (`WRITERS`), with read-ahead. Written blocks are dirty for 30 s, and leave
in clusters of 64 KB as 4.4BSD writes them, or block by block (`WRITTEN`). Its criteria, before its first results:

- error: the median of the sizes of the model's errors is at most 10 %, and none is more than 25 %.
- requests: in each case the model's requests of the disk are within 1 % of the simulated ones.
- best setting: of each trace that clusters make at least 2 % faster or slower than single blocks, both without think
  times, the model says which of the two is faster.
"""

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from headstart import _examples, model
from headstart_lab.studies._lab import BESIDE, Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies._study import Study
from headstart_lab.studies.shriver99 import _platform as platform
from headstart_lab.studies.shriver99 import _runs
from headstart_lab.studies.shriver99._runs import MS, Pair

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "web": ("glimpse", "ml_folder", "grep_r", "tar_c", "dbench_client"),
    "science": ("ml_slice", "ml_h5rand", "ml_wds", "dlio_unet3d"),
    "database": (
        "pg_select",
        "pg_join",
        "pg_mix",
        "pg_oltp",
        "rocksdb_readrandom",
        "rocksdb_readseq",
        "rocksdb_scan",
    ),
    "other": ("cscope1", "cscope2", "cscope3", "ld", "make_gcc", "sort_merge", "multi6"),
}
"""Stand-ins. Web: many small files, read whole, and the clients of a file server. Science: arrays and training data."""
SHIPPED: Final = ("cscope1", "glimpse", "ml_slice", "pg_select")
"""Some that ship with headstart and take seconds."""
WRITERS: Final = ("tar_c", "dbench_client", "pg_oltp", "ld", "make_gcc", "sort_merge", "multi6")
"""The traces that write."""


class Way(NamedTuple):
    """How a trace is read."""

    policy: str
    compute: str
    """Think time."""
    cluster: str | None = None
    """Size of written clusters; "": each block is written by itself. `None`: writes are left out."""


WAYS: Final[Mapping[str, Way]] = {
    "demand": Way("demand", "0ms"),
    "read-ahead": Way("ffs", "0ms"),
    "read-ahead, thinking": Way("ffs", "trace"),
}
WRITTEN: Final[Mapping[str, Way]] = {
    "blocks": Way("ffs", "0ms", ""),
    "clusters": Way("ffs", "0ms", "64KiB"),
    "clusters, thinking": Way("ffs", "trace", "64KiB"),
}
CACHE_BLOCKS: Final = 4_000_000
"""Blocks of 8 KB: holds each trace."""
DIRECTORY_FILES: Final = 50
"""Files of a directory. A guess, as in the item `traces` of shriver99."""
LARGE: Final[Mapping[str, str]] = {"dlio_unet3d": "ibm-36gb-10k"}
"""Drives of traces that need more than the paper's 4.5 GB."""

MEDIAN: Final = 0.10
WORST: Final = 0.25
REQUESTS: Final = 0.01
FASTER: Final = 0.02
WORDS: Final = {
    "demand": "demand fetching",
    "read-ahead": "time with read-ahead",
    "blocks": "single blocks",
    "clusters": "time with clusters",
}
WRITES: Final = "does not handle file system writes; we would like to extend it (section 6)"
WANTED: Final = "equations for web server, scientific and database workloads (section 6)"

Case = tuple[str, str]
"""A trace and a way."""


class Lab(_runs.Lab):
    """shriver99's laboratory."""

    kept = "model-traces 1"


def _path(lab: Lab, name: str) -> Path | None:
    given = [lab.folders.traces] if lab.folders.traces else []
    roots = (*given, BESIDE)
    folders = [_examples.TRACES, *(root / sub for root in roots for sub in ("programs", "third-party/files"))]
    return next((path for folder in folders if (path := folder / f"{name}.csv.xz").exists()), None)


def _found(lab: Lab, what: str, names: Iterable[str]) -> tuple[dict[str, Path], list[Row]]:
    """Return the existing traces by name, and a row for each one that is absent."""
    paths = {name: _path(lab, name) for name in names}
    absent = [name for name, path in paths.items() if path is None]
    note = f"SKIPPED: absent: {', '.join(absent)}; HEADSTART_TRACES names a folder"
    rows = [unpublished(f"{what}: traces", None, note=note)] if absent else []
    return {name: path for name, path in paths.items() if path is not None}, rows


def _scenario(name: str, path: Path, way: Way) -> dict[str, Any]:
    more = {"model": LARGE[name]} if name in LARGE else {}
    return {
        "seed": 1,
        "workload": {
            "trace": str(path),
            "compute": way.compute,
            "writes": "skip" if way.cluster is None else "back",
            "placement": {"name": "ffs", "opens": "read", "directory_files": DIRECTORY_FILES},
        },
        "cache": {"blocks": CACHE_BLOCKS, **({"write_cluster": way.cluster} if way.cluster else {})},
        "policy": way.policy,
        "device": platform.device(platform.FAST_MS, platform.FAST_BUS, **more),
        "host": dict(platform.FAST_COSTS),
    }


class Compared:
    """Traces read in each way, modelled and simulated."""

    def __init__(self, lab: Lab, traces: Mapping[str, Path], ways: Mapping[str, Way] = WAYS) -> None:
        self._scenarios = {
            (name, way): _scenario(name, path, ways[way]) for name, path in traces.items() for way in ways
        }
        self._runs = {case: lab.of([scenario]) for case, scenario in self._scenarios.items()}
        self.pairs: dict[Case, Pair] = {}
        self.requests: dict[Case, tuple[int, float]] = {}
        """Modelled and simulated."""
        self.parameters: dict[Case, model.TraceParameters] = {}

    def compute(self) -> None:
        """Evaluate the equations, once the simulations are done."""
        for case, scenario in self._scenarios.items():
            found, run = model.of_trace(scenario), self._runs[case]
            name, way = case
            self.pairs[case] = Pair(name, way, run.response_ms, found.response_ns / MS)
            self.requests[case] = (found.disk_requests, run.mean("disk_requests"))
            self.parameters[case] = found.parameters

    def rows(self) -> list[Row]:
        """Return the error of each case, by trace."""
        rows = []
        for case, pair in self.pairs.items():
            of, (ours, simulated) = self.parameters[case], self.requests[case]
            note = (
                f"simulated {pair.simulated_ms:.3f} ms, by the equations {pair.model_ms:.3f} ms; requests of the disk "
                f"{simulated:.0f}, {ours}; {of.requests} requests of {of.request / 1024:.1f} KB in runs of "
                f"{of.run_length / 1024:.1f} KB, {of.switches} for another file, {of.data_span / 2**20:.1f} MiB"
            )
            rows.append(
                unpublished(
                    f"{pair.series}, {pair.x}: error of the mean response of {pair.simulated_ms:.2f} ms (%)",
                    round(100 * pair.error, 1),
                    note=note,
                )
            )
        return rows


def _item(kind: str, names: tuple[str, ...], about: str) -> Callable[[Lab], Steps]:
    def steps(lab: Lab) -> Steps:
        traces, absent = _found(lab, kind, names)
        compared = Compared(lab, traces)
        yield
        compared.compute()
        if not compared.pairs:
            return absent
        return [_median(kind, compared, list(traces)), *compared.rows(), *absent]

    steps.__doc__ = f"{about}: the equations' error against the simulation."
    return steps


def findings(lab: Lab) -> Steps:
    """All traces together: the greatest error, the disk's requests, and which of two settings is the better."""
    traces, absent = _found(lab, "all", itertools.chain.from_iterable(KINDS.values()))
    compared = Compared(lab, traces)
    yield
    compared.compute()
    if not compared.pairs:
        return absent
    best = _best(compared, list(traces), ("demand", "read-ahead"), "the better of demand fetching and read-ahead")
    return [_worst(compared), _requests(compared), best, *absent]


def writes(lab: Lab) -> Steps:
    """Traces that write: the equations' error against the simulation."""
    traces, absent = _found(lab, "writes", WRITERS)
    compared = Compared(lab, traces, WRITTEN)
    yield
    compared.compute()
    if not compared.pairs:
        return absent
    verdicts = [
        _median("writes", compared, list(traces), published=WRITES),
        _worst(compared, published=WRITES),
        _requests(compared, published=WRITES),
        _best(compared, list(traces), ("blocks", "clusters"), "the better of single blocks and clusters"),
    ]
    return [*verdicts, *compared.rows(), *absent]


def _median(what: str, compared: Compared, traces: list[str], published: str = WANTED) -> Row:
    sizes = [abs(pair.error) for pair in compared.pairs.values()]
    median = statistics.median(sizes)
    return finding(
        f"{what}: median of the errors' sizes",
        published=published,
        ours=f"{100 * median:.1f} %, {len(sizes)} cases",
        holds=median <= MEDIAN,
        tolerance=f"at most {100 * MEDIAN:.0f} %",
        note=f"greatest {100 * max(sizes):.1f} %; traces: {', '.join(traces)}",
    )


def _worst(compared: Compared, published: str = WANTED) -> Row:
    pairs = list(compared.pairs.values())
    worst = max(pairs, key=lambda pair: abs(pair.error))
    off = [f"{pair.series}, {pair.x} {100 * pair.error:+.1f} %" for pair in pairs if abs(pair.error) > WORST]
    return finding(
        "greatest error",
        published=published,
        ours=f"{100 * worst.error:+.1f} %: {worst.series}, {worst.x}",
        holds=not off,
        tolerance=f"at most {100 * WORST:.0f} % in each of {len(pairs)} cases",
        note=f"beyond: {'; '.join(off) or 'none'}",
    )


def _requests(compared: Compared, published: str = WANTED) -> Row:
    errors = {case: ours / simulated - 1 for case, (ours, simulated) in compared.requests.items()}
    (name, way), worst = max(errors.items(), key=lambda item: abs(item[1]))
    return finding(
        "requests of the disk",
        published=published,
        ours=f"at most {100 * worst:+.2f} % ({name}, {way})",
        holds=abs(worst) <= REQUESTS,
        tolerance=f"within {100 * REQUESTS:.0f} % of the simulated ones in each case",
        note=f"{sum(error == 0 for error in errors.values())} of {len(errors)} cases the same",
    )


def _best(compared: Compared, traces: list[str], ways: tuple[str, str], what: str) -> Row:
    gains = {}
    for name in traces:
        one, other = (compared.pairs[name, way] for way in ways)
        gains[name] = (other.model_ms / one.model_ms - 1, other.simulated_ms / one.simulated_ms - 1)
    told = {name: gain for name, gain in gains.items() if abs(gain[1]) >= FASTER}
    right = [name for name, (ours, simulated) in told.items() if ours * simulated > 0]
    figures = (
        f"{name} {100 * ours:+.1f} %, simulated {100 * simulated:+.1f} %" for name, (ours, simulated) in gains.items()
    )
    return finding(
        what,
        published="compare different prefetching policies to determine the best setting (section 6)",
        ours=f"named for {len(right)} of {len(told)} traces",
        cases=(len(right), len(told)),
        holds=len(right) == len(told),
        tolerance=f"each trace on which they differ by {100 * FASTER:.0f} %",
        note=f"{WORDS[ways[1]]} beside {WORDS[ways[0]]}: {'; '.join(figures)}",
    )


STUDY = Study(
    name="model-traces",
    title="A file system's equations on traces, as shriver99's authors propose",
    seeds="1",
    lab=Lab,
    input="stand-in",
    steps={
        "shipped": _item("shipped", SHIPPED, "Some programs that ship with headstart"),
        "web": _item("web", KINDS["web"], "Many small files, and the clients of a file server"),
        "science": _item("science", KINDS["science"], "Arrays and training data"),
        "database": _item("database", KINDS["database"], "Databases"),
        "other": _item("other", KINDS["other"], "Other programs"),
        "findings": findings,
        "writes": writes,
    },
)

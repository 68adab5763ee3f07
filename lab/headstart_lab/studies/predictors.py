"""predictors: policies that learn, beside Linux's read-ahead, hinted policies and the lower bound, on recorded traces.

No paper compares them all; each has a sentence on one or two of them, which is the finding's "published". The traces
are the programs that were recorded for this project and the block traces of others, the first requests of each; the
caches hold a tenth of the blocks that a trace reads. Hinted policies go block by block, all others by whole requests.

The criteria, written before the first results. Means of times are geometric, over all traces.

- bound: no policy takes less time than the lower bound of its trace, the lesser of blocks' and whole requests'.
- hinted: the faster hinted policy, which knows what comes, takes less time in the mean than each predictor.
- sequential: on programs Linux's read-ahead takes less time in the mean than each predictor but leap and patterns,
  which follow distances: files are read in sequence, and most of them once.
- successors: a greater share of stable-successor's prefetches is used than of last-successor's (Amer and Long).
- contexts: a greater share of ppm's prefetches is used than of last-successor's (Kroeger and Long).
- mithril: on block traces a greater share of its prefetches is used than of the graph's of blocks (Yang et al.).
- leap: on programs it takes less time in the mean than demand fetching (Al Maruf and Chowdhury).
"""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from headstart import _examples
from headstart.simulation import Result, lower_bound
from headstart_lab.studies import _lab
from headstart_lab.studies._lab import BESIDE, Cell, Steps
from headstart_lab.studies._rows import Row, finding, unpublished
from headstart_lab.studies._study import Study

PREDICTORS: Final = (
    "last-successor",
    "stable-successor",
    "probability-graph",
    "probability-graph of blocks",
    "ppm",
    "mithril",
    "leap",
    "patterns",
)
HINTED: Final = ("forestall", "just-in-time")
POLICIES: Final = ("demand", "linux", *PREDICTORS, *HINTED)
REQUESTS: Final = 10_000
"""Requests of each trace: times differ little from those of whole traces, and all runs take minutes."""
FOOTPRINT: Final = 0.1
"""The cache, as a share of the blocks that are read."""
DEVICE: Final = "seagate-exos-x20"
PROGRAMS: Final = (
    *("cscope1", "cscope2", "cscope3", "glimpse", "grep_r", "ld", "make_gcc", "ml_folder", "ml_h5rand", "ml_slice"),
    *("ml_wds", "multi6", "pg_join", "pg_mix", "pg_oltp", "pg_select", "rocksdb_readrandom", "rocksdb_readseq"),
    *("rocksdb_scan", "sort_merge", "sqlite", "tar_c"),
)
SHIPPED: Final = ("cscope1", "glimpse", "ml_folder", "ml_slice", "pg_select")
"""Programs that ship in the package, and whose runs take seconds."""
BLOCKS: Final = (
    *("financial1_first10k.spc.xz", "websearch_first25k.spc.xz", "cloudPhysicsIO.vscsi", "eternity8.q.csv.xz"),
    *("eternity9.q.csv.xz", "hplajw.csv.xz", "pcmark.trace.xz", "msr.cut.per_10k.most_thpt_rand_iops.1006.trace.xz"),
    "msr.cut.per_10k.rw_20_80.105.trace.xz",
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The figures of a run that are shown."""

    elapsed_ns: int
    misses: int
    fetches: int
    prefetches: int
    used: int
    wasted: int

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return the outcome of a result."""
        keys = ("elapsed_ns", "misses", "fetches", "prefetches", "prefetches_used", "prefetches_wasted")
        found = result.to_dict()
        return cls(*(int(found[key]) for key in keys))


class Lab(_lab.Lab[Outcome]):
    """A laboratory whose runs are `Outcome`s."""

    outcome = Outcome
    kept = "predictors 1"


Runs = Mapping[tuple[str, str], Cell[Outcome]]


def _folders(lab: Lab) -> list[Path]:
    given = [lab.folders.traces] if lab.folders.traces else []
    return [*given, BESIDE]


def _found(kind: str, places: Mapping[str, list[Path]]) -> tuple[dict[str, Path], list[Row]]:
    """Return the existing traces by name, and a row for each one that is absent."""
    found = {name: path for name, paths in places.items() for path in reversed(paths) if path.exists()}
    absent = [name for name in places if name not in found]
    note = f"SKIPPED: absent: {', '.join(absent)}; HEADSTART_TRACES names a folder"
    return found, [unpublished(f"{kind} traces", None, note=note)] if absent else []


def _programs(lab: Lab, names: tuple[str, ...] = PROGRAMS) -> tuple[dict[str, Path], list[Row]]:
    folders = [_examples.TRACES, *(folder / "programs" for folder in _folders(lab))]
    return _found("program", {name: [folder / f"{name}.csv.xz" for folder in folders] for name in names})


def _blocks(lab: Lab) -> tuple[dict[str, Path], list[Row]]:
    folders = [folder / "third-party" / "blocks" for folder in _folders(lab)]
    return _found("block", {_short(name): [folder / name for folder in folders] for name in BLOCKS})


def _short(name: str) -> str:
    return name.split(".trace")[0].split(".csv")[0].split(".spc")[0].split(".vscsi")[0]


def _scenario(path: Path, policy: str) -> dict[str, Any]:
    name, _, of_blocks = policy.partition(" ")
    keys = {"name": name} | ({"unit": "block"} if of_blocks else {}) | ({"version": "6.12"} if name == "linux" else {})
    issue = "blocks" if policy in HINTED else "whole"
    return {
        "workload": {"trace": str(path), "limit": REQUESTS, "addresses": "compact-chunks", "issue": issue},
        "cache": {"footprint": FOOTPRINT},
        "policy": keys,
        "device": {"model": DEVICE},
    }


def _ask(lab: Lab, traces: Mapping[str, Path]) -> Runs:
    return {(trace, policy): lab.ask(_scenario(path, policy)) for trace, path in traces.items() for policy in POLICIES}


def _bounds(traces: Mapping[str, Path]) -> dict[str, int]:
    bounds = {}
    for trace, path in traces.items():
        # The bound of blocks can be the higher one; each bounds only its own policies.
        least = [lower_bound(_scenario(path, policy))["elapsed_ns"] for policy in ("demand", "forestall")]
        bounds[trace] = min(least)
    return bounds


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _figures(time: float, runs: list[Outcome]) -> str:
    """Return the time, and accuracy, coverage and waste of these runs together."""
    used, prefetches = sum(run.used for run in runs), sum(run.prefetches for run in runs)
    misses, wasted, fetches = (sum(getattr(run, key) for run in runs) for key in ("misses", "wasted", "fetches"))
    return (
        f"time {time:.3f}, accuracy {_share(used, prefetches):.3f}, coverage {_share(used, used + misses):.3f}, "
        f"waste {_share(wasted, fetches):.3f}"
    )


def _rows(runs: Runs, traces: Mapping[str, Path]) -> list[Row]:
    rows = []
    for trace, bound in _bounds(traces).items():
        demand = runs[trace, "demand"].outcome.elapsed_ns
        for policy in POLICIES:
            run = runs[trace, policy].outcome
            rows.append(unpublished(f"{trace}, {policy}", _figures(run.elapsed_ns / demand, [run])))
        rows.append(unpublished(f"{trace}, lower bound", f"time {bound / demand:.3f}"))
    return rows


def shipped(lab: Lab) -> Steps:
    """Some programs that ship with headstart: time beside demand's, accuracy, coverage and waste."""
    traces, absent = _programs(lab, SHIPPED)
    runs = _ask(lab, traces)
    yield
    return [*_rows(runs, traces), *absent]


def programs(lab: Lab) -> Steps:
    """Each recorded program: the same."""
    traces, absent = _programs(lab)
    runs = _ask(lab, traces)
    yield
    return [*_rows(runs, traces), *absent]


def blocks(lab: Lab) -> Steps:
    """Each block trace: the same."""
    traces, absent = _blocks(lab)
    runs = _ask(lab, traces)
    yield
    return [*_rows(runs, traces), *absent]


def _mean(runs: Runs, traces: Mapping[str, Path], policy: str) -> float:
    """Return the geometric mean of the time beside that of demand."""
    ratios = [runs[trace, policy].outcome.elapsed_ns / runs[trace, "demand"].outcome.elapsed_ns for trace in traces]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _accuracy(runs: Runs, traces: Mapping[str, Path], policy: str) -> float:
    of_policy = [runs[trace, policy].outcome for trace in traces]
    return _share(sum(run.used for run in of_policy), sum(run.prefetches for run in of_policy))


def summary(lab: Lab) -> Steps:
    """Each policy on programs and on block traces: mean time beside demand's, accuracy, coverage and waste."""
    kinds = {"programs": _programs(lab), "block traces": _blocks(lab)}
    runs = {kind: _ask(lab, traces) for kind, (traces, _) in kinds.items()}
    yield
    rows: list[Row] = []
    for kind, (traces, absent) in kinds.items():
        if absent:
            rows += absent
            continue
        for policy in POLICIES:
            of_policy = [runs[kind][trace, policy].outcome for trace in traces]
            figures = _figures(_mean(runs[kind], traces, policy), of_policy)
            rows.append(unpublished(f"{kind}, {policy}", figures))
        bounds = _bounds(traces)
        ratios = [bounds[trace] / runs[kind][trace, "demand"].outcome.elapsed_ns for trace in traces]
        mean = math.exp(sum(math.log(max(ratio, 1e-9)) for ratio in ratios) / len(ratios))
        rows.append(unpublished(f"{kind}, lower bound", f"time {mean:.3f}"))
    return rows


def _than(name: str, published: str, ours: float, other: float, *, less: bool, note: str) -> Row:
    holds = ours < other if less else ours > other
    return finding(name, published=published, ours=f"{ours:.3f} against {other:.3f}", holds=holds, note=note)


def findings(lab: Lab) -> Steps:
    """What the papers say of their predictors, and what is to be expected of them all."""
    (of_programs, absent), (of_blocks, absent_blocks) = _programs(lab), _blocks(lab)
    runs = {**_ask(lab, of_programs), **_ask(lab, of_blocks)}
    yield
    if absent or absent_blocks:
        return [*absent, *absent_blocks]
    both = {**of_programs, **of_blocks}
    bounds = _bounds(both)
    worst = min((runs[trace, policy].outcome.elapsed_ns / bounds[trace], trace, policy) for trace, policy in runs)
    times = {policy: _mean(runs, both, policy) for policy in POLICIES}
    on_programs = {policy: _mean(runs, of_programs, policy) for policy in POLICIES}
    fastest, hinted = (min(names, key=times.__getitem__) for names in (PREDICTORS, HINTED))
    of_history = min(
        (policy for policy in PREDICTORS if policy not in ("leap", "patterns")), key=on_programs.__getitem__
    )
    last, stable, ppm = (_accuracy(runs, both, name) for name in ("last-successor", "stable-successor", "ppm"))
    mithril, graph = (_accuracy(runs, of_blocks, name) for name in ("mithril", "probability-graph of blocks"))
    used, mean = "share of prefetches that are used", "geometric mean of the time beside demand's"
    return [
        finding(
            "bound: the least time beside the lower bound",
            published="no policy beats the bound",
            ours=f"{worst[0]:.3f}",
            holds=worst[0] >= 1,
            basis="identity",
            note=f"{worst[1]}, {worst[2]}; {len(runs)} runs",
        ),
        _than(
            "hinted",
            "hints beat prediction",
            times[hinted],
            times[fastest],
            less=True,
            note=f"{mean}; {hinted}, {fastest}",
        ),
        _than(
            "sequential",
            "read-ahead beats history on programs",
            on_programs["linux"],
            on_programs[of_history],
            less=True,
            note=f"{mean}; {of_history}",
        ),
        _than("successors", "stable successors are wrong less often", stable, last, less=False, note=used),
        _than("contexts", "contexts predict better than the last successor", ppm, last, less=False, note=used),
        _than(
            "mithril",
            "more precise than the probability graph",
            mithril,
            graph,
            less=False,
            note=f"{used}; block traces",
        ),
        _than("leap", "faster than none on programs", on_programs["leap"], 1.0, less=True, note=mean),
    ]


STUDY = Study(
    name="predictors",
    title="Policies that learn, beside Linux's read-ahead, hints and the lower bound",
    seeds="1; nothing is random",
    lab=Lab,
    input="stand-in",
    steps={"findings": findings, "summary": summary, "shipped": shipped, "programs": programs, "blocks": blocks},
)

"""One run: a scenario in, a result out.

A scenario is the path of a TOML file or a mapping of the same shape (docs/scenario.md). The core does the work
without the GIL; what crosses the border is JSON.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self, TypedDict, cast

from headstart import _core, custom, results
from headstart._input import listed
from headstart.registry import catalog

Scenario = Mapping[str, Any] | str | PathLike[str]
Progress = Callable[[float, int], object]
"""Called from time to time with the share done (0 to 1) and the references served; an exception stops the run."""


class Traces:
    """Traces shared by several runs: each is decoded and hashed once.

    Pass one object to all runs, on any thread. It holds up to two million requests of all its traces, at 56 bytes each,
    until it is deleted. Each run decodes further requests itself. The object does not affect results.
    """

    def __init__(self) -> None:
        self._shared = _core.Traces()


def _shared(traces: Traces | None) -> _core.Traces | None:
    return None if traces is None else traces._shared


class _Source(TypedDict, total=False):
    path: str
    json: str


def source_of(scenario: Scenario) -> _Source:
    """Return a scenario as arguments of the core."""
    if isinstance(scenario, Mapping):
        try:
            text = json.dumps(dict(scenario), allow_nan=False, ensure_ascii=False, default=_plain)
            text.encode()
            return {"json": text}
        except UnicodeEncodeError as error:
            start = max(error.start - 20, 0)
            near = text[start : error.end].encode("utf-8", "backslashreplace").decode()
            raise _core.HeadstartError(f"scenario: {near} is not UTF-8; allowed: text and names in UTF-8") from error
        except (TypeError, ValueError) as error:
            raise _core.HeadstartError(f"scenario: {error}; allowed: text, numbers, lists and tables") from error
    return {"path": fspath(scenario)}


def _plain(value: object) -> object:
    """Convert a value that JSON does not support: a path, a trace, a number of NumPy."""
    if (keys := custom.keys_of(value)) is not value:
        return keys
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item") and not getattr(value, "ndim", 0):
        return value.item()
    raise TypeError(f"a value of type {type(value).__name__} is none of a scenario")


def located(value: Any, key: str, folder: Path) -> Any:
    """Return part of a scenario; the paths of files only found in the scenario's folder include that folder."""
    if isinstance(value, dict):
        return {key: located(each, key, folder) for key, each in value.items()}
    if isinstance(value, list):
        return [located(each, key, folder) for each in value]
    if not isinstance(value, str):
        return value
    is_policy = key in ("policy", "replacement", "name") and custom.is_custom(value)
    is_profile = key in ("device", "model") and value not in {entry["name"] for entry in catalog()["devices"]}
    path = value.partition(":")[0] if is_policy else value
    is_beside = (is_policy or is_profile or key == "trace") and not Path(path).exists() and (folder / path).is_file()
    return str(folder / value) if is_beside else value


PARTS = ("compute", "driver", "overhead", "stall", "barrier", "idle")
"""The parts of elapsed time, each a field `PART_ns` of a result."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Result:
    """The outcome of one run. Times are whole nanoseconds; counts are the application's (the first level's).

    Always: references = hits_ready + hits_unready + misses, fetches = demand_fetches + prefetches, prefetches =
    prefetches_used + prefetches_wasted, and elapsed is the sum of compute, driver, overhead, stall, barrier, idle.
    """

    schema: int
    """Version of the shape of `to_dict()`."""
    version: str
    """Version of headstart that ran the scenario."""
    scenario: dict[str, Any]
    """The scenario with all defaults. It can be run again."""
    seed: int
    trace_sha256: str
    """Hash of the trace's file, or of the description of a generated workload."""
    notes: list[str]
    """Notes on the figures, one sentence each."""
    elapsed_ns: int
    compute_ns: int
    driver_ns: int
    overhead_ns: int
    """Processor time of hits, system calls, copies and prefetch actions."""
    stall_ns: int
    """Time spent waiting for blocks."""
    barrier_ns: int
    idle_ns: int
    requests: int
    # Written by `make docs` from crates/core/engine/src/counts.rs.
    references: int
    """Blocks requested, including those still waited for; = `hits_ready` + `hits_unready` + `misses`."""
    hits_ready: int
    """References that found their block resident."""
    hits_unready: int
    """References that found their block in flight, requested at an earlier instant."""
    misses: int
    """All other references; = `demand_fetches` + `write_misses`, with one process."""
    hit_wait_ns_mean: int
    """Mean wait of `hits_unready` until their blocks arrived."""
    fetches: int
    """= `demand_fetches` + `prefetches`."""
    demand_fetches: int
    """Fetches of a block that a process waits for or is about to reference."""
    prefetches: int
    """Fetches of other blocks; = `prefetches_used` + `prefetches_wasted`."""
    prefetches_used: int
    """Those of `prefetches` whose block was referenced before it was evicted."""
    prefetches_late: int
    """Those of `prefetches_used` that were still in flight when referenced."""
    prefetches_wasted: int
    """Those of `prefetches` whose block was not referenced."""
    evictions: int
    """Number of evicted blocks."""
    writes: int
    """Those of `references` that wrote, where writes reach the devices."""
    write_misses: int
    """Those of `misses` that wrote: the block took a frame without a fetch."""
    blocks_written: int
    """Blocks written to devices, or to the level below."""
    # End of what is written.
    throughput_bytes_per_s: int
    response_ns: results.Response
    """Mean, percentiles and maximum of a request's time from issue to reply."""
    levels: list[results.Level]
    """For each level: its counts, the value of its prefetches, and the traffic to the level above."""
    devices: list[results.Disk]
    processes: list[results.Process]
    intervals: list[results.Interval]
    python_calls: int = dataclasses.field(default=0, compare=False)
    """Number of calls of policies written in Python. Not part of `to_dict()`, like `python_ns`."""
    python_ns: int = dataclasses.field(default=0, compare=False)
    """Real time that these calls took."""
    _text: str

    def __repr__(self) -> str:
        """Return the times and the counts that matter most, in a line."""
        parts = ", ".join(f"{part} {time_ns / 1e9:,.3f} s" for part, time_ns in self.parts_ns().items())
        counts = f"{self.references:,} references, {self.fetches:,} fetches, {self.prefetches_wasted:,} wasted"
        return f"<headstart.Result: elapsed {self.elapsed_ns / 1e9:,.3f} s ({parts}); {counts}>"

    def _repr_html_(self) -> str:
        """Return the same as a table, for notebooks."""
        rows = {"elapsed": self.elapsed_ns, **self.parts_ns()}
        times = "".join(
            f"<tr><th>{name}</th><td>{time_ns / 1e9:,.3f} s</td><td>{_share(time_ns, self.elapsed_ns)}</td></tr>"
            for name, time_ns in rows.items()
        )
        counts = "".join(
            f"<tr><th>{name.replace('_', ' ')}</th><td>{getattr(self, name):,}</td><td></td></tr>"
            for name in ("references", "misses", "fetches", "prefetches", "prefetches_used", "prefetches_wasted")
        )
        notes = "".join(f"<p>note: {escape(note)}</p>" for note in self.notes)
        return f"<table><tbody>{times}{counts}</tbody></table>{notes}"

    def parts_ns(self) -> dict[str, int]:
        """Return the parts of elapsed time; barrier, overhead and idle only where there is some."""
        parts = {part: int(getattr(self, f"{part}_ns")) for part in PARTS}
        return {part: time_ns for part, time_ns in parts.items() if time_ns or part in ("compute", "driver", "stall")}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the result that `to_json()` wrote."""
        fields = json.loads(text)
        names = {field.name for field in dataclasses.fields(cls)} - {"_text", "python_calls", "python_ns"}
        return cls(_text=text, **{name: fields[name] for name in names})

    def to_json(self) -> str:
        """Return the result as one line of JSON: the same bytes for the same scenario, on every machine."""
        return self._text

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a new dictionary."""
        return cast("dict[str, Any]", json.loads(self._text))

    @property
    def utilization(self) -> float:
        """Mean share of the time that the devices were busy, 0 to 1."""
        shares = [device["utilization"] for device in self.devices]
        return sum(shares) / len(shares) if shares else 0.0


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def simulate(
    scenario: Scenario,
    *,
    policy: Any = None,
    overrides: str | Sequence[str] = (),
    progress: Progress | None = None,
    traces: Traces | None = None,
) -> Result:
    """Run a scenario and return its result. The same scenario always gives the same result.

    Args:
        scenario: Path of a TOML file, or a mapping of the same shape (docs/scenario.md).
        policy: Replaces the scenario's policy: a name, a [policy] section, or a user-defined class or object
            (`headstart.Policy` and others).
        overrides: "a.b=value" settings that override keys, in this order, as with `--set`.
        progress: Called from time to time with the share done (0 to 1) and the number of references served. An
            exception stops the run.
        traces: Runs with the same object read a trace only once.

    Raises:
        HeadstartError: The scenario, the trace or the device's profile is wrong.
    """
    source = source_of(scenario)
    laid_over = [*([] if policy is None else [f"policy={_toml(custom.section_of(policy))}"]), *listed(overrides)]
    text = _core.simulate(**source, overrides=laid_over, on_progress=progress, traces=_shared(traces))
    calls, time_ns = _core.python_cost()
    return dataclasses.replace(Result.from_json(text), python_calls=calls, python_ns=time_ns)


def _toml(value: Any) -> str:
    """Return a value of a scenario as TOML, on one line."""
    value = custom.keys_of(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise _core.HeadstartError(f"policy: {error}; allowed: text, numbers, lists and tables") from error


def explain(scenario: Scenario, *, overrides: str | Sequence[str] = ()) -> str:
    """Return a scenario with all defaults, as TOML. The trace is not read.

    Raises:
        HeadstartError: The scenario or the device's profile is wrong.
    """
    return _core.explain(**source_of(scenario), overrides=listed(overrides))


def lower_bound(
    scenario: Scenario,
    *,
    overrides: str | Sequence[str] = (),
    progress: Progress | None = None,
    traces: Traces | None = None,
) -> results.LowerBound:
    """Return a lower bound on the elapsed time of a scenario under any policy, in nanoseconds, and its parts.

    The bound is the larger of two times: the processor time with as few fetches as MIN needs (Belady, IBM Systems
    Journal 5(2), 1966), and, over all disks, the fetches that MIN needs for the disk's own blocks times the disk's
    shortest service time. It is less tight if requests fetch many blocks at once (a read-ahead,
    `workload.issue = "whole"`). Arguments are those of `simulate`; the share that `progress` receives stays 0.

    Raises:
        HeadstartError: As for `simulate`, or the scenario has several levels, several processes or open arrivals, for
            which there is no bound.
    """
    source = source_of(scenario)
    bound = _core.lower_bound(**source, overrides=listed(overrides), on_progress=progress, traces=_shared(traces))
    return cast("results.LowerBound", json.loads(bound))

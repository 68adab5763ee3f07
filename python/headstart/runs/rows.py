"""The result of a comparison: a row for each case that ran, a refusal for each that did not."""

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

from headstart._core import HeadstartError, __version__
from headstart.policies import knows_future
from headstart.simulation import Result

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

SCHEMA = 1
"""Version of the shape of `Comparison.to_dict()`."""

COPIED = (
    *("elapsed_ns", "compute_ns", "driver_ns", "overhead_ns", "stall_ns", "requests", "references"),
    *("hits_ready", "hits_unready", "misses", "hit_wait_ns_mean", "fetches", "demand_fetches", "prefetches"),
    *("prefetches_used", "prefetches_late", "prefetches_wasted", "evictions", "throughput_bytes_per_s"),
)
"""Fields of a result that a row of a comparison repeats."""

FIGURES = ("utilization", "lower_bound_ns", "above_bound", "cache_blocks", "saved_ns", "speedup", "wasted_bytes")
"""Fields of a row that are computed from results; empty if a policy does not run."""


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Setting:
    """The parameters that are constant within one table of a comparison."""

    device: str
    """As the caller wrote it."""
    cache: str
    """As the caller wrote it; with several levels, that of the first."""
    disks: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Named:
    """The name of a case."""

    policy: str
    """As the caller wrote it."""
    setting: Setting
    coordinator: str | None
    """Between levels; `None` with one level."""

    @property
    def disks(self) -> int:
        """Number of disks."""
        return self.setting.disks

    def names(self) -> dict[str, Any]:
        """Return the fields that name the case in a row of the comparison."""
        return {
            "policy": self.policy,
            "coordinator": self.coordinator,
            "device": self.setting.device,
            "cache": self.setting.cache,
            "disks": self.disks,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row(_Named):
    """One policy in one setting."""

    result: Result
    lower_bound_ns: int | None
    """Lower bound of the elapsed time in this setting; `None` for several levels, for which no bound is known."""
    baseline_ns: int | None
    """Elapsed time without prefetching; `None` if that does not run."""
    best: bool
    """Whether no policy of the comparison is faster in this setting."""
    best_deployable: bool
    """Whether no policy without knowledge of the future is faster in this setting."""

    @property
    def knows_future(self) -> bool:
        """Whether the policy uses future references."""
        return knows_future(self.policy)

    @property
    def label(self) -> str:
        """The policy, and the coordinator if there is one."""
        return self.policy if self.coordinator is None else f"{self.policy}, {self.coordinator}"

    @property
    def above_bound(self) -> float | None:
        """Relative distance of the elapsed time to the bound: 0.25 is 25 % above."""
        if self.lower_bound_ns is None:
            return None
        return self.result.elapsed_ns / self.lower_bound_ns - 1 if self.lower_bound_ns else 0.0

    @property
    def saved_ns(self) -> int | None:
        """Time saved relative to no prefetching; negative if the policy is slower."""
        return None if self.baseline_ns is None else self.baseline_ns - self.result.elapsed_ns

    @property
    def speedup(self) -> float | None:
        """Elapsed time without prefetching, divided by that of the policy."""
        if self.baseline_ns is None:
            return None
        return self.baseline_ns / self.result.elapsed_ns if self.result.elapsed_ns else 1.0

    @property
    def wasted_bytes(self) -> int:
        """Bytes prefetched, at any level, and never used."""
        return sum(int(level["wasted_bytes"]) for level in self.result.levels)

    def to_dict(self) -> dict[str, Any]:
        """Return the row without the result's details."""
        return {
            **self.names(),
            **{name: getattr(self.result, name) for name in COPIED},
            "utilization": self.result.utilization,
            "lower_bound_ns": self.lower_bound_ns,
            "above_bound": self.above_bound,
            "cache_blocks": int(self.result.levels[0]["blocks"]),
            "saved_ns": self.saved_ns,
            "speedup": self.speedup,
            "wasted_bytes": self.wasted_bytes,
            "knows_future": self.knows_future,
            "best": self.best,
            "best_deployable": self.best_deployable,
            "error": None,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refusal(_Named):
    """One policy that does not run in this setting or on this trace, while others do."""

    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return a row with the reason and without figures."""
        return {
            **self.names(),
            **dict.fromkeys((*COPIED, *FIGURES)),
            "knows_future": knows_future(self.policy),
            "best": False,
            "best_deployable": False,
            "error": self.reason,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """All cases, setting by setting, policies in the caller's order. At least one has run."""

    cases: tuple[Row | Refusal, ...]
    plan_notes: tuple[str, ...] = ()
    """Remarks on the comparison itself, beside the notes of its runs."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The cases that have run."""
        return tuple(case for case in self.cases if isinstance(case, Row))

    def blocks(self) -> list[tuple[Setting, list[Row]]]:
        """Return the rows of each setting."""
        grouped = itertools.groupby(self.rows, key=lambda row: row.setting)
        return [(setting, list(rows)) for setting, rows in grouped]

    def refusals(self, setting: Setting) -> list[Refusal]:
        """Return the policies that do not run in this setting."""
        return [case for case in self.cases if isinstance(case, Refusal) and case.setting == setting]

    def title(self, setting: Setting) -> str:
        """Return the title of a setting: the values that differ between the settings, then the disks."""
        parts = []
        if len({case.setting.device for case in self.cases}) > 1:
            parts.append(setting.device)
        if len({case.setting.cache for case in self.cases}) > 1:
            parts.append(f"cache {setting.cache}")
        return ", ".join([*parts, f"{setting.disks} disk{'s' if setting.disks > 1 else ''}"])

    def workload(self) -> str:
        """Return the name of the workload: the trace's path or the generator's name."""
        keys = self.rows[0].result.scenario["workload"]
        return str(keys.get("trace") or keys.get("generator") or "inline references")

    def notes(self) -> list[str]:
        """Return the notes of the comparison, of all runs, and of policies that do not run, without duplicates."""
        of_runs = (note for row in self.rows for note in row.result.notes)
        refused = (f"{case.policy} does not run: {case.reason}" for case in self.cases if isinstance(case, Refusal))
        return list(dict.fromkeys((*self.plan_notes, *of_runs, *refused)))

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as `headstart compare --json` prints it."""
        first = self.rows[0].result
        scenario = {key: value for key, value in first.scenario.items() if key != "policy"}
        device = {key: value for key, value in first.scenario["device"].items() if key != "count"}
        return {
            "schema": SCHEMA,
            "version": __version__,
            "scenario": {**scenario, "device": device},
            "trace_sha256": first.trace_sha256,
            "notes": self.notes(),
            "rows": [case.to_dict() for case in self.cases],
        }

    def to_polars(self) -> "pl.DataFrame":
        """Return the rows as a polars frame.

        Raises:
            HeadstartError: polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise HeadstartError(
                "compare: a polars frame needs polars; allowed: pip install 'headstart[polars]'"
            ) from error
        return pl.DataFrame([case.to_dict() for case in self.cases], infer_schema_length=None)

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a data frame.

        Raises:
            HeadstartError: pandas is not installed.
        """
        frame: pd.DataFrame = pandas().DataFrame([case.to_dict() for case in self.cases])
        return frame


def pandas() -> Any:
    """Return pandas.

    Raises:
        HeadstartError: It is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise HeadstartError("compare: a DataFrame needs pandas; allowed: pip install 'headstart[frame]'") from error
    return pd

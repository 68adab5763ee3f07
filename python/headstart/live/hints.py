"""Runs commands and prefetches the data that they will read (docs/run.md). Linux only.

    outcome = hints.run(["git", "status"], hints="status.hints")
    outcome.report.prefetched_bytes, outcome.report.used_bytes

Sizes are bytes, times whole nanoseconds. The core works without the GIL. The command has the standard streams, the
environment and the working folder of this process.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

from headstart import _core

POLICY = "just-in-time"
"""The default policy."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """The result of prefetching."""

    schema: int
    version: str
    policy: str
    elapsed_ns: int
    """From the start of the command to its end."""
    head_start_ns: int
    """How long a disk with an arm read ahead before the command was started; only with trusted hints."""
    prefetched_bytes: int
    """Read from the device into the page cache, including gaps that were read together with their neighbours."""
    used_bytes: int
    """The part of it that the command has used."""
    late_bytes: int
    """The part of `used_bytes` that the command requested before it had arrived."""
    wasted_bytes: int
    """The part of `prefetched_bytes` that the command has not used."""
    stopped: str | None
    """The reason why prefetching stopped early; `None` if it did not."""
    hinted_bytes: int
    """Total of the hinted pages; each page counts once."""
    cached_bytes: int
    """The part of `hinted_bytes` that was in the page cache already."""
    stale_bytes: int
    """The part of `hinted_bytes` in files that have been changed or removed."""
    budget_bytes: int
    """Limit of prefetched but unused data."""
    observed: bool
    """Whether the command's references were observed; if not, `used_bytes` and `late_bytes` are 0."""
    notes: list[str]

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Return the report that `to_dict` gave."""
        return cls(**value)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a command, and the result of prefetching."""

    code: int | None
    """Its exit status; `None` if a signal has ended it."""
    signal: int | None
    """The signal that ended it."""
    report: Report
    line: str
    """The report in one line, as `headstart run -v` says it."""
    openmetrics: str
    """The report as text for metrics collectors."""


class NotStarted(_core.HeadstartError):
    """The command could not be started."""

    def __init__(self, problem: str, *, missing: bool) -> None:
        super().__init__(problem)
        self.missing = missing
        """There is no such program."""


def run(
    command: Sequence[str],
    *,
    hints: str | PathLike[str],
    policy: str = POLICY,
    keys: Mapping[str, object] | None = None,
    budget: str | int | None = None,
    device: str | None = None,
    trusted: bool = False,
) -> Outcome:
    """Run `command` and prefetch its reads from `hints`, a recording; return when the command has ended.

    `keys` are the policy's keys. At most `budget` bytes are prefetched but unused; the default is a quarter of the
    available memory. `device` names a profile that overrides the system's information on whether there is an arm.
    `trusted` hints may use the whole budget from the start; on a disk with an arm the command is then started later.

    Raises:
        HeadstartError: The recording cannot be read, or an argument is wrong.
        NotStarted: The command cannot be run.
    """
    question = {
        "command": list(command),
        "hints": str(hints),
        "policy": policy,
        "keys": dict(keys or {}),
        "trusted": trusted,
    }
    question |= {key: value for key, value in (("budget", budget), ("device", device)) if value is not None}
    answer = json.loads(_core.run_hinted(json.dumps(question)))
    if "not_started" in answer:
        raise NotStarted(answer["not_started"], missing=answer["missing"])
    return Outcome(**{**answer, "report": Report.from_dict(answer["report"])})

"""Commands run while what they are going to read is prefetched (docs/run.md). Linux.

    outcome = hinting.run(["git", "status"], hints="status.hints")
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
"""The policy where none is named."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What prefetching has come to."""

    schema: int
    version: str
    policy: str
    elapsed_ns: int
    """From the start of the command to its end."""
    prefetched_bytes: int
    """Read from the device into the page cache, holes included that were read with their neighbours."""
    used_bytes: int
    """The part of it that the command has used."""
    late_bytes: int
    """The part of `used_bytes` that the command asked for before it was there."""
    wasted_bytes: int
    """The part of `prefetched_bytes` that the command has not used."""
    stopped: str | None
    """Why prefetching stopped before it was done; `None` if it did not."""
    hinted_bytes: int
    """What the hints name, each page once."""
    cached_bytes: int
    """The part of `hinted_bytes` that was in the page cache already."""
    stale_bytes: int
    """The part of `hinted_bytes` in files that have changed or gone."""
    budget_bytes: int
    """What may be prefetched and not yet used."""
    observed: bool
    """The command's references were seen; if not, `used_bytes` and `late_bytes` are 0."""
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
    """How a command has ended, and what prefetching has come to."""

    code: int | None
    """Its exit status; `None` if a signal has ended it."""
    signal: int | None
    """The signal that has ended it."""
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
    """Run `command` while what `hints`, a recording, says that it reads is prefetched; return when it has ended.

    `keys` are the policy's. At most `budget` bytes are prefetched and not yet used; by default a quarter of what is
    available. `device` names a profile, which says whether there is an arm in place of what the system says. `trusted`
    hints have the whole budget from the start.

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

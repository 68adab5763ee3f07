"""Runs commands and prefetches the data that they will read (docs/run.md). Linux only.

    outcome = hints.run(["git", "status"], hints="status.hints")
    outcome.report.prefetched_bytes, outcome.report.used_bytes

Sizes are bytes, times whole nanoseconds. The core works without the GIL. The command has the standard streams, the
environment and the working folder of this process.
"""

import json
from collections.abc import Mapping, Sequence
from os import PathLike

from headstart import _core
from headstart.live.core import Record

POLICY = "just-in-time"
"""The default policy."""


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
) -> Record:
    """Run a command, prefetch its reads from a recording, and return when the command has ended.

    The result has `code`, the exit status, or `signal`, the signal that ended it; `report` (docs/run.md); `line`, the
    report as printed by `headstart run -v`; and `openmetrics`, the report for collectors.

    Args:
        command: The command and its arguments.
        hints: Path of a recording made by `headstart record`.
        policy: A hinted policy of `headstart list policies`.
        keys: Keys of the policy.
        budget: Maximum of prefetched but unused data ("64MiB", or bytes); a quarter of the free memory if `None`.
        device: Name of a profile that says whether the disk has an arm, if Linux misreports it.
        trusted: Whether the whole budget may be used from the start. On a disk with an arm, the command then starts
            later.

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
    answer = Record.from_json(_core.run_hinted(json.dumps(question)))
    if "not_started" in answer:
        raise NotStarted(answer.not_started, missing=answer.missing)
    return answer

"""The progress of a sweep: counted here, shown by the command."""

import dataclasses

from headstart.sweeps.peak import peak_bytes


@dataclasses.dataclass
class Tally:
    """Counts of a running sweep."""

    runs: int
    before: int = 0
    """Finished by an earlier start of the same sweep."""
    done: int = 0
    """Finished by this one."""
    failed: int = 0
    """Failed runs among these."""
    under_way: float = 0.0
    """Sum of the shares done of unfinished runs."""
    workers: int = 0
    _peaks: dict[int, int] = dataclasses.field(default_factory=dict)

    def finished(self, *, failed: bool) -> None:
        """Count a run."""
        self.done += 1
        self.failed += failed

    def peak(self, process: int, peak_bytes: int) -> None:
        """Record the peak memory of a process."""
        self._peaks[process] = peak_bytes

    @property
    def has_peaks(self) -> bool:
        """Whether the workers report their peak memory; those of a cluster do not."""
        return bool(self._peaks)

    @property
    def peak_bytes(self) -> int:
        """Sum of the peak memory of this process and of its workers."""
        return peak_bytes() + sum(self._peaks.values())

    @property
    def share(self) -> float:
        """The share done of this start's runs, 0 to 1."""
        return min((self.done + self.under_way) / max(self.runs - self.before, 1), 1.0)

    def text(self) -> str:
        """Return the progress as text."""
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.before + self.done:,} of {self.runs:,} runs{failed}"

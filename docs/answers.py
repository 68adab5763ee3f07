"""What `headstart advise` answers for five logs, beside what data sheets allow: the table in docs/your-own-trace.md.

By demand, a program waits at least as long as the device takes for the bytes at the highest rate of its data sheet,
and at most as long as it takes for them and for as many random reads. With the advice a run takes no longer than by
demand, and no less than its compute time or the time for the bytes. docs/devices.md has the data sheets.
"""

from dataclasses import dataclass

import plausibility

import headstart
from headstart.runs.compare import WORKLOAD
from headstart.sizes import size_bytes

LOGS = {
    "python.strace.xz": {},
    "sqlite.strace.xz": {},
    "fio.log.xz": {},
    "device.blkparse.xz": {},
    "offsets.txt": {"request_size": "4KiB"},
}
"""Of examples/traces, with the keys of [workload] that each needs."""
DEVICES = ("seagate-exos-x20", "sata-ssd", "nvme")
SECONDS = 600.0
"""More than any search takes: the table does not depend on the machine that writes it."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One log on one device; times in seconds."""

    log: str
    device: str
    compute: float
    demand: float
    advised: float
    depth_bytes: int | None
    requests: int
    """Reads of the device, by demand."""
    bytes_s: float
    """What they bring, at the highest rate of the data sheet."""
    requests_s: float
    """The same, and a random read for each request."""

    @property
    def waited(self) -> float:
        """What is not compute time, by demand."""
        return self.demand - self.compute


def measured(folder: str) -> list[Answer]:
    """Return an answer for each log in the examples under `folder` and each device."""
    random_s = {row.name: (row.arm_ms or row.sheet.random_ms or 0.0) / 1e3 for row in plausibility.measured()}
    found = []
    for log, keys in LOGS.items():
        path = f"{folder}/examples/traces/{log}"
        advice = headstart.advise(path, device=DEVICES, seconds=SECONDS, workload=keys)
        for each in advice.devices:
            workload = {"trace": path, "block_size": advice.block_size, **WORKLOAD, **keys}
            cache = {"blocks": each.cache_blocks}
            demand = headstart.simulate({"workload": workload, "cache": cache, "device": each.profile})
            if demand.elapsed_ns != each.demand.elapsed_ns:
                raise AssertionError(f"{log} on {each.profile}: simulate and advise differ by demand")
            rate = plausibility.SHEETS[each.profile].mb_per_s
            assert rate is not None
            read_bytes = demand.demand_fetches * size_bytes(advice.block_size)
            requests, least = demand.devices[0]["requests"] - demand.devices[0]["writes"], read_bytes / rate / 1e6
            found.append(
                Answer(
                    log=log,
                    device=each.profile,
                    compute=demand.compute_ns / 1e9,
                    demand=demand.elapsed_ns / 1e9,
                    advised=each.recommended.elapsed_ns / 1e9,
                    depth_bytes=each.recommended.depth_bytes,
                    requests=requests,
                    bytes_s=least,
                    requests_s=least + requests * random_s[each.profile],
                )
            )
    return found


def implausible(answer: Answer) -> list[str]:
    """Return what data sheets do not allow, in sentences. 3 %: the drive's own overhead of each request."""
    claims = {
        "waits less than the bytes take": answer.waited >= 0.98 * answer.bytes_s,
        "waits longer than random reads take": answer.waited <= 1.03 * answer.requests_s + 0.0002 * answer.requests,
        "the advice costs time": answer.advised <= answer.demand,
        "the advice beats the device": answer.advised >= 0.98 * max(answer.bytes_s, answer.compute),
    }
    return [f"{answer.log} on {answer.device}: {claim}" for claim, holds in claims.items() if not holds]


def cells(answer: Answer) -> tuple[str, ...]:
    """Return the row as the docs show it."""
    depth = "" if answer.depth_bytes is None else f"{answer.depth_bytes // 1024:,} KiB"
    allowed = f"{answer.bytes_s:.3f} to {answer.requests_s:.3f}"
    times = (f"{answer.compute:.3f}", f"{answer.waited:.3f}", allowed)
    return (f"`{answer.log}`", f"`{answer.device}`", f"{answer.requests:,}", *times, depth, f"{answer.advised:.3f}")


HEADER = ("log", "device", "requests", "compute s", "waits s, by demand", "data sheet", "advice", "elapsed s with it")

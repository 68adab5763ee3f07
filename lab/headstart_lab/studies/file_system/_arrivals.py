"""Requests that arrive at a disk at their timestamps: the equations beside the simulation."""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from headstart import model
from headstart_lab.studies._lab import Steps
from headstart_lab.studies._rows import Row, unpublished
from headstart_lab.studies.file_system._errors import parts, verdicts
from headstart_lab.studies.shriver99._runs import MS, Lab, Pair, Runs

DRIVES: Final = ("seagate-cheetah-4lp", "seagate-cheetah-9lp")
REQUESTS_KB: Final = (8, 64)
RUN_LENGTHS: Final = (1.0, 4.0, 16.0)
LOADS: Final = (0.3, 0.6, 0.8)
AHEAD: Final = (False, True)
TIMINGS: Final = ("poisson", "bursty", "constant")
BURST: Final = 4.0
SEEDS: Final = 5
REQUESTS: Final = 20_000
RARE: Final = "100s"
"""An interval at which requests never meet, to ask the equations for the service time."""
ORDER: Final = "the queue has service times as independent, and those of a run are not"


class Point(NamedTuple):
    """A point of the grid."""

    drive: str
    request_kb: int
    run_length: float
    load: float
    on_sequence: bool
    timing: str

    @property
    def label(self) -> str:
        """The name in rows."""
        drive = self.drive.removeprefix("seagate-")
        ahead = "on a sequence" if self.on_sequence else "always"
        return (
            f"{drive} reading ahead {ahead}, {self.timing}, {self.request_kb} KB, runs of {self.run_length:g}, "
            f"load {self.load:g}"
        )

    def scenario(self, interval: str, seed: int = 1) -> dict[str, Any]:
        """Return a run of it."""
        return {
            "seed": seed,
            "workload": {
                "generator": "runs",
                "arrival": "open",
                "timing": self.timing,
                "burst": BURST,
                "interval": interval,
                "requests": REQUESTS,
                "span": "4GiB",
                "request": f"{self.request_kb}KiB",
                "run_length": self.run_length,
            },
            "cache": {"blocks": 256},
            "policy": "demand",
            "device": {
                "model": self.drive,
                "scheduler": "fcfs",
                "buffer": {"read_during_overhead": True, "read_ahead_on_sequence": self.on_sequence},
            },
        }

    def scenarios(self, seeds: int) -> list[dict[str, Any]]:
        """Return its runs; requests come so often that the equations have the disk busy for `load` of the time."""
        service_ns = model.open_arrivals(self.scenario(RARE)).service_ns
        interval = f"{round(service_ns / self.load)}ns"
        return [self.scenario(interval, seed) for seed in range(1, seeds + 1)]


class Found(NamedTuple):
    """A point, its runs and what the equations say."""

    point: Point
    runs: Runs
    modelled: model.OpenArrivals

    @property
    def response(self) -> Pair:
        """Mean responses."""
        return Pair(self.point.label, "", self.runs.response_ms, self.modelled.response_ns / MS)

    @property
    def service(self) -> Pair:
        """Mean service times."""
        parts = sum(self.runs.mean(f"{part}_ms") for part in ("seek", "rotation", "transfer", "overhead"))
        simulated = parts / self.runs.mean("disk_requests")
        return Pair(self.point.label, "", simulated, self.modelled.service_ns / MS)


def _ask(lab: Lab, points: Sequence[Point], seeds: int) -> list[Found]:
    asked = [(point, point.scenarios(seeds)) for point in points]
    return [Found(point, lab.of(runs), model.open_arrivals(runs[0])) for point, runs in asked]


def arrivals(lab: Lab) -> Steps:
    """Requests that arrive at given times, in runs: the equations beside the simulation over 216 scenarios."""
    grid = itertools.product(DRIVES, REQUESTS_KB, RUN_LENGTHS, LOADS, AHEAD, TIMINGS)
    every = _ask(lab, [Point(*point) for point in grid], SEEDS)
    yield
    constant = [found.response for found in every if found.point.timing == "constant"]
    others = [found.response for found in every if found.point.timing != "constant"]
    return [
        *verdicts("Poisson arrivals and bursts", others, ORDER),
        *verdicts("constant intervals", constant, ORDER),
        *verdicts("service times", [found.service for found in every]),
        *parts("open arrivals", _groups(every)),
    ]


def _groups(every: Sequence[Found]) -> dict[str, list[Pair]]:
    groups: defaultdict[str, list[Pair]] = defaultdict(list)
    for field in Point._fields:
        for found in every:
            groups[f"{field} is {getattr(found.point, field)}"].append(found.response)
    return groups


def quick(lab: Lab) -> Steps:
    """Runs of eight that arrive as a Poisson process and in bursts, one seed: simulated and by the equations."""
    found = _ask(lab, [Point(DRIVES[0], 8, 8.0, 0.6, False, timing) for timing in ("poisson", "bursty")], 1)
    yield
    rows: list[Row] = []
    for each in found:
        pair = each.response
        rows += [
            unpublished(f"{each.point.timing}, simulated mean response (ms)", round(pair.simulated_ms, 6)),
            unpublished(f"{each.point.timing}, mean response by the equations (ms)", round(pair.model_ms, 6)),
        ]
    return rows

"""Figures 1 to 6, each simulated and by the equations, and what the paper concludes from them.

The paper draws its figures without numbers, but for the ranges in the text. Figures 1, 2, 4, 5 and 6 are of the fast
machine, Figure 3 of the slow one (section 5).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from headstart import model
from headstart_lab.studies._rows import Basis, Row, finding, unpublished
from headstart_lab.studies.shriver99 import _platform as platform
from headstart_lab.studies.shriver99 import _published as paper
from headstart_lab.studies.shriver99._runs import MS, Lab, Pair, model_ms

REQUESTS_KB: Final = (8, 16, 32, 64)
THINKS_MS: Final = (0, 0.5, 1)
OVERLAP_FILES_KB: Final = (64, 128, 256, 512)
OVERLAP_REQUEST_KB: Final = 10
STREAMS: Final = 8


Series = tuple[str, dict[str, Any], dict[str, Any] | None]
"""A series: its name, its keys for the simulation, and those for the equations as the paper computes them; `None`: the
equations are applied to the simulated scenario itself."""


class Figures:
    """The figures' bars, each computed once."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def _compare(self, figure: str, series: Sequence[Series], xs: Sequence[dict[str, Any]]) -> Callable[[], list[Pair]]:
        """Ask for a figure's runs: each series, by keys for the simulation and for the model, at each x."""
        asked = [
            (name, x, self._lab.runs(**_simulated(x), **simulated), _model_ms(x, simulated, modelled))
            for name, simulated, modelled in series
            for x in xs
        ]

        def bars() -> list[Pair]:
            pairs = [Pair(name, x["x"], run.response_ms, ms) for name, x, run, ms in asked]
            self._lab.pairs[figure] = pairs
            return pairs

        return bars

    def read_ahead(self, figure: str, file_kb: int) -> Callable[[], list[Pair]]:
        """Ask for Figures 1 and 2: the disk's read-ahead on and off."""
        fast = platform.device(platform.FAST_MS, platform.FAST_BUS)
        without = platform.device(platform.FAST_MS, platform.FAST_BUS, buffer={"read_ahead": "none"})
        costs = {"costs": platform.FAST_COSTS}
        series: list[Series] = [
            ("the disk reads ahead", {"device": fast, **costs}, {}),
            ("the disk does not", {"device": without, **costs}, {"read_ahead": False}),
        ]
        return self._compare(figure, series, _requests(file_kb, "fast"))

    def prefetching(self) -> Callable[[], list[Pair]]:
        """Ask for Figure 3: prefetching on and off, on the slow machine; disk overheads as in the tables."""
        on = platform.device(platform.SLOW_SINGLE_MS, platform.SLOW_BUS)
        off = platform.device(platform.SLOW_SEVERAL_MS, platform.SLOW_BUS)
        costs = {"costs": platform.SLOW_COSTS}
        series: list[Series] = [
            ("with prefetching", {"device": on, **costs}, {"overhead": f"{platform.SLOW_SINGLE_MS}ms"}),
            (
                "without",
                {"device": off, "policy": "demand", **costs},
                {"overhead": f"{platform.SLOW_SEVERAL_MS}ms", "prefetch": False},
            ),
        ]
        return self._compare("figure3", series, _requests(64, "slow"))

    def order(self) -> Callable[[], list[Pair]]:
        """Ask for Figure 4: CLOOK and FCFS."""
        costs = {"costs": platform.FAST_COSTS}
        series: list[Series] = [
            (
                name.upper(),
                {"device": platform.device(platform.FAST_MS, platform.FAST_BUS, scheduler=name), **costs},
                {"scheduler": name},
            )
            for name in ("clook", "fcfs")
        ]
        return self._compare("figure4", series, _requests(64, "fast", STREAMS))

    def segments(self) -> Callable[[], list[Pair]]:
        """Ask for Figure 6: 3 cache segments, and as many as streams."""
        costs = {"costs": platform.FAST_COSTS}
        series: list[Series] = [
            ("3 segments", {"device": platform.device(platform.FAST_MS, platform.FAST_BUS), **costs}, {}),
            (
                "as many as streams",
                {
                    "device": platform.device(platform.FAST_MS, platform.FAST_BUS, cache_segments="streams"),
                    **costs,
                },
                {"cache_segments": STREAMS},
            ),
        ]
        return self._compare("figure6", series, _requests(64, "fast", STREAMS))

    def overlap(self) -> Callable[[], list[Pair]]:
        """Ask for Figure 5: requests of 10 KB with think times, which are our extension of the equations."""
        device = platform.device(platform.FAST_MS, platform.FAST_BUS)
        series: list[Series] = [
            (
                f"think time {think} ms",
                {"device": device, "costs": platform.FAST_COSTS, "think": f"{think}ms"},
                None,
            )
            for think in THINKS_MS
        ]
        xs = [
            {"x": f"files of {file_kb} KB", "file_kb": file_kb, "request_kb": OVERLAP_REQUEST_KB, "machine": "fast"}
            for file_kb in OVERLAP_FILES_KB
        ]
        return self._compare("figure5", series, xs)


def _requests(file_kb: int, machine: str, streams: int = 1) -> list[dict[str, Any]]:
    return [
        {"x": f"requests of {kb} KB", "file_kb": file_kb, "request_kb": kb, "machine": machine, "streams": streams}
        for kb in REQUESTS_KB
    ]


def _simulated(x: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in x.items() if name not in ("x", "machine")}


def _model_ms(x: dict[str, Any], simulated: dict[str, Any], modelled: dict[str, Any] | None) -> float:
    if modelled is None:
        found = model.of_scenario(platform.scenario(**_simulated(x), **simulated))
        return float(found.response.response_ns) / MS
    return model_ms(**{name: value for name, value in x.items() if name != "x"}, **modelled)


@dataclasses.dataclass(frozen=True)
class Ratios:
    """The time of one series over that of another, at each x: 0.8 is a fifth lower, 1.2 a fifth longer."""

    of: str
    """The series in question."""
    beside: str

    def found(self, bars: list[Pair], side: str) -> list[float]:
        """Return the ratios on one side."""
        times = {(bar.series, bar.x): getattr(bar, side) for bar in bars}
        xs = dict.fromkeys(bar.x for bar in bars if bar.series == self.of)
        return [times[self.of, x] / times[self.beside, x] for x in xs]


def spread(ratios: Sequence[float]) -> str:
    """Ratios in words: "17 to 23 % lower"."""
    gains = sorted({round(100 * (ratio - 1)) for ratio in ratios}, key=abs)
    ends = [gains[0], gains[-1]] if len(gains) > 1 else gains
    way = "longer" if gains[-1] > 0 else "lower"
    return f"{' to '.join(str(abs(gain)) for gain in ends)} % {way}"


SIDES: Final = {"simulated": "simulated_ms", "by the equations": "model_ms"}
BASES: Final[dict[str, Basis]] = {"simulated": "predicted", "by the equations": "calibrated"}
"""The form of the equations was found by fitting the computed columns of Tables 3 to 5."""


def claims(
    quantity: str,
    published: tuple[float, float],
    ratios: Callable[[str], list[float]],
    why: dict[str, str],
    bases: Mapping[str, Basis] = BASES,
) -> list[Row]:
    """Return the verdicts on a claim, one by simulation and one by the model.

    `published` is a range of ratios of response times. Ours agree if the least and the greatest of them are what is
    printed, each within the room that `_published.room` gives it.
    """
    rows = []
    for side, field in SIDES.items():
        found = ratios(field)
        ends = zip((min(found), max(found)), sorted(published), strict=True)
        holds = all(abs(ours - theirs) <= paper.room(theirs) for ours, theirs in ends)
        rows.append(
            finding(
                f"{quantity}, {side}",
                published=spread(published),
                ours=spread(found),
                holds=holds,
                tolerance="least and greatest ratio of the response times within 9 % and half of the effect",
                basis=bases[side],
                note="" if holds else why.get(side, ""),
            )
        )
    return rows


def rows_of(bars: list[Pair]) -> list[Row]:
    """Return a figure's bars as rows."""
    return [
        unpublished(
            f"{bar.series}, {bar.x}: mean response (ms)",
            round(bar.simulated_ms, 3),
            note=f"simulated; our model {bar.model_ms:.3f}",
        )
        for bar in bars
    ]

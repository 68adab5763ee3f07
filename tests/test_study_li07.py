"""The study of li07: theory and drives for real, verdicts by hand on made-up runs, figures on few requests."""

from pathlib import Path
from typing import Any

import pytest

from headstart import HeadstartError, model
from headstart.studies._lab import CACHE_VARIABLE
from headstart.studies._rows import Row
from headstart.studies.li07 import _published as paper
from headstart.studies.li07 import _theory, run


def quiet(_text: str, _share: float) -> None:
    """Report nothing."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep nothing of the user's."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


def verdicts(rows: list[Row]) -> dict[str, str]:
    return {row.quantity: row.verdict for row in rows}


def test_depths_are_the_printed_ones_where_7_98_ms_are_the_whole_switch() -> None:
    by = verdicts(run(["theory"], quiet))
    for drive in ("IBM", "Seagate", "RAID0"):
        assert by[f"depth from the printed figures, {drive} (KB)"] == "agrees"
    assert by["depth where 7.98 ms are the seek alone, Seagate (KB)"] == "differs"
    assert by["C_total without slow start"] == "agrees"
    assert by["C_total with slow start"] == "agrees"
    assert by["section 4.3's example: 16, 32, 64, 98, 98, ... pages"] == "agrees"
    assert by["schedules of depths that stay below twice the optimum"] == "agrees"


def test_a_bound_that_does_not_hold_is_told() -> None:
    found = {drive: _theory.by_numbers(drive) for drive in _theory.PRINTED}
    assert _theory.without_slow_start(found).verdict == "agrees"
    # The row without a slow start, had that cost what the one with it does.
    swapped = {
        drive: model.Competitive(**{**vars(each), "guarantees": each.guarantees[2:] * 2})
        for drive, each in found.items()
    }
    assert _theory.without_slow_start(swapped).verdict == "differs"


def test_the_adversary_by_hand() -> None:
    # A byte a nanosecond, switches worth 100 bytes; 80 each time: equation (10) breaks at the second, 30 bytes into it.
    found = model.defeat([80], alpha=1.5, switch_ns=100, bytes_per_s=1e9)
    assert found.prefetch == 2
    assert found.length_bytes == pytest.approx(110)
    assert found.ratio == pytest.approx(360 / 210)
    # 90, 80, 70, ... repeated: the last counts on.
    assert model.defeat([90, 80, 70], alpha=1.9, switch_ns=100, bytes_per_s=1e9).prefetch == 3
    for sizes, keys, message in (
        ([80.0], {"alpha": 2.0}, "alpha: 2 is out of range; allowed: above 0, below 2"),
        ([], {"alpha": 1.5}, "schedule: 0 bytes at prefetch 1"),
        ([80.0], {"alpha": 1.5, "switch_ns": 0.0}, "switch_ns: 0 is out of range; allowed: more than 0"),
        ([1.0 - 1e-12], {"alpha": 1.5, "switch_ns": 1.0}, "sizes: the first is so near"),
    ):
        with pytest.raises(HeadstartError, match=f"^{message}"):
            model.defeat(sizes, **{"switch_ns": 100.0, "bytes_per_s": 1e9, **keys})


def test_figure_4_measures_what_is_printed() -> None:
    pictures: dict[str, Any] = {}
    by = verdicts(run(["figure4"], quiet, pictures.__setitem__))
    published = [verdict for verdict in by.values() if verdict != "not published"]
    assert published == ["agrees"] * 7
    points = pictures["figure4"].to_dict()["hconcat"][0]["data"]["values"]
    ibm = [point["rate"] for point in points if point["device"] == "IBM"]
    assert max(ibm) == pytest.approx(paper.RATE_LIMIT_MB, rel=0.01)
    assert min(ibm) < max(ibm)


def test_an_unknown_item_is_refused() -> None:
    with pytest.raises(HeadstartError, match='li07 has no "figure5"; allowed: theory, figure4'):
        run(["figure5"], quiet)

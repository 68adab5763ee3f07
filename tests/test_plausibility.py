"""Plain reads on each shipped device are as fast as its media, its bus and its data sheet allow."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import docs_module

plausibility = docs_module("plausibility")


@pytest.fixture(scope="module")
def rows() -> list[Any]:
    found: list[Any] = plausibility.measured()
    return found


def test_every_shipped_device_is_plausible(rows: list[Any]) -> None:
    assert [row.name for row in rows] == list(plausibility.SHEETS)
    assert [wrong for row in rows for wrong in plausibility.implausible(row)] == []


def test_what_is_not_plausible_is_found(rows: list[Any]) -> None:
    exos = next(row for row in rows if row.name == "seagate-exos-x20")
    cheetah = next(row for row in rows if row.name == "ibm-36gb-10k")
    demand, linux = exos.mb_per_s
    # A rotation for each request, rates beyond the media, read-ahead that costs.
    for bent in (
        replace(exos, mb_per_s=(7.8, 7.8)),
        replace(exos, mb_per_s=(demand * 1.1, linux * 1.1)),
        replace(exos, mb_per_s=(demand, demand * 0.9)),
        replace(exos, random_ms=(0.13, 0.13)),
        replace(exos, random_ms=(30.0, 30.0)),
        replace(exos, random_ms=(exos.random_ms[0], exos.random_ms[0] * 1.1)),
        replace(cheetah, mean_mb_per_s=50.0),
        replace(cheetah, random_ms=(13.0, 13.0)),
    ):
        assert plausibility.implausible(bent), bent

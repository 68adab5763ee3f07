"""The answers of `advise` for the logs of the examples are what data sheets allow; the table of the docs has them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import ROOT, docs_module

answers = docs_module("answers")


@pytest.fixture(scope="module")
def found() -> list[Any]:
    measured: list[Any] = answers.measured(str(ROOT))
    return measured


def test_the_answers_are_plausible(found: list[Any]) -> None:
    assert [(each.log, each.device) for each in found] == [
        (log, device) for log in answers.LOGS for device in answers.DEVICES
    ]
    assert [wrong for each in found for wrong in answers.implausible(each)] == []


def test_answers_that_are_not_are_found(found: list[Any]) -> None:
    one = next(each for each in found if each.log == "fio.log.xz" and each.device == "sata-ssd")
    for bent, claim in (
        (replace(one, demand=one.compute + one.bytes_s / 2), "waits less than the bytes take"),
        (replace(one, demand=one.compute + 2 * one.requests_s + 1), "waits longer than random reads take"),
        (replace(one, advised=one.demand * 1.01), "the advice costs time"),
        (replace(one, advised=one.bytes_s / 2), "the advice beats the device"),
    ):
        assert f"{one.log} on {one.device}: {claim}" in answers.implausible(bent), bent


def test_on_solid_state_a_read_by_demand_takes_the_latency_of_the_data_sheet(found: list[Any]) -> None:
    """Nearly so at queue depth 1; a read that continues in the previous flash page does not sense it again."""
    for each in found:
        if each.device != "seagate-exos-x20" and each.log != "offsets.txt":
            assert 0.5 <= each.waited / each.requests_s <= 1.03, each

"""Published measurements beside the model: each has a source, and large differences have a reason."""

from typing import Any

import pytest

from tests.conftest import docs_module

measured = docs_module("measured")


@pytest.fixture(scope="module")
def rows() -> list[Any]:
    found: list[Any] = measured.rows()
    return found


def test_each_point_names_its_source_and_each_source_is_used() -> None:
    sources, points = measured.read()
    assert {point["source"] for point in points} == set(sources)
    assert all(point["where"] for point in points)
    assert all(source[key] for source in sources.values() for key in ("title", "publisher", "year"))
    assert {"sata-ssd", "nvme", "object-store"} <= {point["device"] for point in points}


def test_the_worst_comes_first_and_what_is_far_off_has_a_reason(rows: list[Any]) -> None:
    errors = [abs(row.error) for row in rows]
    assert errors == sorted(errors, reverse=True)
    for row in rows:
        far = abs(row.error) > measured.OFF
        assert far == bool(row.why), f"{row.device}, {row.load}: {row.error:+.0%}, reason: {row.why!r}"


def test_errors_by_hand() -> None:
    row = measured.Row(device="", load="", quantity="MB/s", published=(80.0, 90.0), ours=45.0, source="", why="")
    assert row.error == 45 / 80 - 1
    assert measured.cells(row)[3:6] == ("80 to 90", "45", "-44 %")

"""Errors that name a key of the scenario, where the user has given an option."""

import pytest

from headstart import HeadstartError
from headstart._core import InternalError
from headstart.cli import options
from tests.conftest import Run

BY_KEY = {"workload.limit": "--limit", "cache.size": "--cache", "seed": "--seed"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("workload.limit: is 0; allowed: a whole number", "workload.limit (--limit): is 0; allowed: a whole number"),
        ("cache.size or seed; allowed: 1", "cache.size (--cache) or seed (--seed); allowed: 1"),
        # Only the first mention is changed.
        ("cache.size: x; allowed: a cache.size", "cache.size (--cache): x; allowed: a cache.size"),
        # A part of another key, of a word or of a quoted name is not a key.
        ("cache.size_max, my.cache.size, seeds", "cache.size_max, my.cache.size, seeds"),
        ('"seed": unknown key', '"seed": unknown key'),
        ("policy.name: unknown", "policy.name: unknown"),
    ],
)
def test_the_option_stands_beside_its_key(said: str, expected: str) -> None:
    with pytest.raises(HeadstartError) as raised, options.named(BY_KEY):
        raise HeadstartError(said)
    assert str(raised.value) == expected


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(InternalError, match=r"^internal error: seed$"), options.named(BY_KEY):
        raise InternalError("internal error: seed")
    with pytest.raises(ValueError, match=r"^seed$"), options.named(BY_KEY):
        raise ValueError("seed")


def test_the_command_names_its_option(run: Run) -> None:
    done = run("compare", "--generator", "synth", "--cache", "1MiB", "--policies", "demand", "--compute", "never")
    assert done.returncode == 2
    assert "workload.compute (--compute): " in done.stderr

"""The threads that all comparisons, curves, advice and studies run in."""

import threading
import time
from collections.abc import Generator, Sequence

import pytest

from headstart.runs.runner import run_all, together
from headstart.simulation import Progress


def test_the_first_failure_stops_the_others_and_is_the_one_that_is_raised() -> None:
    """Even if an earlier item would run for ever: it is stopped, and its own exception is not the reason."""
    began = threading.Event()

    def work(item: str, tell: Progress) -> str:
        if item == "fails":
            assert began.wait(10)
            raise ValueError(item)
        began.set()
        while True:
            tell(0.5, 0)
            time.sleep(0.001)

    stop = threading.Event()
    with pytest.raises(ValueError, match="fails"):
        run_all(work, ["endless", "fails", "endless"], jobs=2, stop=stop, progress=None)
    assert stop.is_set()


def test_results_are_in_order_and_shares_are_of_all() -> None:
    shares: list[float] = []

    def work(item: int, tell: Progress) -> int:
        tell(0.5, 0)
        return item * item

    assert run_all(work, range(4), jobs=1, stop=threading.Event(), progress=shares.append) == [0, 1, 4, 9]
    assert shares == sorted(shares) and (shares[0], shares[-1]) == (0.0, 1.0)
    assert 0.125 in shares, "half of the first of four"


def test_steps_go_together_round_by_round() -> None:
    rounds: list[list[int]] = []

    def answers(asked: Sequence[int]) -> list[int]:
        rounds.append(list(asked))
        return [10 * each for each in asked]

    def steps(count: int) -> Generator[int, int, int]:
        total = 0
        for each in range(1, count + 1):
            total += yield each
        return total

    assert together([steps(3), steps(0), steps(1)], answers) == [60, 0, 10]
    assert [each for each in rounds if each] == [[1, 1], [2], [3]]

"""Runs in threads: the core releases the GIL, so that each thread has a processor."""

import concurrent.futures
import os
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from headstart.simulation import Progress

A = TypeVar("A")
Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")


def in_threads(work: Callable[[T], R], items: Sequence[T], *, jobs: int | None, stop: threading.Event) -> list[R]:
    """Return what `work` returns for each item, in order, `jobs` at a time; if one raises, `stop` is set at once."""
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            done, _ = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
            # A failure first: those before it may still run, and are about to be stopped.
            for future in (future for future in futures if future in done and future.exception()):
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_all(
    work: Callable[[T, Progress], R],
    items: Sequence[T],
    *,
    jobs: int | None,
    stop: threading.Event,
    progress: Callable[[float], object] | None,
) -> list[R]:
    """Return what `work(item, tell)` returns for each item; `progress` receives the share of all of them.

    If one raises, or `progress` does, the others stop when they next call `tell`.
    """
    shares = [0.0] * len(items)

    def run(index: int) -> R:
        def tell(share: float, _references: int = 0) -> None:
            if stop.is_set():
                raise InterruptedError("another run has failed")
            shares[index] = share
            if progress is not None:
                progress(sum(shares) / len(shares))

        tell(0.0)
        result = work(items[index], tell)
        tell(1.0)
        return result

    return in_threads(run, range(len(items)), jobs=jobs, stop=stop)


def together(steps: Sequence[Generator[Q, A, R]], answers: Callable[[Sequence[Q]], Sequence[A]]) -> list[R]:
    """Take all steps to their ends in rounds, so that the runs of one fill the gaps of another; return their results.

    `answers` is called with what each of them yields in a round, and returns what each is sent.
    """
    ended: dict[int, R] = {}
    sent: dict[int, A | None] = dict.fromkeys(range(len(steps)))
    while sent:
        asked: dict[int, Q] = {}
        for index, answer in sent.items():
            try:
                asked[index] = next(steps[index]) if answer is None else steps[index].send(answer)
            except StopIteration as end:
                ended[index] = end.value
        sent = dict(zip(asked, answers(list(asked.values())), strict=True))
    return [ended[index] for index in range(len(steps))]

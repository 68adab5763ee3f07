"""Runs in threads: the core releases the GIL, so that each thread has a processor."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headstart.simulation import Progress

T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], items: Sequence[T], *, jobs: int | None, stop: threading.Event) -> list[R]:
    """Return what `work` returns for each item, in order, `jobs` at a time; sets `stop` when one of them raises."""
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
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

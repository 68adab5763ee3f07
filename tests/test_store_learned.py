"""What samples read from a store, learned in the first epoch (headstart.torch.Learned)."""

import multiprocessing
import pickle
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart import HeadstartError
from headstart.live.store import Store
from headstart.live.store.entries import LATER, noting
from headstart.live.store.learned import _SAMPLES
from headstart.torch import Learned

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
LENGTH = 2 * _SAMPLES


class Reads:
    """A data set whose samples read two ranges, as far as the store's clients can see."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> int:
        noted = noting.get()
        assert noted is not None
        noted += entries_of(index)
        return index


class OfStore:
    """A data set of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getitem__(self, index: int) -> bytes:
        return bytes(self.store.read(f"{index}", index, 100)) + bytes(self.store.read(f"{index}"))[:1]


def entries_of(index: int) -> list[tuple[str, int, int | None]]:
    return [(f"{index}.label", 0, None), ("all", index * 10, index * 10 + 10)]


def epochs(count: int, seed: int = 1) -> list[list[int]]:
    return [random.Random(seed + epoch).sample(range(LENGTH), LENGTH) for epoch in range(count)]


def given(entries: Iterator[Any]) -> list[Any]:
    """Return what comes until it has to wait."""
    found: list[Any] = []
    for each in entries:
        if each is LATER:
            return found
        found.append(each)
    return found


def of(draws: list[int]) -> list[Any]:
    return [entry for index in draws for entry in entries_of(index)]


def test_later_epochs_are_told_as_soon_as_they_are_known() -> None:
    learned, drawn = Learned(Reads()), epochs(3)
    told = learned.entries((index for epoch in drawn for index in epoch), LENGTH)
    assert given(told) == [], "nothing is known, and the first epoch is not waited for entry by entry"
    first = drawn[0].index(drawn[1][0])
    so_far: list[Any] = []
    for position, index in enumerate(drawn[0]):
        assert learned[index] == index
        so_far += given(told)
        assert bool(so_far) == (position >= first), "once the first sample of the second epoch is known"
    assert so_far == of(drawn[1]) + of(drawn[2])


def test_what_the_first_epoch_left_out_is_not_waited_for() -> None:
    learned, drawn = Learned(Reads()), epochs(3)
    told = learned.entries((index for epoch in drawn for index in epoch), LENGTH)
    for index in drawn[0][:-5]:
        learned[index]
    first = min(drawn[1].index(index) for index in drawn[0][-5:])
    assert given(told) == of(drawn[1][:first]), "a loader that drops the last batch"
    for index in drawn[1][: 2 * _SAMPLES]:
        learned[index]
    assert given(told)[-2 * LENGTH :] == of(drawn[2]), "the second epoch makes up for it"


def test_a_reader_is_not_run_away_from_and_silence_is_an_error() -> None:
    learned = Learned(Reads())
    told = learned.entries((0 for _ in iter(int, 1)), LENGTH)
    for _ in range(LENGTH):
        learned[0]
    assert [len(given(told)) for _ in range(3)] == [2 * (LENGTH + 1), 2 * LENGTH, 0], "two epochs ahead of the reader"
    silent = Learned([0] * LENGTH)
    for index in range(LENGTH):
        silent[index]
    with pytest.raises(HeadstartError, match="no sample of the first epoch has read from a store in its __getitem__"):
        list(silent.entries(iter(list(range(LENGTH)) * 2), LENGTH))
    with pytest.raises(HeadstartError, match=r"index: 1\.5 cannot be learned; allowed: whole numbers and strings"):
        Learned({1.5: 0})[1.5]


def test_a_file_lasts_for_the_next_run_and_is_shared(tmp_path: Path) -> None:
    file = tmp_path / "learned"
    before = Learned(Reads(), file)
    for index in range(LENGTH):
        before[index]
    copy = pickle.loads(pickle.dumps(before))
    assert copy[3] == 3
    assert len(file.read_text().splitlines()) == LENGTH + 2, "what is known is not written again"
    with file.open("a") as half:
        half.write('[1, [["half')
    later = Learned(Reads(), file)
    assert given(later.entries(iter([5, 7]), LENGTH)) == of([5, 7]), "the first epoch, too; half a line is none"
    file.write_text("other\n")
    with pytest.raises(HeadstartError, match=r"learned: other is no line of a file of headstart\.torch\.Learned"):
        Learned(Reads(), file)
    with pytest.raises(HeadstartError, match=r"cannot be written: No such file"):
        Learned(Reads(), tmp_path / "absent" / "file")[0]


def work(learned: Learned, indices: list[int]) -> None:
    for index in indices:
        assert learned[index][:1] == b"x"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_learn_for_the_order(tmp_path: Path, method: str) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    for index in range(LENGTH):
        (folder / f"{index}").write_bytes(b"x" * 200)
    drawn = epochs(2)
    context: Any = multiprocessing.get_context(method)
    with headstart.store(folder, "1MiB", socket=tmp_path / "s", linger=1) as store:
        learned = Learned(OfStore(store))
        order = headstart.torch.disclose(store, Fixed(drawn), learned, epochs=2)
        workers = [context.Process(target=work, args=(learned, drawn[0][at::2])) for at in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
            assert worker.exitcode == 0
        limit = time.monotonic() + 20
        while order.left < 2 * LENGTH:
            assert time.monotonic() < limit, "the second epoch is not disclosed"
            time.sleep(0.02)
        work(learned, drawn[1])
        assert store.report()["disclosed_entries"] == 2 * LENGTH


class Fixed:
    """A sampler of these epochs."""

    def __init__(self, drawn: list[list[int]]) -> None:
        self.drawn, self.epoch = drawn, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return LENGTH

    def __iter__(self) -> Iterator[int]:
        return iter(self.drawn[self.epoch])

"""Orders of PyTorch's samplers, and a store under pyarrow, zarr-python and fsspec."""

import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart import torch as training
from headstart._core import HeadstartError
from headstart.live.store import Store
from headstart.live.store.order import AHEAD
from tests.s3_server import s3_server
from tests.test_store import sockets

__all__ = ["sockets"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "data").mkdir()
    with headstart.store(tmp_path / "data", "4MiB", linger=1) as store:
        yield store


class Epochs:
    """Shuffles by its epoch, as DistributedSampler does."""

    def __init__(self, count: int) -> None:
        self.count, self.epoch = count, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        order = list(range(self.count))
        random.Random(self.epoch).shuffle(order)
        return iter(order)


class Generator:
    """As torch's: with a state, and without copies."""

    def __init__(self) -> None:
        self.random = random.Random(7)

    def get_state(self) -> Any:
        return self.random.getstate()

    def set_state(self, state: Any) -> None:
        self.random.setstate(state)

    def __deepcopy__(self, memo: Any) -> "Generator":
        raise TypeError("cannot pickle 'torch._C.Generator' object")


class Weighted:
    """Draws with replacement from a generator, as WeightedRandomSampler does."""

    def __init__(self, count: int, generator: Generator | None) -> None:
        self.count, self.generator = count, generator

    def __iter__(self) -> Iterator[int]:
        assert self.generator is not None
        return iter([self.generator.random.randrange(self.count) for _ in range(self.count)])


class Batches:
    """Lists of what another sampler draws."""

    def __init__(self, sampler: Iterable[int], batch_size: int) -> None:
        self.sampler, self.batch_size = sampler, batch_size

    def __iter__(self) -> Iterator[list[int]]:
        draws = iter(self.sampler)
        while batch := list(islice(draws, self.batch_size)):
            yield batch


class Told:
    """A store that keeps what was disclosed."""

    def __init__(self) -> None:
        self.entries: Iterator[Any] = iter(())
        self.ahead = 0

    def disclose(self, entries: Iterable[Any], *, ahead: int) -> None:
        self.entries, self.ahead = iter(entries), ahead


class Data:
    def ranges(self, index: int) -> Any:
        return [(f"{index}", 0, 5), f"{index}.label"] if index == 3 else f"{index}"


def disclosed(sampler: Any, *arguments: Any, **options: Any) -> tuple[list[Any], int]:
    told: Any = Told()
    training.disclose(told, sampler, *arguments, **options)
    return list(islice(told.entries, 10_000)), told.ahead


def test_the_orders_of_epochs_are_those_that_the_training_draws() -> None:
    sampler = Epochs(10)
    sampler.set_epoch(2)
    found, ahead = disclosed(sampler, ranges=[f"{number}" for number in range(10)], epochs=3)
    drawn = []
    for epoch in range(2, 5):
        sampler.set_epoch(epoch)
        drawn += [f"{index}" for index in sampler]
    assert (found, ahead) == (drawn, 20)
    endless, _ = disclosed(Batches(sampler, 3), ranges=str)
    assert len(endless) == 10_000
    assert endless[:10] == drawn[20:], "the epoch of the sampler within"


def test_generators_are_copied_with_their_state() -> None:
    sampler = Batches(Weighted(50, Generator()), 8)
    told: Any = Told()
    training.disclose(told, sampler, ranges=lambda index: (f"{index}", 1, 2), epochs=2)
    drawn = [(f"{index}", 1, 2) for _ in range(2) for batch in sampler for index in batch]
    assert list(told.entries) == drawn, "although the training has drawn before"


def test_data_sets_say_what_they_read() -> None:
    class Subset:
        dataset, indices = Data(), [3, 1]

    assert disclosed(range(2), Subset(), epochs=1) == ([("3", 0, 5), "3.label", "1"], 4)
    with pytest.raises(HeadstartError, match="dataset: object does not say what an index reads; allowed: a method"):
        disclosed(range(2), object())
    with pytest.raises(HeadstartError, match="sampler: Weighted draws from torch's global generator"):
        disclosed(Batches(Weighted(5, None), 2), Data())
    assert disclosed([], Data()) == ([], AHEAD), "no endless search in a sampler that draws nothing"


def test_samplers_of_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    utils = torch.utils.data
    makers: list[Callable[[], Any]] = [
        lambda: utils.RandomSampler(range(20), generator=torch.Generator().manual_seed(3)),
        lambda: utils.WeightedRandomSampler([1.0, 2.0, 3.0], 30, generator=torch.Generator().manual_seed(3)),
        lambda: utils.BatchSampler(utils.RandomSampler(range(9), generator=torch.Generator().manual_seed(1)), 2, False),
        lambda: utils.DistributedSampler(range(20), num_replicas=2, rank=1, seed=5),
    ]
    for make in makers:
        sampler = make()
        found, _ = disclosed(sampler, ranges=str, epochs=2)
        drawn: list[str] = []
        for epoch in range(2):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)
            for each in sampler:
                drawn += map(str, each if isinstance(each, list) else [each])
        assert found == drawn


def test_row_groups_are_shuffled_and_read_ahead(store: Store, tmp_path: Path) -> None:
    pa: Any = pytest.importorskip("pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    for file in range(2):
        rows = range(file * 4000, file * 4000 + 4000)
        columns = {"id": list(rows), "word": [f"w{row % 99}" for row in rows], "rest": [float(row) for row in rows]}
        parquet.write_table(pa.table(columns), tmp_path / "data" / f"{file}.parquet", row_group_size=1000)
    keys = [key for key, _ in store.list()]
    tables = list(headstart.parquet.groups(store, keys, ["id", "word"], seed=1, epochs=2))
    assert tables[0].column_names == ["id", "word"]
    first = [table["id"][0].as_py() for table in tables]
    assert sorted(first[:8]) == sorted(first[8:]) == list(range(0, 8000, 1000))
    assert first[:8] != first[8:]
    for table in tables:
        assert table["word"].to_pylist() == [f"w{row % 99}" for row in table["id"].to_pylist()]
    parts = [headstart.parquet.groups(store, keys, ["id"], seed=1, epochs=1, rank=rank, ranks=2) for rank in range(2)]
    own = [[table["id"][0].as_py() for table in part] for part in parts]
    assert [own[at % 2][at // 2] for at in range(8)] == first[:8]
    with pytest.raises(HeadstartError, match=r'columns: 0\.parquet has no column "x"; allowed: id, word, rest'):
        headstart.parquet.groups(store, keys, ["x"], seed=1)
    assert list(headstart.parquet.groups(store, [], seed=1)) == []


def test_zarr_reads_through_a_store(store: Store, tmp_path: Path) -> None:
    zarr: Any = pytest.importorskip("zarr", minversion="3")
    root = zarr.open_group(tmp_path / "data", mode="w")
    array = root.create_array("air", shape=(100, 100), chunks=(10, 100), dtype="i4")
    array[:] = [[row * 100 + column for column in range(100)] for row in range(100)]
    opened = zarr.open_group(headstart.zarr.Store(store), mode="r")
    assert list(opened.array_keys()) == ["air"]
    assert (opened["air"][25:47] == array[25:47]).all()
    with pytest.raises(ValueError, match="read"):
        zarr.open_group(headstart.zarr.Store(store), mode="w")


def test_fsspec_reads_through_a_store(tmp_path: Path) -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    pytest.importorskip("fsspec.implementations.chained")
    folder = tmp_path / "data" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("x,y\n1,2\n")
    (folder / "b.csv").write_text("x,y\n3,4\n")
    options = {"cache": "4MiB", "spill": f"{tmp_path / 'spill'}:8MiB", "protocol": "headstart"}
    fsspec.register_implementation("headstart", "headstart.fsspec.HeadstartFileSystem", clobber=True)
    system, path = fsspec.core.url_to_fs(f"headstart::file://{tmp_path / 'data'}", **{**options, "protocol": None})
    assert path == str(tmp_path / "data")
    assert system.ls(path, detail=False) == [f"{path}/deep"]
    assert [each["size"] for each in system.ls(f"{path}/deep")] == [8, 8]
    assert system.isdir(f"{path}/deep")
    assert not system.exists(f"{path}/none")
    assert system.find(path) == [f"{path}/deep/a.csv", f"{path}/deep/b.csv"]
    assert system.cat_file(f"{path}/deep/a.csv", -4, None) == b"1,2\n"
    assert system.cat_ranges([f"{path}/deep/a.csv"] * 2, [0, 4], [3, 99]) == [b"x,y", b"1,2\n"]
    with system.open(f"{path}/deep/b.csv", "rt") as file:
        assert file.readlines() == ["x,y\n", "3,4\n"]
    with pytest.raises(NotImplementedError, match="only to be read"):
        system.open(f"{path}/deep/c.csv", "wb")
    with pytest.raises(FileNotFoundError):
        system.info("/elsewhere")
    system.store.close()


def test_a_bucket_is_read_through_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    pytest.importorskip("fsspec.implementations.chained")
    (tmp_path / "table.csv").write_text("x,y\n1,2\n")
    with s3_server(monkeypatch, "bucket", {"deep/table.csv": tmp_path / "table.csv"}) as requests:
        fsspec.register_implementation("headstart", "headstart.fsspec.HeadstartFileSystem", clobber=True)
        for _ in range(2):
            with fsspec.open("headstart::s3://bucket/deep/table.csv", "rt", cache="4MiB") as file:
                assert file.readlines() == ["x,y\n", "1,2\n"]
            system = file.buffer.raw._store
        assert [each for each in requests if each.startswith("GET")] == ["GET /bucket/deep/table.csv bytes=0-7"]
        system.close()


def test_modules_are_imported_without_their_libraries() -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'pyarrow', 'zarr', 'fsspec']))\n"
        "import headstart.torch, headstart.parquet, headstart.zarr, headstart.fsspec\n"
        "try: headstart.zarr.Store\n"
        "except headstart.HeadstartError as error: print(error)\n"
        "try: headstart.parquet.groups(None, [], seed=1)\n"
        "except headstart.HeadstartError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "headstart.zarr needs zarr 3; allowed: pip install zarr",
        "headstart.parquet needs pyarrow; allowed: pip install pyarrow",
    ]

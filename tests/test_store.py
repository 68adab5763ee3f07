"""A store and its daemon: reads through shared memory by threads, processes, orders; what is killed, and mistakes."""

import asyncio
import gc
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart._core import HeadstartError
from headstart.live.store import Store
from headstart.live.store import daemon as daemons

OBJECTS = 24
BYTES = 200_000
"""Five objects fit into the smallest cache."""


def content(number: int) -> bytes:
    return random.Random(number).randbytes(BYTES)


def key(number: int) -> str:
    return f"part/{number:02}"


@pytest.fixture(scope="module", autouse=True)
def sockets() -> Iterator[Path]:
    """A folder with a short name for sockets. All daemons end with their programs."""
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder
    gc.collect()
    for each in daemons._started:
        each.wait(30)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("objects")
    (folder / "part").mkdir()
    for number in range(OBJECTS):
        (folder / key(number)).write_bytes(content(number))
    return folder


@pytest.fixture
def store(source: Path) -> Iterator[Store]:
    with headstart.store(source, "1MiB", linger=1) as store:
        yield store


@pytest.fixture
def own(source: Path, sockets: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store of this test alone: nothing has been read in parts, which would be joined by a copy."""
    with headstart.store(source, "1MiB", socket=sockets / request.node.name[:40], linger=1) as store:
        yield store


def read_all(store: Store) -> None:
    for number in range(OBJECTS):
        assert store.read(key(number)) == content(number)


def until(happens: Callable[[], object]) -> None:
    limit = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < limit, "it does not happen"
        time.sleep(0.02)


def test_programs_join_one_daemon_and_read(source: Path, store: Store) -> None:
    with headstart.store(source, linger=1) as other:
        assert other.report()["clients"] >= 2
        view = other.read(key(3), 10, 90_000)
        assert (view.readonly, view.format, bytes(view)) == (True, "B", content(3)[10:90_000])
        found = store.read_many([key(1), (key(2), 5, 25), (key(2), 199_990, None), (key(2), 7, 7)])
        assert found == [content(1), content(2)[5:25], content(2)[199_990:], b""]
    with pytest.raises(HeadstartError, match="the store is closed"):
        other.read(key(1))
    assert view == content(3)[10:90_000]
    assert store.size(key(0)) == BYTES
    assert store.list("part/0") == [(key(number), BYTES) for number in range(10)]


def test_the_page_shows_waits_beside_the_optimum(own: Store) -> None:
    read_all(own)
    report, page = own.report(), own.page()
    history = report["history"]
    assert sum(history["read_bytes"]) == sum(history["fetched_bytes"]) == report["read_bytes"] == OBJECTS * BYTES
    assert sum(history["waited_ns"]) == report["waited_ns"] > 0
    assert "1.00 times the least possible with this cache (" in page
    assert page.count("data-figure=") == 2


def test_mistakes_are_errors_of_one_line(store: Store) -> None:
    with pytest.raises(FileNotFoundError, match="part/x: there is no such object"):
        store.read("part/x")
    with pytest.raises(FileNotFoundError):
        store.size("part")
    with pytest.raises(HeadstartError, match="part/01: bytes 0 to 200001 of 200000"):
        store.read(key(1), 0, BYTES + 1)
    for wrong in ("\udc80", ("a", 1), ("a", -1, 2), ("a", 3, 2), 7, ("a", 0, 1 << 64)):
        with pytest.raises(HeadstartError, match="allowed"):
            store.read_many([wrong])  # type: ignore[list-item]
    assert store.read(key(1)) == content(1), "the connection is as good as before"


def test_ranges_as_libraries_for_arrays_ask_for_them(store: Store) -> None:
    assert store.get_range(key(3), start=2, length=5) == content(3)[2:7]
    found = asyncio.run(store.get_ranges_async(key(3), starts=[0, BYTES - 2], ends=[4, BYTES + 9]))
    assert found == [content(3)[:4], content(3)[-2:]], "what is beyond the end is left out"
    assert asyncio.run(store.get_range_async(key(4), start=1, end=2)) == content(4)[1:2]
    for wrong in ({}, {"end": 3, "length": 2}):
        with pytest.raises(HeadstartError, match="ends: the ranges have no single end; allowed: ends or lengths"):
            store.get_range(key(3), start=0, **wrong)
    with pytest.raises(HeadstartError):
        store.get_range(key(3), start=BYTES + 1, length=1)
    with pytest.raises(FileNotFoundError):
        store.get_range("absent", start=0, length=1)


def test_a_view_keeps_its_bytes_until_its_last_user_is_gone(own: Store) -> None:
    numpy: Any = pytest.importorskip("numpy")
    pyarrow: Any = pytest.importorskip("pyarrow")
    slice_of_view = own.read(key(0))[1000:100_000][5:]
    assert not isinstance(slice_of_view.obj, bytes)
    array = numpy.frombuffer(own.read(key(1)), dtype="u1")[7:]
    buffer = pyarrow.py_buffer(own.read(key(2))).slice(9)
    gc.collect()
    read_all(own)
    assert slice_of_view == content(0)[1005:100_000]
    assert array.tobytes() == content(1)[7:]
    assert buffer.to_pybytes() == content(2)[9:]
    assert not array.flags.writeable
    # Of all that was read, only these are still held: others can take their place without waiting.
    del array, buffer
    views = [own.read(key(number)) for number in range(3, 7)]
    assert [bytes(view) for view in views] == [content(number) for number in range(3, 7)]


def test_threads_read_at_the_same_time(store: Store) -> None:
    wrong = []

    def work(seed: int) -> None:
        draws = random.Random(seed)
        for _ in range(60):
            number, start = draws.randrange(OBJECTS), draws.randrange(BYTES)
            stop = min(BYTES, start + 60_000)
            if store.read(key(number), start, stop) != content(number)[start:stop]:
                wrong.append((number, start, stop))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def child(store: Store, numbers: list[int], results: Any) -> None:
    results.put([bytes(store.read(key(number))) == content(number) for number in numbers])


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_inherit_a_store(store: Store, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    results = context.Queue()
    view = store.read(key(0))
    workers = [context.Process(target=child, args=(store, list(range(at, OBJECTS, 2)), results)) for at in range(2)]
    for worker in workers:
        worker.start()
    assert [results.get(timeout=30) for _ in workers] == [[True] * 12] * 2
    for worker in workers:
        worker.join(30)
    read_all(store)
    assert view == content(0), "a child has not released it"


def hold(store: Store, results: Any) -> None:
    views = [store.read(key(number)) for number in range(5)]
    results.put(len(views))
    time.sleep(60)


def test_a_killed_reader_holds_nothing(own: Store) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    reader = context.Process(target=hold, args=(own, results))
    reader.start()
    assert results.get(timeout=30) == 5
    assert reader.pid is not None
    os.kill(reader.pid, signal.SIGKILL)
    reader.join(30)
    views = [own.read(key(number)) for number in range(10, 14)]
    assert [bytes(view) for view in views] == [content(number) for number in range(10, 14)]


def test_an_interrupted_read_takes_no_view_with_it(own: Store) -> None:
    views = [own.read(key(number)) for number in range(5)]
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        own.read(key(9))  # It waits: the views hold all memory.
    assert [bytes(view) for view in views] == [content(number) for number in range(5)]
    del views
    read_all(own)


def test_a_killed_daemon_is_started_anew_and_finds_its_spill(source: Path, tmp_path: Path) -> None:
    with headstart.store(source, "1MiB", f"{tmp_path / 'spill'}:64MiB", linger=1) as store:
        process = daemons._started[-1]
        views = [store.read(key(number)) for number in range(2)]
        read_all(store)
        until(lambda: store.report(optimum=False)["stored_bytes"] >= 10 * BYTES)
        process.kill()
        process.wait(10)
        assert [bytes(view) for view in views] == [content(number) for number in range(2)]
        read_all(store)
        assert daemons._started[-1] is not process
        assert store.report()["spill_hit_bytes"] >= 5 * BYTES
        assert [bytes(view) for view in views] == [content(number) for number in range(2)]


def test_what_is_left_of_an_order_is_disclosed_to_the_next_daemon(source: Path, sockets: Path) -> None:
    with headstart.store(source, "1MiB", socket=sockets / "again", linger=1) as store:
        numbers = [*range(OBJECTS), *range(OBJECTS)]
        order = store.disclose(key(number) for number in numbers)
        for number in numbers[:10]:
            assert store.read(key(number)) == content(number)
        until(lambda: order.left == len(numbers) - 10)
        time.sleep(0.3)  # The order looks every 0.1 s.
        daemons._started[-1].kill()
        until(lambda: store.report(optimum=False)["disclosed_entries"] == len(numbers) - 10)
        until(lambda: store.report(optimum=False)["prefetched_bytes"] >= BYTES)
        for number in numbers[10:]:
            assert store.read(key(number)) == content(number)
        until(lambda: order.left == 0)
        assert store.report()["missed_bytes"] <= 2 * BYTES, "it is read ahead as before"


def test_programs_that_start_together_start_one_daemon(source: Path, sockets: Path) -> None:
    stores: list[Store] = []
    before = list(daemons._started)

    def start() -> None:
        stores.append(headstart.store(source, "2MiB", socket=sockets / "together", linger=1))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert stores[0].report()["clients"] == 4
    assert len([each for each in daemons._started if each not in before]) == 1
    copy = pickle.loads(pickle.dumps(stores[0]))
    assert copy.read(key(5), 0, 9) == content(5)[:9]
    for each in [*stores, copy]:
        each.close()


def test_wrong_options_are_one_line(
    source: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(text: str, *arguments: Any, **options: Any) -> None:
        with pytest.raises(HeadstartError, match=text) as error:
            headstart.store(*arguments, **options)
        assert "\n" not in str(error.value)

    refused("cache: the daemon of .* runs with 1MiB, not 2MiB; allowed: the same size", source, "2MiB")
    refused("twelve", source, "twelve")
    refused("cache: 5KiB is too little", source, "5KiB", socket=tmp_path / "s1")
    refused("spill: big has no size; allowed: FOLDER:SIZE", source, spill="big")
    refused("linger: 0 is out of range; allowed: at least 1 second", source, linger=0)
    refused("No such file", tmp_path / "absent", "1MiB")
    refused("is no kind of source", "ftp://host/", "1MiB")
    refused("No such file", source, "1MiB", socket=tmp_path / "absent" / "socket")
    refused("is too long", source, "1MiB", socket=tmp_path / ("x" * 120))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "headstart").mkdir(mode=0o755)
    refused("is no folder of this user alone", source, "1MiB")


def test_a_disclosed_order_is_read_ahead(source: Path, sockets: Path) -> None:
    with headstart.store(source, "16MiB", socket=sockets / "order", linger=1) as store:
        order = store.disclose(key(number) for number in reversed(range(OBJECTS)))
        until(lambda: store.report(optimum=False)["fetched_bytes"] == OBJECTS * BYTES)
        assert order.left == OBJECTS
        read_all(store)
        report = store.report()
        assert (report["missed_bytes"], report["fetched_bytes"], report["optimum_bytes"]) == (0, *[OBJECTS * BYTES] * 2)
        until(lambda: order.left == 0)
        store.disclose([key(1), key(2)])
        gc.collect()
        time.sleep(0.3)
        assert store.report()["disclosed_entries"] == OBJECTS + 2
        assert store.report()["clients"] >= 2, "an order that is not kept goes on"
        with store.disclose([(key(1), 0, 9)] * 3) as other:
            until(lambda: other.left == 3)
        assert other.left == 0, "it is withdrawn"


@pytest.mark.filterwarnings("ignore:the disclosed order ends early:RuntimeWarning")
def test_a_wrong_order_says_so(store: Store) -> None:
    for wrong, problem in (
        (["part/x"], "part/x: there is no such object"),
        ([key(1), (key(1), 2, 1)], "allowed: a key"),
    ):
        order = store.disclose(wrong)  # type: ignore[arg-type]
        order._thread.join(20)
        with pytest.raises(HeadstartError, match=f"ends early: .*{problem}"):
            _ = order.left
    assert store.read(key(1)) == content(1)

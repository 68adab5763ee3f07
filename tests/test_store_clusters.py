"""Two workers of a cluster on one node, started as their users start them: they share one store.

Each joins the daemon, discloses its share and reads it. Ray and PyTorch are large: without them, tests are skipped.
"""

import gc
import os
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest

import headstart
from headstart.live.store import daemon as daemons

OBJECTS, BYTES, WORKERS = 24, 100_000, 2


def content(number: int) -> bytes:
    return random.Random(number).randbytes(BYTES)


def share(source: str, rank: int) -> tuple[int, int]:
    """What a worker does: returns its process and a sum over what it has read."""
    with headstart.store(source, "4MiB", linger=1) as store:
        keys = [f"{number:02}" for number in range(rank, OBJECTS, WORKERS)]
        store.disclose(keys)
        return os.getpid(), sum(crc32(store.read(key)) for key in keys)


def dask(source: str) -> list[tuple[int, int]]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    with (
        distributed.LocalCluster(WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = list(client.scheduler_info()["workers"])
        shares = [client.submit(share, source, rank, workers=[worker]) for rank, worker in enumerate(workers)]
        found: list[tuple[int, int]] = client.gather(shares)
        return found


def ray(source: str) -> list[tuple[int, int]]:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        # An actor is a process of its own.
        actors = [ray.remote(Worker).remote() for _ in range(WORKERS)]
        found: list[tuple[int, int]] = ray.get([actor.share.remote(source, rank) for rank, actor in enumerate(actors)])
        return found
    finally:
        ray.shutdown()


class Worker:
    """An actor of Ray."""

    def share(self, source: str, rank: int) -> tuple[int, int]:
        return share(source, rank)


def torchrun(source: str) -> list[tuple[int, int]]:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    script = Path(os.environ["XDG_RUNTIME_DIR"]) / "train.py"
    script.write_text(
        textwrap.dedent("""
            import sys

            import torch.distributed as dist

            from tests.test_store_clusters import share

            dist.init_process_group("gloo")
            found = [None] * dist.get_world_size()
            dist.all_gather_object(found, share(sys.argv[1], dist.get_rank()))
            if dist.get_rank() == 0:
                print("found", *(each for pair in found for each in pair))
            dist.destroy_process_group()
        """)
    )
    line = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={WORKERS}", "--standalone"]
    done = subprocess.run([*line, str(script), source], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    words = next(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("found "))
    return [(int(process), int(total)) for process, total in zip(words[::2], words[1::2], strict=True)]


@pytest.fixture(autouse=True)
def sockets() -> Iterator[Path]:
    """A folder with a short name for sockets; workers find this module."""
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_RUNTIME_DIR", str(folder))
        environment.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        yield folder
    gc.collect()
    for each in daemons._started:
        each.wait(30)
    shutil.rmtree(folder)


@pytest.mark.parametrize("cluster", [dask, ray, torchrun], ids=lambda cluster: str(cluster.__name__))
def test_the_workers_of_a_node_share_its_store(cluster: Callable[[str], list[tuple[int, int]]], tmp_path: Path) -> None:
    for number in range(OBJECTS):
        (tmp_path / f"{number:02}").write_bytes(content(number))
    with headstart.store(tmp_path, "4MiB", linger=1) as store:
        found = cluster(str(tmp_path))
        expected = [sum(crc32(content(number)) for number in range(rank, OBJECTS, WORKERS)) for rank in range(WORKERS)]
        assert [total for _, total in found] == expected
        assert len({os.getpid(), *(process for process, _ in found)}) == 1 + WORKERS, "each is a process of its own"
        report = store.report()
        assert (report["read_requests"], report["disclosed_entries"]) == (OBJECTS, OBJECTS), "all through this daemon"
        assert report["fetched_bytes"] == OBJECTS * BYTES

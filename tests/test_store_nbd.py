"""An export of an NBD server as the source of a store."""

import random
import sys
from pathlib import Path

import pytest

import headstart
from headstart import HeadstartError
from tests.nbd_server import READ, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
SIZE_BYTES = 3 << 20


def test_an_export_is_an_object(tmp_path: Path) -> None:
    with serving(SIZE_BYTES) as server:
        server.content[:] = content = random.Random(1).randbytes(SIZE_BYTES)
        server.stable = content
        spill = f"{tmp_path / 'spill'}:8MiB"
        with headstart.store(server.uri, "4MiB", spill, socket=tmp_path / "s", linger=1) as store:
            assert store.list() == [("disk", SIZE_BYTES)]
            assert store.read("disk", 5, SIZE_BYTES - 7) == content[5:-7]
            assert store.read("disk", 5, 1000) == content[5:1000]
            asked = [(offset, length) for command, offset, length in server.requests if command == READ]
            assert sum(length for _, length in asked) == SIZE_BYTES - 12, "each byte once"
            server.restart()
            assert store.read("disk", 0, 5) == content[:5], "over another connection"
            with pytest.raises(FileNotFoundError):
                store.read("other")
            with pytest.raises(HeadstartError, match="disk"):
                store.read("disk", 0, SIZE_BYTES + 1)
        server.content[:] = bytes(SIZE_BYTES)
        with headstart.store(server.uri, "4MiB", spill, socket=tmp_path / "again", linger=1) as store:
            assert store.read("disk", 5, 1000) == bytes(995), "what is in the spill may be outdated"
    with pytest.raises(HeadstartError, match="Connection refused; allowed: a server that can be reached"):
        headstart.store("nbd://127.0.0.1:1/disk", "4MiB", socket=tmp_path / "gone")

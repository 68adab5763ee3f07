"""`headstart serve` before objects: an S3 server, and web servers that work, fail, or are slow or stuck."""

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.machines import PATIENCE_S, wait_until
from tests.s3_server import s3_server
from tests.test_bad_input import one_line
from tests.test_serve import BYTES, Client, ended, image, serving

__all__ = ["image"]

Answer = Callable[[BaseHTTPRequestHandler, range], bool]
"""Called with each range that is read; false if the request was answered, or must not be."""


@contextmanager
def web(path: Path, answer: Answer = lambda request, wanted: True) -> Iterator[str]:
    """Serve a file by ranges, and give its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, status: int, body: bytes, **about: object) -> None:
            self.send_response(status)
            for name, value in about.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.send_header("ETag", '"first"')
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.reply(200 if self.path == "/image" else 404, b"", Content_Length=BYTES)

        def do_GET(self) -> None:
            first, last = (int(each) for each in self.headers["Range"].removeprefix("bytes=").split("-"))
            if answer(self, range(first, last + 1)):
                body = path.read_bytes()[first : last + 1]
                about = f"bytes {first}-{last}/{BYTES}"
                self.reply(206, body, Content_Length=len(body), Content_Range=about)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/image"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_image_on_s3(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, content = tmp_path / "socket", image.read_bytes()
    with (
        s3_server(monkeypatch, "images", {"of vms/image": image}) as requests,
        serving(path, "s3://images/of%20vms/image", "--json", "-") as process,
    ):
        client = Client(path)
        assert client.size == BYTES
        for offset in range(0, BYTES, 100_000):
            assert client.read(offset, min(100_000, BYTES - offset)) == content[offset : offset + 100_000]
        assert client.ask(1, 0, 4, b"data")[0] == 1, "read-only"
        if shutil.which("nbdcopy") is not None:
            copy = tmp_path / "copy"
            subprocess.check_call(["nbdcopy", f"nbd+unix:///?socket={path}", str(copy)], timeout=PATIENCE_S)
            assert copy.read_bytes() == content
        export = json.loads(ended(process))["exports"][0]
    reads = [each for each in requests if each.startswith("GET /images/of vms/image bytes=")]
    # The first one tests for range support; the others belong to the read-ahead, with many pages each.
    assert len(reads) == 1 + export["backing_demand_reads"] + export["backing_prefetch_reads"] < 100
    assert export["failed_requests"] == 0
    assert export["level_keys"]["policy"]["read_ahead"] == "16MiB", "objects have a default of their own"


def test_what_s3_does_not_have_is_one_line(image: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server(monkeypatch, "images", {"image": image}):
        for name in ("s3://images/none", "s3://none/image"):
            one_line(run("serve", name), f"{name}: there is no such object (404); allowed: s3://BUCKET/KEY")
        for name in ("s3://images", "s3:///image", "s3://images/"):
            one_line(run("serve", name), f"{name}: names no object; allowed: s3://BUCKET/KEY")
        one_line(run("serve", "s3://images/image", "--writable"), "s3://images/image: can only be read; allowed: ")


def test_trouble_is_retried_or_an_error_and_never_garbage(image: Path, tmp_path: Path) -> None:
    path, content = tmp_path / "socket", image.read_bytes()
    failures = iter([503, 500, 503])

    def answer(request: BaseHTTPRequestHandler, wanted: range) -> bool:
        status = next(failures, None) if wanted.start == 4096 else None
        if status is not None:
            request.send_response(status)
            request.send_header("Content-Length", "0")
            request.end_headers()
        if 1_000_000 in wanted:
            # With the announced length, which is at most half of what was wanted.
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {wanted.start}-{wanted.stop - 1}/{BYTES}")
            request.send_header("Content-Length", str(len(wanted) // 2))
            request.send_header("ETag", '"first"')
            request.end_headers()
            request.wfile.write(bytes(len(wanted) // 2))
        return status is None and 1_000_000 not in wanted

    with web(image, answer) as url, serving(path, url, "--readahead", "demand") as process:
        client = Client(path)
        assert client.read(4096, 8192) == content[4096:12288]
        assert next(failures, None) is None
        assert client.ask(0, 1_000_000, 4096)[0] == 5
        assert client.ask(0, 990_000, 40_000)[0] == 5
        assert client.read(2_000_000, 100) == content[2_000_000:2_000_100]
        ended(process)


def test_a_request_that_is_stuck_delays_no_other(image: Path, tmp_path: Path) -> None:
    path, content = tmp_path / "socket", image.read_bytes()
    comes, go_on = threading.Event(), threading.Event()

    def answer(request: BaseHTTPRequestHandler, wanted: range) -> bool:
        if 8192 in wanted:
            comes.set()
            go_on.wait(PATIENCE_S)
        return True

    read: list[bytes] = []
    with web(image, answer) as url, serving(path, url, "--readahead", "demand") as process:
        stuck = Client(path)
        waiting = threading.Thread(target=lambda: read.append(stuck.read(8192, 4096)))
        waiting.start()
        wait_until(comes.is_set)
        other = Client(path)
        for offset in range(100_000, 600_000, 10_000):
            assert other.read(offset, 10_000) == content[offset : offset + 10_000]
        assert read == []
        go_on.set()
        waiting.join(PATIENCE_S)
        assert read == [content[8192:12288]]
        ended(process)

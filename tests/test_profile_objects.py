"""`headstart profile` of objects: a web server whose latency, rate and connections are known, and a server of S3."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import headstart
from tests.conftest import Run
from tests.s3_server import s3_server
from tests.test_bad_input import one_line

LATENCY_S = 0.03
BYTES_PER_S = 40e6
CONNECTIONS = 8
SIZE = 16 << 20
CHUNK = 1 << 16


@dataclass
class Store:
    """Serves `CONNECTIONS` requests at a time: each waits `LATENCY_S`, and then gets `BYTES_PER_S`."""

    refuses: bool = False
    url: str = ""
    places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(CONNECTIONS))


@contextmanager
def serving() -> Iterator[Store]:
    store = Store()

    class Server(ThreadingHTTPServer):
        request_queue_size = 1024
        daemon_threads = True

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            status = 403 if store.refuses else 206 if self.path == "/data" else 404
            first, last = (int(each) for each in self.headers["Range"].removeprefix("bytes=").split("-"))
            count = last + 1 - first if status == 206 else 0
            with store.places:
                time.sleep(LATENCY_S)
                began = time.monotonic()
                self.send_response(status)
                self.send_header("Content-Length", str(count))
                self.send_header("Content-Range", f"bytes {first}-{last}/{SIZE}")
                self.send_header("ETag", '"first"')
                self.end_headers()
                for sent in range(0, count, CHUNK):
                    part = min(CHUNK, count - sent)
                    time.sleep(max(0.0, began + (sent + part) / BYTES_PER_S - time.monotonic()))
                    self.wfile.write(bytes(part))

        def do_HEAD(self) -> None:
            self.send_error(405)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        store.url = f"http://127.0.0.1:{server.server_port}/data"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()


def test_an_object_gives_the_numbers_of_its_store(run: Run, tmp_path: Path) -> None:
    with serving() as store:
        done = run("profile", store.url, "--time", "4", "--json", "found.json", "--plot", "found.html")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (found["model"]["name"], found["arm"], found["capacity_bytes"]) == ("object-store", None, SIZE)
    keys = {each["name"]: each["value"] for each in found["model"]["parameters"]}
    print(keys)
    # On a busy machine sleeps end late, by a varying delay. crates/live/profile/tests/profile_fit.rs shows how exact
    # the
    # profile is.
    assert 0.7 * LATENCY_S * 1e9 < keys["latency"] < 5 * LATENCY_S * 1e9
    assert keys["latency"] <= keys["latency_p99"]
    assert BYTES_PER_S / 4 < keys["connection_bytes_per_second"] < 3 * BYTES_PER_S
    assert CONNECTIONS / 2 <= keys["connections"] <= 4 * CONNECTIONS
    rates = {point["depth"]: point["bytes_per_s"] for point in found["by_depth_long"]}
    assert found["by_depth_long"][0]["request_bytes"] == 1 << 20
    assert max(rates.values()) > 2 * rates[1]
    assert "the model is object-store" in done.stdout
    assert "Response by size" in (tmp_path / "found.html").read_text(encoding="utf-8")
    assert "1.00 MiB reads" in done.stdout
    profile = tmp_path / "data.toml"
    assert profile.read_text(encoding="utf-8") == found["profile"]
    shown = headstart.device(profile)
    assert (shown.title, shown.mechanics) == ("data", None)
    scenario = {"workload": {"references": ["a"]}, "cache": {"blocks": 2}, "policy": {"name": "demand"}}
    once = headstart.simulate(scenario | {"device": {"model": str(profile)}, "host": {"driver_overhead": "0s"}})
    # Requests are random: log-normal.
    assert once.elapsed_ns > 0.5 * LATENCY_S * 1e9


def test_what_cannot_be_measured_is_one_line(run: Run, tmp_path: Path) -> None:
    with serving() as store:
        missing = store.url.replace("/data", "/other")
        one_line(run("profile", missing), f"{missing}: there is no such object (404); allowed: http://HOST")
        one_line(
            run("profile", store.url, "--time", "0"),
            "time_s (--time): 0.0 is out of range; allowed: a number from 1 to 110",
        )
        timer = threading.Timer(1.5, setattr, (store, "refuses", True))
        timer.start()
        refused = run("profile", store.url, "--output", "store.toml")
        timer.join()
        one_line(refused, f"{store.url}: reading ", "access is denied (403); allowed: an object that can be read")
    one_line(run("profile", "s3://bucket//key"), "s3://bucket//key: has a key that begins or ends with a slash")
    assert list(tmp_path.iterdir()) == []


def test_an_object_on_s3(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("large", 5 << 20), ("small", 1 << 20)):
        (tmp_path / name).write_bytes(bytes(size))
    objects = {name: tmp_path / name for name in ("large", "small")}
    with s3_server(monkeypatch, "bucket", objects) as requests:
        done = run("profile", "s3://bucket/large", "--time", "1", "--output", "store.toml")
        small = run("profile", "s3://bucket/small")
    assert (done.returncode, done.stderr) == (0, "")
    assert headstart.device(tmp_path / "store.toml").title == "large"
    assert {each.split(" bytes=")[0] for each in requests if "large" in each} == {"GET /bucket/large"}
    one_line(small, "s3://bucket/small: 1MiB is too small to tell anything; allowed: an object of 4MiB at least")

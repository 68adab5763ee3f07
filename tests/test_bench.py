"""Each benchmark runs, on little data."""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import socket
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest

BENCHES = Path(__file__).resolve().parent.parent / "benches"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHES)
    module = importlib.import_module("bench")
    for name, value in {
        "ZIPF_REQUESTS": 3_000,
        "ZIPF_OBJECTS": 200,
        "ZIPF_CACHE": 50,
        "SYNTH_PASSES": 2,
        "SYNTH_REFERENCES": 4_000,
        "DRIVE_REQUESTS": 500,
        "STREAM_REQUESTS": 20,
        "LEVEL_REQUESTS": 20,
        "PROGRAM_PROCESSES": 10,
        "PROGRAM_REFERENCES": 1_000,
        "MODEL_EVALUATIONS": 64 * 16 * 4 * 2,
    }.items():
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, value)
    return module


def test_every_benchmark_runs(bench: ModuleType, tmp_path: Path) -> None:
    trace = str(tmp_path / "zipf.oracleGeneral.bin")
    bench.generate(trace, {"requests": bench.ZIPF_REQUESTS, "blocks": bench.ZIPF_OBJECTS, "compute": "0s"})
    names = [name for name in bench.names() if name != bench.PEER]
    assert len(names) == len(set(names)) > 6
    for name in names:
        found = bench.measure_here(name, trace)
        label, goal, counted = bench.words_of(name)
        assert found.references > 0 and found.seconds > 0 and found.check > 0, (label, goal, counted)
        assert found.references < 1_000_000, name


def test_memory_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numpy")
    monkeypatch.syspath_prepend(BENCHES)
    module = importlib.import_module("memory")
    monkeypatch.setattr("sys.argv", ["memory.py", "--requests", "2000"])
    module.main()
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if "2,000" in line]
    assert [row[0].strip() for row in rows] == list(module.COMMANDS)
    assert all(int(row[3]) > 0 for row in rows)


def test_a_link_carries_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHES)
    serve_s3 = importlib.import_module("serve_s3")
    sent = bytes(range(256)) * 1_000
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        serve_s3.linked(serve_s3.Link(0.001, 1e9), server.getsockname()[1]) as port,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        other, _ = server.accept()
        with other, other.makefile("rb") as got, client.makefile("rb") as back:
            there = got.read()
            other.sendall(there[::-1])
            other.shutdown(socket.SHUT_WR)
            assert (there, back.read()) == (sent, sent[::-1])


@pytest.mark.skipif(
    not all(map(shutil.which, ("headstart", "fio", "qemu-nbd", "nbdkit"))), reason="SKIPPED: fio, qemu-nbd or nbdkit"
)
def test_every_server_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCHES)
    serve_file = importlib.import_module("serve_file")
    monkeypatch.setitem(serve_file.JOBS, "4 KiB at random", ("--rw=randread", "--bs=4k", "--iodepth=32"))
    image = tmp_path / "image.raw"
    image.write_bytes(bytes(8 << 20))
    settings = argparse.Namespace(
        mib=8, rounds=1, rest=0, states=list(serve_file.STATES), jobs=["1 MiB, one at a time", "4 KiB at random"]
    )
    serve_file.show(serve_file.measured(image, settings))
    said = capsys.readouterr().out.splitlines()
    for state, servers in serve_file.STATES.items():
        for job in settings.jobs:
            at = said.index(f"{state}: {job}") + 1
            found = [line.split(":")[0].strip() for line in said[at : at + len(servers)]]
            assert found == [server.name for server in servers]


def test_a_server_that_reads_a_file_twice_has_not_cached_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(BENCHES)
    serve_file = importlib.import_module("serve_file")
    image = tmp_path / "image.raw"
    for read, enough in ((1 << 20, True), (2 << 20, False)):
        report = {"exports": [{"backing_read_bytes": read}]}
        serve_file.report_of(image).write_text(json.dumps(report), encoding="utf-8")
        with nullcontext() if enough else pytest.raises(SystemExit, match="not all in its cache"):
            serve_file.check_cached(image, 1 << 20)

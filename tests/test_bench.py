"""The benchmarks run: each of them, on little."""

from __future__ import annotations

import importlib
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

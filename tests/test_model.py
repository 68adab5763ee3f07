"""`headstart.model`: the paper's tables, arrays against single numbers, drives, refusals."""

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest

from headstart import HeadstartError, _core, model

SLOW = model.PLATFORMS["slow"]


@pytest.mark.parametrize(
    ("files", "request_kib", "file_kib", "printed_ms", "within", "changes"),
    [
        (1, 8, 64, 2.16, 0.003, {}),
        (1, 64, 128, 21.48, 0.003, {}),
        (2, 64, 64, 70.43, 0.02, {"overhead": "1.2ms"}),
        (4, 8, 64, 23.09, 0.02, {"overhead": "1.2ms"}),
        (16, 64, 64, 636.01, 0.02, {"overhead": "1.2ms"}),
        (1, 64, 64, 19.72, 0.003, {"overhead": "1.2ms", "prefetch_limit": 0}),
        (1, 64, 128, 24.56, 0.003, {"overhead": "1.2ms", "prefetch_limit": 0}),
    ],
)
def test_rows_of_the_papers_tables(
    files: int, request_kib: int, file_kib: int, printed_ms: float, within: float, changes: dict[str, Any]
) -> None:
    """A row of each kind of Tables 3, 4 and 5, column "computed"; the Rust tests have them all."""
    arguments = {**SLOW, **changes, "streams": files, "request": request_kib * 1024, "file_size": f"{file_kib}KiB"}
    assert model.file_system(**arguments).response_ns == pytest.approx(printed_ms * 1e6, rel=within)


def test_terms_are_the_cores() -> None:
    assert [field.name for field in dataclasses.fields(model.Response)] == _core.model_terms()


def test_arrays_broadcast_and_equal_single_numbers() -> None:
    sizes = np.array([8, 64, 1000, 20_000]) * 1024
    streams = np.array([1, 3, 9])
    found = model.file_system(**SLOW, file_size=sizes[:, None], streams=streams, think="0.3ms", request=[[10_240]])
    for term in dataclasses.fields(found):
        values = getattr(found, term.name)
        assert values.shape == (4, 3)
        for row, size in enumerate(sizes.tolist()):
            for column, count in enumerate(streams.tolist()):
                one = model.file_system(**SLOW, file_size=size, streams=count, think=300_000, request=10_240)
                assert values[row, column] == getattr(one, term.name), (term.name, size, count)
    # An array without rows gives an array without rows.
    assert model.file_system(**SLOW, file_size=np.zeros((0, 2))).to_dict()["busy"].shape == (0, 2)


def test_terms_sum_to_the_response() -> None:
    thinks = np.linspace(0, 5e6, 11)
    found = model.file_system(drive="seagate-cheetah-9lp", file_size="300KiB", streams=4, think=thinks).to_dict()
    parts = ("overhead_ns", "seek_ns", "rotation_ns", "transfer_ns", "file_system_ns", "hidden_ns")
    assert sum(found[part] for part in parts) == pytest.approx(found["response_ns"])
    assert (np.diff(found["response_ns"]) <= 0).all()


def test_numbers_do_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = np.array([65_536.0])
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert model.file_system(**SLOW, file_size=65_536).response_ns == pytest.approx(2.16e6, rel=0.003)
    with pytest.raises(HeadstartError, match=r"^file_size: numpy is not installed; allowed: .*headstart\[numpy\]"):
        model.file_system(**SLOW, file_size=arrays)


def test_drives_by_name_profile_and_numbers() -> None:
    cheetah = model.file_system(drive="seagate-cheetah-4lp", streams=8)
    # The curve as extracted against the paper's formula: near, not equal.
    paper = model.file_system(**{**SLOW, "system_call": 0, "copy_per_kib": 0}, streams=8)
    assert cheetah.seek_ns == pytest.approx(paper.seek_ns, rel=0.15)
    assert cheetah.seek_ns != paper.seek_ns
    # Given values replace those of the drive; one overhead applies to both kinds of request.
    twice = model.file_system(drive="seagate-cheetah-4lp", overhead="2ms", bus_rate="20MB/s", cache_segments=8)
    assert twice.overhead_ns == pytest.approx(4 * 2e6 / 8)
    uniform = model.file_system(drive="uniform", keys={"fetch_time": "2ms"})
    assert (uniform.response_ns, uniform.seek_ns, uniform.rotation_ns) == (4 * 2e6 / 8, 0.0, 0.0)
    # A read of 64 KiB of flash is one of its fixed time and eight of 8 KiB on its link.
    flash = model.file_system(drive="nvme", prefetch_first="64KiB")
    assert flash.disk_requests == 1
    assert flash.total_ns == pytest.approx(44_900 + 65_536 / 7.45, rel=0.01)


def test_a_reader_that_computes_waits_less() -> None:
    """Figure 5's direction: the longer the file, the more is hidden."""
    shares = []
    for kib in (64, 512):
        lone, thinking = (
            model.file_system(**SLOW, file_size=f"{kib}KiB", request="10KiB", think=think) for think in ("0ms", "1ms")
        )
        assert lone.hidden_ns == 0
        shares.append(lone.response_ns / thinking.response_ns)
    assert 1.0 < shares[0] < shares[1]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"drive": "object-store"}, r"drive: its times are random, .*; allowed: a drive with an arm, flash"),
        ({"drive": "seagate-cheeta-9lp"}, r'drive\.model: unknown .*did you mean "seagate-cheetah-9lp"'),
        ({"drive": "uniform"}, r"drive\.fetch_time: is missing"),
        ({**SLOW, "keys": {"a": 1}}, r"keys: there is no device .*; allowed: "),
        ({**SLOW, "streams": 0}, r"streams: 0 is out of range; allowed: 1 to 65536"),
        ({**SLOW, "streams": 1.5}, r"streams: 1\.5 is not whole; allowed: "),
        ({**SLOW, "file_size": "64"}, r'file_size: "64" has no unit; allowed: a size with a unit'),
        ({**SLOW, "cluster": 10_000}, r"cluster: 10kB .*; allowed: a multiple of the block's size"),
        ({**SLOW, "prefetch_first": "128KiB"}, r"prefetch_first: 128KiB, .*; allowed: at most 64KiB"),
        ({**SLOW, "scheduler": "sstf"}, r'scheduler: unknown scheduler "sstf"; allowed: clook, cscan, fcfs'),
        ({**SLOW, "form": "table"}, r'form: unknown .*did you mean "tables"'),
        ({**SLOW, "think": -1}, r"think: -1 ns is out of range; allowed: "),
        ({**SLOW, "think": float("nan")}, r"think: is not a number; allowed: numbers"),
        ({**SLOW, "streams": np.array([1, 2, 0])}, r"streams: 0 is out of range \(element 2\); allowed: "),
        ({**SLOW, "streams": [1, 2], "file_size": [1, 2, 3]}, r"file_size, streams: .*allowed: arrays .*broadcast"),
        ({**SLOW, "streams": ["one"]}, r"streams: .*; allowed: arrays of numbers"),
        ({"drive": model.Drive(**{**vars(SLOW["drive"]), "cylinders": 0})}, r"cylinders: is 0; allowed: "),
    ],
)
def test_mistakes_are_one_line(arguments: dict[str, Any], line: str) -> None:
    with pytest.raises(HeadstartError, match=f"^{line}") as raised:
        model.file_system(**arguments)
    assert "\n" not in str(raised.value)


def test_a_value_that_no_key_takes_is_named_in_our_words() -> None:
    with pytest.raises(HeadstartError, match=r"^drive: has a value that no key takes, such as null; allowed: text, "):
        model.file_system(drive="hp97560", keys={"rpm": None})

"""Absurd sizes and numbers on the command line: one line that names it, and status 2."""

import os
import re
from pathlib import Path

import pytest

from headstart.cli.app import MISTAKE, run
from tests.conftest import CSCOPE_1

NUMBERS = ("-1", "0", "2147483648", "18446744073709551616", "9" * 40)
SIZES = ("-1B", "1000TiB", "16777215TiB", "9" * 40 + "TiB")
PLAY = ("play", CSCOPE_1, "--to", "nbd+unix:///?socket=none")
SERVE = ("serve", "image", "--socket", "socket")
PARALLEL = ("parallel", "--set", "process.barrier=none", "--set")

TABLE: list[tuple[tuple[object, ...], str, tuple[str, ...]]] = [
    (("serve", "--socket", "socket"), "mem:{}", ("0", *SIZES)),
    (SERVE, "--cache={}", SIZES),
    (SERVE, "--memory={}", ("0B", "1B", "-1B", "9" * 40 + "TiB")),
    (SERVE, "--page={}", ("0B", "1B", "5000B", *SIZES)),
    (SERVE, "--depth={}", NUMBERS),
    (SERVE, "--connections={}", NUMBERS),
    (SERVE, "--spill=spill:{}", ("0B", "1B", *SIZES)),
    (PLAY, "--depth={}", NUMBERS),
    (PLAY, "--connections={}", NUMBERS),
    (PLAY, "--limit={}", ("-1", "0", "18446744073709551616", "9" * 40)),
    (PLAY, "--seed={}", ("-1", "18446744073709551616", "9" * 40)),
    (PLAY, "--speed={}", ("-1", "0", "nan", "inf", "1e300")),
    (("profile", "image"), "--seed={}", ("-1", "18446744073709551616", "9" * 40)),
    (("profile", "image"), "--time={}", ("-1", "0", "1e300", "nan")),
    (("tune", "image"), "--depth={}", ("0B", *SIZES)),
    (("record", "--output", "out.hints"), "--buffer={}", ("0B", "1B", "-1B", "9" * 40 + "TiB")),
    (("device", "replay", "uniform", CSCOPE_1), "--limit={}", ("-1", "0", "18446744073709551616", "9" * 40)),
    (("trace", "generate", "loop", "out.csv"), "--seed={}", ("-1", "18446744073709551616", "9" * 40)),
    (PARALLEL, "process.count={}", ("-1", "0", "1000000000", "9" * 18)),
    (PARALLEL, "cache.blocks={}", ("-1", "0", "9" * 18)),
    (PARALLEL, "workload.block_size={}", ("0B", *SIZES)),
    (PARALLEL, 'process.pattern={{name="gw",reads={}}}', ("-1", "0", "1000000000", "9" * 18)),
    (PARALLEL, "device.count={}", ("-1", "0", "1000000000", "9" * 18)),
]


@pytest.mark.parametrize(
    ("words", "value"),
    [(words, text.format(value)) for words, text, values in TABLE for value in values],
    ids=[f"{words[0]}-{text.format(value)[:60]}" for words, text, values in TABLE for value in values],
)
def test_each_is_one_line(
    words: tuple[object, ...],
    value: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("image").write_bytes(b"")
    os.truncate("image", 64 << 20)
    command = [*map(str, words), value, *(["--", "true"] if words[0] == "record" else [])]
    status = run(command)
    said = capsys.readouterr().err
    assert (status, len(said.splitlines())) == (MISTAKE, 1), said
    option = value.partition("=")[0].rpartition(".")[2].partition(":")[0].lstrip("-")
    assert option in said and re.search(r"; allowed: |range x>=\d", said), said
    assert not Path("spill").exists()

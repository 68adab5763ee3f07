"""The training example: it runs at a small size, and its output is consistent."""

import subprocess
import sys

from tests.conftest import ROOT

PROGRAM = ROOT / "examples" / "training.py"
DOC = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")


def table(text: str) -> list[list[str]]:
    """The cells of a Markdown table, without its rule."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


def shown(*arguments: str) -> str:
    words = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_deep_prefetching_removes_the_stall_and_shallow_does_not() -> None:
    header, *rows = table(shown("--depths", "1,256", "--limit", "800", "--markdown"))
    found = {tuple(row[:3]): dict(zip(header, row, strict=True)) for row in rows}
    store = found["ml_folder", "20ms", "object-store"]
    assert float(store["1"]) > 50 > 1 > float(store["256"]) >= 0
    assert store["enough"] == "256"
    assert 64 < int(store["predicted"]) < 256
    # 800 samples a second, of which the store delivers at most 640.
    assert found["ml_folder", "10ms", "object-store"]["predicted"] == "none"


def test_the_table_for_people_is_the_same() -> None:
    printed = shown("--depths", "1,64", "--limit", "600")
    assert all(word in printed for word in ("ml_folder", "object-store", "nvme", "enough", "predicted"))


def test_too_few_requests_are_refused() -> None:
    words = [sys.executable, str(PROGRAM), "--limit", "100"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "allowed: from 600" in done.stderr


def test_the_docs_show_every_depth_and_device() -> None:
    header, *rows = table(DOC)
    assert [name for name in header if name.isdigit()] == [str(2**power) for power in range(11)]
    assert {row[2] for row in rows} == {"object-store", "nvme"}
    assert {row[0] for row in rows} == {"ml_folder", "dlio_unet3d"}

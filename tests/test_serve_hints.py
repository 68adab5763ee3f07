"""`headstart serve --hints`: what one run has recorded is prefetched in the next."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.test_bad_input import one_line
from tests.test_serve import Client, ended, serving

PAGE = 4096
PAGES = 2_000


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hints") / "image"
    path.write_bytes(random.Random(1).randbytes(PAGES * PAGE))
    return path


def boot(image: Path, folder: Path, pages: list[int], *words: str) -> dict[str, Any]:
    """Read `pages` from a drive with realistic times, and return the export's report."""
    content, path = image.read_bytes(), folder / "socket"
    drive = f"emulate:seagate-cheetah-9lp:{image}"
    with serving(path, drive, "--readahead", "demand", "--cache", "4MiB", "--json", "-", *words) as process:
        client = Client(path)
        for page in pages:
            assert client.read(page * PAGE, PAGE) == content[page * PAGE : (page + 1) * PAGE]
        export: dict[str, Any] = json.loads(ended(process))["exports"][0]
        return export


def test_the_second_run_finds_its_pages(image: Path, tmp_path: Path) -> None:
    pages = random.Random(2).sample(range(PAGES), 150)
    trace = tmp_path / "trace.csv"
    first = boot(image, tmp_path, pages, "--record", str(trace))
    assert (first["backing_demand_reads"], "hints" in first) == (150, False)
    second = boot(image, tmp_path, pages, "--hints", str(trace))
    hints = second["hints"]
    assert (hints["policy"], hints["hinted_bytes"], hints["stopped"]) == ("just-in-time", 150 * PAGE, None)
    assert hints["used_bytes"] > 75 * PAGE
    assert second["backing_demand_reads"] < 75
    assert second["backing_read_bytes"] <= 150 * PAGE
    other = boot(image, tmp_path, pages, "--hints", str(trace), "--hint-policy", "fixed-horizon")
    assert other["hints"]["policy"] == "fixed-horizon"


def test_hints_of_something_else_change_nothing(image: Path, tmp_path: Path) -> None:
    numbers = random.Random(3)
    pages = numbers.sample(range(PAGES), 100)
    trace = tmp_path / "trace.csv"
    others = [page for page in range(PAGES) if page not in pages]
    lines = [f"0.{at:03},R,1,{page * PAGE},{PAGE}" for at, page in enumerate(numbers.sample(others, 500))]
    trace.write_text("\n".join(["time,op,pid,offset,size", *lines, ""]), encoding="utf-8")
    export = boot(image, tmp_path, pages, "--hints", str(trace))
    assert (export["backing_demand_reads"], export["backing_prefetch_reads"]) == (100, 0)
    assert export["hints"]["prefetched_bytes"] == 0


@pytest.mark.parametrize(
    ("lines", "words", "said"),
    [
        (None, [], "No such file"),
        (["time,op,pid,offset,size", "0,W,1,0,4096"], [], "has no read within the export"),
        (["time,op,pid,offset,size", "0,R,1,9999999999,4096"], [], "has no read within the export"),
        (
            ["time,op,pid,file,offset,size", "0,R,1,0,0,4096", "1,R,1,1,0,4096"],
            [],
            "has reads of several files or exports",
        ),
        (["time,op,pid,offset,size", "0,R,1,0,4096"], ["--hint-policy", "linux"], "linux does not work from hints"),
        (["time,op,pid,offset,size", "0,R,1,0,4096"], ["--hint-policy", "just"], "(--hint-policy)"),
        (["time,op,pid,offset,size", "0,R,1,0,4096"], ["--cache", "0B"], "has no room for what they name"),
        (["time,op,pid,offset,size", "0,R,1,0,4096"], ["--export", "b=mem:1MiB"], "there are 2 exports"),
    ],
)
def test_mistakes_are_one_line(run: Run, tmp_path: Path, lines: list[str] | None, words: list[str], said: str) -> None:
    trace = tmp_path / "trace.csv"
    if lines is not None:
        trace.write_text("\n".join([*lines, ""]), encoding="utf-8")
    one_line(run("serve", "mem:1MiB", "--hints", str(trace), *words), said)


def test_a_policy_without_hints_is_refused(run: Run) -> None:
    one_line(run("serve", "mem:1MiB", "--hint-policy", "just-in-time"), "just-in-time without hints")

"""Pages of `--html` and figures of `--figures`: whole without a network, drawn in a real browser at three widths."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import WIDTHS, look
from tests.conftest import COMMAND, ROOT, Run
from tests.test_run import recording
from tests.warm import Warm

pytest.importorskip("altair", reason="it draws: pip install '.[report]'")
pytest.importorskip("vl_convert", reason="it draws: pip install '.[report]'")

POLICIES = "demand,linux,linux:read_ahead=512KiB,linux:read_ahead=2MiB,forestall"
COMMANDS = {
    "simulate": ["simulate", "examples/figure1.toml"],
    "levels": ["simulate", "examples/two-levels.toml"],
    "processes": ["simulate", "examples/rapid-transit.toml"],
    "compare": ["compare", "examples/traces/glimpse.csv.xz", "--policies", POLICIES, "--disks", "1,2"],
    # On a slow machine the search would find nothing in a few seconds.
    "advise": [
        "advise",
        "examples/traces/glimpse.csv.xz",
        "--limit",
        "1000",
        "--device",
        "hdd,nvme",
        "--seconds",
        "600",
    ],
    "reproduce": ["reproduce", "li07", "figure4"],
    "drive": ["device", "plot", "seagate-cheetah-9lp"],
    "flash": ["device", "plot", "sata-ssd"],
    "replay": ["device", "replay", "nvme", "examples/traces/offsets.txt", "--request-size", "4KiB"],
    "hints": ["hints", "show", "cat.hints"],
}
FIGURES = {
    "simulate": ["times-0", "prefetches-0", "devices-0"],
    "levels": ["times-0", "prefetches-0", "devices-0"],
    "processes": ["times-0", "prefetches-0", "devices-0"],
    "compare": ["by-disks-0", "by-depth-0"]
    + [f"{name}-{setting}-0" for setting in (0, 1) for name in ("times", "prefetches", "devices")],
    "advise": ["devices-0", "depths-0", "caches-0"],
    "reproduce": ["figure4-0", "figure4-1"],
    "drive": ["device-0", "device-1"],
    "flash": ["device-0", "device-1", "device-2", "device-3"],
    "replay": ["replay-0"],
    "hints": ["reads-0", "waits-0"],
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Path:
    """A folder with the page of each command."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "examples").symlink_to(ROOT / "examples")
    recording(folder / "cat.hints", ROOT / "README.md", pages=3)
    for name, words in COMMANDS.items():
        done = warm.run([str(COMMAND), *words, "--html", f"{name}.html"], folder)
        assert (done.returncode, done.stderr) == (0, ""), name
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_is_whole_and_small(pages: Path, name: str) -> None:
    text = (pages / f"{name}.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    shown = re.findall(r'data-figure="([^"]+)"', text)
    assert shown == FIGURES.get(name, shown)
    assert len(shown) >= 1
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'<script|<link|<img|src=|href=(?!"#)|url\(', own)
    assert text.count("vegaEmbed=") == 1
    assert len(re.findall(r'<p class="headline">[^<]{20,}</p>', own)) == 1


def test_long_tables_fold_after_their_best_rows(pages: Path) -> None:
    """Advice shows the five best policies of each device, a study what is published; the rest is one click away."""
    advised = (pages / "advise.html").read_text(encoding="utf-8")
    folds = list(
        re.finditer(r"</table></div><details><summary>(\d+) more policies</summary>(.*?)</details>", advised, re.DOTALL)
    )
    assert folds
    for fold in folds:
        best = advised[advised.rindex("<table", 0, fold.start()) : fold.start()]
        assert (best.count("<tr") - 1, fold[2].count("<tr") - 1) == (5, int(fold[1]))
    study = (pages / "reproduce.html").read_text(encoding="utf-8")
    ((count, ours),) = re.findall(
        r"<details><summary>(\d+) of ours that are not published</summary>(.*?)</details>", study, re.DOTALL
    )
    assert len(re.findall(r"<tr", ours)) - 1 == int(count) > 0
    assert ">not published<" not in re.sub(r"<details>.*?</details>", "", study, flags=re.DOTALL)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_is_drawn_in_a_browser(pages: Path, name: str, width: int) -> None:
    found = look(pages / f"{name}.html", width)
    assert found["faults"] == []
    assert found["loaded"] == []
    assert found["figures"] == found["drawn"] == len(found["tooltips"]) > 0
    assert found["overflow"] == 0
    assert found["cut"] == []
    assert found["smallest"] >= 11
    assert all(found["tooltips"]), found["tooltips"]
    as_it_is, up, down = found["orders"]
    assert sorted(up) == sorted(as_it_is)
    figures = [float(re.sub("[,+%]", "", cell)) for cell in up if re.fullmatch(r"[-+]?[\d,.]+%?", cell)]
    assert figures == sorted(figures)
    assert [cell for cell in down if re.fullmatch(r"[-+]?[\d,.]+%?", cell)][:1] == [max(up, key=_value)][: len(figures)]


def _value(cell: str) -> float:
    digits = re.sub("[,+%]", "", cell)
    return float(digits) if re.fullmatch(r"-?[\d.]+", digits) else float("-inf")


def test_a_page_is_dark_where_the_reader_wants_it_dark(pages: Path) -> None:
    light, dark = (look(pages / "compare.html", 820, dark=each) for each in (False, True))
    assert (light["ink"], light["label"]) == ("rgb(28, 32, 36)", "rgb(28, 32, 36)")
    assert (dark["ink"], dark["label"]) == ("rgb(237, 238, 240)", "rgb(237, 238, 240)")


def test_each_figure_is_written_as_png_and_svg(run: Run, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = run("simulate", "examples/figure1.toml", "--figures", "figures", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    names = ("devices", "prefetches", "times")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        f"{name}.{kind}" for name in names for kind in ("png", "svg")
    ]
    for name in names:
        assert (tmp_path / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / "figures" / f"{name}.svg").read_text(encoding="utf-8")


def test_text_from_outside_cannot_leave_its_place(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "<script>x<!--.csv"
    trace.write_text("offset,size\n0,8192\n8192,8192\n", encoding="utf-8")
    done = run("compare", trace, "--policies", "demand,linux", "--html", "page.html", "--json", "out.json")
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>x" not in text
    assert look(tmp_path / "page.html", 820)["faults"] == []


def test_what_cannot_be_drawn_or_written_is_refused_before_the_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for words, text in (
        (("--html", "nowhere/page.html"), "nowhere/page.html: cannot be written: there is no folder nowhere"),
        (("--figures", "file"), "--figures: file: no folder that can be written; allowed: a folder, which is made"),
        (("--figures", "no/where"), "--figures: no/where: no folder that can be written"),
    ):
        done = run("simulate", ROOT / "examples" / "figure1.toml", *words)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert text in done.stderr


@pytest.mark.parametrize("option", ["--html", "--figures"])
def test_without_the_extra_there_is_one_clear_line(tmp_path: Path, option: str) -> None:
    hidden = "import sys; sys.modules['vl_convert'] = None; from headstart.cli import main; main()"
    scenario = ROOT / "examples" / "figure1.toml"
    words = [sys.executable, "-c", hidden, "simulate", str(scenario), option, "out"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    problem = f"headstart: simulate {option}: pictures need altair and vl-convert-python"
    assert done.stderr == f"{problem}; allowed: pip install 'headstart[report]'\n"

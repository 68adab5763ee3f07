"""`headstart curve`, and the analysis and the filter of traces: against runs, by hand, and as a user types them."""

import io
import json
from collections import OrderedDict
from pathlib import Path

import pytest
from rich.console import Console

import headstart
from headstart.cli.output import WIDE
from headstart.report.curve import curve_shown
from headstart.report.trace import in_words, sparkline, within
from tests.conftest import CSCOPE_1, Run
from tests.test_bad_input import one_line

SIZES = [1, 8, 100, 640, 5000]


def misses_of_run(policy: str, blocks: int, **workload: object) -> headstart.Result:
    name, _, replacement = policy.partition(":")
    keys = {"name": name, **({"replacement": replacement} if replacement else {})}
    return headstart.simulate(
        {
            "workload": {"trace": str(CSCOPE_1), "limit": 2000, **workload},
            "cache": {"blocks": blocks},
            "policy": keys,
            "device": "nvme",
        }
    )


def test_misses_of_every_kind_of_policy_are_those_of_runs() -> None:
    policies = ["lru", "demand:arc", "demand:min", "forestall", "linux"]
    found = headstart.curve(CSCOPE_1, policies=policies, cache=SIZES, workload={"limit": 2000})
    assert found.policies == ["demand:lru", *policies[1:]]
    methods = {policy: {point.method for point in found.of(policy)} for policy in found.policies}
    assert list(methods.values()) == [{"stack-distances"}, {"caches"}, {"runs"}, {"runs"}, {"runs"}]
    for policy in found.policies:
        for point in found.of(policy):
            ran = misses_of_run(policy, point.blocks or 0, addresses="auto")
            assert (point.misses, point.misses_min, point.misses_max) == (ran.misses,) * 3, (policy, point)
            assert point.miss_ratio == ran.misses / ran.references
            assert point.elapsed_ns is None or point.method == "runs"


def test_a_device_gives_the_times_of_runs() -> None:
    found = headstart.curve(CSCOPE_1, policies=["lru"], cache=[100, 640], device="nvme", workload={"limit": 2000})
    ran = [misses_of_run("demand", blocks, addresses="auto") for blocks in (100, 640)]
    assert [(point.misses, point.elapsed_ns) for point in found.points] == [
        (each.misses, each.elapsed_ns) for each in ran
    ]


def test_sizes_by_default_rise_to_all_distinct_blocks() -> None:
    found = headstart.curve(CSCOPE_1)
    blocks = [point.blocks or 0 for point in found.points]
    assert blocks == sorted(set(blocks)) and blocks[-1] == found.distinct_blocks
    assert found.points[-1].misses == found.distinct_blocks
    misses = [point.misses for point in found.points]
    assert misses == sorted(misses, reverse=True), "LRU has the inclusion property"


def zipf(folder: Path) -> Path:
    path = folder / "zipf.csv"
    headstart.trace_generate("zipf", path, keys={"requests": 60_000, "blocks": 12_000, "alpha": 0.8}, seed=3)
    return path


def test_samples_are_near_and_show_their_spread(tmp_path: Path) -> None:
    path = zipf(tmp_path)
    policies, cache = ["lru", "sieve", "demand:min"], ["10%", "40%"]
    exact = headstart.curve(path, policies=policies, cache=cache)
    for sample in ({"rate": 0.2}, {"sample_blocks": 2000}):
        found = headstart.curve(
            path, policies=policies, cache=[p.blocks or 0 for p in exact.of("demand:lru")], **sample
        )
        for point, whole in zip(found.points, exact.points, strict=True):
            assert abs(point.miss_ratio - whole.miss_ratio) < 0.05, (point, whole)
            assert 0 < point.spread < 0.1 and point.elapsed_ns is None


def test_sizes_below_one_sampled_block_have_no_figure(tmp_path: Path, run: Run) -> None:
    """With one block in twenty, a cache of less than 20 blocks holds less than one block of the sample."""
    path = zipf(tmp_path)
    found = headstart.curve(path, policies=["lru", "sieve"], cache=[5, 19, 20, 600], rate=0.05)
    assert [(point.policy, point.blocks) for point in found.points] == [
        (policy, blocks) for policy in ("demand:lru", "demand:sieve") for blocks in (20, 600)
    ]
    assert "sizes below 20 blocks, one block of the sample, are left out: 2" in found.notes
    # The remaining part covers the exact figure.
    exact = headstart.curve(path, policies=["lru"], cache=[20, 600])
    for point, whole in zip(found.of("demand:lru"), exact.points, strict=True):
        assert abs(point.miss_ratio - whole.miss_ratio) <= 3 * max(point.spread, 0.01), (point, whole)
    assert not any("left out" in note for note in exact.notes)
    refused = run("curve", path, "--cache", "5,19", "--rate", "0.05")
    one_line(refused, "every size is below 20 blocks, one block of the sample", "larger sizes, or a larger rate")


def test_a_sample_of_extents_lets_read_ahead_see_sequences(tmp_path: Path) -> None:
    path = tmp_path / "sequential.csv"
    headstart.trace_generate("sequential", path, keys={"blocks": 20_000})
    exact, sampled = (
        headstart.curve(path, policies=["linux"], cache=["20%"], rate=rate).points[0] for rate in (1, 0.2)
    )
    assert exact.miss_ratio < 0.1
    assert abs(sampled.miss_ratio - exact.miss_ratio) < 0.05


def test_objects_are_cached_by_bytes(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "objects.csv"
    objects = [(at * at % 37, 100 + 40 * (at * at % 37)) for at in range(500)]
    path.write_text("id,size\n" + "".join(f"{name},{size}\n" for name, size in objects))
    cache: OrderedDict[int, int] = OrderedDict()
    misses = missed = 0
    for name, size in objects:
        if name in cache:
            cache.move_to_end(name)
            continue
        misses, missed = misses + 1, missed + size
        if size <= 1000:
            while sum(cache.values()) + size > 4096:
                cache.popitem(last=False)
            cache[name] = size
    found = headstart.curve(path, cache=["4KiB"], admit="1000B")
    point = found.points[0]
    assert (point.misses, point.miss_bytes, point.blocks) == (misses, missed, None)
    assert point.byte_miss_ratio == missed / sum(size for _, size in objects)
    refused = run("curve", path, "--policies", "arc")
    one_line(refused, "arc counts blocks", "demand:lru")
    one_line(run("curve", path, "--policies", "linux"), "runs count objects as blocks")
    one_line(run("curve", path, "--cache", "100"), "a number of blocks")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rate", "2"), ("rate (--rate): 2 is no share", "at most 1")),
        (("--rate", "0.1", "--device", "nvme"), ("rate (--rate)", "no elapsed time", "one of")),
        (("--rate", "0.1", "--sample-blocks", "9"), ("given beside rate", "one of the two")),
        (("--cache", "much"), ("cache", '"much"')),
        (("--cache", "0"), ("cache", "at least one block")),
        (("--cache", "1KiB"), ("1KiB is less than one block",)),
        (("--policies", "most"), ('"most"', "demand")),
        (("--policies", "lruu"), ('policies (--policies): "lruu"', '(did you mean "lru"?); allowed: lru, ', "demand")),
        (("--policies", "lru:x=1"), ("x",)),
        (("--admit", "1MiB"), ("admit (--admit)", "no objects")),
        (("--points", "0"), ("--points",)),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], words: tuple[str, ...], run: Run) -> None:
    one_line(run("curve", CSCOPE_1, *arguments), *words)


def test_what_depends_on_time_is_run_and_says_so() -> None:
    found = headstart.curve(CSCOPE_1, policies=["lru"], cache=[100], workload={"limit": 500, "processes": "per-pid"})
    assert found.points[0].method == "runs"
    assert found.notes[-1] == "there are several processes: every policy is run"


def test_the_table_fits_eighty_columns_and_the_page_has_figures(tmp_path: Path, run: Run) -> None:
    page = tmp_path / "curve.html"
    with Console(width=80, file=io.StringIO()) as console, console.capture() as captured:
        curve_shown(console, headstart.curve(CSCOPE_1, policies=["lru", "arc", "s3-fifo", "sieve", "lfu", "clock"]))
    assert max(map(len, captured.get().splitlines()[1:])) <= 80
    shown = run("curve", CSCOPE_1, "--policies", "lru,arc,s3-fifo,sieve,lfu,clock,mru,fifo", "--html", page)
    assert shown.returncode == 0 and max(map(len, shown.stdout.splitlines()[1:])) <= WIDE
    assert page.read_text().count("<figure id=") == 1
    written = json.loads(run("curve", CSCOPE_1, "--json", "-").stdout)
    assert written["schema"] == 1 and len(written["points"]) == 10


def test_the_analysis_of_a_trace_by_hand(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "trace.csv"
    lines = [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 1)]
    path.write_text("time,offset,size\n" + "".join(f"{time},{block * 8192},8192\n" for time, block in lines))
    found = headstart.trace_info(path)
    # Blocks 0 1 2 0 1 1: distances 3, 3, 1.
    assert found["reuse"]["stack_distances"] == [1, 2] and found["reuse"]["first_references"] == 3
    assert sum(found["reuse"]["times_ns"]) == 3 and found["reuse"]["times_ns"][29:32] == [1, 0, 2]
    assert found["popularity"]["by_rank"] == [[1, 3], [2, 2], [3, 1]]
    assert [window["first_references"] for window in found["windows"]] == [1, 1, 1, 0, 0, 0]
    shown = run("trace", "info", path).stdout
    assert "stack distance" in shown and "new blocks over time" in shown
    words = in_words(found)
    assert max(map(len, words)) + max(map(len, words.values())) <= 78


def test_a_sparkline_and_a_quantile() -> None:
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert len(sparkline([0.1] * 64)) == 32
    assert [within([1, 0, 8, 1], share) for share in (0.1, 0.5, 1.0)] == [2, 8, 16]
    assert within([], 0.5) is None


def test_pictures_of_a_trace(tmp_path: Path, run: Run) -> None:
    page = tmp_path / "info.html"
    assert run("trace", "info", CSCOPE_1, "--html", page).returncode == 0
    figures = ("sizes", "stack-distances", "reuse-times", "popularity", "over-time")
    assert all(f'<figure id="{name}"' in page.read_text() for name in figures)


def test_a_filter_leaves_what_the_level_below_gets(tmp_path: Path, run: Run) -> None:
    below = tmp_path / "below.csv"
    written = headstart.trace_filter(CSCOPE_1, below, cache=200)
    above = headstart.curve(CSCOPE_1, cache=[200]).points[0]
    assert (written["misses"], written["references"]) == (above.misses, headstart.trace_info(CSCOPE_1)["references"])
    assert headstart.trace_info(below)["references"] == above.misses
    one_line(run("trace", "filter", CSCOPE_1, "--cache", "0", "-o", below), "a cache of 0 blocks")
    one_line(run("trace", "filter", CSCOPE_1, "--cache", "9", "--policy", "min", "-o", below), "min knows the future")

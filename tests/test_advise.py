"""`headstart advise` and `headstart.advise`."""

import dataclasses
import functools
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headstart
from headstart import Advice
from headstart.advice import DEVICES, DeviceAdvice
from headstart.advice import runs as advice_runs
from headstart.advice.choice import choose
from headstart.advice.commands import SHARED, commands
from headstart.advice.runs import LINUX, STORES, Measured, Run, Runs, depths, hinted, linux, linux_depth, stores
from headstart.policies import rows
from headstart.report.advice import headline
from headstart.runs.compare import plan as planned
from headstart.runs.rows import Setting
from headstart.sizes import size_bytes
from tests.conftest import CSCOPE_1, ROOT
from tests.conftest import Run as Command

EXAMPLES = sorted(
    path.name for path in (ROOT / "examples" / "traces").iterdir() if not path.name.endswith(".files.csv.xz")
)
ALL_DEVICES = [entry["name"] for entry in headstart.catalog()["devices"] if entry["name"] != "uniform"]
SEQUENTIAL = {"generator": "sequential", "blocks": 8192, "request_blocks": 16}
SECONDS = 600.0
"""More than any of these takes: the advice must not depend on the machine."""
PAGE = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")


def reads(folder: Path, offsets: list[int], size: int = 4096) -> Path:
    """A trace of reads of one file."""
    path = folder / "reads.csv"
    path.write_text("offset,size\n" + "".join(f"{offset},{size}\n" for offset in offsets))
    return path


def test_a_sequential_trace_is_read_deep_ahead_from_an_object_store() -> None:
    advice = headstart.advise(SEQUENTIAL, device="object-store", seconds=SECONDS)
    (each,) = advice.devices
    assert advice.stream_share > 0.9
    assert each.verdict == "change"
    assert each.linux.depth_bytes is not None and each.linux.depth_bytes >= 1 << 20
    assert each.recommended.speedup > 10
    # A request takes at least 0.1 s and carries at most 1.25 MiB; 64 of them are in flight at a time.
    assert each.recommended.elapsed_ns > 100_000_000
    assert each.confidence.level == "high" and len(each.confidence.seeds) == 2
    # A depth may take at most half the cache.
    (small,) = headstart.advise(SEQUENTIAL, device="object-store", cache="1MiB", seconds=SECONDS).devices
    assert small.linux.depth_bytes is not None and small.linux.depth_bytes <= 1 << 19


@pytest.mark.parametrize("span", [1 << 28, 1 << 20])
def test_a_random_trace_gets_no_benefit_on_any_device(span: int, tmp_path: Path) -> None:
    """Even if all of it fits the cache, and neighbours fetched by chance are used eventually."""
    chance = random.Random(span)
    trace = reads(tmp_path, [chance.randrange(span // 4096) * 4096 for _ in range(300)])
    advice = headstart.advise(trace, device=ALL_DEVICES, block_size="4KiB", seconds=SECONDS)
    assert advice.stream_share < 0.05
    assert [each.device for each in advice.devices] == ALL_DEVICES
    for each in advice.devices:
        # No setting helps: only the program's own knowledge can.
        assert each.verdict in ("no benefit", "disclose"), each.device
        assert each.recommended.policy in ("demand", LINUX)
        assert not any("--depth" in line for line in each.commands)
        # A device-wide setting only if the default costs 5 %, listed after what concerns the program alone.
        wide = [line for line in each.commands if line.startswith("echo 0")]
        assert all(SHARED in line or "all programs" in line for line in wide)
        if wide:
            assert each.linux_default is not None
            assert each.linux_default.elapsed_ns > 1.05 * each.recommended.elapsed_ns
        assert each.hints is not None
        ahead = each.recommended.elapsed_ns - each.hints.elapsed_ns >= 0.05 * each.recommended.elapsed_ns
        assert (each.verdict == "disclose") == (ahead and not each.hints.policy.startswith("demand"))
        assert (each.verdict == "disclose") == any("WILLNEED" in line or "--hints" in line for line in each.commands)


WORKLOADS: list[dict[str, Any]] = [
    {"trace": str(CSCOPE_1), "limit": 800},
    {"generator": "two-rand", "requests": 20, "files": 40, "file_size": "256KiB"},
    {"generator": "zipf", "requests": 500, "request_blocks": 3},
    {"generator": "loop", "blocks": 300, "requests": 1000, "compute": "100us"},
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: str(each.get("generator", "cscope")))
def test_what_is_advised_holds_when_it_is_run(workload: dict[str, Any]) -> None:
    devices = ["hdd", "nvme"] if "trace" in workload else ["sata-ssd", "object-store"]
    advice = headstart.advise(workload, device=devices, cache=["256KiB", "30%"], seconds=SECONDS)
    assert [each.device for each in advice.devices] == [device for device in devices for _ in range(2)]
    for each in advice.devices:
        best, demand = each.recommended, each.demand
        assert best.elapsed_ns <= demand.elapsed_ns
        assert best.saved_ns == demand.elapsed_ns - best.elapsed_ns
        assert each.confidence.confirmed
        assert (each.verdict in ("no benefit", "disclose")) == (
            advice.stream_share < 0.05 or best.saved_ns < 0.05 * demand.elapsed_ns
        )
        named = ["demand", *dict.fromkeys((LINUX, best.policy))]
        frame = headstart.compare(
            workload,
            policies=list(dict.fromkeys(named)),
            device=each.profile,
            cache=each.cache_blocks,
        )
        assert (
            dict(zip(frame["policy"], frame["elapsed_ns"], strict=True)).items()
            >= {
                "demand": demand.elapsed_ns,
                best.policy: best.elapsed_ns,
            }.items()
        )
        assert each.cache_enough_blocks is not None and each.cache_enough_blocks <= advice.footprint_blocks
        sizes = [blocks for blocks, _ in each.cache_sweep]
        assert sizes == sorted(sizes, reverse=True) and sizes[0] == advice.footprint_blocks
        assert each.fastest_tried.elapsed_ns <= best.elapsed_ns
        assert each.lower_bound_ns is None or each.lower_bound_ns <= best.elapsed_ns
        elapsed = [timed.elapsed_ns for timed in each.tried]
        assert elapsed == sorted(elapsed)


def test_without_a_device_four_stand_side_by_side() -> None:
    advice = headstart.advise(SEQUENTIAL, workload={"limit": 40}, seconds=SECONDS)
    assert tuple(each.device for each in advice.devices) == DEVICES
    assert [each.profile for each in advice.devices] == ["seagate-exos-x20", *DEVICES[1:]]
    assert advice.notes[0] == "no cache is given: 5.00 MiB, all that the trace touches"


ON_ONE_WORKER = pytest.mark.xdist_group("advised")
"""They share the advice for the examples."""


@functools.cache
def advised(name: str) -> tuple[Advice, int]:
    """The advice for an example on the default devices, and the number of runs."""
    count = 0

    def counted(*args: Any, **keys: Any) -> headstart.Result:
        nonlocal count
        result = headstart.simulate(*args, **keys)
        count += 1
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advice_runs, "simulate", counted)
        advice = headstart.advise(example(name), workload=KEYS.get(name), seconds=SECONDS)
    return advice, count


def example(name: str) -> Path:
    return ROOT / "examples" / "traces" / name


CUT = {name: {"limit": 4000} for name in ("multi6.csv.xz", "ld.csv.xz", "pg_join.csv.xz")}
"""The longest traces: uncut, they would take half the time of all."""
KEYS: dict[str, dict[str, Any]] = {"offsets.txt": {"request_size": "4KiB"}, **CUT}


@ON_ONE_WORKER
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_not_run_changes_no_advice(name: str) -> None:
    """Every depth, every setting of a store's clients and all hints are run if they are named: the same answer."""
    few, _ = advised(name)
    cache_bytes = few.devices[0].cache_bytes
    assert cache_bytes is not None
    named = [*depths(cache_bytes), *stores(1 << 40), *hinted(evicts=True)]
    every = headstart.advise(example(name), workload=KEYS.get(name), seconds=SECONDS, policies=named)
    for each, other in zip(few.devices, every.devices, strict=True):
        assert (headline(each), each.recommended, each.linux) == (headline(other), other.recommended, other.linux)
        assert each.cache_enough_blocks == other.cache_enough_blocks
        of_all = {timed.policy: timed for timed in other.tried}
        assert {timed.policy: timed for timed in each.tried}.items() <= of_all.items()


@ON_ONE_WORKER
def test_a_device_takes_some_twenty_runs() -> None:
    """With all depths, all settings of all policies in the registry, and caches one by one, it would take 79."""
    assert sum(count for _, count in map(advised, EXAMPLES)) <= 79 / 4 * len(DEVICES) * len(EXAMPLES)


def test_what_the_lower_bound_excludes_is_not_run() -> None:
    """A program that computes for 10 ms a read cannot gain by depth: only demand, Linux's default and hints run."""
    slow = {"generator": "loop", "blocks": 300, "requests": 1000, "compute": "10ms"}
    (each,) = headstart.advise(slow, device="nvme", seconds=SECONDS).devices
    assert each.lower_bound_ns is not None and each.lower_bound_ns > 0.95 * each.demand.elapsed_ns
    assert {timed.policy for timed in each.tried} == {"demand", LINUX, "just-in-time"}
    assert each.verdict == "no benefit"


def test_the_answer_for_the_start_of_a_long_trace_comes_first(run: Command) -> None:
    long = {"generator": "sequential", "blocks": 300_000}
    early: list[Advice] = []
    advice = headstart.advise(long, device="nvme", seconds=SECONDS, sampled=early.append)
    (first,) = early
    assert first.sample_requests == advice.sample_requests == 30_000
    assert not first.devices[0].confidence.confirmed and advice.devices[0].confidence.confirmed
    assert first.devices[0].demand.elapsed_ns < advice.devices[0].demand.elapsed_ns
    assert first.devices[0].lower_bound_ns is None and first.devices[0].cache_sweep == ()
    headstart.advise({**long, "blocks": 700}, device="nvme", seconds=SECONDS, sampled=early.append)
    assert len(early) == 1, "a short trace has only one answer"
    words = ("--generator", "sequential", "--set", "workload.blocks=300000", "--device", "nvme")
    done = run("advise", *words, "--seconds", str(SECONDS))
    said = done.stderr.splitlines()
    assert said[0] == "so far, from the first 30,000 of 300,000 requests:"
    assert [line.split()[0].rstrip(":") for line in said[1:]] == ["nvme"]
    assert "so far" not in done.stdout


def test_the_same_seed_gives_the_same_advice() -> None:
    runs = [headstart.advise(WORKLOADS[1], jobs=jobs, seed=7, seconds=SECONDS).to_dict() for jobs in (1, 4)]
    assert runs[0] == runs[1]


def test_progress_goes_up_and_its_exception_stops_the_search() -> None:
    told: list[tuple[float, str]] = []
    headstart.advise(
        SEQUENTIAL, device="nvme", jobs=1, seconds=SECONDS, progress=lambda share, step: told.append((share, step))
    )
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] <= 1
    assert list(dict.fromkeys(step for _, step in told))[:2] == ["looking for streams", "screening"]

    def stop(share: float, step: str) -> None:
        raise RuntimeError(step)

    with pytest.raises(RuntimeError, match="looking for streams"):
        headstart.advise(SEQUENTIAL, device="nvme", progress=stop)


def ids(folder: Path, name: str, objects: list[int]) -> Path:
    path = folder / name
    path.write_text("time,id\n" + "".join(f"{at / 1000},{each}\n" for at, each in enumerate(objects)))
    return path


def test_object_numbers_are_no_addresses(run: Command, tmp_path: Path) -> None:
    """300 objects in order of first use: reading ahead by number would seem 43 times as fast."""
    trace = ids(tmp_path, "objects.csv", list(range(300)))
    bare = tmp_path / "objects.trace"
    bare.write_text("".join(f"{each}\n" for each in range(300)))
    lis = tmp_path / "objects.lis"
    lis.write_text("".join(f"{each} 1 0 {each}\n" for each in range(300)))
    for source in (trace, bare, lis):
        advice = headstart.advise(source, device=["nvme", "hdd"], seconds=SECONDS)
        assert any("has no addresses" in note for note in advice.notes)
        for each in advice.devices:
            assert each.verdict in ("no addresses", "disclose")
            assert each.recommended.policy == "demand" and each.linux_default is None
            assert not any(rows()[timed.policy.partition(":")[0]]["by_position"] for timed in each.tried)
            assert not any("read_ahead_kb" in line or "headstart tune" in line for line in each.commands)
        compared = planned(source, device="nvme").run()
        assert [row.policy for row in compared.rows if "linux" in row.policy] == []
        assert any(note.startswith("the trace has no addresses: left out") for note in compared.notes())
    for words in (
        ("compare", trace, "--policies", "demand,linux"),
        ("curve", trace, "--policies", "lru,linux"),
        ("advise", trace, "--policies", "linux:read_ahead=1MiB", "--device", "nvme"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert "linux reads ahead by position, and the trace has no addresses" in done.stderr
        assert done.stderr.count("\n") == 1 and "; allowed: " in done.stderr
    assert run("curve", trace, "--policies", "lru,demand:min,forestall", "--points", "2").stdout


def test_what_the_program_knows_is_the_headline_where_no_setting_helps(run: Command, tmp_path: Path) -> None:
    chance = random.Random(3)
    trace = reads(tmp_path, [chance.randrange(1 << 20) * 4096 for _ in range(400)])
    done = run("advise", trace, "--device", "object-store,nvme", "--seconds", str(SECONDS)).stdout
    line = next(line for line in done.splitlines() if line.startswith("object-store: no read-ahead setting helps; "))
    found = re.search(r"; ([\d.]+) s of ([\d.]+) s could be saved by reading ahead of what the program knows", line)
    assert found is not None and float(found[1]) > 0.9 * float(found[2])
    assert "leave it as it is" not in done and "echo 0" not in done
    assert "POSIX_FADV_WILLNEED" in done and "headstart run -- COMMAND" in done and "--hints TRACE" in done


def measured(policy: str, elapsed_ns: int, *, used: int = 1, wasted: int = 0) -> Measured:
    """A measurement in which only the time and the use of prefetches matter."""
    return Measured(
        policy=policy,
        elapsed_ns=elapsed_ns,
        compute_ns=0,
        stall_ns=0,
        wasted_bytes=0,
        fetches=max(used + wasted, 100),
        prefetches_used=used,
        prefetches_wasted=wasted,
        coverage=0.0,
        cache_blocks=1,
        device={},
        notes=(),
        trace_sha256="",
    )


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"demand": 100, "linux": 96, "linux:read_ahead=1MiB": 96}, "linux"),
        ({"demand": 100, "linux": 101, "linux:read_ahead=1MiB": 96}, "demand"),
        ({"demand": 100, "linux": 90, "linux:read_ahead=1MiB": 90}, "linux"),
        (
            {"demand": 1000, "linux": 900, "linux:read_ahead=1MiB": 803, "linux:read_ahead=2MiB": 800},
            "linux:read_ahead=1MiB",
        ),
        (
            {"demand": 1000, "linux": 900, "linux:read_ahead=1MiB": 850, "linux:read_ahead=2MiB": 800},
            "linux:read_ahead=2MiB",
        ),
        ({"demand": 1000, "linux": 700, "mountpoint-s3": 697}, "linux"),
        ({"demand": 1000, "linux": 700, "mountpoint-s3": 600}, "mountpoint-s3"),
    ],
)
def test_the_simplest_of_the_fastest_is_chosen(times: dict[str, int], expected: str) -> None:
    found = {policy: measured(policy, elapsed) for policy, elapsed in times.items()}
    assert choose(found, list(times), streams=True) == expected
    if expected != "demand":
        assert choose(found, list(times), streams=False) == "linux"


def test_what_wastes_more_than_it_uses_is_not_chosen() -> None:
    deep = linux("8MiB")
    found = {
        "demand": measured("demand", 100),
        LINUX: measured(LINUX, 90),
        deep: measured(deep, 50, used=10, wasted=11),
    }
    assert choose(found, list(found), streams=True) == LINUX
    found[deep] = dataclasses.replace(found[deep], prefetches_wasted=10)
    assert choose(found, list(found), streams=True) == deep


@pytest.mark.parametrize(("wasted", "expected"), [(0, "4MiB"), (1, "4MiB"), (2, None), (12, None), (40, None)])
def test_what_is_saved_outweighs_what_is_wasted(wasted: int, expected: str | None) -> None:
    """2.7 % less than the default, with this many of 100 fetches wasted: worth it while the waste is no larger."""
    deep = linux("4MiB")
    found = {
        "demand": measured("demand", 2000),
        LINUX: measured(LINUX, 1000),
        deep: measured(deep, 973, used=60, wasted=wasted),
    }
    assert choose(found, list(found), streams=True) == (LINUX if expected is None else linux(expected))


def test_the_headline_says_what_disclosure_saves_beside_a_setting(run: Command, tmp_path: Path) -> None:
    """Files of four blocks from a store: the default finds the streams, and each file is still waited for."""
    chance = random.Random(5)
    lines = ["file,offset,size"]
    for file in chance.sample(range(1000), 150):
        lines += [f"{file},{block * 65536},65536" for block in range(4)]
    trace = tmp_path / "files.csv"
    trace.write_text("\n".join(lines) + "\n")
    words = ("advise", trace, "--device", "object-store", "--seconds", str(SECONDS))
    (each,) = json.loads(run(*words, "--json", "-").stdout)["devices"]
    assert each["verdict"] in ("keep the default", "change"), each["verdict"]
    more = each["recommended"]["elapsed_ns"] - each["hints"]["elapsed_ns"]
    assert each["recommended"]["saved_ns"] > 0 and more > 0.9 * each["recommended"]["elapsed_ns"]
    done = run(*words).stdout
    line = next(line for line in done.splitlines() if line.startswith("object-store: "))
    assert re.search(r": saves .* of .*; [\d.]+ s more could be saved by reading ahead of what the program knows", line)
    assert "--hints TRACE" in done and "to do, any of:" in done


@given(
    st.dictionaries(st.sampled_from(["linux", *map(linux, ("256KiB", "1MiB", "4MiB"))]), st.integers(1, 1000)),
    st.integers(1, 1000),
)
def test_the_choice_is_never_slower_than_demand(times: dict[str, int], demand: int) -> None:
    found = {policy: measured(policy, elapsed) for policy, elapsed in (("demand", demand), *times.items())}
    chosen = found[choose(found, list(found), streams=True)]
    fastest = min(each.elapsed_ns for each in found.values())
    assert chosen.elapsed_ns <= demand
    assert chosen.elapsed_ns <= 1.01 * fastest or fastest > 0.95 * demand


def test_candidates_are_what_the_registry_has() -> None:
    assert rows()[LINUX]["keys"]["read_ahead"] == "128KiB"
    assert [linux_depth(name) for name in depths(1 << 30)] == [(128 << 10) << step for step in range(10)]
    assert [linux_depth(name) for name in depths(1 << 20)] == [128 << 10, 256 << 10, 512 << 10]
    assert depths(1) == [LINUX]
    for name, settings in STORES.items():
        for key, values in settings.items():
            default = rows()[name]["keys"][key]
            assert [4 * size_bytes(values[0]), size_bytes(values[1]) // 4] == [size_bytes(str(default))] * 2
    # A window of 512 MiB is never full if there is less to hold.
    assert set(stores(1 << 40)) - set(stores(512 << 20)) == {"mountpoint-s3:max=512MiB", "mountpoint-s3:max=8GiB"}
    families = {entry["name"]: entry for entry in headstart.catalog()["policies"]}
    names = [name for name, entry in families.items() if entry["family"] == "hinted"]
    assert {*hinted(evicts=True)} == {*names, "oracle-depth", "demand:min"} - {"headstart-store"}
    assert hinted(evicts=False)[0] == "just-in-time"


def test_when_the_time_is_up_no_run_is_started() -> None:
    plan = planned(SEQUENTIAL, policies=["demand"], device="nvme", cache=64)
    run = Run(setting=plan.settings[0], policy="demand", limit=None, seed=1)
    late = Runs(plan, deadline=time.monotonic() - 1, jobs=1, told=None)
    assert late.measure([run], step="", share=(0.0, 1.0)) == {}
    assert late.given_up == {run}
    early = Runs(plan, deadline=time.monotonic() + 3600, jobs=1, told=None)
    assert early.measure([run], step="", share=(0.0, 1.0)).keys() == {run}
    assert not early.given_up
    refused = dataclasses.replace(run, setting=Setting(device="nvme", cache="64", disks=1), policy="competitive")
    assert early.measure([refused], step="", share=(0.0, 1.0)) == {}
    assert "competitive" in early.refused


def test_commands_fit_the_device() -> None:
    local, remote = {"name": "nvme"}, {"name": "object-store", "connections": 64}
    assert commands(LINUX, local, unchanged=True) == ()
    # Commands that concern the program alone come first; those that concern all others say so.
    fadvise, tune, sysfs = commands(linux("4MiB"), local, unchanged=False)
    assert fadvise.startswith("posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL)")
    assert tune == f"headstart tune /dev/DEVICE --depth 4MiB --apply   # {SHARED}"
    assert sysfs == f"echo 4096 | sudo tee /sys/block/DEVICE/queue/read_ahead_kb   # {SHARED}"
    assert "--apply --force " in commands(linux("32MiB"), local, unchanged=False)[1]
    assert "POSIX_FADV_RANDOM" in commands("demand", local, unchanged=False)[0]
    assert "/sys/class/bdi/" in commands(linux("4MiB"), remote, unchanged=False)[1]
    assert commands("mountpoint-s3", remote, unchanged=False)[0].startswith("mount-s3 BUCKET ")
    (line,) = commands("mountpoint-s3:max=8GiB", remote, unchanged=False)
    assert line.startswith(f"UNSTABLE_MOUNTPOINT_MAX_PREFETCH_WINDOW_SIZE={8 << 30} mount-s3 BUCKET ")
    assert f"block_size={5 << 20})" in commands("fsspec-readahead", remote, unchanged=False)[0]
    assert f"block_size={1280 << 10})" in commands("fsspec-readahead:block_size=1280KiB", remote, unchanged=False)[0]


def test_the_command_prints_json_and_text_of_the_same_advice(run: Command, tmp_path: Path) -> None:
    words = (
        "advise",
        CSCOPE_1,
        "--limit",
        "300",
        "--device",
        "hdd,object-store",
        "--cache",
        "2MiB",
        "--seconds",
        "600",
    )
    done = run(*words, "--json", "advice.json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads((tmp_path / "advice.json").read_text())
    same = headstart.advise(
        CSCOPE_1, workload={"limit": 300}, device=["hdd", "object-store"], cache="2MiB", seconds=SECONDS
    )
    assert found == json.loads(json.dumps(same.to_dict()))
    assert json.loads(run(*words, "--json", "-").stdout) == found
    hdd, store = found["devices"]
    assert (hdd["device"], hdd["profile"]) == ("hdd", "seagate-exos-x20")
    assert store["cache_bytes"] == 2 << 20
    for each in found["devices"]:
        assert f"\n{each['device']}" in done.stdout
        assert f"{each['recommended']['speedup']:.2f}x" in done.stdout
        for line in each["commands"]:
            assert line in done.stdout


def test_every_field_is_described() -> None:
    for kind in (Advice, DeviceAdvice):
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in PAGE, field.name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "TRACE: missing"),
        (("absent.csv",), "absent.csv: "),
        ((CSCOPE_1, "--device", "floppy"), "device.model (--device): "),
        ((CSCOPE_1, "--cache", "huge"), "cache.size (--cache): "),
        ((CSCOPE_1, "--cache", "0"), "cache.blocks (--cache): "),
        ((CSCOPE_1, "--seconds", "0"), "seconds (--seconds): "),
        ((CSCOPE_1, "--block-size", "3"), "workload.block_size (--block-size): "),
        ((CSCOPE_1, "--set", "workload.compute_total=9s"), "workload.compute_total: "),
        ((CSCOPE_1, "--set", "policy.name=ra"), "policy.name: "),
        ((CSCOPE_1, "--set", "device.model=nvme"), "device.model: advice sets it; allowed: --device"),
    ],
)
def test_mistakes_are_one_line(run: Command, words: tuple[str | Path, ...], said: str) -> None:
    done = run("advise", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr and "allowed: " in done.stderr


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["nvme", "hdd"]


def test_the_example_of_the_page_is_real(run: Command, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (shown,) = re.findall(r"^```text\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    command = next(line for line in PAGE.splitlines() if line.startswith("headstart advise examples/"))
    printed = [line.rstrip() for line in run(*command.split()[1:], "--seconds", str(SECONDS)).stdout.splitlines()]
    assert [line for line in shown.splitlines() if line.rstrip() not in printed] == []

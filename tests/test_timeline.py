"""Timelines: they agree with the result, the file is what viewers read, `show` draws small runs."""

import collections
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart import timelines
from headstart.report.drawing import drawing
from tests.conftest import CSCOPE_1, FIGURE_1, GLIMPSE, ROOT, TWO_LEVELS, Run

MULTI = ROOT / "examples" / "traces" / "multi6.csv.xz"
JOIN = ROOT / "examples" / "traces" / "pg_join.csv.xz"


def scenario(trace: Path = CSCOPE_1, policy: str = "linux", device: str = "hp97560", **workload: Any) -> dict[str, Any]:
    """300 requests of a trace on two disks."""
    return {
        "workload": {"trace": str(trace), "limit": 300, "addresses": "compact-chunks", **workload},
        "cache": {"blocks": 150},
        "policy": policy,
        "device": {"model": device, "count": 2},
    }


CASES: dict[str, Any] = {
    "figure1": FIGURE_1,
    "program": ROOT / "examples" / "rapid-transit.toml",
    "levels": {"path": TWO_LEVELS},
    **{
        f"{policy}-{device}": scenario(policy=policy, device=device)
        for policy, device in (
            ("demand", "hp97560"),
            ("linux", "nvme"),
            ("forestall", "object-store"),
            ("just-in-time", "hp97560"),
            ("amp", "nvme"),
            ("linux", "object-store"),
            ("forestall", "hp97560"),
        )
    },
    "processes": scenario(MULTI, processes="per-pid"),
    # A request evicts blocks that it found itself.
    "small-cache": {**scenario(MULTI, processes="per-pid", limit=200), "cache": {"blocks": 75}},
    "open": scenario(MULTI, arrival="open"),
    "writes": scenario(JOIN, writes="back"),
    "merging": {
        **scenario(MULTI, processes="per-pid"),
        "device": {"model": "seagate-cheetah-9lp", "scheduler": "deadline"},
    },
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Any, timelines.Timeline]:
    """A scenario, and its timeline."""
    found = CASES[request.param]
    overrides: list[str] = []
    if isinstance(found, dict) and "path" in found:
        found, overrides = found["path"], ["workload.limit=600", f"workload.trace={GLIMPSE}"]
    plain = headstart.simulate(found, overrides=overrides)
    return plain, timelines.run(found, overrides=overrides)


def busy(slices: list[tuple[int, int]]) -> int:
    """The time that slices cover."""
    total = last = 0
    for start, end in sorted(slices):
        total += max(end - max(start, last), 0)
        last = max(last, end)
    return total


def test_a_timeline_agrees_with_the_result(case: tuple[Any, timelines.Timeline]) -> None:
    plain, timeline = case
    result = timeline.result
    assert result.to_json() == plain.to_json()
    waits: collections.Counter[str] = collections.Counter()
    for event in timeline.of("wait"):
        waits["barrier" if event["outcome"] == "barrier" else "stall"] += event["time_ns"]
    if result.scenario["workload"].get("arrival") != "open":
        assert waits["stall"] == result.stall_ns
    assert waits["barrier"] == result.barrier_ns
    for index, disk in enumerate(result.devices):
        served = [event for event, _ in timeline.lanes() if event["disk"] == index]
        assert busy([(event["start_ns"], event["end_ns"]) for event in served]) == disk["busy_ns"]
    assert sum(len(event["blocks"]) for event in timeline.of("reference")) == result.references
    assert len(list(timeline.of("eviction"))) == sum(level["evictions"] for level in result.levels)
    crossed = sum(event["end_ns"] - event["start_ns"] for event in timeline.of("link"))
    assert crossed == sum(level["link_ns"] for level in result.levels)
    # The log does not tell which arrivals wait when a request is issued.
    if len(result.levels) == 1 and result.scenario["workload"].get("arrival") != "open":
        assert len(list(timeline.uses())) == result.prefetches_used


@pytest.mark.parametrize("overrides", [[], ["process.contention=500us", "process.io_processors=2"]])
def test_idle_periods_and_actions_are_sums_over_the_events(overrides: list[str]) -> None:
    timeline = timelines.run(ROOT / "examples" / "rapid-transit.toml", overrides=overrides)
    kinds = {"own_io": "miss", "other_io": "late hit", "barrier": "barrier"}
    for number, declared in enumerate(timeline.result.processes):
        process: dict[str, Any] = {**declared}
        waits = [event for event in timeline.of("wait") if event["process"] == number]
        for kind, outcome in kinds.items():
            periods = [event for event in waits if event["outcome"] == outcome]
            assert process[f"{kind}_periods"] == len(periods)
            assert process[f"{kind}_necessary_ns"] == sum(event["ready_ns"] - event["start_ns"] for event in periods)
            assert process[f"{kind}_actual_ns"] == sum(event["end_ns"] - event["start_ns"] for event in periods)
        actions = [event for event in timeline.of("action") if event["process"] == number]
        assert process["actions"] == len(actions)
        assert process["action_ns"] == sum(event["end_ns"] - event["start_ns"] for event in actions)
        assert process["overrun_ns"] == sum(event["end_ns"] - event["ready_ns"] for event in waits)
    assert sum(process["actions"] for process in timeline.result.processes) > 0
    assert (len(list(timeline.of("hold"))) > 0) == bool(overrides)


EVENT = {
    "type": "object",
    "required": ["ph", "pid", "tid", "name"],
    "properties": {
        "ph": {"enum": ["X", "i", "M", "s", "t", "f"]},
        "pid": {"type": "integer", "minimum": 1},
        "tid": {"type": "integer", "minimum": 0},
        "ts": {"type": "number", "minimum": 0},
        "dur": {"type": "number", "minimum": 0},
        "name": {"type": "string", "minLength": 1},
        "cat": {"type": "string"},
        "args": {"type": "object"},
    },
    "allOf": [
        {"if": {"properties": {"ph": {"const": "X"}}}, "then": {"required": ["ts", "dur"]}},
        {
            "if": {"properties": {"ph": {"const": "i"}}},
            "then": {"required": ["ts", "s"], "properties": {"s": {"enum": ["g", "p", "t"]}}},
        },
        {"if": {"properties": {"ph": {"enum": ["s", "t", "f"]}}}, "then": {"required": ["ts", "id", "cat"]}},
        {
            "if": {"properties": {"ph": {"const": "M"}}},
            "then": {
                "required": ["args"],
                "properties": {"name": {"enum": ["process_name", "process_sort_index", "thread_name"]}},
            },
        },
    ],
}
"""An event as "Trace Event Format" (Google, 2016) defines it, of the phases that are written."""
FILE = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {"type": "array", "items": EVENT},
        "otherData": {"type": "object"},
    },
}


def test_the_file_is_what_viewers_read(case: tuple[Any, timelines.Timeline]) -> None:
    jsonschema: Any = pytest.importorskip("jsonschema")
    _, timeline = case
    result = timeline.result
    whole = json.loads(timeline.chrome_json(), parse_float=lambda text: round(float(text) * 1000))
    jsonschema.Draft202012Validator(FILE).validate(whole)
    events = whole["traceEvents"]
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] != "M"} <= named
    slices: dict[tuple[int, int], list[tuple[int, int]]] = collections.defaultdict(list)
    durations: collections.Counter[tuple[int, str]] = collections.Counter()
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
            durations[event["pid"], event["name"]] += event["dur"]
    for at, found in slices.items():
        # Every track has one slice at a time.
        assert sum(end - start for start, end in found) == busy(found), at
    if result.scenario["workload"].get("arrival") != "open":
        assert durations[timelines.PROCESSES, "stall"] == result.stall_ns
        elapsed = sum(process["elapsed_ns"] for process in result.processes)
        assert durations[timelines.PROCESSES, "run"] == elapsed - result.stall_ns - result.barrier_ns
    for index, disk in enumerate(result.devices):
        lanes = [
            found
            for (group, track), found in slices.items()
            if group == timelines.DISKS and track // timelines.LANES_MAX == index
        ]
        assert busy([each for lane in lanes for each in lane]) == disk["busy_ns"]
    flows: dict[int, list[dict[str, Any]]] = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            flows[event["id"]].append(event)
    for arrow in flows.values():
        assert [event["ph"] for event in arrow] in (["s", "t", "f"], ["s", "f"])
        assert [event["ts"] for event in arrow] == sorted(event["ts"] for event in arrow)


def unknown(message: Any) -> bool:
    """Whether a message, or one within it, has fields that Perfetto's definitions do not know."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    inner = [
        each
        for field, value in message.ListFields()
        if field.message_type is not None
        for each in (value if field.is_repeated else [value])
    ]
    return len(UnknownFieldSet(message)) > 0 or any(map(unknown, inner))


def test_perfettos_own_format_says_the_same(case: tuple[Any, timelines.Timeline], tmp_path: Path) -> None:
    pb: Any = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="pip install perfetto")
    _, timeline = case
    timeline.write_perfetto(tmp_path / "run.pftrace")
    trace = pb.Trace.FromString((tmp_path / "run.pftrace").read_bytes())
    assert trace.IsInitialized()
    assert not unknown(trace)
    tracks = {
        each.track_descriptor.uuid: each.track_descriptor for each in trace.packet if each.HasField("track_descriptor")
    }
    assert {each.parent_uuid for each in tracks.values()} <= tracks.keys() | {0}
    path = {uuid: (tracks[each.parent_uuid].name, each.name) for uuid, each in tracks.items() if each.parent_uuid}
    open_at: dict[int, Any] = {}
    slices: list[Any] = []
    marks: list[Any] = []
    flows: dict[int, list[tuple[int, bool]]] = collections.defaultdict(list)
    # In the order of the trace processor: by time, and those of one instant in file order.
    for packet in sorted(
        (each for each in trace.packet if each.HasField("track_event")), key=lambda each: each.timestamp
    ):
        event = packet.track_event
        match event.type:
            case pb.TrackEvent.TYPE_SLICE_BEGIN:
                assert event.track_uuid not in open_at, path[event.track_uuid]
                open_at[event.track_uuid] = (packet.timestamp, event.name)
            case pb.TrackEvent.TYPE_SLICE_END:
                start, name = open_at.pop(event.track_uuid)
                slices.append((path[event.track_uuid], name, start, packet.timestamp))
            case pb.TrackEvent.TYPE_INSTANT:
                marks.append((path[event.track_uuid], event.name, packet.timestamp))
        for each in event.flow_ids:
            flows[each].append((packet.timestamp, False))
        for each in event.terminating_flow_ids:
            flows[each].append((packet.timestamp, True))
    assert not open_at
    events = list(timeline.chrome())
    groups = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    names = {
        (each["pid"], each["tid"]): (groups[each["pid"]], each["args"]["name"])
        for each in events
        if each["name"] == "thread_name"
    }

    def where(event: Any) -> Any:
        return names[event["pid"], event["tid"]]

    assert sorted(slices) == sorted(
        (where(each), each["name"], each["ts"], each["ts"] + each["dur"]) for each in events if each["ph"] == "X"
    )
    assert sorted(mark for mark in marks if mark[1] != "issue") == sorted(
        (where(each), each["name"], each["ts"]) for each in events if each["ph"] == "i"
    )
    arrows: dict[int, list[tuple[int, bool]]] = collections.defaultdict(list)
    for each in events:
        if each["ph"] in "stf":
            arrows[each["id"] + 1].append((each["ts"], each["ph"] == "f"))
    assert flows == arrows


def test_the_command_writes_both_files(run: Run, tmp_path: Path) -> None:
    pq: Any = pytest.importorskip("pyarrow.parquet")
    words = ("simulate", FIGURE_1, "--json", "plain.json")
    plain = run(*words)
    done = run("simulate", FIGURE_1, "--json", "noted.json", "--timeline", "run.json", "--events", "run.parquet")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", plain.stdout)
    assert (tmp_path / "noted.json").read_bytes() == (tmp_path / "plain.json").read_bytes()
    whole = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert whole["otherData"]["stall_ns"] == 1_000_000
    rows = pq.read_table(tmp_path / "run.parquet").to_pylist()
    assert [row["blocks"] for row in rows if row["event"] == "service"] == [[2], [4], [5]]
    assert [(row["start_ns"], row["time_ns"]) for row in rows if row["event"] == "wait"] == [(5_000_000, 1_000_000)]


def test_the_command_writes_perfettos_own_format(run: Run, tmp_path: Path) -> None:
    pb: Any = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="pip install perfetto")
    done = run("simulate", FIGURE_1, "--timeline", "run.pftrace")
    assert (done.returncode, done.stderr) == (0, "")
    trace = pb.Trace.FromString((tmp_path / "run.pftrace").read_bytes())
    begun = [each.track_event for each in trace.packet if each.track_event.type == pb.TrackEvent.TYPE_SLICE_BEGIN]
    assert [each.name for each in begun if each.categories] == ["prefetch C", "prefetch E", "prefetch F"]


def test_perfettos_own_format_needs_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(
        headstart.HeadstartError, match=r"needs the package perfetto; allowed: pip install 'headstart\[p"
    ):
        timelines.run(FIGURE_1).write_perfetto(tmp_path / "run.pftrace")
    assert not list(tmp_path.iterdir())


def test_the_page_names_every_column() -> None:
    page = (ROOT / "docs" / "timeline.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    assert [name.strip() for row in rows[2:] for name in row.split(",")] == list(timelines.COLUMNS)


def test_files_that_cannot_be_written_are_refused_before_the_run(run: Run) -> None:
    for option in ("--timeline", "--events"):
        done = run("simulate", FIGURE_1, option, "none/run")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("headstart: none/run: cannot be written: there is no folder none; allowed: ")
        done = run("simulate", FIGURE_1, option, "-")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "headstart: --timeline, --events: - is no file; allowed: the name of a file\n"


def test_a_run_of_too_many_events_is_refused() -> None:
    with pytest.raises(
        headstart.HeadstartError, match="workload: the run has more than 5 events; allowed: a shorter run"
    ):
        timelines.run(FIGURE_1, events_max=5)


FIGURE = """\
aggressive, 4 blocks of cache, 2 x uniform
elapsed 7.000 ms, stall 1.000 ms

time ms  0        1        2        3        4        5        6
process  A········b········C········d········E········░░░░░░░░░F········
disk 0   C──────────────── E──────────────── F────────────────
disk 1
evicted  F                 A                 b

· process runs  ░ stall  ─ prefetch
"""


def test_figure_1_is_drawn(run: Run) -> None:
    done = run("show", FIGURE_1)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == FIGURE
    assert FIGURE in (ROOT / "docs" / "timeline.md").read_text(encoding="utf-8")
    done = run("show", FIGURE_1, "--json", "-")
    found = json.loads(done.stdout)
    assert found["names"] == ["A", "b", "C", "d", "E", "F"]
    assert found["result"]["elapsed_ns"] == 7_000_000
    assert [event["end_ns"] for event in found["events"] if event["event"] == "service"] == [2e6, 4e6, 6e6]


def test_a_drawing_fits_the_terminal() -> None:
    for device in ("hp97560", "nvme"):
        small = {
            "workload": {"generator": "sequential", "blocks": 150, "compute": "1ms"},
            "cache": {"blocks": 32},
            "policy": "linux",
            "device": {"model": device, "count": 2},
        }
        timeline = timelines.run(small)
        for width in (40, 80, 200):
            lines = list(drawing(timeline, width))
            assert max(map(len, lines[:-1])) <= width
        whole = "".join(line[9:] for line in drawing(timeline, 10_000) if line.startswith("process"))
        assert [str(number) in whole for number in range(150)] == [True] * 150


def test_long_runs_are_not_drawn(run: Run) -> None:
    done = run("show", ROOT / "examples" / "training.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("headstart: ")
    assert done.stderr.count("\n") == 1
    done = run("show", FIGURE_1, "--set", f"workload.references={['A', 'b'] * 101}")
    assert done.returncode == 2
    allowed = "allowed: at most 200, as with --set workload.limit=50"
    assert done.stderr == f"headstart: show: the run has 202 references; {allowed}\n"

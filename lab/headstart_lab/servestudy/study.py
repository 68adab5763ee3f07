"""All cases, with one row each as soon as it is ready, and the findings.

Required, before the first result was seen: the mean response is within 15 % of the simulator's in every case; hits and
fetches of both levels are within 2 %; the sign of PFC's gain over none is the simulator's in at least 95 % of cases.
"""

import dataclasses
import json
import multiprocessing
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from headstart._core import HeadstartError
from headstart_lab.livestudy import platform
from headstart_lab.measured import required
from headstart_lab.servestudy import live, workloads
from headstart_lab.servestudy.cases import Case, Way, cases
from headstart_lab.servestudy.live import Figures
from headstart_lab.servestudy.way import measured_way
from headstart_lab.studies._rows import Row

RESPONSE, COUNTS, SIGNS = 0.15, 0.02, 0.95
COUNTED = ("l1_hits", "l1_fetches", "l2_hits", "l2_fetches")
LATE_NS = 2_000_000
"""A case in which 1 % of the disk's answers were later than this is repeated: the machine was busy otherwise."""
ATTEMPTS = 3
MEMORY = "/dev/shm"
NEARBY_NS = (-100_000, -50_000, 50_000, 100_000)
"""Changes of the link that are smaller than the differences between single replies of real servers: the simulator's
counts with them show how well the counts are determined at all."""
LATER_NS = (-200_000, 200_000)
"""The same for the time between the first request, which starts the turning of the platter, and all others, if these
are issued at their timestamps."""
ITSELF = (
    "The simulator beside itself, with a link that takes 0.05 or 0.1 ms less or more, or a first request 0.2 ms "
    "earlier or later"
)
SCHEMA = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """A case, measured and simulated."""

    case: Case
    requests: int
    footprint: int
    measured: Figures
    predicted: Figures
    late_p99_ns: int
    way: Way
    """The servers' own time, measured right before it."""
    again: Figures | None = None
    """A second run in real time."""
    nearby: tuple[Figures, ...] = ()
    """Simulated with links that take `NEARBY_NS` longer than that of `predicted`, then with requests `LATER_NS` later.
    """

    @property
    def response_off(self) -> float:
        """The measured mean response over the simulated one, less one."""
        return self.measured.response_ns / self.predicted.response_ns - 1

    def off(self, name: str) -> float:
        """Return a measured count over the simulated one, less one."""
        return off(self.measured, self.predicted, name)

    @property
    def counts_off(self) -> float:
        """The greatest difference of the counts."""
        return counts_off(self.measured, self.predicted)

    @property
    def blocks_off(self) -> int:
        """The same in pages."""
        return max(abs(int(getattr(self.measured, name)) - int(getattr(self.predicted, name))) for name in COUNTED)

    def to_json(self) -> str:
        """Return the outcome as one line."""
        return json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)})

    @classmethod
    def from_json(cls, line: str) -> "Outcome":
        """Return the outcome that `to_json` has written."""
        fields = json.loads(line)
        if fields.pop("schema") != SCHEMA:
            raise HeadstartError("rows of another version; allowed: a new file")
        fields.pop("nearby", None)
        parts = {"case": Case, "way": Way, "measured": Figures, "predicted": Figures, "again": Figures}
        return cls(**{key: parts[key](**value) if value and key in parts else value for key, value in fields.items()})


def off(ours: Figures, theirs: Figures, name: str) -> float:
    """Return a count of ours over theirs, less one."""
    count, other = getattr(ours, name), getattr(theirs, name)
    return float(count / other - 1) if other else float(count > 0)


def counts_off(ours: Figures, theirs: Figures) -> float:
    """Return the greatest difference of the counts."""
    return max(abs(off(ours, theirs, name)) for name in COUNTED)


def read_rows(path: Path) -> dict[Case, Outcome]:
    """Return the rows of a file that a study has written; an incomplete last line is dropped."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").split("\n")
    rows = [Outcome.from_json(line) for line in lines[:-1] if line]
    return {row.case: row for row in rows}


def study(
    rows_file: Path,
    *,
    disks: list[str],
    names: list[str],
    quick: bool = False,
    lanes: int = 1,
    twice: int = 0,
    traces: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Outcome]:
    """Run the cases that have no row in `rows_file`, `lanes` at a time; return the rows of all cases.

    In every `twice`-th group of cases that differ only in the coordinator, each case is run a second time; 0: in none.

    Raises:
        HeadstartError: The machine does not behave as required.
    """
    wanted = cases(disks, names, quick=quick)
    rows = read_rows(rows_file)
    rows_file.parent.mkdir(parents=True, exist_ok=True)
    # Removes the incomplete line of an interrupted run.
    rows_file.write_text("".join(f"{row.to_json()}\n" for row in rows.values()), encoding="utf-8")
    left = [case for case in wanted if case not in rows]
    groups = list(dict.fromkeys(case.group for case in wanted))
    repeated = set(groups[::twice]) if twice else set()
    with tempfile.TemporaryDirectory(prefix="headstart-serve-", dir=MEMORY) as scratch:
        folder = Path(scratch)
        by_name = {each.name: each for each in workloads.workloads(folder, traces, names)}
        for disk in disks:
            live.image(folder, disk)
        tasks = [(case, by_name[case.workload], case.group in repeated) for case in left]
        with live.awake(os.sched_getaffinity(0) if tasks else ()):
            for row in _in_lanes(tasks, folder, lanes):
                rows[row.case] = row
                with rows_file.open("a", encoding="utf-8") as file:
                    file.write(f"{row.to_json()}\n")
                tell(f"{len(rows)}/{len(wanted)} {described(row)}")
        return with_one_way([rows[case] for case in wanted], by_name)


def with_one_way(rows: list[Outcome], by_name: dict[str, workloads.Workload]) -> list[Outcome]:
    """Simulate all rows of a disk and a workload with the median of their ways: none and PFC run on one machine.

    The platter turns from the first request on, which is late: if requests are issued at their timestamps, all others
    come that much earlier after it.
    """
    ways = median_ways(rows)

    def simulated(row: Outcome, more_ns: int = 0, later_ns: int = 0) -> Figures:
        way, workload = ways[row.case.disk, row.case.workload], by_name[row.case.workload]
        if workload.open:
            workload = workloads.later(workload, later_ns - way.first_ns)
        return live.predicted(row.case, workload, dataclasses.replace(way, way_ns=way.way_ns + more_ns))

    def with_simulated(row: Outcome) -> Outcome:
        nearby = [simulated(row, more_ns) for more_ns in NEARBY_NS]
        if by_name[row.case.workload].open:
            nearby += [simulated(row, later_ns=later_ns) for later_ns in LATER_NS]
        return dataclasses.replace(row, predicted=simulated(row), nearby=tuple(nearby))

    return [with_simulated(row) for row in rows]


def median_ways(rows: Iterable[Outcome]) -> dict[tuple[str, str], Way]:
    """Return the median of each part over the rows of a disk and a workload."""
    measured: dict[tuple[str, str], list[Way]] = defaultdict(list)
    for row in rows:
        measured[row.case.disk, row.case.workload].append(row.way)
    return {key: _median_way(own) for key, own in measured.items()}


def _median_way(ways: list[Way]) -> Way:
    names = [field.name for field in dataclasses.fields(Way)]
    return Way(**{name: round(statistics.median(getattr(way, name) for way in ways)) for name in names})


def _in_lanes(left: list[tuple[Case, workloads.Workload, bool]], folder: Path, lanes: int) -> Iterator[Outcome]:
    """Run cases, `lanes` at a time, each lane in a process on one processor.

    A lane undoes its changes when it is interrupted.
    """
    context = multiprocessing.get_context("fork")
    lock, next_one, (receiver, sender) = context.Lock(), context.Value("i", 0), context.Pipe(duplex=False)
    processors = sorted(os.sched_getaffinity(0))

    def lane(number: int) -> None:
        try:
            os.sched_setaffinity(0, {processors[number % len(processors)]})
            while True:
                with next_one.get_lock():
                    at = next_one.value
                    next_one.value += 1
                if at >= len(left):
                    return
                case, workload, twice = left[at]
                row = one(case, workload, twice, folder)
                with lock:
                    sender.send(row)
        except HeadstartError as error:
            with lock:
                sender.send(str(error))

    processes = [context.Process(target=lane, args=(number,)) for number in range(min(lanes, len(left)))]
    try:
        for process in processes:
            process.start()
        for _ in left:
            while not receiver.poll(1.0):
                if not any(process.is_alive() for process in processes) and not receiver.poll():
                    raise HeadstartError("the study's processes died")
            row = receiver.recv()
            if isinstance(row, str):
                raise HeadstartError(row)
            yield row
    finally:
        with platform.undisturbed():
            for process in processes:
                if process.is_alive():
                    process.terminate()
            for process in processes:
                process.join()


def one(case: Case, workload: workloads.Workload, twice: bool, folder: Path) -> Outcome:
    """Measure and predict one case, a second time if `twice`; repeat it if the machine was late."""

    def run() -> tuple[Figures, int]:
        for _ in range(ATTEMPTS):
            measured, late = live.measured(case, workload, folder)
            if late <= LATE_NS:
                break
        return measured, late

    way = measured_way(case.disk, workload, folder)
    measured, late = run()
    return Outcome(
        case=case,
        requests=workload.requests,
        footprint=workload.footprint,
        measured=measured,
        # In a separate process: otherwise the memory left behind would also be that of the servers, which are forked.
        predicted=live.in_process(lambda: live.predicted(case, workload, way), goes_first=False),
        late_p99_ns=late,
        way=way,
        again=run()[0] if twice else None,
    )


def described(row: Outcome) -> str:
    """Return a row as a line of text."""
    counts = ", ".join(
        f"{name.replace('_', ' ')} {getattr(row.measured, name)} ({row.off(name):+.1%})" for name in COUNTED
    )
    response = f"{row.measured.response_ns / 1e6:.2f} ms ({row.response_off:+.1%})"
    return f"{row.case.label}: {response}, {counts}"


def findings(rows: Iterable[Outcome]) -> list[Row]:
    """Judge disk by disk."""
    by_disk: dict[str, list[Outcome]] = defaultdict(list)
    for row in rows:
        by_disk[row.case.disk].append(row)
    return [
        finding
        for disk, own in by_disk.items()
        for finding in (_response(disk, own), _counts(disk, own), *_twice(disk, own), _signs(disk, own))
    ]


def _response(disk: str, rows: list[Outcome]) -> Row:
    held = [row for row in rows if abs(row.response_off) <= RESPONSE]
    offs, ways = sorted(row.response_off for row in rows), median_ways(rows)
    names = ", ".join(workload for _, workload in ways)

    def own(part: str) -> str:
        return ", ".join(f"{getattr(way, part) / 1e6:.2f}" for way in ways.values())

    return required(
        f"{disk}: mean response beside the simulator's",
        f"within {RESPONSE:.0%} in every case",
        f"in {len(held)} of {len(rows)}",
        len(held) == len(rows),
        f"difference: least {offs[0]:+.1%}, median {statistics.median(offs):+.1%}, greatest {offs[-1]:+.1%}; the "
        f"servers' own time in ms for {names}, medians: {own('near_ns')} between L1 and the player, {own('way_ns')} "
        f"between L2 and L1, {own('page_ns')} for each further page; {own('disk_ns')} beside the drive, "
        f"{own('disk_page_ns')} for each further page; {own('first_ns')} until the first request reaches the disk",
    )


def _counts(disk: str, rows: list[Outcome]) -> Row:
    held = [row for row in rows if row.counts_off <= COUNTS]
    near = sum(row.blocks_off <= 2 for row in rows if row not in held)
    itself = sum(all(counts_off(each, row.predicted) <= COUNTS for each in row.nearby) for row in rows if row.nearby)
    within = sum(_is_between(row.measured, row.predicted, *row.nearby) for row in rows)
    middle = statistics.median(row.counts_off for row in rows)
    return required(
        f"{disk}: hits and fetches of both levels",
        f"within {COUNTS:.0%} in every case",
        f"in {len(held)} of {len(rows)}",
        len(held) == len(rows),
        f"greatest of the four differences, median over the cases: {middle:.2%}; of those further off, {near} differ "
        f"by 2 pages at most. {ITSELF}: {itself}. Each count of the servers between those of these simulations, or "
        f"within {COUNTS:.0%} of one: {within}",
    )


def _twice(disk: str, rows: list[Outcome]) -> list[Row]:
    """Report how far two runs of the servers agree, and the simulator in the same cases."""
    pairs = [(row, row.again) for row in rows if row.again is not None]
    if not pairs:
        return []
    alike = sum(counts_off(again, row.measured) <= COUNTS for row, again in pairs)
    simulated = sum(row.counts_off <= COUNTS for row, _ in pairs)
    either = sum(min(row.counts_off, counts_off(again, row.predicted)) <= COUNTS for row, again in pairs)
    within = sum(_is_between(row.predicted, row.measured, again) for row, again in pairs)
    what = "hits and fetches of a second run of the servers beside the first"
    note = (
        f"the simulator beside the first run, in the same cases: {simulated}; beside either run: {either}; each of its "
        f"counts between those of the two runs, or within {COUNTS:.0%} of one: {within}"
    )
    return [required(f"{disk}: {what}", "none", f"within {COUNTS:.0%} in {alike} of {len(pairs)}", True, note)]


def _is_between(figures: Figures, *others: Figures) -> bool:
    """Return whether each count lies between those of `others`, or near one of them."""

    def holds(name: str) -> bool:
        counts = [getattr(each, name) for each in others]
        near = min(abs(off(figures, each, name)) for each in others) <= COUNTS
        return near or min(counts) <= getattr(figures, name) <= max(counts)

    return all(holds(name) for name in COUNTED)


def _signs(disk: str, rows: list[Outcome]) -> Row:
    gains = _gains(rows)
    wrong = [theirs for ours, theirs in gains if (ours > 0) != (theirs > 0)]
    held = len(gains) - len(wrong)
    itself = sum(_keeps_sign(group) for group in _groups(rows))
    return required(
        f"{disk}: sign of PFC's gain over none",
        f"the simulator's in at least {SIGNS:.0%} of the cases",
        f"in {held} of {len(gains)}",
        held >= SIGNS * len(gains),
        f"gains that the simulator gives where it differs: {', '.join(f'{each:+.2%}' for each in wrong) or 'none'}; "
        f"{ITSELF}: {itself}",
    )


def _groups(rows: Iterable[Outcome]) -> list[dict[str, Outcome]]:
    """Return the cases that differ only in the coordinator, by coordinator, if none and PFC are among them."""
    groups: dict[str, dict[str, Outcome]] = defaultdict(dict)
    for row in rows:
        groups[row.case.group][row.case.coordinator] = row
    return [own for own in groups.values() if {"none", "pfc"} <= own.keys()]


def _gains(rows: Iterable[Outcome]) -> list[tuple[float, float]]:
    """Return PFC's gains, measured and simulated."""
    return [(gain(own, "measured"), gain(own, "predicted")) for own in _groups(rows)]


def _keeps_sign(group: dict[str, Outcome]) -> bool:
    """Return whether PFC's gain has the same sign in all simulations of a group."""
    both = zip(group["none"].nearby, group["pfc"].nearby, strict=True)
    return all((none.response_ns > pfc.response_ns) == (gain(group, "predicted") > 0) for none, pfc in both)


def gain(rows: dict[str, Outcome], world: str) -> float:
    """Return by how much PFC shortens the mean response of none."""
    none, pfc = (getattr(rows[name], world).response_ns for name in ("none", "pfc"))
    return float((none - pfc) / none)


SUMMARY = ("disk", "workload", "algorithm", "cases", "off: least", "median", "greatest", f"counts within {COUNTS:.0%}")
"""A line of `summary`; `off` is the measured mean response over the simulated one, less one."""


def columns() -> tuple[str, ...]:
    """Return the header of the table."""
    return ("workload", "algorithm", "L1", "L2/L1", "coordinator", "ms", "simulated", "off", "counts off", "pages off")


def cells(row: Outcome) -> list[Any]:
    """Return a row as text, column by column."""
    case = row.case
    return [
        case.workload,
        case.algorithm,
        case.setting,
        f"{case.ratio:.0%}",
        case.coordinator,
        f"{row.measured.response_ns / 1e6:.2f}",
        f"{row.predicted.response_ns / 1e6:.2f}",
        f"{row.response_off:+.1%}",
        f"{row.counts_off:.1%}",
        str(row.blocks_off),
    ]


def summary(rows: Iterable[Outcome]) -> list[list[str]]:
    """Return the cases of each disk, workload and algorithm as one line, column by column of `SUMMARY`."""
    groups: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for row in rows:
        groups[row.case.disk, row.case.workload, row.case.algorithm].append(row)
    lines = []
    for names, own in groups.items():
        offs = [row.response_off for row in own]
        differences = [f"{each:+.1%}" for each in (min(offs), statistics.median(offs), max(offs))]
        within = sum(row.counts_off <= COUNTS for row in own)
        lines.append([*names, str(len(own)), *differences, f"{within} of {len(own)}"])
    return lines

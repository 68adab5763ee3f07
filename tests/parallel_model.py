"""A second, slow implementation of parallel programs, to compare the simulator with.

Written from the paper (Kotz and Ellis, RAPID Transit, sections 3 to 5) and from the rules of docs/parallel.md, not from
the simulator's code. Everything is constant here (disk, compute, action), so that the two must agree to the nanosecond.

The events of one instant happen in steps: disks complete; then all that are due act, in the order of their numbers,
including actions that end; then idle processors consider prefetching, in the order that the system defines. A process
that is due again at this instant, having thought for no time or having been released, acts in the next step.
"""

import dataclasses
from collections import deque
from typing import Literal

Kind = Literal["own", "other", "barrier"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """A program and the machine that it runs on; times in nanoseconds."""

    strings: list[list[int]]
    """Blocks, string by string."""
    portions: list[list[int]]
    """Of each string, where its portions end (exclusive)."""
    shared: bool
    regular: bool
    processes: int
    disks: int
    disk_ns: int
    compute_ns: int
    action_ns: int
    scope: str = "none"
    every: int = 1
    size: int = 1
    buffers: int = 1
    min_lead: int = 0
    min_time_ns: int = 0
    for_others: bool = True
    issues: str = "end"
    contention_ns: int = 0
    actions_contend: bool = False
    """Actions hold the shared structures too, beside the time that they take."""
    idle_order: Literal["longest", "shortest", "number", "slack"] = "longest"
    """Which idle processor considers prefetching first: the one that has been idle for the longest time, and so on."""
    min_slack: int = 0
    """Reads by which a process must be ahead of the one furthest behind for its processor to act."""
    critical: bool = False
    """Blocks of the process furthest behind come first."""
    io_processors: int = 0
    """Processors beside those of the processes; only they prefetch, for the processes in turn."""
    buffer_place: Literal["shared", "requester", "disk"] = "shared"
    remote_ns: int = 0
    prefetches: bool = True


@dataclasses.dataclass
class Process:
    """A process, its processor, and its waits."""

    references: int = 0
    finish_ns: int = 0
    waited: dict[Kind, list[int]] = dataclasses.field(default_factory=lambda: {"own": [], "other": [], "barrier": []})
    """By kind, the length of each idle period until the awaited block or event was there."""
    actions: int = 0
    action_ns: int = 0
    overruns: int = 0
    overrun_ns: int = 0
    remote: bool = False
    """The buffer of its block is on another node."""
    remote_reads: int = 0
    structures_ns: int = 0
    """Waiting for and holding the shared structures to look blocks up."""
    recent: list[int] = dataclasses.field(default_factory=list)
    """Its most recently used blocks, the latest last."""
    idle: Kind | None = None
    since: int = 0
    over_at: int | None = None
    acts_until: int | None = None
    at: int = -1
    """Its current reference: a place in its string, and the block there."""
    block: int = -1
    looks: bool = False
    """It has passed the shared structures and looks the block up next."""
    reads: int = 0
    """Reads since the last barrier."""
    owes: bool = False
    done: bool = False
    due: int | None = 0
    """When it acts next without an external event."""


@dataclasses.dataclass
class Counts:
    """The counts of all processes together."""

    hits_ready: int = 0
    hits_unready: int = 0
    misses: int = 0
    demand_fetches: int = 0
    prefetches: int = 0


class Machine:
    """Runs a system, instant by instant."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.now = 0
        self.processes = [Process() for _ in range(system.processes)]
        self.processes += [Process(done=True, due=None) for _ in range(system.io_processors)]
        self.counts = Counts()
        self.cursors = [0] * len(system.strings)
        """By string: references taken."""
        self.known = [0] * len(system.strings)
        """By string: references looked up, which the prefetcher follows."""
        self.queues: list[deque[int]] = [deque() for _ in range(system.disks)]
        self.in_service: list[tuple[int, int] | None] = [None] * system.disks
        self.resident: set[int] = set()
        self.tossed: list[int] = []
        """Resident blocks that are on no list any more, the oldest such block first."""
        self.in_flight: set[int] = set()
        self.unused: set[int] = set()
        self.waiters: dict[int, list[int]] = {}
        self.frames = system.processes * system.size + system.buffers
        self.acting: dict[int, int] = {}
        """By process: the block of its current action."""
        self.free: set[tuple[int, int]] = {(0, system.processes + at) for at in range(system.io_processors)}
        """Idle processors: since when, and which."""
        self.turn = 0
        """The process for which the next I/O processor looks first."""
        self.node_of: dict[int, int] = {}
        self.buffers_taken = 0
        self.waiting: list[int] = []
        self.started = 0
        self.closed = False
        self.structures_free_at = 0
        self.intervals: list[tuple[int, int, int, int]] = []
        """From one meeting to the next: start, end, the last process to come, and its delay."""
        self.came: list[tuple[int, int]] = []
        """The times at which processes came to the meeting, or finished."""

    def run(self) -> int:
        """Run to the end; return the end time."""
        while not all(process.done for process in self.processes):
            self.now = self._next()
            self._complete()
            for index in [index for index, process in enumerate(self.processes) if self._due(process) == self.now]:
                self._act(index)
            self._consider()
        return max(process.finish_ns for process in self.processes)

    def _next(self) -> int:
        times = [each[0] for each in self.in_service if each is not None]
        times += [due for due in map(self._due, self.processes) if due is not None]
        return min(times)

    def _due(self, process: Process) -> int | None:
        return process.due if process.acts_until is None else process.acts_until

    # Disks.

    def _complete(self) -> None:
        for disk, service in enumerate(self.in_service):
            if service is not None and service[0] == self.now:
                block = service[1]
                self.in_service[disk] = None
                self.in_flight.discard(block)
                self.resident.add(block)
                for index in self.waiters.pop(block):
                    self._over(index)
        for disk in range(self.system.disks):
            self._start(disk)

    def _start(self, disk: int) -> None:
        if self.in_service[disk] is None and self.queues[disk]:
            self.in_service[disk] = (self.now + self.system.disk_ns, self.queues[disk].popleft())

    def _enqueue(self, block: int) -> None:
        disk = block % self.system.disks
        self.queues[disk].append(block)
        self._start(disk)

    # The cache.

    def _take_frame(self, block: int, index: int) -> None:
        system = self.system
        match system.buffer_place:
            case "shared":
                self.node_of[block] = self.buffers_taken % (system.processes + system.io_processors)
            case "requester":
                self.node_of[block] = index
            case "disk" if system.io_processors:
                self.node_of[block] = system.processes + block % system.disks % system.io_processors
            case "disk":
                self.node_of[block] = block % system.disks % system.processes
        self.buffers_taken += 1
        if len(self.resident) + len(self.in_flight) >= self.frames:
            self.resident.remove(self.tossed.pop(0))
        self.in_flight.add(block)
        self.waiters[block] = []

    def _remember(self, process: Process, block: int) -> None:
        if block in self.tossed:
            self.tossed.remove(block)
        if block in process.recent:
            process.recent.remove(block)
        process.recent.append(block)
        if len(process.recent) > self.system.size:
            dropped = process.recent.pop(0)
            if not any(dropped in other.recent for other in self.processes):
                self.tossed.append(dropped)

    # Idle processors.

    def _rest(self, index: int, kind: Kind) -> None:
        process = self.processes[index]
        process.idle, process.since, process.over_at, process.due = kind, self.now, None, None
        if not self.system.io_processors:
            self.free.add((self.now, index))

    def _over(self, index: int) -> None:
        process = self.processes[index]
        process.over_at = self.now
        process.due = self.now
        self.free = {(since, other) for since, other in self.free if other != index}

    def _resume(self, process: Process) -> None:
        assert process.over_at is not None and process.idle is not None
        necessary = process.over_at - process.since
        process.waited[process.idle].append(necessary)
        process.overrun_ns += self.now - process.over_at
        process.overruns += self.now > process.over_at
        process.idle = process.over_at = None

    def _end_action(self, index: int) -> None:
        process = self.processes[index]
        process.acts_until = None
        block = self.acting.pop(index)
        if self.system.issues == "end":
            self._enqueue(block)
        if process.over_at is None:
            self.free.add((self.now, index))
        else:
            process.due = self.now

    def _consider(self) -> None:
        if not self.system.prefetches:
            return
        for since, index in self._in_order():
            may = self._is_io(index) or (self._long_enough(self.processes[index]) and self._ahead_enough(index))
            if not may:
                self.free.remove((since, index))
                continue
            block = self._candidate(index)
            if block is not None:
                self.free.remove((since, index))
                self._begin_action(index, block)

    def _is_io(self, index: int) -> bool:
        return index >= self.system.processes

    def _in_order(self) -> list[tuple[int, int]]:
        if self.system.idle_order == "slack":
            return sorted(self.free, key=lambda each: (self._left(each[1]), *each))
        sign = {"longest": 1, "shortest": -1, "number": 0}[self.system.idle_order]
        return sorted(self.free, key=lambda each: (sign * each[0], each[1]))

    def _left(self, index: int) -> int:
        """Return the reads of a process before it meets others, including the current one."""
        process, scope = self.processes[index], self.system.scope
        if self._is_io(index):
            return 0
        if process.idle == "barrier" and process.over_at is None:
            return 0
        cursor, string = self.cursors[self._string(index)], self._string(index)
        if scope == "none" and not self.system.shared:
            return 1 + len(self.system.strings[string]) - cursor
        if scope == "process":
            return 1 + self.system.every - process.reads
        if scope == "portion" and not self.system.shared:
            end = next(end for end in self.system.portions[string] if end >= cursor) if cursor else 0
            return 1 + end - cursor
        return 1

    def _ahead_enough(self, index: int) -> bool:
        most = max(self._left(other) for other, process in enumerate(self.processes) if not process.done)
        return most - self._left(index) >= self.system.min_slack

    def _long_enough(self, process: Process) -> bool:
        """Whether the idle time left is long enough, judged by the mean of past ones of its kind."""
        assert process.idle is not None
        past = process.waited[process.idle]
        return not past or max(sum(past) // len(past) - (self.now - process.since), 0) >= self.system.min_time_ns

    def _begin_action(self, index: int, block: int) -> None:
        process = self.processes[index]
        if self._is_io(index):
            self.turn = (self.turn + 1) % self.system.processes
        self._take_frame(block, index)
        self.unused.add(block)
        self.counts.prefetches += 1
        held = self._structures() - self.now if self.system.actions_contend else 0
        length = held + self.system.action_ns
        process.actions += 1
        process.action_ns += length
        process.acts_until = self.now + length
        self.acting[index] = block
        if self.system.issues == "start":
            self._enqueue(block)

    def _candidate(self, index: int) -> int | None:
        if len(self.unused) >= self.system.buffers:
            return None
        count = len(self.system.strings)
        own = 0 if self.system.shared else self.turn if self._is_io(index) else index
        others = range(1, count) if self.system.for_others else range(0)
        found = [
            (string, *next_one)
            for string in (own, *((own + ahead) % count for ahead in others))
            if (next_one := self._absent(string)) is not None
        ]
        if not found:
            return None
        behind = [self._meeting(string) - at for string, at, _ in found]
        if self.system.critical and max(behind) > 0:
            return found[behind.index(max(behind))][2]
        return found[0][2]

    def _absent(self, string: int) -> tuple[int, int] | None:
        """Return where the next absent block of a string stands in it, and the block."""
        cursor, blocks = self.known[string], self.system.strings[string]
        end = len(blocks)
        if not self.system.regular:
            # No further than the portion of the last reference.
            end = next((end for end in self.system.portions[string] if end >= cursor), 0) if cursor else 0
        for at in range(cursor + self.system.min_lead, end):
            if blocks[at] not in self.resident and blocks[at] not in self.in_flight:
                return at, blocks[at]
        return None

    def _meeting(self, string: int) -> int:
        """Return how far a string is read before its readers meet others, as far as the string itself tells."""
        cursor, length = max(self.known[string], 1), len(self.system.strings[string])
        every = self.system.every
        if self.system.shared:
            every *= self.system.processes if self.system.scope == "process" else 1
        if self.system.scope == "process" or (self.system.scope == "all" and self.system.shared):
            return min(length, -(-cursor // every) * every)
        if self.system.scope == "portion":
            return next(end for end in self.system.portions[string] if end >= cursor)
        return length

    def _structures(self) -> int:
        """Hold the shared structures once they are free; return the time until which they are held."""
        if self.system.contention_ns:
            self.structures_free_at = max(self.now, self.structures_free_at) + self.system.contention_ns
            return self.structures_free_at
        return self.now

    # Processes.

    def _act(self, index: int) -> None:
        process = self.processes[index]
        if process.acts_until is not None:
            self._end_action(index)
        if process.due != self.now:
            return
        if process.idle is None and process.looks:
            process.looks = False
            self._look_up(index)
        elif process.idle is None:
            self._read(index)
        else:
            meets = process.idle == "barrier"
            self._resume(process)
            if meets:
                self._read(index)
            else:
                self._served(process)

    def _string(self, index: int) -> int:
        return 0 if self.system.shared else index

    def _read(self, index: int) -> None:
        process, string = self.processes[index], self._string(index)
        if self.cursors[string] >= len(self.system.strings[string]):
            process.done, process.due, process.finish_ns = True, None, self.now
            self._meet(index)
        elif self.closed or process.owes:
            self._rest(index, "barrier")
            self.waiting.append(index)
            self._meet(index)
        else:
            self._starts(process, string)
            process.due = self._structures()
            process.structures_ns += process.due - self.now
            if process.due > self.now:
                process.looks = True
            else:
                self._look_up(index)

    def _starts(self, process: Process, string: int) -> None:
        """Take the next reference, and note whether a barrier comes after it."""
        at = self.cursors[string]
        process.at, process.block = at, self.system.strings[string][at]
        self.cursors[string] = at + 1
        process.reads += 1
        self.started += 1
        ends_portion = at + 1 in self.system.portions[string]
        if self.system.scope == "process":
            process.owes = process.reads == self.system.every
        elif self.system.scope == "all":
            self.closed = self.started == self.system.every
        elif self.system.scope == "portion" and self.system.shared:
            self.closed = ends_portion
        elif self.system.scope == "portion":
            process.owes = ends_portion

    def _look_up(self, index: int) -> None:
        process = self.processes[index]
        block = process.block
        self._remember(process, block)
        self.unused.discard(block)
        string = self._string(index)
        self.known[string] = max(self.known[string], process.at + 1)
        if block not in self.resident and block not in self.in_flight:
            self._take_frame(block, index)
            process.remote = self.node_of[block] != index
            self.counts.misses += 1
            self.counts.demand_fetches += 1
            self.waiters[block].append(index)
            self._enqueue(block)
            self._rest(index, "own")
            return
        process.remote = self.node_of[block] != index
        if block in self.resident:
            self.counts.hits_ready += 1
            self._served(process)
        else:
            self.counts.hits_unready += 1
            self.waiters[block].append(index)
            self._rest(index, "other")

    def _served(self, process: Process) -> None:
        process.references += 1
        remote = process.remote and self.system.remote_ns > 0
        process.remote_reads += remote
        cost = self.system.remote_ns if remote else 0
        process.finish_ns = process.due = self.now + cost + self.system.compute_ns

    def _meet(self, index: int) -> None:
        """Note a process that has come or finished; once all have, the interval ends and the waiting ones go on."""
        if self.system.scope == "none":
            return
        self.came.append((self.now, index))
        if not all(process.done or index in self.waiting for index, process in enumerate(self.processes)):
            return
        slack = self.now - self.came[-2][0] if len(self.came) > 1 else 0
        start = self.intervals[-1][1] if self.intervals else 0
        self.intervals.append((start, self.now, index, slack))
        for each in self.waiting:
            self.processes[each].reads, self.processes[each].owes = 0, False
            self._over(each)
        self.came, self.waiting, self.started, self.closed = [], [], 0, False

//! The file system that the processes share: cache, strings, barrier and idle processors. All under one mutex; times
//! are arguments, and nothing here waits.

use headstart_engine::parallel::{
    self, ActionSetup, Barrier, Contention, DiskTimes, Free, IdleOrder, Intervals, Meeting, Node, Outcome, Parts,
    ProcessTimes, Setup, Strings,
};
use headstart_engine::{Ask, Level};
use headstart_policy::readahead::Asked;
use headstart_types::{Block, Disk, Nanos, Outcome as Found, Position};

use super::blocks::{Numbered, Orders, Request};
use super::disks::Data;

/// What a process does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It reads the reference at a position, and holds the shared structures until a time before it finds its block.
    Read(Position, Nanos),
    /// It waits for the others.
    Wait,
    /// There is nothing left for it.
    Done,
}

/// What a process that waits finds when it looks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// It goes on.
    Over,
    /// Its processor is at an action until then.
    Acts(Nanos),
    /// The action of its processor has just ended.
    ActionEnded,
    /// Its processor has nothing to do.
    Nothing,
}

/// What a process is at.
#[derive(Debug, Default)]
struct Process {
    times: ProcessTimes,
    /// What it waited for is there.
    goes_on: bool,
    /// The block that it waited for, or found.
    got: Option<Data>,
    /// The request that the action under way will issue.
    held: Option<Request>,
}

/// The shared state.
pub(super) struct Files {
    level: Level,
    space: Numbered,
    strings: Strings,
    barrier: Option<Barrier>,
    contention: Contention,
    nodes: Vec<Node>,
    free: Free,
    actions: Option<ActionSetup>,
    processes: Vec<Process>,
    /// By block: its bytes, while it is resident.
    frames: Vec<Option<Data>>,
    in_use: u32,
    intervals: Intervals,
    responses: Vec<Nanos>,
    /// Whose thread is to be woken.
    pub wakes: Vec<u32>,
    /// What is to be given to the disks.
    pub orders: Orders,
    done: Vec<u64>,
    evicted: Vec<Block>,
}

impl Files {
    /// At time zero. Takes from `setup` what the threads do not need.
    pub fn new(setup: Setup) -> Self {
        let processes = setup.program.string_of.len();
        let blocks = setup.disk_of.len();
        let space = Numbered { disk_of: setup.disk_of.clone() };
        let mut level = Level::new(setup.policy, setup.frames, &[], &setup.disk_of, setup.disks);
        level.note_evictions();
        let order = setup.actions.as_ref().map_or(IdleOrder::default(), |actions| actions.order);
        Self {
            level,
            space,
            strings: Strings::new(setup.program),
            barrier: setup.barrier.map(|scope| Barrier::new(scope, processes as u32)),
            contention: Contention::new(setup.contention, setup.actions_contend),
            nodes: vec![Node::default(); processes],
            free: Free::new(processes, order),
            actions: setup.actions,
            processes: (0..processes).map(|_| Process::default()).collect(),
            frames: vec![None; blocks],
            in_use: 0,
            intervals: Intervals::new(processes),
            responses: Vec::new(),
            wakes: Vec::new(),
            orders: Orders::default(),
            done: Vec::new(),
            evicted: Vec::new(),
        }
    }

    /// The block of a reference.
    pub fn block(&self, at: Position) -> Block {
        self.strings.program().blocks[at as usize]
    }

    /// References that have been taken, and all.
    pub fn progress(&self) -> (u64, u64) {
        (self.strings.taken(), self.strings.program().blocks.len() as u64)
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// What a run has come to whose disks have done `disks`.
    pub fn outcome(self, disks: Vec<DiskTimes>) -> Outcome {
        let processes: Vec<ProcessTimes> =
            (0..self.processes.len() as u32).map(|process| self.times(process)).collect();
        Outcome {
            elapsed: processes.iter().map(|times| times.done_at).max().unwrap_or(Nanos::ZERO),
            counts: self.level.counts().clone(),
            processes,
            disks,
            intervals: self.intervals.ended,
            responses: self.responses,
        }
    }

    /// A process that has nothing to wait for goes on with its string.
    pub fn next(&mut self, now: Nanos, process: u32) -> Next {
        if !self.strings.has_more(process) {
            self.processes[process as usize].times.done_at = now;
            let meeting = self.barrier.as_mut().and_then(|barrier| barrier.leaves(now, process));
            self.meet(now, meeting);
            return Next::Done;
        }
        if self.barrier.as_ref().is_some_and(|barrier| barrier.holds(process)) {
            self.rests(now, process, parallel::Idle::Barrier);
            let meeting = self.barrier.as_mut().and_then(|barrier| barrier.comes(now, process));
            self.meet(now, meeting);
            return Next::Wait;
        }
        let (position, ends_portion) = self.strings.take(process);
        if let Some(barrier) = &mut self.barrier {
            barrier.starts(process, ends_portion);
        }
        Next::Read(position, now + self.contention.hold(now))
    }

    /// A process that has thought for `compute` looks its block up. Returns whether it is there; if not, the process
    /// waits.
    pub fn read(&mut self, now: Nanos, process: u32, position: Position, compute: Nanos) -> bool {
        let block = self.block(position);
        let asked = Asked { file: 0, first: u64::from(block.0), count: 1, client: process };
        let ask = Ask { id: u64::from(process), asked, blocks: &[block], write: false, position, compute };
        let looked = self.level.request(now, &ask, &self.space, &mut self.orders);
        let times = &mut self.processes[process as usize].times;
        times.references += 1;
        times.hits_ready += u64::from(looked.hits_ready);
        times.hits_unready += u64::from(looked.hits_unready);
        times.misses += u64::from(looked.misses);
        self.intervals.sums.found(&looked);
        let kind = match looked.outcome() {
            Found::HitReady => {
                self.processes[process as usize].got = self.frames[block.index()].clone();
                return true;
            }
            Found::HitUnready => parallel::Idle::OtherIo,
            Found::Miss => parallel::Idle::OwnIo,
        };
        self.rests(now, process, kind);
        self.settle();
        false
    }

    /// A disk has brought a block.
    pub fn arrived(&mut self, now: Nanos, block: Block, disk: Disk, service: Nanos, data: Data) {
        self.in_use += 1;
        self.frames[block.index()] = Some(data.clone());
        self.level.arrived(now, block, disk, Some(service), &self.space);
        let mut done = std::mem::take(&mut self.done);
        self.level.take_done(&mut done);
        for process in done.drain(..) {
            self.processes[process as usize].got = Some(data.clone());
            self.goes_on(now, process as u32);
        }
        self.done = done;
        if self.level.wants_to_decide() {
            self.level.decide(now, None, &self.space, &mut self.orders);
        }
        self.settle();
    }

    /// Idle processors take on actions.
    pub fn offer_actions(&mut self, now: Nanos) {
        let mut after = None;
        while let Some(process) = self.free.next(now, after) {
            let Some(actions) = &self.actions else { return };
            let (idle_min, alike) = (actions.idle_min, actions.alike);
            if alike && !self.level.could_prefetch(None) {
                return;
            }
            if !self.nodes[process as usize].may_act(now, idle_min) {
                // With too little idle time left it will not have more in this period.
                self.free.remove(process);
            } else if !self.take_action(now, process) {
                if alike {
                    return;
                }
                after = Some(process);
            }
        }
    }

    /// Asks the policy for one action, and begins it. False if there is none.
    fn take_action(&mut self, now: Nanos, process: u32) -> bool {
        let mut order = Orders::default();
        if !self.level.idle(now, process, &self.space, &mut order) {
            return false;
        }
        self.settle();
        let held = self.contention.hold_for_action(now);
        let Some(actions) = &mut self.actions else { return false };
        let length = held + actions.lengths[process as usize]();
        self.nodes[process as usize].begins(now, length);
        self.intervals.sums.action_time += length;
        self.free.remove(process);
        if actions.issues_at_start {
            self.orders.0.append(&mut order.0);
        } else {
            self.processes[process as usize].held = order.0.pop();
        }
        self.wakes.push(process);
        true
    }

    /// A process that waits looks at what has become of it.
    pub fn look(&mut self, now: Nanos, process: u32) -> Idle {
        let node = &mut self.nodes[process as usize];
        let mut ended = false;
        if let Some(end) = node.acts_until() {
            if end > now {
                return Idle::Acts(end);
            }
            if node.ends() {
                self.free.add(now, process);
            }
            self.orders.0.extend(self.processes[process as usize].held.take());
            ended = true;
        }
        if std::mem::take(&mut self.processes[process as usize].goes_on) {
            self.nodes[process as usize].resumes(now);
            return Idle::Over;
        }
        if ended {
            Idle::ActionEnded
        } else {
            Idle::Nothing
        }
    }

    /// What a process has read, since `since`.
    ///
    /// # Panics
    /// It has read nothing: a bug.
    pub fn take_data(&mut self, now: Nanos, process: u32, since: Nanos) -> Data {
        let process = &mut self.processes[process as usize];
        process.times.read_time += now - since;
        self.responses.push(now - since);
        self.intervals.sums.read(1, now - since);
        process.got.take().expect("what a process has waited for is there")
    }

    /// A process has computed.
    pub fn computed(&mut self, process: u32, time: Nanos) {
        self.processes[process as usize].times.compute += time;
    }

    fn times(&self, process: u32) -> ProcessTimes {
        let node = self.nodes[process as usize].clone();
        ProcessTimes { node, ..self.processes[process as usize].times.clone() }
    }

    /// What everybody is at, in one line.
    pub fn describe(&self) -> String {
        let waiting = self.barrier.as_ref().map_or(0, Barrier::waiting);
        let (taken, all) = self.progress();
        let (counts, processes) = (self.level.counts(), self.processes.len());
        format!(
            "{taken} of {all} references taken; of {processes} processes {waiting} wait at the barrier; {} fetches and {} \
             prefetches ordered, {} blocks resident in {} frames",
            counts.demand_fetches,
            counts.prefetches,
            self.in_use,
            self.level.frames(),
        )
    }

    /// Where the time of a process has gone.
    fn parts(&self, process: u32) -> Parts {
        let node = &self.nodes[process as usize];
        Parts {
            compute: self.processes[process as usize].times.compute,
            own_io: node.periods(parallel::Idle::OwnIo).necessary,
            other_io: node.periods(parallel::Idle::OtherIo).necessary,
            overrun: node.overrun,
        }
    }

    fn rests(&mut self, now: Nanos, process: u32, kind: parallel::Idle) {
        self.nodes[process as usize].rests(now, kind);
        if self.actions.is_some() {
            self.free.add(now, process);
        }
    }

    /// What a process waits for is there.
    fn goes_on(&mut self, now: Nanos, process: u32) {
        let (_, overrun) = self.nodes[process as usize].over(now);
        self.intervals.sums.overrun += overrun;
        self.free.remove(process);
        self.processes[process as usize].goes_on = true;
        self.wakes.push(process);
    }

    fn meet(&mut self, now: Nanos, meeting: Option<Meeting>) {
        let Some(meeting) = meeting else { return };
        let mut intervals = std::mem::take(&mut self.intervals);
        intervals.ends(&meeting, |process| self.parts(process));
        self.intervals = intervals;
        meeting.released.into_iter().for_each(|process| self.goes_on(now, process));
    }

    /// After the level has acted: frames that it has emptied are; and what must hold, does.
    fn settle(&mut self) {
        let mut evicted = std::mem::take(&mut self.evicted);
        self.level.take_evicted(&mut evicted);
        for block in evicted.drain(..) {
            let data = self.frames[block.index()].take();
            assert!(data.is_some(), "{block:?} is evicted, and was not there");
            self.in_use -= 1;
        }
        self.evicted = evicted;
        assert!(self.in_use <= self.level.frames(), "{} blocks in {} frames", self.in_use, self.level.frames());
        let counts = self.level.counts();
        let unused = counts.prefetches - counts.prefetches_used;
        let most = self.actions.as_ref().map_or(Some(0), |actions| actions.unused_max);
        assert!(most.is_none_or(|most| unused <= most), "{unused} blocks are prefetched and not used, of {most:?}");
    }
}

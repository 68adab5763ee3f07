//! The machine that the threads share, and the bytes of its blocks, under one mutex. Times are arguments; nothing here
//! waits.

use headstart_engine::parallel::{DiskTimes, Played, Setup};
use headstart_engine::{Client, NoSupply, Phase, Reads, System};
use headstart_host::mailbox::{Mailbox, Request};
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};

use super::disks::Data;

/// The last block read by a process, for its thread to check.
#[derive(Debug, Default)]
struct Got {
    /// References served.
    references: u64,
    block: Option<(Block, Data)>,
}

pub(super) struct Machine<S> {
    system: System<Mailbox, S, NoSupply>,
    /// Processes whose threads have come to act.
    here: Vec<u32>,
    /// Bytes of each block, while any level has it.
    bytes: Vec<Option<Data>>,
    got: Vec<Got>,
    /// When the timer must come, as last reported to it.
    timer: Option<Nanos>,
    /// Threads to wake: processes, and whether the timer.
    pub wakes: Vec<u32>,
    pub wakes_timer: bool,
    left: Vec<Block>,
}

impl<S: BlockMap + Send> Machine<S> {
    /// Starts at time zero, over the blocks of `space`.
    pub fn new(setup: Setup, space: S) -> Self {
        let (processes, blocks) = (setup.processes(), space.blocks());
        let mailbox = Mailbox::by_request(setup.block_sectors);
        let mut system = setup.machine(mailbox, space);
        system.use_external_schedule();
        let mut machine = Self {
            system,
            here: Vec::new(),
            bytes: vec![None; blocks],
            got: (0..processes).map(|_| Got::default()).collect(),
            timer: None,
            wakes: Vec::new(),
            wakes_timer: false,
            left: Vec::new(),
        };
        machine.settle();
        machine
    }

    /// References taken, and all references.
    pub fn progress(&self) -> (u64, u64) {
        self.system.progress()
    }

    pub fn processes(&self) -> usize {
        self.got.len()
    }

    /// Whether all processes are done.
    pub fn is_over(&self) -> bool {
        self.system.is_over()
    }

    /// The end of a process's last think time, if it is done.
    pub fn done_at(&self, process: u32) -> Option<Nanos> {
        let process = &self.system.clients[process as usize].process;
        (process.phase == Phase::Done).then_some(process.free_at)
    }

    /// When the last process was done.
    pub fn end(&self) -> Nanos {
        self.system.end()
    }

    /// The result of a run, given the statistics of its disks.
    pub fn outcome(self, disks: Vec<DiskTimes>) -> Played {
        Played::new(self.system, disks)
    }

    /// When a process, or its processor, has to act; `None` until it is woken.
    pub fn due(&self, process: u32) -> Option<Nanos> {
        self.system.due(process as usize)
    }

    /// When the timer has to act.
    pub fn timer(&self) -> Option<Nanos> {
        self.timer
    }

    /// Registers that a process's thread has come; it acts if its time has come.
    pub fn comes(&mut self, process: u32) {
        self.here.push(process);
    }

    /// A disk has completed a request with `data`.
    pub fn brought(&mut self, request: &Request, data: Vec<Data>, service: Nanos) {
        for (block, data) in request.blocks.iter().zip(data) {
            if block.index() >= self.bytes.len() {
                self.bytes.resize(block.index() + 1, None);
            }
            self.bytes[block.index()] = Some(data);
        }
        let stack = &mut self.system.stack;
        stack.devices.end_request(request, service);
    }

    /// Whether there are completions that the machine has not processed: what needs no disk completes at once.
    pub fn has_ended(&self) -> bool {
        self.system.stack.devices.has_ended()
    }

    /// Whether a thread has come, something has completed, or the timer is due.
    fn has_to_act(&self, now: Nanos) -> bool {
        !self.here.is_empty() || self.has_ended() || self.timer.is_some_and(|at| at <= now)
    }

    /// Processes everything that is due at `now`.
    pub fn turn(&mut self, now: Nanos) {
        if !self.has_to_act(now) {
            return;
        }
        let mut due = std::mem::take(&mut self.here);
        due.retain(|process| self.system.due(*process as usize).is_some_and(|at| at <= now));
        due.sort_unstable();
        due.dedup();
        let Ok(()) = self.system.turn(now, &due);
        due.clear();
        self.here = due;
        self.settle();
    }

    /// After a turn: passes read bytes to processes, forgets blocks that have left all levels, and collects the threads
    /// whose times have changed.
    fn settle(&mut self) {
        let first = self.wakes.len();
        self.system.take_moved(&mut self.wakes);
        for process in &self.wakes[first..] {
            let client = &self.system.clients[*process as usize];
            let got = &mut self.got[*process as usize];
            if let (true, Reads::Taken { block, .. }) = (client.references > got.references, &client.reads) {
                let data = self.bytes[block.index()].clone();
                got.block = Some((*block, data.expect("what a process has got is there")));
                got.references = client.references;
            }
        }
        self.forget();
        let timer = self.system.next_timer();
        if timer != self.timer {
            self.timer = timer;
            self.wakes_timer = true;
        }
    }

    /// Forgets the bytes of blocks that have left all levels. A process still gets a block that it waits for or was
    /// granted, even if the block's frame was taken since it arrived.
    fn forget(&mut self) {
        let Self { system, left, bytes, .. } = self;
        system.stack.take_left(left);
        left.retain(|block| {
            if system.stack.tiers.iter().any(|tier| tier.level.has_to_do_with(*block)) {
                // It is reported again when it leaves that level.
                return false;
            }
            let takes = |client: &Client<NoSupply>| matches!(client.reads, Reads::Taken { block: taken, .. } if taken == *block);
            let awaited = system.clients.iter().any(|client| client.process.is_reading() && takes(client));
            if !awaited {
                bytes[block.index()] = None;
            }
            awaited
        });
    }

    /// Requests for the disks.
    pub fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.system.stack.devices.requests)
    }

    /// The block that a process has read since the last call.
    pub fn take_got(&mut self, process: u32) -> Option<(Block, Data)> {
        self.got[process as usize].block.take()
    }

    /// The state of all processes, in one line.
    pub fn describe(&self) -> String {
        let (taken, all) = self.progress();
        let waiting = (0..self.processes()).filter(|process| self.system.due(*process).is_none()).count();
        let counts: Vec<String> = self.system.stack.tiers.iter().map(|tier| describe_level(&tier.level)).collect();
        format!(
            "{taken} of {all} references taken; {waiting} of {} processes wait; {}",
            self.processes(),
            counts.join(", ")
        )
    }
}

fn describe_level(level: &headstart_engine::Level) -> String {
    let counts = level.counts();
    format!(
        "{} fetches and {} prefetches ordered, {} of {} frames free",
        counts.demand_fetches,
        counts.prefetches,
        level.free_frames(),
        level.frames()
    )
}

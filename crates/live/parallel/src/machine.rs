//! The machine that the threads share, and what goes through it: the bytes of blocks. All under one mutex; times are
//! arguments, and nothing here waits.

use headstart_engine::parallel::{DiskTimes, Played, Setup};
use headstart_engine::{Client, NoSupply, Phase, Reads, System};
use headstart_host::mailbox::{Mailbox, Request};
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};

use super::disks::Data;

/// What a process has read last, to be looked at by its thread.
#[derive(Debug, Default)]
struct Got {
    /// References served.
    references: u64,
    block: Option<(Block, Data)>,
}

/// The shared state.
pub(super) struct Machine<S> {
    system: System<Mailbox, S, NoSupply>,
    /// Processes whose threads have come to act.
    here: Vec<u32>,
    /// By block: its bytes, while any level has it.
    bytes: Vec<Option<Data>>,
    got: Vec<Got>,
    /// When the timer has to come, as far as it has been told.
    timer: Option<Nanos>,
    /// Whose threads are to be woken: processes, and whether the timer is.
    pub wakes: Vec<u32>,
    pub wakes_timer: bool,
    left: Vec<Block>,
}

impl<S: BlockMap + Send> Machine<S> {
    /// At time zero, over blocks that lie in `space`.
    pub fn new(setup: Setup, space: S) -> Self {
        let (processes, blocks) = (setup.processes(), space.blocks());
        let mailbox = Mailbox::by_request(setup.block_sectors);
        let mut system = setup.machine(mailbox, space);
        system.be_told();
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

    /// References that have been taken, and all.
    pub fn progress(&self) -> (u64, u64) {
        self.system.progress()
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.got.len()
    }

    /// Whether everybody is done.
    pub fn is_over(&self) -> bool {
        self.system.is_over()
    }

    /// Whether a process is done, and when its last thought ends or ended.
    pub fn done_at(&self, process: u32) -> Option<Nanos> {
        let process = &self.system.clients[process as usize].process;
        (process.phase == Phase::Done).then_some(process.free_at)
    }

    /// When the last process was done.
    pub fn end(&self) -> Nanos {
        self.system.end()
    }

    /// What a run has come to whose disks have done `disks`.
    pub fn outcome(self, disks: Vec<DiskTimes>) -> Played {
        Played::new(self.system, disks)
    }

    /// When a process, or its processor, has something to do; `None` until somebody wakes it.
    pub fn due(&self, process: u32) -> Option<Nanos> {
        self.system.due(process as usize)
    }

    /// When the timer has something to do.
    pub fn timer(&self) -> Option<Nanos> {
        self.timer
    }

    /// The thread of a process has come, and will act if its time has come too.
    pub fn comes(&mut self, process: u32) {
        self.here.push(process);
    }

    /// A disk has done a request, which brought `data`.
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

    /// Whether something has ended that the machine has not looked at: what needs no disk ends at once.
    pub fn has_ended(&self) -> bool {
        self.system.stack.devices.has_ended()
    }

    /// Whether anybody has come, or anything has ended, or the timer's time has come.
    fn has_to_act(&self, now: Nanos) -> bool {
        !self.here.is_empty() || self.has_ended() || self.timer.is_some_and(|at| at <= now)
    }

    /// Lets everything happen that happens now.
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

    /// After a turn: processes get the bytes that they have read, what no level has any more is forgotten, and threads
    /// whose times have changed are to be woken.
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

    /// Forgets the bytes of blocks that no level has any more. What a process waits for or has been granted it gets, though
    /// the block's frame may have been taken since it came.
    fn forget(&mut self) {
        let Self { system, left, bytes, .. } = self;
        system.stack.take_left(left);
        left.retain(|block| {
            if system.stack.tiers.iter().any(|tier| tier.level.has_to_do_with(*block)) {
                // It will be told of again when it leaves that one.
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

    /// What the disks are to be given.
    pub fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.system.stack.devices.requests)
    }

    /// What a process has read since it last looked.
    pub fn take_got(&mut self, process: u32) -> Option<(Block, Data)> {
        self.got[process as usize].block.take()
    }

    /// What everybody is at, in one line.
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

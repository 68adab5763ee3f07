//! A parallel program as it is handed to a host that has no scenario, and what such a host hands back.

use std::sync::Arc;

use headstart_policy::Space;
use headstart_types::{Nanos, Program};

use super::{Barrier, Contention, Ended, IdleOrder, Node, Scope, Strings};
use crate::devices::Devices;
use crate::stack::{Stack, Tier};
use crate::system::{Actions, Client, Costs, Found, Manner, NoSupply, Parallel, Process, Reads, System};
use crate::{Counts, Responses};

/// Times of a process, one after another.
pub type Draws = Box<dyn FnMut() -> Nanos + Send>;

/// What a run is made of.
pub struct Setup {
    /// The levels, their policies built for the same program: those that processes ask come first.
    pub tiers: Vec<Tier>,
    /// How many processes ask; process i asks the one of number i modulo this.
    pub first: usize,
    /// What the processes read.
    pub program: Arc<Program>,
    /// Sectors of a block.
    pub block_sectors: u64,
    /// How many disks.
    pub disks: usize,
    /// Size of a block.
    pub block_bytes: usize,
    /// What a disk takes for a request.
    pub service: Nanos,
    /// Where processes meet; `None` if they do not.
    pub barrier: Option<Scope>,
    /// By process: think times after its reads.
    pub thinks: Vec<Draws>,
    /// What processes pay for their reads.
    pub costs: Costs,
    /// Time for which each look-up holds the shared structures.
    pub contention: Nanos,
    /// So does each prefetch action, beside the time that it takes.
    pub actions_contend: bool,
    /// Prefetch actions; `None` if processors take on none.
    pub actions: Option<ActionSetup>,
}

impl Setup {
    /// How many processes there are.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.program.string_of.len()
    }

    /// The machine, over `devices` whose blocks lie in `space`.
    #[must_use]
    pub fn machine<D: Devices<S>, S: Space + Send>(self, devices: D, space: S) -> System<D, S, NoSupply> {
        let processes = self.processes();
        let client =
            |(at, think): (usize, Draws)| Client::new(Process::new(self.costs), at % self.first, Reads::taking(think));
        let clients = self.thinks.into_iter().enumerate().map(client).collect();
        let parallel = Parallel::new(
            processes,
            Some(Strings::new(self.program)),
            self.barrier.map(|scope| Barrier::new(scope, processes as u32)),
            self.actions.map(Actions::new),
            Contention::new(self.contention, self.actions_contend),
            None,
        );
        let stack = Stack::new(self.tiers, self.first, devices, space, self.block_bytes as u64);
        let manner = Manner { whole: false, open: false, write_delay: None };
        let Ok(system) = System::try_new(stack, clients, manner, Some(parallel));
        system
    }
}

/// How processors prefetch.
pub struct ActionSetup {
    /// By process, then by I/O processor: what its actions take.
    pub lengths: Vec<Draws>,
    /// Processors that run no process and do nothing but actions; where there are any, no other does.
    pub io_processors: u32,
    /// An action's request enters the disk's queue when the action begins, not when it ends.
    pub issues_at_start: bool,
    /// No action is begun that is not expected to have this much idle time before it.
    pub idle_min: Nanos,
    /// Nor one of a process that has not at least so many reads less to its next meeting than the one that has most.
    pub slack_min: u32,
    /// Which of several idle processors takes on the next one.
    pub order: IdleOrder,
    /// Where one processor finds nothing to prefetch, none does.
    pub alike: bool,
    /// The most blocks that are prefetched and not used, where none of them is ever evicted.
    pub unused_max: Option<u64>,
}

/// What a run has come to.
#[derive(Debug)]
pub struct Outcome {
    /// When the last process was done.
    pub elapsed: Nanos,
    /// The counts of all levels that processes ask.
    pub counts: Counts,
    /// By level: its counts, and the time of its link.
    pub levels: Vec<(Counts, Nanos)>,
    /// By process.
    pub processes: Vec<Member>,
    /// By disk.
    pub disks: Vec<DiskTimes>,
    /// From meeting to meeting.
    pub intervals: Vec<Ended>,
    /// Reads done.
    pub requests: u64,
    /// How long they took.
    pub responses: Responses,
}

/// A process of a program, and its processor.
#[derive(Debug)]
pub struct Member {
    /// Where its time has gone.
    pub process: Process,
    /// Its processor: waits, actions, overrun.
    pub node: Node,
    /// Blocks read.
    pub references: u64,
    /// How they were found.
    pub found: Found,
}

impl Outcome {
    /// Of a machine that has run, whose disks have done `disks`.
    #[must_use]
    pub fn new<D: Devices<S>, S: Space + Send>(system: System<D, S, NoSupply>, disks: Vec<DiskTimes>) -> Self {
        let elapsed = system.end();
        let (stack, parallel) = (system.stack, system.parallel.expect("it is a program"));
        let levels: Vec<_> = stack.tiers.iter().map(|tier| (tier.level.counts().clone(), tier.link_time)).collect();
        let mut counts = Counts::default();
        levels[..stack.first].iter().for_each(|(first, _)| counts.add(first));
        let requests = system.clients.iter().map(|client| client.requests).sum();
        let member = |(client, node): (Client<NoSupply>, Node)| {
            let Client { process, references, found, .. } = client;
            Member { process, node, references, found }
        };
        let processes = system.clients.into_iter().zip(parallel.nodes).map(member).collect();
        let (intervals, responses) = (parallel.intervals.ended, system.responses);
        Self { elapsed, counts, levels, processes, disks, intervals, requests, responses }
    }
}

/// What a disk has done: sums over the requests that it has carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTimes {
    /// How many.
    pub requests: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Time at work on them.
    pub service: Nanos,
    /// The same, with the request that was under way at the end.
    pub busy: Nanos,
    /// Time that requests waited for those before them.
    pub queue: Nanos,
    /// Time from a request's coming to the moment when its block was there.
    pub response: Nanos,
}

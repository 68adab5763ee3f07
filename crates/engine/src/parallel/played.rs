//! A parallel program as it is handed to a host that has no scenario, and what such a host hands back.

use std::sync::Arc;

use headstart_policy::Policy;
use headstart_types::{Disk, Nanos, Program};

use super::{Ended, IdleOrder, Node, Scope};
use crate::Counts;

/// Times of a process, one after another.
pub type Draws = Box<dyn FnMut() -> Nanos + Send>;

/// What a run is made of.
pub struct Setup {
    /// The policy of the cache, built for the same program and frames.
    pub policy: Box<dyn Policy>,
    /// Frames of the cache.
    pub frames: u32,
    /// What the processes read.
    pub program: Arc<Program>,
    /// By block: the disk that it is on.
    pub disk_of: Vec<Disk>,
    /// How many disks.
    pub disks: usize,
    /// Size of a block.
    pub block_bytes: usize,
    /// What a disk takes for a block.
    pub service: Nanos,
    /// Where processes meet; `None` if they do not.
    pub barrier: Option<Scope>,
    /// By process: think times after its reads.
    pub thinks: Vec<Draws>,
    /// Processor time of each read, to find and hand over the block.
    pub read_cost: Nanos,
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
}

/// How processors prefetch.
pub struct ActionSetup {
    /// By process: what its actions take.
    pub lengths: Vec<Draws>,
    /// An action's request enters the disk's queue when the action begins, not when it ends.
    pub issues_at_start: bool,
    /// No action is begun that is not expected to have this much idle time before it.
    pub idle_min: Nanos,
    /// Which of several idle processors takes on the next one.
    pub order: IdleOrder,
    /// Where one processor finds nothing to prefetch, none does.
    pub alike: bool,
    /// The most blocks that are prefetched and not used, where none of them is ever evicted.
    pub unused_max: Option<u64>,
}

/// What a run has come to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// When the last process was done.
    pub elapsed: Nanos,
    /// The cache's counts.
    pub counts: Counts,
    /// By process.
    pub processes: Vec<ProcessTimes>,
    /// By disk.
    pub disks: Vec<DiskTimes>,
    /// From meeting to meeting.
    pub intervals: Vec<Ended>,
    /// How long each read took, in the order in which they were done.
    pub responses: Vec<Nanos>,
}

/// Where the time of a process has gone.
#[derive(Debug, Clone, Default)]
pub struct ProcessTimes {
    /// Blocks read.
    pub references: u64,
    /// Those that were resident.
    pub hits_ready: u64,
    /// Those that were on their way.
    pub hits_unready: u64,
    /// Those that were neither.
    pub misses: u64,
    /// When it was done.
    pub done_at: Nanos,
    /// Think time.
    pub compute: Nanos,
    /// From the beginning of each read until the block was handed over.
    pub read_time: Nanos,
    /// Its processor: waits, actions, overrun.
    pub node: Node,
}

/// What a disk has done: sums over the requests that it has carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTimes {
    /// How many.
    pub requests: u64,
    /// Time at work.
    pub busy: Nanos,
    /// Time that requests waited for those before them.
    pub queue: Nanos,
    /// Time from a request's coming to the moment when its block was there.
    pub response: Nanos,
}

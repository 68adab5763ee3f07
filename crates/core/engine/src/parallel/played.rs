//! A parallel program for a host without scenarios, and the host's results.

use std::sync::Arc;

use headstart_policy::BlockMap;
use headstart_types::{Nanos, Program};

use super::{Barrier, Contention, Ended, IdleOrder, Node, Scope, Strings};
use crate::devices::Devices;
use crate::stack::{Stack, Tier};
use crate::system::{Actions, Client, Costs, IssueMode, NoSupply, Parallel, Process, Reads, ReferenceCounts, System};
use crate::{Counts, Responses};

/// Successive times of a process.
pub type Draws = Box<dyn FnMut() -> Nanos + Send>;

/// The machine and the program of a run.
pub struct Setup {
    /// The levels; their policies are built for the same program. First levels come first.
    pub tiers: Vec<Tier>,
    /// Number of first levels; process i uses level i modulo this.
    pub first: usize,
    /// The reference strings of the processes.
    pub program: Arc<Program>,
    /// Sectors per block.
    pub block_sectors: u64,
    /// Number of disks.
    pub disks: usize,
    /// Bytes per block.
    pub block_bytes: usize,
    /// Service time of a request.
    pub service: Nanos,
    /// Where processes synchronise; `None` if they do not.
    pub barrier: Option<Scope>,
    /// For each process: the think times after its reads.
    pub thinks: Vec<Draws>,
    /// Costs of reads in processor time.
    pub costs: Costs,
    /// Time for which each lookup holds the shared structures.
    pub contention: Nanos,
    /// Whether each prefetch action holds them too, in addition to its own time.
    pub actions_contend: bool,
    /// Prefetch actions; `None` if processors perform none.
    pub actions: Option<ActionSetup>,
}

impl Setup {
    /// Number of processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.program.string_of.len()
    }

    /// The machine, with `devices` whose blocks are placed in `space`.
    #[must_use]
    pub fn machine<D: Devices<S>, S: BlockMap + Send>(self, devices: D, space: S) -> System<D, S, NoSupply> {
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
        let mode = IssueMode { whole: false, open: false, write_delay: None };
        let Ok(system) = System::try_new(stack, clients, mode, Some(parallel));
        system
    }
}

/// How processors prefetch.
pub struct ActionSetup {
    /// For each process, then each I/O processor: the times of its actions.
    pub lengths: Vec<Draws>,
    /// Number of processors that run no process and only perform actions; if there are any, the others perform none.
    pub io_processors: u32,
    /// Whether an action's request enters the disk queue when the action starts instead of when it ends.
    pub issues_at_start: bool,
    /// Minimum expected idle time for an action to start.
    pub idle_min: Nanos,
    /// An action only starts if its process has at least this many fewer reads to its next synchronisation than the
    /// process with the most.
    pub slack_min: u32,
    /// Which of several idle processors performs the next action.
    pub order: IdleOrder,
    /// Whether no processor finds anything to prefetch if one does not.
    pub alike: bool,
    /// Maximum number of prefetched and unused blocks, if those are never evicted.
    pub unused_max: Option<u64>,
}

/// The results of a run.
#[derive(Debug)]
pub struct Played {
    /// When the last process finished.
    pub elapsed: Nanos,
    /// The sums of the counts of all first levels.
    pub counts: Counts,
    /// For each level: its counts, and the total time of its link.
    pub levels: Vec<(Counts, Nanos)>,
    /// Indexed by process.
    pub processes: Vec<Member>,
    /// Indexed by disk.
    pub disks: Vec<DiskTimes>,
    /// All intervals between synchronisations.
    pub intervals: Vec<Ended>,
    /// Number of completed reads.
    pub requests: u64,
    /// Their response times.
    pub responses: Responses,
}

/// The results of one process and its processor.
#[derive(Debug)]
pub struct Member {
    /// How it spent its time.
    pub process: Process,
    /// Its processor: waits, actions, overrun.
    pub node: Node,
    /// Number of blocks read.
    pub references: u64,
    /// How the blocks were found.
    pub found: ReferenceCounts,
}

impl Played {
    /// The results of a completed run, with the disks' times `disks`.
    #[must_use]
    pub fn new<D: Devices<S>, S: BlockMap + Send>(system: System<D, S, NoSupply>, disks: Vec<DiskTimes>) -> Self {
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

/// Sums over the completed requests of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTimes {
    /// Number of requests.
    pub requests: u64,
    /// Number of their blocks.
    pub blocks: u64,
    /// Total service time.
    pub service: Nanos,
    /// The same, including the request in progress at the end.
    pub busy: Nanos,
    /// Time that requests waited for earlier ones.
    pub queue: Nanos,
    /// Time from a request's arrival until its block was there.
    pub response: Nanos,
}

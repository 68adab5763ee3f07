//! Prefetch actions of processors whose processes wait (kotz-ellis, section 5.1).
//!
//! At the end of each instant at which something has happened, idle processors are offered actions in an order
//! ([`IdleOrder`]; by default that in which they became free). The policy chooses one block, which takes its buffer at
//! once. The processor is busy for as long as the action takes, even if its process could continue meanwhile. The
//! request enters the disk's queue when the action ends, or when it starts (the paper does not say which); its driver
//! work is done when the action ends.
//!
//! I/O processors run no process (section 3 has file system software "run on dedicated I/O processors" as an
//! alternative). They are idle from the start, and if there are any no other processor performs actions. In the machine
//! each is a client that is done.
//!
//! Cost: logarithmic in the processes per action, plus one unsuccessful query of the policy per instant; if processors
//! only prefetch for their own processes, one per idle processor.

use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos};

use super::{Awaited, Phase, Supply, System};
use crate::backend::{Backend, IoRequest, Kind};
use crate::devices::Devices;
use crate::journal::Happening;
use crate::parallel::{ActionSetup, Draws, Free};

/// An order that waits for the end of its action.
type Held = (Block, Disk, Kind);

/// The idle processors, and the actions of the busy ones.
pub struct Actions {
    issues_at_start: bool,
    /// Minimum expected idle time for an action to start.
    idle_min: Nanos,
    /// An action only starts if its process has at least this many fewer reads to its next synchronisation than the
    /// process with the most.
    slack_min: u32,
    /// Whether no processor finds anything to prefetch if one does not.
    alike: bool,
    /// The first processor that runs no process, if there is one.
    io_from: Option<u32>,
    /// Maximum number of prefetched and unused blocks, if those are never evicted.
    unused_max: Option<u64>,
    /// For each process: the times of its actions.
    lengths: Vec<Draws>,
    /// For each process: the request that its current action will issue.
    held: Vec<Option<Held>>,
    /// Processors that may be offered an action.
    free: Free,
}

impl Actions {
    /// The actions of a program at time zero.
    #[must_use]
    pub fn new(setup: ActionSetup) -> Self {
        let ActionSetup { lengths, io_processors, issues_at_start, idle_min, slack_min, order, alike, unused_max } =
            setup;
        let processors = lengths.len();
        let (held, mut free) = (vec![None; processors], Free::new(processors, order));
        let io_from = (io_processors > 0).then(|| processors as u32 - io_processors);
        if let Some(first) = io_from {
            (first..processors as u32).for_each(|index| free.add(Nanos::ZERO, index, 0));
        }
        Self { issues_at_start, idle_min, slack_min, alike, io_from, unused_max, lengths, held, free }
    }

    /// Whether a processor runs no process.
    #[inline]
    #[must_use]
    pub fn is_io(&self, index: usize) -> bool {
        self.io_from.is_some_and(|first| index >= first as usize)
    }

    /// Whether a processor performs actions while it is idle.
    #[inline]
    fn acts(&self, index: usize) -> bool {
        self.io_from.is_none() || self.is_io(index)
    }

    /// When a processor that waits for an action becomes free.
    #[inline]
    pub fn free_at(&self, index: usize) -> Option<Nanos> {
        self.free.since(index as u32)
    }

    /// Stops offering actions to a processor.
    #[inline]
    pub fn is_busy(&mut self, index: usize) {
        self.free.remove(index as u32);
    }
}

/// Holds back the one order of an action.
#[derive(Default)]
struct Hold(Option<Held>);

impl Backend for Hold {
    fn issue(&mut self, _now: Nanos, order: IoRequest<'_>) -> u32 {
        debug_assert!(self.0.is_none() && order.blocks.len() == 1, "an action is one fetch");
        self.0 = Some((order.blocks[0], order.disk, order.kind));
        1
    }
}

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// Marks the processor of a waiting process as idle, from the end of its driver work.
    #[inline]
    pub(super) fn is_free(&mut self, now: Nanos, index: usize) {
        let free_at = self.clients[index].process.free_at.max(now);
        let left = self.left(index);
        let actions = self.parallel.as_mut().and_then(|parallel| parallel.actions.as_mut());
        if let Some(actions) = actions.filter(|actions| actions.acts(index)) {
            actions.free.add(free_at, index as u32, left);
        }
    }

    /// Number of reads that a process has before it synchronises, including the current one: 0 if it waits at the
    /// barrier, and for a processor that runs no process.
    fn left(&self, index: usize) -> u32 {
        match (self.clients[index].process.phase, &self.parallel) {
            (_, Some(parallel)) if parallel.is_io(index) => 0,
            (Phase::Waiting(wait), Some(_)) if wait.what == Awaited::Others => 0,
            (_, Some(parallel)) => parallel.left(index).saturating_add(1),
            (_, None) => 0,
        }
    }

    /// Whether a process has at least `least` fewer reads to its next synchronisation than the process with the most.
    /// Its slack does not grow while it is idle.
    fn has_slack(&self, index: usize, least: u32) -> bool {
        let running = |other: &usize| self.clients[*other].process.phase != Phase::Done;
        let most = (0..self.clients.len()).filter(running).map(|other| self.left(other)).max();
        most.is_some_and(|most| most >= self.left(index).saturating_add(least))
    }

    /// Postpones the time at which a processor is free after new driver work.
    pub(super) fn moved(&mut self, now: Nanos, index: usize) {
        let actions = self.parallel.as_ref().and_then(|parallel| parallel.actions.as_ref());
        if actions.is_some_and(|actions| actions.free_at(index).is_some()) {
            self.is_free(now, index);
        }
    }

    /// Offers actions to idle processors.
    #[inline]
    pub(super) fn offer_actions(&mut self, now: Nanos) {
        let mut after = None;
        while let Some(actions) = self.parallel.as_mut().and_then(|parallel| parallel.actions.as_mut()) {
            let Some(process) = actions.free.next(now, after) else { return };
            let (index, least, alike) = (process as usize, (actions.idle_min, actions.slack_min), actions.alike);
            let level = &self.stack.tiers[self.clients[index].tier].level;
            if alike && !level.could_prefetch(None) {
                return;
            }
            let worth_asking = alike || level.could_prefetch(Some(process));
            if worth_asking && !self.may_act(now, index, least) {
                continue;
            }
            if !worth_asking || !self.take_action(now, index) {
                if alike {
                    return;
                }
                after = Some(process);
            }
        }
    }

    /// Whether an action may start. A processor with too little idle time left will not have more in this period.
    fn may_act(&mut self, now: Nanos, index: usize, (idle_min, slack_min): (Nanos, u32)) -> bool {
        let is_io = self.parallel.as_ref().is_some_and(|parallel| parallel.is_io(index));
        let has_slack = slack_min == 0 || is_io || self.has_slack(index, slack_min);
        let Some(parallel) = &mut self.parallel else { return false };
        let may = has_slack && parallel.nodes[index].may_act(now, idle_min);
        if let (false, Some(actions)) = (may, &mut parallel.actions) {
            actions.is_busy(index);
            self.reschedule(index);
        }
        may
    }

    /// Asks the policy for one action and starts it. Returns false if there is none.
    fn take_action(&mut self, now: Nanos, index: usize) -> bool {
        let tier = self.clients[index].tier;
        self.stack.acts_for(Some(index as u32));
        let mut hold = Hold::default();
        let (level, space, _) = self.stack.at(tier);
        if !level.idle(now, index as u32, space.as_space(), &mut hold) {
            return false;
        }
        if let Some((block, ..)) = hold.0 {
            self.take_buffer(index, block);
        }
        let counts = self.stack.tiers[tier].level.counts();
        let unused = counts.prefetches - counts.prefetches_used;
        let Some(parallel) = &mut self.parallel else { return false };
        let held = parallel.contention.hold_for_action(now);
        let Some(actions) = &mut parallel.actions else { return false };
        assert!(actions.unused_max.is_none_or(|most| unused <= most), "{unused} blocks are prefetched and not used");
        actions.is_busy(index);
        let length = held + actions.lengths[index]();
        parallel.nodes[index].begins(now, length);
        parallel.intervals.sums.action_time += length;
        let acted = hold.0.map(|(block, ..)| Happening::Acted {
            process: index as u32,
            since: now,
            until: now + length,
            block,
        });
        if actions.issues_at_start {
            self.issue_held(now, tier, hold.0);
        } else {
            actions.held[index] = hold.0;
        }
        if let Some(acted) = acted {
            self.note(acted);
        }
        self.reschedule(index);
        true
    }

    fn issue_held(&mut self, now: Nanos, tier: usize, held: Option<Held>) {
        if let Some((block, disk, kind)) = held {
            let (_, _, mut down) = self.stack.at(tier);
            down.issue(now, IoRequest { blocks: &[block], disk, kind });
            self.stack.settle(now);
            self.stack.devices.start(now);
        }
    }

    /// Ends the action of a processor.
    pub(super) fn action_ends(&mut self, now: Nanos, index: usize) {
        let tier = self.clients[index].tier;
        let Some(parallel) = &mut self.parallel else { return };
        let still_idle = parallel.nodes[index].ends();
        let held = parallel.actions.as_mut().and_then(|actions| actions.held[index].take());
        self.issue_held(now, tier, held);
        self.charge::<false>(now, tier, 1);
        if still_idle {
            self.is_free(now, index);
        }
    }
}

//! Reverse aggressive: an off-line schedule that balances the disks, computed on the reversed string and replayed.
//!
//! Source: kimbrel96, sections 2.5 and 2.7. [`super::plan`] computes the schedule. There are two ways to replay it:
//! - `mirror`: each fetch starts at its time in the mirrored schedule (uniform fetch times only: the theory);
//! - `released` (section 2.7): fetches in order of the reference they are for, victims in order of release, matched in
//!   these orders; a free disk takes up to a batch of its next fetches whose victims are released.
//!
//! In theory (mirror, batch 1) within 1 + Fd/K of the optimum. A yardstick, not a practical policy: it needs the whole
//! future and a single estimate of F.
//!
//! Where the run deviates from the plan, the plan is repaired. A planned fetch of a block that is still resident passes
//! its victim to the operation that would have evicted that block. A victim that cannot be evicted is replaced by a
//! free frame or the furthest block. A block that no pending fetch will bring is fetched on demand. With hints that
//! disclose a window of N references, a new plan for the visible part is made every N/2 references.
//!
//! Cost: that of planning; then constant per event and disk. Memory: 40 bytes per planned fetch.

use schemars::JsonSchema;
use std::collections::VecDeque;

use headstart_types::{keys, Block, KeyError, KeyTable, Nanos, Position, TypedKeys, NEVER};

use super::fixed_horizon::{fetch_within, misses_within};
use super::plan::{plan, Operation, Task};
use super::round::Frame;
use super::{BatchSize, Knowledge, Round, Strategy};
use crate::row::{Context, Family, PolicyRow};
use crate::{Disclosure, Policy, View};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "reverse-aggressive",
    summary: "an off-line schedule computed on the reversed references, which balances the disks",
    source: "kimbrel96, sections 2.5 and 2.7",
    keys: KeyTable::of::<ReverseAggressiveKeys>(),
    default_replacement: None,
    family: Family::Hinted(&build),
};

keys! {
    /// Keys of `reverse-aggressive`.
    pub struct ReverseAggressiveKeys {
        /// F: the duration of a fetch, in references.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = f64::MAX, "x-allowed" = "a number above 0"))]
        #[schemars(extend("x-absent" = "the device's typical service time over the mean think time"))]
        pub fetch_ratio: Option<f64> = None,
        /// Maximum number of requests per batch in the reverse pass.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "1 on a uniform device, \"table6\" elsewhere"))]
        pub batch_size: Option<BatchSize> = None,
        /// Maximum number of requests per batch in the replay.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "as batch_size"))]
        pub forward_batch_size: Option<BatchSize> = None,
        /// How the plan is replayed.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "\"mirror\" on a uniform device with every reference disclosed, \"released\" elsewhere"))]
        pub replay: Option<Replay> = None,
    }
}

fn build(keys: &TypedKeys, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
    let keys: &ReverseAggressiveKeys = keys.get();
    context.for_one_process("reverse-aggressive")?;
    let theory = context.uniform;
    let whole = context.hints_of_row().disclosure == Disclosure::All;
    let replay = keys.replay.unwrap_or(if theory && whole { Replay::Mirror } else { Replay::Released });
    if replay == Replay::Mirror && !(theory && whole) {
        let problem =
            "mirror replays at planned times, which hold only on a uniform device with every reference disclosed";
        return Err(KeyError::new("replay", problem, "\"released\""));
    }
    let compute = context.mean_compute.max(Nanos(1));
    let fetch = match keys.fetch_ratio {
        None => context.nominal_service,
        Some(ratio) => Nanos((ratio * compute.0 as f64).round().max(1.0) as u64),
    };
    let batch = keys.batch_size.unwrap_or(if theory { BatchSize::Fixed(1) } else { BatchSize::Table6 });
    let setting = ReverseSetting {
        frames: context.frames as usize,
        disks: context.disks,
        compute,
        fetch: fetch.max(Nanos(1)),
        batch_size: batch.on(context),
        forward_batch_size: keys.forward_batch_size.unwrap_or(batch).on(context),
        replay,
    };
    Ok(context.hinted(ReverseAggressive::new(setting)))
}

/// How the plan is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replay {
    /// At the planned times; only on a uniform device with every reference disclosed.
    Mirror,
    /// In batches, as soon as the disk and the victim are free.
    Released,
}

/// Parameters of the policy, from the system that it plans for.
#[derive(Debug, Clone)]
pub struct ReverseSetting {
    /// K, in blocks.
    pub frames: usize,
    /// d, the number of disks.
    pub disks: usize,
    /// Assumed think time, at least 1 ns.
    pub compute: Nanos,
    /// Assumed fetch time: F times `compute`.
    pub fetch: Nanos,
    /// Batch size of the reversed run, at least 1.
    pub batch_size: u32,
    /// Batch size of the forward run under `Replay::Released`, at least 1.
    pub forward_batch_size: u32,
    /// How to replay.
    pub replay: Replay,
}

/// The reverse-aggressive policy.
#[derive(Debug)]
pub struct ReverseAggressive {
    setting: ReverseSetting,
    operations: Vec<Operation>,
    /// For each disk: its pending operations, in order.
    queues: Vec<VecDeque<u32>>,
    /// For each disk: the release of its first pending operation; `NEVER` if there is none.
    releases: Vec<Position>,
    /// For each block: the first pending operation that evicts it.
    evicted_by: Vec<u32>,
    /// For each operation: the next one that evicts the same block.
    evicted_next: Vec<u32>,
    /// For each block: the number of pending operations that fetch it.
    pending: Vec<u32>,
    /// The cursor at which the next plan is due; `NEVER` once the whole future is planned.
    plan_due: Position,
    /// Time of the last decision.
    now: Nanos,
}

const NONE: u32 = u32::MAX;

impl ReverseAggressive {
    /// Creates the policy; it plans at its first decision.
    #[must_use]
    pub fn new(setting: ReverseSetting) -> Self {
        let queues = vec![VecDeque::new(); setting.disks];
        Self {
            setting,
            operations: Vec::new(),
            releases: vec![NEVER; queues.len()],
            queues,
            evicted_by: Vec::new(),
            evicted_next: Vec::new(),
            pending: Vec::new(),
            plan_due: 0,
            now: Nanos::ZERO,
        }
    }

    fn make_plan(&mut self, now: Nanos, round: &Round<'_>) {
        let residents = round.knowledge().residents();
        let (hints, view, cursor) = (residents.hints(), round.view(), round.cursor());
        let visible = cursor..hints.horizon(cursor);
        self.plan_due = match hints.disclosure {
            Disclosure::Window(window) if (visible.end as usize) < hints.blocks.len() => cursor + (window / 2).max(1),
            _ => NEVER,
        };
        let disclosed = visible.filter(|position| hints.is_disclosed(*position));
        let references: Vec<_> = disclosed.map(|at| (at, hints.blocks[at as usize])).collect();
        // Among the resident blocks only referenced ones count. Blocks in flight will be resident.
        let mut initial: Vec<Block> = references.iter().map(|(_, block)| *block).collect();
        initial.sort_unstable();
        initial.dedup();
        initial.retain(|block| residents.contains(*block) || view.state(*block).is_in_flight());
        self.forget_plan();
        let setting = &self.setting;
        self.operations = plan(&Task {
            references: &references,
            initial: &initial,
            frames: setting.frames,
            disk_of: view.disk_of,
            disks: setting.disks,
            compute: setting.compute,
            fetch: setting.fetch,
            batch_size: setting.batch_size,
        });
        match setting.replay {
            Replay::Mirror => self.operations.iter_mut().for_each(|op| op.start += now),
            Replay::Released => match_in_order(&mut self.operations),
        }
        self.enqueue(view);
    }

    /// Clears the per-block state for the blocks of the plan only: plans may be short and frequent.
    fn forget_plan(&mut self) {
        for operation in &self.operations {
            self.pending[operation.block.index()] = 0;
            if let Some(victim) = operation.victim {
                self.evicted_by[victim.index()] = NONE;
            }
        }
    }

    fn enqueue(&mut self, view: &View<'_>) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.evicted_by.resize(view.blocks.len(), NONE);
        self.pending.resize(view.blocks.len(), 0);
        self.evicted_next = vec![NONE; self.operations.len()];
        for (index, operation) in self.operations.iter().enumerate() {
            self.queues[view.disk_of[operation.block.index()].index()].push_back(index as u32);
            self.pending[operation.block.index()] += 1;
        }
        (0..self.queues.len()).for_each(|disk| self.note_release(disk));
        for (index, operation) in self.operations.iter().enumerate().rev() {
            if let Some(victim) = operation.victim {
                self.evicted_next[index] = std::mem::replace(&mut self.evicted_by[victim.index()], index as u32);
            }
        }
    }

    /// Updates the release of `disk` after its queue's head has changed.
    fn note_release(&mut self, disk: usize) {
        let head = self.queues[disk].front();
        self.releases[disk] = head.map_or(NEVER, |index| self.operations[*index as usize].release);
    }

    /// The next operation of `disk` that may start now.
    fn ready(&self, disk: usize, now: Nanos, cursor: Position) -> Option<u32> {
        if self.releases[disk] > cursor {
            return None;
        }
        let index = *self.queues[disk].front()?;
        let timely = self.setting.replay == Replay::Released || self.operations[index as usize].start <= now;
        timely.then_some(index)
    }

    /// Carries out the operation at the head of its disk's queue. Returns whether it fetched; false if the block is no
    /// longer needed. `None`: it must wait for a frame.
    fn carry_out(&mut self, index: u32, round: &mut Round<'_>) -> Option<bool> {
        let Operation { block, position, victim, .. } = self.operations[index as usize];
        if position < round.cursor() || !round.knowledge().is_missing(block) {
            self.lend_victim(index);
            return Some(false);
        }
        let frame = self.frame(victim, position, round)?;
        self.forget_eviction(index);
        round.fetch(block, frame);
        Some(true)
    }

    /// The planned frame, or the next best one.
    fn frame(&self, victim: Option<Block>, position: Position, round: &Round<'_>) -> Option<Frame> {
        let due = |victim: &Block| {
            let residents = round.knowledge().residents();
            let needed_now = residents.next_use(*victim) == round.cursor();
            residents.contains(*victim) && !needed_now && !round.view().state(*victim).is_pinned()
        };
        match victim.filter(due) {
            // Frames that have become free meanwhile are used first.
            Some(_) if round.free() > 0 => Some(None),
            Some(victim) => Some(Some(victim)),
            None if position == round.cursor() => round.any_frame(),
            None => round.frame_beyond(position),
        }
    }

    /// Handles an operation whose block is already there: its victim passes to the operation that would have evicted
    /// that block.
    fn lend_victim(&mut self, index: u32) {
        let Operation { block, victim, .. } = self.operations[index as usize];
        self.forget_eviction(index);
        let heir = self.evicted_by[block.index()];
        if heir == NONE {
            return;
        }
        self.evicted_by[block.index()] = self.evicted_next[heir as usize];
        self.operations[heir as usize].victim = victim;
        self.evicted_next[heir as usize] = NONE;
        if let Some(victim) = victim {
            self.evicted_next[heir as usize] = std::mem::replace(&mut self.evicted_by[victim.index()], heir);
        }
    }

    /// Removes the operation from the list of those that evict its victim.
    fn forget_eviction(&mut self, index: u32) {
        let Some(victim) = self.operations[index as usize].victim else { return };
        let next = self.evicted_next[index as usize];
        let mut at = self.evicted_by[victim.index()];
        if at == index {
            self.evicted_by[victim.index()] = next;
            return;
        }
        while at != NONE {
            let after = self.evicted_next[at as usize];
            if after == index {
                self.evicted_next[at as usize] = next;
                return;
            }
            at = after;
        }
    }
}

/// Section 2.7: fetches in order of their reference and victims in order of release, matched pairwise.
fn match_in_order(operations: &mut Vec<Operation>) {
    let by_release = in_order(operations, |op| op.release);
    let by_position = in_order(operations, |op| op.position);
    let matched = by_position.iter().zip(&by_release).map(|(fetch, victim)| {
        let Operation { release, victim, .. } = operations[*victim as usize];
        Operation { release, victim, ..operations[*fetch as usize] }
    });
    *operations = matched.collect();
}

/// The indices of the operations sorted by `key`, stable; a counting sort, because positions are dense.
fn in_order(operations: &[Operation], key: impl Fn(&Operation) -> Position) -> Vec<u32> {
    let (first, last) = operations
        .iter()
        .map(&key)
        .fold((NEVER, 0), |(first, last), key| (if key > 0 { first.min(key) } else { first }, last.max(key)));
    // Zero means "from the start", regardless of where the others begin.
    let place = |operation: &Operation| key(operation).saturating_sub(first.saturating_sub(1)) as usize;
    let mut next = vec![0u32; (last.saturating_sub(first.saturating_sub(1)) as usize) + 2];
    operations.iter().for_each(|operation| next[place(operation) + 1] += 1);
    (1..next.len()).for_each(|at| next[at] += next[at - 1]);
    let mut order = vec![0; operations.len()];
    for (index, operation) in operations.iter().enumerate() {
        let at = &mut next[place(operation)];
        order[*at as usize] = index as u32;
        *at += 1;
    }
    order
}

impl Strategy for ReverseAggressive {
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>) {
        self.now = now;
        if round.cursor() >= self.plan_due {
            self.make_plan(now, round);
        }
        let mut decided = false;
        for disk in 0..self.queues.len() {
            let mut room = match self.setting.replay {
                Replay::Mirror => u32::MAX,
                Replay::Released if round.is_idle(disk) => self.setting.forward_batch_size,
                Replay::Released => 0,
            };
            while room > 0 {
                let Some(index) = self.ready(disk, now, round.cursor()) else { break };
                let Some(fetched) = self.carry_out(index, round) else { break };
                self.queues[disk].pop_front();
                self.note_release(disk);
                self.pending[self.operations[index as usize].block.index()] -= 1;
                room -= u32::from(fetched);
                decided |= fetched;
            }
        }
        // Off the plan, the process might wait for an operation that waits for the process; this breaks the deadlock.
        if !decided && (0..self.queues.len()).all(|disk| round.is_idle(disk)) {
            fetch_within(0, round);
        }
    }

    fn decides(&self, knowledge: &Knowledge, outstanding: &[u32]) -> bool {
        let cursor = knowledge.residents().cursor();
        if cursor >= self.plan_due || self.setting.replay == Replay::Mirror {
            return true;
        }
        let mut disks = self.releases.iter().zip(outstanding);
        disks.any(|(release, outstanding)| *outstanding == 0 && *release <= cursor)
            || (outstanding.iter().all(|outstanding| *outstanding == 0) && misses_within(0, knowledge))
    }

    fn promises(&self, _position: Position, block: Block) -> bool {
        self.pending.get(block.index()).is_some_and(|pending| *pending > 0)
    }

    fn wake_at(&self) -> Option<Nanos> {
        if self.setting.replay == Replay::Released {
            return None;
        }
        let heads = self.queues.iter().filter_map(|queue| queue.front());
        heads.map(|index| self.operations[*index as usize].start).filter(|start| *start > self.now).min()
    }
}

//! RAPID Transit: a processor whose process waits prefetches what the program will read, one block per action.
//!
//! Source: D. Kotz and C. S. Ellis, "Prefetching in File Systems for MIMD Multiprocessors" (RAPID Transit), sections 4,
//! 5.1 and 5.4; the minimum lead is from 6.5.
//!
//! ```text
//! a processor is idle and fewer than `buffers` blocks are prefetched and not used yet:
//!     fetch the next absent block of its process's string, from `min_lead` references beyond the cursor on;
//!     if it has none, that of another string (`for_others`): the next one after its own, wrapping around
//!     with `prefetch_for = "critical"`, before all that: of the process that reads most absent blocks before it
//!         synchronises next
//! a prefetch takes the frame of an unused one only if no other is left, and once between two requests
//! irregular portions: nothing beyond the current portion until the next one's first block has been read
//! ```
//!
//! With `predictor` nothing is known in advance: blocks named by a predictor of the registry replace the strings
//! ([`Predicted`](super::Predicted)), one block per action. A wrongly named block would keep its buffer for ever.
//! Therefore it becomes the first victim when it is still unused after the processes have made [`UNUSED_REQUESTS`]
//! requests each on average. Section 4 defers "on-the-fly prediction algorithms"; this one is ours.
//!
//! Without a predictor no prefetch is wrong: a block is fetched only if it will be read, and not while it is resident
//! or in flight. Blocks read without having been prefetched are fetched on demand. Victims are chosen by the
//! replacement, which must spare unused prefetched blocks (`ru-set` does). The order in which other strings are
//! searched is our choice. The host decides when a processor is idle, how long an action takes and what it delays. A
//! processor that runs no process (its number is beyond theirs) serves the processes in turn.
//!
//! `critical` is ours; section 7 leaves open how "to spread benefits more globally over all the threads". A block for
//! the process that is furthest behind shortens the interval; a block for another process only lengthens that process's
//! wait at the barrier (section 4, Figure 2). How far behind a process is, is counted in references from its next
//! absent block to its next synchronisation, so processes that are equally far behind are served in turn. Where
//! synchronisation is known only during the run, and without barriers, the end of the string counts instead. Processes
//! that share one string have one next block, so there is nothing to choose.
//!
//! Cost: amortised constant per event; with `critical` constant per string and action. Not for programs whose future
//! reads are unknown.

use std::collections::VecDeque;

use headstart_types::{keys, Block, Chosen, Disk, KeyError, KeyTable, Nanos, Position, TypedKeys};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ahead, Predicted};
use crate::readahead::ReadAheadContext;
use crate::row::{Context, Family, PolicyRow};
use crate::{BlockMap, Event, Fetch, Policy, Replacement, RequestPolicy, SeparateReadAhead, View};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "rapid-transit",
    summary: "idle processors prefetch what the processes of a parallel program will read",
    source: "Kotz and Ellis, RAPID Transit, sections 5.1 and 5.4",
    keys: KeyTable::of::<RapidTransitKeys>(),
    default_replacement: Some("ru-set"),
    family: Family::Parallel(&build),
};

keys! {
    /// Keys of `rapid-transit`.
    pub struct RapidTransitKeys {
        /// Maximum number of blocks that are prefetched and not used yet. 0: one per process.
        pub buffers: u32 = 0,
        /// Minimum distance of a prefetched block from its string's cursor, in references.
        pub min_lead: Position = 0,
        /// Whether a processor also prefetches blocks that only other processes will read.
        pub for_others: bool = true,
        /// Which process's blocks are prefetched first.
        pub prefetch_for: PrefetchFor = PrefetchFor::Own,
        /// The predictor of the blocks that are prefetched, and the bytes of a block; `None`: they are known in advance.
        #[serde(skip)]
        pub predictor: Option<(Chosen<PolicyRow>, u64)> = None,
    }
}

/// Which process's blocks an idle processor prefetches first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrefetchFor {
    /// Blocks of its own process, then those of the other processes in order of their numbers.
    Own,
    /// Blocks of the process with the most references between its next absent block and its next synchronisation.
    Critical,
}

/// Requests per process, on average, after which an unused block named by a predictor gives up its buffer. A guess.
const UNUSED_REQUESTS: u64 = 10;

fn build(keys: &TypedKeys, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
    let keys: &RapidTransitKeys = keys.get();
    let Some(program) = context.program.clone() else {
        let problem = "rapid-transit needs to know what the processes of a parallel program will read";
        return Err(KeyError::new("name", problem, "[process] with a pattern, or another policy"));
    };
    let Chosen { row: replacement, keys: replacement_keys } = &context.replacement;
    if replacement.hinted {
        let problem = format!("{} cannot be used with rapid-transit, which prefetches", replacement.name);
        return Err(KeyError::new("replacement", problem, "a replacement without hints"));
    }
    let replacement = (replacement.build)(replacement_keys, context).map_err(|error| error.within("replacement"))?;
    let buffers = if keys.buffers == 0 { program.string_of.len() as u32 } else { keys.buffers };
    let setting =
        RapidTransitSetting { buffers, min_lead: keys.min_lead, for_others: keys.for_others, first: keys.prefetch_for };
    let asking = RequestPolicy::new(Box::new(SeparateReadAhead(replacement, None)), context.frames);
    let processes = program.string_of.len();
    let knowledge = match &keys.predictor {
        None => Knowledge::Strings(Ahead::new(program, setting.min_lead)),
        Some((predictor, block_bytes)) => {
            let (block_bytes, frames) = (*block_bytes, context.frames);
            let context = ReadAheadContext { block_bytes, frames, drive: None, future: None };
            let predictor = predictor.row.build_read_ahead(&predictor.keys, &context);
            let predictor = predictor.map_err(|error| error.within("predictor"))?;
            Knowledge::Predicted(Box::new(Predicted::new(predictor, processes, frames)))
        }
    };
    Ok(Box::new(RapidTransit::new(asking, knowledge, setting)))
}

/// How it is known what processes will read.
#[expect(clippy::large_enum_variant, reason = "a level has one")]
pub(super) enum Knowledge {
    /// From their reference strings.
    Strings(Ahead),
    /// From their past reads, through a predictor.
    Predicted(Box<Predicted>),
}

impl Knowledge {
    fn processes(&self) -> usize {
        match self {
            Knowledge::Strings(ahead) => ahead.processes(),
            Knowledge::Predicted(predicted) => predicted.processes(),
        }
    }

    #[inline]
    fn may_have(&self, process: Option<u32>) -> bool {
        match self {
            Knowledge::Strings(ahead) => ahead.may_have(process),
            Knowledge::Predicted(predicted) => predicted.may_have(process),
        }
    }

    /// The next block that the processor of `process` should fetch.
    fn next(&mut self, process: u32, setting: RapidTransitSetting, view: &View<'_>) -> Option<Block> {
        let absent = |block| view.state(block).is_absent();
        match self {
            Knowledge::Predicted(predicted) => predicted.next(process, setting.for_others, absent),
            Knowledge::Strings(ahead) => {
                let critical = match setting.first {
                    PrefetchFor::Own => None,
                    PrefetchFor::Critical => ahead.most_behind(process, absent),
                };
                critical.or_else(|| ahead.next(process, setting.for_others, absent))
            }
        }
    }

    fn fetched(&mut self, now: Nanos, disk: Disk, block: Block, space: &dyn BlockMap) {
        if let Knowledge::Predicted(predicted) = self {
            predicted.fetched(now, disk, block, space);
        }
    }
}

/// Parameters of RAPID Transit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RapidTransitSetting {
    /// Maximum number of prefetched and unused blocks, in flight or resident.
    pub buffers: u32,
    /// Minimum number of references from a string's cursor to a prefetched block; 0 allows the next one.
    pub min_lead: Position,
    /// Whether a processor prefetches for strings that its own process does not read.
    pub for_others: bool,
    /// Which process's blocks come first; [`PrefetchFor::Critical`] only with `for_others`.
    pub first: PrefetchFor,
}

/// The RAPID Transit policy.
pub struct RapidTransit {
    /// Handles demand fetching.
    asking: RequestPolicy<SeparateReadAhead<dyn Replacement>>,
    knowledge: Knowledge,
    setting: RapidTransitSetting,
    /// For each block: whether it was prefetched and not requested since.
    unused: Vec<bool>,
    unused_count: u32,
    /// Whether the last prefetch found no frame and nothing has happened since.
    starved: bool,
    /// Whether a prefetch has taken the frame of an unused one and nothing has been requested since. Without this limit
    /// prefetches could displace each other endlessly where actions and fetches take no time.
    crowded: bool,
    /// The process that the next action of a processor without a process starts with.
    turn: u32,
    /// With a predictor: prefetched blocks, each with the request count at that time.
    prefetched: VecDeque<(Block, u64)>,
    /// Number of requests of all processes.
    requests: u64,
}

impl RapidTransit {
    pub(super) fn new(
        asking: RequestPolicy<SeparateReadAhead<dyn Replacement>>,
        knowledge: Knowledge,
        setting: RapidTransitSetting,
    ) -> Self {
        let (unused, prefetched) = (Vec::new(), VecDeque::new());
        let (starved, crowded) = (false, false);
        Self { asking, knowledge, setting, unused, unused_count: 0, starved, crowded, turn: 0, prefetched, requests: 0 }
    }

    fn used(&mut self, block: Block) {
        self.unused_count -= u32::from(std::mem::take(&mut self.unused[block.index()]));
    }

    fn gone(&mut self, block: Block, place: Option<(u32, u64)>) {
        let unused = self.unused[block.index()];
        self.used(block);
        match (&mut self.knowledge, place) {
            (Knowledge::Strings(ahead), _) => ahead.evicted(block),
            (Knowledge::Predicted(predicted), Some(place)) => predicted.evicted(place, unused),
            (Knowledge::Predicted(_), None) => {}
        }
    }

    /// Makes wrongly named blocks give up their buffers.
    fn give_up(&mut self, view: &View<'_>) {
        let most = UNUSED_REQUESTS * self.knowledge.processes() as u64;
        while let Some((block, at)) = self.prefetched.front().copied() {
            if self.unused[block.index()] {
                if self.requests - at < most || !view.state(block).is_resident() {
                    return;
                }
                self.used(block);
                self.asking.first_victim(block);
            }
            self.prefetched.pop_front();
        }
    }

    /// Handles a request that has been looked up.
    fn asked(&mut self, now: Nanos, asked: &crate::readahead::Asked, position: Position, view: &View<'_>) {
        self.requests += 1;
        view.asked.iter().for_each(|block| self.used(*block));
        match &mut self.knowledge {
            Knowledge::Strings(ahead) => ahead.taken(position, asked.count),
            Knowledge::Predicted(predicted) => {
                predicted.asked(now, asked, view);
                self.give_up(view);
            }
        }
    }

    /// Performs an action of the processor of `process`: at most one fetch.
    fn prefetch(&mut self, process: u32, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        let processes = self.knowledge.processes() as u32;
        if !self.could_prefetch(None) || processes == 0 {
            return;
        }
        let has_none = process >= processes;
        let process = if has_none { self.turn } else { process };
        let Some(block) = self.knowledge.next(process, self.setting, view) else { return };
        if self.asking.prefetch(block, view, fetches) {
            if block.index() >= self.unused.len() {
                self.unused.resize(block.index() + 1, false);
            }
            self.unused[block.index()] = true;
            self.unused_count += 1;
            if has_none {
                self.turn = (self.turn + 1) % processes;
            }
            if let Knowledge::Predicted(predicted) = &mut self.knowledge {
                predicted.forget(block);
                self.prefetched.push_back((block, self.requests));
            }
        } else {
            self.starved = true;
        }
    }
}

impl Policy for RapidTransit {
    fn on(&mut self, now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        let before = fetches.len();
        if let Event::Idle { process } = event {
            self.prefetch(process, view, fetches);
        } else {
            self.starved = false;
            self.asking.on(now, event, view, fetches);
        }
        if let Event::Asked { asked, position, .. } = event {
            self.crowded = false;
            self.asked(now, &asked, position, view);
        }
        for victim in fetches[before..].iter().filter_map(|fetch| fetch.victim) {
            self.crowded |= matches!(event, Event::Idle { .. }) && self.unused[victim.index()];
            self.gone(victim, Some(view.space.place(victim)));
        }
        if let Event::Arrived { block, disk, service: Some(_) } = event {
            self.knowledge.fetched(now, disk, block, view.space);
        }
    }

    fn grow(&mut self, blocks: usize) {
        self.asking.grow(blocks);
        if blocks > self.unused.len() {
            self.unused.resize(blocks, false);
        }
    }

    fn warm(&self, blocks: &[Block]) {
        self.asking.warm(blocks);
    }

    fn decides(&self, outstanding: &[u32]) -> bool {
        self.asking.decides(outstanding)
    }

    fn takes_requests(&self) -> bool {
        true
    }

    fn first_victim(&mut self, block: Block) {
        self.asking.first_victim(block);
    }

    fn removed(&mut self, block: Block) {
        self.asking.removed(block);
        self.gone(block, None);
    }

    fn could_prefetch(&self, process: Option<u32>) -> bool {
        let of = process.filter(|_| !self.setting.for_others);
        !self.starved && !self.crowded && self.unused_count < self.setting.buffers && self.knowledge.may_have(of)
    }
}

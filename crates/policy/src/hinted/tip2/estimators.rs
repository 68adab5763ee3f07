//! The independent estimators, and the allocator that compares what they say.
//!
//! A resident block is in up to three places: in the LRU cache, if its last reference came without a hint; in a process's
//! hints, if that process will reference it; among the spent, if neither makes anything of it. The spent are checked when
//! one is taken: a block may have been hinted since.

use std::sync::Arc;

use headstart_types::{Block, Position, NEVER};

use super::distances::Distances;
use super::worth::Worth;
use crate::hinted::Knowledge;
use crate::lists::Lists;
use crate::row::Context;
use crate::{Disclosure, Hints, View};

/// References by which rates are told; counts are halved then.
const HISTORY: u64 = 1024;
/// Blocks of the LRU cache's end that are looked at for one that no hint makes worth more.
const LOOKED_AT: usize = 4;

/// One process's hints.
struct Stream {
    knowledge: Knowledge,
    /// Its positions in the hints of all, ascending; `None` where all hints are one string.
    positions: Option<Vec<Position>>,
    /// References that its hints have foretold, lately.
    references: u64,
}

impl Stream {
    /// Which of its references the one at `position` of all is; `NEVER` if none.
    fn own(&self, position: Position) -> Position {
        let Some(positions) = &self.positions else { return position };
        positions.binary_search(&position).map_or(NEVER, |at| at as Position)
    }

    fn ahead(&self, position: Position) -> Position {
        position - self.knowledge.residents().cursor()
    }
}

/// What a fetched block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A process has foretold it.
    Hinted,
    /// None has.
    Unhinted,
}

/// A block to be prefetched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// Which.
    pub block: Block,
    /// References of its process until it is needed.
    pub ahead: Position,
    /// Nanoseconds that a buffer for it saves for each reference of any process.
    pub gain: f64,
}

/// A buffer that could be taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    /// What is in it.
    pub block: Block,
    /// Nanoseconds that it saves for each reference of any process.
    pub worth: f64,
    /// References until a process that has foretold it needs it; `NEVER` if none.
    pub ahead: Position,
    /// It is in the LRU cache.
    pub recent: bool,
}

pub(super) struct Estimators {
    pub worth: Worth,
    streams: Vec<Stream>,
    distances: Distances,
    /// The LRU cache: resident blocks whose last reference was unhinted, least recently used first.
    recent: Lists<1>,
    /// Resident blocks that no estimator values, in the order in which that became so.
    spent: Lists<1>,
    /// References without a hint, lately.
    unhinted: u64,
    /// Frames of the LRU cache, of fixed partitions.
    quota: Option<usize>,
}

impl Estimators {
    pub fn new(context: &Context, worth: Worth, quota: Option<usize>) -> Self {
        let blocks = context.disk_of.len();
        let mut estimators = Self {
            worth,
            streams: streams(context),
            distances: Distances::new(context.frames, blocks),
            recent: Lists::new(),
            spent: Lists::new(),
            unhinted: 1,
            quota,
        };
        estimators.grow(blocks);
        for block in &context.initial {
            estimators.distances.place(*block);
            estimators.recent.push_back(0, *block);
        }
        estimators
    }

    pub fn grow(&mut self, blocks: usize) {
        self.distances.grow(blocks);
        self.recent.grow(blocks);
        self.spent.grow(blocks);
    }

    /// The share of all references lately that `references` are.
    fn rate(&self, references: u64) -> f64 {
        let all = self.unhinted + self.streams.iter().map(|stream| stream.references).sum::<u64>();
        references as f64 / all as f64
    }

    /// Whether some process has foretold a reference of `block`.
    pub fn is_hinted(&self, block: Block) -> bool {
        self.streams.iter().any(|stream| stream.knowledge.residents().next_use(block) != NEVER)
    }

    /// Of each process's first missing block within the horizon, the one that gains most; one that its process asks for
    /// next comes before all.
    pub fn best_prefetch(&self) -> Option<Wish> {
        let mut best: Option<Wish> = None;
        for stream in &self.streams {
            let first = stream.knowledge.missing().first();
            if first == NEVER || stream.ahead(first) > self.worth.horizon {
                continue;
            }
            let ahead = stream.ahead(first);
            let gain = match ahead {
                0 => f64::INFINITY,
                _ => self.rate(stream.references) * self.worth.benefit(ahead),
            };
            if gain > best.map_or(0.0, |best| best.gain) {
                best = Some(Wish { block: stream.knowledge.missing().block_at(first), ahead, gain });
            }
        }
        best
    }

    /// Whether a prefetch is worth the buffer. What a process references next is not taken before it is: else two processes
    /// could take it from each other in turn. Fixed partitions know no worth: the LRU cache gives up what it has beyond its
    /// share, and no hinted block goes that is needed sooner.
    pub fn gains(&self, wish: &Wish, buffer: &Buffer) -> bool {
        if wish.ahead == 0 || buffer.ahead == 0 {
            return buffer.ahead > 0;
        }
        match self.quota {
            Some(quota) if buffer.recent => self.recent.len(0) > quota,
            Some(_) => buffer.ahead > wish.ahead.max(self.worth.horizon),
            None => wish.gain > buffer.worth,
        }
    }

    /// The buffer that is to be taken for `use_`; `None` where every block is pinned or in flight.
    pub fn least_valuable(&self, use_: Use, view: &View<'_>) -> Option<Buffer> {
        if let Some(quota) = self.quota {
            let held = self.recent.len(0) + usize::from(use_ == Use::Unhinted);
            let (first, second) = (self.oldest(view), self.spent(view).or_else(|| self.furthest(view)));
            return if held > quota { first.or(second) } else { second.or(first) };
        }
        let mut least = self.spent(view);
        let mut consider = |buffer: Option<Buffer>| {
            if let Some(buffer) = buffer.filter(|buffer| least.is_none_or(|least| buffer.worth < least.worth)) {
                least = Some(buffer);
            }
        };
        let tail = self.recent.iter(0).filter(|block| view.state(*block).is_evictable());
        tail.take(LOOKED_AT).for_each(|block| consider(Some(self.valued(block))));
        let furthest = self.streams.iter().map(|stream| stream.knowledge.residents().furthest_known(view));
        furthest.for_each(|found| consider(found.map(|(block, _)| self.valued(block))));
        least
    }

    /// The first of the spent.
    fn spent(&self, view: &View<'_>) -> Option<Buffer> {
        let is_spent = |block: &Block| view.state(*block).is_evictable() && !self.is_hinted(*block);
        self.spent.iter(0).find(is_spent).map(|block| Buffer { block, worth: 0.0, ahead: NEVER, recent: false })
    }

    /// The least recently used of the LRU cache.
    fn oldest(&self, view: &View<'_>) -> Option<Buffer> {
        let block = self.recent.iter(0).find(|block| view.state(*block).is_evictable())?;
        Some(self.valued(block))
    }

    /// The hinted block that is needed last.
    fn furthest(&self, view: &View<'_>) -> Option<Buffer> {
        let known = self.streams.iter().filter_map(|stream| stream.knowledge.residents().furthest_known(view));
        known.map(|(block, _)| self.valued(block)).max_by_key(|buffer| buffer.ahead)
    }

    /// What the estimators make of a resident block: the most that any of them does.
    fn valued(&self, block: Block) -> Buffer {
        let recent = self.recent.list_of(block).is_some();
        let mut buffer = Buffer { block, worth: 0.0, ahead: NEVER, recent };
        if recent {
            let marginal_hits = self.distances.marginal_hits(block);
            buffer.worth = self.rate(self.unhinted) * self.worth.shrinking(marginal_hits);
        }
        for stream in &self.streams {
            let next_use = stream.knowledge.residents().next_use(block);
            if next_use != NEVER {
                let ahead = stream.ahead(next_use);
                buffer.ahead = buffer.ahead.min(ahead);
                buffer.worth = buffer.worth.max(self.rate(stream.references) * self.worth.ejection(ahead));
            }
        }
        buffer
    }

    /// The reference at `position` of all has been served with `block`.
    pub fn served(&mut self, position: Position, block: Block, view: &View<'_>) {
        let mut foretold = false;
        for at in 0..self.streams.len() {
            let stream = &mut self.streams[at];
            let own = stream.own(position);
            if own == NEVER {
                continue;
            }
            let passed = stream.knowledge.residents().wrongly_expected(own, block);
            if stream.knowledge.expects(own, block) {
                foretold = true;
                stream.references += 1;
            }
            stream.knowledge.served(own, block, view);
            if let Some(passed) = passed.filter(|passed| view.state(*passed).is_resident()) {
                self.settle(passed);
            }
        }
        if foretold {
            self.settle(block);
        } else {
            self.referred(block, view);
        }
        self.forget();
    }

    /// An unhinted reference.
    fn referred(&mut self, block: Block, view: &View<'_>) {
        self.unhinted += 1;
        self.spent.remove(block);
        self.recent.move_to_back(0, block);
        // What falls off the end of all depths may be in the cache still, kept for its hints.
        if let Some(oldest) = self.distances.refer(block).filter(|oldest| view.state(*oldest).is_resident()) {
            self.recent.remove(oldest);
            self.settle(oldest);
        }
    }

    /// Halves the counts behind the rates.
    fn forget(&mut self) {
        if self.unhinted + self.streams.iter().map(|stream| stream.references).sum::<u64>() >= HISTORY {
            self.unhinted = (self.unhinted / 2).max(1);
            self.streams.iter_mut().for_each(|stream| stream.references = (stream.references / 2).max(1));
        }
    }

    /// The resident `block` joins the spent if no estimator values it.
    fn settle(&mut self, block: Block) {
        if self.recent.list_of(block).is_none() && self.spent.list_of(block).is_none() && !self.is_hinted(block) {
            self.spent.push_back(0, block);
        }
    }

    /// The reference of `block` at `position` of all will not come.
    pub fn skipped(&mut self, position: Position, block: Block, view: &View<'_>) {
        for stream in &mut self.streams {
            let own = stream.own(position);
            if own != NEVER {
                stream.knowledge.skipped(own, block, view);
            }
        }
        if view.state(block).is_resident() {
            self.settle(block);
        }
    }

    /// A fetch of `block` is issued.
    pub fn issued(&mut self, block: Block) {
        self.streams.iter_mut().for_each(|stream| stream.knowledge.fetch(block));
    }

    /// The resident `block` is evicted.
    pub fn evicted(&mut self, block: Block) {
        self.streams.iter_mut().for_each(|stream| stream.knowledge.evict(block));
        self.recent.remove(block);
        self.spent.remove(block);
    }

    /// The fetch of `block` has ended.
    pub fn arrived(&mut self, block: Block) {
        self.streams.iter_mut().for_each(|stream| stream.knowledge.arrived(block));
        self.settle(block);
    }
}

/// The hints by process.
fn streams(context: &Context) -> Vec<Stream> {
    let all = context.hints_of_row();
    let stream = |hints: Arc<Hints>, positions| Stream {
        knowledge: Knowledge::new(hints, &context.initial, context.disk_of.clone(), context.disks),
        positions,
        references: 1,
    };
    if context.disclosed_by.is_empty() {
        return vec![stream(all, None)];
    }
    let of_process = |positions: &Vec<Position>| {
        let blocks = positions.iter().map(|at| all.blocks[*at as usize]).collect();
        let disclosure = match &all.disclosure {
            Disclosure::Subset(disclosed) => {
                Disclosure::Subset(positions.iter().map(|at| disclosed[*at as usize]).collect())
            }
            whole => whole.clone(),
        };
        stream(Arc::new(Hints { blocks, disclosure }), Some(positions.clone()))
    };
    context.disclosed_by.iter().filter(|positions| !positions.is_empty()).map(of_process).collect()
}

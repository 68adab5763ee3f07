//! The independent estimators, and the allocator that compares their values.
//!
//! A resident block is in up to three places: in the LRU cache if its last reference was unhinted; in a process's hints
//! if that process will reference it; in the spent list if neither values it. Spent blocks are checked when one is
//! taken, because they may have been hinted since.

use std::sync::Arc;

use headstart_types::{Block, Position, NEVER};

use super::distances::Distances;
use super::worth::Worth;
use crate::hinted::Knowledge;
use crate::lists::Lists;
use crate::row::Context;
use crate::{Disclosure, Hints, View};

/// References after which the counts behind the rates are halved.
const HISTORY: u64 = 1024;
/// Blocks at the LRU end that are examined for one that no hint makes more valuable.
const LOOKED_AT: usize = 4;

/// One process's hints.
struct Stream {
    knowledge: Knowledge,
    /// Its positions in the combined hints, ascending; `None` if all hints are one string.
    positions: Option<Vec<Position>>,
    /// Recent references that its hints predicted.
    references: u64,
}

impl Stream {
    /// The index of combined position `position` among its own references; `NEVER` if it is not one of them.
    fn own(&self, position: Position) -> Position {
        let Some(positions) = &self.positions else { return position };
        positions.binary_search(&position).map_or(NEVER, |at| at as Position)
    }

    fn ahead(&self, position: Position) -> Position {
        position - self.knowledge.residents().cursor()
    }
}

/// The purpose of a fetched block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Some process has hinted it.
    Hinted,
    /// No process has.
    Unhinted,
}

/// A block to prefetch.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrefetchCandidate {
    /// The block.
    pub block: Block,
    /// References of its process until the block is needed.
    pub ahead: Position,
    /// Nanoseconds that a buffer for it saves per reference of any process.
    pub gain: f64,
}

/// A buffer that may be taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    /// Its block.
    pub block: Block,
    /// Nanoseconds that it saves per reference of any process.
    pub worth: f64,
    /// References until a process that has hinted the block needs it; `NEVER` if none has.
    pub ahead: Position,
    /// Whether it is in the LRU cache.
    pub recent: bool,
}

pub(super) struct Estimators {
    pub worth: Worth,
    streams: Vec<Stream>,
    distances: Distances,
    /// The LRU cache: resident blocks whose last reference was unhinted, least recently used first.
    recent: Lists<1>,
    /// Resident blocks that no estimator values, in the order in which they became worthless.
    spent: Lists<1>,
    /// Recent unhinted references, at least 1.
    unhinted: u64,
    /// With fixed partitions: frames of the LRU cache.
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

    /// The share of all recent references that `references` makes up.
    fn rate(&self, references: u64) -> f64 {
        let all = self.unhinted + self.streams.iter().map(|stream| stream.references).sum::<u64>();
        references as f64 / all as f64
    }

    /// Whether some process has hinted a reference of `block`.
    pub fn is_hinted(&self, block: Block) -> bool {
        self.streams.iter().any(|stream| stream.knowledge.residents().next_use(block) != NEVER)
    }

    /// The most valuable of each process's first missing block within the horizon. A block that its process needs next
    /// precedes all others.
    pub fn best_prefetch(&self) -> Option<PrefetchCandidate> {
        let mut best: Option<PrefetchCandidate> = None;
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
                best = Some(PrefetchCandidate { block: stream.knowledge.missing().block_at(first), ahead, gain });
            }
        }
        best
    }

    /// Whether a prefetch is worth the buffer. A block that its process references next is never taken, or two
    /// processes could take it from each other in turn. With fixed partitions values do not matter: the LRU cache gives
    /// up what exceeds its share, and no hinted block is evicted that is needed sooner.
    pub fn gains(&self, candidate: &PrefetchCandidate, buffer: &Buffer) -> bool {
        if candidate.ahead == 0 || buffer.ahead == 0 {
            return buffer.ahead > 0;
        }
        match self.quota {
            Some(quota) if buffer.recent => self.recent.len(0) > quota,
            Some(_) => buffer.ahead > candidate.ahead.max(self.worth.horizon),
            None => candidate.gain > buffer.worth,
        }
    }

    /// The buffer to take for `use_`; `None` if every block is pinned or in flight.
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

    /// The first evictable spent block.
    fn spent(&self, view: &View<'_>) -> Option<Buffer> {
        let is_spent = |block: &Block| view.state(*block).is_evictable() && !self.is_hinted(*block);
        self.spent.iter(0).find(is_spent).map(|block| Buffer { block, worth: 0.0, ahead: NEVER, recent: false })
    }

    /// The least recently used evictable block of the LRU cache.
    fn oldest(&self, view: &View<'_>) -> Option<Buffer> {
        let block = self.recent.iter(0).find(|block| view.state(*block).is_evictable())?;
        Some(self.valued(block))
    }

    /// The evictable hinted block that is needed last.
    fn furthest(&self, view: &View<'_>) -> Option<Buffer> {
        let known = self.streams.iter().filter_map(|stream| stream.knowledge.residents().furthest_known(view));
        known.map(|(block, _)| self.valued(block)).max_by_key(|buffer| buffer.ahead)
    }

    /// The value of a resident block: the maximum over the estimators.
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

    /// Called when the reference at `position` of the combined hints has been served with `block`.
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

    /// Records an unhinted reference.
    fn referred(&mut self, block: Block, view: &View<'_>) {
        self.unhinted += 1;
        self.spent.remove(block);
        self.recent.move_to_back(0, block);
        // A block that drops off the list may still be cached because of its hints.
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

    /// Moves the resident `block` to the spent list if no estimator values it.
    fn settle(&mut self, block: Block) {
        if self.recent.list_of(block).is_none() && self.spent.list_of(block).is_none() && !self.is_hinted(block) {
            self.spent.push_back(0, block);
        }
    }

    /// Called when the reference of `block` at combined position `position` will not happen.
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

    /// Called when a fetch of `block` is issued.
    pub fn issued(&mut self, block: Block) {
        self.streams.iter_mut().for_each(|stream| stream.knowledge.fetch(block));
    }

    /// Called when the resident `block` is evicted.
    pub fn evicted(&mut self, block: Block) {
        self.streams.iter_mut().for_each(|stream| stream.knowledge.evict(block));
        self.recent.remove(block);
        self.spent.remove(block);
    }

    /// Called when the fetch of `block` has ended.
    pub fn arrived(&mut self, block: Block) {
        self.streams.iter_mut().for_each(|stream| stream.knowledge.arrived(block));
        self.settle(block);
    }
}

/// The hints, split by process.
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

//! Policies that handle whole requests: a replacement and, beside or inside it, a read-ahead.
//!
//! The absent blocks of a request are fetched at once, followed by what the read-ahead adds. A prefetch that finds no
//! frame is dropped; a demand fetch waits for one. Without a read-ahead this is demand fetching per request, which is
//! what a level below another one does.
//!
//! Cost: that of the replacement and of the read-ahead, plus one state lookup per named block.

use headstart_types::{Block, Nanos};

use crate::lists::Lists;
use crate::named::Named;
use crate::readahead::{Asked, Cached, Found, Integrated, Run, NO_CLIENT};
use crate::{Event, Fetch, Policy, View};

/// A replacement and a read-ahead as a [`Policy`].
pub struct RequestPolicy<P: Integrated + ?Sized = dyn Integrated> {
    parts: Box<P>,
    frames: u32,
    /// See [`ReadAhead::one_by_one`].
    one_by_one: bool,
    /// With `one_by_one`: spared blocks, each with the block that needed its frame. A spared block counts as slightly
    /// older than that block.
    spared: Vec<(Block, Block)>,
    /// Missed blocks that found no frame because all are in flight or pinned; retried at every decision, the oldest first.
    /// A block leaves as soon as it is fetched, for whichever request.
    owed: Lists<1>,
    /// Blocks that a coordinator has marked as first victims. The last one goes first. None has been requested since it
    /// was marked.
    first_victims: Lists<1>,
    prefetch: Vec<Run>,
    named: Named,
}

/// Frames and fetches of the current decision.
struct Round<'a> {
    free: u32,
    view: &'a View<'a>,
    fetches: &'a mut Vec<Fetch>,
}

impl<P: Integrated + ?Sized> RequestPolicy<P> {
    /// A policy for a cache of `frames` frames.
    #[must_use]
    pub fn new(parts: Box<P>, frames: u32) -> Self {
        Self {
            one_by_one: parts.one_by_one(),
            spared: Vec::new(),
            parts,
            frames,
            owed: Lists::new(),
            first_victims: Lists::new(),
            prefetch: Vec::new(),
            named: Named::default(),
        }
    }

    /// Whether `block` may be fetched: it is absent and not yet fetched in this round.
    fn lacks(&mut self, block: Block, round: &Round<'_>) -> bool {
        let is_victim = || round.fetches.iter().any(|fetch| fetch.victim == Some(block));
        if !(round.view.state(block).is_absent() || self.one_by_one && is_victim()) {
            return false;
        }
        self.named.follow(round.fetches);
        !self.named.holds(block)
    }

    /// The victim for `incoming`: first what a coordinator has marked, then the replacement's choice, unless the
    /// read-ahead spares it.
    fn victim(&mut self, incoming: Block, round: &Round<'_>) -> Option<Block> {
        while let Some(block) = self.first_victims.back(0) {
            self.first_victims.remove(block);
            if round.view.state(block).is_evictable() {
                self.parts.removed(block);
                return Some(block);
            }
        }
        loop {
            let victim = self.parts.victim(incoming, round.view)?;
            if !round.view.state(victim).is_unseen_prefetch() {
                return Some(victim);
            }
            let (file, index) = round.view.space.place(victim);
            if !self.parts.spares(file, index) {
                return Some(victim);
            }
            self.parts.inserted(victim);
            if self.one_by_one {
                self.spared.push((incoming, victim));
            }
        }
    }

    /// Called before `incoming` is inserted: re-inserts the blocks spared for it, so that they count as new.
    fn renew_spared(&mut self, incoming: Block, view: &View<'_>) {
        while let Some(at) = self.spared.iter().position(|(for_block, _)| *for_block == incoming) {
            let (_, block) = self.spared.remove(at);
            let state = view.state(block);
            if state.is_unseen_prefetch() && state.is_evictable() {
                self.parts.removed(block);
                self.parts.inserted(block);
            }
        }
    }

    /// Fetches `block` into a free frame or in place of a victim; false if there is neither.
    fn fetch(&mut self, block: Block, (file, index): (u32, u64), round: &mut Round<'_>) -> bool {
        self.parts.placed(block, file, index);
        let mut victim = None;
        if round.free > 0 {
            round.free -= 1;
        } else {
            let Some(chosen) = self.victim(block, round) else { return false };
            let unused = round.view.state(chosen).is_unseen_prefetch();
            let (file, index) = round.view.space.place(chosen);
            self.parts.evicted(file, index, unused);
            victim = Some(chosen);
        }
        remove(&mut self.owed, block);
        round.fetches.push(Fetch { block, victim });
        true
    }

    /// Prefetches `block`, which is absent; returns false and does nothing if no frame is available.
    pub(crate) fn prefetch(&mut self, block: Block, view: &View<'_>, fetches: &mut Vec<Fetch>) -> bool {
        self.named.restart(fetches);
        let mut round = Round { free: view.free, view, fetches };
        self.owed.len(0) == 0 && self.fetch(block, view.space.place(block), &mut round)
    }

    /// Fetches what a request misses, then what the read-ahead adds. The read-ahead does not see writes.
    fn asked(&mut self, now: Nanos, asked: &Asked, write: bool, round: &mut Round<'_>) {
        let view = round.view;
        for ((index, block), found) in (asked.first..).zip(view.asked.iter().copied()).zip(view.found) {
            if matches!(found, Found::Ready | Found::ReadyPrefetched) {
                continue;
            }
            if asked.client != NO_CLIENT {
                self.parts.awaited_by(asked.client, block);
            }
            if *found == Found::Absent && self.lacks(block, round) && !self.fetch(block, (asked.file, index), round) {
                self.owed.grow(block.index() + 1);
                if self.owed.list_of(block).is_none() {
                    self.owed.push_back(0, block);
                }
            }
        }
        if write {
            return;
        }
        let mut prefetch = std::mem::take(&mut self.prefetch);
        prefetch.clear();
        let cached = CachedIn { view, frames: self.frames };
        self.parts.asked(now, asked, view.found, &cached, &mut prefetch);
        for run in &prefetch {
            self.prefetch_run(run, round);
        }
        self.prefetch = prefetch;
    }

    /// Fetches the blocks of `run` that are neither cached nor in flight, up to the end of the file and as frames
    /// allow. Does nothing while a demand fetch waits for a frame.
    fn prefetch_run(&mut self, run: &Run, round: &mut Round<'_>) {
        if self.owed.len(0) > 0 {
            return;
        }
        for index in run.first..run.end() {
            let Some(block) = round.view.space.block(run.file, index) else { return };
            if self.lacks(block, round) && !self.fetch(block, (run.file, index), round) {
                return;
            }
        }
    }

    /// Fetches the blocks that the host expects to be requested, as frames allow. Does nothing while a demand fetch
    /// waits for a frame.
    fn expected(&mut self, round: &mut Round<'_>) {
        let view = round.view;
        for block in view.asked.iter().copied() {
            let has_frame = self.owed.len(0) == 0
                && (!self.lacks(block, round) || self.fetch(block, view.space.place(block), round));
            if !has_frame {
                return;
            }
        }
    }

    /// Fetches the blocks that wait for a frame, as frames allow.
    fn retry_owed(&mut self, round: &mut Round<'_>) {
        while let Some(block) = self.owed.front(0) {
            if self.lacks(block, round) && !self.fetch(block, round.view.space.place(block), round) {
                return;
            }
            self.owed.remove(block);
        }
    }
}

/// Removes `block` from `list`, if it is in it.
fn remove(list: &mut Lists<1>, block: Block) {
    if list.len(0) > 0 {
        list.grow(block.index() + 1);
        list.remove(block);
    }
}

/// The part of a level's state that a read-ahead may see.
pub(crate) struct CachedIn<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) frames: u32,
}

impl Cached for CachedIn<'_> {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.view.space.known(file, index).is_some_and(|block| !self.view.state(block).is_absent())
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.view.space.known(file, index).is_some_and(|block| self.view.state(block).is_resident())
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.view.space.file_blocks(file)
    }

    fn frames(&self) -> u32 {
        self.frames
    }

    fn contiguous(&self, file: u32, index: u64, most: u64) -> u64 {
        self.view.space.contiguous(file, index, most)
    }

    fn mapped_by(&self, file: u32, index: u64) -> Option<(u32, u64)> {
        self.view.space.mapped_by(file, index)
    }

    fn sector(&self, file: u32, index: u64) -> Option<u64> {
        self.view.space.sector(self.view.space.known(file, index)?)
    }
}

impl<P: Integrated + ?Sized> Policy for RequestPolicy<P> {
    fn on(&mut self, now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        // The fetches of the previous decision may have been removed without a lookup in between.
        self.named.restart(fetches);
        let mut round = Round { free: view.free, view, fetches };
        match event {
            Event::Served { position, block, outcome, process, .. } => {
                // Requested again, so it is an ordinary victim from now on.
                remove(&mut self.first_victims, block);
                self.parts.referenced_by(process, position, block, outcome);
            }
            Event::Asked { asked, write, .. } => self.asked(now, &asked, write, &mut round),
            Event::Arrived { block, disk, service } => {
                self.renew_spared(block, view);
                self.parts.inserted(block);
                if service.is_some() {
                    self.parts.fetched(now, disk, block, view.space);
                }
            }
            Event::Decide => self.retry_owed(&mut round),
            Event::Expected => self.expected(&mut round),
            // Prefetches are issued with requests, at no CPU cost.
            Event::Idle { .. } | Event::Skipped { .. } => {}
        }
    }

    fn order_max(&self) -> u32 {
        self.parts.order_max()
    }

    fn grow(&mut self, blocks: usize) {
        self.parts.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.parts.warm(blocks);
    }

    fn decides(&self, _outstanding: &[u32]) -> bool {
        self.owed.len(0) > 0
    }

    fn takes_requests(&self) -> bool {
        true
    }

    fn first_victim(&mut self, block: Block) {
        self.first_victims.grow(block.index() + 1);
        self.first_victims.move_to_back(0, block);
    }

    fn removed(&mut self, block: Block) {
        remove(&mut self.first_victims, block);
        self.parts.removed(block);
    }

    fn retries(&self, block: Block) -> bool {
        self.owed.len(0) > 0 && self.owed.contains(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::{Disk, Outcome};

    use crate::replacement::Lru;
    use crate::{BlockMap, BlockState, NoSpace, ReadAhead, SeparateReadAhead};

    /// Marks `blocks` blocks as first victims and then requests each again; returns the steps of its list of marks.
    fn steps(blocks: u32) -> u64 {
        let states = vec![BlockState::resident(); blocks as usize];
        let parts = SeparateReadAhead(Box::new(Lru::new(&[], blocks as usize)), None);
        let mut policy = RequestPolicy::new(Box::new(parts), blocks);
        let view = View {
            cursor: 0,
            free: 0,
            blocks: &states,
            outstanding: &[],
            disk_of: &[],
            space: &NoSpace,
            asked: &[],
            found: &[],
        };
        (0..blocks).for_each(|block| policy.first_victim(Block(block)));
        for block in (0..blocks).map(Block) {
            let (outcome, compute) = (Outcome::HitReady, Nanos::ZERO);
            let served = Event::Served { position: 0, block, outcome, compute, process: 0 };
            policy.on(Nanos::ZERO, served, &view, &mut Vec::new());
        }
        assert_eq!(policy.first_victims.len(0), 0);
        policy.first_victims.steps
    }

    #[test]
    fn a_reference_to_a_marked_block_costs_the_same_however_many_are_marked() {
        // One link and one unlink per block. A scan of the marks would take 10,000 times as many steps for 100 times as
        // many blocks.
        assert_eq!((steps(100), steps(10_000)), (200, 20_000));
    }

    #[test]
    fn a_block_that_waited_for_a_frame_is_not_fetched_again_after_another_request_has_had_it() {
        let states = vec![BlockState::ABSENT; 3];
        let mut policy = RequestPolicy::new(Box::new(SeparateReadAhead(Box::new(Lru::new(&[], 3)), None)), 2);
        let mut fetched = |free, event, asked: &[Block]| {
            let view = View {
                cursor: 0,
                free,
                blocks: &states,
                outstanding: &[],
                disk_of: &[],
                space: &NoSpace,
                asked,
                found: &[Found::Absent; 3],
            };
            let mut fetches = Vec::new();
            policy.on(Nanos::ZERO, event, &view, &mut fetches);
            fetches.iter().map(|fetch| fetch.block.0).collect::<Vec<_>>()
        };
        let asked = |first, count| {
            let asked = Asked { file: 0, first, count, client: 0, ends_inside: false };
            Event::Asked { asked, position: 0, write: false }
        };
        // Both frames are in flight: blocks 0 to 2 wait, once each, in the order in which they were first missed.
        assert!(fetched(0, asked(0, 3), &[Block(0), Block(1), Block(2)]).is_empty());
        assert!(fetched(0, asked(0, 1), &[Block(0)]).is_empty());
        // Another request finds a frame for block 1. The block arrives, is used and leaves before the others have frames.
        assert_eq!(fetched(1, asked(1, 1), &[Block(1)]), [1]);
        assert_eq!(fetched(1, Event::Decide, &[]), [0]);
        assert_eq!(fetched(2, Event::Decide, &[]), [2]);
        assert!(fetched(2, Event::Decide, &[]).is_empty());
    }

    /// Names the same long run at each request.
    struct Long(u32);

    impl ReadAhead for Long {
        fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
            prefetch.extend([Run { file: asked.file, first: asked.first, count: self.0 }; 2]);
        }
    }

    /// One file without end; a block's number is its index.
    struct Endless;

    impl BlockMap for Endless {
        fn block(&self, _file: u32, index: u64) -> Option<Block> {
            Some(Block(index as u32))
        }

        fn known(&self, file: u32, index: u64) -> Option<Block> {
            self.block(file, index)
        }

        fn place(&self, block: Block) -> (u32, u64) {
            (0, block.0.into())
        }

        fn file_blocks(&self, _file: u32) -> Option<u64> {
            None
        }

        fn disk(&self, _block: Block) -> Disk {
            Disk(0)
        }

        fn blocks(&self) -> usize {
            usize::MAX
        }
    }

    /// The fetches of one request for which a run of `length` blocks is named twice, and the steps that they take.
    fn fetches_and_steps(length: u32) -> (Vec<Fetch>, usize) {
        let parts = SeparateReadAhead(Box::new(Lru::new(&[], 0)), Some(Box::new(Long(length))));
        let mut policy = RequestPolicy::new(Box::new(parts), length);
        let view = View {
            cursor: 0,
            free: length,
            blocks: &[BlockState::ABSENT],
            outstanding: &[0],
            disk_of: &[Disk(0)],
            space: &Endless,
            asked: &[Block(0)],
            found: &[Found::Absent],
        };
        let asked = Asked { file: 0, first: 0, count: 1, client: 0, ends_inside: false };
        let mut fetches = Vec::new();
        policy.on(Nanos(0), Event::Asked { asked, position: 0, write: false }, &view, &mut fetches);
        (fetches, policy.named.steps.get())
    }

    #[test]
    fn a_block_is_looked_at_a_constant_number_of_times() {
        for length in [1_000, 16_000] {
            let (fetches, steps) = fetches_and_steps(length);
            let blocks: Vec<u32> = fetches.iter().map(|fetch| fetch.block.0).collect();
            assert_eq!(blocks, (0..length).collect::<Vec<_>>(), "each block once");
            // One step per name of a block, and one per fetch; a scan would take the square of that.
            assert!(steps <= 4 * length as usize, "{steps} steps for {length} blocks");
        }
    }
}

//! One round of decisions: the level before the round, and the decisions made so far.

use headstart_types::{Block, Disk, Position, NEVER};

use super::Knowledge;
use crate::{Disclosure, Fetch, View};

/// The destination of a fetched block: a free frame (`None`) or that of a victim.
pub type Frame = Option<Block>;

/// Decisions in progress. Knowledge is updated with each, so that later decisions see earlier ones.
pub struct Round<'a> {
    knowledge: &'a mut Knowledge,
    view: &'a View<'a>,
    fetches: &'a mut Vec<Fetch>,
    /// Free frames left.
    free: u32,
}

impl<'a> Round<'a> {
    pub(super) fn new(knowledge: &'a mut Knowledge, view: &'a View<'a>, fetches: &'a mut Vec<Fetch>) -> Self {
        knowledge.note_free(view.free);
        Self { free: view.free, knowledge, view, fetches }
    }

    /// The level before this round.
    #[inline]
    #[must_use]
    pub fn view(&self) -> &View<'a> {
        self.view
    }

    /// The knowledge, including this round's decisions.
    #[inline]
    #[must_use]
    pub fn knowledge(&self) -> &Knowledge {
        self.knowledge
    }

    #[inline]
    pub(super) fn knowledge_mut(&mut self) -> &mut Knowledge {
        self.knowledge
    }

    /// Position of the next reference that has not been served.
    #[inline]
    #[must_use]
    pub fn cursor(&self) -> Position {
        self.knowledge.residents().cursor()
    }

    /// Whether nothing is outstanding on `disk`, including this round's fetches.
    #[inline]
    #[must_use]
    pub fn is_idle(&self, disk: usize) -> bool {
        let on = |fetch: &Fetch| self.view.disk_of[fetch.block.index()].index() == disk;
        self.view.is_idle(disk) && !self.fetches.iter().any(on)
    }

    /// Whether every reference has been disclosed.
    #[inline]
    pub(super) fn is_all_disclosed(&self) -> bool {
        matches!(self.knowledge.residents().hints().disclosure, Disclosure::All)
    }

    /// Reorders the fetches from index `first` on so that contiguous blocks come together; the sequence of frames stays
    /// as it was. Returns the number of contiguous runs.
    pub(super) fn gather(&mut self, first: usize) -> usize {
        let fetches = &mut self.fetches[first..];
        if fetches.len() < 2 {
            return fetches.len();
        }
        let (disk_of, space) = (self.view.disk_of, self.view.space);
        let place = |(at, fetch): (usize, &Fetch)| {
            let sector = space.sector(fetch.block).unwrap_or(u64::from(fetch.block.0));
            (disk_of[fetch.block.index()], sector, at, fetch.block)
        };
        let mut places: Vec<_> = fetches.iter().enumerate().map(place).collect();
        places.sort_unstable();
        // Runs are ordered by their earliest fetch.
        let adjoins = |one: &(Disk, u64, usize, Block), next: &(Disk, u64, usize, Block)| space.adjoins(one.3, next.3);
        let mut runs: Vec<&[_]> = places.chunk_by(adjoins).collect();
        runs.sort_by_key(|run| run.iter().map(|(_, _, at, _)| *at).min());
        let requests = runs.len();
        let ordered = runs.into_iter().flatten().map(|(_, _, _, block)| *block);
        fetches.iter_mut().zip(ordered).for_each(|(fetch, block)| fetch.block = block);
        requests
    }

    /// The disks of the fetches from index `first` on.
    pub(super) fn disks_since(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        self.fetches[first..].iter().map(|fetch| self.view.disk_of[fetch.block.index()].index())
    }

    /// Number of fetches decided in this round.
    #[inline]
    #[must_use]
    pub fn decided(&self) -> usize {
        self.fetches.len()
    }

    /// Free frames left in this round.
    #[inline]
    #[must_use]
    pub fn free(&self) -> u32 {
        self.free
    }

    /// The furthest next use of an evictable block: `NEVER` with a free frame or a block without a next use.
    #[inline]
    #[must_use]
    pub fn furthest_use(&self) -> Position {
        match self.knowledge.residents().furthest(self.view) {
            _ if self.free > 0 => NEVER,
            Some((_, next_use)) => next_use,
            None => 0,
        }
    }

    /// A free frame, or that of the furthest block if its next use is after `position`.
    #[inline]
    #[must_use]
    pub fn frame_beyond(&self, position: Position) -> Option<Frame> {
        if self.free > 0 {
            return Some(None);
        }
        let residents = self.knowledge.residents();
        if position != NEVER && residents.furthest_use() <= position {
            return None;
        }
        let (victim, next_use) = residents.furthest(self.view)?;
        (next_use == NEVER || next_use > position).then_some(Some(victim))
    }

    /// A free frame, or that of the furthest block even if it is needed soon. `None`: all are in flight or pinned.
    #[inline]
    #[must_use]
    pub fn any_frame(&self) -> Option<Frame> {
        if self.free > 0 {
            return Some(None);
        }
        self.knowledge.residents().furthest(self.view).map(|(victim, _)| Some(victim))
    }

    /// Decides to fetch `block`, which is absent, into `frame`.
    #[inline]
    pub fn fetch(&mut self, block: Block, frame: Frame) {
        match frame {
            Some(victim) => self.knowledge.evict(victim),
            None => self.free -= 1,
        }
        self.knowledge.fetch(block);
        self.fetches.push(Fetch { block, victim: frame });
    }

    /// Decides to fetch the missing block whose next use is `position`.
    #[inline]
    pub fn fetch_at(&mut self, position: Position, frame: Frame) {
        self.fetch(self.knowledge.missing().block_at(position), frame);
    }
}

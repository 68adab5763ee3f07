//! Invariants of an export after each instant, for fuzzers. They hold whatever clients, policies and backings do. Cost:
//! proportional to the numbered pages.

use headstart_policy::BlockMap;
use headstart_types::Block;
use rustc_hash::FxHashMap;

use super::Conductor;
use crate::queue::{Piece, ReadQueue};
use crate::work::{ClientRequest, Op};

fn holds(invariant: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if invariant {
        return Ok(());
    }
    Err(what())
}

impl<Q: ReadQueue> Conductor<Q> {
    /// Checks the invariants after an instant.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn check(&self) -> Result<(), String> {
        self.machine.check()?;
        let level = self.machine.level();
        let mut waits: FxHashMap<u64, u32> = FxHashMap::default();
        let mut kept = 0;
        for block in (0..self.machine.pages().blocks() as u32).map(Block) {
            let (state, page) = (level.state(block), self.machine.page(block));
            let has_bytes = self.buffers.of(block).is_some();
            holds(has_bytes || !state.is_resident(), || format!("page {page} is cached and has no bytes"))?;
            holds(!has_bytes || state.is_resident(), || format!("page {page} has bytes and is not cached"))?;
            kept += u32::from(has_bytes);
            if let (Some(spill), Some(level)) = (&self.spill, self.machine.spill()) {
                let is_free = self.machine.pages().known(0, page) != Some(block);
                let is_right = is_free || spill.holds(page) == level.state(block).is_resident();
                holds(is_right, || format!("page {page} is either in the spill file or in its level"))?;
            }
            let mut is_wanted = false;
            for request in self.wanted.of(block) {
                is_wanted = true;
                *waits.entry(request).or_default() += 1;
            }
            let comes = self.queue.as_ref().holds(block) || !state.is_resident() && !level.is_unknown(block);
            holds(!is_wanted || comes, || format!("page {page} is wanted and does not come"))?;
        }
        holds(kept <= self.setting.frames, || format!("{kept} pages are in {} frames", self.setting.frames))?;
        for (id, open) in &self.open {
            let missing = if matches!(open.request.op, Op::Read | Op::Cache) { open.pages_missing } else { 0 };
            let waited = waits.remove(id).unwrap_or(0);
            holds(missing == waited, || format!("request {id} misses {missing} pages and waits for {waited}"))?;
        }
        holds(waits.is_empty(), || format!("pages are wanted for requests that are over: {waits:?}"))?;
        let in_vain = self.named_in_vain();
        holds(in_vain.is_none(), || format!("the number {in_vain:?} is free, and something names it"))?;
        for piece in self.queue.as_ref().pieces() {
            let mut pages = (piece.first..).zip(&piece.blocks);
            let is_right = pages.all(|(page, block)| self.machine.page(*block) == page);
            holds(is_right, || format!("the pages from {} on are not those of their blocks", piece.first))?;
            let is_wanted = piece.blocks.iter().any(|block| self.wanted.holds(*block));
            holds(piece.demand || !is_wanted, || format!("clients wait for page {}, a prefetch", piece.first))?;
            // A request may already have a page that the machine fetches again for it.
            let is_asked = || self.open.values().any(|open| self.touches(&open.request, piece));
            holds(!piece.demand || is_wanted || is_asked(), || format!("no client waits for page {}", piece.first))?;
        }
        self.queue.as_ref().check(|piece| !self.is_renewing && !self.writes.holds(&(piece.first..piece.end())))
    }

    fn touches(&self, request: &ClientRequest, piece: &Piece) -> bool {
        let pages = self.pages_of(request.offset, request.length.into());
        pages.start < piece.end() && piece.first < pages.end
    }

    /// Checks the invariants when nothing is in flight and all answers were returned.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn check_idle(&self) -> Result<(), String> {
        holds(self.is_idle(), || "something is under way".to_owned())?;
        let (kept, used) = (self.buffers.kept(), self.buffers.in_use());
        holds(kept == used, || format!("{used} buffers are in use, of which {kept} are pages that are cached"))
    }
}

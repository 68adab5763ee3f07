//! The level in a spill file (`spill/`): pages that memory evicts are written to it, and read from it. While a page
//! changes, it is neither: the content of the backing is unknown.

use std::ops::Range;

use bytes::BytesMut;
use headstart_engine::Kind;
use headstart_host::mailbox::Request;
use headstart_types::Block;

use super::{Conductor, STORES};
use crate::queue::{Piece, ReadQueue};
use crate::spill::{Spill, SpillReport, Zeroing};
use crate::work::{Action, Completed, Work};

impl<Q: ReadQueue> Conductor<Q> {
    /// The spill file, if there is one.
    #[must_use]
    pub fn spill(&self) -> Option<&Spill> {
        self.spill.as_ref()
    }

    /// Report of the spill file, if there is one.
    #[must_use]
    pub fn spill_report(&self) -> Option<SpillReport> {
        Some(self.spill.as_ref()?.report(self.machine.spill()?.counts()))
    }

    /// Stores pages that memory has evicted, before their bytes are dropped, and frees the slots of those that the file
    /// has evicted.
    pub(super) fn spill_evicted(&mut self, evicted: &[Block], orders: &mut Vec<Request>, actions: &mut Vec<Action>) {
        let (Some(spill), Some(level)) = (&mut self.spill, self.machine.spill()) else { return };
        for block in evicted.iter().filter(|block| !level.state(**block).is_resident()) {
            spill.release(self.machine.page(*block));
        }
        let stores = orders.extract_if(.., |order| order.kind == Kind::Allocate);
        for block in stores.flat_map(|order| order.blocks) {
            let page = self.machine.page(block);
            // Its turn may have come so late that memory has it again.
            let is_back = self.machine.level().state(block).is_resident();
            let is_free = !is_back && !self.writes.holds(&(page..page + 1));
            let spill = self.spill.as_mut().filter(|spill| is_free && spill.has_room());
            match spill.and_then(|spill| Some(spill.store(page, block, self.buffers.take_of(block)?))) {
                Some((slot, place)) => actions.push(Action::Start(STORES + u64::from(slot), Work::Store(place))),
                None => self.arrives_below(block, false),
            }
        }
    }

    /// A page was stored, or could not be.
    pub(super) fn store_ended(&mut self, completed: Completed) {
        completed.buffers.into_iter().for_each(|buffer| self.buffers.put_back(buffer));
        let Some(spill) = &mut self.spill else { return };
        let (block, is_there) = spill.stored((completed.id - STORES) as u32, completed.result.is_ok());
        self.arrives_below(block, is_there);
    }

    /// `block` arrives in the level of the file, and leaves it at once if it is not there.
    fn arrives_below(&mut self, block: Block, is_there: bool) {
        self.machine.stored(block);
        self.unstored.extend((!is_there).then_some(block));
    }

    /// Removes pages from the level of the file that could not be stored and have arrived there nevertheless.
    pub(super) fn take_out_unstored(&mut self) {
        let Self { machine, unstored, .. } = self;
        let comes = |block: &Block| machine.spill().is_some_and(|level| level.state(*block).is_in_flight());
        let arrived: Vec<Block> = unstored.extract_if(.., |block| !comes(block)).collect();
        arrived.into_iter().for_each(|block| machine.take_out_spilled(block));
    }

    /// Pages could not be read from the file: they are read one by one, and a single one from the backing.
    pub(super) fn read_again(&mut self, piece: Piece, buffers: Vec<BytesMut>) {
        buffers.into_iter().for_each(|buffer| self.buffers.put_back(buffer));
        let spilled = piece.blocks.len() > 1;
        for (first, block) in (piece.first..).zip(piece.blocks) {
            if !self.spill.as_ref().is_some_and(|spill| spill.holds(first)) {
                self.machine.take_out_spilled(block);
            }
            let demand = piece.demand && self.wanted.holds(block);
            self.queue.push(Piece { blocks: vec![block], first, demand, spilled, since: None });
        }
    }

    /// Removes pages from the file, which are about to change.
    pub(super) fn forget_spilled(&mut self, pages: &Range<u64>) -> Option<Zeroing> {
        let spill = self.spill.as_mut()?;
        for block in self.machine.pages().known_within(pages.start, pages.end) {
            spill.release(self.machine.page(block));
            self.machine.take_out_spilled(block);
        }
        spill.zeroing(pages)
    }
}

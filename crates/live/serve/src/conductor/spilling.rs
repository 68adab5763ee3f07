//! Moves evicted pages to the spill file, if there is one (`spill/`).

use std::sync::Arc;

use headstart_types::Block;

use super::{Conductor, STORES};
use crate::queue::ReadQueue;
use crate::spill::{Spill, SpillReport};
use crate::work::{Action, Completed, Work};

impl<Q: ReadQueue> Conductor<Q> {
    /// Stores evicted pages in `spill`, which stands before the backing
    /// ([`SpilledBacking`](crate::backing::SpilledBacking)).
    pub fn spill_into(&mut self, spill: Arc<Spill>) {
        self.spill = Some(spill);
    }

    /// Report of the spill file, if there is one.
    #[must_use]
    pub fn spill(&self) -> Option<SpillReport> {
        self.spill.as_ref().map(|spill| spill.report())
    }

    /// Handles the eviction of `block`.
    pub(super) fn leave(&mut self, block: Block, actions: &mut Vec<Action>) {
        if self.machine.level().state(block).is_resident() {
            return;
        }
        let page = self.machine.page(block);
        // While a page is changing, the content of the backing is unknown.
        let is_free = self.writes.is_empty() || !self.writes.holds(&(page..page + 1));
        let spill = self.spill.as_ref().filter(|_| is_free && self.buffers.of(block).is_some());
        let place = spill.and_then(|spill| Some((spill.clone(), spill.begin(page)?)));
        let Some((spill, place)) = place else { return self.buffers.drop_of(block) };
        let Some(buffer) = self.buffers.take_of(block) else { return };
        self.storing += 1;
        self.stored += 1;
        actions.push(Action::Start(STORES + self.stored, Work::Store { spill, place, buffer }));
    }

    /// A page was stored, or could not be.
    pub(super) fn store_ended(&mut self, completed: Completed) {
        self.storing -= 1;
        completed.buffers.into_iter().for_each(|buffer| self.buffers.put_back(buffer));
    }
}

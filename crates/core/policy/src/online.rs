//! Demand fetching of single blocks: a missing block is fetched when it is referenced. Whole requests and read-ahead
//! are handled by [`RequestPolicy`](crate::RequestPolicy).

use headstart_types::{Block, Nanos};

use crate::{Event, Fetch, Policy, Replacement, View};

/// Demand fetching under a replacement policy.
pub struct OnLine<R> {
    replacement: R,
    /// A missed block that found no frame because all are in flight or pinned; retried at every decision.
    owed: Option<Block>,
}

impl<R: Replacement> OnLine<R> {
    /// Fetches on demand and evicts by `replacement`.
    #[must_use]
    pub fn new(replacement: R) -> Self {
        Self { replacement, owed: None }
    }

    fn fetch(&mut self, block: Block, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        let victim = if view.free > 0 { None } else { self.replacement.victim(block, view) };
        self.owed = (view.free == 0 && victim.is_none()).then_some(block);
        if self.owed.is_none() {
            fetches.push(Fetch { block, victim });
        }
    }
}

impl<R: Replacement> Policy for OnLine<R> {
    fn on(&mut self, _now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        match event {
            Event::Served { position, block, outcome, process, .. } => {
                self.replacement.referenced_by(process, position, block, outcome);
            }
            Event::Asked { .. } => self.fetch(view.asked[0], view, fetches),
            Event::Arrived { block, .. } => self.replacement.inserted(block),
            Event::Idle { .. } | Event::Skipped { .. } | Event::Expected => {}
            Event::Decide => {
                if let Some(block) = self.owed {
                    self.fetch(block, view, fetches);
                }
            }
        }
    }

    fn grow(&mut self, blocks: usize) {
        self.replacement.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.replacement.warm(blocks);
    }

    fn decides(&self, _outstanding: &[u32]) -> bool {
        self.owed.is_some()
    }
}

//! Carries out an export's actions.

use super::{Served, Server};
use crate::work::{Action, Work};

/// Maximum number of instants of one export in a row, so that reads done at once do not delay other clients for long.
const INSTANTS_MAX: usize = 4;

impl Server {
    /// Runs an export's instant, and one more for each batch of reads that complete at once.
    pub(super) fn act(&mut self, index: usize) {
        let mut actions = Vec::new();
        for _ in 0..INSTANTS_MAX {
            self.exports[index].conductor.instant(self.now, &mut actions);
            for action in actions.drain(..) {
                match action {
                    Action::Start(id, work) => self.start_or_put_off(index, id, work),
                    Action::Reply(id, answer) => match &self.exports[index].link {
                        Some(link) => link.cross(id, answer),
                        None => self.answer(index, id, answer),
                    },
                }
            }
            self.take_ended(index);
            if !std::mem::take(&mut self.exports[index].dirty) {
                return;
            }
            self.tell_time();
        }
        self.exports[index].dirty = true;
    }

    /// Starts work on an export's backing. Work done at once completes at the export's next instant.
    pub(super) fn start(&mut self, index: usize, id: u64, work: Work) {
        let served = &mut self.exports[index];
        if let Some(completed) = served.pool.start(id, work) {
            served.conductor.completed(completed);
            served.dirty = true;
        }
    }

    /// Starts pending reads, and passes completed ones to the export's next instant.
    pub(super) fn take_ended(&mut self, index: usize) {
        let Served { pool, conductor, dirty, .. } = &mut self.exports[index];
        pool.ended(|completed| {
            conductor.completed(completed);
            *dirty = true;
        });
    }
}

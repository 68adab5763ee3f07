//! What follows when acknowledged changes may be lost (`stability.rs`).
//!
//! The cache drops everything, as it cannot tell which pages are stable. What is being read at that time may come from before the loss: it
//! is read again. Nothing is read until the backing has forgotten what it has, so that no client finds a later content first and an
//! earlier one afterwards. Changes and flushes fail from then on. A change that only reached the backing's cache would be accepted by
//! QEMU; here it is refused, since no flush can follow it.

use std::io;

use headstart_nbd::Errno;
use headstart_policy::BlockMap;
use headstart_types::Block;

use super::{Conductor, RENEWAL};
use crate::backing::is_loss;
use crate::queue::ReadQueue;
use crate::stability::Unstable;
use crate::work::{Action, Answer, Change, Work};

impl<Q: ReadQueue> Conductor<Q> {
    /// Why no more changes are accepted, and what may be lost; `None` as long as nothing is.
    #[must_use]
    pub fn unstable(&self) -> Option<&Unstable> {
        self.stability.unstable()
    }

    /// Whether the request of this name has not been answered.
    #[must_use]
    pub fn awaits(&self, id: u64) -> bool {
        self.open.contains_key(&id) || self.incoming.iter().any(|request| request.id == id)
    }

    /// The flush of this name is no longer waited for.
    pub fn give_up(&mut self, id: u64, reason: &io::Error) {
        self.open.remove(&id);
        self.stability.lose(reason, self.now);
    }

    /// A flush, or a change that is to be stable, has ended; it is answered as soon as that is certain.
    pub(super) fn sync_ends(&mut self, request: u64, done: bool, actions: &mut Vec<Action>) {
        let mut certain = Vec::new();
        self.stability.sync_ends(request, done, &mut certain);
        certain.into_iter().for_each(|request| self.end(request, Answer::Done, actions));
    }

    /// Answers a request that is no read.
    pub(super) fn end(&mut self, request: u64, answer: Answer, actions: &mut Vec<Action>) {
        if let Some(open) = self.open.remove(&request) {
            self.answer(request, open.since, answer, actions);
        }
    }

    /// Acknowledged changes may be lost.
    pub(super) fn lose(&mut self, reason: &io::Error, actions: &mut Vec<Action>) {
        let is_known = !self.stability.lose(reason, self.now);
        if self.is_renewing || is_known && !is_loss(reason) {
            return;
        }
        self.lost_at = Some(self.now);
        let waiting = self.writes.take_waiting().into_iter().map(|change| change.request);
        for request in waiting.chain(self.stability.take_uncertain()) {
            self.end(request, Answer::Failed(Errno::Io), actions);
        }
        self.is_renewing = true;
        actions.push(Action::Start(RENEWAL, Work::Change(Change::Renew)));
    }

    /// The cache drops all that it has.
    pub(super) fn drop_all(&mut self) {
        for block in (0..self.machine.pages().blocks() as u32).map(Block) {
            self.machine.take_out(block);
            self.drop_if_absent(block);
        }
    }
}

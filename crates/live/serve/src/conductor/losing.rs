//! Handles the possible loss of acknowledged changes (`stability.rs`).
//!
//! The cache drops everything, since it cannot tell which pages are stable. Reads in flight may return data from before
//! the loss and are repeated. Nothing is read until the backing has dropped its caches, so that no client sees newer
//! content first and older content afterwards. From then on, changes and flushes fail. QEMU would accept a change that
//! only reached the backing's cache; here it is refused, since no flush can follow it.

use std::io;

use headstart_nbd::Errno;
use headstart_policy::BlockMap;
use headstart_types::Block;

use super::{Conductor, RENEWAL};
use crate::backing::is_loss;
use crate::change::Change;
use crate::queue::ReadQueue;
use crate::spill::Spill;
use crate::stability::Unstable;
use crate::work::{Action, Answer, Work};

impl<Q: ReadQueue> Conductor<Q> {
    /// Why changes are refused, and which may be lost; `None` if none are lost.
    #[must_use]
    pub fn unstable(&self) -> Option<&Unstable> {
        self.stability.unstable()
    }

    /// Whether the request `id` has not been answered.
    #[must_use]
    pub fn awaits(&self, id: u64) -> bool {
        self.open.contains_key(&id) || self.incoming.iter().any(|request| request.id == id)
    }

    /// Stops waiting for the flush `id`.
    pub fn give_up(&mut self, id: u64, reason: &io::Error) {
        self.open.remove(&id);
        self.stability.lose(reason, self.now);
    }

    /// A flush, or a change that must be stable, has completed; answers it as soon as the outcome is certain.
    pub(super) fn sync_ends(&mut self, request: u64, done: bool, actions: &mut Vec<Action>) {
        let mut certain = Vec::new();
        self.stability.sync_ends(request, done, &mut certain);
        certain.into_iter().for_each(|request| self.end(request, Answer::Done, actions));
    }

    /// Answers a request other than a read.
    pub(super) fn end(&mut self, request: u64, answer: Answer, actions: &mut Vec<Action>) {
        if let Some(open) = self.open.remove(&request) {
            self.answer(request, open.since, answer, actions);
        }
    }

    /// Handles the possible loss of acknowledged changes.
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
        let zeroing = self.spill.as_mut().map(Spill::forget_all);
        actions.push(Action::Start(RENEWAL, Work::Change(Change::Renew, zeroing)));
    }

    /// Drops the whole cache.
    pub(super) fn drop_all(&mut self) {
        for block in (0..self.machine.pages().blocks() as u32).map(Block) {
            self.machine.take_out(block);
            self.drop_if_absent(block);
            if self.spill.is_some() {
                self.machine.take_out_spilled(block);
            }
        }
    }
}

//! Handles completed reads of the backing: bytes for frames and waiting requests, or errors.

use std::sync::Arc;

use headstart_nbd::Errno;
use headstart_types::{Block, Nanos};

use super::Conductor;
use crate::backing::is_loss;
use crate::queue::{Piece, ReadQueue};
use crate::work::{Action, Completed, Page};

impl<Q: ReadQueue> Conductor<Q> {
    /// A read of the backing has completed.
    pub(super) fn piece_ended(&mut self, completed: Completed, actions: &mut Vec<Action>) {
        let Completed { id, buffers, result } = completed;
        let piece = self.queue.as_mut().end(id as u32);
        let error = result.as_ref().err();
        let is_loaded = self.spill.as_mut().is_some_and(|spill| spill.loaded(piece.first..piece.end(), error));
        if is_loaded && result.is_err() {
            return self.read_again(piece, buffers);
        }
        let since = piece.since.expect("it has been started");
        let service = self.now - since;
        let is_again = self.lost_at.is_some_and(|at| since > at);
        let loss = result.as_ref().err().filter(|error| is_loss(error));
        loss.into_iter().for_each(|error| self.lose(error, actions));
        // Data read before a loss may be among the lost changes. A read that meets a second loss is not retried
        // forever.
        let is_stale = self.lost_at.is_some_and(|at| since <= at) && !(is_again && loss.is_some());
        if !is_loaded {
            self.statistics.read_ended(&result, service);
        }
        let share = Nanos(service.0 / piece.blocks.len() as u64);
        let final_failure = piece.blocks.len() == 1 || !self.setting.fails_in_parts;
        for ((page, block), buffer) in (piece.first..).zip(piece.blocks).zip(buffers) {
            match &result {
                Ok(_) if !is_stale => {
                    let bytes = Arc::new(buffer);
                    self.hand_out(page, block, &bytes, actions);
                    if self.machine.level().state(block).is_in_flight() {
                        self.buffers.keep(block, bytes);
                    } else {
                        self.buffers.give_back(bytes);
                    }
                }
                outcome => {
                    self.buffers.put_back(buffer);
                    if self.wanted.holds(block) && (is_stale || !final_failure) {
                        self.queue.push(Piece { blocks: vec![block], first: page, demand: true, ..Piece::default() });
                        continue;
                    }
                    let failed = outcome.as_ref().err().map(Errno::of);
                    self.for_takers(block, |own, request| own.miss_less(request, failed, actions));
                    self.failed.push(block);
                }
            }
            if let Some(hints) = self.machine.hints_mut() {
                hints.arrived(self.now, page);
            }
            self.machine.fetched(block, share);
        }
    }

    /// Passes the bytes of a page to the waiting requests.
    fn hand_out(&mut self, page: u64, block: Block, bytes: &Page, actions: &mut Vec<Action>) {
        let page_bytes = self.setting.page_bytes;
        self.for_takers(block, |own, request| {
            if let Some(open) = own.open.get_mut(&request) {
                let at = page - open.request.offset / page_bytes;
                if let Some(part) = open.reply.get_mut(at as usize) {
                    *part = Some(bytes.clone());
                }
            }
            own.miss_less(request, None, actions);
        });
    }

    /// Calls `with` for each request that waits for `block`, and clears the list.
    fn for_takers(&mut self, block: Block, mut with: impl FnMut(&mut Self, u64)) {
        let mut takers = std::mem::take(&mut self.takers);
        self.wanted.take(block, &mut takers);
        takers.iter().for_each(|request| with(self, *request));
        self.takers = takers;
    }

    fn miss_less(&mut self, request: u64, failed: Option<Errno>, actions: &mut Vec<Action>) {
        let Some(open) = self.open.get_mut(&request) else { return };
        open.pages_missing -= 1;
        open.failed = open.failed.or(failed);
        self.reply_if_done(request, actions);
    }
}

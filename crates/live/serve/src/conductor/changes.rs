//! Changes of an export, and other requests that bypass the cache.

use headstart_nbd::Errno;

use super::{Conductor, Open, DIRECT};
use crate::change::Change;
use crate::queue::ReadQueue;
use crate::work::{Action, Answer, ClientRequest, Completed, Op, Work};
use crate::writes::PendingChange;

impl<Q: ReadQueue> Conductor<Q> {
    /// Starts a change and applies it to the cached pages.
    pub(super) fn change(&mut self, change: &PendingChange, actions: &mut Vec<Action>) {
        let Some(open) = self.open.get_mut(&change.request) else { return };
        let (offset, length) = (open.request.offset, u64::from(open.request.length));
        let syncs = open.request.op.syncs();
        let known = self.machine.pages().known_within(change.pages.start, change.pages.end);
        let made = match &mut open.request.op {
            Op::Write { data, fua } => {
                for block in known {
                    let start = self.machine.page(block) * self.setting.page_bytes;
                    if let Some(bytes) = self.buffers.of_mut(block) {
                        let (from, to) = (offset.max(start), (offset + length).min(start + self.setting.page_bytes));
                        let (own, new) = (from - start..to - start, from - offset..to - offset);
                        bytes[own.start as usize..own.end as usize]
                            .copy_from_slice(&data[new.start as usize..new.end as usize]);
                    }
                }
                Change::Write { offset, data: std::mem::take(data), fua: *fua }
            }
            Op::Trim { fua } => Change::Trim { offset, length, fua: *fua },
            Op::Zero { fua, no_hole } => Change::Zero { offset, length, no_hole: *no_hole, fua: *fua },
            Op::Read | Op::Cache | Op::Flush | Op::Extents => unreachable!("these change nothing"),
        };
        if syncs {
            self.stability.sync_begins(change.request);
        }
        if !matches!(made, Change::Write { .. }) {
            self.take_out(change.pages.clone());
        }
        let zeroing = self.forget_spilled(&change.pages);
        actions.push(Action::Start(change.request + DIRECT, Work::Change(made, zeroing)));
    }

    /// Removes `pages` from the cache.
    fn take_out(&mut self, pages: std::ops::Range<u64>) {
        for block in self.machine.pages().known_within(pages.start, pages.end) {
            self.machine.take_out(block);
            self.drop_if_absent(block);
        }
    }

    /// A request to the backing that bypassed the cache has completed.
    pub(super) fn direct_ended(&mut self, completed: Completed, actions: &mut Vec<Action>) {
        let request = completed.id - DIRECT;
        match (self.writes.end(request), &completed.result, &mut self.spill) {
            (Some(pages), Err(_), _) => self.take_out(pages),
            (Some(pages), Ok(_), Some(spill)) => spill.zeroed(&pages),
            _ => {}
        }
        let Some(Open { request: ClientRequest { op, offset, length, .. }, .. }) = self.open.get(&request) else {
            return;
        };
        let (bytes, syncs, is_question) =
            (*offset..*offset + u64::from(*length), op.syncs(), matches!(op, Op::Extents));
        match completed.result {
            Ok(extents) if is_question => self.end(request, Answer::Extents(extents), actions),
            Ok(_) if self.unstable().is_some() => self.end(request, Answer::Failed(Errno::Io), actions),
            Ok(_) if syncs => self.sync_ends(request, true, actions),
            Ok(_) => {
                self.stability.acknowledged(bytes);
                self.end(request, Answer::Done, actions);
            }
            Err(error) => {
                if self.stability.loses(op, &error) {
                    self.lose(&error, actions);
                } else if syncs {
                    self.sync_ends(request, false, actions);
                }
                self.end(request, Answer::Failed(Errno::of(&error)), actions);
            }
        }
    }
}

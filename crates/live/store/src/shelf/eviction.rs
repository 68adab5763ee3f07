//! Room: what leaves the memory, what leaves the spill.

use super::ahead::Wish;
use super::{SegmentId, Shelf, State};
use crate::arena::Place;
use crate::filing::Filing;
use crate::named::{Span, Use};

/// The share of the memory, as a divisor, that may wait to be written to the spill: what is evicted while the spill is
/// slower than that is dropped. A guess.
const LEAVING: u64 = 8;

impl Shelf {
    /// Files a segment where it may leave, by its next use; takes it out where it may not.
    pub(super) fn file(&mut self, id: SegmentId) {
        let segment = self.of(id);
        let may_leave = segment.state == State::Here && segment.leases == 0 && !segment.is_leaving;
        let (span, count, is_spilled) = (segment.span, segment.count, segment.is_spilled);
        let next = if may_leave || is_spilled { self.orders.next_use(span) } else { None };
        set(&mut self.in_memory, may_leave, id, span, next, count);
        set(&mut self.in_spill, is_spilled, id, span, next, count);
    }

    /// Makes room in memory for `bytes`, which a wish is for, or which are needed now. False: there is none, or not yet.
    pub(super) fn make_room(&mut self, bytes: u64, wish: Option<Wish>) -> bool {
        let bytes = Place::bytes_of(bytes);
        while self.arena.used() + bytes > self.limits.memory_bytes {
            if self.arena.used() - self.leaving_bytes + bytes <= self.limits.memory_bytes {
                return false;
            }
            let Some((victim, next)) = self.in_memory.first(&self.orders) else { return false };
            let off = next.map(|next| self.orders.distance(next));
            let may_leave = |wish: Wish| self.horizon.may_displace(off, self.orders.distance(wish.at), wish.is_near);
            if !wish.is_none_or(may_leave) {
                return false;
            }
            if let Some(off) = off.filter(|_| wish.is_none_or(|wish| wish.is_near)) {
                self.horizon.displaced(off);
            }
            self.evict(victim, next);
        }
        true
    }

    fn evict(&mut self, id: SegmentId, next: Option<Use>) {
        self.in_memory.evicted(id);
        let segment = self.of(id);
        let (span, is_ahead, is_spilled, is_storing) =
            (segment.span, segment.is_ahead, segment.is_spilled, segment.is_storing);
        self.totals.evicted_bytes += span.bytes();
        if is_ahead {
            self.totals.wasted_bytes += span.bytes();
            if let Some(next) = next {
                self.no_more_ahead(next);
            }
        }
        let length = Place::bytes_of(span.bytes());
        if is_storing {
            // Its bytes are still counted as leaving.
            self.of_mut(id).is_leaving = true;
            return;
        }
        let may_wait = self.leaving_bytes + length <= (self.limits.memory_bytes / LEAVING).max(length);
        if !is_spilled && may_wait && self.make_room_in_spill(span.bytes(), next) {
            let segment = self.of_mut(id);
            (segment.is_leaving, segment.is_storing) = (true, true);
            self.spilled_bytes += length;
            self.leaving_bytes += length;
            self.actions.push(super::Action::Store(id));
            return;
        }
        self.left(id, next);
    }

    /// A segment has left the memory.
    fn left(&mut self, id: SegmentId, next: Option<Use>) {
        self.free(id);
        // What only the spill has is loaded in time.
        next.into_iter().for_each(|next| self.orders.look_again(next));
        self.file(id);
        self.forget_if_gone(id);
    }

    /// Makes room in the spill for `bytes` that are used next at `next`; false if what it has is used sooner.
    fn make_room_in_spill(&mut self, bytes: u64, next: Option<Use>) -> bool {
        let bytes = Place::bytes_of(bytes);
        if bytes > self.limits.spill_bytes {
            return false;
        }
        while self.spilled_bytes + bytes > self.limits.spill_bytes {
            if self.drop_unclaimed() {
                continue;
            }
            let Some((victim, other)) = self.in_spill.first(&self.orders) else { return false };
            let keeps = match (other, next) {
                (Some(other), Some(next)) => self.orders.distance(other) <= self.orders.distance(next),
                (Some(_), None) => true,
                (None, _) => false,
            };
            if keeps {
                return false;
            }
            self.in_spill.evicted(victim);
            self.lose_spilled(victim);
            self.forget_if_gone(victim);
        }
        true
    }

    /// A segment is not in the spill any more.
    pub(super) fn lose_spilled(&mut self, id: SegmentId) {
        let segment = self.of_mut(id);
        let span = segment.span;
        if std::mem::take(&mut segment.is_spilled) {
            self.spilled_bytes -= Place::bytes_of(span.bytes());
            self.actions.push(super::Action::Remove(span));
            self.in_spill.remove(id);
        }
    }

    /// A segment was written to the spill, or could not be.
    pub fn stored(&mut self, id: SegmentId, is_whole: bool) {
        let segment = self.of_mut(id);
        segment.is_storing = false;
        segment.is_spilled = is_whole;
        let (span, leaves) = (segment.span, std::mem::take(&mut segment.is_leaving) && segment.leases == 0);
        let length = Place::bytes_of(span.bytes());
        if is_whole {
            self.totals.stored_bytes += span.bytes();
        } else {
            self.spilled_bytes -= length;
        }
        self.leaving_bytes -= length;
        if leaves {
            let next = self.orders.next_use(span);
            self.left(id, next);
        } else {
            self.file(id);
        }
    }

    /// The spill has file `number` of `bytes` from an earlier run, of an object that nobody has asked for yet.
    pub fn found(&mut self, number: u64, bytes: u64) {
        let length = Place::bytes_of(bytes);
        self.unclaimed.insert(number, length);
        self.spilled_bytes += length;
        while self.spilled_bytes > self.limits.spill_bytes && self.drop_unclaimed() {}
    }

    /// Drops the oldest file of an earlier run; false if there is none.
    fn drop_unclaimed(&mut self) -> bool {
        let Some((number, length)) = self.unclaimed.pop_first() else { return false };
        self.spilled_bytes -= length;
        self.actions.push(super::Action::RemoveFound(number));
        true
    }

    /// File `number` of an earlier run is `span`; `None` if its object has changed since. False: it is of no use.
    pub fn claim(&mut self, number: u64, span: Option<Span>) -> bool {
        let Some(length) = self.unclaimed.remove(&number) else { return false };
        self.spilled_bytes -= length;
        if span.is_some_and(|span| self.claims(span)) {
            return true;
        }
        self.actions.push(super::Action::RemoveFound(number));
        false
    }

    fn claims(&mut self, span: Span) -> bool {
        let length = Place::bytes_of(span.bytes());
        if self.spilled_bytes + length > self.limits.spill_bytes || self.overlapping(span).next().is_some() {
            return false;
        }
        let id = self.add(span, State::Absent);
        self.of_mut(id).is_spilled = true;
        self.spilled_bytes += length;
        self.file(id);
        true
    }
}

fn set(filing: &mut Filing, is_filed: bool, id: SegmentId, span: Span, next: Option<Use>, count: u8) {
    match filing.of(id) {
        // Its place in the queue stays.
        Some(None) if is_filed && next.is_none() => {}
        Some(Some(was)) if is_filed && next == Some(was) => {}
        _ if is_filed => filing.insert(id, span, next, count),
        _ => filing.remove(id),
    }
}

//! What is fetched ahead of its readers, by the rule in `headstart_policy::hinted::nearness`.

use headstart_policy::hinted::nearness::is_full;

use super::{Action, SegmentId, Shelf, State, SEGMENT_BYTES_MAX};
use crate::arena::Place;
use crate::named::{Span, Use};

/// The longest request for several neighbours: at 100 MB/s and 20 ms to the first byte, the time to the first byte is
/// half of what it takes. A guess.
const JOINED_BYTES_MAX: u64 = 2 << 20;

impl Shelf {
    /// Orders what is needed next, as long as there is room and something to do.
    pub(super) fn fetch_ahead(&mut self) {
        while self.prefetches < self.limits.requests {
            self.forget_passed();
            let is_full = is_full(self.ahead_bytes, self.limits.memory_bytes);
            let near = self.orders.next_entry(true, is_full).map(|(at, span)| (Wish { at, is_near: true }, span));
            let far = || self.orders.next_entry(false, false).map(|(at, span)| (Wish { at, is_near: false }, span));
            let far = || if is_full { None } else { far() };
            let Some((wish, span)) = near.or_else(far) else { return };
            let Some(missing) = self.first_missing(span) else {
                self.orders.passed(wish.at);
                continue;
            };
            if !self.fetch_one(wish, span, missing) {
                return;
            }
        }
    }

    /// The first part of `span` that is neither in memory nor on its way.
    fn first_missing(&self, span: Span) -> Option<Missing> {
        let mut from = span.start;
        for id in self.overlapping(span) {
            let segment = self.of(id);
            if segment.span.start > from {
                return Some(Missing::Gap(Span { start: from, end: segment.span.start, ..span }));
            }
            // What failed, and readers have not let go of, is not asked for again.
            if segment.state == State::Absent && segment.is_spilled {
                return Some(Missing::Spilled(id));
            }
            from = segment.span.end;
        }
        (from < span.end).then_some(Missing::Gap(Span { start: from, ..span }))
    }

    /// Orders the missing part of an entry; false if there is no room.
    fn fetch_one(&mut self, wish: Wish, entry: Span, missing: Missing) -> bool {
        let at = wish.at;
        match missing {
            Missing::Spilled(id) => {
                if !self.make_room(self.of(id).span.bytes(), Some(wish)) {
                    return false;
                }
                // Making room may have dropped it from the spill.
                if self.segments[id as usize].as_ref().is_some_and(|segment| segment.is_spilled) {
                    self.order_one(id, false);
                    self.note_ahead(at, id);
                }
            }
            Missing::Gap(gap) => {
                let longest = SEGMENT_BYTES_MAX.min((self.limits.memory_bytes / 4).max(1));
                let gap = Span { end: gap.end.min(gap.start + longest), ..gap };
                if !self.make_room(gap.bytes(), Some(wish)) {
                    return false;
                }
                let mut run = vec![(at, gap)];
                if gap.end == entry.end {
                    self.join(wish, &mut run);
                }
                self.fetch_run(&run);
            }
        }
        true
    }

    /// Adds the entries that follow in the order and in the object, if nothing of them is here.
    fn join(&mut self, wish: Wish, run: &mut Vec<(Use, Span)>) {
        let (mut at, mut last) = run[0];
        let mut bytes = last.bytes();
        let mut length = Place::bytes_of(bytes);
        loop {
            at.at += 1;
            let Some(next) = self.orders.entry(at) else { return };
            let adjacent = next.object == last.object && next.start == last.end;
            if !adjacent || bytes + next.bytes() > JOINED_BYTES_MAX || self.overlapping(next).next().is_some() {
                return;
            }
            // The run's earlier parts have no place yet.
            if !self.make_room(length + next.bytes(), Some(Wish { at, ..wish })) {
                return;
            }
            run.push((at, next));
            (last, bytes) = (next, bytes + next.bytes());
            length += Place::bytes_of(next.bytes());
        }
    }

    fn fetch_run(&mut self, run: &[(Use, Span)]) {
        let mut segments = Vec::with_capacity(run.len());
        for (at, span) in run {
            let id = self.add(*span, State::Coming);
            let place = self.arena.take(span.bytes());
            let segment = self.of_mut(id);
            (segment.place, segment.is_ahead) = (Some(place), true);
            self.coming += 1;
            self.totals.prefetched_bytes += span.bytes();
            self.note_ahead(*at, id);
            segments.push(id);
        }
        self.prefetches += 1;
        self.actions.push(Action::Fetch { segments, demand: false });
    }

    fn note_ahead(&mut self, at: Use, id: SegmentId) {
        let bytes = self.of(id).span.bytes();
        self.ahead_bytes += bytes;
        // A long entry has several segments.
        self.ahead.entry(at).or_insert((id, 0)).1 += bytes;
    }

    /// What was fetched ahead for this use is not ahead any more.
    pub(super) fn no_more_ahead(&mut self, at: Use) {
        if let Some((_, bytes)) = self.ahead.remove(&at) {
            self.ahead_bytes -= bytes;
        }
    }

    /// Stops counting what readers have passed without reading it.
    fn forget_passed(&mut self) {
        for number in self.orders.numbers().collect::<Vec<_>>() {
            let front = Use { order: number, at: self.orders.front(number) };
            while let Some((at, _)) = self.ahead.range(Use { order: number, at: 0 }..front).next() {
                let at = *at;
                self.no_more_ahead(at);
            }
        }
    }
}

/// What is to be fetched for a place in an order.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    pub at: Use,
    pub is_near: bool,
}

enum Missing {
    Gap(Span),
    Spilled(SegmentId),
}

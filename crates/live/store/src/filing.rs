//! The segments that may leave a level, and their order: first those far ahead in an order that has no reader yet, then
//! undisclosed ones by S3-FIFO (Yang et al., SOSP 2023) in bytes, then the one whose next use is furthest (Belady), over
//! all orders.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use crate::named::{Span, Use};
use crate::orders::Orders;

/// The number of a segment.
pub type SegmentId = u32;

/// The share of the bytes that are on probation (the paper's 10 %), as a divisor.
const PROBATION: u64 = 10;
/// The highest count of uses (the paper's two bits).
const COUNT_MAX: u8 = 3;

/// Undisclosed segments. A segment that is used while it is on probation stays; one that returns soon after it left is
/// not put on probation again.
#[derive(Debug, Default)]
struct Undisclosed {
    /// Oldest first; keys are numbers in the order of arrival.
    probation: BTreeMap<u64, SegmentId>,
    main: BTreeMap<u64, SegmentId>,
    next: u64,
    probation_bytes: u64,
    main_bytes: u64,
    known: FxHashMap<SegmentId, Known>,
    ghosts: VecDeque<Span>,
    ghost_bytes: u64,
    is_ghost: FxHashMap<Span, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    bytes: u64,
    count: u8,
    is_new: bool,
    number: u64,
}

impl Undisclosed {
    fn queue(&mut self, is_new: bool) -> (&mut BTreeMap<u64, SegmentId>, &mut u64) {
        if is_new {
            (&mut self.probation, &mut self.probation_bytes)
        } else {
            (&mut self.main, &mut self.main_bytes)
        }
    }

    fn push(&mut self, id: SegmentId, known: Known) {
        let known = Known { number: self.next, ..known };
        self.next += 1;
        self.known.insert(id, known);
        let (queue, bytes) = self.queue(known.is_new);
        queue.insert(known.number, id);
        *bytes += known.bytes;
    }

    fn insert(&mut self, id: SegmentId, span: Span, count: u8) {
        let is_new = !self.is_ghost.contains_key(&span) && count == 0;
        self.push(id, Known { bytes: span.bytes(), count: count.min(COUNT_MAX), is_new, number: 0 });
    }

    fn remove(&mut self, id: SegmentId) -> Option<Known> {
        let known = self.known.remove(&id)?;
        let (queue, bytes) = self.queue(known.is_new);
        queue.remove(&known.number);
        *bytes -= known.bytes;
        Some(known)
    }

    /// The segment to go first. It stays filed.
    fn first(&mut self) -> Option<SegmentId> {
        loop {
            let takes_new = self.probation_bytes * PROBATION >= self.probation_bytes + self.main_bytes;
            let from_new = !self.probation.is_empty() && (takes_new || self.main.is_empty());
            let (_, id) = self.queue(from_new).0.first_key_value()?;
            let id = *id;
            if self.known[&id].count == 0 {
                return Some(id);
            }
            let known = self.remove(id)?;
            self.push(id, Known { count: if from_new { 0 } else { known.count - 1 }, is_new: false, ..known });
        }
    }

    /// Remembers what has left, up to as many bytes as are kept.
    fn remember(&mut self, span: Span) {
        self.ghosts.push_back(span);
        self.ghost_bytes += span.bytes();
        *self.is_ghost.entry(span).or_default() += 1;
        while self.ghost_bytes > self.main_bytes.max(span.bytes()) {
            let Some(old) = self.ghosts.pop_front() else { break };
            self.ghost_bytes -= old.bytes();
            if let Some(count) = self.is_ghost.get_mut(&old) {
                *count -= 1;
                if *count == 0 {
                    self.is_ghost.remove(&old);
                }
            }
        }
    }
}

/// Segments of one level that may leave it.
#[derive(Debug, Default)]
pub struct Filing {
    undisclosed: Undisclosed,
    /// By order, then by place.
    disclosed: BTreeMap<u32, BTreeSet<(u64, SegmentId)>>,
    filed: FxHashMap<SegmentId, (Span, Option<Use>)>,
}

impl Filing {
    /// Files a segment under its next use, or with none by how often it has been used.
    pub fn insert(&mut self, id: SegmentId, span: Span, next: Option<Use>, count: u8) {
        self.remove(id);
        self.filed.insert(id, (span, next));
        match next {
            Some(Use { order, at }) => drop(self.disclosed.entry(order).or_default().insert((at, id))),
            None => self.undisclosed.insert(id, span, count),
        }
    }

    /// Takes a segment out, if it is filed.
    pub fn remove(&mut self, id: SegmentId) {
        match self.filed.remove(&id) {
            Some((_, Some(Use { order, at }))) => {
                if let Some(set) = self.disclosed.get_mut(&order) {
                    set.remove(&(at, id));
                    if set.is_empty() {
                        self.disclosed.remove(&order);
                    }
                }
            }
            Some((_, None)) => drop(self.undisclosed.remove(id)),
            None => {}
        }
    }

    /// Takes out a segment that is evicted.
    pub fn evicted(&mut self, id: SegmentId) {
        let was = self.filed.get(&id).copied();
        self.remove(id);
        if let Some((span, None)) = was {
            self.undisclosed.remember(span);
        }
    }

    /// Whether a segment is filed, and under what.
    #[must_use]
    pub fn of(&self, id: SegmentId) -> Option<Option<Use>> {
        self.filed.get(&id).map(|(_, next)| *next)
    }

    /// The segments filed under an order.
    #[must_use]
    pub fn under(&self, order: u32) -> Vec<SegmentId> {
        self.disclosed.get(&order).into_iter().flatten().map(|(_, id)| *id).collect()
    }

    /// The segment to leave first, with its use.
    pub fn first(&mut self, orders: &Orders) -> Option<(SegmentId, Option<Use>)> {
        let last_of = |(order, set): (&u32, &BTreeSet<(u64, SegmentId)>)| {
            set.last().map(|(at, id)| (*id, Use { order: *order, at: *at }))
        };
        if let Some((id, at)) = self.disclosed.iter().filter_map(last_of).find(|(_, at)| orders.is_doubtful(*at)) {
            return Some((id, Some(at)));
        }
        if let Some(id) = self.undisclosed.first() {
            return Some((id, None));
        }
        let ends = self.disclosed.iter().flat_map(|(order, set)| {
            let of = move |end: Option<&(u64, SegmentId)>| end.map(|(at, id)| (*id, Use { order: *order, at: *at }));
            [of(set.first()), of(set.last())].into_iter().flatten()
        });
        let last = ends.max_by(|(_, one), (_, other)| orders.distance(*one).total_cmp(&orders.distance(*other)));
        last.map(|(id, next)| (id, Some(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::Nanos;

    fn span(object: u32) -> Span {
        Span { object, start: 0, end: 10 }
    }

    #[test]
    fn what_is_used_last_leaves_first_over_all_orders() {
        let mut orders = Orders::new(100, u64::MAX);
        orders.extend(0, &(0..100).map(span).collect::<Vec<_>>());
        orders.extend(1, &(200..300).map(span).collect::<Vec<_>>());
        let mut filing = Filing::default();
        for (id, object) in [(0, 50), (1, 99), (2, 250), (3, 7)] {
            filing.insert(id, span(object), orders.next_use(span(object)), 0);
        }
        filing.insert(4, span(1000), None, 0);
        assert_eq!(filing.first(&orders).map(|(id, _)| id), Some(4), "it is undisclosed");
        filing.evicted(4);
        assert_eq!(filing.first(&orders).map(|(id, _)| id), Some(1));
        // The second reader is ten times as slow: 10 of its entries are as far as 100 of the first one's.
        for step in (0..40).filter(|step| *step != 7) {
            orders.has_read(span(step), Nanos(u64::from(step) * 1_000_000));
            orders.has_read(span(200 + step), Nanos(u64::from(step) * 10_000_000));
        }
        filing.remove(1);
        assert_eq!(filing.first(&orders).map(|(id, _)| id), Some(2));
        filing.evicted(2);
        assert_eq!(filing.under(0), [3, 0]);
        // The reader is past 7 by 33, and 50 is 10 ahead.
        assert_eq!(filing.first(&orders).map(|(id, _)| id), Some(3));
        filing.evicted(3);
        assert_eq!(filing.first(&orders).map(|(id, _)| id), Some(0));
    }

    #[test]
    fn a_scan_does_not_displace_what_is_used_again() {
        let (orders, mut filing) = (Orders::default(), Filing::default());
        (0..50).for_each(|id| filing.insert(id, span(id), None, 2));
        for id in 100..1000 {
            filing.insert(id, span(id), None, 0);
            if let Some((gone, _)) = filing.first(&orders).filter(|_| id >= 120) {
                filing.evicted(gone);
            }
        }
        let kept = (0..50).filter(|id| filing.of(*id).is_some()).count();
        assert!(kept >= 45, "{kept} of 50");
    }
}

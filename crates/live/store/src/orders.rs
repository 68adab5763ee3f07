//! Disclosed orders: what is read next, and when it is read again.
//!
//! An order is a list of byte ranges that a reader is going to read. Progress in it is a set of reads, not a cursor:
//! workers finish batches out of order, samples are skipped, others are read for another reason. Where a reader is, its
//! *front*, is half of the last reads after their median. What lies behind the front and was not read is taken to be as
//! likely to be read as what lies as far ahead of it.

use std::collections::{BTreeMap, VecDeque};

use headstart_policy::hinted::nearness::{Pace, RECENT};
use headstart_types::Nanos;

use crate::named::{Named, RangeId, Span, Use};

/// In place of an entry that was read.
const READ: RangeId = RangeId::MAX;

/// One disclosed order.
#[derive(Debug, Default)]
struct Order {
    /// Ranges that are still to be read, from position `first` on; [`READ`] was read.
    entries: VecDeque<RangeId>,
    first: u64,
    recent: VecDeque<u64>,
    front: u64,
    /// The position from which on entries have not been looked at to be fetched.
    cursor: u64,
    pace: Pace,
}

impl Order {
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn get(&self, at: u64) -> Option<RangeId> {
        self.entries.get(at.checked_sub(self.first)? as usize).copied().filter(|id| *id != READ)
    }

    fn has_read(&mut self, at: u64, now: Nanos, response: Nanos) {
        self.pace.has_read(now, response);
        if let Some(entry) = at.checked_sub(self.first).and_then(|index| self.entries.get_mut(index as usize)) {
            *entry = READ;
        }
        while self.entries.front() == Some(&READ) {
            self.entries.pop_front();
            self.first += 1;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(at);
        let mut sorted: Vec<u64> = self.recent.iter().copied().collect();
        let middle = sorted.len() / 2;
        // Half of the last reads are from there on.
        self.front = *sorted.select_nth_unstable(middle).1 + (self.recent.len() - middle) as u64;
        self.cursor = self.cursor.max(self.first);
    }
}

/// All disclosed orders.
#[derive(Debug, Default)]
pub struct Orders {
    orders: BTreeMap<u32, Order>,
    named: Named,
    /// Entries and bytes disclosed so far.
    pub disclosed: (u64, u64),
    /// Entries that are near the front of a reader whose rate is not known.
    near: u64,
    /// Bytes of the memory.
    room_bytes: u64,
    /// Time within which nearly all answers of the source begin.
    response: Nanos,
}

impl Orders {
    /// No order. `near` entries are near the front of a reader whose rate is not known; others are limited by the room.
    #[must_use]
    pub fn new(near: u64, room_bytes: u64) -> Self {
        Self { near, room_bytes, ..Self::default() }
    }

    /// Time within which nearly all answers of the source begin.
    pub fn set_response(&mut self, response: Nanos) {
        self.response = response;
    }

    #[must_use]
    pub fn response(&self) -> Nanos {
        self.response
    }

    /// Appends `spans` to the order `number`, which need not exist.
    pub fn extend(&mut self, number: u32, spans: &[Span]) {
        let order = self.orders.entry(number).or_default();
        for span in spans {
            let id = self.named.insert(*span, Use { order: number, at: order.end() });
            order.entries.push_back(id);
            self.disclosed.0 += 1;
            self.disclosed.1 += span.bytes();
        }
    }

    /// Forgets an order.
    pub fn withdraw(&mut self, number: u32) {
        let Some(order) = self.orders.remove(&number) else { return };
        for (at, id) in (order.first..).zip(order.entries).filter(|(_, id)| *id != READ) {
            self.named.forget(id, |each| *each == Use { order: number, at });
        }
    }

    /// Numbers of the orders.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.orders.keys().copied()
    }

    /// Entries of an order that have not been read.
    #[must_use]
    pub fn left(&self, number: u32) -> u64 {
        self.orders.get(&number).map_or(0, |order| order.end().saturating_sub(order.front.max(order.first)))
    }

    /// Something reads `span` at `now`: of each range that ends in it, the use that is nearest to its reader is over.
    /// Returns these uses.
    pub fn has_read(&mut self, span: Span, now: Nanos) -> Vec<Use> {
        let read: Vec<(RangeId, Use)> = self
            .named
            .overlapping(span)
            .filter(|id| self.named.span(*id).end <= span.end)
            .filter_map(|id| Some((id, self.named.uses(id).min_by_key(|each| self.steps_to(*each).unsigned_abs())?)))
            .collect();
        for (id, used) in &read {
            self.named.forget(*id, |each| each == used);
            if let Some(order) = self.orders.get_mut(&used.order) {
                order.has_read(used.at, now, self.response);
            }
        }
        read.into_iter().map(|(_, used)| used).collect()
    }

    /// Whether the read of a use had to wait.
    pub fn was(&mut self, each: Use, is_late: bool) {
        if let Some(order) = self.orders.get_mut(&each.order) {
            order.pace.was(is_late);
        }
    }

    /// Entries between the front and a use: negative behind the front.
    fn steps_to(&self, each: Use) -> i64 {
        self.orders.get(&each.order).map_or(i64::MAX, |order| each.at as i64 - order.front as i64)
    }

    /// How far off a use is, in seconds where its reader's rate is known, else in entries of any reader.
    #[must_use]
    pub fn distance(&self, each: Use) -> f64 {
        let rate = self
            .orders
            .get(&each.order)
            .and_then(|order| order.pace.rate())
            .or_else(|| self.mean_rate())
            .unwrap_or(1.0);
        self.steps_to(each).unsigned_abs() as f64 / rate
    }

    fn mean_rate(&self) -> Option<f64> {
        let rates: Vec<f64> = self.orders.values().filter_map(|order| order.pace.rate()).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// The nearest use of any byte of `span`.
    #[must_use]
    pub fn next_use(&self, span: Span) -> Option<Use> {
        let uses = self.named.overlapping(span).flat_map(|id| self.named.uses(id));
        if self.orders.len() == 1 {
            // What is ahead of the front comes first.
            return uses.min_by_key(|each| self.steps_to(*each).unsigned_abs());
        }
        uses.min_by(|one, other| self.distance(*one).total_cmp(&self.distance(*other)))
    }

    /// Whether a use is far ahead in an order that has no reader yet, and may never have one.
    #[must_use]
    pub fn is_doubtful(&self, each: Use) -> bool {
        let Some(order) = self.orders.get(&each.order) else { return true };
        order.pace.rate().is_none() && each.at >= order.front + self.near
    }

    /// The next entry to look at, of the order whose entry is needed soonest: one that is near its front, or any;
    /// `is_followed`: only of orders that readers follow.
    #[must_use]
    pub fn next_entry(&self, is_near: bool, is_followed: bool) -> Option<(Use, Span)> {
        let (entries, bytes) = self.disclosed;
        let room = self.room_bytes / (bytes / entries.max(1)).max(1);
        let orders = self.orders.iter().filter(|(_, order)| !is_followed || order.pace.rate().is_some());
        let next = orders.filter_map(|(number, order)| {
            let from = order.cursor.max(order.front).max(order.first);
            let steps = if is_near { order.pace.near(self.near, 1, room) } else { u64::MAX };
            let until = order.end().min(order.front.saturating_add(steps));
            let (at, id) = (from..until).find_map(|at| order.get(at).map(|id| (at, id)))?;
            Some((Use { order: *number, at }, self.named.span(id)))
        });
        next.min_by(|(one, _), (other, _)| self.distance(*one).total_cmp(&self.distance(*other)))
    }

    /// The entry after a use in its order.
    #[must_use]
    pub fn entry(&self, each: Use) -> Option<Span> {
        self.orders.get(&each.order)?.get(each.at).map(|id| self.named.span(id))
    }

    /// The entry of a use is here or on its way.
    pub fn passed(&mut self, each: Use) {
        if let Some(order) = self.orders.get_mut(&each.order) {
            order.cursor = order.cursor.max(each.at + 1);
        }
    }

    /// What was to be used there has been evicted.
    pub fn look_again(&mut self, each: Use) {
        if let Some(order) = self.orders.get_mut(&each.order) {
            order.cursor = order.cursor.min(each.at);
        }
    }

    /// Whether a use is ahead of its reader.
    #[must_use]
    pub fn is_ahead(&self, each: Use) -> bool {
        self.orders.get(&each.order).is_some_and(|order| each.at >= order.front)
    }

    /// The front of an order.
    #[must_use]
    pub fn front(&self, number: u32) -> u64 {
        self.orders.get(&number).map_or(0, |order| order.front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(object: u32) -> Span {
        Span { object, start: 0, end: 10 }
    }

    fn of(order: u32, at: u64) -> Use {
        Use { order, at }
    }

    #[test]
    fn progress_is_a_set_of_reads() {
        let mut orders = Orders::new(10, u64::MAX);
        orders.extend(0, &(0..200).map(span).collect::<Vec<_>>());
        assert_eq!(orders.next_entry(true, false), Some((of(0, 0), span(0))));
        // Two workers, one batch of four each, out of order.
        for object in [4, 5, 6, 7, 0, 1, 2, 3] {
            assert_eq!(orders.has_read(span(object), Nanos(object.into())), [of(0, object.into())]);
        }
        assert_eq!(orders.front(0), 8);
        assert_eq!(orders.next_entry(true, false), Some((of(0, 8), span(8))));
        // A stray read of what comes much later does not move the front.
        assert_eq!(orders.has_read(span(190), Nanos(10)), [of(0, 190)]);
        assert_eq!(orders.front(0), 9);
        assert_eq!(orders.next_use(span(190)), None, "it is over");
        // A reader that begins in the middle.
        orders.set_response(Nanos(1000));
        (100..180).for_each(|object| drop(orders.has_read(span(object), Nanos(object.into()))));
        assert_eq!(orders.front(0), 180);
        assert_eq!(
            orders.next_entry(true, false).map(|(at, _)| at),
            Some(of(0, 180)),
            "as much as in the time of two answers"
        );
    }

    #[test]
    fn batches_are_near_as_a_whole() {
        let mut orders = Orders::new(100, u64::MAX);
        orders.set_response(Nanos::from_millis(50));
        orders.extend(0, &(0..1000).map(span).collect::<Vec<_>>());
        assert!(!orders.is_doubtful(of(0, 99)) && orders.is_doubtful(of(0, 100)));
        for object in 0..320_u32 {
            orders.has_read(span(object), Nanos::from_millis(u64::from(object) / 16 * 100));
        }
        // Two batches of 16; of a reader that is known nothing is doubtful.
        let front = orders.front(0);
        (front..front + 32).for_each(|at| orders.passed(of(0, at)));
        assert_eq!(orders.next_entry(true, false), None);
        assert_eq!(orders.next_entry(false, false).map(|(at, _)| at), Some(of(0, front + 32)));
        assert!(!orders.is_doubtful(of(0, 900)));
    }

    #[test]
    fn the_nearest_use_is_the_next_one() {
        let mut orders = Orders::default();
        orders.extend(0, &[span(1), span(2), span(1), span(3)]);
        orders.extend(1, &[span(3), span(2)]);
        assert_eq!(orders.next_use(span(1)), Some(of(0, 0)));
        assert_eq!(orders.next_use(Span { object: 2, start: 9, end: 30 }), Some(of(0, 1)), "of any byte");
        assert_eq!(orders.next_use(Span { object: 2, start: 10, end: 30 }), None);
        assert_eq!(orders.next_use(span(3)), Some(of(1, 0)));
        assert_eq!(orders.has_read(span(1), Nanos(1)), [of(0, 0)]);
        assert_eq!(orders.next_use(span(1)), Some(of(0, 2)));
        orders.withdraw(0);
        assert_eq!((orders.next_use(span(1)), orders.next_use(span(2))), (None, Some(of(1, 1))));
        orders.withdraw(7);
    }

    #[test]
    fn a_range_is_read_with_its_last_byte() {
        let mut orders = Orders::default();
        orders.extend(0, &[Span { object: 1, start: 100, end: 200 }, Span { object: 1, start: 150, end: 300 }]);
        assert_eq!(orders.has_read(Span { object: 1, start: 100, end: 180 }, Nanos(0)), []);
        assert_eq!(orders.has_read(Span { object: 1, start: 180, end: 250 }, Nanos(0)), [of(0, 0)]);
        assert_eq!(orders.has_read(Span { object: 1, start: 0, end: 1000 }, Nanos(0)), [of(0, 1)]);
    }
}

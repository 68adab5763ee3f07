//! Sorts records that were logged slightly out of order.
//!
//! Tracers that write a record when the request completes, or that have a buffer for each processor, do not write in
//! order of issue. If times are whole seconds, a record may follow one that is a second later. We hold back the records
//! of the last [`SPAN`] of the trace and emit them in order of time; records with equal times keep their order. A
//! record that is earlier than one already emitted is an error, because sorting a whole trace would need memory in
//! proportion to its length.
//!
//! Cost: constant for a record in order; for a late record, logarithmic in the number of late records held. Memory: at
//! most [`HELD_MAX`] records.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstart_types::Nanos;

use crate::Record;

/// How much earlier a record may be than one before it. A log written at completion is out of order by at most the
/// longest service time, and Linux gives up on a request after 30 s by default (`/sys/block/*/device/timeout` of SCSI
/// disks, `nvme_core.io_timeout`).
const SPAN: Nanos = Nanos(30_000_000_000);
/// Minimum number of records held back: they cost little, and a trace may have pauses longer than the span.
const HELD_MIN: usize = 1024;
/// Maximum number of records held back; with a batch more, 15 MB. For a trace with more requests in 30 s, the span is
/// shorter. A guess.
const HELD_MAX: usize = 250_000;

/// The limits on what is held back.
#[derive(Debug, Clone, Copy)]
struct Window {
    span: Nanos,
    held_min: usize,
    held_max: usize,
}

#[derive(Debug)]
pub(crate) struct Order {
    window: Window,
    /// Records that arrived in order.
    in_order: VecDeque<Record>,
    /// Records that arrived late.
    late: BinaryHeap<Reverse<Late>>,
    /// Number of late records so far.
    late_count: u64,
    /// Recorded times of the latest record taken and of the last one emitted.
    latest: Nanos,
    released: Nanos,
}

/// A late record. Records with equal times are emitted in order of arrival.
#[derive(Debug)]
struct Late {
    number: u64,
    record: Record,
}

impl Late {
    fn key(&self) -> (Nanos, u64) {
        (self.record.time, self.number)
    }
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Default for Order {
    fn default() -> Self {
        Self::new(Window { span: SPAN, held_min: HELD_MIN, held_max: HELD_MAX })
    }
}

impl Order {
    fn new(window: Window) -> Self {
        Self {
            window,
            in_order: VecDeque::new(),
            late: BinaryHeap::new(),
            late_count: 0,
            latest: Nanos::ZERO,
            released: Nanos::ZERO,
        }
    }

    /// Holds all records until the end, for traces that are ordered by file or by process.
    pub(crate) fn whole() -> Self {
        Self::new(Window { span: Nanos(u64::MAX), held_min: usize::MAX, held_max: usize::MAX })
    }

    /// Takes a record whose time is as recorded.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) -> Result<(), String> {
        if record.time >= self.latest {
            self.latest = record.time;
            self.in_order.push_back(record);
            return Ok(());
        }
        self.push_late(record)
    }

    #[cold]
    fn push_late(&mut self, record: Record) -> Result<(), String> {
        if record.time < self.released {
            let back = Nanos(self.latest.0 - record.time.0);
            let Window { span, held_max, .. } = self.window;
            return Err(format!(
                "the time is {back} earlier than in a previous record; allowed: earlier by up to {span}, by up to \
                {held_max} records"
            ));
        }
        self.late_count += 1;
        self.late.push(Reverse(Late { number: self.late_count, record }));
        Ok(())
    }

    /// Moves the earliest records to `into` while more are held than the window allows, and until that has `most`.
    pub(crate) fn release(&mut self, most: usize, into: &mut Vec<Record>) {
        while !self.late.is_empty() && into.len() < most {
            let Some(record) = self.pop_ready() else { return };
            into.push(record);
        }
        if self.late.is_empty() {
            let Window { span, held_min, held_max } = self.window;
            let held = self.in_order.len();
            let has_passed = |record: &Record| self.latest.0 - record.time.0 > span.0;
            let passed = self.in_order.front().filter(|first| has_passed(first));
            let passed = passed.map_or(0, |_| self.in_order.partition_point(has_passed));
            let due = held.saturating_sub(held_max).max(passed.min(held.saturating_sub(held_min)));
            for record in self.in_order.drain(..due.min(most.saturating_sub(into.len()))) {
                self.released = record.time;
                into.push(record);
            }
        }
    }

    /// The earliest record, if more are held than the window allows.
    pub(crate) fn pop_ready(&mut self) -> Option<Record> {
        let held = self.in_order.len() + self.late.len();
        let has_passed = |earliest: Nanos| self.latest.0 - earliest.0 > self.window.span.0;
        let is_ready =
            held > self.window.held_max || held > self.window.held_min && self.earliest().is_some_and(has_passed);
        is_ready.then(|| self.pop())?
    }

    /// The earliest record held.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Record> {
        // Of equal times, the record that arrived in order comes first: a record is late only if a later time was taken
        // before it.
        let late = match (self.in_order.front(), self.late.peek()) {
            (Some(front), Some(Reverse(late))) => late.record.time < front.time,
            (None, Some(_)) => true,
            _ => false,
        };
        let record = if late { self.late.pop().map(|late| late.0.record) } else { self.in_order.pop_front() }?;
        self.released = record.time;
        Some(record)
    }

    #[inline]
    fn earliest(&self) -> Option<Nanos> {
        let front = self.in_order.front().map(|record| record.time);
        let late = self.late.peek().map(|late| late.0.record.time);
        match (front, late) {
            (Some(front), Some(late)) => Some(front.min(late)),
            (front, late) => front.or(late),
        }
    }

    /// Whether any record was out of order.
    pub(crate) fn reordered(&self) -> bool {
        self.late_count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::BATCH;

    fn at(time: u64, size: u64) -> Record {
        Record { time: Nanos(time), size, ..Record::default() }
    }

    fn window(span: u64, held_min: usize, held_max: usize) -> Order {
        Order::new(Window { span: Nanos(span), held_min, held_max })
    }

    fn released(order: &mut Order) -> Vec<Record> {
        let mut into = Vec::new();
        order.release(BATCH, &mut into);
        into
    }

    /// The times emitted after each push.
    fn handed_out(order: &mut Order, times: &[u64]) -> Vec<Vec<u64>> {
        let ready = |order: &mut Order| released(order).iter().map(|record| record.time.0).collect();
        times
            .iter()
            .map(|time| {
                order.push(at(*time, 1)).expect("not too late");
                ready(order)
            })
            .collect()
    }

    #[test]
    fn a_window_of_two_nanoseconds_mends_what_is_two_late() {
        let mut order = window(2, 0, 100);
        // 5 | 5 7 | 5 6 7 | 5 5 6 7 | at 8 both 5 are emitted | at 20 all but 20.
        let expected: [&[u64]; 6] = [&[], &[], &[], &[], &[5, 5], &[6, 7, 8]];
        assert_eq!(handed_out(&mut order, &[5, 7, 6, 5, 8, 20]), expected);
        assert!(order.reordered());
        let late = order.push(at(4, 1)).expect_err("8 is out");
        let allowed = "allowed: earlier by up to 2ns, by up to 100 records";
        assert_eq!(late, format!("the time is 16ns earlier than in a previous record; {allowed}"));
        assert_eq!([order.pop(), order.pop()], [Some(at(20, 1)), None]);
    }

    #[test]
    fn no_more_are_held_than_fit_and_some_always_are() {
        let mut order = window(1_000, 0, 2);
        assert_eq!(handed_out(&mut order, &[1, 2, 3, 4]), [vec![], vec![], vec![1], vec![2]]);
        let mut order = window(1, 2, 100);
        assert_eq!(handed_out(&mut order, &[10, 20, 15, 30]), [vec![], vec![], vec![10], vec![15]]);
    }

    /// Records that are all late by a second would take long if each were inserted by moving the records after it.
    #[test]
    fn late_records_do_not_move_others() {
        let mut order = Order::default();
        let mut count = 0u64;
        for second in 0..4u64 {
            for index in 0..50_000u64 {
                order.push(at((second + 1 - index % 2) * 1_000_000_000, 1)).expect("within the span");
                count += released(&mut order).len() as u64;
            }
        }
        let mut last = Nanos::ZERO;
        while let Some(record) = order.pop() {
            assert!(record.time >= last);
            last = record.time;
            count += 1;
        }
        assert_eq!(count, 200_000);
    }

    proptest! {
        #[test]
        fn a_window_as_long_as_the_trace_is_a_stable_sort(times in proptest::collection::vec(0u64..20, 0..50)) {
            let mut order = window(20, 0, 50);
            let mut expected: Vec<Record> = (0u64..).zip(&times).map(|(index, time)| at(*time, index)).collect();
            for record in &expected {
                order.push(*record).unwrap();
                prop_assert_eq!(released(&mut order), []);
            }
            prop_assert_eq!(order.reordered(), !times.is_sorted());
            expected.sort_by_key(|record| record.time);
            let sorted: Vec<Record> = std::iter::from_fn(|| order.pop()).collect();
            prop_assert_eq!(sorted, expected);
        }

        #[test]
        fn what_is_handed_out_is_in_order(times in proptest::collection::vec(0u64..40, 0..80), span in 0u64..10, most in 1usize..20) {
            let mut order = window(span, 0, most);
            let (mut last, mut taken, mut out) = (Nanos::ZERO, 0, 0);
            for time in times {
                taken += usize::from(order.push(at(time, 1)).is_ok());
                for record in released(&mut order) {
                    prop_assert!(record.time >= last);
                    last = record.time;
                    out += 1;
                }
                prop_assert!(taken - out <= most);
            }
        }
    }
}

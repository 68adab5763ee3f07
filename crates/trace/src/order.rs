//! Records that were logged a little out of order, put in order of issue.
//!
//! Tracers that write a record when the request completes, or one buffer for each processor, do not write in order
//! of issue. We hold back the last [`WINDOW`] records and insert each where it belongs, behind those of the same
//! time. A record that is earlier than what was handed out already is an error: sorting a whole trace would take
//! memory in proportion to it.
//! Cost: constant for a record in order; one move for each record that it overtakes, otherwise.

use std::collections::VecDeque;

use headstart_types::Nanos;

use crate::Record;

/// How many records the formats hold back: a few times the depth of a busy server's queue. A guess.
pub(crate) const WINDOW: usize = 1024;

/// The records held back.
#[derive(Debug)]
pub(crate) struct Order {
    window: usize,
    held: VecDeque<Record>,
    /// Time of the last record handed out, as recorded.
    released_ns: u64,
    reordered: bool,
}

impl Order {
    pub(crate) fn new(window: usize) -> Self {
        Self { window, held: VecDeque::with_capacity(window + 1), released_ns: 0, reordered: false }
    }

    /// Takes a record, its time as recorded, and hands out the earliest if more than the window are held.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) -> Result<Option<Record>, String> {
        if self.held.back().is_none_or(|last| last.time <= record.time) {
            self.held.push_back(record);
        } else {
            self.insert(record)?;
        }
        Ok(if self.held.len() > self.window { self.pop() } else { None })
    }

    /// The earliest of those held.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Record> {
        let record = self.held.pop_front()?;
        self.released_ns = record.time.0;
        Some(record)
    }

    /// Whether any record stood out of order.
    pub(crate) fn reordered(&self) -> bool {
        self.reordered
    }

    #[cold]
    fn insert(&mut self, record: Record) -> Result<(), String> {
        if record.time.0 < self.released_ns {
            let back = Nanos(self.released_ns - record.time.0);
            let window = self.window;
            return Err(format!(
                "the time is {back} earlier than {window} records before; allowed: out of order by up to {window} records"
            ));
        }
        self.reordered = true;
        let at = self.held.partition_point(|held| held.time <= record.time);
        self.held.insert(at, record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(time: u64, size: u64) -> Record {
        Record { time: Nanos(time), size, ..Record::default() }
    }

    #[test]
    fn a_window_of_two_mends_what_is_two_records_late() {
        let mut order = Order::new(2);
        let pushed: Vec<Option<u64>> =
            [5, 7, 6, 5].iter().map(|time| order.push(at(*time, 1)).unwrap().map(|record| record.time.0)).collect();
        // Held: 5 | 5 7 | 5 6 7, out 5 | 6 7 and a second 5, out 5.
        assert_eq!(pushed, [None, None, Some(5), Some(5)]);
        assert!(order.reordered());
        let late = order.push(at(4, 1)).unwrap_err();
        assert_eq!(late, "the time is 1ns earlier than 2 records before; allowed: out of order by up to 2 records");
        assert_eq!([order.pop(), order.pop(), order.pop()], [Some(at(6, 1)), Some(at(7, 1)), None]);
    }

    proptest! {
        #[test]
        fn a_window_as_long_as_the_trace_is_a_stable_sort(times in proptest::collection::vec(0u64..20, 0..50)) {
            let mut order = Order::new(times.len());
            let mut expected: Vec<Record> = (0u64..).zip(&times).map(|(index, time)| at(*time, index)).collect();
            for record in &expected {
                prop_assert_eq!(order.push(*record).unwrap(), None);
            }
            prop_assert_eq!(order.reordered(), !times.is_sorted());
            expected.sort_by_key(|record| record.time);
            let sorted: Vec<Record> = std::iter::from_fn(|| order.pop()).collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}

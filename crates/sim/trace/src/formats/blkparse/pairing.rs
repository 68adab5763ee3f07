//! Pairs requests with their completions and emits requests in order of issue.

use std::collections::{BTreeSet, VecDeque};

use super::event::Event;
use crate::formats::fields::SECTOR_BYTES;
use crate::Record;

/// Requests not emitted yet.
pub(super) struct Pairing {
    /// Requests in order of issue, each with whether it is complete.
    waiting: VecDeque<(Record, bool)>,
    /// Sequence number of the first waiting request.
    first: u64,
    /// (device, write, last sector, sequence number) of the incomplete requests.
    open: BTreeSet<(u32, bool, u64, u64)>,
    /// Maximum number of waiting requests.
    most: usize,
}

impl Pairing {
    pub fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), first: 0, open: BTreeSet::new(), most }
    }

    /// Adds an issued request.
    pub fn begin(&mut self, record: Record) {
        let number = self.first + self.waiting.len() as u64;
        self.open.insert((record.file, record.write, last_sector(&record), number));
        self.waiting.push_back((record, false));
    }

    /// Completes, for each sector that the completion covers, the oldest request whose last sector it is.
    pub fn complete(&mut self, event: &Event) {
        let start = event.offset / SECTOR_BYTES;
        let end = start + event.size / SECTOR_BYTES;
        let mut from = (event.device, event.write, start, 0);
        while let Some(&found) = self.open.range(from..(event.device, event.write, end, 0)).next() {
            self.open.remove(&found);
            let (_, _, last, number) = found;
            // Incomplete requests are always among the waiting ones.
            if let Some((record, complete)) = self.waiting.get_mut((number - self.first) as usize) {
                record.duration = event.time.saturating_sub(record.time);
                *complete = true;
            }
            from = (event.device, event.write, last + 1, 0);
        }
    }

    /// Removes the first request if it is complete, if too many wait, or if `all` is set.
    pub fn pop(&mut self, all: bool) -> Option<Record> {
        let (record, complete) = *self.waiting.front()?;
        if !(complete || all || self.waiting.len() > self.most) {
            return None;
        }
        if !complete {
            self.open.remove(&(record.file, record.write, last_sector(&record), self.first));
        }
        self.waiting.pop_front();
        self.first += 1;
        Some(record)
    }
}

fn last_sector(record: &Record) -> u64 {
    (record.offset / SECTOR_BYTES + record.size / SECTOR_BYTES).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use headstart_types::Nanos;

    use super::super::event::{Action, ProcessName};
    use super::*;

    fn record(time: u64, sector: u64, sectors: u64) -> Record {
        Record { time: Nanos(time), offset: sector * 512, size: sectors * 512, ..Record::default() }
    }

    fn done(time: u64, sector: u64, sectors: u64) -> Event {
        let (offset, size) = (sector * 512, sectors * 512);
        let (device, pid, process) = (0, 0, ProcessName::default());
        Event { action: Action::Completed, time: Nanos(time), device, pid, write: false, offset, size, process }
    }

    #[test]
    fn merged_requests_end_together_and_a_split_one_with_its_last_part() {
        let mut pairing = Pairing::new(10);
        pairing.begin(record(1, 0, 8));
        pairing.begin(record(2, 8, 8));
        pairing.begin(record(3, 100, 16));
        assert_eq!(pairing.pop(false), None);
        pairing.complete(&done(10, 100, 8));
        pairing.complete(&done(11, 0, 16));
        pairing.complete(&done(12, 108, 8));
        let durations: Vec<u64> = std::iter::from_fn(|| pairing.pop(false)).map(|record| record.duration.0).collect();
        assert_eq!(durations, [10, 9, 9], "11 - 1, 11 - 2, 12 - 3");
    }

    #[test]
    fn of_equal_requests_the_oldest_ends_first_and_too_many_do_not_wait() {
        let mut pairing = Pairing::new(2);
        for time in [1, 2, 3] {
            pairing.begin(record(time, 0, 8));
        }
        assert_eq!(pairing.pop(false), Some(record(1, 0, 8)), "three wait, two may");
        pairing.complete(&done(9, 0, 8));
        assert_eq!(pairing.pop(false).map(|record| record.duration), Some(Nanos(7)));
        assert_eq!((pairing.pop(false), pairing.pop(true), pairing.pop(true)), (None, Some(record(3, 0, 8)), None));
        assert!(pairing.open.is_empty());
    }
}

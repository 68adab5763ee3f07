//! Converts requests in bytes to blocks and recorded think times.

use headstart_scenario::{BlockSize, ComputeKey, WorkloadKeys};
use headstart_trace::{Carries, Record};
use headstart_types::{Bytes, Nanos};

use super::records::Records;
use crate::Error;

/// More blocks than any application requests at once; keeps one wrong record from filling the memory.
const REQUEST_BLOCKS_MAX: u64 = 1 << 22;

/// A request in blocks.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// The file, or 0 if files are not distinguished.
    pub file: u32,
    /// First block in the file.
    pub first: u64,
    /// Number of blocks, at least 1.
    pub blocks: u64,
}

/// Divides requests into blocks and computes recorded think times.
#[derive(Debug, Clone)]
pub struct Cutter {
    block_size: BlockSize,
    block_bytes: u64,
    /// Its logarithm, if it is a power of two.
    shift: Option<u32>,
    /// Whether every record is one block.
    pub objects: bool,
    tell_files: bool,
    /// The source of recorded think times.
    recorded: RecordedThink,
}

/// The source of recorded think times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedThink {
    /// None: the trace does not carry them, so they are zero.
    Nothing,
    /// The trace's own think times.
    Own,
    /// Gaps between requests, minus the durations of the requests.
    Rests,
    /// Whole gaps, including waits for I/O.
    Gaps,
}

impl RecordedThink {
    /// For a trace that carries `carries`. Times without durations do not distinguish thinking from waiting for I/O:
    /// they are only used if the user asks for whole gaps, or gives the sum of the think times.
    #[must_use]
    pub fn of(keys: &WorkloadKeys, carries: Carries) -> Self {
        match keys.compute {
            ComputeKey::Gaps if carries.time => RecordedThink::Gaps,
            _ if carries.think => RecordedThink::Own,
            _ if carries.time && carries.duration => RecordedThink::Rests,
            _ if carries.time && keys.section.compute_total.is_some() => RecordedThink::Gaps,
            _ => RecordedThink::Nothing,
        }
    }
}

impl Cutter {
    /// The scenario's rule for a trace that carries `carries`; `tell_files` distinguishes its files.
    #[must_use]
    pub fn new(keys: &WorkloadKeys, carries: Carries, tell_files: bool) -> Self {
        Self {
            block_size: keys.block_size,
            block_bytes: keys.block_bytes(),
            shift: keys.block_bytes().is_power_of_two().then(|| keys.block_bytes().trailing_zeros()),
            objects: carries.objects,
            tell_files,
            recorded: RecordedThink::of(keys, carries),
        }
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The file of a record.
    #[inline]
    #[must_use]
    pub fn file(&self, record: &Record) -> u32 {
        if self.tell_files {
            record.file
        } else {
            0
        }
    }

    /// The block that contains `offset`. A division takes as long as everything else about a request, so powers of two
    /// use a shift.
    #[inline]
    fn block_at(&self, offset: u64) -> u64 {
        match self.shift {
            Some(shift) => offset >> shift,
            None => offset / self.block_bytes,
        }
    }

    /// The blocks that a request touches. An object is one block.
    ///
    /// # Errors
    /// If the request is unreasonably large.
    #[inline]
    pub fn cut(&self, record: &Record, records: &Records) -> Result<Cut, Error> {
        let file = self.file(record);
        if self.objects || self.block_size == BlockSize::Object {
            return Ok(Cut { file, first: record.offset, blocks: 1 });
        }
        let first = self.block_at(record.offset);
        let last = self.block_at(record.offset + (record.size - 1));
        if last - first >= REQUEST_BLOCKS_MAX {
            return Err(self.too_large(record, records));
        }
        Ok(Cut { file, first, blocks: last - first + 1 })
    }

    /// Bytes of block `at` that a request touching it reads; an object is read whole.
    #[inline]
    #[must_use]
    pub fn asked(&self, record: &Record, at: u64) -> u64 {
        if self.objects || self.block_size == BlockSize::Object {
            return self.block_bytes;
        }
        let begin = at * self.block_bytes;
        let end = begin.saturating_add(self.block_bytes);
        record.offset.saturating_add(record.size).min(end) - record.offset.max(begin)
    }

    /// Whether a request ends before its last block does. An object is read whole.
    #[inline]
    #[must_use]
    pub fn ends_inside(&self, record: &Record) -> bool {
        let end = record.offset.wrapping_add(record.size);
        match self.shift {
            _ if self.objects || self.block_size == BlockSize::Object => false,
            Some(shift) => end & ((1 << shift) - 1) != 0,
            None => !end.is_multiple_of(self.block_bytes),
        }
    }

    #[cold]
    fn too_large(&self, record: &Record, records: &Records) -> Error {
        let problem = format!("a request of {} is more than {REQUEST_BLOCKS_MAX} blocks", Bytes(record.size));
        records.bad(record, &problem, "larger blocks (workload.block_size)")
    }

    /// Think time between the end of `record` and the issue of the next.
    #[inline]
    #[must_use]
    pub fn think(&self, record: &Record, next: Option<&Record>) -> Nanos {
        let gap = |next: &Record| next.time.saturating_sub(record.time);
        match (self.recorded, next) {
            (RecordedThink::Own, _) => record.think,
            (RecordedThink::Rests, Some(next)) => gap(next).saturating_sub(record.duration),
            (RecordedThink::Gaps, Some(next)) => gap(next),
            _ => Nanos::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_asked_for_whole() {
        let keys =
            crate::Scenario::from_table("workload = {trace = \"t\", block_size = \"512B\"}".parse().expect("TOML"));
        let keys = keys.expect("keys").workload;
        let record = Record { offset: 600, size: 500, ..Record::default() };
        let objects = Cutter::new(&keys, Carries { objects: true, ..Carries::NOTHING }, false);
        assert_eq!(objects.asked(&record, 600), 512);
        let bytes = Cutter::new(&keys, Carries::default(), false);
        assert_eq!([1, 2].map(|at| bytes.asked(&record, at)), [424, 76]);
    }

    #[test]
    fn a_service_time_without_end_leaves_no_think_time() {
        let keys = crate::Scenario::from_table("workload = {trace = \"t\"}".parse().expect("TOML")).expect("keys");
        let carries = Carries { time: true, duration: true, ..Carries::NOTHING };
        let cutter = Cutter::new(&keys.workload, carries, false);
        let at =
            |time: u64, duration: u64| Record { time: Nanos(time), duration: Nanos(duration), ..Record::default() };
        assert_eq!(cutter.think(&at(10, 3), Some(&at(20, 0))), Nanos(7));
        assert_eq!(cutter.think(&at(10, u64::MAX), Some(&at(20, 0))), Nanos::ZERO);
    }
}

//! Summary figures of a trace, computed in one pass.
//!
//! Memory: 16 bytes and some overhead per distinct block, and what [`crate::Analysis`] needs.

use std::collections::{BTreeSet, HashMap, HashSet};

use headstart_types::{Bytes, KeyError};
use serde::Serialize;

use crate::analysis::{Analysis, Analyst};
use crate::concurrency::ConcurrencyStats;
use crate::hash::Build;
use crate::limits::check_distinct;
use crate::{Carries, Record, RecordReader, TraceError};

/// Maximum number of blocks of one request. A larger one points to an error in the trace or in the block size.
pub(crate) const REQUEST_BLOCKS_MAX: u64 = 1 << 24;

/// Figures of a trace. Times are in nanoseconds; values that the trace does not carry are `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Info {
    pub format: Option<&'static str>,
    /// How the format was recognised.
    pub format_reason: Option<&'static str>,
    pub requests: u64,
    /// Reads; all requests if the trace does not distinguish reads and writes.
    pub reads: u64,
    pub writes: u64,
    /// Reads over requests, 0 to 1.
    pub read_share: f64,
    /// Block size used for counting; `None` if the trace's objects are counted.
    pub block_bytes: Option<u64>,
    /// Blocks touched, summed over the requests.
    pub references: u64,
    pub distinct_blocks: u64,
    /// Requests that start where the previous one to the same file or device ended, over requests, 0 to 1.
    pub sequential_share: Option<f64>,
    /// Sum of the request sizes.
    pub bytes: u128,
    /// From the issue of the first request to that of the last.
    pub time_span_ns: Option<u64>,
    /// Mean think time after a request.
    pub think_ns_mean: Option<f64>,
    /// Mean service time.
    pub duration_ns_mean: Option<f64>,
    /// Number of files or devices.
    pub files: Option<u64>,
    pub processes: Option<u64>,
    /// Requests that began while another process had one outstanding, over requests, 0 to 1.
    pub overlapping_share: Option<f64>,
    /// Empty records that were skipped.
    pub skipped: u64,
    pub carries: Carries,
    /// Notes for the user.
    pub note: Option<String>,
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// The blocks of `block_bytes` that a request touches, as the first block and the count.
pub(crate) fn blocks_of(
    record: &Record,
    block_bytes: u64,
    reader: &dyn RecordReader,
) -> Result<(u64, u64), TraceError> {
    let first = record.offset / block_bytes;
    let count = (record.offset + (record.size - 1)) / block_bytes - first + 1;
    if count > REQUEST_BLOCKS_MAX {
        let problem = format!("a request of {} is {count} blocks of {}", Bytes(record.size), Bytes(block_bytes));
        let allowed = format!("at most {REQUEST_BLOCKS_MAX} blocks per request");
        return Err(reader.bad(record, &problem, &allowed));
    }
    Ok((first, count))
}

/// Reads a trace to its end and computes its figures. `block_bytes` is the block size; `None` stands for the trace's
/// own unit. In a trace of objects, the blocks are the objects.
///
/// # Errors
/// As reading does; also a block size of zero.
pub fn info(reader: &mut dyn RecordReader, block_bytes: Option<u64>) -> Result<Info, TraceError> {
    let carries = reader.carries();
    let block_bytes = (!carries.objects).then(|| block_bytes.unwrap_or(reader.unit_bytes()));
    if block_bytes == Some(0) {
        return Err(KeyError::new("block_size", "is 0", "1 byte or more").into());
    }
    let mut tally = Tally::default();
    let mut batch = Vec::new();
    while reader.read(&mut batch)? {
        for record in &batch {
            tally.add(record, block_bytes, reader)?;
        }
    }
    Ok(tally.finish(carries, block_bytes, reader))
}

#[derive(Default)]
struct Tally {
    requests: u64,
    writes: u64,
    references: u64,
    sequential: u64,
    bytes: u128,
    span_ns: u64,
    think_ns: u128,
    duration_ns: u128,
    blocks: HashSet<(u32, u64), Build>,
    /// Where the last request to each file ended.
    ends: HashMap<u32, u64, Build>,
    processes: BTreeSet<u32>,
    concurrency: ConcurrencyStats,
    analyst: Analyst,
}

impl Tally {
    fn add(&mut self, record: &Record, block_bytes: Option<u64>, reader: &dyn RecordReader) -> Result<(), TraceError> {
        self.requests += 1;
        self.writes += u64::from(record.write);
        self.bytes += u128::from(record.size);
        self.span_ns = record.time.0;
        self.think_ns += u128::from(record.think.0);
        self.duration_ns += u128::from(record.duration.0);
        self.processes.insert(record.pid);
        self.concurrency.add(record);
        let (first, count) = match block_bytes {
            Some(block_bytes) => blocks_of(record, block_bytes, reader)?,
            None => (record.offset, 1),
        };
        self.references += count;
        let known = self.blocks.len();
        self.blocks.extend((0..count).map(|index| (record.file, first + index)));
        check_distinct(self.blocks.len() as u64, self.requests, record, reader)?;
        let end = record.offset.wrapping_add(record.size);
        let sequential = self.ends.insert(record.file, end) == Some(record.offset);
        self.sequential += u64::from(sequential);
        let blocks = (0..count as usize).map(|index| (record.file, first + index as u64));
        self.analyst.add(record, blocks, (self.blocks.len() - known) as u64, sequential);
        Ok(())
    }

    fn finish(self, carries: Carries, block_bytes: Option<u64>, reader: &dyn RecordReader) -> Info {
        let requests = self.requests as f64;
        let reads = self.requests - self.writes;
        let (format, format_reason) = reader.format().unzip();
        Info {
            format,
            format_reason,
            requests: self.requests,
            reads,
            writes: self.writes,
            read_share: reads as f64 / requests,
            block_bytes,
            references: self.references,
            distinct_blocks: self.blocks.len() as u64,
            sequential_share: carries.addresses.then(|| self.sequential as f64 / requests),
            bytes: self.bytes,
            time_span_ns: carries.time.then_some(self.span_ns),
            think_ns_mean: carries.think.then(|| self.think_ns as f64 / requests),
            duration_ns_mean: carries.duration.then(|| self.duration_ns as f64 / requests),
            files: carries.files.then_some(self.ends.len() as u64),
            processes: carries.processes.then_some(self.processes.len() as u64),
            overlapping_share: (carries.processes && carries.duration).then(|| self.concurrency.overlapping_share()),
            skipped: reader.skipped(),
            carries,
            note: reader.note(),
            analysis: self.analyst.finish(carries.time),
        }
    }
}

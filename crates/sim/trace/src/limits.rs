//! Limits on the distinct blocks that a trace may touch, so that a small file cannot exhaust memory.
//!
//! Every distinct block is remembered, and a line of a few bytes can name any of 2^64 blocks.

use headstart_types::{Bytes, KeyError};

use crate::{Record, RecordReader, TraceError};

/// Maximum number of distinct blocks of any trace: 512 GiB in blocks of 8 KiB. Each costs a run some 60 bytes, 4 GB in
/// all. A guess at what a large laptop has.
pub const DISTINCT_BLOCKS_MAX: u64 = 1 << 26;

/// Distinct blocks that any trace may touch, however few its requests: 128 GiB in blocks of 8 KiB, 1 GB of memory. A
/// guess.
const FREE_BLOCKS: u64 = 1 << 24;
/// Distinct blocks that each request adds to the limit: 16 MiB in blocks of 4 KiB. Few requests to a block device are
/// larger, because the kernel splits requests of programs (`max_sectors_kb` of Linux). Reads of whole files may be
/// larger, but rarely of new files each time.
const BLOCKS_A_REQUEST: u64 = 4096;

/// Refuses more distinct blocks than a trace may have. `count` is the number so far, and `record`, emitted by `reader`,
/// touched the last of them. `requests` is the number of requests so far.
///
/// # Errors
/// If there are too many.
#[inline]
pub fn check_distinct(count: u64, requests: u64, record: &Record, reader: &dyn RecordReader) -> Result<(), TraceError> {
    if count <= FREE_BLOCKS || count <= limit(requests) {
        return Ok(());
    }
    let problem = format!(
        "with this request of {} there are {count} distinct blocks, more than {}",
        Bytes(record.size),
        limit(requests)
    );
    Err(reader.bad(record, &problem, "larger blocks, smaller requests, or fewer of them"))
}

/// The same check where no request can be named: against the limit for any trace.
pub(crate) fn check_distinct_of_all(count: u64) -> Result<(), TraceError> {
    if count <= DISTINCT_BLOCKS_MAX {
        return Ok(());
    }
    let problem = format!("there are more than {DISTINCT_BLOCKS_MAX} distinct blocks");
    Err(KeyError::new("block_size", problem, "larger blocks").into())
}

fn limit(requests: u64) -> u64 {
    requests.saturating_mul(BLOCKS_A_REQUEST).saturating_add(FREE_BLOCKS).min(DISTINCT_BLOCKS_MAX)
}

//! How many distinct blocks the requests of a trace may touch, so that a small file cannot fill the memory.
//!
//! Every distinct block is remembered. A line of a trace is a few bytes and can name 2^64 of them.

use headstart_types::{Bytes, KeyError};

use crate::{Record, RecordReader, TraceError};

/// Distinct blocks of any trace: 512 GiB of 8 KiB ones. Each costs a run some 60 bytes, which makes 4 GB. A guess at what
/// a large laptop holds.
pub const DISTINCT_BLOCKS_MAX: u64 = 1 << 26;

/// Distinct blocks of a trace with few requests: 128 GiB of 8 KiB ones, for 1 GB of memory. A guess.
const FREE_BLOCKS: u64 = 1 << 24;
/// What each request may add to them: 16 MiB of 4 KiB blocks. Few requests of a block device are larger, because the
/// system cuts those of programs (`max_sectors_kb` of Linux); reads of whole files are, but not of ever more files.
const BLOCKS_A_REQUEST: u64 = 4096;

/// Refuses more distinct blocks than a trace may have: `count` of them, of which `record`, handed out by `reader`, has
/// brought the last. `requests` is how many there have been.
///
/// # Errors
/// They are too many.
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

/// The same where no request can be named: against the most that any trace may have.
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

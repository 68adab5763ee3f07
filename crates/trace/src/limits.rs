//! How many blocks the requests of a trace may be, so that a small file cannot fill the memory.
//!
//! Every block that a request touches is a reference, and every distinct one is remembered. A line of a trace is a few
//! bytes and can name 2^64 of them.

use headstart_types::KeyError;

use crate::{Record, RecordReader, TraceError};

/// Distinct blocks: 512 GiB of 8 KiB ones. Each costs a run some 60 bytes, which makes 4 GB. A guess at what a large
/// laptop holds.
pub const DISTINCT_BLOCKS_MAX: usize = 1 << 26;

/// Blocks of the requests of a trace that have more than [`USUAL_BLOCKS_MAX`], together: 128 GiB of 8 KiB ones. A guess.
const UNUSUAL_BLOCKS_MAX: u64 = 1 << 24;
/// No limit holds for requests of so many blocks, which is 16 MiB of 4 KiB ones: the largest that drivers of Linux let
/// their device take (`max_hw_sectors_kb`).
const USUAL_BLOCKS_MAX: u64 = 4096;

/// How many blocks more the unusually large requests of a trace may have.
#[derive(Debug, Clone)]
pub struct BlockAllowance {
    block_bytes: u64,
    usual_bytes_max: u64,
    left: u64,
}

impl BlockAllowance {
    /// For requests that are cut into blocks of `block_bytes`, at least 1.
    #[must_use]
    pub fn new(block_bytes: u64) -> Self {
        let usual_bytes_max = block_bytes.saturating_mul(USUAL_BLOCKS_MAX);
        Self { block_bytes, usual_bytes_max, left: UNUSUAL_BLOCKS_MAX }
    }

    /// Takes the blocks of `record`, a request that `reader` has handed out.
    ///
    /// # Errors
    /// They are more than are left.
    #[inline]
    pub fn take(&mut self, record: &Record, reader: &dyn RecordReader) -> Result<(), TraceError> {
        if record.size <= self.usual_bytes_max {
            return Ok(());
        }
        match self.left.checked_sub(record.size / self.block_bytes) {
            Some(left) => self.left = left,
            None => return Err(self.too_many(record, reader)),
        }
        Ok(())
    }

    #[cold]
    fn too_many(&self, record: &Record, reader: &dyn RecordReader) -> TraceError {
        let problem = format!(
            "with this request of {} bytes, the requests of more than {USUAL_BLOCKS_MAX} blocks come to more than \
             {UNUSUAL_BLOCKS_MAX} blocks of {} bytes",
            record.size, self.block_bytes
        );
        reader.bad(record, &problem, "larger blocks, or smaller requests")
    }
}

/// Refuses more distinct blocks than fit in memory.
///
/// # Errors
/// There are more than [`DISTINCT_BLOCKS_MAX`].
#[inline]
pub fn check_distinct(count: usize, record: &Record, reader: &dyn RecordReader) -> Result<(), TraceError> {
    if count <= DISTINCT_BLOCKS_MAX {
        return Ok(());
    }
    let problem = format!("with this request there are more than {DISTINCT_BLOCKS_MAX} distinct blocks");
    Err(reader.bad(record, &problem, "larger blocks, or a limit on the requests"))
}

/// The same where no request can be named.
pub(crate) fn check_distinct_all(count: usize) -> Result<(), TraceError> {
    if count <= DISTINCT_BLOCKS_MAX {
        return Ok(());
    }
    let problem = format!("there are more than {DISTINCT_BLOCKS_MAX} distinct blocks");
    Err(KeyError::new("block_size", problem, "larger blocks").into())
}

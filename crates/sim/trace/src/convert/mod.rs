//! Writes a trace in another format. The target is created atomically: it is written under a temporary name in the same
//! folder and renamed at the end. It is compressed if its name ends in .gz, .bz2, .xz or .zst.

mod csv;
mod oracle_general;
mod output;

pub use output::remove_pending_files;
pub(crate) use output::Pending;

use std::path::{Path, PathBuf};

use headstart_types::KeyError;
use serde::Serialize;

use crate::{RecordReader, TraceError};

/// The formats that [`convert`] writes.
pub static TARGETS: &[&str] = &["csv", "oracleGeneral"];

/// The result of [`convert()`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConvertSummary {
    pub requests: u64,
    pub records: u64,
    /// Empty records that were skipped.
    pub skipped: u64,
    /// The fields that the trace carried and the target lacks.
    pub lost: Vec<&'static str>,
    /// The file table written with the target, if any.
    pub file_table: Option<PathBuf>,
}

/// Reads a trace to its end and writes it to `path` in the format `target`.
///
/// `csv` writes the columns that the trace carries, and the file table; reading it returns the same records.
/// `oracleGeneral` writes one record for each block of `block_bytes` (for each request of an object trace).
///
/// # Errors
/// As reading does; an unknown target; a value that does not fit the target; a file that cannot be written.
pub fn convert(
    reader: &mut dyn RecordReader,
    target: &str,
    path: &Path,
    block_bytes: u64,
) -> Result<ConvertSummary, TraceError> {
    let mut summary = match target {
        "csv" => csv::write(reader, path)?,
        "oracleGeneral" => oracle_general::write(reader, path, block_bytes)?,
        _ => {
            return Err(KeyError::unknown("to", "target format", target, TARGETS.iter().copied()).into());
        }
    };
    summary.skipped = reader.skipped();
    Ok(summary)
}

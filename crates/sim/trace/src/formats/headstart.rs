//! `headstart`: the project's own CSV, used for recorded program traces: requests of processes to files.
//!
//! The header is `time,op,pid,file,offset,size,dur_us`: issue time in seconds, R or W, process, file, offset and size
//! in bytes within the file, service time in microseconds. `NAME.files.csv` next to `NAME.csv` gives the files' sizes
//! and paths; without it the file table is empty. Either may be compressed. The format is the CSV of `csv.rs` with all
//! columns of a recorded trace, in this order.

use super::csv;
use crate::number::shown;
use crate::{Carries, Evidence, Format};

pub(crate) const HEADER: &str = "time,op,pid,file,offset,size,dur_us";

/// The fields that such traces carry.
pub(crate) const CARRIES: Carries = Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "headstart",
    summary: "CSV time,op,pid,file,offset,size,dur_us, and NAME.files.csv next to it",
    source: "headstart",
    carries: CARRIES,
    detect,
    open: |source| csv::open(source, accept),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let header = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Evidence::mark(header.trim_ascii_end() == HEADER.as_bytes(), "the first line is headstart's own header")
}

fn accept(header: &[u8]) -> Result<(), String> {
    if header.trim_ascii_end() == HEADER.as_bytes() {
        return Ok(());
    }
    Err(format!("the header {} is wrong; allowed: {HEADER}", shown(header)))
}

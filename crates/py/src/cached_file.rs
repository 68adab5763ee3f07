//! A file in a kernel's page cache, for the study that compares the read-ahead with a real kernel's.

use headstart_policy::readahead::{CachedFile, Version};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::{from_json, outside, to_python};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    version: Version,
    bytes: u64,
    read_ahead_kb: u64,
    max_sectors_kb: u64,
    /// The file is mapped for execution.
    text: bool,
    /// Descriptor, offset, bytes; without bytes, the mapped page at the offset is touched.
    ops: Vec<(u32, u64, Option<u64>)>,
}

/// The pages that each operation brings into the cache. `question` and the result are JSON.
#[pyfunction]
#[pyo3(signature = (question))]
pub fn kernel_pages(py: Python<'_>, question: &str) -> PyResult<String> {
    outside(
        py,
        || "the pages of a kernel".to_owned(),
        || {
            let question: Question = from_json("question", question).map_err(to_python)?;
            let Question { version, bytes, read_ahead_kb, max_sectors_kb, text, ops } = question;
            let mut file = CachedFile::new(version, bytes, read_ahead_kb, max_sectors_kb);
            let one = |(descriptor, offset, bytes): (u32, u64, Option<u64>)| match bytes {
                Some(bytes) => file.read(descriptor, offset, bytes),
                None => file.touch(descriptor, offset, text),
            };
            let pages: Vec<Vec<u64>> = ops.into_iter().map(one).collect();
            serde_json::to_string(&pages).map_err(to_python)
        },
    )?
}

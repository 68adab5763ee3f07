//! A file in the page cache of a kernel, for the study that compares the read-ahead with a real one.

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
    /// What is touched is mapped to be executed.
    text: bool,
    /// Descriptor, offset, bytes; without bytes the page at the offset is touched where it is mapped.
    ops: Vec<(u32, u64, Option<u64>)>,
}

/// The pages that each operation brings into the cache. `question` and the answer are JSON.
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

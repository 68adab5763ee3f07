//! The common entry point for feeding arbitrary bytes to the parsers; the fuzz target and the short tests use it.

use crate::{Source, TraceError, FORMATS};

/// The parser of the file table that accompanies a trace.
const FILE_TABLE: &str = "file-table";

/// The parsers of [`fuzz_parse`]: every row of [`FORMATS`], then "file-table".
pub fn fuzz_formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|row| row.name).chain([FILE_TABLE])
}

/// Reads `content` to its end with a parser of [`fuzz_formats`], and returns the number of records or files. It must
/// terminate for any input.
///
/// # Errors
/// As reading does.
///
/// # Panics
/// If there is no such parser, or if a record breaks a promise of [`crate::RecordReader`], which is what fuzzing looks
/// for.
pub fn fuzz_parse(format: &str, content: &[u8]) -> Result<u64, TraceError> {
    let source = Source::from_bytes("fuzz", content.to_vec())?;
    if format == FILE_TABLE {
        return crate::formats::read_table(source).map(|files| files.len() as u64);
    }
    let row = FORMATS.iter().find(|row| row.name == format).expect("a row of the registry");
    let request_bytes = (format == "offsets").then_some(512);
    let mut reader = (row.open)(source.with_request_bytes(request_bytes))?;
    let objects = reader.carries().objects;
    assert!(reader.unit_bytes() > 0);
    let (mut batch, mut count, mut last) = (Vec::new(), 0, None);
    while reader.read(&mut batch)? {
        assert!(!batch.is_empty() && batch.len() <= crate::BATCH);
        for record in &batch {
            assert!(record.size > 0);
            assert!(objects || record.offset.checked_add(record.size).is_some());
            assert!(last.is_none_or(|last| last <= record.time));
            last = Some(record.time);
        }
        count += batch.len() as u64;
    }
    assert!(batch.is_empty() && count > 0);
    Ok(count)
}

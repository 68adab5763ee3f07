//! The file table that accompanies a CSV trace: `file,max_offset,disk_size,path`, one row per file, in placement order.
//!
//! `max_offset` is the end of the file's last request; `disk_size` is its size on disk, empty if the file was already
//! deleted when sizes were recorded. The larger of the two is used. The path is the rest of the line including commas
//! (recorded tables do not quote it); surrounding quotes are removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::lines::Lines;
use crate::number::{shown, whole, whole_u32};
use crate::source::{without_compression_suffix, COMPRESSED_SUFFIXES};
use crate::{ErrorPosition, FileEntry, Source, TraceError};

pub(crate) const HEADER: &str = "file,max_offset,disk_size,path";

/// The uncompressed name of the table for the trace at `trace`: "x.csv.xz" gives "x.files.csv".
pub(crate) fn table_path(trace: &Path) -> Option<PathBuf> {
    let name = trace.file_name()?.to_str()?;
    let name = without_compression_suffix(name);
    Some(trace.with_file_name(format!("{}.files.csv", name.strip_suffix(".csv").unwrap_or(name))))
}

/// The table for a trace, in any compression; empty if there is none.
pub(crate) fn table_beside(trace: &Path) -> Result<Vec<FileEntry>, TraceError> {
    let Some(plain) = table_path(trace) else { return Ok(Vec::new()) };
    let compressed = COMPRESSED_SUFFIXES.iter().map(|suffix| {
        let mut name = plain.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    });
    let found = std::iter::once(plain.clone()).chain(compressed).find(|path| path.is_file());
    found.map_or(Ok(Vec::new()), |path| read_table(Source::open(&path)?))
}

pub(crate) fn read_table(source: Source) -> Result<Vec<FileEntry>, TraceError> {
    let empty = source.bad(ErrorPosition::File, format!("the file table is empty; allowed: the header {HEADER}"));
    let mut lines = Lines::new(source);
    match lines.next()? {
        None => return Err(empty),
        Some(header) if header.trim_ascii_end() == HEADER.as_bytes() => {}
        Some(header) => {
            let problem = format!("the header {} is wrong; allowed: {HEADER}", shown(header));
            return Err(lines.bad(problem));
        }
    }
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    while let Some(line) = lines.next()? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let entry = row(line).and_then(|entry| match seen.insert(entry.file) {
            true => Ok(entry),
            false => Err(format!("file {} has two rows; allowed: one", entry.file)),
        });
        files.push(entry.map_err(|problem| lines.bad(problem))?);
    }
    Ok(files)
}

fn row(line: &[u8]) -> Result<FileEntry, String> {
    let fields: Vec<&[u8]> = line.splitn(4, |&byte| byte == b',').collect();
    let [file, end, on_disk, path] = fields[..] else {
        return Err(format!("{} has {} columns; allowed: 4, {HEADER}", shown(line), fields.len()));
    };
    let quoted = path.strip_prefix(b"\"").and_then(|path| path.strip_suffix(b"\""));
    let text =
        std::str::from_utf8(quoted.unwrap_or(path)).map_err(|_| format!("the path {} is not UTF-8", shown(path)))?;
    let path = if quoted.is_some() { text.replace("\"\"", "\"") } else { text.to_owned() };
    let disk_size = if on_disk.is_empty() { 0 } else { whole(on_disk, "disk_size")? };
    let size_bytes = whole(end, "max_offset")?.max(disk_size);
    Ok(FileEntry { file: whole_u32(file, "file")?, size_bytes, path })
}

//! The target `csv`: one line per record, with the columns that the trace carries.
//!
//! If the trace carries the same fields as a recorded program trace, the result is the format `headstart`; otherwise it
//! is the format `csv`. Either way, reading it returns the same records. Times are written in seconds with
//! microseconds, or with nanoseconds if a record needs them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use headstart_types::Nanos;

use super::output::{Packer, Pending};
use super::ConvertSummary;
use crate::formats::{table_beside, table_path, TABLE_HEADER};
use crate::source::without_compression_suffix;
use crate::{Carries, ErrorPosition, FileEntry, Record, RecordReader, TraceError};

/// Writes the trace and its file table.
pub(super) fn write(reader: &mut dyn RecordReader, path: &Path) -> Result<ConvertSummary, TraceError> {
    let carries = reader.carries();
    refuse_foreign_table(reader, path)?;
    let (pending, file) = Pending::create(path)?;
    let requests = {
        let mut out = Packer::new(path, file).map_err(|error| pending.error(error))?;
        writeln!(out, "{}", header(carries)).map_err(|error| pending.error(error))?;
        let (mut batch, mut requests) = (Vec::new(), 0);
        while reader.read(&mut batch)? {
            requests += batch.len() as u64;
            batch
                .iter()
                .try_for_each(|record| line(&mut out, record, carries))
                .map_err(|error| pending.error(error))?;
        }
        out.finish().map_err(|error| pending.error(error))?;
        requests
    };
    let file_table = if reader.files().is_empty() { None } else { Some(write_table(reader.files(), path)?) };
    pending.place()?;
    Ok(ConvertSummary { requests, records: requests, file_table, ..ConvertSummary::default() })
}

/// Refuses a target with an existing file table that would not be replaced, since it would be taken for the new
/// trace's.
fn refuse_foreign_table(reader: &dyn RecordReader, path: &Path) -> Result<(), TraceError> {
    if reader.carries().files && reader.files().is_empty() && !table_beside(path)?.is_empty() {
        let problem = "a file table with this name exists and belongs to another trace; allowed: another name, or \
        remove it";
        return Err(TraceError::Bad { file: path.to_owned(), place: ErrorPosition::File, problem: problem.to_owned() });
    }
    Ok(())
}

fn header(carries: Carries) -> String {
    let columns = [
        (carries.time, "time"),
        (carries.writes, "op"),
        (carries.processes, "pid"),
        (carries.files, "file"),
        (true, if carries.objects { "id" } else { "offset" }),
        (true, "size"),
        (carries.duration, "dur_us"),
        (carries.think, "think_us"),
    ];
    let present: Vec<&str> = columns.iter().filter(|(present, _)| *present).map(|(_, name)| *name).collect();
    present.join(",")
}

fn line(out: &mut impl Write, record: &Record, carries: Carries) -> io::Result<()> {
    if carries.time {
        let (s, ns) = (record.time.0 / 1_000_000_000, record.time.0 % 1_000_000_000);
        match ns % 1_000 {
            0 => write!(out, "{s}.{:06},", ns / 1_000)?,
            _ => write!(out, "{s}.{ns:09},")?,
        }
    }
    if carries.writes {
        out.write_all(if record.write { b"W," } else { b"R," })?;
    }
    if carries.processes {
        write!(out, "{},", record.pid)?;
    }
    if carries.files {
        write!(out, "{},", record.file)?;
    }
    write!(out, "{},{}", record.offset, record.size)?;
    if carries.duration {
        micros(out, record.duration)?;
    }
    if carries.think {
        micros(out, record.think)?;
    }
    out.write_all(b"\n")
}

fn micros(out: &mut impl Write, time: Nanos) -> io::Result<()> {
    match (time.0 / 1_000, time.0 % 1_000) {
        (us, 0) => write!(out, ",{us}"),
        (us, ns) => write!(out, ",{us}.{ns:03}"),
    }
}

/// Writes the table, compressed like the trace, and returns its path.
fn write_table(files: &[FileEntry], trace: &Path) -> Result<PathBuf, TraceError> {
    let name = trace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let suffix = &name[without_compression_suffix(&name).len()..];
    let mut path = table_path(trace).unwrap_or_else(|| trace.with_extension("files.csv")).into_os_string();
    path.push(suffix);
    let path = PathBuf::from(path);
    let (pending, file) = Pending::create(&path)?;
    let mut out = Packer::new(&path, file).map_err(|error| pending.error(error))?;
    rows(&mut out, files).and_then(|()| out.finish()).map_err(|error| pending.error(error))?;
    pending.place()?;
    Ok(path)
}

fn rows(out: &mut impl Write, files: &[FileEntry]) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    table.write_record(TABLE_HEADER.split(','))?;
    for entry in files {
        let (file, size) = (entry.file.to_string(), entry.size_bytes.to_string());
        table.write_record([&file, &size, &size, &entry.path])?;
    }
    table.flush()
}

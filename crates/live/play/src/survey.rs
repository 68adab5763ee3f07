//! The first pass over a trace: checks whether it fits, and assigns its files to the export.

use std::collections::BTreeMap;

use headstart_nbd::client::ServerExport;
use headstart_nbd::Flags;
use headstart_trace::{open_with, selected, Carries, Record, RecordReader};
use headstart_types::{Bytes, KeyError};

use crate::{Addresses, Arrival, Error, Settings, Writes};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    pub carries: Carries,
    /// Number of requests that will be sent.
    pub requests: u64,
    /// Number of them that are writes in the trace.
    pub writes: u64,
    /// Number of processes that send them.
    pub processes: u64,
    /// Start of each file on the export, one after another; empty if the trace does not distinguish files.
    pub files: BTreeMap<u32, u64>,
    /// Note of the trace's reader.
    pub note: Option<String>,
}

/// Files are aligned to this.
const FILE_UNIT: u64 = 4096;

impl Survey {
    /// Address of a request on the export.
    #[must_use]
    pub fn address(&self, record: &Record) -> u64 {
        self.files.get(&record.file).copied().unwrap_or(0).saturating_add(record.offset)
    }
}

/// Opens the trace of `settings`.
pub(crate) fn open(settings: &Settings) -> Result<Box<dyn RecordReader>, Error> {
    let request_bytes = settings.request_size.map(|Bytes(bytes)| bytes);
    Ok(selected(open_with(&settings.trace, &settings.format, request_bytes)?, &settings.selection()?)?)
}

/// Reads the trace of `settings` and checks it against the export. `go_on` is called between batches.
///
/// # Errors
/// The trace cannot be read, lacks required fields, or does not fit; or writes are requested on a read-only export.
pub fn survey(settings: &Settings, export: &ServerExport, go_on: &mut dyn FnMut() -> bool) -> Result<Survey, Error> {
    let mut reader = open(settings)?;
    let carries = reader.carries();
    if carries.objects {
        return Err(KeyError::new(
            "trace",
            "its requests name objects, which have no addresses",
            "a trace with addresses",
        )
        .into());
    }
    if settings.arrival == Arrival::Open && !carries.time {
        return Err(KeyError::new("arrival", "the trace carries no times", "\"closed\"").into());
    }
    if settings.writes() == Writes::Write && export.flags.contains(Flags::READ_ONLY) {
        return Err(KeyError::new("writable", "the export is read-only", "an export that can be written").into());
    }
    let size_bytes = export.size_bytes / u64::from(export.blocks.bytes_min) * u64::from(export.blocks.bytes_min);
    if size_bytes == 0 {
        return Err(KeyError::new("to", "the export is empty", "an export of a block or more").into());
    }
    let (mut requests, mut writes, mut ends, mut pids) = (0, 0, BTreeMap::new(), std::collections::BTreeSet::new());
    let mut batch = Vec::new();
    let mut left = settings.limit.unwrap_or(u64::MAX);
    while left > 0 && reader.read(&mut batch)? {
        if !go_on() {
            return Err(Error::Stopped);
        }
        for record in batch.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            left -= 1;
            if record.write && settings.writes() == Writes::Skip {
                continue;
            }
            requests += 1;
            writes += u64::from(record.write);
            pids.insert(record.pid);
            let end = record.offset.saturating_add(record.size);
            let known = ends.entry(record.file).or_insert(0_u64);
            *known = end.max(*known);
            if settings.addresses == Addresses::Error && end > size_bytes {
                let (last, has) = (Bytes(end), Bytes(size_bytes));
                let size = Bytes(record.size);
                let problem = format!("a request of {size} that ends at {last} is beyond the export's {has}");
                return Err(reader
                    .bad(record, &problem, "an export that is large enough, or addresses = \"wrap\"")
                    .into());
            }
        }
    }
    let mut files = BTreeMap::new();
    if carries.files && ends.len() > 1 {
        let mut next = 0_u64;
        for (file, end) in ends {
            files.insert(file, next);
            next = next.saturating_add(end.div_ceil(FILE_UNIT).saturating_mul(FILE_UNIT));
        }
        if settings.addresses == Addresses::Error && next > size_bytes {
            let problem =
                format!("its {} files take {}; the export has {}", files.len(), Bytes(next), Bytes(size_bytes));
            return Err(
                KeyError::new("trace", problem, "an export that is large enough, or addresses = \"wrap\"").into()
            );
        }
    }
    if requests == 0 {
        return Err(
            KeyError::new("trace", "no request is left", "a trace with reads, or with writes that are played").into()
        );
    }
    Ok(Survey { carries, requests, writes, processes: pids.len() as u64, files, note: reader.note() })
}

//! `darshan`: the text of darshan-dxt-parser, from Darshan's extended traces (DXT) of parallel programs.
//!
//! Source: Darshan's manual, "Darshan eXtended Tracing (DXT)", and the parser. Sections for a file and a rank begin
//! with `# DXT, file_id: ..., file_name: ...`; a request is "module rank read|write segment offset length start end",
//! optionally with further columns (OST, thread). Bytes, and seconds since the start of the job; the rank is the
//! process.
//!
//! Modules are layers: what MPI-IO (`X_MPIIO`) reads of a file is read by POSIX (`X_POSIX`), possibly on another rank.
//! For a file with POSIX requests only these count, so that no byte is read twice; requests of `X_STDIO` are
//! independent of them. Sections are ordered by file: the whole trace is held and sorted.

use std::collections::BTreeSet;

use headstart_types::Nanos;

use super::columns::spaced;
use super::fields::SECOND_NS;
use super::lines_of;
use super::names::NamedFiles;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole, whole_u32};
use crate::{Carries, Evidence, FileEntry, Format, Record};

const CARRIES: Carries = Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "darshan",
    summary: "the text of darshan-dxt-parser; the rank is the process; POSIX before MPI-IO",
    source: "Darshan's manual, DXT",
    carries: CARRIES,
    detect: |head| {
        let contains = |text: &[u8]| memchr::memmem::find(head, text).is_some();
        let marked = head.starts_with(b"# darshan log version") || contains(b"# DXT, file_id:");
        let request = |line: &[u8]| line.starts_with(b"X_") && spaced(line).count() >= 8;
        let found = marked || lines_of(head).next().is_some_and(request);
        Evidence::mark(found, "lines of Darshan's extended tracing")
    },
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), Darshan::default()))),
};

#[derive(Default)]
struct Darshan {
    files: NamedFiles,
    /// The file of the current section.
    file: Option<u32>,
    /// Files with POSIX requests.
    posix: BTreeSet<u32>,
    /// Requests of layers above POSIX.
    above: Vec<Record>,
    skipped: u64,
}

impl LineParser for Darshan {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn files(&self) -> &[FileEntry] {
        self.files.entries()
    }

    fn any_order(&self) -> bool {
        true
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let line = line.trim_ascii();
        if line.starts_with(b"#") {
            let name = b"file_name: ";
            if let (true, Some(at)) = (line.starts_with(b"# DXT, file_id:"), memchr::memmem::find(line, name)) {
                self.file = Some(self.files.number(&line[at + name.len()..])?);
            }
            return Ok(None);
        }
        let mut fields = spaced(line);
        let Some(module) = fields.next() else { return Ok(None) };
        let columns: [&[u8]; 7] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        let [rank, op, _segment, offset, length, start, end] = columns;
        if !module.starts_with(b"X_") || end.is_empty() {
            let allowed = "module rank read|write segment offset length start end";
            return Err(format!("{} is not a request; allowed: {allowed}", shown(line)));
        }
        let write = match op {
            b"read" => false,
            b"write" => true,
            _ => return Err(format!("{} in column Wt/Rd is unknown; allowed: read, write", shown(op))),
        };
        let Some(file) = self.file else {
            return Err("a request precedes the name of its file; allowed: after \"# DXT, file_id: ...\"".to_owned());
        };
        let (start, end) = (nanos(start, "Start(s)", SECOND_NS)?, nanos(end, "End(s)", SECOND_NS)?);
        let record = Record {
            time: Nanos(start),
            duration: Nanos(end.saturating_sub(start)),
            offset: whole(offset, "Offset")?,
            size: whole(length, "Length")?,
            pid: whole_u32(rank, "Rank")?,
            file,
            write,
            ..Record::default()
        };
        self.files.reaches(&record);
        match module {
            b"X_POSIX" => {
                self.posix.insert(file);
            }
            b"X_STDIO" => {}
            _ => {
                self.above.push(record);
                return Ok(None);
            }
        }
        Ok(Some(record))
    }

    fn further(&mut self, ended: bool) -> Option<Record> {
        if !ended {
            return None;
        }
        loop {
            let record = self.above.pop()?;
            if !self.posix.contains(&record.file) {
                return Some(record);
            }
            self.skipped += 1;
        }
    }
}

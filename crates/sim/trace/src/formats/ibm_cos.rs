//! `ibm-cos`: "milliseconds operation object size first last" per line, traces of IBM's Cloud Object Storage.
//!
//! Source: Eytan, Harnik, Ofer, Friedman, Kat: "It's time to revisit LRU vs. FIFO", HotStorage 2020, and the
//! description of its traces (SNIA IOTTA). `REST.GET.OBJECT` reads the object, or its bytes from `first` to `last` if
//! they are given; `REST.PUT.OBJECT` writes it. All others (HEAD, DELETE, COPY within the store, ...) move no data, nor
//! does a read without a size of an object that was not seen before. A file is an object.

use headstart_types::Nanos;

use super::columns::spaced;
use super::names::NamedFiles;
use super::{first_lines, ranged};
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole};
use crate::{Carries, Evidence, FileEntry, Format, Record};

const MILLISECOND_NS: u64 = 1_000_000;

const CARRIES: Carries = Carries { files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "ibm-cos",
    summary: "\"ms REST.GET.OBJECT object size first last\" per line; the object is the file",
    source: "Eytan et al., IBM object store traces, HotStorage 2020",
    carries: CARRIES,
    detect: |head| {
        let resembles = |line: &[u8]| {
            let mut fields = spaced(line);
            fields.next().is_some_and(|time| time.iter().all(u8::is_ascii_digit))
                && fields.next().is_some_and(|op| op.starts_with(b"REST."))
        };
        Evidence::mark(first_lines(head, resembles), "the lines are a time and an operation such as REST.GET.OBJECT")
    },
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), IbmCos::default()))),
};

#[derive(Default)]
struct IbmCos {
    objects: NamedFiles,
}

impl LineParser for IbmCos {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn files(&self) -> &[FileEntry] {
        self.objects.entries()
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let mut fields = spaced(line);
        let Some(time) = fields.next() else { return Ok(None) };
        let (Some(op), Some(object)) = (fields.next(), fields.next()) else {
            return Err(format!("{} has too few columns; allowed: time, operation, object, size, ...", shown(line)));
        };
        if !op.starts_with(b"REST.") {
            return Err(format!("{} in column operation is unknown; allowed: REST.GET.OBJECT, ...", shown(op)));
        }
        let mut number = |column| fields.next().map(|field| whole(field, column)).transpose();
        let (size, first, last) = (number("size")?, number("first")?, number("last")?);
        let (read, write) = (op == b"REST.GET.OBJECT", op == b"REST.PUT.OBJECT");
        let time = Nanos(nanos(time, "time", MILLISECOND_NS)?);
        if !(read || write) {
            return Ok(Some(Record { time, ..Record::default() }));
        }
        let file = self.objects.number(object)?;
        let object_bytes = size.unwrap_or(self.objects.size_of(file));
        self.objects.has_size(file, object_bytes);
        let (offset, bytes) = if read { ranged(first, last, object_bytes) } else { (0, object_bytes) };
        Ok(Some(Record { time, offset, size: bytes, file, write, ..Record::default() }))
    }
}

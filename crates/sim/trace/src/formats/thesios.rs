//! `thesios`: CSV with a header that has `filename`, `file_offset`, `op_type`, `request_io_size_bytes` and
//! `start_time`, synthesized traces of Google's storage servers.
//!
//! Source: Phothilimthana, Kadekodi, Ghodrati, Moon, Maas: "Thesios: synthesizing accurate counterfactual I/O traces
//! from I/O samples", ASPLOS 2024, and the description of its traces. Seconds since 1970 and bytes; the file is a hash.
//! The duration is `simulated_latency`, from the arrival at the server to the response.

use headstart_types::Nanos;

use super::columns::Separator;
use super::fields::SECOND_NS;
use super::table::Table;
use crate::number::{nanos, shown, whole};
use crate::{Carries, Format, Record};

static TABLE: Table<6> = Table {
    names: ["filename", "file_offset", "op_type", "request_io_size_bytes", "start_time", "simulated_latency"],
    needed: 5,
    separator: Separator::COMMA,
    orders: &[],
    carries: |has| Carries { duration: has[5], ..CARRIES },
    unit_bytes: 1,
    record: |[name, offset, op, size, start, latency], known| {
        let write = match *op {
            b"READ" => false,
            b"WRITE" => true,
            _ => return Err(format!("{} in column op_type is not an operation; allowed: READ, WRITE", shown(op))),
        };
        let duration = if latency.is_empty() { 0 } else { nanos(latency, "simulated_latency", SECOND_NS)? };
        Ok(Record {
            time: Nanos(nanos(start, "start_time", SECOND_NS)?),
            duration: Nanos(duration),
            offset: whole(offset, "file_offset")?,
            size: whole(size, "request_io_size_bytes")?,
            file: known.files.number(name)?,
            write,
            ..Record::default()
        }
        .into())
    },
};

const CARRIES: Carries = Carries { duration: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "thesios",
    summary: "CSV filename, file_offset, op_type, request_io_size_bytes, start_time, ...; s, bytes",
    source: "Phothilimthana et al., Thesios, ASPLOS 2024",
    carries: CARRIES,
    detect: |head| TABLE.detect(head, "the header is that of Google's Thesios traces"),
    open: |source| TABLE.open(source),
};

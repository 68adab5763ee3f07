//! `rocksdb`: RocksDB's trace of accesses to its block cache, as text.
//!
//! Source: RocksDB's wiki, "Block cache analysis and simulation tools": `block_cache_trace_analyzer` with
//! `-human_readable_trace_file_path`. A line has 20 or 21 columns: time in microseconds, block, type of block, size,
//! column family and its name, level, number of the file, caller, ..., and the block's offset in newer versions. An
//! object is a block; the size is that of the uncompressed block, so offsets and sizes together are not addresses. All
//! accesses are reads of the cache, including those of compactions.

use headstart_types::Nanos;

use super::columns::Separator;
use super::first_lines;
use super::table::Table;
use crate::number::{nanos, whole};
use crate::{Carries, Evidence, Format, Record};

const MICROSECOND_NS: u64 = 1_000;

static TABLE: Table<3> = Table {
    names: ["access_timestamp", "block_id", "block_size"],
    needed: 3,
    separator: Separator::COMMA,
    orders: &[(20, [0, 1, 3]), (21, [0, 1, 3])],
    carries: |_| CARRIES,
    unit_bytes: 4096,
    record: |[time, block, size], _| {
        Ok(Record {
            time: Nanos(nanos(time, "access_timestamp", MICROSECOND_NS)?),
            offset: whole(block, "block_id")?,
            size: whole(size, "block_size")?,
            ..Record::default()
        }
        .into())
    },
};

const CARRIES: Carries = Carries { time: true, objects: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "rocksdb",
    summary: "RocksDB's block cache trace as text: time in us, block, type, size, ... (20 or 21 columns)",
    source: "RocksDB, block_cache_trace_analyzer",
    carries: CARRIES,
    detect: |head| {
        // All columns but the column family's name are numbers, and there are few types of blocks.
        let resembles = |line: &[u8]| {
            let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
            let numbers = fields.iter().enumerate().all(|(at, field)| at == 5 || whole(field, "").is_ok());
            matches!(fields.len(), 20 | 21) && numbers && whole(fields[2], "").is_ok_and(|kind| kind < 64)
        };
        Evidence::mark(
            first_lines(head, resembles),
            "20 or 21 columns, the sixth a name, as RocksDB's analyzer writes them",
        )
        .or_else(|| TABLE.detect(head, "the header has access_timestamp, block_id and block_size"))
    },
    open: |source| TABLE.open(source),
};

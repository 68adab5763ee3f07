//! `baleen`: reads and writes of blocks of Meta's Tectonic file system, as text for Baleen or as CSV for CacheLib.
//!
//! Source: Wong et al., "Baleen: ML admission & prefetching for flash caches", FAST 2024, and its simulator; the block
//! traces of CacheLib's cachebench.
//!
//! | text | columns |
//! | --- | --- |
//! | 2019 | block_id io_offset io_size op_time op_name pipeline user_namespace user_name |
//! | 2021 | block_id io_offset io_size op_time op_name user_namespace user_name host_name op_count |
//! | 2023 | block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name |
//! | CacheLib | CSV with these names in the header |
//!
//! Times are seconds since 1970, sizes are bytes. op_name is 1, 2, 5 or `getChunkData...` for reads, 3, 4, 6 or
//! `putChunk...` for writes. A line stands for op_count equal requests. The file is a block, or a shard of a block if
//! there is a shard column; in 2021, as in Baleen's simulator, the host is the shard.

use headstart_types::Nanos;

use super::columns::Separator;
use super::fields::{Known, SECOND_NS};
use super::first_lines;
use super::table::{Repeated, Table, ABSENT};
use crate::number::{nanos, shown, whole};
use crate::{Carries, Evidence, Format, Record};

const NAMES: [&str; 7] = ["block_id", "io_offset", "io_size", "op_time", "op_name", "op_count", "rs_shard_id"];

static TEXT: Table<7> = Table {
    names: NAMES,
    needed: 5,
    separator: Separator::Space,
    orders: &[(8, [0, 1, 2, 3, 4, ABSENT, ABSENT]), (9, [0, 1, 2, 3, 4, 8, 7]), (10, [0, 1, 2, 3, 4, 8, 7])],
    carries: |_| CARRIES,
    unit_bytes: 1,
    record,
};
static CSV: Table<7> = Table { separator: Separator::COMMA, orders: &[], ..TEXT };

fn record(fields: &[&[u8]; 7], known: &mut Known) -> Result<Repeated, String> {
    let [block, offset, size, time, op, count, shard] = *fields;
    let write = match op {
        b"1" | b"2" | b"5" => Some(false),
        b"3" | b"4" | b"6" => Some(true),
        b"100" => None,
        _ if op.starts_with(b"getChunkData") => Some(false),
        _ if op.starts_with(b"putChunk") => Some(true),
        _ if op.is_ascii() && op.first().is_some_and(u8::is_ascii_alphabetic) => None,
        _ => {
            let allowed = "1 to 6, 100, getChunkData..., putChunk..., or another word for an operation that moves no \
            data";
            return Err(format!("{} in column op_name is unknown; allowed: {allowed}", shown(op)));
        }
    };
    let name = if shard.is_empty() { block.to_vec() } else { [block, b"/", shard].concat() };
    let record = Record {
        time: Nanos(nanos(time, "op_time", SECOND_NS)?),
        offset: whole(offset, "io_offset")?,
        size: if write.is_some() { whole(size, "io_size")? } else { 0 },
        file: known.files.number(&name)?,
        write: write.unwrap_or(false),
        ..Record::default()
    };
    Repeated::counted(record, if count.is_empty() { 1 } else { whole(count, "op_count")? }, "op_count")
}

const CARRIES: Carries = Carries { files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "baleen",
    summary: "blocks of Meta's Tectonic: block_id io_offset io_size op_time op_name ..., or CacheLib's CSV of them",
    source: "Wong et al., Baleen, FAST 2024; CacheLib",
    carries: CARRIES,
    detect,
    open: |source| if is_csv(source.head()) { CSV.open(source) } else { TEXT.open(source) },
};

fn is_csv(head: &[u8]) -> bool {
    CSV.detect(head, "").is_some()
}

fn detect(head: &[u8]) -> Option<Evidence> {
    let named = "the header has block_id, io_offset, io_size, op_time and op_name";
    // Requests lie within 8 MiB of a block, and the time is a plausible time since 1970.
    let resembles = |line: &[u8]| {
        let fields: Vec<&[u8]> = super::columns::spaced(line).collect();
        let small = |at: usize, most: u64| whole(fields[at], "").is_ok_and(|value| value <= most);
        matches!(fields.len(), 8..=10)
            && small(1, 1 << 24)
            && small(2, 1 << 24)
            && nanos(fields[3], "", SECOND_NS).is_ok_and(|ns| ns > 1_000_000_000 * SECOND_NS)
            && small(4, 100)
            && fields[5..].iter().all(|field| whole(field, "").is_ok() || *field == b"-1")
    };
    CSV.detect(head, named).or_else(|| TEXT.detect(head, named)).or_else(|| {
        Evidence::form(first_lines(head, resembles), "8 to 10 columns: block, offset, size, time since 1970, operation")
    })
}

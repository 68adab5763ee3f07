//! `meta-kv` and `meta-cdn`: Meta's traces of its key-value and CDN caches, as CacheLib's cachebench replays them.
//!
//! Source: CacheLib's user guide and the readers of cachebench.
//!
//! `meta-kv` has the columns key, op, size, and optionally op_time, op_count, key_size, cache_hits, ttl and others,
//! with a header; or without one "key,op,size,op_count,key_size", with or without ttl. Whole seconds. An object is a
//! hash of its key; its size is that of key and value. GET... reads, SET... writes; a line stands for op_count equal
//! requests. A DELETE, and a GET whose value has 0 bytes, move no data.
//!
//! `meta-cdn` has timestamp, cacheKey, OpType, objectSize, responseSize, responseHeaderSize, rangeStart, rangeEnd, ...
//! . The request is for the range, or for the whole object if its bounds are negative, limited to what the response
//! contained. Times are milliseconds if they are too large for seconds. A file is an object.

use headstart_types::Nanos;

use super::columns::Separator;
use super::fields::SECOND_NS;
use super::table::{Repeated, Table, ABSENT};
use super::{first_lines, ranged};
use crate::hash;
use crate::number::{nanos, shown, whole};
use crate::{Carries, Evidence, Format, Record};

static KEY_VALUE: Table<6> = Table {
    names: ["key", "op", "size", "op_time", "op_count", "key_size"],
    needed: 3,
    separator: Separator::COMMA,
    orders: &[(5, [0, 1, 2, ABSENT, 3, 4]), (6, [0, 1, 2, ABSENT, 3, 4])],
    carries: |has| Carries { time: has[3], ..KEY_VALUE_CARRIES },
    unit_bytes: 4096,
    record: |[key, op, size, time, count, key_size], _| {
        let or = |field: &[u8], column, absent| if field.is_empty() { Ok(absent) } else { whole(field, column) };
        let Some((write, moves)) = operation(op) else {
            return Err(format!("{} in column op is unknown; allowed: {}", shown(op), OPERATIONS.join(", ")));
        };
        let value_size = whole(size, "size")?;
        let size = value_size.saturating_add(or(key_size, "key_size", 0)?);
        let record = Record {
            time: Nanos(if time.is_empty() { 0 } else { nanos(time, "op_time", SECOND_NS)? }),
            offset: hash::of(key),
            size: if moves && value_size > 0 { size } else { 0 },
            write,
            ..Record::default()
        };
        Repeated::counted(record, or(count, "op_count", 1)?, "op_count")
    },
};

const OPERATIONS: [&str; 7] = ["GET", "GET_LEASE", "SET", "SET_LEASE", "ADD", "REPLACE", "DELETE"];

/// Whether an operation writes, and whether it moves data.
fn operation(op: &[u8]) -> Option<(bool, bool)> {
    let at = OPERATIONS.iter().position(|known| known.as_bytes() == op)?;
    Some((at > 1, at != 6))
}

const KEY_VALUE_CARRIES: Carries = Carries { time: true, writes: true, objects: true, ..Carries::NOTHING };

pub(crate) const KEY_VALUE_FORMAT: Format = Format {
    name: "meta-kv",
    summary: "CSV key, op, size, op_time, op_count, key_size, ... of Meta's key-value cache; s, bytes; keys are hashed",
    source: "CacheLib, kvcache traces",
    carries: KEY_VALUE_CARRIES,
    detect: |head| {
        let resembles = |line: &[u8]| {
            let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
            matches!(fields.len(), 5 | 6)
                && operation(fields[1]).is_some()
                && fields[2..].iter().all(|field| whole(field, "").is_ok())
        };
        // Other CSV headers have a key and a size too.
        let other = [&b"op_count"[..], b"op_time", b"key_size"];
        let named = other.iter().any(|name| memchr::memmem::find(head, name).is_some());
        KEY_VALUE
            .detect(head, "the header has key, op, size and others of CacheLib")
            .filter(|_| named)
            .or_else(|| Evidence::mark(first_lines(head, resembles), "the second column is GET, SET, DELETE, ..."))
    },
    open: |source| KEY_VALUE.open(source),
};

static CDN: Table<8> = Table {
    names: [
        "timestamp",
        "cachekey",
        "optype",
        "objectsize",
        "responsesize",
        "responseheadersize",
        "rangestart",
        "rangeend",
    ],
    needed: 8,
    separator: Separator::COMMA,
    orders: &[],
    carries: |_| CDN_CARRIES,
    unit_bytes: 1,
    record: |[time, key, _op, size, response, header, start, end], known| {
        let size = whole(size, "objectSize")?;
        let body = whole(response, "responseSize")?.saturating_sub(whole(header, "responseHeaderSize")?);
        let bound = |field: &[u8], column| match field {
            [b'-', ..] | b"" => Ok(None),
            _ => whole(field, column).map(Some),
        };
        let (start, end) = (bound(start, "rangeStart")?, bound(end, "rangeEnd")?);
        let (offset, asked) = ranged(start, end, size);
        let unit_ns = if whole(time, "timestamp")? < 100_000_000_000 { SECOND_NS } else { 1_000_000 };
        Ok(Record {
            time: Nanos(nanos(time, "timestamp", unit_ns)?),
            offset,
            size: asked.min(body),
            file: known.files.number(key)?,
            ..Record::default()
        }
        .into())
    },
};

const CDN_CARRIES: Carries = Carries { time: true, files: true, addresses: true, ..Carries::NOTHING };

pub(crate) const CDN_FORMAT: Format = Format {
    name: "meta-cdn",
    summary:
        "CSV timestamp, cacheKey, OpType, objectSize, responseSize, ..., rangeStart, rangeEnd; the object is the file",
    source: "CacheLib, CDN traces",
    carries: CDN_CARRIES,
    detect: |head| CDN.detect(head, "the header is that of Meta's CDN traces"),
    open: |source| CDN.open(source),
};

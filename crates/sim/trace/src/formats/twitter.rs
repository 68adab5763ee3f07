//! `twitter`: "timestamp,key,key size,value size,client id,operation,TTL" per line, traces of Twitter's in-memory
//! caches.
//!
//! Source: Yang, Yue, Rashmi: "A large scale analysis of hundreds of in-memory cache clusters at Twitter", OSDI 2020,
//! and the description of its traces. Whole seconds. An object is a hash of its key; its size is that of key and value,
//! as in libCacheSim. get and gets read; set, add, replace, cas, append, prepend, incr and decr write; a delete and a
//! get of no value move no data. The client is not carried, because it is a service, not a process that waits.

use headstart_types::Nanos;

use super::columns::Separator;
use super::fields::SECOND_NS;
use super::first_lines;
use super::table::Table;
use crate::hash;
use crate::number::{nanos, shown, whole};
use crate::{Carries, Evidence, Format, Record};

static TABLE: Table<5> = Table {
    names: ["timestamp", "anonymized key", "key size", "value size", "operation"],
    needed: 5,
    separator: Separator::COMMA,
    orders: &[(7, [0, 1, 2, 3, 5])],
    carries: |_| CARRIES,
    unit_bytes: 4096,
    record: |[time, key, key_size, value_size, op], _| {
        let (key_size, value_size) = (whole(key_size, "key size")?, whole(value_size, "value size")?);
        let (write, moves) = match operation(op) {
            Some((write, moves)) => (write, moves && value_size > 0),
            None => {
                return Err(format!("{} in column operation is unknown; allowed: {}", shown(op), OPERATIONS.join(", ")))
            }
        };
        let size = key_size.saturating_add(value_size);
        Ok(Record {
            time: Nanos(nanos(time, "timestamp", SECOND_NS)?),
            offset: hash::of(key),
            size: if moves { size } else { 0 },
            write,
            ..Record::default()
        }
        .into())
    },
};

/// The operations: two that read, one that moves nothing; the others write.
const OPERATIONS: [&str; 11] =
    ["get", "gets", "delete", "set", "add", "replace", "cas", "append", "prepend", "incr", "decr"];

/// Whether an operation writes, and whether it moves data.
fn operation(op: &[u8]) -> Option<(bool, bool)> {
    let at = OPERATIONS.iter().position(|known| known.as_bytes() == op)?;
    Some((at > 2, at != 2))
}

const CARRIES: Carries = Carries { time: true, writes: true, objects: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "twitter",
    summary: "CSV timestamp, key, key size, value size, client, operation, TTL; s, bytes; keys are hashed",
    source: "Yang et al., Twitter cache traces, OSDI 2020",
    carries: CARRIES,
    detect: |head| {
        let resembles = |line: &[u8]| {
            let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
            fields.len() == 7 && operation(fields[5]).is_some()
        };
        let found = first_lines(head, resembles);
        Evidence::mark(found, "seven columns, the sixth an operation of memcached")
            .or_else(|| TABLE.detect(head, "the header is that of Twitter's cache traces"))
    },
    open: |source| TABLE.open(source),
};

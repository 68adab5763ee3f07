//! Headers: the meanings of columns, by commonly used names.
//!
//! Case is ignored; spaces and hyphens count as underscores. A unit follows the name, as `_us`, `(us)` or `[us]`.
//! Columns with unknown names are ignored.

use super::fields::{Role, SECTOR_BYTES};

const SECOND_NS: u64 = 1_000_000_000;

/// Names of columns and their meanings. Times, durations and think times without a unit are in seconds.
const ROLES: &[(&[&str], Role)] = &[
    (&["time", "timestamp", "ts", "datetime", "start", "start_time", "epoch"], Role::Time(SECOND_NS)),
    (
        &["dur", "duration", "service", "service_time", "latency", "lat", "elapsed", "response_time"],
        Role::Duration(SECOND_NS),
    ),
    (&["think", "think_time"], Role::Think(SECOND_NS)),
    (
        &[
            "op",
            "operation",
            "rw",
            "r/w",
            "rwbs",
            "type",
            "io_type",
            "iotype",
            "op_type",
            "optype",
            "request_type",
            "opcode",
            "action",
            "direction",
            "syscall",
            "call",
        ],
        Role::Op { scsi: true },
    ),
    (&["is_write"], Role::OpDigit(b'0')),
    (&["is_read"], Role::OpDigit(b'1')),
    (&["pid", "tid", "process", "thread"], Role::Process),
    (&["comm", "command", "process_name"], Role::ProcessName),
    (&["file", "filename", "file_name", "path", "dev", "device", "disk", "inode"], Role::File),
    (&["offset", "off", "pos", "position", "file_offset", "address", "addr"], Role::Address(1)),
    (&["lba", "lbn", "sector", "start_sector"], Role::Address(SECTOR_BYTES)),
    (&["block", "id"], Role::Object),
    (&["size", "length", "len", "bytes", "count", "nbytes"], Role::Size(1)),
    (&["nsect", "nsectors", "sectors"], Role::Size(SECTOR_BYTES)),
];

/// Units of times, in nanoseconds.
const TIME_UNITS: &[(&[&str], u64)] = &[
    (&["ns", "nsec", "nanoseconds"], 1),
    (&["us", "usec", "microseconds", "µs"], 1_000),
    (&["ms", "msec", "milliseconds"], 1_000_000),
    (&["s", "sec", "secs", "seconds"], SECOND_NS),
];

/// Units of addresses and sizes, in bytes.
const BYTE_UNITS: &[(&[&str], u64)] = &[
    (&["b", "byte", "bytes"], 1),
    (&["kib", "kb", "k"], 1 << 10),
    (&["mib", "mb", "m"], 1 << 20),
    (&["sectors"], SECTOR_BYTES),
];

/// The required header, for error texts.
pub(crate) const HEADER_ALLOWED: &str = "one of offset, lba, lbn, sector, block, id; optional: time or timestamp, \
    dur, duration or latency, think (each in s, or with _s, _ms, _us, _ns), op, pid, file, dev or device, size, nsect";

/// The header of the traces that `headstart reproduce li07 programs` merges. Its published figures rest on reading them
/// without times and writes.
const LI07_MERGED: &str = "time(s),op(r|w),pid,file,offset,size,dur_us";

/// The meaning of a column by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub role: Role,
    /// Whether the name has a unit.
    pub unit: bool,
}

/// Whether a header with these names is of the merged traces, whose operations are deliberately ignored.
pub(super) fn is_li07_merged<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    LI07_MERGED.split(',').eq(names)
}

/// The columns of a header with these lower-case names.
pub(super) fn roles<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<Named> {
    let merged = is_li07_merged(names.clone());
    let ignored = |at| merged && at < 2;
    let named = |name| role_of(name).unwrap_or(Named { role: Role::Ignored, unit: false });
    let all = names.enumerate();
    all.map(|(at, name)| if ignored(at) { Named { role: Role::Ignored, unit: false } } else { named(name) }).collect()
}

/// Whether an unknown name suggests that the column holds operations.
pub(super) fn says_operation(name: &str) -> bool {
    const PARTS: [&str; 8] = ["op", "rw", "rwbs", "operation", "opcode", "optype", "iotype", "direction"];
    let parts = |name: &str| name.split([' ', '-', '_', '(', ')', '.']).any(|part| PARTS.contains(&part));
    parts(name) && !name.ends_with("count")
}

fn role_of(name: &str) -> Option<Named> {
    let name = name.replace([' ', '-'], "_");
    if let Some(role) = find(ROLES, &name) {
        return Some(Named { role, unit: false });
    }
    let (base, unit) = split_unit(&name)?;
    let role = find(ROLES, base)?;
    let time = || find(TIME_UNITS, unit);
    let bytes = || find(BYTE_UNITS, unit);
    let role = match role {
        Role::Time(_) => Role::Time(time()?),
        Role::Duration(_) => Role::Duration(time()?),
        Role::Think(_) => Role::Think(time()?),
        Role::Address(1) => Role::Address(bytes()?),
        Role::Size(1) => Role::Size(bytes()?),
        // Text in brackets after another name is a remark: "op (R/W)".
        other if name.ends_with([')', ']']) => other,
        _ => return None,
    };
    Some(Named { role, unit: true })
}

/// Splits "lat_(us)", "lat(us)", "lat[us]" and "lat_us" into "lat" and "us".
fn split_unit(name: &str) -> Option<(&str, &str)> {
    let closed = name.strip_suffix(')').map(|rest| (rest, '(')).or(name.strip_suffix(']').map(|rest| (rest, '[')));
    let (base, unit) = match closed {
        Some((rest, open)) => rest.split_once(open)?,
        None => name.rsplit_once('_')?,
    };
    Some((base.trim_end_matches('_'), unit))
}

fn find<T: Copy>(table: &[(&[&str], T)], name: &str) -> Option<T> {
    table.iter().find(|(names, _)| names.contains(&name)).map(|(_, found)| *found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_people_write_them() {
        for (name, role) in [
            ("time", Role::Time(SECOND_NS)),
            ("time (ms)", Role::Time(1_000_000)),
            ("start-time_ns", Role::Time(1)),
            ("latency(us)", Role::Duration(1_000)),
            ("lat_ms", Role::Duration(1_000_000)),
            ("response_time", Role::Duration(SECOND_NS)),
            ("op(r|w)", Role::Op { scsi: true }),
            ("offset_kib", Role::Address(1024)),
            ("offset [bytes]", Role::Address(1)),
            ("size_bytes", Role::Size(1)),
            ("len", Role::Size(1)),
            ("path", Role::File),
        ] {
            assert_eq!(role_of(name).map(|known| known.role), Some(role), "{name}");
        }
        for name in ["flags", "version", "time_zone", "size_furlongs", "pid_us", "", "_us", "(us)"] {
            assert_eq!(role_of(name), None, "{name}");
        }
    }

    #[test]
    fn the_merged_traces_of_a_study_are_read_as_they_were() {
        let roles_of = |header: &str| roles(header.split(',')).iter().map(|known| known.role).collect::<Vec<_>>();
        let merged = roles_of(LI07_MERGED);
        assert_eq!(merged[..3], [Role::Ignored, Role::Ignored, Role::Process]);
        assert_eq!(roles_of("time(s),op(r|w),offset,size")[..2], [Role::Time(SECOND_NS), Role::Op { scsi: true }]);
    }
}

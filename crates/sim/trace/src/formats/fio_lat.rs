//! `fio-lat`: fio's latency logs with offsets, "ms, ns, direction, bytes, offset, priority, issue" per line.
//!
//! Source: fio's manual, "Log File Formats": `write_lat_log` with `log_offset=1`; the priority is 0 or 1, or
//! hexadecimal with `log_prio=1`. The last column exists with `log_issue_time=1` and gives the issue time in
//! nanoseconds. Otherwise a line is written when the request ends, and the issue time is the end minus the duration. 0
//! reads, 1 writes; trims (2) move no data. Versions of fio before 3.20 have no priority. Logs of bandwidth or IOPS
//! look the same, but their second column is not a duration; only their file names distinguish them.

use headstart_types::Nanos;

use super::fields::number;
use super::lines_of;
use crate::checks::EMPTY;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole};
use crate::{Carries, ErrorPosition, Evidence, Format, Record, RecordReader, Source, TraceError};

const MILLISECOND_NS: u64 = 1_000_000;
/// Added to the end times: the first request may have begun before the first whole millisecond.
const BEFORE_FIRST_NS: u64 = 3_600_000_000_000;

const CARRIES: Carries = Carries { duration: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "fio-lat",
    summary: "fio's latency log with log_offset=1: ms, ns, direction, bytes, offset, ...",
    source: "fio's manual, log file formats",
    carries: CARRIES,
    detect: |head| {
        let of_fio = |line: &[u8]| columns(line).is_some();
        let lines = || lines_of(head).take(8);
        let found = lines().next().is_some() && lines().all(of_fio) && lines().all(|line| line.contains(&b' '));
        Evidence::form(
            found,
            "\"ms, ns, direction, bytes, offset, priority\", numbers separated by a comma and a \
        space",
        )
    },
    open,
};

/// The columns of a line, if they are numbers and the third is a direction.
fn columns(line: &[u8]) -> Option<Vec<&[u8]>> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
    let numbers = fields.iter().all(|field| number(field, "").is_ok());
    (numbers && matches!(fields.len(), 4..=7) && matches!(fields[2], b"0" | b"1" | b"2")).then_some(fields)
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(ErrorPosition::File, EMPTY.to_owned()));
    }
    // A fifth and last column is an offset in old versions, otherwise a priority, which is 0 or 1.
    let lines: Vec<Vec<&[u8]>> = lines_of(source.head()).filter_map(columns).collect();
    let counts = lines.iter().map(Vec::len);
    let priorities = lines.iter().all(|fields| fields.len() == 5 && matches!(fields[4], b"0" | b"1"));
    if counts.clone().max() == Some(4) || !lines.is_empty() && priorities {
        let problem = "the log has no offsets; allowed: a log written with log_offset=1";
        return Err(source.bad(ErrorPosition::File, problem.to_owned()));
    }
    let issue = counts.max() == Some(7) && lines.iter().any(|fields| fields.len() == 7 && fields[6] != b"0");
    let name = source.plain_name();
    let latency = !["_bw.", "_iops.", "_slat."].iter().any(|kind| name.contains(kind));
    Ok(Box::new(LineReader::new(Lines::new(source), FioLat { latency, issue })))
}

struct FioLat {
    /// Whether the second column is the latency.
    latency: bool,
    /// Whether the seventh column is the issue time.
    issue: bool,
}

impl LineParser for FioLat {
    fn carries(&self) -> Carries {
        Carries { duration: self.latency, ..CARRIES }
    }

    fn empty(&self) -> &'static str {
        "no line is a single request; allowed: a log written without log_avg_msec"
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let mut fields = line.split(|&byte| byte == b',');
        let columns: [&[u8]; 7] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        let [time, value, direction, size, offset, _, issue] = columns;
        if offset.is_empty() || fields.next().is_some() {
            let count = line.split(|&byte| byte == b',').count();
            return Err(format!("{} has {count} columns; allowed: ms, ns, direction, bytes, offset, ...", shown(line)));
        }
        let write = match direction.trim_ascii() {
            b"0" => Some(false),
            b"1" => Some(true),
            b"2" => None,
            _ => {
                let allowed = "0 for read, 1 for write, 2 for trim";
                return Err(format!("{} in column direction is unknown; allowed: {allowed}", shown(direction)));
            }
        };
        let duration = if self.latency { whole(value, "latency")? } else { 0 };
        let ended = nanos(time, "time", MILLISECOND_NS)?.saturating_add(BEFORE_FIRST_NS);
        let time = if self.issue { nanos(issue, "issue time", 1)? } else { ended.saturating_sub(duration) };
        Ok(Some(Record {
            time: Nanos(time),
            duration: Nanos(duration),
            offset: whole(offset, "offset")?,
            size: if write.is_some() { whole(size, "block size")? } else { 0 },
            write: write.unwrap_or(false),
            ..Record::default()
        }))
    }
}

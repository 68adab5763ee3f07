//! `perf-trace`: the text that perf trace prints, "ms ( ms): command/thread call(name: value, ...) = result".
//!
//! Source: perf-trace(1) of Linux 6.1. Times are milliseconds, those in brackets are durations. A call that another
//! thread interrupts is printed in two pieces, "call(...) ..." and " ... [continued]: call()) = result". Arguments that
//! are 0 are not printed. The parent module defines which calls are requests.
//!
//! perf reads the path of a descriptor from /proc after the call: if the process has moved on, the path is missing or
//! belongs to a later file. Each opening of a file without a path counts as a separate file.

use std::collections::BTreeMap;

use headstart_types::Nanos;

use super::call::Call;
use super::strace::NO_REQUESTS;
use super::{Calls, Issued, Style};
use crate::formats::mostly;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::nanos;
use crate::{Carries, Evidence, FileEntry, Format, Record};

const TIME_UNIT_NS: u64 = 1_000_000;

const CARRIES: Carries = Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "perf-trace",
    summary: "the text of \"perf trace\": reads and writes of files; paths as far as perf has found them",
    source: "perf-trace(1)",
    carries: CARRIES,
    detect: |head| Evidence::mark(looks_like_perf(head), "most lines are system calls as perf trace prints them"),
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), PerfTrace::default()))),
};

/// A parsed line.
struct Line<'a> {
    /// "?" for a call that began before the trace.
    time: &'a str,
    /// Empty if a call has not ended.
    duration: &'a str,
    command: &'a str,
    pid: u32,
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let (time, after) = std::str::from_utf8(line).ok()?.split_once('(')?;
        let time = time.trim();
        let is_time = time == "?" || !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let (duration, rest) = after.split_once("): ")?;
        let duration = duration.trim();
        if !is_time || !(duration.is_empty() || duration.ends_with(" ms")) {
            return None;
        }
        // "command/thread call(...": the command may contain spaces and slashes.
        let end =
            rest.find("... [continued]").or_else(|| rest[..rest.find('(')?].rfind(' ').map(|at| at + 1)).unwrap_or(0);
        let (command, rest) = rest.split_at(end);
        let (command, pid) = command.trim_end().rsplit_once('/').unwrap_or_default();
        let pid = pid.parse().unwrap_or(0);
        Some(Self { time, duration: duration.trim_end_matches(" ms"), command: command.trim_start(), pid, rest })
    }
}

/// Whether most of the first lines are perf's: messages of the program may be in between.
fn looks_like_perf(head: &[u8]) -> bool {
    mostly(head, |_| false, |line| Line::parse(line).is_some())
}

#[derive(Default)]
struct PerfTrace {
    calls: Calls,
    /// First pieces of calls by thread, with their times.
    pending: BTreeMap<u32, (String, u64)>,
    command: String,
}

impl PerfTrace {
    fn call(&mut self, pid: u32, text: &str, time_ns: u64, duration: &str) -> Result<(), String> {
        let Some(call) = Call::parse(text) else {
            self.calls.left_out.lines += 1;
            return Ok(());
        };
        let duration_ns = if duration.is_empty() { 0 } else { nanos(duration.as_bytes(), "duration", TIME_UNIT_NS)? };
        self.calls.take(Issued { pid, time: Nanos(time_ns), duration: Nanos(duration_ns) }, &call, Style::Perf)
    }
}

impl LineParser for PerfTrace {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn files(&self) -> &[FileEntry] {
        self.calls.files()
    }

    fn process(&self) -> Option<&[u8]> {
        (!self.command.is_empty()).then_some(self.command.as_bytes())
    }

    fn note(&self) -> Option<String> {
        self.calls.note(Some("perf trace reads paths late: some may be missing or wrong; strace -y is exact"))
    }

    fn skipped(&self) -> u64 {
        self.calls.skipped
    }

    fn empty(&self) -> &'static str {
        NO_REQUESTS
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let Some(Line { time, duration, command, pid, rest }) = Line::parse(line) else {
            self.calls.left_out.lines += 1;
            return Ok(None);
        };
        self.command.clear();
        self.command.push_str(command);
        if let Some(continued) = rest.strip_prefix("... [continued]: ") {
            let Some((text, time_ns)) = self.pending.remove(&pid) else { return Ok(None) };
            let (_, result) = continued.rsplit_once(" = ").unwrap_or_default();
            self.call(pid, &format!("{text} = {result}"), time_ns, duration)?;
            return Ok(self.calls.pop());
        }
        if time == "?" {
            return Ok(None);
        }
        let time_ns = nanos(time.as_bytes(), "time", TIME_UNIT_NS)?;
        if let Some(piece) = rest.trim_end().strip_suffix(" ...") {
            self.pending.insert(pid, (piece.to_owned(), time_ns));
            return Ok(None);
        }
        self.call(pid, rest, time_ns, duration)?;
        Ok(self.calls.pop())
    }

    fn further(&mut self, _ended: bool) -> Option<Record> {
        self.calls.pop()
    }
}

//! `dftracer`: events of DFTracer (`.pfw`, `.pfw.gz`), one JSON object per line, in Chrome's trace event format.
//!
//! Source: the manual of DFTracer and its source code (Devarajan et al., "DFTracer: an analysis-friendly data flow
//! tracer for AI-driven workflows", SC 2024); record with `DFTRACER_INC_METADATA=1`. `ts` and `dur` are microseconds
//! unless an event `CM` names another `time_metric`. Requests are the calls of the categories POSIX and STDIO that move
//! data, with the bytes that they returned; a file is `fhash`, whose path is in an event `FH`, or `fname` in older
//! versions. Calls without an offset use the file position, which opens, seeks and earlier calls of the same process
//! determine. `read` and `write` without a count or a file, and calls that failed or returned 0, are skipped and
//! counted; mappings are not visible. Logs of several processes may be concatenated: the whole trace is held and
//! sorted.

use std::collections::BTreeMap;

use headstart_types::Nanos;
use serde_json::{Map, Value};

use super::lines_of;
use super::names::NamedFiles;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::shown;
use crate::{Carries, Evidence, FileEntry, Format, Record};

const CARRIES: Carries = Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS };

/// O_APPEND of Linux.
const APPEND: u64 = 0o2000;

pub(crate) const FORMAT: Format = Format {
    name: "dftracer",
    summary: "JSON lines of DFTracer (.pfw): calls of POSIX and STDIO, by process and file",
    source: "Devarajan et al., DFTracer, SC 2024",
    carries: CARRIES,
    detect: |head| {
        let event = |line: &[u8]| {
            let has = |key: &[u8]| memchr::memmem::find(line, key).is_some();
            line.starts_with(b"{") && has(b"\"name\":") && has(b"\"cat\":") && has(b"\"pid\":")
        };
        let mut lines = lines_of(head).filter(|line| *line != b"[");
        Evidence::mark(
            lines.next().is_some_and(event),
            "the lines are JSON with name, cat and pid, as DFTracer's events",
        )
    },
    open: |source| {
        Ok(Box::new(LineReader::new(Lines::new(source), DfTracer { unit_ns: 1_000, ..DfTracer::default() })))
    },
};

/// The position of a process in a file.
#[derive(Default)]
struct Position {
    offset: u64,
    append: bool,
}

#[derive(Default)]
struct DfTracer {
    unit_ns: u64,
    files: NamedFiles,
    positions: BTreeMap<(u32, u32), Position>,
}

struct Arguments<'a>(Option<&'a Map<String, Value>>);

impl Arguments<'_> {
    fn text(&self, key: &str) -> Option<String> {
        match self.0?.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A number; older versions write it as a string.
    fn number(&self, key: &str) -> Option<i64> {
        match self.0?.get(key)? {
            Value::String(text) => text.parse().ok(),
            value => value.as_i64(),
        }
    }
}

impl DfTracer {
    /// Decodes a call on a file: whether it writes, the offset, and the number of bytes.
    fn call(&mut self, name: &str, arguments: &Arguments, at: (u32, u32)) -> Option<(bool, u64, u64)> {
        let known_bytes = self.files.size_of(at.1);
        let position = self.positions.entry(at).or_default();
        let returned = arguments.number("ret");
        let offset = arguments.number("offset");
        if name.starts_with("open") || name.starts_with("creat") || name.starts_with("fopen") {
            let flags = arguments.number("flags").unwrap_or(0).unsigned_abs();
            let append = flags & APPEND != 0 || arguments.text("mode").is_some_and(|mode| mode.starts_with('a'));
            *position = Position { offset: 0, append };
            return None;
        }
        if name.contains("seek") || name.starts_with("ftell") {
            let relative = offset.unwrap_or(0);
            let whence = arguments.number("whence").unwrap_or(0);
            let base =
                [0, position.offset, known_bytes].get(usize::try_from(whence).unwrap_or(0)).copied().unwrap_or(0);
            // fseek does not return the position.
            let returned = returned.filter(|_| !name.starts_with("fseek"));
            let moved = returned.or_else(|| i64::try_from(base).ok()?.checked_add(relative));
            position.offset = moved.and_then(|moved| u64::try_from(moved).ok()).unwrap_or(position.offset);
            return None;
        }
        let (read, write) = (name.contains("read"), name.contains("write"));
        if !(read || write) || name.contains("readlink") || name.contains("readdir") || name.contains("readahead") {
            return None;
        }
        let count = returned.or_else(|| arguments.number("count"))?;
        // fread and fwrite count items.
        let item = if name.starts_with('f') { arguments.number("size").unwrap_or(1) } else { 1 };
        let bytes = u64::try_from(count).ok()?.saturating_mul(u64::try_from(item).ok()?);
        if let Some(offset) = offset.filter(|_| name.starts_with('p')) {
            return Some((write, u64::try_from(offset).ok()?, bytes));
        }
        let from = if write && position.append { known_bytes } else { position.offset };
        position.offset = from.saturating_add(bytes);
        Some((write, from, bytes))
    }

    fn event(&mut self, event: &Map<String, Value>) -> Result<Option<Record>, String> {
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| event.get(key).and_then(Value::as_u64);
        let arguments = Arguments(event.get("args").and_then(Value::as_object));
        match text("name") {
            "FH" => {
                if let (Some(path), Some(hash)) = (arguments.text("name"), arguments.text("value")) {
                    let file = self.files.number(hash.as_bytes())?;
                    self.files.rename(file, path);
                }
                return Ok(None);
            }
            "CM" if arguments.text("name").as_deref() == Some("time_metric") => {
                self.unit_ns = match arguments.text("value").as_deref() {
                    Some("NS") => 1,
                    Some("MS") => 1_000_000,
                    Some("S") => 1_000_000_000,
                    _ => 1_000,
                };
                return Ok(None);
            }
            _ => {}
        }
        if !matches!(text("cat"), "POSIX" | "STDIO") {
            return Ok(None);
        }
        let Some(time) = number("ts") else { return Ok(None) };
        let pid = number("pid").unwrap_or(0);
        let pid = u32::try_from(pid).map_err(|_| format!("pid {pid} is too large; allowed: 0 to {}", u32::MAX))?;
        let ns = |value: u64| Nanos(value.saturating_mul(self.unit_ns));
        let (time, duration) = (ns(time), ns(number("dur").unwrap_or(0)));
        let nothing = Record { time, ..Record::default() };
        let Some(name) = arguments.text("fhash").or_else(|| arguments.text("fname")) else { return Ok(Some(nothing)) };
        let file = self.files.number(name.as_bytes())?;
        let Some((write, offset, size)) = self.call(text("name"), &arguments, (pid, file)) else {
            return Ok(Some(nothing));
        };
        let record = Record { time, duration, offset, size, pid, file, write, ..Record::default() };
        self.files.reaches(&record);
        Ok(Some(record))
    }
}

impl LineParser for DfTracer {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn files(&self) -> &[FileEntry] {
        self.files.entries()
    }

    fn any_order(&self) -> bool {
        true
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let line = line.trim_ascii();
        let line = line.strip_prefix(b"[").unwrap_or(line);
        let line = line.strip_suffix(b",").unwrap_or(line).trim_ascii();
        if line.is_empty() || line == b"]" {
            return Ok(None);
        }
        let problem =
            |why: String| format!("{} is not an event: {why}; allowed: one JSON object per line", shown(line));
        match serde_json::from_slice(line).map_err(|error| problem(error.to_string()))? {
            Value::Object(event) => self.event(&event),
            _ => Err(problem("no object".to_owned())),
        }
    }
}

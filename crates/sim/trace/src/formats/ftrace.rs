//! `ftrace`: events of Linux's block layer as text: ftrace's `trace` and `trace_pipe`, `trace-cmd report`, `perf
//! script`, and systrace's HTML, which embeds ftrace's text.
//!
//! Source: the kernel's `Documentation/trace/ftrace.rst` and `include/trace/events/block.h`; perf-script(1). Lines are
//!
//! | tool | line |
//! | --- | --- |
//! | ftrace | `name-pid (tgid) [cpu] flags seconds: event: fields`, with or without tgid and flags |
//! | perf | `name pid/tid [cpu] seconds: period group:event: fields`, and other columns before the time |
//!
//! where the events are `block_bio_queue: major,minor flags sector + sectors [name]`, `block_rq_issue` and
//! `block_rq_complete`; the latter two have further columns before the sector. They are the sources of blktrace's
//! actions Q, D and C and are read as such (`blkparse`). All other events and lines are ignored.

use headstart_types::Nanos;

use super::blkparse::{device, Action, Blkparse, Event, ProcessName};
use super::columns::spaced;
use super::fields::{scaled, SECTOR_BYTES};
use super::lines_of;
use super::operation::{operation, Operation};
use crate::number::{nanos, shown, whole_u32};
use crate::{Carries, Evidence, Format};

/// The error text for a text without requests.
const NO_EVENTS: &str =
    "no line is a request; allowed: the events block_bio_queue, block_rq_issue or block_rq_complete";

pub(crate) const FORMAT: Format = Format {
    name: "ftrace",
    summary: "block events as text of ftrace, trace-cmd report, perf script or systrace; the device is the file",
    source: "ftrace.rst of Linux; perf-script(1)",
    carries: Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS },
    detect,
    open: |source| Ok(Box::new(Blkparse::open(source, parse, NO_EVENTS)?)),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let contains = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    let html = head.trim_ascii_start().starts_with(b"<");
    let page = html && [&b"System Trace"[..], b"trace-viewer", b"trace-data"].into_iter().any(contains);
    let tracer = contains(b"# tracer: ");
    let event = |line: &[u8]| Line::of(line).is_some();
    // There may be backtraces between events.
    let events = lines_of(head).take(8).any(event) && contains(b"block_");
    Evidence::mark(page, "a page of systrace")
        .or_else(|| Evidence::mark(tracer, "the text has \"# tracer: ...\", as ftrace's"))
        .or_else(|| {
            Evidence::mark(events, "lines with \"seconds: block_...:\", as ftrace and perf script print events")
        })
}

/// A parsed event line.
struct Line<'a> {
    before: &'a [u8],
    seconds: &'a [u8],
    event: &'a [u8],
    fields: &'a [u8],
}

impl<'a> Line<'a> {
    /// The first word "digits.digits:" is the time; the event is the next word that ends with a colon and is not a
    /// number.
    fn of(line: &'a [u8]) -> Option<Self> {
        let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        let mut from = 0;
        loop {
            let (word, after) = next_word(line, from)?;
            let seconds = &line[word..after];
            if let Some(seconds) = seconds.strip_suffix(b":") {
                let point = memchr::memchr(b'.', seconds);
                if point.is_some_and(|point| digits(&seconds[..point]) && digits(&seconds[point + 1..])) {
                    let (mut start, mut end) = next_word(line, after)?;
                    if digits(&line[start..end]) {
                        (start, end) = next_word(line, end)?;
                    }
                    let event = line[start..end].strip_suffix(b":")?;
                    let event = event.rsplit(|&byte| byte == b':').next().unwrap_or(event);
                    return Some(Self { before: &line[..word], seconds, event, fields: &line[end..] });
                }
            }
            from = after;
        }
    }

    /// The thread: the number after the last hyphen of ftrace's "name-pid", or the last number of perf's "pid/tid",
    /// before the processor.
    fn pid(&self) -> u32 {
        let cpu = |word: &[u8]| word.starts_with(b"[") && word.ends_with(b"]");
        let words: Vec<&[u8]> = spaced(self.before).collect();
        let until = words.iter().rposition(|word| cpu(word)).unwrap_or(words.len());
        let group = |word: &&[u8]| word.iter().all(|byte| b"()-0123456789".contains(byte)) && word.contains(&b'(');
        let group = words[..until].iter().rposition(group).unwrap_or(until);
        let word = words[..group].last().copied().unwrap_or_default();
        let number = word.rsplit(|byte| matches!(byte, b'-' | b'/')).next().unwrap_or(word);
        whole_u32(number, "pid").unwrap_or(0)
    }
}

/// The start and end of the next word of a line from a position on.
fn next_word(line: &[u8], from: usize) -> Option<(usize, usize)> {
    let start = from + line[from..].iter().position(|byte| !byte.is_ascii_whitespace())?;
    let length = line[start..].iter().position(u8::is_ascii_whitespace).unwrap_or(line.len() - start);
    Some((start, start + length))
}

/// Parses the event of a line; `None` for other lines.
fn parse(line: &[u8]) -> Result<Option<Event>, String> {
    let Some(line) = Line::of(line) else { return Ok(None) };
    let action = match line.event {
        b"block_bio_queue" => Action::Queued,
        b"block_rq_issue" => Action::Issued,
        b"block_rq_complete" => Action::Completed,
        _ => return Ok(None),
    };
    let words: Vec<&[u8]> = spaced(line.fields).collect();
    let plus = words.iter().position(|word| *word == b"+");
    let (Some(plus), [major_minor, kind, ..]) = (plus, &words[..]) else {
        return Err(format!("{} has no sectors; allowed: major,minor flags ... sector + sectors", shown(line.fields)));
    };
    let operation = operation(kind, "flags", false)?;
    // A flush has no sectors, and address -1.
    let (offset, size) = match words.get(plus + 1) {
        Some(sectors) if operation != Operation::Other && *sectors != b"0" => {
            (scaled(words[plus - 1], "sector", SECTOR_BYTES)?, scaled(sectors, "sectors", SECTOR_BYTES)?)
        }
        _ => (0, 0),
    };
    Ok(Some(Event {
        action,
        time: Nanos(nanos(line.seconds, "time", 1_000_000_000)?),
        device: device(major_minor)?,
        pid: line.pid(),
        write: operation == Operation::Write,
        offset,
        size,
        process: ProcessName::behind_sectors(line.fields),
    }))
}

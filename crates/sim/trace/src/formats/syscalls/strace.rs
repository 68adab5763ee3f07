//! `strace`: the text that strace prints, with its options -f, -ff, -t, -tt, -ttt, -r, -T, -y, -yy in any combination.
//!
//! Source: strace(1), release 6. A line is "[pid] [time] call(arguments) = result [<seconds>]", with the process as
//! `1234` or `[pid 1234]`; a call that another process interrupts is printed in two pieces, "... <unfinished ...>" and
//! "<... call resumed>...". The parent module defines which calls are requests. Records are in order of issue; a thread
//! is a process.
//!
//! Times are available with -t, -tt, -ttt or -r, durations with -T; the remaining time between two requests is then
//! think time. strace slows each call down by some 10 to 100 us, which is included in the think times.

use std::collections::BTreeMap;

use headstart_types::Nanos;

use super::call::Call;
use super::{Calls, Issued, Style};
use crate::checks::EMPTY;
use crate::clock::{clock, Days};
use crate::formats::{lines_of, mostly};
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::nanos;
use crate::{Carries, ErrorPosition, Evidence, FileEntry, Format, Record, RecordReader, Source, TraceError};

const SECOND_NS: u64 = 1_000_000_000;
/// Times below this, in seconds, are not since 1970: they come from -r.
const EPOCH_MIN: u64 = 100_000_000;
/// The error text for a log without requests.
pub(super) const NO_REQUESTS: &str =
    "the trace has no records: no call in it reads or writes a file; allowed: one or more (record with openat, close, \
    lseek, read, pread64 and write: strace -f -y -ttt -T -e trace=%desc,%process,io_submit,io_getevents)";

pub(crate) const FORMAT: Format = Format {
    name: "strace",
    summary: "strace's text, best of \"strace -f -y -ttt -T -e trace=%desc,%process,io_submit,io_getevents\": reads \
    and writes of files",
    source: "strace(1)",
    carries: Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS },
    detect: |head| Evidence::mark(looks_like_strace(head), "most lines are system calls as strace prints them"),
    open,
};

/// The position in a line of one of strace's own messages after the beginning of a call; strace prints messages at
/// once, even into an unfinished line.
fn message_at(line: &str) -> Option<usize> {
    const MESSAGES: [&str; 4] =
        ["strace: Process ", "strace: [ Process ", "strace: Exit of unknown pid ", "strace: WARNING: "];
    let at = MESSAGES.iter().filter_map(|message| line.rfind(message)).max()?;
    // strace's name as invoked: "/usr/bin/strace".
    let path = ["/usr/local/bin/", "/usr/bin/", "/bin/", "./"].iter().find(|path| line[..at].ends_with(**path));
    Some(at - path.map_or(0, |path| path.len()))
}

/// The text before the mark of an unfinished call at the end of the line; data may contain the mark too.
fn unfinished(rest: &str) -> Option<&str> {
    rest.trim_end().strip_suffix("<unfinished ...>")
}

/// A stack frame (-k).
fn is_frame(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"> ")
}

/// A process id, optionally with its name (-Y): "1234", "1234<my app>". Returns it, its name and the rest.
fn process_of(text: &str) -> Option<(u32, Option<&str>, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    // At most as many digits as a process id has; a time has a dot or a colon.
    let pid = (end < 9).then(|| text[..end].parse().ok()).flatten()?;
    let rest = &text[end..];
    let (name, rest) = match rest.strip_prefix('<') {
        Some(named) => named.split_once('>').map(|(name, rest)| (Some(name), rest))?,
        None => (None, rest),
    };
    Some((pid, name, rest))
}

/// A line without what precedes the call.
struct Line<'a> {
    pid: Option<u32>,
    /// The name of the process.
    name: Option<&'a str>,
    time: Option<&'a str>,
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = std::str::from_utf8(line).ok()?.trim_start();
        let (mut pid, mut name) = (None, None);
        if let Some(after) = rest.strip_prefix("[pid") {
            let (number, named, after) = process_of(after.trim_start())?;
            (pid, name, rest) = (Some(number), named, after.trim_start().strip_prefix(']')?.trim_start());
        } else if let Some((number, named, after)) = process_of(rest).filter(|(.., after)| after.starts_with(' ')) {
            (pid, name, rest) = (Some(number), named, after.trim_start());
        }
        let mut time = None;
        if rest.as_bytes().first()?.is_ascii_digit() {
            let (stamp, after) = rest.split_once(' ')?;
            (time, rest) = (Some(stamp), after.trim_start());
        }
        // What -r adds to -t, and the number of the call (-n) or the instruction (-i).
        for (open, close) in [("(+", ')'), ("[", ']')] {
            if rest.starts_with(open) {
                rest = rest.split_once(close)?.1.trim_start();
            }
        }
        Some(Self { pid, name, time, rest })
    }

    /// Whether it is a complete call, a piece of one, a process's exit or a signal.
    fn is_of_strace(&self) -> bool {
        let begins = |texts: &[&str]| texts.iter().any(|text| self.rest.starts_with(text));
        begins(&["<... ", "+++ exited", "+++ killed", "--- SIG", "--- stopped", "strace: "])
            || unfinished(self.rest).is_some()
            || Call::parse(self.rest).is_some()
            || message_at(self.rest).is_some()
    }
}

/// Whether most of the first lines are strace's: messages of the program may be in between.
fn looks_like_strace(head: &[u8]) -> bool {
    mostly(head, is_frame, |line| Line::parse(line).is_some_and(|line| line.is_of_strace()))
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(ErrorPosition::File, EMPTY.to_owned()));
    }
    // The calls of the first lines tell whether there are times and durations.
    let (mut timed, mut lasting, mut coarse) = (false, false, false);
    let mut seconds = Vec::new();
    for line in lines_of(source.head()).filter_map(Line::parse).filter(Line::is_of_strace) {
        timed |= line.time.is_some();
        lasting |= took(line.rest).is_some();
        coarse |= line.time.is_some_and(|time| time.contains(':') && !time.contains('.'));
        seconds.extend(line.time.and_then(|time| nanos(time.as_bytes(), "", SECOND_NS).ok()));
    }
    // With -r, the first time is 0, and some call follows the previous one sooner than the others do.
    let grow = seconds.len() > 1 && seconds[0] > 0 && seconds.is_sorted_by(|one, next| one < next);
    let parser = Strace { timed, lasting: timed && lasting, coarse, absolute: grow, ..Strace::default() };
    Ok(Box::new(LineReader::new(Lines::new(source), parser)))
}

/// The seconds that a call took, printed after it in "<>".
fn took(rest: &str) -> Option<&str> {
    let seconds = rest.trim_end().strip_suffix('>')?.rsplit_once(" <")?.1;
    let is_number = seconds.contains('.') && seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_number.then_some(seconds)
}

#[derive(Default)]
struct Strace {
    timed: bool,
    lasting: bool,
    /// Whether times are whole seconds.
    coarse: bool,
    /// Whether small times count from a common start, not from the previous line.
    absolute: bool,
    calls: Calls,
    /// A line that a message of strace interrupted; the next line continues it.
    cut: Option<String>,
    /// First pieces of calls by process, with their times.
    pending: BTreeMap<u32, (String, u64)>,
    /// The process id under which the first process appears once there are others, if it had none before.
    main: Option<u32>,
    /// The current names of the processes (-Y).
    names: BTreeMap<u32, String>,
    /// The process of the last record.
    last: u32,
    /// Time of the last line.
    now_ns: u64,
    days: Days,
}

impl Strace {
    /// The time of a line, from an arbitrary origin.
    fn time(&mut self, stamp: &str) -> Result<u64, String> {
        let now_ns = if stamp.contains(':') {
            self.days.since_first(clock(stamp.as_bytes(), "time")?)
        } else {
            let ns = nanos(stamp.as_bytes(), "time", SECOND_NS)?;
            let relative = ns < EPOCH_MIN * SECOND_NS && !self.absolute;
            let sum = if relative { self.now_ns.checked_add(ns) } else { Some(ns) };
            sum.ok_or("the times sum to more than 584 years; allowed: less")?
        };
        self.now_ns = now_ns;
        Ok(now_ns)
    }

    /// The process of a line; a new one is a child of a process that is creating one. The first process has number 0 if
    /// it had no id at first.
    fn process(&mut self, pid: Option<u32>) -> u32 {
        let Some(pid) = pid.filter(|pid| self.main != Some(*pid)) else {
            self.calls.descriptors.begin(0, None, false);
            return 0;
        };
        if self.calls.descriptors.knows(pid) {
            return pid;
        }
        let makes = |text: &str| ["clone", "fork", "vfork"].iter().any(|name| text.starts_with(name));
        let parent = self.pending.iter().find(|(_, (text, _))| makes(text));
        let parent = parent.map(|(parent, (text, _))| (*parent, text.contains("CLONE_FILES")));
        // While the process without an id creates a child, strace prints the child's id before its first call.
        if self.main.is_none() && self.calls.descriptors.knows(0) && parent.is_none_or(|(parent, _)| parent == 0) {
            self.main = Some(pid);
            return 0;
        }
        self.calls.descriptors.begin(pid, parent.map(|(parent, _)| parent), parent.is_some_and(|(_, shares)| shares));
        pid
    }

    /// "strace: Process 1234 attached": a child of the process that is creating one.
    fn attached(&mut self, text: &str) {
        let pid = text.split_once("strace: Process ").and_then(|(_, rest)| rest.trim_end().strip_suffix(" attached"));
        let Some(pid) = pid.and_then(|pid| pid.parse().ok()) else { return };
        let parent = self.pending.iter().find(|(_, (text, _))| text.contains("clone") || text.contains("fork"));
        let shares = parent.is_some_and(|(_, (text, _))| text.contains("CLONE_FILES"));
        let parent = parent.map(|(parent, _)| *parent);
        if parent.is_some() {
            self.calls.descriptors.begin(pid, parent, shares);
        }
    }

    /// The next record.
    fn pop(&mut self) -> Option<Record> {
        let record = self.calls.pop();
        self.last = record.map_or(self.last, |record| record.pid);
        record
    }

    /// Processes a complete call.
    fn call(&mut self, pid: u32, text: &str, time_ns: u64) -> Result<(), String> {
        let Some(call) = Call::parse(text) else {
            // What strace was printing when it detached from a process.
            self.calls.left_out.lines += u64::from(!text.trim_end().ends_with("<detached ...>"));
            return Ok(());
        };
        let duration = took(call.result).filter(|_| self.lasting);
        let duration = duration.map_or(Ok(0), |seconds| nanos(seconds.as_bytes(), "duration", SECOND_NS))?;
        self.calls.take(Issued { pid, time: Nanos(time_ns), duration: Nanos(duration) }, &call, Style::Strace)
    }

    /// Processes a complete line.
    fn line(&mut self, line: &str) -> Result<(), String> {
        let parsed = Line::parse(line.as_bytes())
            .filter(|line| line.time.is_some() || !self.timed || message_at(line.rest) == Some(0));
        let Some(Line { pid, name, time, rest }) = parsed else {
            self.calls.left_out.lines += 1;
            return Ok(());
        };
        if message_at(rest) == Some(0) {
            self.attached(rest);
            return Ok(());
        }
        let time_ns = match time {
            Some(stamp) if self.timed => self.time(stamp)?,
            _ => 0,
        };
        let pid = self.process(pid);
        if let Some(name) = name {
            name.clone_into(self.names.entry(pid).or_default());
        }
        if rest.starts_with("+++ ") {
            self.pending.remove(&pid);
            self.calls.descriptors.end(pid);
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, tail) = resumed.split_once(" resumed>").unwrap_or_default();
            // The beginning may precede the log.
            let Some((text, began_ns)) = self.pending.remove(&pid) else { return Ok(()) };
            match unfinished(tail).filter(|_| Call::parse(&format!("{text}{tail}")).is_none()) {
                // It is interrupted once more.
                Some(piece) => drop(self.pending.insert(pid, (text + piece, began_ns))),
                None => return self.call(pid, &(text + tail), began_ns),
            }
        } else if let Some(piece) = unfinished(rest).filter(|_| Call::parse(rest).is_none()) {
            self.pending.insert(pid, (piece.to_owned(), time_ns));
        } else if !rest.starts_with("--- ") {
            return self.call(pid, rest, time_ns);
        }
        Ok(())
    }
}

impl LineParser for Strace {
    fn carries(&self) -> Carries {
        Carries { time: self.timed, duration: self.lasting, ..FORMAT.carries }
    }

    fn files(&self) -> &[FileEntry] {
        self.calls.files()
    }

    fn process(&self) -> Option<&[u8]> {
        self.names.get(&self.last).map(String::as_bytes)
    }

    fn note(&self) -> Option<String> {
        self.calls.note(self.coarse.then_some("times are whole seconds (strace -t): -ttt gives microseconds"))
    }

    fn skipped(&self) -> u64 {
        self.calls.skipped
    }

    fn empty(&self) -> &'static str {
        NO_REQUESTS
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.trim_ascii().is_empty() || is_frame(line) {
            return Ok(None);
        }
        let Ok(text) = std::str::from_utf8(line) else {
            self.calls.left_out.lines += 1;
            return Ok(None);
        };
        let whole = self.cut.take().map(|piece| piece + text);
        let text = whole.as_deref().unwrap_or(text);
        // A message inside a line, unless the message is data of a complete call.
        let is_whole = |text: &str| Line::parse(text.as_bytes()).is_some_and(|line| Call::parse(line.rest).is_some());
        match message_at(text).filter(|at| text[..*at].contains('(') && !is_whole(text)) {
            Some(at) => {
                let (piece, message) = text.split_at(at);
                if let Some(Line { pid, rest, .. }) = Line::parse(piece.as_bytes()) {
                    // While it creates a process, it is the parent of any process that is attached.
                    let pid = self.process(pid);
                    self.pending.insert(pid, (rest.to_owned(), 0));
                    self.attached(message);
                    self.pending.remove(&pid);
                }
                self.cut = Some(piece.to_owned());
            }
            None => self.line(text)?,
        }
        Ok(self.pop())
    }

    fn further(&mut self, ended: bool) -> Option<Record> {
        if ended {
            self.calls.end();
        }
        self.pop()
    }
}

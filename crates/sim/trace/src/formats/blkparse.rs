//! `blkparse`: blkparse's default text format for blktrace's recordings of the block layer.
//!
//! Source: blkparse(1) and the blktrace user guide. A line is
//! "major,minor cpu sequence seconds pid action type sector + sectors [process]"; sectors have 512 bytes. The summary at the end, messages and lines of other actions (plugging,
//! merging, remapping, splitting, ...) are ignored.
//!
//! **Which action is a request.** One request appears in several lines. The first of these actions that occurs in the
//! first [`SURVEY`] lines is used as the request throughout the trace:
//!
//! 1. `Q`, queued: what file systems and programs requested, before merging and scheduling, which the simulator does;
//! 2. `D`, issued to the driver: what was sent to the device; requeued requests count each time;
//! 3. `C`, completed, if there is nothing else: the time is then the completion time.
//!
//! **Service time** is the time to the completion (Q to C, D to C) that covers the request's last sector on the same
//! device and in the same direction: merged requests end together, a split request ends with its last part. A request
//! without a completion has a service time of 0. Requests are emitted in order of issue, so those behind an incomplete
//! one wait; at most [`OPEN_MAX`] do.
//!
//! Discards, flushes and other actions that move no data are skipped and counted. Times before blkparse's start, which
//! it prints as unsigned numbers, are converted to negative ones. The device is the file, as major * 2^20 + minor.
//! Processes are carried with their names, except by completions. If a stack of devices (dm, md) was traced, a request appears on each.
//! Cost: logarithmic in the outstanding requests. Memory: the outstanding requests.

mod event;
mod pairing;

use std::collections::VecDeque;

pub(super) use event::{device, device_number, Action, Event, ProcessName};
use pairing::Pairing;

use super::fields::SECTOR_BYTES;
use super::mostly;
use super::names::Processes;
use crate::checks::{extent, Checks, EMPTY};
use crate::lines::Lines;
use crate::order::Order;
use crate::{Carries, ErrorPosition, Evidence, Format, ProcessEntry, Record, RecordReader, Source, TraceError, BATCH};

/// Number of queue, issue and completion lines that are inspected to choose the action.
const SURVEY: usize = 4096;
/// The error text for a text without events.
const NO_EVENTS: &str = "no line is a request; allowed: blkparse's default format, with Q, D or C";
/// Maximum number of requests that wait for a completion.
const OPEN_MAX: usize = 65_536;

pub(crate) const FORMAT: Format = Format {
    name: "blkparse",
    summary: "blkparse's default text; Q, else D, else C is the request, its C the end; the device is the file",
    source: "blkparse(1)",
    carries: Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS },
    detect: |head| {
        Evidence::mark(
            mostly(head, |_| false, event::resembles),
            "most lines are \"major,minor cpu sequence seconds pid action\"",
        )
    },
    open: |source| Ok(Box::new(Blkparse::open(source, event::parse, NO_EVENTS)?)),
};

/// Parses the event of a line; `None` for lines that are not events.
type Parse = fn(&[u8]) -> Result<Option<Event>, String>;

/// Turns block-layer events of any tool into requests.
pub(super) struct Blkparse {
    lines: Lines,
    parse: Parse,
    /// Events read ahead to choose the action.
    ahead: VecDeque<Event>,
    /// The action that is a request.
    request: Action,
    completions: bool,
    pairing: Pairing,
    processes: Processes,
    order: Order,
    checks: Checks,
    skipped: u64,
    /// Whether all lines were read.
    ended: bool,
}

impl Blkparse {
    /// Starts reading; `none` is the error text for a text without events.
    pub(super) fn open(source: Source, parse: Parse, none: &str) -> Result<Self, TraceError> {
        let problem = if source.head().is_empty() { EMPTY } else { none };
        let empty = source.bad(ErrorPosition::File, problem.to_owned());
        let mut lines = Lines::new(source);
        let mut ahead = VecDeque::new();
        while ahead.len() < SURVEY {
            let Some(event) = next_event(&mut lines, parse)? else { break };
            ahead.push_back(event);
        }
        let has = |action: Action| ahead.iter().any(|event| event.action == action && event.size > 0);
        let actions = [Action::Queued, Action::Issued, Action::Completed];
        let request = actions.into_iter().find(|action| has(*action)).ok_or(empty)?;
        Ok(Self {
            lines,
            parse,
            request,
            completions: request != Action::Completed && has(Action::Completed),
            ahead,
            pairing: Pairing::new(OPEN_MAX),
            processes: Processes::default(),
            order: Order::default(),
            checks: Checks::default(),
            skipped: 0,
            ended: false,
        })
    }

    /// The next record in order of issue.
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some(next) = self.order.pop_ready() {
                return Ok(Some(next));
            }
            if let Some(record) = self.pairing.pop(self.ended || !self.completions) {
                self.order.push(record).map_err(|problem| self.lines.bad(problem))?;
            } else if self.ended {
                return Ok(self.order.pop());
            } else {
                self.step()?;
            }
        }
    }

    /// Processes one more event of the trace.
    fn step(&mut self) -> Result<(), TraceError> {
        let event = match self.ahead.pop_front() {
            Some(event) => Some(event),
            None => next_event(&mut self.lines, self.parse)?,
        };
        match event {
            None => self.ended = true,
            Some(event) if event.size == 0 => self.skipped += u64::from(event.action == self.request),
            Some(event) if event.action == self.request => {
                let mut record = event.record(self.request != Action::Completed);
                record.stands_at = self.lines.number();
                extent(&record, false).map_err(|problem| self.lines.bad(problem))?;
                let process = event.process.as_bytes();
                if self.request != Action::Completed && !process.is_empty() {
                    self.processes.meet(&record, process);
                }
                self.pairing.begin(record);
            }
            Some(event) if event.action == Action::Completed => self.pairing.complete(&event),
            Some(_) => {}
        }
        Ok(())
    }
}

/// The next event.
fn next_event(lines: &mut Lines, parse: Parse) -> Result<Option<Event>, TraceError> {
    loop {
        let Some(line) = lines.next()? else { return Ok(None) };
        match parse(line) {
            Ok(None) => {}
            Ok(event) => return Ok(event),
            Err(problem) => return Err(lines.bad(problem)),
        }
    }
}

impl RecordReader for Blkparse {
    fn carries(&self) -> Carries {
        Carries { duration: self.completions, processes: self.request != Action::Completed, ..FORMAT.carries }
    }

    fn unit_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    fn processes(&self) -> &[ProcessEntry] {
        self.processes.entries()
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        while into.len() < BATCH {
            let Some(mut record) = self.next()? else { break };
            self.checks.admit_time(&mut record).map_err(|problem| self.lines.bad(problem))?;
            into.push(record);
        }
        Ok(!into.is_empty())
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn bad(&self, record: &Record, problem: &str, allowed: &str) -> TraceError {
        self.lines.bad_at(record.stands_at, format!("{problem}; allowed: {allowed}"))
    }

    fn progress(&self) -> (u64, u64) {
        self.lines.progress()
    }
}

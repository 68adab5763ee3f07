//! Asynchronous requests: io_submit submits them, io_getevents returns their results.
//!
//! Source: io_submit(2), io_getevents(2), and strace's decoder of both. A request is issued when io_submit is called
//! and ends when its result is collected, which is the longest that the program can have waited for it. The program's
//! `aio_data` tells which event belongs to which request; if several requests have the same value, we take the one
//! whose size matches, then the oldest. The event's result is the size; a failed request is skipped. A program may read
//! events from memory without a call; requests without an event are emitted with the requested size after [`PATIENCE`].

use std::collections::VecDeque;

use headstart_types::Nanos;

use super::call::{descriptor, field, leading_number, members, Call};
use super::{Calls, End, FileOffset, Issued, Style, Target};
use crate::Record;

/// Shorter than the allowed delay of records out of order.
const PATIENCE: Nanos = Nanos(20_000_000_000);
/// Maximum number of requests that wait for their results.
const WAITING_MAX: usize = 1 << 16;

/// Requests that wait for their results, in order of issue.
pub(super) type Submitted = VecDeque<Waiting>;

#[derive(Debug)]
pub(super) struct Waiting {
    context: u64,
    data: u64,
    submitted: Nanos,
    /// `None` if it does not read or write a file.
    record: Option<Record>,
}

impl Calls {
    /// io_submit(context, count, [{...}, ...]) = number submitted, from the front.
    pub(super) fn submit(&mut self, issued: Issued, call: &Call, style: Style) -> Result<(), String> {
        let Some(taken) = call.number() else { return Ok(()) };
        if style == Style::Perf {
            self.left_out.hidden += taken;
            return Ok(());
        }
        let list = members(call.at(2));
        let shown =
            list.iter().filter(|request| request.starts_with('{')).take(usize::try_from(taken).unwrap_or(usize::MAX));
        let context = leading_number(call.at(0)).unwrap_or_default();
        let mut count = 0;
        for request in shown {
            let record = self.submitted_request(issued, &members(request))?;
            let data = field(&members(request), "aio_data").and_then(leading_number).unwrap_or_default();
            self.submitted.push_back(Waiting { context, data, submitted: issued.time, record });
            count += 1;
        }
        self.left_out.hidden += taken.saturating_sub(count);
        Ok(())
    }

    fn submitted_request(&mut self, issued: Issued, request: &[&str]) -> Result<Option<Record>, String> {
        let write = match field(request, "aio_lio_opcode") {
            Some("IOCB_CMD_PREAD" | "IOCB_CMD_PREADV") => false,
            Some("IOCB_CMD_PWRITE" | "IOCB_CMD_PWRITEV") => true,
            _ => return Ok(None),
        };
        let Some((fd, name)) = field(request, "aio_fildes").and_then(descriptor) else { return Ok(None) };
        let number = |name| field(request, name).and_then(leading_number);
        let of_vectors = || {
            let vectors = members(field(request, "aio_buf").unwrap_or_default());
            let lengths =
                vectors.iter().filter_map(|vector| field(&members(vector), "iov_len").and_then(leading_number));
            lengths.fold(0, u64::saturating_add)
        };
        let size = number("aio_nbytes").unwrap_or_else(of_vectors);
        let place = number("aio_offset").map_or(FileOffset::Hidden, FileOffset::At);
        let end = End { fd, name, place };
        match self.target_of(issued.pid, end)? {
            Some(Target::File(file)) => {
                let appends = field(request, "aio_rw_flags").is_some_and(|flags| flags.contains("RWF_APPEND"));
                self.request(issued, end, file, size, write, appends).map(Some)
            }
            other => {
                self.leave_out(other);
                Ok(None)
            }
        }
    }

    /// io_getevents(context, least, most, [{data=..., obj=..., res=..., res2=...}, ...], ...)
    pub(super) fn collect(&mut self, issued: Issued, call: &Call) {
        if call.number().is_none() {
            return;
        }
        let context = leading_number(call.at(0)).unwrap_or_default();
        let ended = Nanos(issued.time.0.saturating_add(issued.duration.0));
        for event in members(call.at(3)) {
            let event = members(event);
            let Some(data) = field(&event, "data").and_then(leading_number) else { continue };
            // A negative result is an error.
            let moved = field(&event, "res").and_then(leading_number);
            let is_it = |waiting: &Waiting| waiting.context == context && waiting.data == data;
            let size_of = |waiting: &Waiting| waiting.record.map(|record| record.size);
            let exact = self.submitted.iter().position(|each| is_it(each) && size_of(each) == moved && moved.is_some());
            let Some(at) = exact.or_else(|| self.submitted.iter().position(is_it)) else { continue };
            let record = self.submitted.remove(at).and_then(|waiting| waiting.record);
            match (record, moved) {
                (Some(_), Some(0)) => self.skipped += 1,
                (Some(record), Some(moved)) => {
                    let timed = record.duration > Nanos::ZERO || issued.duration > Nanos::ZERO;
                    let duration = if timed { ended.saturating_sub(record.time) } else { Nanos::ZERO };
                    // A result cannot be larger than the request, unless the list of buffers was truncated.
                    let size = if record.offset.checked_add(moved).is_some() { moved } else { record.size };
                    self.give(Record { size, duration, ..record });
                }
                _ => {}
            }
        }
    }

    /// Emits the requests that wait in a destroyed context.
    pub(super) fn destroy(&mut self, call: &Call) {
        let context = leading_number(call.at(0)).unwrap_or_default();
        while let Some(at) = self.submitted.iter().position(|waiting| waiting.context == context) {
            let record = self.submitted.remove(at).and_then(|waiting| waiting.record);
            self.give_as_submitted(record);
        }
    }

    /// Emits requests that have waited too long.
    pub(super) fn give_up(&mut self, now: Nanos) {
        let late = |first: &Waiting| now.saturating_sub(first.submitted) > PATIENCE;
        while self.submitted.len() > WAITING_MAX || self.submitted.front().is_some_and(late) {
            let record = self.submitted.pop_front().and_then(|waiting| waiting.record);
            self.give_as_submitted(record);
        }
    }

    /// Emits all waiting requests at the end of the trace.
    pub(super) fn end(&mut self) {
        while let Some(waiting) = self.submitted.pop_front() {
            self.give_as_submitted(waiting.record);
        }
    }

    fn give_as_submitted(&mut self, record: Option<Record>) {
        match record {
            Some(record) if record.size == 0 => self.skipped += 1,
            Some(record) => self.give(record),
            None => {}
        }
    }
}

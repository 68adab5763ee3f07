//! The replay itself: a calendar of due requests, and a channel of replies.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use headstart_nbd::client::{Client, ClientError, Completion};
use headstart_nbd::Command;
use headstart_trace::sha256_file;
use headstart_types::{Bytes, Nanos};
use nix::sys::prctl::set_timerslack;

use crate::plan::{Plan, Planned};
use crate::report::{notes, Tally, SCHEMA};
use crate::{Arrival, Error, ProcessReport, Processes, Report, Settings, Survey};

/// How often the caller is asked whether to continue.
const REFRESH: Duration = Duration::from_millis(100);

/// A reply to a part of a request.
struct Replied {
    id: u64,
    at: Instant,
    result: Result<Completion, ClientError>,
}

/// A request in flight.
struct Sent {
    planned: Planned,
    /// Start of its response time.
    from: Nanos,
    parts: u64,
    failed: bool,
}

#[derive(Default)]
struct Account {
    in_flight: u32,
    /// When `in_flight` last became zero or nonzero.
    since: Nanos,
    compute: Nanos,
    stall: Nanos,
    requests: u64,
    response_ns: u128,
    done_at: Nanos,
}

struct Replay<'a> {
    settings: &'a Settings,
    client: &'a Client,
    plan: Plan<'a>,
    start: Instant,
    /// Due requests, earliest first; the second number keeps the trace's order among equal times.
    due: BinaryHeap<Reverse<(Nanos, u64, Planned)>>,
    due_count: u64,
    /// Closed arrivals: slots of processes without any request read so far.
    parked: Vec<usize>,
    sent: BTreeMap<u64, Sent>,
    next_id: u64,
    accounts: Vec<Account>,
    buffers: Vec<Vec<u8>>,
    content: Vec<u8>,
    sender: Sender<Replied>,
    tally: Tally,
}

#[expect(clippy::disallowed_methods, reason = "a replay is timed by the clock on the wall")]
fn now() -> Instant {
    Instant::now()
}

/// Replays the trace over `client`. `go_on` is called about ten times a second with the number of answered requests,
/// and stops the replay by returning false.
///
/// # Errors
/// The trace cannot be read, the connection is lost, or the caller stops it. Requests that fail on the server are only
/// counted.
pub fn replay(
    settings: &Settings,
    survey: &Survey,
    client: &Client,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, Error> {
    let trace_sha256 = sha256_file(&settings.trace)?;
    // Without this, timers may be up to 50 us late, which is tolerable.
    _ = set_timerslack(1);
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut replay = Replay {
        settings,
        client,
        plan: Plan::new(settings, survey, client.export())?,
        start: now(),
        due: BinaryHeap::new(),
        due_count: 0,
        parked: Vec::new(),
        sent: BTreeMap::new(),
        next_id: 0,
        accounts: Vec::new(),
        buffers: Vec::new(),
        content: Vec::new(),
        sender,
        tally: Tally::new(),
    };
    replay.begin()?;
    replay.run(&receiver, go_on)?;
    Ok(replay.report(survey, trace_sha256))
}

impl Replay<'_> {
    fn time(&self, at: Instant) -> Nanos {
        Nanos(u64::try_from(at.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX))
    }

    fn begin(&mut self) -> Result<(), Error> {
        let open = self.settings.arrival == Arrival::Open;
        if !open {
            self.plan.meet_processes()?;
        }
        self.start = now();
        if open {
            return self.schedule_next();
        }
        self.meet(Nanos::ZERO)
    }

    /// Schedules the next request of a process, which is free from `from` on.
    fn schedule(&mut self, process: usize, from: Nanos) -> Result<(), Error> {
        match self.plan.next_of(process)? {
            Some(planned) => self.enter(Nanos(from.0.saturating_add(planned.wait.0)), planned),
            None if self.plan.is_read() => {}
            None => self.parked.push(process),
        }
        Ok(())
    }

    /// Starts processes found while reading ahead for others.
    fn meet(&mut self, from: Nanos) -> Result<(), Error> {
        while self.accounts.len() < self.plan.process_count() {
            let process = self.accounts.len();
            self.accounts.push(Account { since: from, ..Account::default() });
            for _ in 0..self.settings.depth() {
                self.schedule(process, from)?;
            }
        }
        Ok(())
    }

    /// Schedules the next request in trace order, for open arrivals.
    fn schedule_next(&mut self) -> Result<(), Error> {
        if let Some(planned) = self.plan.next()? {
            self.enter(planned.wait, planned);
        }
        self.accounts.resize_with(self.plan.process_count(), Account::default);
        Ok(())
    }

    fn enter(&mut self, at: Nanos, planned: Planned) {
        self.due_count += 1;
        self.due.push(Reverse((at, self.due_count, planned)));
    }

    fn run(&mut self, replies: &Receiver<Replied>, go_on: &mut dyn FnMut(u64) -> bool) -> Result<(), Error> {
        let mut told = self.start;
        while !self.due.is_empty() || !self.sent.is_empty() {
            let at = now();
            if at.saturating_duration_since(told) >= REFRESH {
                told = at;
                if !go_on(self.tally.requests) {
                    return Err(Error::Stopped);
                }
            }
            let wait = self.issue(at)?.min(REFRESH);
            match replies.recv_timeout(wait) {
                Ok(replied) => self.replied(replied)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            while let Ok(replied) = replies.try_recv() {
                self.replied(replied)?;
            }
        }
        Ok(())
    }

    /// Sends due requests; returns the time until the next one.
    fn issue(&mut self, at: Instant) -> Result<Duration, Error> {
        let open = self.settings.arrival == Arrival::Open;
        loop {
            let Some(Reverse((due, _, _))) = self.due.peek() else { return Ok(REFRESH) };
            let (due, time) = (*due, self.time(at));
            if due > time {
                return Ok(Duration::from_nanos(due.0 - time.0));
            }
            if open && self.sent.len() >= self.settings.depth() as usize {
                self.tally.held_back = true;
                return Ok(REFRESH);
            }
            let Some(Reverse((_, _, planned))) = self.due.pop() else { return Ok(REFRESH) };
            self.send(planned, due);
            if open {
                self.schedule_next()?;
            }
        }
    }

    fn send(&mut self, planned: Planned, due: Nanos) {
        let issued = self.time(now());
        self.tally.late.record(Nanos(issued.0.saturating_sub(due.0)));
        let open = self.settings.arrival == Arrival::Open;
        let account = &mut self.accounts[planned.process];
        if account.in_flight == 0 {
            account.compute = Nanos(account.compute.0 + issued.0.saturating_sub(account.since.0));
            account.since = issued;
        }
        account.in_flight += 1;
        self.next_id += 1;
        let id = self.next_id;
        let part_max = u64::from(self.client.export().blocks.bytes_max);
        let parts = planned.length.div_ceil(part_max);
        let from = if open { due } else { issued };
        self.sent.insert(id, Sent { planned, from, parts, failed: false });
        for part in 0..parts {
            let offset = planned.offset + part * part_max;
            let length = (planned.offset + planned.length - offset).min(part_max);
            let sender = self.sender.clone();
            let done = move |result| {
                // After a stop, the channel has no receiver.
                _ = sender.send(Replied { id, at: now(), result });
            };
            let length = length as u32;
            if planned.write {
                let fresh = self.content.len()..(length as usize).max(self.content.len());
                // Not zeroes, which some servers do not store; the same in every run.
                self.content.extend(fresh.map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8));
                let content = &self.content[..length as usize];
                self.client.submit(Command::Write { fua: false }, offset, length, content, Vec::new(), done);
            } else {
                let buffer = self.buffers.pop().unwrap_or_default();
                self.client.submit(Command::Read { single_chunk: false }, offset, length, &[], buffer, done);
            }
        }
    }

    fn replied(&mut self, replied: Replied) -> Result<(), Error> {
        let time = self.time(replied.at);
        let Some(sent) = self.sent.get_mut(&replied.id) else { return Ok(()) };
        match replied.result {
            Ok(completion) if completion.buffer.capacity() > 0 => self.buffers.push(completion.buffer),
            Ok(_) => {}
            Err(ClientError::Failed { errno, message }) => {
                sent.failed = true;
                let Planned { offset, length, .. } = sent.planned;
                let said = if message.is_empty() { String::new() } else { format!(" ({message:?})") };
                self.tally.first_error.get_or_insert(format!("{} at byte {offset}: {errno}{said}", Bytes(length)));
            }
            Err(source) => {
                let (uri, requests) = (self.settings.to.clone(), self.tally.requests);
                return Err(Error::Lost { uri, source, requests });
            }
        }
        sent.parts -= 1;
        if sent.parts > 0 {
            return Ok(());
        }
        let Some(sent) = self.sent.remove(&replied.id) else { return Ok(()) };
        self.finish(&sent, time);
        if self.settings.arrival == Arrival::Closed {
            self.parked.push(sent.planned.process);
            for process in std::mem::take(&mut self.parked) {
                self.schedule(process, time)?;
            }
            self.meet(time)?;
        }
        Ok(())
    }

    fn finish(&mut self, sent: &Sent, time: Nanos) {
        let response = Nanos(time.0.saturating_sub(sent.from.0));
        let tally = &mut self.tally;
        tally.requests += 1;
        tally.errors += u64::from(sent.failed);
        tally.writes += u64::from(sent.planned.write);
        tally.all.record(response);
        if sent.planned.write {
            tally.written.record(response);
            tally.bytes_written += if sent.failed { 0 } else { sent.planned.length };
        } else {
            tally.reads.record(response);
            tally.bytes_read += if sent.failed { 0 } else { sent.planned.length };
        }
        let account = &mut self.accounts[sent.planned.process];
        account.requests += 1;
        account.response_ns += u128::from(response.0);
        account.in_flight -= 1;
        account.done_at = account.done_at.max(time);
        if account.in_flight == 0 {
            account.stall = Nanos(account.stall.0 + time.0.saturating_sub(account.since.0));
            account.since = account.since.max(time);
        }
    }

    fn report(self, survey: &Survey, trace_sha256: String) -> Report {
        let (settings, tally) = (self.settings, &self.tally);
        let elapsed_ns = self.accounts.iter().map(|account| account.done_at.0).max().unwrap_or(0);
        let closed = settings.arrival == Arrival::Closed;
        let sum = |of: fn(&Account) -> u64| self.accounts.iter().map(of).sum::<u64>();
        let (compute_ns, stall_ns) = (sum(|account| account.compute.0), sum(|account| account.stall.0));
        let total = elapsed_ns * self.accounts.len() as u64;
        let bytes = u128::from(tally.bytes_read + tally.bytes_written);
        let throughput = (bytes * 1_000_000_000).checked_div(u128::from(elapsed_ns)).unwrap_or(0);
        let process = |(index, account): (usize, &Account)| ProcessReport {
            pid: self.plan.pid(index),
            requests: account.requests,
            elapsed_ns: account.done_at.0,
            compute_ns: if closed { account.compute.0 } else { 0 },
            stall_ns: account.stall.0,
            response_ns_mean: account.response_ns.checked_div(account.requests.into()).unwrap_or(0) as u64,
        };
        let apart = settings.processes == Processes::PerPid;
        Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            to: settings.uri().map_or_else(|_| settings.to.clone(), |uri| uri.to_string()),
            export_bytes: self.client.export().size_bytes,
            trace: settings.trace.display().to_string(),
            trace_sha256,
            arrival: settings.arrival,
            processes_of: settings.processes,
            writes_as: settings.writes(),
            addresses: settings.addresses,
            speed: settings.speed,
            depth: settings.depth(),
            connections: self.client.connection_count() as u32,
            notes: notes(settings, survey, self.plan.recorded(), tally),
            elapsed_ns,
            compute_ns: if closed { compute_ns } else { 0 },
            stall_ns,
            idle_ns: total.saturating_sub(stall_ns + if closed { compute_ns } else { 0 }),
            requests: tally.requests,
            writes: tally.writes,
            errors: tally.errors,
            bytes_read: tally.bytes_read,
            bytes_written: tally.bytes_written,
            throughput_bytes_per_s: throughput as u64,
            response_ns: tally.all.summary(),
            read_response_ns: tally.reads.summary(),
            write_response_ns: tally.written.summary(),
            late_ns: tally.late.summary(),
            processes: if apart { self.accounts.iter().enumerate().map(process).collect() } else { Vec::new() },
        }
    }
}

//! The event loop of everything that is not one process on one level: levels on top of one another, several of them on
//! one below, requests of many blocks at once, processes side by side, arrivals by the clock, parallel programs.
//!
//! Where both apply it gives what the loop of `run.rs` gives, to the nanosecond (`tests/levels.rs`); that one is kept
//! because most runs are of its kind and it is several times as fast.
//!
//! At one instant, in this order (DESIGN): (1) completions and deliveries upward, and freed disks start their next
//! requests; (2) decisions, level by level; (3) the processes that are due, in the order of their numbers, and arrivals;
//! then processors that are idle may take on prefetch actions. What goes down a level arrives there at once; what comes
//! up takes the link's time.
//!
//! Cost of an event: logarithmic in the processes and levels. Nobody goes over all of them.

mod actions;
mod arrivals;
mod asking;
mod calendar;
mod clients;
mod deciding;
mod messages;
mod parallel;
mod tiers;
mod wishes;
mod writers;

use std::rc::Rc;

use headstart_types::{Block, Nanos};

pub use actions::Actions;
use arrivals::Arrivals;
use calendar::Calendar;
pub use clients::{Client, Found, Reads, NOBODY};
pub use parallel::Parallel;
use tiers::Told;
pub use tiers::{Tier, Tiers};
use writers::Writers;

use crate::limits::{too_long, TIME_MAX};
use crate::process::Phase;
use crate::progress::{OnProgress, Progress};
use crate::responses::Responses;
use crate::workload::Places;
use crate::Error;

/// Steps between two reports of progress.
const REPORT_EVERY: u64 = 1 << 14;

/// A run of levels and processes.
pub struct Flow {
    /// The levels and the disks.
    pub tiers: Tiers,
    /// The processes.
    pub clients: Vec<Client>,
    /// Response times.
    pub responses: Responses,
    /// Time with no request outstanding; of open arrivals.
    pub idle: Nanos,
    /// What makes the processes one parallel program.
    pub parallel: Option<Parallel>,
    places: Rc<Places>,
    /// A request is asked for as a whole, not block by block.
    whole: bool,
    /// Requests come at their times, whatever has become of those before.
    open: bool,
    write_delay: Option<Nanos>,
    /// By level: whether its policy is asked about requests.
    asks: Vec<bool>,
    /// By level: the first process that asks it, and the only one that its decisions can be for.
    first_client: Vec<Option<u32>>,
    only_client: Vec<Option<u32>>,
    calendar: Calendar,
    /// Processes that act at this instant: scratch.
    due: Vec<u32>,
    /// The process that acts.
    acting: Option<u32>,
    /// Processes that are not done.
    running: usize,
    writers: Writers,
    arrivals: Arrivals,
    now: Nanos,
}

/// How requests are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// All blocks of a request together.
    pub whole: bool,
    /// At their times.
    pub open: bool,
    /// How long a written block may stay dirty; `None` writes through.
    pub write_delay: Option<Nanos>,
}

impl Flow {
    /// A run at time zero.
    #[must_use]
    pub fn new(
        tiers: Tiers,
        clients: Vec<Client>,
        places: Rc<Places>,
        manner: Manner,
        parallel: Option<Parallel>,
    ) -> Self {
        let asks: Vec<bool> = tiers.tiers.iter().map(|tier| tier.level.asks()).collect();
        let mut first_client = vec![None; asks.len()];
        let mut only_client = vec![None; asks.len()];
        for (number, client) in (0u32..).zip(&clients) {
            let first = &mut first_client[client.tier];
            only_client[client.tier] = if first.is_none() { Some(number) } else { None };
            first.get_or_insert(number);
        }
        if clients.len() == 1 {
            only_client.fill(Some(0));
        }
        Self {
            calendar: Calendar::new(clients.len()),
            running: clients.len(),
            tiers,
            clients,
            responses: Responses::new(),
            idle: Nanos::ZERO,
            parallel,
            places,
            whole: manner.whole,
            open: manner.open,
            write_delay: manner.write_delay,
            asks,
            first_client,
            only_client,
            due: Vec::new(),
            acting: None,
            writers: Writers::default(),
            arrivals: Arrivals::default(),
            now: Nanos::ZERO,
        }
    }

    /// Runs until everybody is done and returns the time at which that was.
    ///
    /// # Errors
    /// The trace is wrong somewhere, or `on_progress` asked to stop.
    ///
    /// # Panics
    /// A policy lets a process wait for a block that nothing will bring: a bug.
    pub fn finish(&mut self, on_progress: OnProgress<'_>) -> Result<Nanos, Error> {
        let mut steps = 0u64;
        self.look_ahead()?;
        while let Some(now) = self.next_instant() {
            if now > TIME_MAX {
                return Err(too_long());
            }
            self.now = now;
            self.step(now)?;
            steps += 1;
            if steps % REPORT_EVERY == 0 && !on_progress(self.progress()) {
                return Err(Error::Stopped);
            }
        }
        let end = self.end();
        // A report has the times of all processes in one sum.
        if end > TIME_MAX || end.0.checked_mul(self.clients.len() as u64).is_none() {
            return Err(too_long());
        }
        while self.tiers.next_event().is_some_and(|at| at <= end) {
            let at = self.tiers.next_event().unwrap_or(end);
            while self.tiers.complete(at).is_some() {}
            self.tiers.storage.start_issued(at);
        }
        Ok(end)
    }

    fn end(&self) -> Nanos {
        let processes = self.clients.iter().map(|client| client.process.free_at).max();
        processes.unwrap_or(Nanos::ZERO).max(self.arrivals.busy_until)
    }

    fn progress(&self) -> Progress {
        let (mut done, mut total) = self.parallel.as_ref().map_or((0, 0), Parallel::progress);
        let mut references = 0;
        for client in &self.clients {
            references += client.references;
            let (part, all) = client.progress();
            done += part;
            total += all;
        }
        Progress { share: done as f64 / total.max(1) as f64, references }
    }

    /// Marks the processes that have nothing to ask for, and puts the others in the calendar.
    fn look_ahead(&mut self) -> Result<(), Error> {
        for index in 0..self.clients.len() {
            if !self.clients[index].has_more()? {
                self.is_done(Nanos::ZERO, index);
            } else if self.open {
                self.clients[index].process.free_at = self.clients[index].arrival();
            }
            self.reschedule(index);
        }
        Ok(())
    }

    /// The process has nothing left to ask for.
    fn is_done(&mut self, now: Nanos, index: usize) {
        self.clients[index].process.phase = Phase::Done;
        self.running -= 1;
        self.leaves(now, index);
    }

    /// Puts a process where it belongs in the calendar.
    #[inline]
    fn reschedule(&mut self, index: usize) {
        let due = match &self.parallel {
            Some(parallel) => parallel.due(self.now, index, &self.clients[index].process),
            None => self.clients[index].process.due(),
        };
        self.calendar.set(index as u32, due);
    }

    /// The next instant at which anything happens; `None` when all is done.
    #[inline]
    fn next_instant(&mut self) -> Option<Nanos> {
        if self.running == 0 && self.arrivals.is_empty() {
            return None;
        }
        let due = self.calendar.next();
        let next = due.into_iter().chain(self.tiers.next_event()).chain(self.tiers.next_wish(self.now)).min();
        assert!(next.is_some(), "nothing will bring what a process waits for at {}", self.now);
        next
    }

    fn step(&mut self, now: Nanos) -> Result<(), Error> {
        while let Some(told) = self.tiers.complete(now) {
            self.heard(now, told);
        }
        // Who is due now acts now, though driver work of this instant's decisions may keep its processor busy.
        let mut due = std::mem::take(&mut self.due);
        self.calendar.take_due(now, &mut due);
        for index in &due {
            let client = &mut self.clients[*index as usize];
            client.is_due = true;
            client.charged_before = client.process.charged();
        }
        self.decide(now);
        self.hear_all(now);
        for index in &due {
            self.acting = Some(*index);
            self.act(now, *index as usize)?;
            self.clients[*index as usize].is_due = false;
            self.reschedule(*index as usize);
        }
        self.acting = None;
        self.due = due;
        self.hear_all(now);
        self.offer_actions(now);
        self.hear_all(now);
        Ok(())
    }

    /// What the levels have to say without anything having come from below.
    #[inline]
    fn hear_all(&mut self, now: Nanos) {
        while let Some(told) = self.tiers.take_told() {
            self.heard(now, told);
        }
    }

    fn heard(&mut self, now: Nanos, told: Told) {
        match told {
            Told::Done(id) if self.open => self.answered(now, id),
            Told::Done(id) => self.arrived(now, id as usize, NOBODY, false),
            Told::Arrived(tier, _) if self.whole || self.asks[tier] => {}
            Told::Arrived(tier, block) => {
                // A level that goes block by block has one process at most.
                if let Some(client) = self.only_client[tier] {
                    self.arrived(now, client as usize, block, false);
                }
            }
            Told::Written(tier, block) => match self.writers.written(tier, block) {
                Some(id) if self.open => self.arrival_done(now, id),
                Some(client) => self.arrived(now, client as usize, NOBODY, true),
                None => {}
            },
        }
    }

    /// What a process may wait for is there.
    #[inline]
    fn arrived(&mut self, now: Nanos, index: usize, block: Block, written: bool) {
        if self.clients[index].process.arrived(now, block, written) {
            self.wait_is_over(now, index);
        }
    }
}

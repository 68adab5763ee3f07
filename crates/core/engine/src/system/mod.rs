//! The machine: everything that happens at one instant, for any host. It has levels above one another, several of them
//! above a shared one, requests of many blocks, concurrent processes, open-loop arrivals, and parallel programs.
//!
//! There is no clock and no I/O here. A host owns a [`System`] and its time. It asks for the next instant at which
//! something happens and executes it ([`System::step`]); a host with real processes decides itself which ones act
//! ([`System::turn`]). Devices are a mailbox: orders go in, completions come out.
//!
//! Order of an instant: (1) completions and deliveries upwards, and freed devices start their next requests; (2)
//! decisions, level by level; (3) the processes that are due, by number, and arrivals; then idle processors may start
//! prefetch actions. A message down between levels arrives at once; a message up takes the link's time.
//!
//! Cost of an event: logarithmic in the processes and levels; constant for one process on one level.

mod actions;
mod alone;
mod arrivals;
mod asking;
mod buffers;
mod clients;
mod deciding;
mod process;
mod program;
mod supply;
mod writers;

use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Earliest, Nanos, Position};

pub use actions::Actions;
pub use clients::{Client, Reads, ReferenceCounts};
pub use process::{Awaited, Costs, Phase, Process, TIME_MAX};
pub use program::Parallel;
pub use supply::{Cursor, NoSupply, Supply};

use crate::devices::Devices;
use crate::journal::Happening;
use crate::level::{Ask, LookupCounts};
use crate::responses::Responses;
use crate::stack::{Notification, Stack};
use arrivals::Arrivals;
use writers::Writers;

/// How requests are issued.
#[derive(Debug, Clone, Copy)]
pub struct IssueMode {
    /// Whether all blocks of a request are requested together.
    pub whole: bool,
    /// Whether requests are issued at recorded times, regardless of outstanding requests (open-loop).
    pub open: bool,
    /// Maximum time that a written block stays dirty; `None` writes through.
    pub write_delay: Option<Nanos>,
}

/// Levels, processes and devices. References come from an `R`, and their blocks are placed in an `S`.
pub struct System<D, S, R> {
    /// The levels and the devices.
    pub stack: Stack<D, S>,
    /// The processes.
    pub clients: Vec<Client<R>>,
    /// Response times.
    pub responses: Responses,
    /// With open-loop arrivals: time without an outstanding request.
    pub idle: Nanos,
    /// What makes the processes one parallel program, if they are one.
    pub parallel: Option<Parallel>,
    mode: IssueMode,
    /// For each level: the first process that uses it, and the only one that its decisions can be for.
    first_client: Vec<Option<u32>>,
    only_client: Vec<Option<u32>>,
    /// For each process: when it next acts by itself.
    calendar: Earliest,
    /// Whether there is one closed-loop process on one level, outside a parallel program; see [`System::step_alone`].
    alone: bool,
    /// Scratch space: processes that act at this instant.
    due: Vec<u32>,
    /// The acting process.
    acting: Option<u32>,
    /// Number of unfinished processes.
    running: usize,
    writers: Writers,
    arrivals: Arrivals,
    /// Processes whose times have changed, for a host that decides which ones act.
    moved: Option<Vec<u32>>,
    /// Finished requests of clients of the host.
    replied: Vec<u64>,
    /// Whether the journal is kept.
    journals: bool,
    now: Nanos,
}

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// A run at time zero.
    ///
    /// # Errors
    /// The first references cannot be read.
    pub fn try_new(
        stack: Stack<D, S>,
        mut clients: Vec<Client<R>>,
        mode: IssueMode,
        parallel: Option<Parallel>,
    ) -> Result<Self, R::Error> {
        let asks: Vec<bool> = stack.tiers.iter().map(|tier| tier.level.takes_requests()).collect();
        let mut first_client = vec![None; asks.len()];
        let mut only_client = vec![None; asks.len()];
        for (number, client) in (0u32..).zip(&mut clients) {
            client.takes_requests = asks[client.tier];
            let first = &mut first_client[client.tier];
            only_client[client.tier] = if first.is_none() { Some(number) } else { None };
            first.get_or_insert(number);
        }
        if clients.len() == 1 {
            only_client.fill(Some(0));
        }
        let mut system = Self {
            calendar: Earliest::new(clients.len()),
            alone: clients.len() == 1 && stack.tiers.len() == 1 && !mode.open && parallel.is_none(),
            running: clients.len(),
            stack,
            clients,
            responses: Responses::new(),
            idle: Nanos::ZERO,
            parallel,
            mode,
            first_client,
            only_client,
            due: Vec::new(),
            acting: None,
            writers: Writers::default(),
            arrivals: Arrivals::default(),
            moved: None,
            replied: Vec::new(),
            journals: false,
            now: Nanos::ZERO,
        };
        system.look_ahead()?;
        Ok(system)
    }

    /// Marks the processes without references as done, and puts the others in the calendar.
    fn look_ahead(&mut self) -> Result<(), R::Error> {
        for index in 0..self.clients.len() {
            if !self.clients[index].has_more(&self.stack.space)? {
                self.is_done(Nanos::ZERO, index);
            } else if self.mode.open {
                self.clients[index].process.free_at = self.clients[index].arrival();
            }
            self.reschedule(index);
        }
        Ok(())
    }

    /// When the last of the finished processes finished.
    #[must_use]
    pub fn end(&self) -> Nanos {
        let is_io = |index: usize| self.parallel.as_ref().is_some_and(|parallel| parallel.is_io(index));
        let ends =
            self.clients.iter().enumerate().filter_map(|(at, each)| (!is_io(at)).then_some(each.process.free_at));
        ends.max().unwrap_or(Nanos::ZERO).max(self.arrivals.busy_until)
    }

    /// The progress as (done, total), in units of the input.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let (mut done, mut total) = self.parallel.as_ref().map_or((0, 0), Parallel::progress);
        for client in &self.clients {
            let (part, all) = client.progress();
            done += part;
            total += all;
        }
        (done, total)
    }

    /// Number of references served.
    #[must_use]
    pub fn references(&self) -> u64 {
        self.clients.iter().map(|client| client.references).sum()
    }

    /// Whether all processes are done.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.running == 0 && self.arrivals.is_empty()
    }

    /// Marks a process without further references as done.
    fn is_done(&mut self, now: Nanos, index: usize) {
        self.clients[index].process.phase = Phase::Done;
        self.running -= 1;
        if !self.parallel.as_ref().is_some_and(|parallel| parallel.is_io(index)) {
            self.exit(now, index);
        }
    }

    /// When a process next acts by itself, or its processor has work; `None` while it waits.
    #[inline]
    #[must_use]
    pub fn due(&self, index: usize) -> Option<Nanos> {
        match &self.parallel {
            Some(parallel) => parallel.due(self.now, index, &self.clients[index].process),
            None => self.clients[index].process.due(),
        }
    }

    /// Updates a process in the calendar.
    #[inline]
    fn reschedule(&mut self, index: usize) {
        if let Some(moved) = &mut self.moved {
            moved.push(index as u32);
        } else if !self.alone {
            let due = self.due(index);
            self.calendar.set(index as u32, due.unwrap_or(Nanos::MAX));
        }
    }

    /// From now on the host decides which processes act ([`System::turn`]). [`System::take_moved`] reports whose times
    /// have changed, and [`Stack::take_left`] which blocks have been evicted.
    pub fn use_external_schedule(&mut self) {
        self.moved = Some((0..self.clients.len() as u32).collect());
        self.stack.note_what_leaves();
    }

    /// Makes [`System::take_journal`] report events from now on. Must be called before the first instant.
    pub fn keep_journal(&mut self) {
        // The code for a single process records no events.
        self.alone = false;
        self.journals = true;
        self.stack.journal = Some(Vec::new());
        self.stack.note_what_leaves();
        (0..self.clients.len()).for_each(|index| self.reschedule(index));
    }

    /// Appends the events since the last call; evictions come last, with the time `now`.
    pub fn take_journal(&mut self, now: Nanos, into: &mut Vec<Happening>) {
        if let Some(journal) = &mut self.stack.journal {
            into.append(journal);
        }
        let mut left = Vec::new();
        self.stack.take_left(&mut left);
        into.extend(left.into_iter().map(|block| Happening::Evicted { at: now, block }));
    }

    fn note(&mut self, happening: Happening) {
        if let Some(journal) = &mut self.stack.journal {
            journal.push(happening);
        }
    }

    /// Appends the processes whose times have changed since the last call; possibly with duplicates.
    pub fn take_moved(&mut self, into: &mut Vec<u32>) {
        if let Some(moved) = &mut self.moved {
            into.append(moved);
        }
    }

    /// The next known time at which a device finishes, a link delivers, or a level wants to act.
    #[inline]
    pub fn next_timer(&mut self) -> Option<Nanos> {
        match (self.stack.next_event(), self.stack.next_wake(self.now)) {
            (Some(event), Some(wake)) => Some(event.min(wake)),
            (event, wake) => event.or(wake),
        }
    }

    /// The next instant at which anything happens; `None` when all processes are done.
    ///
    /// # Panics
    /// A process waits for a block that will never arrive: a bug of the policy.
    #[inline]
    pub fn next_instant(&mut self) -> Option<Nanos> {
        if self.is_over() {
            return None;
        }
        let event = self.stack.next_event();
        let next = self.next_after(event);
        assert_ne!(next, Nanos::MAX, "nothing will bring what a process waits for at {}", self.now);
        Some(next)
    }

    /// The earliest of the devices' next `event`, the processes' next actions and the levels' times; [`Nanos::MAX`] if
    /// there is none.
    #[inline(always)]
    fn next_after(&mut self, event: Option<Nanos>) -> Nanos {
        let due = if self.alone { self.clients[0].process.due() } else { Some(self.calendar.time()) };
        let wake = self.stack.next_wake(self.now);
        event.unwrap_or(Nanos::MAX).min(due.unwrap_or(Nanos::MAX)).min(wake.unwrap_or(Nanos::MAX))
    }

    /// Executes everything that happens at `now`, the next instant; for a single process, many instants after it as
    /// well.
    ///
    /// # Errors
    /// The source of references has an error.
    pub fn step(&mut self, now: Nanos) -> Result<(), R::Error> {
        if self.alone {
            return self.step_alone(now);
        }
        let mut due = std::mem::take(&mut self.due);
        self.complete(now);
        due.clear();
        while let Some(process) = self.calendar.first_by(now) {
            self.calendar.set(process, Nanos::MAX);
            due.push(process);
        }
        debug_assert!(due.is_sorted(), "who is due at one instant acts in the order of the numbers");
        let acted = self.act_all::<false>(now, &due, false);
        self.due = due;
        acted
    }

    /// As [`System::step`], but the host decides which processes act at `now`: those of `due`, in ascending order.
    ///
    /// # Errors
    /// As for [`System::step`].
    pub fn turn(&mut self, now: Nanos, due: &[u32]) -> Result<(), R::Error> {
        self.complete(now);
        self.act_all::<false>(now, due, false)
    }

    /// Records that a process that the host only observes has referenced the blocks of `ask` in level `tier`, at an
    /// instant started by [`System::turn`]. This needs no fetch: the host ends orders of kind
    /// [`Kind::Demand`](crate::Kind) at once.
    pub fn observe(&mut self, now: Nanos, tier: usize, ask: &Ask<'_>) -> LookupCounts {
        let (level, space, mut down) = self.stack.at(tier);
        let looked = level.request(now, ask, space.as_space(), &mut down);
        self.follow::<false>(now, tier, looked.issued);
        looked
    }

    /// Requests `blocks`, placed as in `asked`, from level `tier` for a client of the host that is not a process of the
    /// machine, at an instant started by [`System::turn`]. The stack was built without first levels.
    /// [`System::take_replied`] returns `id` when all blocks are there.
    pub fn request(&mut self, now: Nanos, tier: usize, id: u64, asked: Asked, blocks: &[Block]) {
        self.stack.ask_for_client(now, tier, id, asked, blocks);
        self.follow::<false>(now, tier, 0);
        self.hear_all(now);
    }

    /// The host expects requests of its clients for `blocks` of level `tier`: the absent ones are prefetched, as far as
    /// there are frames. At an instant started by [`System::turn`].
    pub fn expect(&mut self, now: Nanos, tier: usize, blocks: &[Block]) {
        let (level, space, mut down) = self.stack.at(tier);
        let issued = level.expect(now, blocks, space.as_space(), &mut down);
        self.follow::<false>(now, tier, issued);
    }

    /// Removes `block` from level `tier` for the host; see [`Level::take_out`](crate::Level::take_out).
    pub fn take_out(&mut self, tier: usize, block: Block) {
        self.stack.at(tier).0.take_out(block);
    }

    /// Appends the finished requests of clients of the host, in order.
    pub fn take_replied(&mut self, into: &mut Vec<u64>) {
        into.append(&mut self.replied);
    }

    /// The process will not reference `block` at `position`, although level `tier` expects it.
    pub fn skip(&mut self, now: Nanos, tier: usize, position: Position, block: Block) {
        let (level, space, _) = self.stack.at(tier);
        level.skip(now, position, block, space.as_space());
    }

    /// Step (1).
    fn complete(&mut self, now: Nanos) {
        self.now = now;
        while let Some(told) = self.stack.complete(now) {
            self.heard(now, told);
        }
    }

    /// Steps (2) and (3), and actions of idle processors. With `ALONE`, checks that cannot apply to a single process
    /// are skipped; `wants` is whether its level wants to decide.
    #[inline(always)]
    fn act_all<const ALONE: bool>(&mut self, now: Nanos, due: &[u32], wants: bool) -> Result<(), R::Error> {
        // Processes that are due act now, even if driver work of this instant's decisions keeps their processors busy.
        for index in due {
            let client = &mut self.clients[*index as usize];
            client.is_due = true;
            client.charged_before = client.process.charged();
        }
        self.decide::<ALONE>(now, wants);
        if !ALONE {
            self.hear_all(now);
        }
        for index in due {
            self.acting = Some(*index);
            self.act::<ALONE>(now, *index as usize)?;
            self.clients[*index as usize].is_due = false;
            if !ALONE {
                self.reschedule(*index as usize);
            }
        }
        self.acting = None;
        if !ALONE {
            self.hear_all(now);
        }
        if !ALONE && self.parallel.is_some() && self.running > 0 {
            self.offer_actions(now);
            self.hear_all(now);
        }
        Ok(())
    }

    /// After [`System::end`]: counts what completes by `end`.
    pub fn drain(&mut self, end: Nanos) {
        while let Some(at) = self.stack.next_event().filter(|at| *at <= end) {
            while self.stack.complete(at).is_some() {}
            self.stack.devices.start(at);
        }
    }

    /// Handles notifications that are pending without a completion.
    #[inline]
    fn hear_all(&mut self, now: Nanos) {
        while let Some(told) = self.stack.take_told() {
            self.heard(now, told);
        }
    }

    fn heard(&mut self, now: Nanos, told: Notification) {
        match told {
            Notification::Done(id) if self.mode.open => self.answered(now, id),
            Notification::Done(id) => self.arrived(now, id as usize, false),
            Notification::Written(tier, block) => match self.writers.written(tier, block) {
                Some(id) if self.mode.open => self.arrival_done(now, id),
                Some(client) => self.arrived(now, client as usize, true),
                None => {}
            },
            Notification::Replied(id) => self.replied.push(id),
        }
    }

    /// Handles the completion that a process may wait for.
    #[inline]
    fn arrived(&mut self, now: Nanos, index: usize, written: bool) {
        if self.clients[index].process.arrived(now, written) {
            self.wait_is_over(now, index);
        }
    }
}

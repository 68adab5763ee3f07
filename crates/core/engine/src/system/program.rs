//! Processes as one parallel program: they share reference strings and synchronise at barriers, and each has a
//! processor that is idle while the process waits (kotz-ellis, section 5).
//!
//! The rules of barriers and idle processors are in [`crate::parallel`]; this file applies them in the machine. The
//! time between two synchronisations is an *interval*; its sums are updated as events happen.
//!
//! Cost: constant per read and wait.

use headstart_policy::BlockMap;
use headstart_types::{Nanos, Outcome};

use super::{Actions, Awaited, Phase, Process, Reads, Supply, System};
use crate::devices::Devices;
use crate::journal::Happening;
use crate::level::LookupCounts;
use crate::parallel::{Barrier, Buffers, Contention, Idle, Intervals, Meeting, Node, Scope, Strings, TimeSpent};

/// How a process has spent its time so far.
fn parts(process: &Process) -> TimeSpent {
    let own_io = process.stall - process.other_io;
    TimeSpent { compute: process.compute, own_io, other_io: process.other_io, overrun: process.overrun }
}

/// What makes processes one parallel program.
pub struct Parallel {
    /// The reference strings; `None` if each process has its own references.
    strings: Option<Strings>,
    barrier: Option<Barrier>,
    /// The processors.
    pub nodes: Vec<Node>,
    /// Prefetch actions, if processors perform them.
    pub(super) actions: Option<Actions>,
    /// Structures that lookups hold.
    pub(super) contention: Contention,
    /// Placement of buffers; `None` if it makes no difference.
    pub(super) buffers: Option<Buffers>,
    /// Sums for each interval.
    pub intervals: Intervals,
    /// For each process: its read time that has been added to an interval.
    read_time: Vec<Nanos>,
}

impl Parallel {
    /// A program of `processes` processes, I/O processors included.
    #[must_use]
    pub fn new(
        processes: usize,
        strings: Option<Strings>,
        barrier: Option<Barrier>,
        actions: Option<Actions>,
        contention: Contention,
        buffers: Option<Buffers>,
    ) -> Self {
        let mut nodes = vec![Node::default(); processes];
        let is_io = |index: &usize| actions.as_ref().is_some_and(|actions| actions.is_io(*index));
        // The idle period of a processor without a process never ends.
        (0..processes).filter(is_io).for_each(|index| nodes[index].begin_wait(Nanos::ZERO, Idle::OwnIo));
        Self {
            strings,
            barrier,
            nodes,
            actions,
            contention,
            buffers,
            intervals: Intervals::new(processes),
            read_time: vec![Nanos::ZERO; processes],
        }
    }

    /// Whether a processor runs no process.
    #[inline]
    #[must_use]
    pub fn is_io(&self, index: usize) -> bool {
        self.actions.as_ref().is_some_and(|actions| actions.is_io(index))
    }

    /// References taken from strings, and references of all strings.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        self.strings.as_ref().map_or((0, 0), |strings| (strings.taken(), strings.program().blocks.len() as u64))
    }

    /// When, from `now` on, a process's processor has work.
    #[inline]
    #[must_use]
    pub fn due(&self, now: Nanos, index: usize, process: &Process) -> Option<Nanos> {
        // A processor that is free already is offered actions at the end of each instant.
        let free = || self.actions.as_ref().and_then(|actions| actions.free_at(index)).filter(|at| *at > now);
        self.nodes[index].acts_until().or_else(|| process.due()).or_else(free)
    }

    /// Number of reads that a process has not started and that precede its next synchronisation or its end. 0 if that
    /// depends on other processes, or is unknown.
    pub(super) fn left(&self, index: usize) -> u32 {
        if self.is_io(index) {
            return 0;
        }
        let process = index as u32;
        let strings = |of_portion| self.strings.as_ref().map_or(0, |strings| strings.left(process, of_portion));
        let Some(barrier) = &self.barrier else { return strings(false) };
        match barrier.scope() {
            Scope::Process(every) => every - barrier.started_by(process),
            Scope::OwnPortion => strings(true),
            Scope::All(_) | Scope::SharedPortion => 0,
        }
    }

    /// End of the current action of a process's processor; zero if there is none.
    #[inline]
    #[must_use]
    pub fn acts_until(&self, index: usize) -> Nanos {
        self.nodes[index].acts_until().unwrap_or(Nanos::ZERO)
    }
}

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// Whether processes synchronise. If so, a process without further reads leaves when it would synchronise next.
    pub(super) fn meets_others(&self) -> bool {
        self.parallel.as_ref().is_some_and(|parallel| parallel.barrier.is_some())
    }

    /// Whether a process that is due will not request a block at this instant, because it has to synchronise or to wait
    /// for the shared structures. A process that already waits for its block is not held up.
    #[inline]
    pub(super) fn is_held_up(&self, index: usize) -> bool {
        let Some(parallel) = &self.parallel else { return false };
        let client = &self.clients[index];
        let waited = matches!(client.process.phase, Phase::Granted(_));
        let meets = parallel.barrier.as_ref().is_some_and(|barrier| barrier.holds(index as u32));
        !waited && !client.has_begun && (meets || !parallel.contention.is_none())
    }

    /// Whether a process that has finished thinking may request a block now; the reference is then taken and its lookup
    /// paid for. If not, the process has reached the barrier, is done, or waits for shared structures.
    pub(super) fn may_read(&mut self, now: Nanos, index: usize) -> Result<bool, R::Error> {
        let Some(parallel) = &mut self.parallel else { return Ok(true) };
        let client = &mut self.clients[index];
        if std::mem::take(&mut client.has_begun) {
            return Ok(true);
        }
        let has_more = match &parallel.strings {
            Some(strings) => strings.has_more(index as u32),
            None => client.has_more(&self.stack.space)?,
        };
        if !has_more {
            self.is_done(now, index);
            return Ok(false);
        }
        if parallel.barrier.as_ref().is_some_and(|barrier| barrier.holds(index as u32)) {
            self.reach_barrier(now, index);
            return Ok(false);
        }
        let mut ends_portion = false;
        if let (Some(strings), Reads::Taken { block, .. }) = (&mut parallel.strings, &mut client.reads) {
            (client.process.position, ends_portion) = strings.take(index as u32);
            *block = strings.program().blocks[client.process.position as usize];
        }
        if let Some(barrier) = &mut parallel.barrier {
            barrier.starts(index as u32, ends_portion);
        }
        let held = parallel.contention.hold(now);
        if held > Nanos::ZERO {
            client.process.request_since.get_or_insert(now);
            client.process.pays(now, held);
            client.has_begun = true;
            self.note(Happening::Held { process: index as u32, since: now, until: now + held });
        }
        Ok(held == Nanos::ZERO)
    }

    /// Lets a process arrive at the barrier; it waits unless it is the last.
    fn reach_barrier(&mut self, now: Nanos, index: usize) {
        self.wait(now, index, Awaited::Others);
        let barrier = self.parallel.as_mut().and_then(|parallel| parallel.barrier.as_mut());
        if let Some(meeting) = barrier.and_then(|barrier| barrier.arrive(now, index as u32)) {
            self.met(now, &meeting);
        }
    }

    /// Removes a finished process from the barrier.
    pub(super) fn exit(&mut self, now: Nanos, index: usize) {
        let barrier = self.parallel.as_mut().and_then(|parallel| parallel.barrier.as_mut());
        if let Some(meeting) = barrier.and_then(|barrier| barrier.exit(now, index as u32)) {
            self.met(now, &meeting);
        }
    }

    /// Completes a synchronisation: the waiting processes continue at this instant, in order of their numbers.
    fn met(&mut self, now: Nanos, meeting: &Meeting) {
        if let Some(parallel) = &mut self.parallel {
            let clients = &self.clients;
            parallel.intervals.ends(meeting, |process| parts(&clients[process as usize].process));
        }
        for process in &meeting.released {
            self.clients[*process as usize].process.granted(now);
            self.wait_is_over(now, *process as usize);
        }
    }

    /// Handles the start of a process's wait.
    #[inline]
    pub(super) fn begin_wait(&mut self, now: Nanos, index: usize, what: Awaited) {
        let Some(parallel) = &mut self.parallel else { return };
        let kind = match what {
            Awaited::Others => Idle::Barrier,
            Awaited::Read(Outcome::HitUnready) => Idle::OtherIo,
            Awaited::Read(_) | Awaited::Write => Idle::OwnIo,
        };
        parallel.nodes[index].begin_wait(now, kind);
        self.is_free(now, index);
    }

    /// Handles the end of a process's wait.
    #[inline]
    pub(super) fn wait_is_over(&mut self, now: Nanos, index: usize) {
        if let Some(parallel) = &mut self.parallel {
            let (end, overrun) = parallel.nodes[index].over(now);
            if overrun > Nanos::ZERO {
                self.clients[index].process.overruns(end, overrun);
                parallel.intervals.sums.overrun += overrun;
            }
            if let Some(actions) = &mut parallel.actions {
                actions.is_busy(index);
            }
        }
        self.reschedule(index);
    }

    /// Handles the continuation of a process that has waited.
    #[inline]
    pub(super) fn resumes(&mut self, now: Nanos, index: usize) {
        if let Some(parallel) = &mut self.parallel {
            parallel.nodes[index].resumes(now);
        }
    }

    /// Counts the lookup of a request.
    #[inline]
    pub(super) fn count(&mut self, looked: &LookupCounts) {
        if let Some(parallel) = &mut self.parallel {
            parallel.intervals.sums.found(looked);
        }
    }

    /// Counts `count` blocks delivered to a process.
    #[inline]
    pub(super) fn has_read(&mut self, index: usize, count: u32) {
        if let Some(parallel) = &mut self.parallel {
            let read_time = self.clients[index].process.read_time;
            let before = std::mem::replace(&mut parallel.read_time[index], read_time);
            parallel.intervals.sums.read(u64::from(count), read_time - before);
        }
    }

    /// Whether the processor of a process that is due is available to it. An action that ends now has ended after this
    /// call; a process that still waits has nothing to do.
    pub(super) fn has_processor(&mut self, now: Nanos, index: usize) -> bool {
        let Some(parallel) = &self.parallel else { return true };
        if parallel.nodes[index].acts_until().is_some() {
            self.action_ends(now, index);
            return self.clients[index].process.due().is_some_and(|due| due <= now);
        }
        !matches!(self.clients[index].process.phase, Phase::Waiting(_) | Phase::Done)
    }
}

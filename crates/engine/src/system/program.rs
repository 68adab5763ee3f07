//! Processes as one parallel program: they share reference strings, meet at barriers, and each has a processor that is
//! idle while it waits (kotz-ellis, section 5).
//!
//! The rules of barriers and idle processors are in [`crate::parallel`]; this is where the machine keeps to them. The time between two meetings is an *interval*; what happened in it is summed up as it happens.
//!
//! Cost: constant per read and wait.

use headstart_policy::Space;
use headstart_types::{Nanos, Outcome};

use super::{Actions, Awaited, Phase, Process, Reads, Supply, System};
use crate::devices::Devices;
use crate::journal::Happening;
use crate::level::Looked;
use crate::parallel::{Barrier, Buffers, Contention, Idle, Intervals, Meeting, Node, Parts, Scope, Strings};

/// Where a process's time has gone so far.
fn parts(process: &Process) -> Parts {
    let own_io = process.stall - process.other_io;
    Parts { compute: process.compute, own_io, other_io: process.other_io, overrun: process.overrun }
}

/// What makes processes one parallel program.
pub struct Parallel {
    /// What is known of the strings; `None` where each process has references of its own.
    strings: Option<Strings>,
    barrier: Option<Barrier>,
    /// The processors.
    pub nodes: Vec<Node>,
    /// Prefetch actions, where processors take them on.
    pub(super) actions: Option<Actions>,
    /// Structures that look-ups hold.
    pub(super) contention: Contention,
    /// Where buffers are; `None` where that makes no difference.
    pub(super) buffers: Option<Buffers>,
    /// What has happened from meeting to meeting.
    pub intervals: Intervals,
    /// By process: read time that has been added to an interval's.
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
        // Nothing ends the time in which there is no process.
        (0..processes).filter(is_io).for_each(|index| nodes[index].rests(Nanos::ZERO, Idle::OwnIo));
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

    /// When, from `now` on, a process's processor has something to do.
    #[inline]
    #[must_use]
    pub fn due(&self, now: Nanos, index: usize, process: &Process) -> Option<Nanos> {
        // One that is free already is asked at the end of each instant.
        let free = || self.actions.as_ref().and_then(|actions| actions.free_at(index)).filter(|at| *at > now);
        self.nodes[index].acts_until().or_else(|| process.due()).or_else(free)
    }

    /// Reads that a process has not started and that come before it meets the others, or is done: 0 where that is not for it alone to say,
    /// or not known.
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

    /// When the action of a process's processor ends; zero where there is none.
    #[inline]
    #[must_use]
    pub fn acts_until(&self, index: usize) -> Nanos {
        self.nodes[index].acts_until().unwrap_or(Nanos::ZERO)
    }
}

impl<D: Devices<S>, S: Space + Send, R: Supply<S>> System<D, S, R> {
    /// Whether processes meet: then one that has read all leaves when it would have met the others.
    pub(super) fn meets_others(&self) -> bool {
        self.parallel.as_ref().is_some_and(|parallel| parallel.barrier.is_some())
    }

    /// Whether a process that is due will not ask for a block at this instant: it meets the others, or waits for the
    /// shared structures. One that has begun to wait for its block is not held up any more.
    #[inline]
    pub(super) fn is_held_up(&self, index: usize) -> bool {
        let Some(parallel) = &self.parallel else { return false };
        let client = &self.clients[index];
        let waited = matches!(client.process.phase, Phase::Granted(_));
        let meets = parallel.barrier.as_ref().is_some_and(|barrier| barrier.holds(index as u32));
        !waited && !client.has_begun && (meets || !parallel.contention.is_none())
    }

    /// Whether a process that has thought may ask for a block now; it has taken it then, and paid for looking it up.
    /// If not, it has met the others, is done, or waits for shared structures.
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
            self.comes(now, index);
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

    /// A process meets the others, and waits unless it is the last.
    fn comes(&mut self, now: Nanos, index: usize) {
        self.wait(now, index, Awaited::Others);
        let barrier = self.parallel.as_mut().and_then(|parallel| parallel.barrier.as_mut());
        if let Some(meeting) = barrier.and_then(|barrier| barrier.comes(now, index as u32)) {
            self.met(now, &meeting);
        }
    }

    /// A process is done: others need not wait for it.
    pub(super) fn leaves(&mut self, now: Nanos, index: usize) {
        let barrier = self.parallel.as_mut().and_then(|parallel| parallel.barrier.as_mut());
        if let Some(meeting) = barrier.and_then(|barrier| barrier.leaves(now, index as u32)) {
            self.met(now, &meeting);
        }
    }

    /// All have met: who waits goes on, at this instant, in the order of their numbers.
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

    /// A process has begun to wait.
    #[inline]
    pub(super) fn rests(&mut self, now: Nanos, index: usize, what: Awaited) {
        let Some(parallel) = &mut self.parallel else { return };
        let kind = match what {
            Awaited::Others => Idle::Barrier,
            Awaited::Read(Outcome::HitUnready) => Idle::OtherIo,
            Awaited::Read(_) | Awaited::Write => Idle::OwnIo,
        };
        parallel.nodes[index].rests(now, kind);
        self.is_free(now, index);
    }

    /// What a process waits for is there.
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

    /// A process that has waited goes on.
    #[inline]
    pub(super) fn resumes(&mut self, now: Nanos, index: usize) {
        if let Some(parallel) = &mut self.parallel {
            parallel.nodes[index].resumes(now);
        }
    }

    /// A request has been looked up.
    #[inline]
    pub(super) fn count(&mut self, looked: &Looked) {
        if let Some(parallel) = &mut self.parallel {
            parallel.intervals.sums.found(looked);
        }
    }

    /// A process has got `count` blocks.
    #[inline]
    pub(super) fn has_read(&mut self, index: usize, count: u32) {
        if let Some(parallel) = &mut self.parallel {
            let read_time = self.clients[index].process.read_time;
            let before = std::mem::replace(&mut parallel.read_time[index], read_time);
            parallel.intervals.sums.read(u64::from(count), read_time - before);
        }
    }

    /// Whether the processor of a process that is due is the process's: an action that ends now has ended after this,
    /// and a process that still waits has nothing to do.
    pub(super) fn has_processor(&mut self, now: Nanos, index: usize) -> bool {
        let Some(parallel) = &self.parallel else { return true };
        if parallel.nodes[index].acts_until().is_some() {
            self.action_ends(now, index);
            return self.clients[index].process.due().is_some_and(|due| due <= now);
        }
        !matches!(self.clients[index].process.phase, Phase::Waiting(_) | Phase::Done)
    }
}

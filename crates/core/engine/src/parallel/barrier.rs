//! Barriers of the processes of a parallel program (kotz-ellis, section 5.2).
//!
//! A process checks before each read whether it has to synchronise first, and reports when it starts one. A process
//! that has to waits until every process that is not done has arrived; then all are released together, and the next
//! interval begins.
//!
//! - [`Scope::Process`]: after a number of reads of its own.
//! - [`Scope::All`]: after a number of reads of all processes together: none starts a read beyond that, and faster
//!   processes read more.
//! - [`Scope::OwnPortion`]: after each sequential portion of its own.
//! - [`Scope::SharedPortion`]: after each sequential portion of the string that all share: no process starts the next
//!   one before all have synchronised.
//!
//! A process that is done is not waited for. The last process to arrive (or, if all others wait, to finish) is
//! *critical*: had it been faster, the interval would have been shorter by up to its *slack*, the time by which it
//! arrived after the one before it (section 4, Figure 2).
//!
//! Cost: constant per read, per arrival, and per released process.

use headstart_types::Nanos;

/// Which processes synchronise, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each process after this many reads of its own; at least 1.
    Process(u32),
    /// All processes after this many reads together; at least 1.
    All(u32),
    /// Each process after each portion of its own.
    OwnPortion,
    /// All processes after each portion of the string that they share.
    SharedPortion,
}

/// The time from one synchronisation to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Time of the previous synchronisation, or of the start.
    pub start: Nanos,
    /// When the last process arrived.
    pub end: Nanos,
    /// The process that arrived last.
    pub critical: u32,
    /// How much later it arrived than the process before it; zero if none arrived before it.
    pub slack: Nanos,
}

/// A completed synchronisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    /// The interval that it ends.
    pub interval: Interval,
    /// The released processes, in order of arrival; empty if all are done.
    pub released: Vec<u32>,
}

/// The barrier of a program's processes.
#[derive(Debug, Clone)]
pub struct Barrier {
    scope: Scope,
    /// Number of processes that are not done.
    present: u32,
    /// Waiting processes, in order of arrival.
    waiting: Vec<u32>,
    /// For each process: reads started since its last synchronisation.
    reads: Vec<u32>,
    /// For each process: whether it has to synchronise before its next read.
    owes: Vec<bool>,
    /// Reads started by all processes since the last synchronisation.
    started: u32,
    /// Whether no process may start a read before all have synchronised.
    closed: bool,
    start: Nanos,
    /// The last two arrivals or completions in this interval: time and process of the last, time of the one before.
    last: Option<(Nanos, u32)>,
    before_last: Option<Nanos>,
}

impl Barrier {
    /// A barrier for `processes` processes, at time zero. The caller guarantees that counts in `scope` are at least 1.
    #[must_use]
    pub fn new(scope: Scope, processes: u32) -> Self {
        Self {
            scope,
            present: processes,
            waiting: Vec::new(),
            reads: vec![0; processes as usize],
            owes: vec![false; processes as usize],
            started: 0,
            closed: false,
            start: Nanos::ZERO,
            last: None,
            before_last: None,
        }
    }

    /// Whether `process` has to synchronise before it may start its next read.
    #[inline]
    #[must_use]
    pub fn holds(&self, process: u32) -> bool {
        self.closed || self.owes[process as usize]
    }

    /// Records that `process`, which is not held, starts a read. `ends_portion`: it is the last of its sequential
    /// portion.
    ///
    /// # Panics
    /// The process has to synchronise first: a bug of the host.
    #[inline]
    pub fn starts(&mut self, process: u32, ends_portion: bool) {
        assert!(!self.holds(process), "process {process} passes a barrier early");
        self.started += 1;
        let reads = &mut self.reads[process as usize];
        *reads += 1;
        match self.scope {
            Scope::Process(every) => self.owes[process as usize] = *reads == every,
            Scope::All(every) => self.closed = self.started == every,
            Scope::OwnPortion => self.owes[process as usize] = ends_portion,
            Scope::SharedPortion => self.closed = ends_portion,
        }
    }

    /// Records the arrival of `process`, which is held. Returns the synchronisation if it completes one.
    pub fn arrive(&mut self, now: Nanos, process: u32) -> Option<Meeting> {
        debug_assert!(self.holds(process) && !self.waiting.contains(&process));
        self.note(now, process);
        self.waiting.push(process);
        self.meet()
    }

    /// Records that `process`, which does not wait, is done. Returns the synchronisation if only this process was
    /// waited for.
    pub fn exit(&mut self, now: Nanos, process: u32) -> Option<Meeting> {
        debug_assert!(!self.waiting.contains(&process));
        self.note(now, process);
        self.present -= 1;
        self.meet()
    }

    /// Where the processes synchronise.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Number of reads that `process` has started since its last synchronisation.
    #[must_use]
    pub fn started_by(&self, process: u32) -> u32 {
        self.reads[process as usize]
    }

    /// Number of waiting processes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn note(&mut self, now: Nanos, process: u32) {
        self.before_last = self.last.map(|(at, _)| at);
        self.last = Some((now, process));
    }

    fn meet(&mut self) -> Option<Meeting> {
        if self.waiting.len() < self.present as usize {
            return None;
        }
        let (end, critical) = self.last.take()?;
        let slack = self.before_last.take().map_or(Nanos::ZERO, |before| end - before);
        let interval = Interval { start: self.start, end, critical, slack };
        let released = std::mem::take(&mut self.waiting);
        for process in &released {
            self.reads[*process as usize] = 0;
            self.owes[*process as usize] = false;
        }
        (self.started, self.closed, self.start) = (0, false, end);
        Some(Meeting { interval, released })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn interval(start: u64, end: u64, critical: u32, slack: u64) -> Interval {
        Interval { start: Nanos(start), end: Nanos(end), critical, slack: Nanos(slack) }
    }

    #[test]
    fn each_after_two_reads_of_its_own() {
        let mut barrier = Barrier::new(Scope::Process(2), 2);
        barrier.starts(0, false);
        barrier.starts(1, false);
        barrier.starts(0, false);
        assert!(barrier.holds(0) && !barrier.holds(1));
        assert_eq!(barrier.arrive(Nanos(5), 0), None);
        barrier.starts(1, false);
        let meeting = barrier.arrive(Nanos(9), 1).expect("the last");
        assert_eq!((meeting.interval, meeting.released), (interval(0, 9, 1, 4), vec![0, 1]));
        assert!(!barrier.holds(0) && !barrier.holds(1));
        // The next one begins there; process 1 is done and not waited for.
        barrier.starts(0, false);
        barrier.starts(0, false);
        assert_eq!(barrier.arrive(Nanos(20), 0), None);
        let meeting = barrier.exit(Nanos(21), 1).expect("only it was waited for");
        assert_eq!((meeting.interval, meeting.released), (interval(9, 21, 1, 1), vec![0]));
        let end = barrier.exit(Nanos(30), 0).expect("the end");
        assert_eq!((end.interval, end.released), (interval(21, 30, 0, 0), vec![]));
    }

    #[test]
    fn all_after_three_reads_together() {
        let mut barrier = Barrier::new(Scope::All(3), 2);
        // Process 1 is faster, and reads twice.
        barrier.starts(0, false);
        barrier.starts(1, false);
        barrier.starts(1, false);
        assert!(barrier.holds(0) && barrier.holds(1));
        assert_eq!(barrier.arrive(Nanos(7), 1), None);
        let meeting = barrier.arrive(Nanos(8), 0).expect("the last");
        assert_eq!((meeting.interval, meeting.released), (interval(0, 8, 0, 1), vec![1, 0]));
        assert!(!barrier.holds(0));
    }

    #[test]
    fn after_portions() {
        let mut own = Barrier::new(Scope::OwnPortion, 2);
        own.starts(0, true);
        assert!(own.holds(0) && !own.holds(1));
        let mut shared = Barrier::new(Scope::SharedPortion, 2);
        shared.starts(0, false);
        assert!(!shared.holds(0));
        shared.starts(0, true);
        assert!(shared.holds(0) && shared.holds(1), "nobody starts the next portion");
    }

    #[test]
    #[should_panic(expected = "passes a barrier early")]
    fn nobody_passes_early() {
        let mut barrier = Barrier::new(Scope::Process(1), 2);
        barrier.starts(0, false);
        barrier.starts(0, false);
    }

    fn scopes() -> impl Strategy<Value = Scope> {
        prop_oneof![
            (1u32..5).prop_map(Scope::Process),
            (1u32..12).prop_map(Scope::All),
            Just(Scope::OwnPortion),
            Just(Scope::SharedPortion),
        ]
    }

    proptest! {
        /// For any order of actions: no process is left behind, none starts a read of interval n + 1 before all
        /// unfinished ones have ended interval n, and the intervals cover the time.
        #[test]
        fn everyone_is_released_and_nobody_early(
            scope in scopes(),
            mut left in prop::collection::vec(0u32..30, 1..6),
            order in prop::collection::vec((any::<u16>(), any::<bool>()), 400..401),
        ) {
            let count = left.len();
            let mut barrier = Barrier::new(scope, count as u32);
            let mut waits = vec![false; count];
            let mut done = vec![false; count];
            // For each process: number of synchronisations completed.
            let mut met = vec![0u32; count];
            let (mut meetings, mut end, mut now) = (0u32, Nanos::ZERO, Nanos::ZERO);
            for (pick, ends_portion) in order {
                let able: Vec<usize> = (0..count).filter(|at| !waits[*at] && !done[*at]).collect();
                let Some(&at) = able.get(usize::from(pick) % able.len().max(1)) else { break };
                now += Nanos(u64::from(pick % 3));
                let meeting = if left[at] == 0 {
                    done[at] = true;
                    barrier.exit(now, at as u32)
                } else if barrier.holds(at as u32) {
                    waits[at] = true;
                    barrier.arrive(now, at as u32)
                } else {
                    left[at] -= 1;
                    prop_assert_eq!(met[at], meetings, "it starts a read of this interval");
                    barrier.starts(at as u32, ends_portion);
                    None
                };
                prop_assert_eq!(barrier.waiting(), if meeting.is_some() { 0 } else { waits.iter().filter(|wait| **wait).count() });
                if let Some(Meeting { interval, released }) = meeting {
                    meetings += 1;
                    prop_assert!((0..count).all(|at| waits[at] || done[at]), "all have come");
                    prop_assert_eq!((interval.start, interval.end, interval.critical), (end, now, at as u32));
                    end = now;
                    prop_assert_eq!(released.len(), waits.iter().filter(|wait| **wait).count());
                    for process in released {
                        waits[process as usize] = false;
                    }
                    met.iter_mut().for_each(|met| *met = meetings);
                }
                // Some process can always act until all are done.
                prop_assert!((0..count).any(|at| !waits[at] && !done[at]) || done.iter().all(|done| *done));
            }
        }
    }
}

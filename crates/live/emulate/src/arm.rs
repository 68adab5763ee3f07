//! The arm: one thread that answers each read at the time at which the drive completes it.
//!
//! Other threads submit reads with [`Arm::submit`], which records the time and passes them to the drive. The arm waits
//! until the absolute time of the next completion, answers, and repeats. While waiting, it fetches the data of coming
//! answers from the image, one read at a time, so that only the answer is left to do. Lateness does not delay later
//! completions: see [`ClockedDrive`]. It is recorded. Memory: the data of outstanding reads.
//!
//! Timers wake a thread late, by 5 us on a physical machine and 60 us on a virtual one, but by similar amounts each
//! time. The arm sets its timer earlier by its recent lateness and then polls the clock until the time has come: no
//! answer is ever early.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headstart_device::{Drive, Finished, Request, SECTOR_BYTES};
use headstart_types::Nanos;

use super::image::Image;
use super::statistics::{About, Counts, Statistics};
use super::ClockedDrive;
use headstart_host::Clock;

/// Longest time to poll the clock: a longer lateness comes from a busy machine, not from the timer.
const WAKES_LATE_MAX: Nanos = Nanos::from_micros(100);

/// The arm's index among the workers of its clock.
pub(super) const ARM: usize = 0;

/// The requester of a read.
pub(super) trait Answer: Send + 'static {
    fn data(self, data: &[u8]);
    fn failed(self);
}

/// A read without an answer.
struct Job<A> {
    answer: A,
    offset: u64,
    bytes: usize,
    /// The image's data, once fetched.
    data: Option<io::Result<Vec<u8>>>,
}

/// State shared by the threads.
struct State<A> {
    drive: ClockedDrive,
    /// Unanswered reads, by the tags of the drive's requests.
    jobs: BTreeMap<u64, Job<A>>,
    next_tag: u64,
    /// Tags of reads not yet requested from the image, in order of arrival; some may have been answered.
    unread: VecDeque<u64>,
    /// Tags and times of reads that the drive has completed, in that order.
    ended: VecDeque<(u64, Nanos)>,
    counts: Counts,
    closed: bool,
}

impl<A> State<A> {
    /// Advances the drive to `now`, then submits `arrive`. Does nothing once closed.
    fn follow(&mut self, now: Nanos, arrive: Vec<Request>) {
        if self.closed {
            return;
        }
        let Self { drive, jobs, ended, counts, .. } = self;
        let each = |finished: Finished| {
            let tag = finished.request.tag;
            counts.ended(&finished, jobs[&tag].bytes as u64);
            ended.push_back((tag, finished.arrived + finished.response_time));
        };
        drive.submit_all(now, arrive, each);
        counts.queue_depth_max = counts.queue_depth_max.max(drive.drive().outstanding());
    }

    /// The next read not yet requested from the image.
    fn next_unread(&mut self) -> Option<(u64, u64, usize)> {
        let Self { jobs, unread, .. } = self;
        let mut tags = std::iter::from_fn(|| unread.pop_front());
        tags.find_map(|tag| jobs.get(&tag).map(|job| (tag, job.offset, job.bytes)))
    }
}

/// What the arm does next.
enum Step<A> {
    /// Answer a read that is due.
    Answer(Job<A>, Nanos),
    /// Fetch this read from the image: tag, offset, length.
    Fetch(u64, u64, usize),
    /// Wait until this time, or for an event.
    Wait(Option<Nanos>),
    Leave,
}

pub(super) struct Arm<C, A> {
    clock: Arc<C>,
    image: Image,
    about: About,
    state: Mutex<State<A>>,
}

impl<C: Clock, A: Answer> Arm<C, A> {
    /// The caller guarantees that the image fits on the drive, and that the drive has had no requests.
    pub fn new(clock: Arc<C>, image: Image, drive: Drive, about: About) -> Self {
        let state = State {
            drive: ClockedDrive::from_first_arrival(drive),
            jobs: BTreeMap::new(),
            next_tag: 0,
            unread: VecDeque::new(),
            ended: VecDeque::new(),
            counts: Counts::new(),
            closed: false,
        };
        Self { clock, image, about, state: Mutex::new(state) }
    }

    pub fn image_bytes(&self) -> u64 {
        self.image.bytes
    }

    /// Ignores poisoning: a thread that panicked has closed the arm, so its state is not used any more.
    fn state(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits a read. The range is cut at the image's end; if nothing is left, the answer is empty and immediate.
    pub fn submit(&self, offset: u64, bytes: u32, process: Option<u32>, answer: A) {
        self.submit_all(process, [(offset, bytes, answer)]);
    }

    /// Submits reads that arrive at one instant, in this order.
    pub fn submit_all(&self, process: Option<u32>, reads: impl IntoIterator<Item = (u64, u32, A)>) {
        let now = self.clock.now();
        let (mut arrive, mut empty, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut state = self.state();
        for (offset, bytes, answer) in reads {
            let bytes = u64::from(bytes).min(self.image.bytes.saturating_sub(offset));
            if bytes == 0 {
                empty.push(answer);
            } else if state.closed {
                failed.push(answer);
            } else {
                let tag = state.next_tag;
                state.next_tag += 1;
                state.jobs.insert(tag, Job { answer, offset, bytes: bytes as usize, data: None });
                state.unread.push_back(tag);
                let sector = offset / SECTOR_BYTES;
                let sectors = (offset + bytes).div_ceil(SECTOR_BYTES) - sector;
                // A read through FUSE has at most 16 MiB.
                arrive.push(Request { process, ..Request::read(sector, sectors as u32, tag) });
            }
        }
        let wakes = !arrive.is_empty();
        state.follow(now, arrive);
        drop(state);
        empty.into_iter().for_each(|answer| answer.data(&[]));
        failed.into_iter().for_each(A::failed);
        if wakes {
            self.clock.wake(ARM);
        }
    }

    /// The arm's thread, until [`Arm::close`]. `real_time`: it has real-time priority.
    pub fn run(&self, real_time: bool) {
        self.clock.enter(ARM);
        self.state().counts.real_time = real_time;
        let _leaves = Leaves(self);
        let mut spare = Vec::new();
        let mut wakes_late = Nanos::ZERO;
        loop {
            match self.next_step() {
                Step::Answer(job, end) => self.answer(job, end, &mut spare),
                Step::Fetch(tag, offset, bytes) => {
                    let data = self.fetch(offset, bytes, &mut spare);
                    if let Some(job) = self.state().jobs.get_mut(&tag) {
                        job.data = Some(data);
                    }
                }
                Step::Wait(None) => self.clock.park(ARM, None),
                Step::Wait(Some(until)) => self.wait(until, &mut wakes_late),
                Step::Leave => return,
            }
        }
    }

    /// Waits until `until`, or until something arrives if that is well before. `wakes_late`: moving average of the
    /// lateness of waits.
    fn wait(&self, until: Nanos, wakes_late: &mut Nanos) {
        let early = until.saturating_sub(*wakes_late);
        if self.clock.now() >= early {
            while self.clock.now() < until {
                std::hint::spin_loop();
            }
            return;
        }
        self.clock.park(ARM, Some(early));
        // Negative if it was woken.
        if let Some(late) = self.clock.now().0.checked_sub(early.0) {
            *wakes_late = Nanos((7 * wakes_late.0 + late) / 8).min(WAKES_LATE_MAX);
        }
    }

    fn next_step(&self) -> Step<A> {
        let mut state = self.state();
        if state.closed {
            return Step::Leave;
        }
        state.follow(self.clock.now(), Vec::new());
        if let Some((tag, end)) = state.ended.pop_front() {
            let job = state.jobs.remove(&tag).expect("it is answered once");
            return Step::Answer(job, end);
        }
        match state.next_unread() {
            Some((tag, offset, bytes)) => Step::Fetch(tag, offset, bytes),
            None => Step::Wait(state.drive.next_event()),
        }
    }

    /// The image's data, in a buffer of `spare` if there is one.
    fn fetch(&self, offset: u64, bytes: usize, spare: &mut Vec<Vec<u8>>) -> io::Result<Vec<u8>> {
        let mut buffer = spare.pop().unwrap_or_default();
        buffer.resize(bytes, 0);
        self.image.read(&mut buffer, offset)?;
        Ok(buffer)
    }

    /// Answers a read that the drive completed at `end`.
    fn answer(&self, job: Job<A>, end: Nanos, spare: &mut Vec<Vec<u8>>) {
        let data = job.data.unwrap_or_else(|| self.fetch(job.offset, job.bytes, spare));
        let failed = data.is_err();
        match &data {
            Ok(data) => job.answer.data(data),
            Err(_) => job.answer.failed(),
        }
        let late = self.clock.now().saturating_sub(end);
        let counts = &mut self.state().counts;
        counts.lateness.record(late);
        counts.failed += u64::from(failed);
        spare.extend(data);
    }

    /// Statistics so far.
    pub fn statistics(&self, fuse_round_trip_ns: Option<u64>) -> Statistics {
        let mut state = self.state();
        let now = self.clock.now();
        state.follow(now, Vec::new());
        let State { drive, counts, .. } = &*state;
        let (done, outstanding) = (drive.statistics(now), drive.drive().outstanding());
        Statistics::new(self.about.clone(), now, &done, outstanding, counts, fuse_round_trip_ns)
    }

    /// Ends the arm's thread. Outstanding and later reads fail.
    pub fn close(&self) {
        let jobs = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.jobs)
        };
        for job in jobs.into_values() {
            job.answer.failed();
        }
        self.clock.wake(ARM);
    }
}

/// Closes the arm when its thread ends, even by a panic, so that no caller waits for it.
struct Leaves<'a, C: Clock, A: Answer>(&'a Arm<C, A>);

impl<C: Clock, A: Answer> Drop for Leaves<'_, C, A> {
    fn drop(&mut self) {
        self.0.close();
        self.0.clock.leave(ARM);
    }
}

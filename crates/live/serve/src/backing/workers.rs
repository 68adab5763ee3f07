//! The threads of one backing. Only they call methods that may block; everything else hands them work and never waits.

use std::collections::VecDeque;
use std::sync::{mpsc, Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use super::{Backing, StartedRead};
use crate::work::{Completed, Work};

/// Maximum number of threads that query extents: a query uses the processor rather than the device, and the serving
/// thread needs its share.
const LOOKING_MAX: u32 = 1;

/// Called when work has completed.
pub type End = Arc<dyn Fn(Completed) + Send + Sync>;

/// Queued work and the threads.
#[derive(Default)]
struct Waiting {
    work: VecDeque<(u64, Work)>,
    /// Queued extent queries, and the number of threads that run one.
    questions: VecDeque<(u64, Work)>,
    looking: u32,
    threads: u32,
    /// Threads without work.
    idle: usize,
    /// No more work will come.
    closed: bool,
}

/// State shared by the threads. The lock is only held to add or take work.
struct Shared {
    waiting: Mutex<Waiting>,
    added: Condvar,
    backing: Arc<dyn Backing>,
    threads_max: u32,
    export: usize,
    end: End,
}

/// The threads. When this is dropped, each ends after its current work.
pub struct Workers {
    shared: Arc<Shared>,
    /// Channel to the thread that starts reads, if the backing supports that.
    starter: Option<mpsc::Sender<Vec<StartedRead>>>,
}

impl Workers {
    /// Creates at most `threads_max` threads for `backing`, which has export number `export`, and one more if it starts
    /// reads. `end` is called at each completion.
    ///
    /// # Errors
    /// The system cannot create more threads.
    pub fn try_new(backing: &Arc<dyn Backing>, threads_max: u32, export: usize, end: End) -> io::Result<Self> {
        let (waiting, added, backing) = (Mutex::default(), Condvar::new(), backing.clone());
        let starts = backing.about().starts_reads;
        let shared = Arc::new(Shared { waiting, added, backing, threads_max, export, end });
        shared.add_thread(&mut shared.lock())?;
        let starter = starts.then(|| shared.start_starter()).transpose()?;
        Ok(Self { shared, starter })
    }

    /// Whether reads are passed to [`Workers::start`].
    pub fn starts_reads(&self) -> bool {
        self.starter.is_some()
    }

    /// Starts these reads together on the backing.
    pub fn start(&self, reads: Vec<StartedRead>) {
        if let Some(starter) = &self.starter {
            // The receiver lives as long as this sender.
            let _ = starter.send(reads);
        }
    }

    pub fn give(&self, id: u64, work: Work) {
        self.shared.give(id, work);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.closed = true;
        waiting.work.clear();
        waiting.questions.clear();
        self.shared.added.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(self: &Arc<Self>, id: u64, work: Work) {
        let mut waiting = self.lock();
        let is_question = matches!(work, Work::Extents { .. });
        if is_question { &mut waiting.questions } else { &mut waiting.work }.push_back((id, work));
        if waiting.work.len() + usize::from(is_question) > waiting.idle && waiting.threads < self.threads_max {
            // If the system has no more threads, the existing ones do it.
            let _ = self.add_thread(&mut waiting);
        }
        self.added.notify_one();
    }

    fn add_thread(self: &Arc<Self>, waiting: &mut Waiting) -> io::Result<()> {
        let own = self.clone();
        thread::Builder::new().name(format!("serve-{}", self.export)).spawn(move || {
            while let Some((id, mut work)) = own.next() {
                let result = work.carry_out(&*own.backing);
                if matches!(work, Work::Extents { .. }) {
                    own.lock().looking -= 1;
                }
                (own.end)(Completed { id, buffers: work.into_buffers(), result });
            }
        })?;
        waiting.threads += 1;
        Ok(())
    }

    /// Creates the thread that starts reads. It starts all reads queued at the time together.
    fn start_starter(self: &Arc<Self>) -> io::Result<mpsc::Sender<Vec<StartedRead>>> {
        let (sender, receiver) = mpsc::channel();
        let own = self.clone();
        thread::Builder::new().name(format!("serve-{}-reads", self.export)).spawn(move || {
            while let Ok(mut reads) = receiver.recv() {
                receiver.try_iter().for_each(|more: Vec<StartedRead>| reads.extend(more));
                for StartedRead { id, offset, buffers, .. } in own.backing.start_reads(reads) {
                    own.give(id, Work::Read { offset, buffers, demand: true });
                }
            }
        })?;
        Ok(sender)
    }

    /// The next work; `None` when no more will come.
    fn next(&self) -> Option<(u64, Work)> {
        let mut guard = self.lock();
        loop {
            if guard.closed {
                return None;
            }
            if let Some(work) = guard.work.pop_front() {
                return Some(work);
            }
            if guard.looking < LOOKING_MAX {
                if let Some(question) = guard.questions.pop_front() {
                    guard.looking += 1;
                    return Some(question);
                }
            }
            guard.idle += 1;
            guard = self.added.wait(guard).unwrap_or_else(PoisonError::into_inner);
            guard.idle -= 1;
        }
    }
}

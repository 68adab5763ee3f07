//! The threads of one backing. Only they call what may take its time: everything else hands them work, and never waits.

use std::collections::VecDeque;
use std::sync::{mpsc, Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use super::{Backing, StartedRead};
use crate::work::{Completed, Work};

/// Threads that look for extents at a time: that takes processor time and no device, of which the thread that serves needs its share.
const LOOKING_MAX: u32 = 1;

/// Hears of the end of work.
pub type End = Arc<dyn Fn(Completed) + Send + Sync>;

/// Work that waits for a thread, and the threads.
#[derive(Default)]
struct Waiting {
    work: VecDeque<(u64, Work)>,
    /// Questions for extents, and threads that look for some.
    questions: VecDeque<(u64, Work)>,
    looking: u32,
    threads: u32,
    /// Threads that wait for work.
    idle: usize,
    /// There will be no more.
    closed: bool,
}

/// What the threads share. The lock is held for as long as it takes to add work or to take it.
struct Shared {
    waiting: Mutex<Waiting>,
    added: Condvar,
    backing: Arc<dyn Backing>,
    threads_max: u32,
    export: usize,
    end: End,
}

/// The threads. They end when this is dropped and they have done what they are doing.
pub struct Workers {
    shared: Arc<Shared>,
    /// To the thread that starts reads, where the backing does.
    starter: Option<mpsc::Sender<Vec<StartedRead>>>,
}

impl Workers {
    /// At most `threads_max` for `backing`, which stands behind export number `export`, and one more if it starts reads. `end` is called at each end.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn try_new(backing: &Arc<dyn Backing>, threads_max: u32, export: usize, end: End) -> io::Result<Self> {
        let (waiting, added, backing) = (Mutex::default(), Condvar::new(), backing.clone());
        let starts = backing.about().starts_reads;
        let shared = Arc::new(Shared { waiting, added, backing, threads_max, export, end });
        shared.add_thread(&mut shared.lock())?;
        let starter = starts.then(|| shared.start_starter()).transpose()?;
        Ok(Self { shared, starter })
    }

    /// Whether reads go to [`Workers::start`].
    pub fn starts_reads(&self) -> bool {
        self.starter.is_some()
    }

    /// Has the backing start these reads together.
    pub fn start(&self, reads: Vec<StartedRead>) {
        if let Some(starter) = &self.starter {
            // It lives as long as this does.
            let _ = starter.send(reads);
        }
    }

    /// Gives `work` to a thread.
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
            // Where the system has no more, those that there are do it.
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

    /// The thread that starts reads. What waits when it comes to it is started together.
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

    /// The next work; `None` when there will be no more.
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

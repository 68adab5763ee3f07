//! Threads that carry out work on backings, and a queue of what has ended. One that is stuck holds up no other.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Backing;
use crate::work::{Completed, Work};

/// Ends of work, by export.
pub type Done = Mutex<Vec<(usize, Completed)>>;

/// Work that waits for a thread; `None` when there will be no more.
type Waiting = Mutex<Option<VecDeque<(u64, Work)>>>;

/// The threads of one export. They end when it is dropped and they have done what they are doing.
pub struct Pool {
    shared: Arc<(Waiting, Condvar)>,
    backing: Arc<dyn Backing>,
    /// Hears of ends.
    end: Arc<dyn Fn(Completed) + Send + Sync>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// `threads` for `backing`, which stands behind export number `export`. `wake` is called after each end.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn try_new(
        backing: &Arc<dyn Backing>,
        threads: u32,
        export: usize,
        done: &Arc<Done>,
        wake: &Arc<dyn Fn() + Send + Sync>,
    ) -> std::io::Result<Self> {
        let shared: Arc<(Waiting, Condvar)> = Arc::new((Mutex::new(Some(VecDeque::new())), Condvar::new()));
        let (done, wake) = (done.clone(), wake.clone());
        let end = Arc::new(move |completed| {
            lock(&done).push((export, completed));
            wake();
        });
        let pool = Self { shared, backing: backing.clone(), end };
        for _ in 0..threads {
            let (shared, backing, end) = (pool.shared.clone(), backing.clone(), pool.end.clone());
            thread::Builder::new().name(format!("serve-{export}")).spawn(move || {
                while let Some((id, mut work)) = next(&shared) {
                    let result = backing.carry_out(&mut work);
                    let buffers = match work {
                        Work::Read { buffers, .. } => buffers,
                        Work::Store { buffer, .. } => vec![buffer],
                        _ => Vec::new(),
                    };
                    end(Completed { id, buffers, result });
                }
            })?;
        }
        Ok(pool)
    }

    /// Has `work` done under this name: by a thread, unless the backing needs none for a read. Gives its end where it is done already.
    pub fn start(&self, id: u64, mut work: Work) -> Option<Completed> {
        if let Work::Read { offset, mut buffers, demand } = work {
            if self.backing.read_at_once(offset, &mut buffers) {
                return Some(Completed { id, buffers, result: Ok(Vec::new()) });
            }
            let end = self.end.clone();
            let ended = move |buffers, result: std::io::Result<()>| {
                end(Completed { id, buffers, result: result.map(|()| Vec::new()) });
            };
            let (buffers, _) = self.backing.start_read(offset, buffers, Box::new(ended))?;
            work = Work::Read { offset, buffers, demand };
        }
        if let Some(waiting) = lock(&self.shared.0).as_mut() {
            waiting.push_back((id, work));
            self.shared.1.notify_one();
        }
        None
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        *lock(&self.shared.0) = None;
        self.shared.1.notify_all();
    }
}

/// The next work; `None` when there will be no more.
fn next((waiting, added): &(Waiting, Condvar)) -> Option<(u64, Work)> {
    let mut guard = lock(waiting);
    loop {
        match guard.as_mut()?.pop_front() {
            Some(work) => return Some(work),
            None => guard = added.wait(guard).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

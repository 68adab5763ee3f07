//! What carries out the work of one export: io_uring, as far as its backing is files and the system has it, and threads. One read that is stuck
//! holds up no other.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use super::ringed::Ringed;
use super::Backing;
use crate::work::{Completed, Work};

/// Ends of work, by export.
pub type Done = Mutex<Vec<(usize, Completed)>>;

/// Work that waits for a thread, and the threads.
#[derive(Default)]
struct Waiting {
    work: VecDeque<(u64, Work)>,
    threads: u32,
    /// Threads that wait for work.
    idle: usize,
    /// There will be no more.
    closed: bool,
}

type Shared = Arc<(Mutex<Waiting>, Condvar)>;

/// What carries out the work of one export. Its threads end when it is dropped and they have done what they are doing.
pub struct Pool {
    shared: Shared,
    threads_max: u32,
    export: usize,
    backing: Arc<dyn Backing>,
    ringed: Option<Ringed>,
    /// Hears of ends.
    end: Arc<dyn Fn(Completed) + Send + Sync>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// For `reads_max` reads of `backing` at a time, which stands behind export number `export`, and `threads_more` other things. `wake` is called after each
    /// end that a thread or the backing reports.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn try_new(
        backing: &Arc<dyn Backing>,
        (reads_max, threads_more): (u32, u32),
        export: usize,
        done: &Arc<Done>,
        wake: &Arc<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        let (done, wake) = (done.clone(), wake.clone());
        let end = Arc::new(move |completed| {
            lock(&done).push((export, completed));
            wake();
        });
        let ringed = if backing.ring_read(0, &[]).is_some() { Ringed::try_new(reads_max) } else { None };
        let threads_max = reads_max + threads_more;
        let pool = Self { shared: Shared::default(), threads_max, export, backing: backing.clone(), ringed, end };
        pool.add_thread(&mut lock(&pool.shared.0))?;
        Ok(pool)
    }

    /// Has `work` done under this name. Gives its end where it is done already. A read that io_uring or the backing makes may not start before
    /// [`Pool::ended`] is called.
    pub fn start(&mut self, id: u64, mut work: Work) -> Option<Completed> {
        if let Work::Read { offset, mut buffers, demand } = work {
            let by_ring = self.ringed.as_ref().and_then(|_| self.backing.ring_read(offset, &buffers));
            // A read through the page cache takes what that has by itself.
            let looks = by_ring.as_ref().is_none_or(|read| read.tries_page_cache);
            if looks && self.backing.read_at_once(offset, &mut buffers) {
                return Some(Completed { id, buffers, result: Ok(Vec::new()) });
            }
            if let (Some(ringed), Some(read)) = (&mut self.ringed, by_ring) {
                match ringed.push(id, &read, offset, buffers) {
                    Ok(()) => return None,
                    Err(back) => buffers = back,
                }
            }
            let end = self.end.clone();
            let ended = move |buffers, result: io::Result<()>| {
                end(Completed { id, buffers, result: result.map(|()| Vec::new()) });
            };
            let (buffers, _) = self.backing.start_read(offset, buffers, Box::new(ended))?;
            work = Work::Read { offset, buffers, demand };
        }
        self.give(id, work);
        None
    }

    /// Starts the reads that io_uring or the backing makes, and gives those of io_uring that have ended to `into`.
    pub fn ended(&mut self, mut into: impl FnMut(Completed)) {
        self.backing.submit_reads();
        let Some(ringed) = &mut self.ringed else { return };
        ringed.submit();
        let mut again = Vec::new();
        while let Some(ended) = ringed.take() {
            let (id, buffers) = (ended.id, ended.buffers);
            match ended.result {
                Some(result) => into(Completed { id, buffers, result: result.map(|()| Vec::new()) }),
                None => again.push((id, Work::Read { offset: ended.offset, buffers, demand: true })),
            }
        }
        again.into_iter().for_each(|(id, work)| self.give(id, work));
    }

    /// What is readable when reads of io_uring have ended.
    pub fn ring_fd(&self) -> Option<RawFd> {
        self.ringed.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Gives `work` to a thread.
    fn give(&self, id: u64, work: Work) {
        let mut waiting = lock(&self.shared.0);
        waiting.work.push_back((id, work));
        if waiting.work.len() > waiting.idle && waiting.threads < self.threads_max {
            // Where the system has no more, those that there are do it.
            let _ = self.add_thread(&mut waiting);
        }
        self.shared.1.notify_one();
    }

    fn add_thread(&self, waiting: &mut Waiting) -> io::Result<()> {
        let (shared, backing, end) = (self.shared.clone(), self.backing.clone(), self.end.clone());
        thread::Builder::new().name(format!("serve-{}", self.export)).spawn(move || {
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
        waiting.threads += 1;
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut waiting = lock(&self.shared.0);
        waiting.closed = true;
        waiting.work.clear();
        self.shared.1.notify_all();
    }
}

/// The next work; `None` when there will be no more.
fn next((waiting, added): &(Mutex<Waiting>, Condvar)) -> Option<(u64, Work)> {
    let mut guard = lock(waiting);
    loop {
        if guard.closed {
            return None;
        }
        if let Some(work) = guard.work.pop_front() {
            return Some(work);
        }
        guard.idle += 1;
        guard = added.wait(guard).unwrap_or_else(PoisonError::into_inner);
        guard.idle -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::backing::FileBacking;
    use crate::buffers::Buffers;

    #[test]
    fn a_file_is_read_with_io_uring_and_without() {
        let path = std::env::temp_dir().join(format!("headstart-serve-pool-{}", std::process::id()));
        let bytes: Vec<u8> = (0..400_001_u32).map(|at| (at / 5 % 253) as u8).collect();
        std::fs::write(&path, &bytes).expect("a temporary file");
        let backing: Arc<dyn Backing> = Arc::new(FileBacking::open(&path, false, false).expect("it can be opened"));
        std::fs::remove_file(&path).expect("it is there");
        for with_ring in [true, false] {
            let (done, wake): (Arc<Done>, Arc<dyn Fn() + Send + Sync>) = (Arc::default(), Arc::new(|| ()));
            let mut pool = Pool::try_new(&backing, (8, 1), 0, &done, &wake).expect("there are threads");
            if !with_ring {
                pool.ringed = None;
            }
            let mut pages = Buffers::new(4096);
            // One page, several, so many that they pass the page cache, and what goes beyond the end.
            let reads = [(3, 1), (10, 7), (40, 50), (96, 4)];
            let mut ended = BTreeMap::new();
            for (id, (first, count)) in (0..).zip(reads) {
                let work = Work::Read { offset: first * 4096, buffers: pages.take_run(count), demand: true };
                ended.extend(pool.start(id, work).map(|completed| (id, completed)));
            }
            while ended.len() < reads.len() {
                pool.ended(|completed| drop(ended.insert(completed.id, completed)));
                ended.extend(lock(&done).drain(..).map(|(_, completed)| (completed.id, completed)));
            }
            for (id, (first, count)) in (0..).zip(reads) {
                let mut expected = bytes[first as usize * 4096..].to_vec();
                expected.resize(count * 4096, 0);
                let Completed { buffers, result, .. } = &ended[&id];
                assert!(result.is_ok() && buffers.concat() == expected, "{id} {with_ring}");
            }
        }
    }
}

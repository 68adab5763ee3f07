//! Carries out the work of one export: on io_uring if the backing is made of files and the system supports it, and on
//! threads. A stuck read blocks neither other reads nor the calling thread.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use super::ringed::Ringed;
use super::workers::{End, Workers};
use super::{Backing, DeviceState, NonBlockingRead, StartedRead};
use crate::work::{Completed, Work};

/// Completed work, by export.
pub type Done = Mutex<Vec<(usize, Completed)>>;

pub struct Pool {
    /// Only non-blocking methods are called here.
    backing: Arc<dyn Backing>,
    /// Reads done at once take time on this thread.
    pub reads_at_once: bool,
    /// The state of an emulated device.
    pub device: Option<DeviceState>,
    workers: Workers,
    ringed: Option<Ringed>,
    /// Reads of this instant that the backing will start.
    starting: Vec<StartedRead>,
    end: End,
}

impl Pool {
    /// Serves up to `reads_max` concurrent reads of `backing` and `threads_more` other operations, for export number
    /// `export`. `wake` is called after each completion that a thread or the backing reports.
    ///
    /// # Errors
    /// The system cannot create more threads.
    pub fn try_new(
        backing: &Arc<dyn Backing>,
        (reads_max, threads_more): (u32, u32),
        export: usize,
        done: &Arc<Done>,
        wake: &Arc<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        let (done, wake) = (done.clone(), wake.clone());
        let end: End = Arc::new(move |completed| {
            done.lock().unwrap_or_else(PoisonError::into_inner).push((export, completed));
            wake();
        });
        let workers = Workers::try_new(backing, reads_max + threads_more, export, end.clone())?;
        let about = backing.about();
        let takes_ring = matches!(backing.try_read(0, &mut [], true), NonBlockingRead::Ring(_));
        Ok(Self {
            backing: backing.clone(),
            reads_at_once: about.reads_at_once,
            device: about.device,
            workers,
            ringed: if takes_ring { Ringed::try_new(reads_max) } else { None },
            starting: Vec::new(),
            end,
        })
    }

    /// Starts `work` under this id. Returns the completion if it is done already. Reads through io_uring or the backing
    /// may only start when [`Pool::ended`] is called.
    pub fn start(&mut self, id: u64, mut work: Work) -> Option<Completed> {
        if let Work::Read { offset, mut buffers, demand } = work {
            match (self.backing.try_read(offset, &mut buffers, self.ringed.is_some()), &mut self.ringed) {
                (NonBlockingRead::Done, _) => return Some(Completed { id, buffers, result: Ok(Vec::new()) }),
                (NonBlockingRead::Ring(file), Some(ringed)) => match ringed.push(id, &file, offset, buffers) {
                    Ok(()) => return None,
                    Err(back) => buffers = back,
                },
                _ => {}
            }
            if self.workers.starts_reads() {
                let end = self.end.clone();
                let ended = Box::new(move |buffers, result: io::Result<()>| {
                    end(Completed { id, buffers, result: result.map(|()| Vec::new()) });
                });
                self.starting.push(StartedRead { id, offset, buffers, ended });
                return None;
            }
            work = Work::Read { offset, buffers, demand };
        }
        self.workers.give(id, work);
        None
    }

    /// Starts the reads for io_uring or the backing, and passes completed reads of io_uring to `into`.
    pub fn ended(&mut self, mut into: impl FnMut(Completed)) {
        if !self.starting.is_empty() {
            self.workers.start(std::mem::take(&mut self.starting));
        }
        let Some(ringed) = &mut self.ringed else { return };
        ringed.submit();
        while let Some(ended) = ringed.take() {
            let (id, buffers) = (ended.id, ended.buffers);
            match ended.result {
                Some(result) => into(Completed { id, buffers, result: result.map(|()| Vec::new()) }),
                None => self.workers.give(id, Work::Read { offset: ended.offset, buffers, demand: true }),
            }
        }
    }

    /// Becomes readable when a read of io_uring has completed.
    pub fn ring_fd(&self) -> Option<RawFd> {
        self.ringed.as_ref().map(AsRawFd::as_raw_fd)
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
        let backing: Arc<dyn Backing> =
            Arc::new(FileBacking::open(&path, false, false, false).expect("it can be opened"));
        std::fs::remove_file(&path).expect("it is there");
        for with_ring in [true, false] {
            let (done, wake): (Arc<Done>, Arc<dyn Fn() + Send + Sync>) = (Arc::default(), Arc::new(|| ()));
            let mut pool = Pool::try_new(&backing, (8, 1), 0, &done, &wake).expect("there are threads");
            if !with_ring {
                pool.ringed = None;
            }
            let mut pages = Buffers::new(4096);
            // One page, several, enough to bypass the page cache, and a range that extends beyond the end.
            let reads = [(3, 1), (10, 7), (40, 50), (96, 4)];
            let mut ended = BTreeMap::new();
            for (id, (first, count)) in (0..).zip(reads) {
                let work = Work::Read { offset: first * 4096, buffers: pages.take_run(count), demand: true };
                ended.extend(pool.start(id, work).map(|completed| (id, completed)));
            }
            while ended.len() < reads.len() {
                pool.ended(|completed| drop(ended.insert(completed.id, completed)));
                ended.extend(done.lock().unwrap().drain(..).map(|(_, completed)| (completed.id, completed)));
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

//! Closed systems: a fixed number of clients, each of which issues its next request when its last one is done.
//!
//! The workloads of C. Li, K. Shen and A. E. Papathanasiou, "Competitive prefetching for concurrent sequential I/O",
//! EuroSys 2007, section 6.1. There a server spawns a thread, the handler, for each request, and a load generator keeps
//! the number of concurrent requests constant. Here a client is one process (`pid`) that runs one handler after
//! another, so a scheduler with per-process state knows a client for longer than the paper's scheduler knew a thread.
//! Use `processes = "per-pid"` to run the clients concurrently, and `issue = "whole"` to issue a read of several blocks
//! as one request. Records are generated round by round, one from each client that is not done, so that they alternate
//! in a merged order too.
//!
//! Common keys: `concurrency`, the number of clients; `requests`, of all clients together, assigned round-robin;
//! `compute`, the think time after each read or write, in addition to the workload's own pauses. Request n is drawn
//! only from the seed and n: the requests are the same at every concurrency. Clients end at different times, which
//! matters little with ten or more requests each.
//!
//! Cost: constant per record, a few draws per request. Memory: the rest of one request per client; the file table is
//! made on demand.

mod file_tools;
mod index_search;
mod kernel_build;
mod media_server;
mod microbenchmarks;
mod stage;
mod tpc_h;

pub(super) use file_tools::{CP, DIFF};
pub(super) use index_search::WORKLOAD as INDEX_SEARCH;
pub(super) use kernel_build::WORKLOAD as KERNEL_BUILD;
pub(super) use media_server::WORKLOAD as MEDIA_SERVER;
pub(super) use microbenchmarks::workload as microbenchmark;
pub(super) use tpc_h::WORKLOAD as TPC_H;

use std::collections::VecDeque;
use std::sync::OnceLock;

use headstart_types::{stream_seed, within_range, KeyError};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use stage::{FileAccesses, Stage};

use super::{Compute, ComputeSampler, GeneratorContext};
use crate::{Carries, FileEntry, Record, RecordReader, TraceError, BATCH};

/// The description of the workloads.
const SOURCE: &str = "Li, Shen and Papathanasiou, EuroSys 2007, section 6.1";
/// Bounds the memory of the file table.
const FILES_MAX: u64 = 1 << 24;
/// The same limit as for the patterns of parallel programs.
const CLIENTS_MAX: u64 = 1 << 20;

/// The requests that clients issue.
trait Server: Send + Sync {
    /// All files, in placement order.
    fn files(&self) -> Vec<FileEntry>;

    /// The stages of request `number` (from 0), in order; random choices are drawn from `rng`.
    fn request(&self, number: u64, rng: &mut ChaCha8Rng) -> Vec<Stage>;

    /// The stages of a client after its last request.
    fn finish(&self, _client: u64) -> Vec<Stage> {
        Vec::new()
    }

    /// Whether some requests write.
    fn writes(&self) -> bool {
        false
    }
}

/// The clients.
#[derive(Debug, Clone, Copy)]
struct System {
    seed: u64,
    concurrency: u64,
    /// Requests of all clients together.
    requests: u64,
    compute: Compute,
}

impl System {
    /// From the common keys.
    fn new(concurrency: u64, requests: u64, compute: Compute, context: &GeneratorContext) -> Result<Self, KeyError> {
        within_range("concurrency", concurrency, 1..=CLIENTS_MAX.min(requests))?;
        Ok(Self { seed: context.seed, concurrency, requests, compute })
    }

    /// The numbers of a client's requests.
    fn requests_of(&self, client: u64) -> impl Iterator<Item = u64> {
        (client..self.requests).step_by(self.concurrency as usize)
    }

    /// The random stream of request `number`.
    fn draws(&self, number: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(stream_seed(self.seed, "request", number))
    }

    /// Starts `server`'s records.
    fn boxed<S: Server + 'static>(self, server: S) -> Box<dyn RecordReader> {
        let client = |number| Client {
            next: number,
            finished: false,
            stages: VecDeque::new(),
            rng: self.draws(number),
            compute: self.compute.sampler(self.seed, number),
        };
        let clients = (0..self.concurrency).map(client).collect();
        let order = (0..self.concurrency as u32).collect();
        Box::new(Closed { server, system: self, files: OnceLock::new(), clients, order, done: 0 })
    }
}

/// A client and the rest of its request.
struct Client {
    /// The number of its next request.
    next: u64,
    /// Whether it has started its final stages.
    finished: bool,
    stages: VecDeque<Stage>,
    /// The random stream of its request.
    rng: ChaCha8Rng,
    compute: ComputeSampler,
}

/// A server and its clients as a stream of records.
struct Closed<S> {
    server: S,
    system: System,
    files: OnceLock<Vec<FileEntry>>,
    clients: Vec<Client>,
    /// The clients that are not done; the first one is next.
    order: VecDeque<u32>,
    /// Requests begun, excluding the final stages.
    done: u64,
}

impl<S: Server> Closed<S> {
    /// The next record of client `number`; `None` when it is done.
    fn next_of(&mut self, number: u32) -> Option<Record> {
        let client = &mut self.clients[number as usize];
        loop {
            if let Some(stage) = client.stages.front_mut() {
                if let Some(mut record) = stage.next(&mut client.rng) {
                    record.pid = number;
                    record.think += client.compute.next_think();
                    return Some(record);
                }
                client.stages.pop_front();
            } else if client.next < self.system.requests {
                client.rng = self.system.draws(client.next);
                client.stages = self.server.request(client.next, &mut client.rng).into();
                client.next += self.system.concurrency;
                self.done += 1;
            } else if !client.finished {
                client.finished = true;
                client.stages = self.server.finish(number.into()).into();
            } else {
                return None;
            }
        }
    }
}

impl<S: Server> RecordReader for Closed<S> {
    fn carries(&self) -> Carries {
        let writes = self.server.writes();
        Carries { think: true, processes: true, files: true, addresses: true, writes, ..Carries::NOTHING }
    }

    fn files(&self) -> &[FileEntry] {
        self.files.get_or_init(|| self.server.files())
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        while into.len() < BATCH {
            let Some(number) = self.order.pop_front() else { break };
            if let Some(record) = self.next_of(number) {
                into.push(record);
                self.order.push_back(number);
            }
        }
        Ok(!into.is_empty())
    }

    fn progress(&self) -> (u64, u64) {
        (self.done, self.system.requests)
    }
}

/// Rows of a file table: files from number `first` on, with these names and sizes.
fn entries(first: u32, files: impl IntoIterator<Item = (String, u64)>) -> Vec<FileEntry> {
    let entry = |(file, (path, size_bytes))| FileEntry { file, size_bytes, path };
    (first..).zip(files).map(entry).collect()
}

/// Inserts `apart` bytes of other files, which are never read, between each two files.
fn spread(files: Vec<FileEntry>, apart: u64) -> Vec<FileEntry> {
    let count = files.len() as u32;
    let other = |file: u32| FileEntry { file: count + file, size_bytes: apart, path: format!("other{file}") };
    let each = files.into_iter().zip(0..).flat_map(|(entry, file)| {
        let before = (apart > 0 && file > 0).then(|| other(file));
        before.into_iter().chain([entry])
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Request n reads n + 1 bytes of file n, one by one; clients finish with the first byte of file 9.
    struct Counting;

    impl Server for Counting {
        fn files(&self) -> Vec<FileEntry> {
            entries(0, (0..10).map(|file| (format!("f{file}"), file + 1)))
        }

        fn request(&self, number: u64, _rng: &mut ChaCha8Rng) -> Vec<Stage> {
            vec![Stage::default(), Stage::new([FileAccesses::read(number as u32, (0, number + 1), 1)])]
        }

        fn finish(&self, _client: u64) -> Vec<Stage> {
            vec![Stage::new([FileAccesses::read(9, (0, 1), 1)])]
        }
    }

    #[test]
    fn clients_take_turns_and_each_begins_its_next_request_when_its_last_is_done() {
        let compute = Compute::Constant(headstart_types::Nanos(3));
        let mut reader = System { seed: 1, concurrency: 2, requests: 3, compute }.boxed(Counting);
        let mut records = Vec::new();
        assert!(reader.read(&mut records).expect("generated"));
        let seen: Vec<_> = records.iter().map(|record| (record.pid, record.file, record.offset)).collect();
        assert_eq!(seen, [(0, 0, 0), (1, 1, 0), (0, 2, 0), (1, 1, 1), (0, 2, 1), (1, 9, 0), (0, 2, 2), (0, 9, 0)]);
        assert!(records.iter().all(|record| record.think.0 == 3));
        assert_eq!((reader.progress(), reader.files().len()), ((3, 3), 10));
        assert!(!reader.read(&mut records).expect("the end") && records.is_empty());
    }
}

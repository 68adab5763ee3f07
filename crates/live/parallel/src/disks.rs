//! In-memory disks with artificial delays (kotz-ellis, section 5.1): each is a thread that serves its requests from
//! memory, first come first served. Each request ends a constant time after the previous one, or after its arrival.
//!
//! The end of a request is computed on arrival, "a simple event scheduling operation" (section 3), so that a thread
//! that wakes up late does not delay later requests.
//!
//! A disk holds a pattern derived from the block numbers, so that a wrong block is detected ([`holds`]).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headstart_engine::parallel::DiskTimes;
use headstart_host::mailbox::Request;
use headstart_types::{Block, Nanos};

/// A block's bytes on their way from the disk through the cache to the processes.
pub(super) type Data = Arc<[u8]>;

/// A request in the queue.
#[derive(Debug)]
struct Waiting {
    request: Request,
    came: Nanos,
    start: Nanos,
    done_at: Nanos,
}

#[derive(Debug, Default)]
struct Queue {
    orders: VecDeque<Waiting>,
    free_at: Nanos,
    times: DiskTimes,
}

#[derive(Debug)]
pub(super) struct Disk {
    /// The disk's blocks, one after another.
    memory: Vec<u8>,
    block_bytes: usize,
    /// By block of the file: its index in `memory`, in blocks; meaningless if another disk has it.
    slot_of: Arc<[u32]>,
    service: Nanos,
    queue: Mutex<Queue>,
}

impl Disk {
    /// A disk that holds `blocks`. `slot_of` gives the index of each block of the file on its disk.
    pub fn new(blocks: &[Block], slot_of: Arc<[u32]>, block_bytes: usize, service: Nanos) -> Self {
        let memory = blocks.iter().flat_map(|block| pattern(*block, block_bytes)).collect();
        Self { memory, block_bytes, slot_of, service, queue: Mutex::default() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request.
    pub fn order(&self, now: Nanos, request: Request) {
        let mut queue = self.queue();
        let start = queue.free_at.max(now);
        let done_at = start + self.service;
        queue.free_at = done_at;
        queue.orders.push_back(Waiting { request, came: now, start, done_at });
    }

    /// When the first request ends.
    pub fn next_at(&self) -> Option<Nanos> {
        self.queue().orders.front().map(|order| order.done_at)
    }

    /// Removes the first request, which has ended, and returns it with its data.
    ///
    /// # Panics
    /// The queue is empty: a bug.
    pub fn take(&self, now: Nanos) -> (Request, Vec<Data>) {
        let mut queue = self.queue();
        let order = queue.orders.pop_front().expect("a disk is done with what it was given");
        queue.times.requests += 1;
        queue.times.blocks += order.request.blocks.len() as u64;
        queue.times.service += self.service;
        queue.times.queue += order.start - order.came;
        queue.times.response += now - order.came;
        drop(queue);
        let data = order.request.blocks.iter().map(|block| self.read(*block)).collect();
        (order.request, data)
    }

    fn read(&self, block: Block) -> Data {
        let Some(slot) = self.slot_of.get(block.index()) else {
            // A block outside all strings, requested by a read-ahead.
            return pattern(block, self.block_bytes).collect();
        };
        let begin = *slot as usize * self.block_bytes;
        self.memory[begin..begin + self.block_bytes].into()
    }

    /// Statistics up to `end`, including the time spent on the current request.
    pub fn times(&self, end: Nanos) -> DiskTimes {
        let queue = self.queue();
        let under_way = queue.orders.front().map_or(Nanos::ZERO, |first| end.saturating_sub(first.start));
        DiskTimes { busy: queue.times.service + under_way, ..queue.times }
    }
}

/// The 8 bytes at `word` of a block: no two blocks of a run share any of them, nor do two words of a block.
fn word(block: Block, word: usize) -> [u8; 8] {
    // Odd, so that the product is a permutation of the 64-bit numbers.
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    (u64::from(block.0) << 32 | word as u64).wrapping_mul(MIX).to_le_bytes()
}

fn pattern(block: Block, bytes: usize) -> impl Iterator<Item = u8> {
    (0..bytes.div_ceil(8)).flat_map(move |at| word(block, at)).take(bytes)
}

/// Whether `data` is the content of `block`.
pub(super) fn holds(data: &[u8], block: Block) -> bool {
    data.chunks(8).enumerate().all(|(at, chunk)| *chunk == word(block, at)[..chunk.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        // Blocks 0, 2, 4 of a file whose odd blocks are on another disk.
        Disk::new(&[0, 2, 4].map(Block), [0, 0, 1, 1, 2].into(), 20, Nanos(30))
    }

    #[test]
    fn first_come_first_served_each_in_its_time() {
        let disk = disk();
        let one = |block| Request {
            slot: 0,
            disk: headstart_types::Disk(0),
            kind: headstart_engine::Kind::Demand,
            blocks: vec![Block(block)],
        };
        disk.order(Nanos(5), one(4));
        disk.order(Nanos(10), one(0));
        assert_eq!(disk.next_at(), Some(Nanos(35)));
        // The thread is late, which does not delay the next request.
        assert_eq!(disk.take(Nanos(37)).0, one(4));
        assert_eq!(disk.next_at(), Some(Nanos(65)));
        assert_eq!(disk.take(Nanos(65)).0, one(0));
        assert_eq!(disk.next_at(), None);
        disk.order(Nanos(100), one(2));
        assert_eq!(disk.next_at(), Some(Nanos(130)));
        let times = DiskTimes {
            requests: 2,
            blocks: 2,
            service: Nanos(60),
            busy: Nanos(60),
            queue: Nanos(25),
            response: Nanos(32 + 55),
        };
        assert_eq!(disk.times(Nanos(100)), times);
        // The third is in service.
        assert_eq!(disk.times(Nanos(110)), DiskTimes { busy: Nanos(70), ..times });
    }

    #[test]
    fn a_wrong_block_is_noticed() {
        let disk = disk();
        let data = disk.read(Block(4));
        assert_eq!(data.len(), 20);
        assert!(holds(&data, Block(4)));
        assert!(!holds(&data, Block(2)) && !holds(&data, Block(5)));
        let mut torn = data.to_vec();
        torn[19] ^= 1;
        assert!(!holds(&torn, Block(4)), "the last byte counts");
    }
}

//! In-memory disks with artificial delays (kotz-ellis, section 5.1): each is a thread that serves its orders from
//! memory, first come first served, every one a constant time after the one before it or after it came.
//!
//! When an order will be done is computed as it comes, "a simple event scheduling operation" (section 3), so that a
//! thread that the machine wakes late does not put off what comes after.
//!
//! What a disk holds is a pattern made of the block's number, so that a wrong block is noticed ([`holds`]).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headstart_engine::parallel::DiskTimes;
use headstart_host::mailbox::Request;
use headstart_types::{Block, Nanos};

/// A block's bytes as they go from the disk through the cache to the processes.
pub(super) type Data = Arc<[u8]>;

/// A request that is not done.
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

/// One disk.
#[derive(Debug)]
pub(super) struct Disk {
    /// Its blocks one after another.
    memory: Vec<u8>,
    block_bytes: usize,
    /// By block of the file: where in `memory` it is, in blocks, or nothing if another disk has it.
    slot_of: Arc<[u32]>,
    service: Nanos,
    queue: Mutex<Queue>,
}

impl Disk {
    /// A disk that holds `blocks`. `slot_of` says of each block of the file which of its disk's blocks it is.
    pub fn new(blocks: &[Block], slot_of: Arc<[u32]>, block_bytes: usize, service: Nanos) -> Self {
        let memory = blocks.iter().flat_map(|block| pattern(*block, block_bytes)).collect();
        Self { memory, block_bytes, slot_of, service, queue: Mutex::default() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request comes.
    pub fn order(&self, now: Nanos, request: Request) {
        let mut queue = self.queue();
        let start = queue.free_at.max(now);
        let done_at = start + self.service;
        queue.free_at = done_at;
        queue.orders.push_back(Waiting { request, came: now, start, done_at });
    }

    /// When the first request will be done.
    pub fn next_at(&self) -> Option<Nanos> {
        self.queue().orders.front().map(|order| order.done_at)
    }

    /// The first request is done: with what is in its blocks.
    ///
    /// # Panics
    /// There is none: a bug.
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
            // A block that nobody was going to read, and a read-ahead has named.
            return pattern(block, self.block_bytes).collect();
        };
        let begin = *slot as usize * self.block_bytes;
        self.memory[begin..begin + self.block_bytes].into()
    }

    /// What it has done by `end`. It has worked on the request that it is at, too.
    pub fn times(&self, end: Nanos) -> DiskTimes {
        let queue = self.queue();
        let under_way = queue.orders.front().map_or(Nanos::ZERO, |first| end.saturating_sub(first.start));
        DiskTimes { busy: queue.times.service + under_way, ..queue.times }
    }
}

/// The 8 bytes at `word` of a block: no two blocks of a run agree in any of them, nor do two words of a block.
fn word(block: Block, word: usize) -> [u8; 8] {
    // Odd, so that the product is a permutation of the 64-bit numbers.
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    (u64::from(block.0) << 32 | word as u64).wrapping_mul(MIX).to_le_bytes()
}

fn pattern(block: Block, bytes: usize) -> impl Iterator<Item = u8> {
    (0..bytes.div_ceil(8)).flat_map(move |at| word(block, at)).take(bytes)
}

/// Whether `data` is what `block` holds.
pub(super) fn holds(data: &[u8], block: Block) -> bool {
    data.chunks(8).enumerate().all(|(at, chunk)| *chunk == word(block, at)[..chunk.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        // Blocks 0, 2, 4 of a file whose odd blocks are elsewhere.
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
        // The thread comes late: what follows is not put off.
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
        // The third is under way.
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

//! Naive models of the hinted policies in the theory model of Kimbrel et al. (OSDI 1996, section 2.1):
//! every fetch takes F units, every reference one unit, K frames, d disks, the whole sequence known.
//!
//! They are the check on the fast policies, so they are written from the paper and the pinned readings
//! alone, share no code with the library, and prefer the obvious to the quick: each decision scans the
//! whole sequence and every block. Cost: O(n * m) per decision.
//!
//! At each integer instant: (1) completions, and a disk starts its next queued fetch; (2) decisions, with
//! the cursor at the next reference not yet served; (3) that reference is served if its block is resident,
//! and the process then computes for one unit. The design takes decisions only when a disk has completed or
//! the process comes to a reference; here they are taken at every instant, which is the same, because each
//! decision is carried on until nothing more is to be issued: `run` asks twice and checks that.
//!
//! Ties, everywhere: among victims with the same next use (never again), the lowest block number.

mod aggressive;
mod demand;
mod fixed_horizon;
mod forestall;
pub mod laws;
mod optimum;
pub mod random;
pub mod replacement;
mod reverse_aggressive;

pub use aggressive::aggressive;
pub use demand::{demand_fifo, demand_lru, demand_min};
pub use fixed_horizon::fixed_horizon;
pub use forestall::forestall;
pub use optimum::{optimum, optimum_of_one_disk};
pub use reverse_aggressive::{reverse_aggressive, Replay};

/// Position of a reference that never comes.
const NEVER: usize = usize::MAX;

/// A reference sequence and the machine that serves it. Blocks are `0..disk_of.len()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The references, in order; each computes for one unit after it is served.
    pub refs: Vec<usize>,
    /// Blocks in the cache at time 0, distinct, at most `frames`; for LRU and FIFO the first is the oldest.
    pub initial: Vec<usize>,
    /// K, the number of blocks that the cache holds; at least 1.
    pub frames: usize,
    /// The disk of each block.
    pub disk_of: Vec<usize>,
    /// The number of disks.
    pub disks: usize,
    /// F, the time of one fetch in units of compute; at least 1.
    pub fetch: u64,
}

/// What a policy achieves on an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the last reference's compute ends, in units.
    pub elapsed: u64,
    /// Fetches issued, those in flight at the end included.
    pub fetches: u64,
}

/// One fetch as it was issued.
#[derive(Clone, Copy, Debug)]
struct Issued {
    block: usize,
    victim: Option<usize>,
    /// When the disk begins to serve it: now, or when those before it in the queue are done.
    start: u64,
    /// The cursor at issue.
    cursor: usize,
}

/// The machine at one instant.
struct World {
    refs: Vec<usize>,
    frames: usize,
    fetch: u64,
    now: u64,
    /// The next reference not yet served.
    cursor: usize,
    /// Per block.
    resident: Vec<bool>,
    /// Per disk, the outstanding fetches as (block, end), the one in service first.
    queues: Vec<Vec<(usize, u64)>>,
    /// All fetches in order of issue.
    log: Vec<Issued>,
}

impl World {
    fn new(refs: Vec<usize>, initial: &[usize], frames: usize, blocks: usize, disks: usize, fetch: u64) -> World {
        assert!(frames > 0 && fetch > 0 && initial.len() <= frames);
        let mut resident = vec![false; blocks];
        for &block in initial {
            assert!(!resident[block], "initial blocks are distinct");
            resident[block] = true;
        }
        World { refs, frames, fetch, now: 0, cursor: 0, resident, queues: vec![vec![]; disks], log: vec![] }
    }

    fn in_flight(&self, block: usize) -> bool {
        self.queues.iter().flatten().any(|&(b, _)| b == block)
    }

    /// Neither resident nor outstanding: what the paper calls missing.
    fn missing(&self, block: usize) -> bool {
        !self.resident[block] && !self.in_flight(block)
    }

    /// Nothing outstanding on the disk.
    fn idle(&self, disk: usize) -> bool {
        self.queues[disk].is_empty()
    }

    fn has_free_frame(&self) -> bool {
        let resident = self.resident.iter().filter(|&&r| r).count();
        let outstanding: usize = self.queues.iter().map(Vec::len).sum();
        assert!(resident + outstanding <= self.frames);
        resident + outstanding < self.frames
    }

    /// Position of the block's next reference at or after the cursor.
    fn next_use(&self, block: usize) -> usize {
        (self.cursor..self.refs.len()).find(|&p| self.refs[p] == block).unwrap_or(NEVER)
    }

    /// The resident block, among those that `may` names, whose next reference is furthest away.
    fn furthest(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best: Option<usize> = None;
        for block in 0..self.resident.len() {
            if self.resident[block] && may(block) && best.is_none_or(|b| self.next_use(block) > self.next_use(b)) {
                best = Some(block);
            }
        }
        best
    }

    /// Position of the first reference, among those that `may` names, whose block is missing.
    fn first_missing(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        (self.cursor..self.refs.len()).find(|&p| self.missing(self.refs[p]) && may(self.refs[p]))
    }

    /// Queues a fetch on a disk. The victim, if any, is evicted at once; without one a frame must be free.
    fn issue(&mut self, disk: usize, block: usize, victim: Option<usize>) {
        assert!(self.missing(block), "block {block} is fetched while it is here");
        match victim {
            Some(v) => assert!(std::mem::take(&mut self.resident[v]), "victim {v} is not resident"),
            None => assert!(self.has_free_frame()),
        }
        let start = self.queues[disk].last().map_or(self.now, |&(_, end)| end);
        self.queues[disk].push((block, start + self.fetch));
        self.log.push(Issued { block, victim, start, cursor: self.cursor });
    }

    /// Step (1).
    fn complete(&mut self) {
        for queue in &mut self.queues {
            while queue.first().is_some_and(|&(_, end)| end == self.now) {
                self.resident[queue.remove(0).0] = true;
            }
        }
    }

    /// Step (3).
    fn serve(&mut self) {
        if self.resident[self.refs[self.cursor]] {
            self.cursor += 1;
        }
    }
}

/// Serves the whole sequence, calling `decide` in step (2).
fn run(instance: &Instance, mut decide: impl FnMut(&mut World)) -> Outcome {
    let Instance { refs, initial, frames, disk_of, disks, fetch } = instance;
    let mut world = World::new(refs.clone(), initial, *frames, disk_of.len(), *disks, *fetch);
    while world.cursor < refs.len() {
        world.complete();
        decide(&mut world);
        let issued = world.log.len();
        decide(&mut world);
        assert_eq!(issued, world.log.len(), "asked again at {}, a policy decides more: {instance:?}", world.now);
        world.serve();
        world.now += 1;
        assert!(world.now < 1_000_000, "no end of {instance:?}");
    }
    Outcome { elapsed: world.now, fetches: world.log.len() as u64 }
}

//! A lower bound on the elapsed time of a single process under any policy of prefetching and replacement.
//!
//! - The processor: think times, costs per reference, and driver work for at least as many fetches as MIN makes,
//!   since no policy fetches less often than MIN misses.
//! - Each disk: of its own blocks alone, even with all K frames to itself, MIN misses so many, and no fetch takes
//!   less than the least service time; a disk that serves several at once needs as many rounds. The last fetch must
//!   end before the last reference, so the bound holds for elapsed time.
//! - Its arm, its media or its link: every block that is referenced and not resident at the start is read from it once at
//!   least, and what lies apart takes requests or movements of its own.
//!
//! Nothing is thought about before the first block is there, nor anything fetched for what is thought after the last one.
//! The largest of them bounds from below. Cost: two runs of MIN over the references.

use std::sync::Arc;

use headstart_policy::hinted::Residents;
use headstart_policy::{BlockState, Hints, NoSpace, View};
use headstart_types::{Block, Disk, Nanos};
use serde::Serialize;

/// What is to be done, policy left open.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// The reference string.
    pub references: &'a Arc<[Block]>,
    /// K.
    pub frames: u32,
    /// Blocks resident at the start.
    pub initial: &'a [Block],
    /// The disk of each block.
    pub disk_of: &'a [Disk],
    /// Disks.
    pub disks: usize,
    /// Sum of think times and of costs per reference.
    pub processor: Nanos,
    /// Sum of think times.
    pub thinking: Nanos,
    /// Think time after the last reference.
    pub last_think: Nanos,
    /// Processor time of a fetch.
    pub driver: Nanos,
    /// No block is fetched faster than this.
    pub least_service: Nanos,
    /// The first block takes no less to come, whatever comes with it.
    pub least_first: Nanos,
    /// A disk serves at most this many fetches at once; at least 1.
    pub at_once: u32,
    /// A disk (by index) delivers those of its blocks that are referenced and not resident at the start, for so many misses, in
    /// no less time.
    pub transfer: &'a dyn Fn(usize, u64) -> Nanos,
}

/// The bound of one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DiskBound {
    /// Misses of MIN on its own references with all frames.
    pub misses: u64,
    /// Times the least service time, where a disk serves one fetch at a time; of several, as many rounds as they need.
    pub busy_ns: Nanos,
    /// Least time for the blocks that must be read, each once: of the arm between them, and at the rate of the media or the link;
    /// 0 where the time depends on neither.
    pub transfer_ns: Nanos,
}

/// The bound and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LowerBound {
    /// No policy takes less.
    pub elapsed_ns: Nanos,
    /// The processor's part.
    pub processor_ns: Nanos,
    /// Misses of MIN on all references.
    pub min_fetches: u64,
    /// Each disk's part.
    pub disks: Vec<DiskBound>,
}

/// Misses of MIN with demand fetching.
#[must_use]
pub fn min_misses(references: &Arc<[Block]>, blocks: usize, frames: u32, initial: &[Block]) -> u64 {
    let mut residents = Residents::new(Arc::new(Hints::all(references.clone())), blocks);
    let mut state = vec![BlockState::ABSENT; blocks];
    let mut free = frames - initial.len() as u32;
    for block in initial {
        state[block.index()] = BlockState::resident();
        residents.insert(*block);
    }
    let mut misses = 0;
    for (position, block) in references.iter().enumerate() {
        if !state[block.index()].is_resident() {
            misses += 1;
            if free > 0 {
                free -= 1;
            } else {
                let view = View {
                    cursor: position as u32,
                    free,
                    blocks: &state,
                    outstanding: &[],
                    disk_of: &[],
                    space: &NoSpace,
                    asked: &[],
                    found: &[],
                };
                let (victim, _) = residents.furthest(&view).expect("nothing is pinned");
                residents.remove(victim);
                state[victim.index()] = BlockState::ABSENT;
            }
            state[block.index()] = BlockState::resident();
            residents.insert(*block);
        }
        residents.served(position as u32, *block);
    }
    misses
}

/// The bound for `work`.
#[must_use]
pub fn elapsed_lower_bound(work: &Work<'_>) -> LowerBound {
    let blocks = work.disk_of.len();
    let min_fetches = min_misses(work.references, blocks, work.frames, work.initial);
    let processor_ns = work.processor + work.driver * min_fetches;
    let mut own: Vec<Vec<Block>> = vec![Vec::new(); work.disks];
    work.references.iter().for_each(|block| own[work.disk_of[block.index()].index()].push(*block));
    let disks: Vec<DiskBound> = own
        .into_iter()
        .enumerate()
        .map(|(disk, references)| {
            let here = |block: &Block| work.disk_of[block.index()].index() == disk;
            let initial: Vec<Block> = work.initial.iter().copied().filter(here).collect();
            let misses = min_misses(&references.into(), blocks, work.frames, &initial);
            let busy_ns = work.least_service * misses.div_ceil(work.at_once.into());
            DiskBound { misses, busy_ns, transfer_ns: (work.transfer)(disk, misses) }
        })
        .collect();
    let slowest = disks.iter().map(|disk| disk.busy_ns.max(disk.transfer_ns)).max().unwrap_or(Nanos::ZERO);
    let fetched_first = work.references.first().is_some_and(|first| !work.initial.contains(first));
    let begun = if fetched_first { work.thinking + work.least_first } else { Nanos::ZERO };
    let ended = if min_fetches > 0 { slowest + work.last_think } else { Nanos::ZERO };
    LowerBound { elapsed_ns: processor_ns.max(begun).max(ended), processor_ns, min_fetches, disks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Arc<[Block]> {
        text.bytes().map(|byte| Block(u32::from(byte - b'a'))).collect()
    }

    #[test]
    fn min_by_hand() {
        // a b c a b d a b c @ 3 frames: a b c miss; d replaces c; c replaces d: 5 misses.
        assert_eq!(min_misses(&string("abcabdabc"), 4, 3, &[]), 5);
        // With a and b there from the start: c, d, c.
        assert_eq!(min_misses(&string("abcabdabc"), 4, 3, &[Block(0), Block(1)]), 3);
    }

    #[test]
    fn figure_1_of_kimbrel96() {
        // A b C d E F at 1 ms each, 4 frames with A b d F, disks A C E F | b d, 2 ms a fetch:
        // MIN fetches C and E, so the first disk is busy for 4 ms, and the processor for 6.
        let references = string("abcdef");
        let disk_of = [0, 1, 0, 1, 0, 0].map(Disk);
        let initial = [0, 1, 3, 5].map(Block);
        let work = Work {
            references: &references,
            frames: 4,
            initial: &initial,
            disk_of: &disk_of,
            disks: 2,
            processor: Nanos::from_millis(6),
            thinking: Nanos::from_millis(6),
            last_think: Nanos::from_millis(1),
            driver: Nanos::ZERO,
            least_service: Nanos::from_millis(2),
            least_first: Nanos::from_millis(2),
            at_once: 1,
            transfer: &|disk, misses| if disk == 0 { Nanos::from_millis(1 + misses) } else { Nanos::ZERO },
        };
        let bound = elapsed_lower_bound(&work);
        assert_eq!(bound.min_fetches, 2);
        assert_eq!(
            bound.disks[0],
            DiskBound { misses: 2, busy_ns: Nanos::from_millis(4), transfer_ns: Nanos::from_millis(3) }
        );
        assert_eq!(bound.disks[1], DiskBound { misses: 0, busy_ns: Nanos::ZERO, transfer_ns: Nanos::ZERO });
        assert_eq!(bound.elapsed_ns, Nanos::from_millis(6));
        // A disk that delivers its blocks in 7 ms bounds all: the last reference is thought about after that.
        let slow = Work { transfer: &|disk, _| Nanos::from_millis(7 * disk as u64), ..work };
        assert_eq!(elapsed_lower_bound(&slow).elapsed_ns, Nanos::from_millis(8));
        // Without A at the start nothing is thought about before its 2 ms: 8 ms.
        let cold = Work { initial: &initial[1..], ..work };
        assert_eq!(elapsed_lower_bound(&cold).elapsed_ns, Nanos::from_millis(8));
    }
}

//! A lower bound on the elapsed time of a single process under any prefetching and replacement policy.
//!
//! - The processor: think times, costs per reference, and driver work for at least as many fetches as MIN's misses,
//!   since no policy fetches less often.
//! - Each disk: the misses of MIN on the disk's own blocks alone, with all K frames, each at least the minimum service
//!   time; with concurrency, the corresponding number of rounds. The last fetch must end before the last reference, so
//!   the bound holds for elapsed time.
//! - Its arm, its media or its link: every block that is referenced and not initially resident is read at least once,
//!   and blocks that are apart need separate requests or movements.
//!
//! No think time passes before the first block is resident, and no fetch is needed during the last one. The largest of
//! these is the bound. Cost: two runs of MIN over the references.

use std::sync::Arc;

use headstart_policy::hinted::Residents;
use headstart_policy::{BlockState, Hints, NoSpace, View};
use headstart_types::{Block, Disk, Nanos};
use serde::Serialize;

/// The work, independent of the policy.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    pub references: &'a Arc<[Block]>,
    /// K.
    pub frames: u32,
    /// Initially resident blocks.
    pub initial: &'a [Block],
    pub disk_of: &'a [Disk],
    /// Number of disks.
    pub disks: usize,
    /// Sum of think times and of costs per reference.
    pub processor: Nanos,
    /// Sum of think times.
    pub thinking: Nanos,
    /// Think time after the last reference.
    pub last_think: Nanos,
    /// Processor time of a fetch.
    pub driver: Nanos,
    /// Minimum time of a block's fetch.
    pub least_service: Nanos,
    /// Minimum time until the first block is fetched, whatever is fetched with it.
    pub least_first: Nanos,
    /// Maximum number of concurrent fetches of a disk; at least 1.
    pub at_once: u32,
    /// Minimum time in which a disk (by index) delivers all of its blocks that are referenced and not initially
    /// resident, for a number of misses.
    pub transfer: &'a dyn Fn(usize, u64) -> Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DiskBound {
    /// Misses of MIN on its own references with all frames.
    pub misses: u64,
    /// Misses times the minimum service time; with concurrency, the number of rounds instead.
    pub busy_ns: Nanos,
    /// Minimum time to read each required block once: arm movements between them, and the rate of the media or the
    /// link; 0 if time depends on neither.
    pub transfer_ns: Nanos,
}

/// The bound and its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LowerBound {
    /// No policy takes less.
    pub elapsed_ns: Nanos,
    /// The processor's part.
    pub processor_ns: Nanos,
    /// Misses of MIN on all references.
    pub min_fetches: u64,
    /// The parts of the disks.
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
        // With a and b initially resident: c, d, c.
        assert_eq!(min_misses(&string("abcabdabc"), 4, 3, &[Block(0), Block(1)]), 3);
    }

    #[test]
    fn figure_1_of_kimbrel96() {
        // A b C d E F at 1 ms each, 4 frames with A b d F, disks A C E F | b d, 2 ms per fetch: MIN fetches C and E, so
        // the first disk is busy for 4 ms, and the processor for 6.
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
        // A disk that delivers its blocks in 7 ms dominates: the last think time follows.
        let slow = Work { transfer: &|disk, _| Nanos::from_millis(7 * disk as u64), ..work };
        assert_eq!(elapsed_lower_bound(&slow).elapsed_ns, Nanos::from_millis(8));
        // If A is not initially resident, the process only starts after its 2 ms: 8 ms.
        let cold = Work { initial: &initial[1..], ..work };
        assert_eq!(elapsed_lower_bound(&cold).elapsed_ns, Nanos::from_millis(8));
    }
}

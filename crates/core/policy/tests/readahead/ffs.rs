//! The clusters of the Fast File System, on files laid out by hand.

use std::collections::BTreeSet;

use headstart_policy::readahead::{Asked, Cached, Found, ReadAhead};
use headstart_types::Nanos;
use proptest::prelude::*;

use crate::common::{named, row, try_build};

/// One file, its runs, and what of it is cached; prefetches and demands arrive at once unless `slow`.
struct File {
    /// First blocks of runs, then the end of the last.
    runs: Vec<u64>,
    /// The block from which on an indirect block must be read.
    direct: u64,
    cached: BTreeSet<(u32, u64)>,
    resident: BTreeSet<(u32, u64)>,
    slow: bool,
}

/// The indirect block.
const MAP: (u32, u64) = (9, 77);

impl Cached for File {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.cached.contains(&(file, index))
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.resident.contains(&(file, index))
    }

    fn file_blocks(&self, _: u32) -> Option<u64> {
        self.runs.last().copied()
    }

    fn frames(&self) -> u32 {
        1000
    }

    fn contiguous(&self, _: u32, index: u64, most: u64) -> u64 {
        self.runs.iter().find(|run| **run > index).map_or(0, |end| (end - index).min(most))
    }

    fn mapped_by(&self, _: u32, index: u64) -> Option<(u32, u64)> {
        (index >= self.direct).then_some(MAP)
    }
}

impl File {
    fn new(runs: &[u64]) -> Self {
        let direct = u64::MAX;
        Self { runs: runs.to_vec(), direct, cached: BTreeSet::new(), resident: BTreeSet::new(), slow: false }
    }

    /// Reads a block; returns the fetch that it causes: of the block itself with those after it, or of others.
    fn read(&mut self, ffs: &mut dyn ReadAhead, block: u64) -> Vec<(u64, u64)> {
        let absent = !self.is_cached(0, block);
        let found = [if absent { Found::Absent } else { Found::Ready }];
        let mut runs = Vec::new();
        ffs.asked(
            Nanos::ZERO,
            &Asked { file: 0, first: block, count: 1, client: 0, ends_inside: false },
            &found,
            self,
            &mut runs,
        );
        let mut fetched: Vec<u64> = absent.then_some(block).into_iter().collect();
        self.cached.extend(fetched.iter().map(|block| (0, *block)));
        for run in runs {
            assert!(run.count > 0);
            if run.file == 0 {
                fetched.extend(run.first..run.end());
            }
            self.cached.extend((run.first..run.end()).map(|index| (run.file, index)));
        }
        if !self.slow {
            self.resident = self.cached.clone();
        }
        let mut requests: Vec<(u64, u64)> = Vec::new();
        for block in fetched {
            match requests.last_mut() {
                Some((first, count)) if *first + *count == block => *count += 1,
                _ => requests.push((block, 1)),
            }
        }
        requests
    }

    fn read_all(&mut self, ffs: &mut dyn ReadAhead, blocks: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        blocks.into_iter().flat_map(|block| self.read(ffs, block)).collect()
    }

    fn evict(&mut self, block: u64) {
        self.cached.remove(&(0, block));
        self.resident.remove(&(0, block));
    }
}

/// Blocks of 4 KiB here: a cluster of 8 blocks is 32 KiB.
fn ffs(keys: &str) -> Box<dyn ReadAhead> {
    named("ffs", &format!("max = 8\n{keys}"))
}

#[test]
fn a_cluster_of_eight_takes_four_requests_of_1_2_3_and_2_blocks() {
    // 0 alone. 1: absent, sequential, window 1: 1 and 2. 2: there; 3 is not, 4 lie behind it, more than 1: window 2:
    // 3 to 5. 3: 5 is there. 4: 6 is not, one lies behind it, no more than 2: 6 and 7. Footnote 2 of the paper: four
    // requests.
    let mut file = File::new(&[8]);
    assert_eq!(file.read_all(&mut *ffs(""), 0..8), [(0, 1), (1, 2), (3, 3), (6, 2)]);
}

#[test]
fn requests_grow_to_a_cluster_and_stay() {
    // Windows 1, 2, 4; then 7 lie behind the first of a cluster, fewer than 8: window 7, requests of 8.
    let mut file = File::new(&[64]);
    let requests = file.read_all(&mut *ffs(""), 0..64);
    assert_eq!(requests[..6], [(0, 1), (1, 2), (3, 3), (6, 5), (11, 8), (19, 8)]);
    assert_eq!(requests.iter().map(|(_, count)| count).sum::<u64>(), 64);
}

#[test]
fn one_fetch_is_ahead_of_the_reader() {
    // Window 2 from block 2 on: 3 to 5 are fetched when 2 is read, 6 on when 4 is, two blocks before it is needed.
    let (mut file, mut ffs) = (File::new(&[8]), ffs(""));
    file.read_all(&mut *ffs, 0..4);
    assert_eq!(file.read(&mut *ffs, 4), [(6, 2)]);
}

#[test]
fn the_same_block_again_is_sequential_and_grows_nothing() {
    // Reads smaller than a block: each block twice. The second read of 1 finds it; window 1; 2 is there.
    let (mut file, mut ffs) = (File::new(&[8]), ffs(""));
    let requests = file.read_all(&mut *ffs, (0..8).flat_map(|block| [block, block]));
    // 0, and at its second read, which is there: 1 is not, but the reader has not moved: no window, so 1 alone.
    assert_eq!(requests[..2], [(0, 1), (1, 1)]);
    assert_eq!(requests.iter().map(|(_, count)| count).sum::<u64>(), 8);
}

#[test]
fn a_jump_takes_the_window_away() {
    let (mut file, mut ffs) = (File::new(&[64]), ffs(""));
    file.read_all(&mut *ffs, 0..8);
    assert_eq!(file.read_all(&mut *ffs, [40, 30, 50]), [(40, 1), (30, 1), (50, 1)]);
    assert_eq!(file.read(&mut *ffs, 51), [(51, 2)]);
}

#[test]
fn what_was_prefetched_and_evicted_halves_the_window() {
    // Window 4 once 6 to 10 are fetched (at 4), 7 once 11 to 18 are (at 7). Then 8 to 10 go before they are read: 8
    // had been prefetched, so window 3: 8 to 11 are named, of which 11 is there.
    let (mut file, mut ffs) = (File::new(&[64]), ffs(""));
    assert_eq!(file.read_all(&mut *ffs, 0..8)[3..], [(6, 5), (11, 8)]);
    (8..11).for_each(|block| file.evict(block));
    assert_eq!(file.read(&mut *ffs, 8), [(8, 4)]);
    // Three ahead of 9 to 15, 12 to 18 are there; of 16, 19 is not, and begins beyond what was prefetched: window 6.
    assert_eq!(file.read_all(&mut *ffs, 9..16), []);
    assert_eq!(file.read(&mut *ffs, 16), [(19, 7)]);
}

#[test]
fn the_last_block_of_a_run_brings_the_next_run_with_it() {
    // Runs 0..1, 1..4, 4..8. 1 is fetched with 2. At 2: 3 alone, for nothing lies behind it in its run. At 3: 4 and 5,
    // window 2; at 4: 6 and 7.
    let mut file = File::new(&[1, 4, 8]);
    assert_eq!(file.read_all(&mut *ffs(""), 0..8), [(0, 1), (1, 2), (3, 1), (4, 3), (7, 1)]);
    // Absent and the last of its run: 5 is fetched, and the next run's beginning beside it.
    let mut file = File::new(&[6, 16]);
    assert_eq!(file.read_all(&mut *ffs(""), [4, 5]), [(4, 1), (5, 3)]);
}

#[test]
fn an_indirect_block_is_fetched_first_and_what_it_points_to_when_it_is_there() {
    let (mut file, mut ffs) = (File::new(&[4, 12]), ffs(""));
    file.direct = 4;
    file.slow = true;
    // 3 is the last direct block, prefetched at 2 (window 2). At 3: from 4 on an indirect block must be read: it is
    // requested.
    assert_eq!(file.read_all(&mut *ffs, 0..3), [(0, 1), (1, 2), (3, 1)]);
    assert_eq!(file.read(&mut *ffs, 3), []);
    assert!(file.is_cached(MAP.0, MAP.1) && !file.is_cached(0, 4));
    // On its way: nothing more can be fetched. There: what was postponed.
    assert_eq!(file.read(&mut *ffs, 3), []);
    file.resident.insert(MAP);
    assert_eq!(file.read(&mut *ffs, 3), [(4, 2)]);
}

#[test]
fn with_whole_clusters_the_first_read_brings_all_of_its_cluster() {
    let mut file = File::new(&[64]);
    assert_eq!(file.read_all(&mut *ffs("first = 8"), 0..64)[..3], [(0, 8), (8, 8), (16, 8)]);
    assert_eq!(file.read(&mut *ffs("first = 8"), 3), []);
    let mut file = File::new(&[64]);
    assert_eq!(file.read_all(&mut *ffs("first = 8"), [20, 40]), [(20, 8), (40, 8)]);
}

#[test]
fn a_first_above_max_is_refused() {
    let context = crate::common::context(10);
    let refused = |keys: &str| try_build(row("ffs"), keys, &context).err().expect(keys).key;
    assert_eq!(refused("first = \"128KiB\""), "first");
    assert_eq!(refused("max = 0"), "max");
    assert_eq!(refused("files = 0"), "files");
}

proptest! {
    /// A sequential reader of a file in one run reads each block once, in requests of a cluster at most, and waits for
    /// no more than the first blocks.
    #[test]
    fn a_sequential_reader_reads_each_block_once(blocks in 1u64..200, max in 1u64..20) {
        let mut file = File::new(&[blocks]);
        let requests = file.read_all(&mut *named("ffs", &format!("max = {max}")), 0..blocks);
        let mut next = 0;
        for (first, count) in &requests {
            prop_assert_eq!(*first, next);
            prop_assert!(*count <= max);
            next = first + count;
        }
        prop_assert_eq!(next, blocks);
    }

    /// For any reads, fetches lie within the file, and cover at most a cluster besides the block.
    #[test]
    fn nothing_beyond_the_end_or_a_cluster_is_fetched(reads in prop::collection::vec(0u64..40, 1..100), cuts in prop::collection::btree_set(1u64..40, 0..6)) {
        let runs: Vec<u64> = cuts.into_iter().chain([40]).collect();
        let (mut file, mut ffs) = (File::new(&runs), ffs(""));
        for block in reads {
            let before = file.cached.len();
            for (first, count) in file.read(&mut *ffs, block) {
                prop_assert!(first + count <= 40 && count <= 9);
            }
            prop_assert!(file.cached.len() <= before + 9);
        }
    }
}

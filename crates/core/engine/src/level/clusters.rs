//! Write clustering: consecutively written blocks of a file go to their disk in one order.
//!
//! As 4.4BSD's Fast File System writes (4.4BSD-Lite2: `ffs_write` in sys/ufs/ufs/ufs_readwrite.c, `cluster_write` in
//! sys/kern/vfs_cluster.c):
//!
//! - A block that is not written to its end only becomes dirty.
//! - A full block joins its file's cluster if it is the next one in the file and on the disk. The block that completes
//!   the cluster writes it out asynchronously.
//! - Any other full block writes out what its file has gathered and starts a cluster of the blocks that follow on the
//!   disk. If none follow, it is written by itself. Block 0 starts a cluster and leaves the gathered blocks dirty.
//!
//! Gathered blocks are dirty: when they are due, or evicted, they are written one by one, and their cluster is written
//! without them.
//!
//! Differences: blocks do not move, while the file system moves those of a growing file together. References say how
//! many bytes are written and not where, so a block counts as full once as many bytes as it has were written to it in a
//! row.
//!
//! Cost: logarithmic in the files that have been written; 60 bytes per file.

use std::collections::BTreeMap;
use std::ops::Range;

/// The gathered blocks of a file.
#[derive(Debug, Clone, Default)]
struct Gathered {
    /// Range of the gathered blocks, by index in the file.
    blocks: Range<u64>,
    /// End of the full cluster.
    end: u64,
    /// The block being filled, and its bytes written so far.
    filling: (u64, u64),
}

/// Runs of blocks to write out, by index in their file; some may be empty.
pub type Leaving = [Range<u64>; 3];

/// The clusters of all files.
#[derive(Debug, Clone)]
pub struct Clusters {
    blocks_max: u64,
    block_bytes: u64,
    files: BTreeMap<u32, Gathered>,
}

impl Clusters {
    /// Clusters of at most `blocks_max` blocks.
    #[must_use]
    pub fn new(blocks_max: u64, block_bytes: u64) -> Self {
        Self { blocks_max, block_bytes, files: BTreeMap::new() }
    }

    /// Records that `bytes` of block `index` of `file` have been written (`None`: all of it), and returns what to write
    /// out. `follow(n)` returns how many blocks, at most n, are contiguous on the disk from there on.
    pub fn written(&mut self, file: u32, index: u64, bytes: Option<u32>, follow: impl FnOnce(u64) -> u64) -> Leaving {
        let bytes = bytes.map_or(self.block_bytes, u64::from);
        let of = self.files.entry(file).or_default();
        let (filling, had) = of.filling;
        let have = if filling == index { had + bytes } else { bytes };
        if have < self.block_bytes {
            of.filling = (index, have);
            return Leaving::default();
        }
        of.filling = (index, 0);
        let mut gathered = 0..0;
        if !of.blocks.is_empty() && index == of.blocks.end && index > 0 {
            of.blocks.end += 1;
        } else {
            gathered = std::mem::replace(&mut of.blocks, index..index + 1);
            of.end = index + follow(self.blocks_max).max(1);
            if index == 0 {
                gathered = 0..0;
            }
        }
        let full = if of.blocks.end == of.end { std::mem::replace(&mut of.blocks, of.end..of.end) } else { 0..0 };
        // The block being written belongs to its new cluster.
        let before = gathered.start..gathered.end.min(index.max(gathered.start));
        [before, gathered.start.max(index + 1)..gathered.end, full]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The runs that leave: first block, and one past the last. Blocks of 8 bytes in clusters of at most four; blocks 0
    /// to 5 are contiguous on the disk, and so are those from 6 on.
    fn clusters() -> impl FnMut(u64, u32) -> Vec<(u64, u64)> {
        let mut clusters = Clusters::new(4, 8);
        move |index, bytes| {
            let follow = |most: u64| (if index < 6 { 6 - index } else { u64::MAX }).min(most);
            let leaving = clusters.written(1, index, Some(bytes), follow).into_iter();
            leaving.filter(|run| !run.is_empty()).map(|run| (run.start, run.end)).collect()
        }
    }

    fn none() -> Vec<(u64, u64)> {
        Vec::new()
    }

    #[test]
    fn a_file_from_start_to_end() {
        let mut write = clusters();
        let left: Vec<_> = (0..12).flat_map(|index| write(index, 8)).collect();
        // Block 4 starts a cluster of two, because block 5 is the last of its run on the disk.
        assert_eq!(left, [(0, 4), (4, 6), (6, 10)]);
        // 10 and 11 are gathered; a write elsewhere in the file writes them out.
        assert_eq!(write(20, 8), [(10, 12)]);
    }

    #[test]
    fn a_block_is_full_once_its_bytes_have_been_written() {
        let mut write = clusters();
        let left: Vec<_> = (0..8).map(|half| write(half / 2, 4)).collect();
        assert_eq!(left[..7], [none(), none(), none(), none(), none(), none(), none()]);
        assert_eq!(left[7], [(0, 4)]);
        // A part of block 4 and a part of block 5 fill neither; then block 5, the last of its run, goes alone.
        assert_eq!([write(4, 4), write(5, 4), write(4, 4)], [none(), none(), none()]);
        assert_eq!(write(5, 8), [(5, 6)]);
    }

    #[test]
    fn what_is_written_again() {
        let mut write = clusters();
        assert_eq!([write(6, 8), write(7, 8), write(8, 8)], [none(), none(), none()]);
        // Block 7 again: its neighbours are written, and it starts a cluster, which block 10 completes.
        assert_eq!(write(7, 8), [(6, 7), (8, 9)]);
        assert_eq!([write(8, 8), write(9, 8)], [none(), none()]);
        assert_eq!(write(10, 8), [(7, 11)]);
        // The block just written starts another; block 0 drops it.
        assert_eq!([write(10, 8), write(0, 8), write(1, 8)], [none(), none(), none()]);
        assert_eq!(write(6, 8), [(0, 2)]);
    }

    #[test]
    fn without_neighbours_a_block_goes_alone() {
        let mut clusters = Clusters::new(4, 8);
        assert_eq!(clusters.written(1, 3, None, |_| 1)[2], 3..4);
        assert_eq!(clusters.written(1, 4, None, |_| 0)[2], 4..5);
        assert_eq!(Clusters::new(1, 8).written(1, 0, None, |most| most)[2], 0..1);
    }

    proptest! {
        /// For any writes, no cluster is too long or extends beyond its run on the disk, and each full block is either
        /// gathered or has been written out since its last write, unless block 0 has dropped its file's cluster.
        #[test]
        fn nothing_is_lost(writes in prop::collection::vec((0u32..3, 1u64..30, any::<bool>()), 1..200), most in 1u64..9) {
            let (mut clusters, mut left) = (Clusters::new(most, 8), std::collections::BTreeSet::new());
            let mut full = std::collections::BTreeSet::new();
            for (file, index, goes_on) in &writes {
                let index = if *goes_on { clusters.files.get(file).map_or(*index, |of| of.blocks.end.max(1)) } else { *index };
                let follow = |most: u64| (10 - index % 10).min(most);
                let leaving = clusters.written(*file, index, None, follow);
                full.insert((*file, index));
                left.remove(&(*file, index));
                for run in leaving {
                    prop_assert!(run.end.saturating_sub(run.start) <= most);
                    prop_assert!(run.is_empty() || run.end <= index || run.start > index || run.end == index + 1);
                    prop_assert!(run.is_empty() || run.start / 10 == (run.end - 1) / 10);
                    left.extend(run.map(|index| (*file, index)));
                }
            }
            for (file, index) in full {
                let gathered = clusters.files[&file].blocks.contains(&index);
                prop_assert!(gathered || left.contains(&(file, index)), "block {index} of {file}");
            }
        }
    }
}

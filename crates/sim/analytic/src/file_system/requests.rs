//! The disk requests for reading a file, and the length of each.
//!
//! A file consists of *regions*: the direct blocks, then the blocks of each indirect block. A region starts a new
//! cluster, in another cylinder group (section 2.1 of the paper). Within a cluster the window doubles with each request
//! up to its limit; a request ends at the latest with its cluster. 64 KB thus take 8 + 16 + 32 + 8 KB, and each later
//! cluster, with a full window, one request. A fragment at the end of a file is never read ahead.

use super::parameters::{FileSystem, Prefetch};

/// Consecutive disk requests of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestRun {
    /// Bytes of each.
    pub bytes: u64,
    /// Number of requests; at least 1.
    pub count: u64,
    /// Indirect blocks read before the first of them.
    pub indirect: u64,
}

/// Calls `emit` for each run of data requests of a file, in order.
#[inline]
pub(super) fn for_each_run(file_system: &FileSystem, file_bytes: u64, emit: impl FnMut(RequestRun)) {
    let block_bytes = file_system.block_bytes;
    let (first, limit) = match file_system.prefetch {
        Prefetch::Off => (1, 1),
        Prefetch::Doubling { first_bytes, limit_bytes } => (first_bytes / block_bytes, limit_bytes / block_bytes),
    };
    let cluster = file_system.cluster_bytes / block_bytes;
    let mut walk = Walk { block_bytes, cluster, window: first, limit, full: limit.min(cluster), indirect: 0, emit };
    let (mut whole, tail) = file_system.blocks_of(file_bytes);
    let pointers = file_system.pointers();
    let mut room = file_system.direct_blocks;
    for region in 0.. {
        if region > 0 {
            room = pointers;
            walk.indirect += indirect_before(region, pointers);
        }
        let blocks = whole.min(room);
        walk.region(blocks, region > 0 && file_system.first_alone && limit > 1);
        whole -= blocks;
        if whole == 0 {
            break;
        }
    }
    if tail > 0 {
        walk.put(tail, 1);
    }
}

/// Indirect blocks to read before the `leaf`-th region of an indirect block (from 1): its own; its parent if it is the
/// first of a double indirect block; and the triple one likewise.
pub(super) fn indirect_before(leaf: u64, pointers: u64) -> u64 {
    if leaf == 1 {
        return 1;
    }
    let under_double = leaf - 2;
    1 + u64::from(under_double.is_multiple_of(pointers)) + u64::from(under_double == pointers)
}

struct Walk<Emit> {
    block_bytes: u64,
    /// Blocks of a cluster.
    cluster: u64,
    /// The next request's length in blocks, if no boundary cuts it.
    window: u64,
    limit: u64,
    /// From this window on all clusters are read in the same way.
    full: u64,
    /// Indirect blocks since the last request.
    indirect: u64,
    emit: Emit,
}

impl<Emit: FnMut(RequestRun)> Walk<Emit> {
    fn put(&mut self, bytes: u64, count: u64) {
        if count > 0 {
            (self.emit)(RequestRun { bytes, count, indirect: std::mem::take(&mut self.indirect) });
        }
    }

    /// A region of `left` blocks, from the start of a cluster.
    fn region(&mut self, mut left: u64, first_alone: bool) {
        let mut of_cluster = self.cluster;
        if first_alone && left > 0 {
            self.put(self.block_bytes, 1);
            left -= 1;
            of_cluster -= 1;
        }
        while left > 0 && self.window < self.full {
            of_cluster = if of_cluster == 0 { self.cluster } else { of_cluster };
            let blocks = self.window.min(of_cluster).min(left);
            self.put(blocks * self.block_bytes, 1);
            left -= blocks;
            of_cluster -= blocks;
            self.window = (2 * self.window).min(self.limit);
        }
        let begun = left.min(of_cluster % self.cluster);
        self.contiguous(begun);
        left -= begun;
        let (clusters, last) = (left / self.cluster, left % self.cluster);
        if self.cluster.is_multiple_of(self.full) {
            self.put(self.full * self.block_bytes, clusters * (self.cluster / self.full));
        } else {
            (0..clusters).for_each(|_| self.contiguous(self.cluster));
        }
        self.contiguous(last);
    }

    /// `blocks` within one cluster, with a full window.
    fn contiguous(&mut self, blocks: u64) {
        self.put(self.full * self.block_bytes, blocks / self.full);
        let rest = blocks % self.full;
        self.put(rest * self.block_bytes, u64::from(rest > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::tables;
    use proptest::prelude::*;

    const KIB: u64 = 1024;

    fn lengths(file_system: &FileSystem, file_bytes: u64) -> (Vec<u64>, u64) {
        let (mut all, mut indirect) = (Vec::new(), 0);
        for_each_run(file_system, file_bytes, |run| {
            all.extend((0..run.count).map(|_| run.bytes));
            indirect += run.indirect;
        });
        (all, indirect)
    }

    fn in_kib(file_system: &FileSystem, kib: u64) -> Vec<u64> {
        let (lengths, _) = lengths(file_system, kib * KIB);
        lengths.into_iter().map(|bytes| bytes / KIB).collect()
    }

    #[test]
    fn the_papers_requests() {
        let on = tables::file_system();
        let off = FileSystem { prefetch: Prefetch::Off, ..on };
        // Footnote 2: 4 disk requests of 16 KB on average for 64 KB.
        assert_eq!(in_kib(&on, 64), [8, 16, 32, 8]);
        assert_eq!(in_kib(&on, 96), [8, 16, 32, 8, 32]);
        assert_eq!(in_kib(&on, 128), [8, 16, 32, 8, 32, 8, 24]);
        assert_eq!(in_kib(&FileSystem { first_alone: false, ..on }, 128), [8, 16, 32, 8, 32, 32]);
        assert_eq!(in_kib(&off, 64), [8; 8]);
        assert_eq!(in_kib(&off, 128), [8; 16]);
        // The paper's proposal (section 6): the whole cluster at once.
        let whole = Prefetch::Doubling { first_bytes: 64 * KIB, limit_bytes: 64 * KIB };
        assert_eq!(in_kib(&FileSystem { prefetch: whole, first_alone: false, ..on }, 256), [64, 32, 64, 64, 32]);
    }

    #[test]
    fn a_fragment_is_read_alone() {
        let on = tables::file_system();
        assert_eq!(in_kib(&on, 3), [3]);
        assert_eq!(in_kib(&on, 61), [8, 16, 32, 5]);
        assert_eq!(lengths(&on, 8 * KIB + 1).0, [8192, 1024]);
        // After an indirect block there are no fragments.
        assert_eq!(lengths(&on, 96 * KIB + 1), ([8, 16, 32, 8, 32, 8].map(|kib| kib * KIB).to_vec(), 1));
        assert_eq!(in_kib(&on, 113), [8, 16, 32, 8, 32, 8, 16]);
    }

    #[test]
    fn indirect_blocks_by_hand() {
        // Blocks of 8 bytes point to 2 blocks each; 1 direct block.
        let tiny = FileSystem {
            block_bytes: 8,
            direct_blocks: 1,
            cluster_bytes: 8,
            fragment_bytes: 8,
            prefetch: Prefetch::Off,
            ..tables::file_system()
        };
        // Blocks after the direct ones: one indirect block; the double and its first; its second; then, of the triple
        // one, three levels before its first leaf, one before its second, two before its third.
        let total = |blocks: u64| lengths(&tiny, 8 * blocks).1;
        let behind: Vec<u64> = [1, 3, 5, 7, 9, 11, 13, 15].map(total).to_vec();
        assert_eq!(behind, [0, 1, 3, 4, 7, 8, 10, 11]);
        assert_eq!(total(2), 1);
    }

    /// Block by block, without regard to speed.
    fn naive(file_system: &FileSystem, file_bytes: u64) -> Vec<u64> {
        let block = file_system.block_bytes;
        let blocks = file_bytes.div_ceil(block);
        let full = if blocks > file_system.direct_blocks { blocks } else { file_bytes / block };
        let (mut window, limit) = match file_system.prefetch {
            Prefetch::Off => (1, 1),
            Prefetch::Doubling { first_bytes, limit_bytes } => (first_bytes / block, limit_bytes / block),
        };
        let place = |index: u64| match index.checked_sub(file_system.direct_blocks) {
            None => (0, index),
            Some(beyond) => (1 + beyond / file_system.pointers(), beyond % file_system.pointers()),
        };
        let cluster = file_system.cluster_bytes / block;
        let (mut lengths, mut next) = (Vec::new(), 0);
        while next < blocks {
            let (region, offset) = place(next);
            let alone = next >= full || (file_system.first_alone && limit > 1 && region > 0 && offset == 0);
            let mut end = next + 1;
            while !alone && end < full && end - next < window {
                let (other, further) = place(end);
                if (other, further / cluster) != (region, offset / cluster) {
                    break;
                }
                end += 1;
            }
            lengths.push(end - next);
            if !alone {
                window = (2 * window).min(limit);
            }
            next = end;
        }
        lengths
    }

    proptest! {
        #[test]
        fn equals_the_naive_walk(
            file in 1u64..4000, direct in 0u64..40, cluster in 1u64..20, first in 1u64..20, more in 0u64..40,
            off in any::<bool>(), first_alone in any::<bool>(), odd in 0u64..8,
        ) {
            let block = 32;
            let prefetch = match off {
                true => Prefetch::Off,
                false => Prefetch::Doubling { first_bytes: first * block, limit_bytes: (first + more) * block },
            };
            let file_system = FileSystem {
                block_bytes: block, direct_blocks: direct, cluster_bytes: cluster * block, fragment_bytes: 4, prefetch,
                first_alone, ..tables::file_system()
            };
            let bytes = file * block - odd;
            let ours: Vec<u64> = lengths(&file_system, bytes).0.iter().map(|bytes| bytes.div_ceil(block)).collect();
            prop_assert_eq!(ours, naive(&file_system, bytes));
        }
    }
}

//! One cylinder group: its free blocks, its inodes, and the block whose fragments are being allocated.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Size of an inode on disk (4.4BSD, ufs/ufs/dinode.h: struct dinode).
const INODE_BYTES: u64 = 128;
/// Fragments per inode (4.4BSD newfs: NFPI).
const FRAGMENTS_PER_INODE: u64 = 4;

/// The inodes of a group: their number, and the blocks that hold them, after the superblock's copy and the group's own
/// block.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    inodes: u64,
    inodes_per_block: u64,
}

impl Header {
    /// Blocks before the inodes: a copy of the superblock, and the group's own block.
    const BEFORE_INODES: u64 = 2;

    /// For a group of `group_bytes`.
    pub fn new(group_bytes: u64, fragment_bytes: u64, block_bytes: u64) -> Self {
        let inodes_per_block = (block_bytes / INODE_BYTES).max(1);
        let inodes = (group_bytes / (FRAGMENTS_PER_INODE * fragment_bytes)).max(1);
        Self { inodes, inodes_per_block }
    }

    /// Blocks before the first that a file can use.
    pub fn blocks(&self) -> u64 {
        Self::BEFORE_INODES + self.inodes.div_ceil(self.inodes_per_block)
    }

    /// The block within the group that holds its inode `number`.
    fn block_of(&self, number: u64) -> u64 {
        Self::BEFORE_INODES + number / self.inodes_per_block
    }
}

#[derive(Debug)]
pub struct Group {
    /// Whether each block of the group is free.
    free: Vec<bool>,
    /// Number of free blocks.
    left: u64,
    inodes_used: u64,
    header: Header,
    /// The block whose fragments are being allocated, and how many have been.
    fragments: Option<(u64, u64)>,
}

impl Group {
    /// A group of `blocks` blocks in which only the header is used.
    pub fn empty(blocks: u64, header: Header) -> Self {
        let free: Vec<bool> = (0..blocks).map(|block| block >= header.blocks()).collect();
        let left = blocks - header.blocks();
        Self { free, left, inodes_used: 0, header, fragments: None }
    }

    /// Allocates blocks to other files until a share of `full` is used, in runs alternating with free runs of
    /// `free_run` blocks on average; both lengths are geometric. Either kind may come first.
    pub fn age(&mut self, full: f64, free_run: f64, rng: &mut ChaCha8Rng) {
        if full == 0.0 {
            return;
        }
        let taken_run = free_run * full / (1.0 - full);
        let mut taken = rng.random::<f64>() < full;
        for block in self.header.blocks() as usize..self.free.len() {
            if taken {
                self.free[block] = false;
                self.left -= 1;
            }
            let run = if taken { taken_run } else { free_run };
            // A run with a mean below one block is one block, and the other kind follows at once.
            if rng.random::<f64>() * run.max(1.0) < 1.0 {
                taken = !taken;
            }
        }
    }

    /// Number of free blocks.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Allocates an inode and returns the block that holds it; `None` if all are used.
    pub fn inode(&mut self) -> Option<u64> {
        let number = self.inodes_used;
        if number == self.header.inodes {
            return None;
        }
        self.inodes_used += 1;
        Some(self.header.block_of(number))
    }

    /// Allocates up to `want` contiguous blocks: at `preferred` if enough are free there, else at the first place from
    /// there on (wrapping around) where enough are, else as many as there are at the first free block.
    pub fn take(&mut self, preferred: u64, want: u64) -> Option<(u64, u64)> {
        if self.left == 0 {
            return None;
        }
        let (blocks, preferred) = (self.free.len() as u64, preferred.max(self.header.blocks()));
        let start = if preferred < blocks { preferred } else { self.header.blocks() };
        let mut first_free = None;
        let mut found = None;
        let mut at = start;
        let mut wrapped = false;
        while !wrapped || at < start {
            if at >= blocks {
                wrapped = true;
                at = self.header.blocks();
                continue;
            }
            let run = self.run_at(at, want);
            if run > 0 {
                first_free.get_or_insert((at, run));
            }
            if run == want {
                found = Some((at, run));
                break;
            }
            at += run + 1;
        }
        let (at, run) = found.or(first_free)?;
        self.free[at as usize..(at + run) as usize].fill(false);
        self.left -= run;
        Some((at, run))
    }

    /// Number of contiguous free blocks from `at` on, at most `want`.
    fn run_at(&self, at: u64, want: u64) -> u64 {
        let end = self.free.len().min((at + want) as usize);
        self.free[at as usize..end].iter().take_while(|free| **free).count() as u64
    }

    /// Allocates `count` fragments of one block with `per_block`: the block, and its first fragment.
    pub fn take_fragments(&mut self, preferred: u64, count: u64, per_block: u64) -> Option<(u64, u64)> {
        if let Some((block, used)) = self.fragments.filter(|(_, used)| used + count <= per_block) {
            self.fragments = Some((block, used + count));
            return Some((block, used));
        }
        let (block, _) = self.take(preferred, 1)?;
        self.fragments = Some((block, count));
        Some((block, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// 32 blocks of 8 KiB: 256 KiB / 4 KiB = 64 inodes, which fill one block; this leaves 29 blocks from 3 on.
    fn group() -> Group {
        Group::empty(32, Header::new(32 << 13, 1 << 10, 1 << 13))
    }

    #[test]
    fn a_header_holds_superblock_group_and_inodes() {
        assert_eq!(group().left(), 29);
        // 16 MiB groups with 1 KiB fragments: 4096 inodes of 128 bytes, 64 blocks.
        assert_eq!(Header::new(16 << 20, 1 << 10, 1 << 13).blocks(), 66);
    }

    #[test]
    fn blocks_are_taken_where_they_are_wanted_if_they_fit() {
        let mut group = group();
        assert_eq!(group.take(0, 8), Some((3, 8)));
        assert_eq!(group.take(20, 8), Some((20, 8)));
        // 11..20 is free: nine blocks. Four are left after 28, not enough for eight, so the search wraps around.
        assert_eq!(group.take(28, 8), Some((11, 8)));
        // No place has eight: as many as there are at the first free block from 25 on.
        assert_eq!(group.take(25, 8), Some((28, 4)));
        assert_eq!(group.take(0, 8), Some((19, 1)));
        assert_eq!((group.take(0, 1), group.left()), (None, 0));
    }

    #[test]
    fn fragments_share_a_block_until_it_is_full() {
        let mut group = group();
        assert_eq!(group.take_fragments(5, 3, 8), Some((5, 0)));
        assert_eq!(group.take_fragments(9, 4, 8), Some((5, 3)));
        assert_eq!(group.take_fragments(9, 2, 8), Some((9, 0)));
        assert_eq!(group.left(), 27);
    }

    #[test]
    fn inodes_run_out() {
        let mut group = group();
        let blocks: Vec<_> = std::iter::from_fn(|| group.inode()).collect();
        assert_eq!(blocks, [2; 64]);
    }

    #[test]
    fn an_aged_group_is_as_full_as_it_should_be_and_as_broken_up() {
        let header = Header::new(2048 << 13, 1 << 10, 1 << 13);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut taken, mut runs, mut all) = (0, 0, 0);
        for _ in 0..200 {
            let mut group = Group::empty(2048, header);
            group.age(0.75, 8.0, &mut rng);
            let free = &group.free[header.blocks() as usize..];
            all += free.len();
            taken += free.iter().filter(|free| !**free).count();
            runs += free.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            assert_eq!(group.left() as usize, free.iter().filter(|free| **free).count());
        }
        // 396,400 blocks, 12,387 pairs of runs of 32 on average (8 free, 24 used): sampling errors of about 1 %.
        let full = taken as f64 / all as f64;
        assert!((full - 0.75).abs() < 0.02, "{full}");
        let free_run = (all - taken) as f64 / runs as f64;
        assert!((free_run - 8.0).abs() < 0.4, "{free_run}");
    }
}

//! The block map of one file: its extents, the indirect blocks that lead to them, its inode and its fragment.
//!
//! An indirect block that points to data is a leaf. Leaf 0 belongs to the inode; with P addresses per block, the next P
//! leaves belong to the double indirect block, and the P x P after them to blocks below the triple one.

/// Contiguous blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileExtent {
    /// The first block within the file.
    at: u64,
    /// The first block's address.
    address: u64,
    count: u64,
}

/// The fragment at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Its block number within the file.
    pub at: u64,
    /// The block that contains it.
    pub block: u64,
    /// Fragments of that block before it.
    pub first: u64,
    /// Number of its fragments.
    pub count: u64,
}

#[derive(Debug)]
pub struct FileMap {
    /// The block that holds its inode.
    pub inode: u64,
    /// The fragment at its end.
    pub tail: Option<Tail>,
    direct: u64,
    pointers: u64,
    runs: Vec<FileExtent>,
    /// Indirect blocks in order of allocation: parents before the first leaf below them.
    maps: Vec<u64>,
}

impl FileMap {
    /// The map of an empty file.
    pub fn new(inode: u64, direct: u64, pointers: u64) -> Self {
        Self { inode, tail: None, direct, pointers, runs: Vec::new(), maps: Vec::new() }
    }

    /// The leaf that leads to block `at`; `None` for direct blocks.
    fn leaf_of(&self, at: u64) -> Option<u64> {
        at.checked_sub(self.direct).map(|beyond| beyond / self.pointers)
    }

    /// Whether block `at` is the first of a leaf.
    pub fn needs_leaf(&self, at: u64) -> bool {
        at.checked_sub(self.direct).is_some_and(|beyond| beyond % self.pointers == 0)
    }

    /// Blocks from `at` to the next that needs a new leaf.
    pub fn until_next_leaf(&self, at: u64) -> u64 {
        match at.checked_sub(self.direct) {
            None => self.direct - at,
            Some(beyond) => self.pointers - beyond % self.pointers,
        }
    }

    /// Number of indirect blocks that block `at`, the first of a leaf, needs and earlier blocks did not.
    pub fn new_maps(&self, at: u64) -> u64 {
        let Some(leaf) = self.leaf_of(at) else { return 0 };
        let new_parents = match self.beyond_double(leaf) {
            _ if leaf == 0 => 0,
            None => u64::from(leaf == 1),
            // The first leaf below the triple indirect block needs the triple one too.
            Some(further) => u64::from(further % self.pointers == 0) + u64::from(further == 0),
        };
        1 + new_parents
    }

    /// The index of `leaf` among those below the triple indirect block.
    fn beyond_double(&self, leaf: u64) -> Option<u64> {
        leaf.checked_sub(1 + self.pointers)
    }

    /// The indices in `maps` of `leaf` and its parents, topmost first.
    fn chain(&self, leaf: u64) -> ([usize; 3], usize) {
        let p = self.pointers;
        let slots = match self.beyond_double(leaf) {
            _ if leaf == 0 => ([0, 0, 0], 1),
            // The double indirect block is the second of all.
            None => ([1, leaf + 1, 0], 2),
            // 1 + 1 + P before; then the triple one, and one more per P leaves.
            Some(further) => {
                let triple = 2 + p;
                let middle = triple + 1 + further / p * (p + 1);
                ([triple, middle, middle + 1 + further % p], 3)
            }
        };
        (slots.0.map(|slot| slot as usize), slots.1)
    }

    /// The indirect blocks that lead to block `at`, topmost first.
    pub fn indirect(&self, at: u64) -> impl Iterator<Item = u64> + '_ {
        let (slots, count) = self.leaf_of(at).map_or(([0; 3], 0), |leaf| self.chain(leaf));
        slots.into_iter().take(count).filter_map(|slot| self.maps.get(slot).copied())
    }

    /// The indirect block that holds the address of block `at`.
    pub fn leaf(&self, at: u64) -> Option<u64> {
        self.indirect(at).last()
    }

    /// The addresses of its inode and of all its indirect blocks.
    pub fn metadata(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.inode).chain(self.maps.iter().copied())
    }

    /// Adds an indirect block.
    pub fn push_map(&mut self, address: u64) {
        self.maps.push(address);
    }

    /// Adds `count` blocks from block `at` on, at `address`.
    pub fn push(&mut self, at: u64, address: u64, count: u64) {
        match self.runs.last_mut() {
            Some(last) if last.address + last.count == address => last.count += count,
            _ => self.runs.push(FileExtent { at, address, count }),
        }
    }

    /// Ends the file in `count` fragments of `block`, after `first` others; they are its block `at`.
    pub fn end_in(&mut self, at: u64, block: u64, (first, count): (u64, u64)) {
        self.tail = Some(Tail { at, block, first, count });
    }

    fn run_of(&self, at: u64) -> Option<&FileExtent> {
        let index = self.runs.partition_point(|run| run.at <= at).checked_sub(1)?;
        self.runs.get(index).filter(|run| at < run.at + run.count)
    }

    /// The address of block `at`, if it is a whole block of the file.
    pub fn address(&self, at: u64) -> Option<u64> {
        self.run_of(at).map(|run| run.address + (at - run.at))
    }

    /// Number of contiguous blocks from `at` on that belong to one indirect block.
    pub fn contiguous(&self, at: u64) -> u64 {
        self.run_of(at).map_or(0, |run| (run.at + run.count - at).min(self.until_next_leaf(at)))
    }
}

//! A set of positions that counts its members from a position on: one bit per position, and a Fenwick tree over groups
//! of 512.
//!
//! Cost: logarithmic in 1/512 of the positions: the tree for 16 million is 128 KiB and stays in the processor's cache.
//! Memory: an eighth of a byte per position.

/// Words of 64 bits in a group.
const WORDS: usize = 8;
/// Positions in a group.
const GROUP: usize = 64 * WORDS;

/// The set. Positions are below the capacity.
#[derive(Debug, Default)]
pub(super) struct Marks {
    words: Vec<u64>,
    /// Fenwick tree: entry `i` counts the groups `i & (i + 1) ..= i`.
    groups: Vec<u32>,
    marked: u32,
}

impl Marks {
    /// A set with room for `capacity` positions, whose first `marked` positions are members.
    pub(super) fn first(marked: usize, capacity: usize) -> Self {
        let groups = capacity.div_ceil(GROUP);
        let mut words = vec![0u64; groups * WORDS];
        words[..marked / 64].fill(u64::MAX);
        if !marked.is_multiple_of(64) {
            words[marked / 64] = (1 << (marked % 64)) - 1;
        }
        let before = |group: usize| (group * GROUP).min(marked) as u32;
        let groups = (0..groups).map(|group| before(group + 1) - before(group & (group + 1))).collect();
        Self { words, groups, marked: marked as u32 }
    }

    pub(super) fn capacity(&self) -> usize {
        self.words.len() * 64
    }

    pub(super) fn insert(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
        self.marked += 1;
        self.add(at / GROUP, 1);
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.words[at / 64] &= !(1 << (at % 64));
        self.marked -= 1;
        self.add(at / GROUP, u32::MAX);
    }

    fn add(&mut self, mut group: usize, change: u32) {
        while let Some(count) = self.groups.get_mut(group) {
            *count = count.wrapping_add(change);
            group |= group + 1;
        }
    }

    /// Number of members at or after `at`.
    pub(super) fn from(&self, at: usize) -> u32 {
        let word = at / 64;
        let group = at / GROUP;
        let mut before = (self.words[word] & ((1 << (at % 64)) - 1)).count_ones();
        before += self.words[group * WORDS..word].iter().map(|word| word.count_ones()).sum::<u32>();
        let mut end = group;
        while end > 0 {
            before += self.groups[end - 1];
            end &= end - 1;
        }
        self.marked - before
    }

    /// Number of members before each word.
    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut count = 0;
        let ranks = self.words.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        ranks.collect()
    }

    /// Number of members before `at`, using the set's `ranks`.
    pub(super) fn rank(&self, ranks: &[u32], at: usize) -> u32 {
        ranks[at / 64] + (self.words[at / 64] & ((1 << (at % 64)) - 1)).count_ones()
    }
}

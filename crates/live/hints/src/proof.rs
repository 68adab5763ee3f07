//! How far the hints of a command have proved right in this run.
//!
//! Pages of files have ranks: 0, 1, 2, ... in the order of the hints. Metadata has none, as references to it are not
//! visible. The command has referenced `n` of the pages. If it had skipped none, their ranks would be `0..n`, with a
//! mean of `(n - 1) / 2`. Hence `n / (2 * mean + 1)` is the share of the pages up to its position that it has
//! referenced: 1 if it has skipped none, a tenth if every tenth hint is right. A page from far ahead changes little.

use headstart_types::Block;

/// Share of right hints above which they prove anything.
const RIGHT_MIN: f64 = 0.75;
/// Share of the pages after which there is nothing more to prove. A tenth of the hints that is right at first proves
/// less than half.
const ENOUGH: f64 = 0.25;

/// The hinted references of a command.
#[derive(Debug)]
pub struct Proof {
    /// By block: its rank; `None` for metadata.
    ranks: Vec<Option<u32>>,
    pages: u32,
    seen: u64,
    ranks_seen: u64,
}

impl Proof {
    /// The state before the first reference; `is_metadata`: by block, whether it is metadata.
    #[must_use]
    pub fn new(is_metadata: impl Iterator<Item = bool>) -> Self {
        let mut pages = 0;
        let mut next = || {
            pages += 1;
            pages - 1
        };
        let ranks = is_metadata.map(|is_metadata| (!is_metadata).then(&mut next)).collect();
        Self { ranks, pages, seen: 0, ranks_seen: 0 }
    }

    /// The command has referenced `block` for the first time.
    pub fn referenced(&mut self, block: Block) {
        if let Some(rank) = self.ranks[block.index()] {
            self.seen += 1;
            self.ranks_seen += u64::from(rank);
        }
    }

    /// From 0, nothing proved, to 1, enough proved.
    #[must_use]
    pub fn part(&self) -> f64 {
        let (seen, ranks) = (self.seen as f64, self.ranks_seen as f64);
        let right = seen * seen / (2.0 * ranks + seen).max(1.0);
        if right < RIGHT_MIN {
            return 0.0;
        }
        (seen / (f64::from(self.pages) * ENOUGH)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proof from `blocks` of 1,000 blocks, every tenth of which is metadata.
    fn part(blocks: impl Iterator<Item = u32>) -> f64 {
        let mut proof = Proof::new((0..1000).map(|block| block % 10 == 9));
        blocks.for_each(|block| proof.referenced(Block(block)));
        proof.part()
    }

    #[test]
    fn a_quarter_in_order_proves_enough_by_hand() {
        assert!(part(0..0).abs() < 1e-9);
        // 90 pages of 900; a quarter is 225.
        assert!((part(0..100) - 90.0 / 225.0).abs() < 1e-9);
        assert!((part(0..250) - 1.0).abs() < 1e-9 && (part(0..1000) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_left_out_proves_nothing() {
        assert!(part((0..1000).step_by(10)).abs() < 1e-9);
        assert!(part((0..1000).step_by(2)).abs() < 1e-9);
        assert!(part(500..1000).abs() < 1e-9, "its place is not the start");
        // One in ten is skipped; one from the end comes early.
        assert!(part((0..500).filter(|block| block % 10 != 0)) > 0.99);
        assert!(part((0..250).chain([998])) > 0.99);
    }
}

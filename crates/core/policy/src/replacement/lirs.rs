//! LIRS: blocks that are used again soon after their last use stay; recency only decides among the others.
//!
//! Source: S. Jiang and X. Zhang, "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy to Improve
//! Buffer Cache Performance", SIGMETRICS 2002, section 3.3 and Figure 2. Checked against `lirs.c` of 15 November 2002,
//! the authors' program: the same misses on all of their traces that were available. The paper's figures are curves,
//! and were not compared.
//!
//! ```text
//! S: blocks by their last reference; its bottom (front) is always LIR.  Q: the resident HIR blocks.
//! LIR block:          to the top of S; if it was the bottom, prune
//! HIR block in S:     to the top of S, becomes LIR, leaves Q; if there are more LIR blocks than frames for them,
//!                     the bottom of S becomes HIR at the back of Q; prune
//! HIR block not in S: to the top of S and to the back of Q
//! miss:               the front of Q is evicted; if it is in S, it stays there as a ghost. Then as above
//! prune:              HIR blocks at the bottom of S leave it, ghosts among them are forgotten
//! ```
//!
//! Consecutive references of one block count as one reference, as in that program. While there are fewer LIR blocks
//! than frames for them, a referenced HIR block becomes LIR, which at first fills the cache with LIR blocks. 1 % of the
//! frames are for HIR blocks, at least 2. Differences: S records references only, so a block that arrives ahead of its
//! reference is in Q only, or becomes a resident HIR block if its ghost is in S. If Q has no evictable block, the
//! lowest evictable LIR block is evicted. `ghosts` bounds the ghosts, oldest eviction first; that program bounds S
//! instead, at 2500 caches. By default neither is bounded.
//!
//! Cost: constant per event, amortised (each block pruned was pushed); 16 bytes for each block of S and of Q, 8 per
//! block of the universe; unbounded, S can grow to all blocks of the trace. Not for workloads where the newest blocks
//! are the best: a block must be used twice while it is in Q or its ghost in S before it stays.

use headstart_types::{keys, Block, KeyTable, Outcome, Position, TypedKeys};

use super::GHOSTS_MAX;
use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "lirs",
    summary: "keep blocks that were used twice at a short distance; recency decides among the others",
    source: "Jiang and Zhang, SIGMETRICS 2002, section 3.3",
    hinted: false,
    keys: KeyTable::of::<LirsKeys>(),
    build: &|keys, context| Ok(Box::new(make(keys, context))),
    join: &|keys, context, beside| Ok(beside.join(make(keys, context), context.frames)),
};

keys! {
    /// Keys of `lirs`.
    pub struct LirsKeys {
        /// Size of the part for HIR blocks, as a share of the cache's blocks. Rounded down, at least two blocks.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub hir: f64 = 0.01,
        /// Maximum number of non-resident blocks that are remembered, as a multiple of the cache's blocks. 0: no bound.
        #[schemars(range(min = 0.0, max = GHOSTS_MAX))]
        pub ghosts: f64 = 0.0,
    }
}

fn make(keys: &TypedKeys, context: &Context) -> Lirs {
    let keys: &LirsKeys = keys.get();
    let frames = context.frames as usize;
    // At least 2 as in the authors' program, but with two frames one is left for a LIR block.
    let hir = context.share(keys.hir).max(2).min(frames.saturating_sub(1).max(1));
    let ghosts = context.share(keys.ghosts);
    let bound = (keys.ghosts > 0.0).then_some(ghosts);
    Lirs::new(frames, hir, bound, &context.initial, context.disk_of.len())
}

/// The lists of `hir`; a block of S that is in none of them is LIR.
const Q: usize = 0;
/// Not resident, but in S.
const GHOSTS: usize = 1;
/// In flight; was a ghost in S when the fetch was issued.
const RETURNING: usize = 2;

/// The LIRS policy.
#[derive(Debug)]
pub struct Lirs {
    /// S; its front is the bottom.
    stack: Lists<1>,
    /// HIR blocks; a HIR block is always in one of these lists.
    hir: Lists<3>,
    /// Number of LIR blocks, all of them resident and in S.
    lir: usize,
    /// Number of frames for LIR blocks.
    lir_max: usize,
    ghosts_max: usize,
}

impl Lirs {
    /// A cache of `frames` frames, `hir` of them for HIR blocks, that holds `initial`, oldest first, each referenced
    /// once. At most `ghosts_max` non-resident blocks are remembered; `None`: no bound.
    #[must_use]
    pub fn new(frames: usize, hir: usize, ghosts_max: Option<usize>, initial: &[Block], blocks: usize) -> Self {
        let mut lirs = Self {
            stack: Lists::new(),
            hir: Lists::new(),
            lir: 0,
            lir_max: frames.saturating_sub(hir),
            ghosts_max: ghosts_max.unwrap_or(usize::MAX),
        };
        lirs.grow(blocks);
        for block in initial {
            lirs.inserted(*block);
            lirs.referenced(0, *block, Outcome::Miss);
        }
        lirs
    }

    fn is_lir(&self, block: Block) -> bool {
        self.hir.list_of(block).is_none()
    }

    /// Removes HIR blocks from the bottom of S.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.front(0) {
            match self.hir.list_of(bottom) {
                None => return,
                Some(Q) => {}
                Some(_) => {
                    self.hir.remove(bottom);
                }
            }
            self.stack.remove(bottom);
        }
    }

    /// Turns the bottom of S, a LIR block, into a HIR block.
    fn demote_bottom(&mut self) {
        if let Some(bottom) = self.stack.pop_front(0) {
            self.hir.push_back(Q, bottom);
            self.lir -= 1;
            self.prune();
        }
    }

    /// Removes a LIR block from the cache.
    fn remove_lir(&mut self, block: Block) {
        self.stack.remove(block);
        self.lir -= 1;
        self.prune();
    }

    /// Evicts the HIR block `victim`.
    fn evict_hir(&mut self, victim: Block) {
        if self.stack.list_of(victim).is_none() {
            self.hir.remove(victim);
            return;
        }
        self.hir.move_to_back(GHOSTS, victim);
        if self.hir.len(GHOSTS) > self.ghosts_max {
            if let Some(oldest) = self.hir.pop_front(GHOSTS) {
                self.stack.remove(oldest);
            }
        }
    }
}

impl Replacement for Lirs {
    fn grow(&mut self, blocks: usize) {
        self.stack.grow(blocks);
        self.hir.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.stack.warm(blocks);
        self.hir.warm(blocks);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        let may_go = |block: &Block| view.state(*block).is_evictable();
        let from_q = self.hir.iter(Q).find(may_go);
        let victim = from_q.or_else(|| self.stack.iter(0).find(|block| self.is_lir(*block) && may_go(block)))?;
        if self.hir.list_of(incoming) == Some(GHOSTS) {
            self.hir.move_to_back(RETURNING, incoming);
        }
        match from_q {
            Some(_) => self.evict_hir(victim),
            None => self.remove_lir(victim),
        }
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        self.hir.move_to_back(Q, block);
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        if self.stack.back(0) == Some(block) {
            return;
        }
        let in_stack = self.stack.list_of(block).is_some();
        if self.is_lir(block) {
            let was_bottom = self.stack.front(0) == Some(block);
            self.stack.move_to_back(0, block);
            if was_bottom {
                self.prune();
            }
            return;
        }
        self.stack.move_to_back(0, block);
        if in_stack || self.lir < self.lir_max {
            self.hir.remove(block);
            self.lir += 1;
            if self.lir > self.lir_max {
                self.demote_bottom();
            }
        } else {
            self.hir.move_to_back(Q, block);
        }
        if self.lir == 0 {
            self.prune();
        }
    }

    fn removed(&mut self, block: Block) {
        if self.is_lir(block) {
            self.remove_lir(block);
        } else {
            self.hir.remove(block);
            self.stack.remove(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::by_hand::outcomes;

    fn lirs() -> Lirs {
        Lirs::new(3, 1, None, &[], 26)
    }

    #[test]
    fn ghosts_in_the_stack_become_lir() {
        // 3 frames, 1 for HIR. a, b are LIR; c: S = a b c, Q = c. a hits: S = b c a. d: c leaves Q, its ghost stays;
        // S = b c a d, Q = d. c: d leaves; c is in S: LIR, and S's bottom b goes to Q: S = a d c. e: b leaves,
        // forgotten: S = a d c e. b: e leaves: S = a d c e b, Q = b. a hits, and d, at the bottom, is pruned:
        // S = c e b a. d: new, b leaves. c hits.
        assert_eq!(outcomes(lirs(), 3, "abcadcebadc"), "MMMHMMMMHMH");
    }

    #[test]
    fn a_loop_keeps_all_but_the_hir_frames() {
        // 4 blocks in 3 frames, where LRU would miss always: a, b stay, c and d take turns.
        assert_eq!(outcomes(lirs(), 3, "abcdabcdabcd"), "MMMMHHMMHHMM");
    }

    #[test]
    fn an_arrival_is_no_reference() {
        // d arrives ahead: in Q only. Its first reference puts it on S, no more: c takes its frame, e c's; d's ghost
        // becomes LIR. The second one, after a's, makes it LIR in place of b: e and f take b's frame.
        assert_eq!(outcomes(lirs(), 3, "ab +d c d e a b d"), "MMMMMHHM");
        assert_eq!(outcomes(lirs(), 3, "ab +d d a d e f d"), "MMHHHMMH");
    }

    #[test]
    fn a_block_taken_out_frees_a_lir_frame() {
        // a is taken out; c, then in Q, is referenced: there is a LIR frame for it. d and e use the HIR frame.
        assert_eq!(outcomes(lirs(), 3, "abc -a b c d e c b"), "MMMHHMMHH");
    }

    #[test]
    fn two_references_in_a_row_are_one() {
        // c c does not make c LIR: d takes its frame. c a c does: d takes b's.
        assert_eq!(outcomes(lirs(), 3, "abccdc"), "MMMHMM");
        assert_eq!(outcomes(lirs(), 3, "abcacdc"), "MMMHHMH");
    }

    #[test]
    fn a_bound_forgets_the_oldest_ghost() {
        // c, d, e leave one by one; with one ghost only e is remembered when c comes back.
        let string = "ab c d e f c e";
        // Without a bound c becomes LIR in place of a, whose turn in Q ends with e's miss.
        assert_eq!(outcomes(lirs(), 3, &format!("{string} a")), "MMMMMMMMM");
        assert_eq!(outcomes(Lirs::new(3, 1, Some(1), &[], 26), 3, &format!("{string} a")), "MMMMMMMMH");
    }
}

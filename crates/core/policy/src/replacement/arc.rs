//! ARC: two recency lists, one for blocks seen once and one for blocks seen again, with an adaptive target.
//!
//! Source: N. Megiddo and D. S. Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, Figure 4.
//! Checked against the miss counts of an independent program on a block trace and on a buffer-cache trace, exactly, and
//! of libCacheSim 0.3.5 on OLTP of the paper's authors; the paper's own text and tables were not available.
//!
//! ```text
//! hit in T1 or T2:    move to the back of T2
//! miss, in B1:        target = min(c, target + max(1, |B2|/|B1|)), replace, insert into T2
//! miss, in B2:        target = max(0, target - max(1, |B1|/|B2|)), replace, insert into T2
//! miss, elsewhere:    trim B1 or B2 so that |T1|+|B1| <= c and all <= 2c, replace, insert into T1
//! replace:            the front of T1 (to B1) if |T1| > target, or = target on a B2 hit; else of T2 (to B2)
//! ```
//!
//! Differences: the paper has no time and no read-ahead. Here the victim is evicted and the target adapts when the
//! fetch is issued. The block enters T1 when it arrives and, if it was in B1 or B2, moves on to T2 with its first
//! reference (see [`super`]). The first reference of a prefetched block that was in neither makes it the newest of T1.
//! If the preferred list has no evictable block (all are pinned), the other one supplies the victim. The target is a
//! fraction, as in the paper: a double that is only divided, added, subtracted and compared, which IEEE 754 defines to
//! the last bit, so it is the same on every machine.
//!
//! Cost: constant per event; 16 bytes per listed block (up to twice as many as frames), 4 per block of the universe.
//! Not for a loop slightly longer than the cache, where it keeps no more than LRU does (`lirs`, `mru`).

use headstart_types::{Block, KeyTable, Outcome, Position};

use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "arc",
    summary: "balance recency and frequency, guided by blocks that were evicted too soon",
    source: "Megiddo and Modha, FAST 2003",
    hinted: false,
    keys: KeyTable::NONE,
    build: &|_, context| Ok(Box::new(make(context))),
    join: &|_, context, beside| Ok(beside.join(make(context), context.frames)),
};

fn make(context: &Context) -> Arc {
    Arc::new(context.frames, &context.initial, context.disk_of.len())
}

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;
/// In flight; was in a ghost list when the fetch was issued.
const RETURNING: usize = 4;

/// Tags: `SEEN` has been referenced since it arrived; the others have not: `NEW` was in no list, `FROM_B1` and
/// `FROM_B2` were ghosts.
const SEEN: u16 = 0;
const NEW: u16 = 1;
const FROM_B1: u16 = 2;
const FROM_B2: u16 = 3;

/// The ARC policy.
#[derive(Debug)]
pub struct Arc {
    lists: Lists<5>,
    frames: usize,
    /// The paper's p: the desired size of T1 in frames, 0 to `frames`; a fraction.
    target: f64,
}

impl Arc {
    /// A cache of `frames` frames that holds `initial`, oldest first, each seen once.
    #[must_use]
    pub fn new(frames: u32, initial: &[Block], blocks: usize) -> Self {
        let mut arc = Self { lists: Lists::new(), frames: frames as usize, target: 0.0 };
        arc.grow(blocks);
        initial.iter().for_each(|block| arc.lists.push_back(T1, *block));
        arc
    }

    /// The oldest evictable block of `list`.
    fn oldest(&self, list: usize, view: &View<'_>) -> Option<Block> {
        self.lists.iter(list).find(|block| view.state(*block).is_evictable())
    }

    /// The block that the paper's REPLACE evicts.
    fn replace(&self, target: f64, in_b2: bool, view: &View<'_>) -> Option<Block> {
        let t1 = self.lists.len(T1) as f64;
        let from_t1 = t1 > 0.0 && (t1 > target || (in_b2 && t1 >= target));
        let order = if from_t1 { [T1, T2] } else { [T2, T1] };
        order.into_iter().find_map(|list| self.oldest(list, view))
    }

    /// Moves a victim to a ghost list; a block that was never referenced returns to where it came from.
    fn remember(&mut self, victim: Block) {
        let ghost = match self.lists.find(victim) {
            Some((T2, _)) | Some((_, FROM_B2)) => B2,
            Some((_, NEW)) => {
                self.lists.remove(victim);
                return;
            }
            _ => B1,
        };
        *self.lists.tag(victim) = SEEN;
        self.lists.move_to_back(ghost, victim);
    }

    /// Cases II and III of the paper: `incoming` is in a ghost list.
    fn make_room_for_ghost(&mut self, incoming: Block, from: usize, view: &View<'_>) -> Option<Block> {
        // The caller found `incoming` in the list used as divisor, so that list is not empty.
        let (b1, b2) = (self.lists.len(B1) as f64, self.lists.len(B2) as f64);
        let (target, tag) = match from {
            B1 => ((self.target + (b2 / b1).max(1.0)).min(self.frames as f64), FROM_B1),
            _ => ((self.target - (b1 / b2).max(1.0)).max(0.0), FROM_B2),
        };
        let victim = self.replace(target, from == B2, view)?;
        self.target = target;
        *self.lists.tag(incoming) = tag;
        self.lists.move_to_back(RETURNING, incoming);
        self.remember(victim);
        Some(victim)
    }

    /// Case IV of the paper: `incoming` is in no list.
    fn make_room_for_new(&mut self, view: &View<'_>) -> Option<Block> {
        let l1 = self.lists.len(T1) + self.lists.len(B1);
        let all = l1 + self.lists.len(T2) + self.lists.len(B2);
        if l1 >= self.frames && self.lists.len(B1) == 0 {
            if let Some(victim) = self.oldest(T1, view) {
                self.lists.remove(victim);
                return Some(victim);
            }
        }
        let victim = self.replace(self.target, false, view)?;
        if self.lists.find(victim) == Some((T1, NEW)) {
            // It leaves no ghost: `incoming` takes its place in L1.
        } else if l1 >= self.frames {
            self.lists.pop_front(B1);
        } else if all >= 2 * self.frames {
            self.lists.pop_front(B2);
        }
        self.remember(victim);
        Some(victim)
    }
}

impl Replacement for Arc {
    fn grow(&mut self, blocks: usize) {
        self.lists.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.lists.warm(blocks);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        match self.lists.list_of(incoming) {
            Some(ghost @ (B1 | B2)) => self.make_room_for_ghost(incoming, ghost, view),
            _ => self.make_room_for_new(view),
        }
    }

    fn inserted(&mut self, block: Block) {
        let tag = match self.lists.find(block) {
            None => NEW,
            Some((B1, _)) => FROM_B1,
            Some((B2, _)) => FROM_B2,
            Some((_, tag)) => tag,
        };
        self.lists.move_to_back(T1, block);
        *self.lists.tag(block) = tag;
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        let tag = std::mem::replace(self.lists.tag(block), SEEN);
        self.lists.move_to_back(if tag == NEW { T1 } else { T2 }, block);
    }

    fn removed(&mut self, block: Block) {
        self.lists.remove(block);
    }
}

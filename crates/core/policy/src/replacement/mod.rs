//! Replacement policies choose the block to evict when a frame is needed.
//!
//! An arrival is not a reference. A prefetched block enters where new blocks enter. Its first reference counts as the
//! one that would have missed without read-ahead, so that a policy distinguishes blocks seen once from blocks seen
//! again in the same way with and without read-ahead. A block that is evicted before its first reference leaves as it
//! came: unknown, or remembered if the policy remembered it before. Under demand fetching all of this reduces to the
//! papers' rules.

mod arc;
mod clock;
mod fifo;
mod lfu;
mod lirs;
mod lru;
mod min;
mod mru;
mod ru_set;
mod s3_fifo;
mod sieve;
mod two_q;

use headstart_types::{Block, Outcome, Position};

pub use arc::Arc;
pub use clock::Clock;
pub use fifo::Fifo;
pub use lfu::Lfu;
pub use lirs::Lirs;
pub use lru::Lru;
pub use min::Min;
pub use mru::Mru;
pub use ru_set::{RuSet, RuSetKeys};
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use two_q::TwoQ;

use crate::lists::Lists;
use crate::row::ReplacementRow;
use crate::View;

/// All replacement policies.
pub static ROWS: &[&ReplacementRow] = &[
    &lru::ROW,
    &fifo::ROW,
    &arc::ROW,
    &min::ROW,
    &two_q::ROW,
    &sieve::ROW,
    &s3_fifo::ROW,
    &lirs::ROW,
    &mru::ROW,
    &clock::ROW,
    &lfu::ROW,
    &ru_set::ROW,
];

/// Maximum number of ghosts, as a multiple of the frames.
const GHOSTS_MAX: f64 = 1000.0;

/// A replacement policy. It tracks resident blocks only; blocks in flight cannot be victims.
pub trait Replacement: Send {
    /// Announces that block numbers are below `blocks` from now on.
    fn grow(&mut self, blocks: usize);

    /// See [`Policy::warm`](crate::Policy::warm).
    fn warm(&self, _blocks: &[Block]) {}

    /// Chooses the block to evict for `incoming` and forgets it as a resident. Blocks that are not evictable are
    /// skipped and keep their place.
    ///
    /// The caller guarantees that no frame is free and that `incoming` is absent, and fetches it in place of the
    /// victim. `None`: no resident block is evictable, because all frames are in flight or pinned; nothing has changed,
    /// and the caller may or may not ask again.
    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block>;

    /// `block` has arrived in the cache: on demand, ahead of demand, or from another level.
    fn inserted(&mut self, block: Block);

    /// The resident `block` has been delivered to the process as reference `position`.
    fn referenced(&mut self, position: Position, block: Block, outcome: Outcome);

    /// [`referenced`](Self::referenced), for policies that distinguish processes.
    fn referenced_by(&mut self, _process: u32, position: Position, block: Block, outcome: Outcome) {
        self.referenced(position, block, outcome);
    }

    /// `process` has requested `block`, which is about to be fetched or in flight. Only called for policies that
    /// [ask](crate::Policy::takes_requests) for whole requests.
    fn awaited_by(&mut self, _process: u32, _block: Block) {}

    /// The resident `block` leaves without [`victim`](Self::victim): a coordinator has removed it or evicts it first.
    /// The policy forgets it entirely, including its history: its removal says nothing about the cache's size.
    fn removed(&mut self, block: Block);
}

/// The first evictable block from the front of `list` that `spare` does not spare; `spare` is given the block's tag.
/// Spared blocks go to the back; blocks that are not evictable are skipped and stay where they are.
///
/// The caller guarantees that `spare` spares each block only a bounded number of times.
fn second_chance<const LISTS: usize>(
    lists: &mut Lists<LISTS>,
    list: usize,
    view: &View<'_>,
    spare: impl Fn(&mut u16) -> bool,
) -> Option<Block> {
    let mut at = lists.front(list);
    while let Some(block) = at {
        at = lists.after(block);
        if !view.state(block).is_evictable() {
            continue;
        }
        if !spare(lists.tag(block)) {
            return Some(block);
        }
        lists.move_to_back(list, block);
        // The last block is followed by itself.
        at = at.or(Some(block));
    }
    None
}

#[cfg(test)]
mod by_hand {
    use super::Replacement;
    use crate::{BlockState, View};
    use headstart_types::{Block, Outcome};

    const BLOCKS: usize = 26;

    /// A cache of `frames` frames without time: `M` (miss) or `H` (hit) for each reference of `text`, where each letter
    /// is a block; `+x` inserts x ahead of its reference, `-x` removes it.
    pub fn outcomes(mut replacement: impl Replacement, frames: usize, text: &str) -> String {
        let mut states = [BlockState::ABSENT; BLOCKS];
        let (mut found, mut sign) = (String::new(), ' ');
        replacement.grow(BLOCKS);
        for letter in text.chars().filter(|letter| *letter != ' ') {
            if letter == '+' || letter == '-' {
                sign = letter;
                continue;
            }
            let block = Block(letter as u32 - 'a' as u32);
            let held = states[block.index()].is_resident();
            if sign == '-' {
                replacement.removed(block);
                states[block.index()] = BlockState::ABSENT;
            } else if !held {
                if states.iter().filter(|state| state.is_resident()).count() == frames {
                    let view = View {
                        cursor: 0,
                        free: 0,
                        blocks: &states,
                        outstanding: &[],
                        disk_of: &[],
                        space: &crate::NoSpace,
                        asked: &[],
                        found: &[],
                    };
                    let victim = replacement.victim(block, &view).expect("all are evictable");
                    states[victim.index()] = BlockState::ABSENT;
                }
                states[block.index()] = BlockState::resident();
                replacement.inserted(block);
            }
            if sign == ' ' {
                replacement.referenced(0, block, if held { Outcome::HitReady } else { Outcome::Miss });
                found.push(if held { 'H' } else { 'M' });
            }
            sign = ' ';
        }
        found
    }
}

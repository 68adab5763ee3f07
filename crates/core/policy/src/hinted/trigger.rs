//! Forestall's test for one disk: is i * F' >= distance of the i-th missing block, for some i?
//!
//! Counting through the look-ahead at every reference would cost its length each time. Instead, a count that predicts
//! no stall also finds the first cursor at which one could be predicted, and the answer stays "no" until then. Changes
//! in between are accounted for:
//! - F' grows: the moment is computed for a larger F' and holds as long as F' stays below that. The margin adapts: a
//!   wide one lasts when no stall is near, a narrow one when the rule is close to firing.
//! - A block leaves the set: that only postpones the moment.
//! - A block joins: it moves the entries behind it up by one, which is F' references, and may fire itself. Victims are
//!   far away, so entries are kept in two parts, near and far, and entries before the nearest joined block are not
//!   affected.
//!
//! A count proceeds by words of 64 references of the disk: within a word of the bitmap, the number of set bits bounds i
//! and the first bit bounds the distance.

use headstart_types::Position;

use super::Knowledge;

/// The widest margin for growth of F', relative to F'. F' varies by a few percent with each think time.
const MARGIN_MAX: f64 = 0.25;
/// The narrowest margin.
const MARGIN_MIN: f64 = 1e-3;
/// How far beyond the cursor a count may promise "no", as a share of the look-ahead.
const CLAIM: f64 = 0.25;

/// The F' at which the first missing block within any look-ahead fires; larger values make no difference.
const RATIO_MAX: f64 = u32::MAX as f64;

/// For one disk, remembers until when no stall can be predicted.
#[derive(Debug, Clone)]
pub(super) struct Trigger {
    /// How much F' may grow before a new count is needed, relative to F'.
    margin: f64,
    /// No entry up to `split` fires before the cursor reaches this (a real number of references).
    near: f64,
    /// No entry beyond `split` fires before the cursor reaches this.
    far: f64,
    /// The position that separates near entries from far ones.
    split: f64,
    /// The F' for which `near` and `far` hold; zero before the first count.
    ratio: f64,
    /// Number of missing blocks counted, an upper bound for i.
    counted: f64,
    /// Number of blocks that have joined since.
    joined: f64,
    /// Position of the nearest joined block.
    nearest: f64,
}

impl Default for Trigger {
    fn default() -> Self {
        Self {
            margin: MARGIN_MAX,
            near: 0.0,
            far: 0.0,
            split: 0.0,
            ratio: 0.0,
            counted: 0.0,
            joined: 0.0,
            nearest: 0.0,
        }
    }
}

impl Trigger {
    /// Whether the rule holds for some missing block of `disk` within `lookahead` references of `cursor`.
    #[inline]
    pub fn fires(
        &mut self,
        disk: usize,
        ratio: f64,
        lookahead: Position,
        cursor: Position,
        knowledge: &mut Knowledge,
    ) -> bool {
        let ratio = ratio.min(RATIO_MAX);
        let losses = knowledge.take_losses(disk);
        if losses.count > 0 {
            self.joined += f64::from(losses.count);
            self.nearest = self.nearest.min(f64::from(losses.nearest));
        }
        let within_margin = ratio <= self.ratio;
        if within_margin && f64::from(cursor) < self.quiet_until(f64::from(lookahead)) {
            return false;
        }
        self.margin = if within_margin { self.margin / 2.0 } else { self.margin * 2.0 }.clamp(MARGIN_MIN, MARGIN_MAX);
        self.count(disk, ratio, lookahead, cursor, knowledge)
    }

    /// After a "no": the cursor until which, and the F' up to which, it stays "no" as long as no block joins.
    #[inline]
    pub fn quiet(&self, lookahead: Position) -> (f64, f64) {
        (self.quiet_until(f64::from(lookahead)), self.ratio)
    }

    /// The remembered moment, brought forward by the blocks that have joined since.
    #[inline]
    fn quiet_until(&self, lookahead: f64) -> f64 {
        let shift = self.joined * self.ratio;
        let near = if self.nearest > self.split { self.near } else { self.near - shift };
        let joined = moment(self.nearest, (self.counted + self.joined) * self.ratio, lookahead);
        near.min(self.far - shift).min(joined)
    }

    /// Counts through the missing blocks; on "no", remembers the result.
    fn count(&mut self, disk: usize, ratio: f64, lookahead: Position, cursor: Position, knowledge: &Knowledge) -> bool {
        let missing = knowledge.missing();
        let (cursor, lookahead) = (f64::from(cursor), f64::from(lookahead));
        // Nothing is promised beyond this cursor, so entries that cannot fire before it need no close look.
        let claim = cursor + lookahead * CLAIM;
        let mut next = Self {
            margin: self.margin,
            near: claim,
            far: claim,
            split: cursor + lookahead / 2.0,
            ratio: ratio * (1.0 + self.margin),
            counted: 0.0,
            joined: 0.0,
            nearest: f64::INFINITY,
        };
        self.ratio = 0.0;
        let Some((slots, set)) = missing.tail(disk) else {
            *self = next;
            return false;
        };
        let mut next_slot = Some(slots.start);
        while let Some(slot) = next_slot.filter(|slot| *slot < slots.end) {
            // The rest of this slot's word that belongs to the disk. Its first bit is set.
            let mut word = set.word(slot as usize / 64) >> (slot % 64);
            let width = (64 - slot % 64).min(slots.end - slot);
            if width < 64 {
                word &= (1 << width) - 1;
            }
            let first = f64::from(missing.position(slot));
            if first > claim + lookahead {
                break;
            }
            let count = f64::from(word.count_ones());
            let bound = moment(first, (next.counted + count) * ratio.max(next.ratio), lookahead);
            if bound < claim || bound <= cursor {
                // The bound for the whole word is not sufficient: examine its entries.
                let mut rest = word;
                for entry in 1..=word.count_ones() {
                    let index = next.counted + f64::from(entry);
                    let position = f64::from(missing.position(slot + rest.trailing_zeros()));
                    rest &= rest - 1;
                    if moment(position, index * ratio, lookahead) <= cursor {
                        return true;
                    }
                    let part = if position <= next.split { &mut next.near } else { &mut next.far };
                    *part = part.min(moment(position, index * next.ratio, lookahead));
                }
            }
            next.counted += count;
            next_slot = set.next(slot + width);
        }
        *self = next;
        false
    }
}

/// The cursor from which an entry at `position` fires: within the look-ahead, and at most `reach` = i * F' away.
#[inline]
fn moment(position: f64, reach: f64, lookahead: f64) -> f64 {
    position - reach.min(lookahead)
}

//! Forestall's question for one disk: is i * F' >= distance of the i-th missing block, for some i?
//!
//! Counting through the look-ahead at every reference would cost its length each time. Instead a count that
//! finds no stall also finds the first cursor at which one could be foreseen if nothing changed, and the answer
//! stays "no" until then. What changes meanwhile is bounded: blocks that leave the set only push the moment back;
//! a growing F' brings entry i forward by i times the growth; each block that joins the set moves the entries
//! behind it up by one, that is F' references, and may fire itself. A count goes 64 references of the disk at a time: within a word of
//! the bitmap, the number of set bits bounds i and the first one bounds the distance.

use headstart_types::Position;

use super::Knowledge;

/// Remembers, for one disk, until when no stall can be foreseen.
#[derive(Debug, Clone, Default)]
pub(super) struct Trigger {
    /// No entry fires before the cursor reaches this, if nothing changes (a real number of references).
    quiet_until: f64,
    /// F' of that count.
    ratio: f64,
    /// Missing blocks that were counted, a bound on i.
    counted: f64,
    /// Blocks that have joined since.
    joined: f64,
    /// Position of the nearest of them.
    nearest: f64,
    /// Whether a count has been made.
    valid: bool,
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
        let losses = knowledge.take_losses(disk);
        self.joined += f64::from(losses.count);
        self.nearest = self.nearest.min(f64::from(losses.nearest));
        if self.valid && f64::from(cursor) < self.quiet_until(ratio, f64::from(lookahead)) {
            return false;
        }
        self.valid = false;
        self.count(disk, ratio, lookahead, cursor, knowledge)
    }

    /// The remembered moment, brought forward by what has changed since.
    #[inline]
    fn quiet_until(&self, ratio: f64, lookahead: f64) -> f64 {
        let growth = (ratio - self.ratio).max(0.0);
        let ratio = ratio.max(self.ratio);
        let counted = self.quiet_until - (self.counted + self.joined) * growth - self.joined * ratio;
        counted.min(moment(self.nearest, (self.counted + self.joined) * ratio, lookahead))
    }

    /// Goes through the missing blocks; on "no", remembers the outcome.
    fn count(&mut self, disk: usize, ratio: f64, lookahead: Position, cursor: Position, knowledge: &Knowledge) -> bool {
        let missing = knowledge.missing();
        let (cursor, lookahead) = (f64::from(cursor), f64::from(lookahead));
        // Entries up to twice the look-ahead away can come within it before the count is made again.
        let mut quiet_until = cursor + lookahead;
        let mut index = 0.0;
        if let Some((slots, set)) = missing.tail(disk) {
            let mut slot = slots.start;
            while slot < slots.end {
                let mut word = set.word(slot as usize / 64) >> (slot % 64);
                let width = 64 - slot % 64;
                if slots.end - slot < width {
                    word &= (1 << (slots.end - slot)) - 1;
                }
                if word != 0 {
                    let first = f64::from(missing.position(slot + word.trailing_zeros()));
                    if first > cursor + 2.0 * lookahead {
                        break;
                    }
                    let count = f64::from(word.count_ones());
                    if moment(first, (index + count) * ratio, lookahead) <= quiet_until {
                        // The bound of the whole word is not enough: look at its entries.
                        let mut rest = word;
                        for entry in 1..=word.count_ones() {
                            let position = f64::from(missing.position(slot + rest.trailing_zeros()));
                            rest &= rest - 1;
                            let at = moment(position, (index + f64::from(entry)) * ratio, lookahead);
                            if at <= cursor {
                                return true;
                            }
                            quiet_until = quiet_until.min(at);
                        }
                    }
                    index += count;
                }
                slot += width;
            }
        }
        *self =
            Self { quiet_until, ratio, counted: index, joined: 0.0, nearest: f64::INFINITY, valid: ratio.is_finite() };
        false
    }
}

/// The cursor from which an entry at `position` fires: within the look-ahead, and at most `reach` = i * F' away.
#[inline]
fn moment(position: f64, reach: f64, lookahead: f64) -> f64 {
    position - reach.min(lookahead)
}

//! What the processes of a parallel program are going to read, as far as that is known beforehand.

use std::ops::Range;
use std::sync::Arc;

use crate::{Block, Position};

/// Where processes meet, as far as what they read says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Meetings {
    /// At the ends of their strings, or only the run can tell.
    #[default]
    AtEnd,
    /// After every so many references of a string, at least 1.
    Every(u32),
    /// After each portion.
    Portion,
}

/// The reference strings of a parallel program (kotz-ellis, section 5.2). Each process reads one of them; where several
/// read the same one they share it: each process takes its next reference, so that it is not known in advance which reads what.
///
/// All slices are as the field's text says; memory is 4 bytes a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Every reference, one string after another: the position of a reference is its index.
    pub blocks: Arc<[Block]>,
    /// Where each string ends (exclusive), ascending; the last is the number of references.
    pub string_ends: Arc<[Position]>,
    /// Where each sequential portion ends (exclusive), ascending; the end of every string is one.
    pub portion_ends: Arc<[Position]>,
    /// By process: the string that it reads.
    pub string_of: Arc<[u32]>,
    /// Portions are of regular length and spacing, so that the next one is known before it has begun. If not, nothing
    /// beyond the portion under way may be used until its first reference has been made.
    pub regular: bool,
    /// Where the readers of a string meet others.
    pub meetings: Meetings,
}

impl Program {
    /// The positions of string `string`.
    #[inline]
    #[must_use]
    pub fn string(&self, string: u32) -> Range<Position> {
        let begin = match string {
            0 => 0,
            _ => self.string_ends[string as usize - 1],
        };
        begin..self.string_ends[string as usize]
    }

    /// The string that position `at` is in.
    #[must_use]
    pub fn string_at(&self, at: Position) -> u32 {
        self.string_ends.partition_point(|end| *end <= at) as u32
    }

    /// Where the portion that position `at` is in ends.
    #[must_use]
    pub fn portion_end(&self, at: Position) -> Position {
        self.portion_ends[self.portion_ends.partition_point(|end| *end <= at)]
    }

    /// Where string `string` meets others when its references before `cursor` have been made (exclusive): at `cursor` itself where
    /// these end there, but not before the first reference.
    #[must_use]
    pub fn meeting(&self, string: u32, cursor: Position) -> Position {
        let Range { start, end } = self.string(string);
        let last = cursor.max(start + 1) - 1;
        match self.meetings {
            Meetings::Every(every) => start.saturating_add(((last - start) / every + 1).saturating_mul(every)).min(end),
            Meetings::Portion if last < end => self.portion_end(last),
            Meetings::Portion | Meetings::AtEnd => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_lie_in_strings_and_portions() {
        let program = Program {
            blocks: (0..7).map(Block).collect(),
            string_ends: [3, 7].into(),
            portion_ends: [2, 3, 6, 7].into(),
            string_of: [0, 1].into(),
            regular: true,
            meetings: Meetings::AtEnd,
        };
        assert_eq!((program.string(0), program.string(1)), (0..3, 3..7));
        assert_eq!([0, 2, 3, 6].map(|at| program.string_at(at)), [0, 0, 1, 1]);
        assert_eq!([0, 1, 2, 3, 5, 6].map(|at| program.portion_end(at)), [2, 2, 3, 6, 6, 7]);
        assert_eq!([3, 4, 7].map(|cursor| program.meeting(1, cursor)), [7, 7, 7]);
        let portions = Program { meetings: Meetings::Portion, ..program.clone() };
        assert_eq!([3, 4, 6, 7].map(|cursor| portions.meeting(1, cursor)), [6, 6, 6, 7]);
        let often = Program { meetings: Meetings::Every(2), ..program };
        // Of string 3..7: after 5 and 7; of string 0..3: after 2 and at its end.
        assert_eq!([3, 4, 5, 6, 7].map(|cursor| often.meeting(1, cursor)), [5, 5, 5, 7, 7]);
        assert_eq!([0, 2, 3].map(|cursor| often.meeting(0, cursor)), [2, 2, 3]);
    }
}

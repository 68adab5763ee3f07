//! The reference strings of a parallel program, as far as they are known before the run.

use std::ops::Range;
use std::sync::Arc;

use crate::{Block, Position};

/// Where processes synchronise, as far as the reference strings determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Meetings {
    /// At the ends of their strings, or at points known only during the run.
    #[default]
    AtEnd,
    /// After every `n` references of a string; at least 1.
    Every(u32),
    /// After each portion.
    Portion,
}

/// The reference strings of a parallel program (kotz-ellis, section 5.2). Each process reads one string. Processes that
/// share a string each take its next reference, so which process reads which reference is not known in advance.
///
/// Memory: 4 bytes per reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// All references, one string after another: a reference's position is its index here.
    pub blocks: Arc<[Block]>,
    /// The end (exclusive) of each string, ascending; the last equals the number of references.
    pub string_ends: Arc<[Position]>,
    /// The end (exclusive) of each sequential portion, ascending. Every string's end is also a portion's end.
    pub portion_ends: Arc<[Position]>,
    /// For each process, the string that it reads.
    pub string_of: Arc<[u32]>,
    /// Whether portions have regular length and spacing, so that the next one is known before it begins. Otherwise
    /// nothing beyond the current portion may be used until the next portion's first reference has been made.
    pub regular: bool,
    /// Where the readers of a string synchronise with others.
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

    /// The string that contains position `at`.
    #[must_use]
    pub fn string_at(&self, at: Position) -> u32 {
        self.string_ends.partition_point(|end| *end <= at) as u32
    }

    /// The end (exclusive) of the portion that contains position `at`.
    #[must_use]
    pub fn portion_end(&self, at: Position) -> Position {
        self.portion_ends[self.portion_ends.partition_point(|end| *end <= at)]
    }

    /// Where string `string` synchronises next (exclusive) once its references before `cursor` have been made: at
    /// `cursor` itself if an interval ends there, except before the first reference.
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

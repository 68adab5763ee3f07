//! The reference strings of a parallel program and the processes that take their references (kotz-ellis, section 5.2).

use std::sync::Arc;

use headstart_types::{Position, Program};

/// The strings that processes read. Processes that share a string each take its next reference.
///
/// Cost: constant per reference taken, and logarithmic in the portions per portion.
#[derive(Debug, Clone)]
pub struct Strings {
    program: Arc<Program>,
    /// For each string: the next reference that no process has taken.
    next: Vec<Position>,
    /// For each string: the end of its current portion.
    portion_end: Vec<Position>,
    taken: u64,
}

impl Strings {
    /// All strings, at their starts.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        let count = program.string_ends.len() as u32;
        let next: Vec<Position> = (0..count).map(|string| program.string(string).start).collect();
        Self { portion_end: next.clone(), next, program, taken: 0 }
    }

    /// The program of the strings.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether any references are left for `process`.
    #[inline]
    #[must_use]
    pub fn has_more(&self, process: u32) -> bool {
        let string = self.program.string_of[process as usize] as usize;
        self.next[string] < self.program.string_ends[string]
    }

    /// Takes the next reference of the string of `process`, which must have one. Returns its position, and whether it
    /// ends a portion.
    #[inline]
    pub fn take(&mut self, process: u32) -> (Position, bool) {
        let string = self.program.string_of[process as usize] as usize;
        let at = self.next[string];
        debug_assert!(at < self.program.string_ends[string], "nothing is left for process {process}");
        if at >= self.portion_end[string] {
            self.portion_end[string] = self.program.portion_end(at);
        }
        self.next[string] = at + 1;
        self.taken += 1;
        (at, at + 1 == self.portion_end[string])
    }

    /// Number of references that `process` has left to take of its string, or of the string's current portion. 0 if
    /// processes share a string, because it is unknown which process takes them.
    #[inline]
    #[must_use]
    pub fn left(&self, process: u32, of_portion: bool) -> u32 {
        if self.program.string_ends.len() < self.program.string_of.len() {
            return 0;
        }
        let string = self.program.string_of[process as usize] as usize;
        let end = if of_portion { self.portion_end[string] } else { self.program.string_ends[string] };
        end - self.next[string]
    }

    /// Number of references taken from all strings.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::{Block, Meetings};

    #[test]
    fn whoever_comes_takes_the_next() {
        // A string of two portions that processes 0 and 1 share, and one of process 2.
        let program = Program {
            blocks: (0..5).map(Block).collect(),
            string_ends: [3, 5].into(),
            portion_ends: [2, 3, 5].into(),
            string_of: [0, 0, 1].into(),
            regular: true,
            meetings: Meetings::AtEnd,
        };
        let mut strings = Strings::new(Arc::new(program));
        assert_eq!([0, 2, 1].map(|process| strings.take(process)), [(0, false), (3, false), (1, true)]);
        assert_eq!(strings.take(0), (2, true));
        assert_eq!([0, 1, 2].map(|process| strings.has_more(process)), [false, false, true]);
        assert_eq!(strings.taken(), 4);
        assert_eq!(strings.left(2, false), 0, "it might be anybody's");
        let program = Program { string_of: [0, 1].into(), ..strings.program().clone() };
        let mut apart = Strings::new(Arc::new(program));
        apart.take(0);
        assert_eq!(
            [(0, false), (0, true), (1, false)].map(|(process, portion)| apart.left(process, portion)),
            [2, 1, 2]
        );
    }
}

//! Hints: the future references that an application has disclosed.

use std::sync::Arc;

use headstart_types::{Block, Position};

/// Which of the references are disclosed, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disclosure {
    /// All, before the first reference (kimbrel96: "full advance knowledge").
    All,
    /// At cursor p, the references `p..p + window`. Zero discloses nothing.
    Window(Position),
    /// Reference i if `disclosed[i]`; all of these before the first reference. As long as the reference string.
    Subset(Arc<[bool]>),
}

/// The reference string as hinted by the application, and the part of it that is disclosed.
///
/// Hints may be wrong: a hint stands for a position and may name another block than the one that is referenced there. A
/// policy notices at that reference. The hint is then dropped and stands for nothing any more; other hints of the
/// referenced block remain.
///
/// A policy must not act on an undisclosed reference; [`crate::hinted`] keeps that rule in one place.
#[derive(Debug, Clone)]
pub struct Hints {
    /// For each position: the block hinted there. Fewer than `NEVER` entries.
    pub blocks: Arc<[Block]>,
    /// Which of them may be known, and when.
    pub disclosure: Disclosure,
}

impl Hints {
    /// Hints that are all disclosed.
    #[must_use]
    pub fn all(blocks: Arc<[Block]>) -> Self {
        Self { blocks, disclosure: Disclosure::All }
    }

    /// Whether position `at` is disclosed at some time before the process reaches it.
    #[inline]
    #[must_use]
    pub fn is_disclosed(&self, at: Position) -> bool {
        match &self.disclosure {
            Disclosure::All => true,
            Disclosure::Window(window) => *window > 0,
            Disclosure::Subset(disclosed) => disclosed[at as usize],
        }
    }

    /// First position that is not visible at `cursor`.
    #[inline]
    #[must_use]
    pub fn horizon(&self, cursor: Position) -> Position {
        match self.disclosure {
            Disclosure::Window(window) => cursor.saturating_add(window).min(self.blocks.len() as Position),
            Disclosure::All | Disclosure::Subset(_) => self.blocks.len() as Position,
        }
    }
}

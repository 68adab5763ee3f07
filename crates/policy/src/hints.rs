//! Hints: what an application has disclosed about its future references.

use std::sync::Arc;

use headstart_types::{Block, Position};

/// Which of the references are disclosed, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disclosure {
    /// All of them, before the first (kimbrel96: "full advance knowledge").
    All,
    /// At cursor p, the references `p..p + window`. Zero discloses nothing.
    Window(Position),
    /// Reference i if `disclosed[i]`, all before the first. As long as the reference string.
    Subset(Arc<[bool]>),
}

/// The reference string as the application has described it, and the part of it that is disclosed.
///
/// What is said may be wrong: a hint stands for a position and may name another block than the one that is referenced
/// there. A policy finds out at that reference. The hint is then passed: it stands for nothing any more, and neither is
/// another hint of the referenced block used up.
///
/// A policy must not act on an undisclosed reference; [`crate::hinted`] keeps that in one place.
#[derive(Debug, Clone)]
pub struct Hints {
    /// By position: the block that is said to be referenced there. Fewer than `NEVER`.
    pub blocks: Arc<[Block]>,
    /// Which of them may be known.
    pub disclosure: Disclosure,
}

impl Hints {
    /// Everything is disclosed.
    #[must_use]
    pub fn all(blocks: Arc<[Block]>) -> Self {
        Self { blocks, disclosure: Disclosure::All }
    }

    /// Whether position `at` is ever disclosed before the process stands at it.
    #[inline]
    #[must_use]
    pub fn is_disclosed(&self, at: Position) -> bool {
        match &self.disclosure {
            Disclosure::All => true,
            Disclosure::Window(window) => *window > 0,
            Disclosure::Subset(disclosed) => disclosed[at as usize],
        }
    }

    /// First position that is not yet visible at `cursor`.
    #[inline]
    #[must_use]
    pub fn horizon(&self, cursor: Position) -> Position {
        match self.disclosure {
            Disclosure::Window(window) => cursor.saturating_add(window).min(self.blocks.len() as Position),
            Disclosure::All | Disclosure::Subset(_) => self.blocks.len() as Position,
        }
    }
}

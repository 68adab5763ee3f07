//! How the blocks of a request were found.

use headstart_types::Outcome;

/// How the demanded blocks of a request were found, and how many orders it caused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupCounts {
    /// Number of driver requests issued.
    pub issued: u32,
    /// Number of blocks that were resident.
    pub hits_ready: u32,
    /// Number of blocks that were in flight.
    pub hits_unready: u32,
    /// Number of blocks that were neither.
    pub misses: u32,
}

impl LookupCounts {
    /// Counts a block.
    #[inline]
    pub(super) fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::HitReady => self.hits_ready += 1,
            Outcome::HitUnready => self.hits_unready += 1,
            Outcome::Miss => self.misses += 1,
        }
    }

    /// Number of blocks looked up.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.hits_ready + self.hits_unready + self.misses
    }

    /// Whether any block is waited for. If not, the request is done.
    #[inline]
    #[must_use]
    pub fn waits(&self) -> bool {
        self.hits_unready + self.misses > 0
    }

    /// The worst outcome among the blocks.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match (self.misses, self.hits_unready) {
            (0, 0) => Outcome::HitReady,
            (0, _) => Outcome::HitUnready,
            _ => Outcome::Miss,
        }
    }
}

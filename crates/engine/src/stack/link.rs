//! The link between two levels: a cost for each request, and one for each page that it carries (zhang-pfc, section 4.1).

use headstart_types::Nanos;

/// Bytes of the page that a link's cost counts in.
const PAGE_BYTES: u64 = 4096;

/// What a transfer to the level above takes: `alpha` once, and `beta` for each page of 4 KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// For each request.
    pub alpha: Nanos,
    /// For each page.
    pub beta: Nanos,
}

impl Link {
    /// The cost of `blocks` blocks of `block_bytes`.
    #[must_use]
    pub fn cost(&self, blocks: usize, block_bytes: u64) -> Nanos {
        self.alpha + self.beta * (blocks as u64 * block_bytes).div_ceil(PAGE_BYTES)
    }
}

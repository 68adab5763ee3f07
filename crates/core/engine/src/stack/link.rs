//! The link between two levels: a cost per request, and a cost per page that it carries (zhang-pfc, section 4.1).

use headstart_types::Nanos;

/// Bytes per page in a link's cost.
const PAGE_BYTES: u64 = 4096;

/// The time of a transfer to the level above: `alpha` once, and `beta` per page of 4 KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// Time per request.
    pub alpha: Nanos,
    /// Time per page.
    pub beta: Nanos,
}

impl Link {
    /// The cost of `blocks` blocks of `block_bytes`.
    #[must_use]
    pub fn cost(&self, blocks: usize, block_bytes: u64) -> Nanos {
        self.alpha + self.beta * (blocks as u64 * block_bytes).div_ceil(PAGE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_4_kib_whatever_a_block_is() {
        let link = Link { alpha: Nanos(6_000), beta: Nanos(30) };
        // Three blocks of 8 KiB are six pages, nine of 1 KiB three, begun ones included.
        assert_eq!([link.cost(3, 8192), link.cost(9, 1024), link.cost(1, 512)], [6_180, 6_090, 6_030].map(Nanos));
    }
}

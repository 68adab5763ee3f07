//! Repeated scans from the first block to the last: the pattern of `synth`, `sequential` and `loop`.

use super::generator::Space;
use super::stream::Pattern;

/// Consecutive requests; the last one of a pass is shorter if the request size does not divide the blocks.
pub(super) struct Scan {
    space: Space,
    /// Block at which the next request starts.
    at: u64,
}

impl Scan {
    pub(super) fn new(space: Space) -> Self {
        Self { space, at: 0 }
    }

    /// Requests of one pass over the blocks.
    pub(super) fn pass_requests(space: Space) -> u64 {
        space.blocks.div_ceil(space.request_blocks)
    }
}

impl Pattern for Scan {
    #[inline]
    fn next(&mut self) -> (u64, u64) {
        let start = self.at;
        let blocks = self.space.request_blocks.min(self.space.blocks - start);
        self.at = if start + blocks == self.space.blocks { 0 } else { start + blocks };
        (start, blocks)
    }
}

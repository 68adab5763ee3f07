//! Fixed horizon: fetch each missing block once it is at most H references ahead.
//!
//! Source: kimbrel96, sections 2.3 and 2.7 (after TIP2, Patterson et al., SOSP 1995).
//!
//! ```text
//! while the first missing block is at most H references ahead:
//!     fetch it, in place of the furthest block, if that one's next use is further than H
//! a missing block at the cursor is fetched in any case
//! ```
//!
//! It fetches as late as possible without stalling on an idle disk, so it evicts well and puts the least load on the
//! disks. It leaves disks idle when misses come in bursts longer than H. Not for I/O-bound work (use `forestall`).
//! Requests go to the disk's queue at once, regardless of what is outstanding there.
//!
//! Cost: constant per event with few disks (the minimum of one number per disk).

use headstart_types::{keys, KeyTable, Nanos, Position, NEVER};

use super::{from_device, Knowledge, References, Round, Strategy};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "fixed-horizon",
    summary: "fetch each missing block once it is at most H references ahead",
    source: "kimbrel96, sections 2.3 and 2.7",
    keys: KeyTable::of::<FixedHorizonKeys>(),
    default_replacement: None,
    family: Family::Hinted(&|keys, context| {
        let keys: &FixedHorizonKeys = keys.get();
        let horizon = keys.horizon.or_else(|| from_device::horizon(context));
        Ok(context.hinted(FixedHorizon { horizon }))
    }),
};

keys! {
    /// Keys of `fixed-horizon`.
    pub struct FixedHorizonKeys {
        /// H: fetch blocks at most this many references ahead. `"device"` is a block's typical service time divided by
        /// driver_overhead plus hit_time, and at most the number of blocks in the cache.
        pub horizon: References = References::Fixed(HORIZON),
    }
}

/// H of the paper: 15 ms average disk response over 243 us to read a block from the cache (section 2.6).
pub const HORIZON: Position = 62;

/// The fixed-horizon policy.
#[derive(Debug, Clone)]
pub struct FixedHorizon {
    /// H, in references. Zero fetches at the reference itself only.
    pub horizon: Position,
}

/// The last position within `horizon`.
#[inline]
fn limit(cursor: Position, horizon: Position) -> Position {
    cursor.saturating_add(horizon).min(NEVER - 1)
}

/// Whether some missing block is within `horizon`.
#[inline]
pub(super) fn misses_within(horizon: Position, knowledge: &Knowledge) -> bool {
    knowledge.missing().first() <= limit(knowledge.residents().cursor(), horizon)
}

/// Fixed horizon's rule, which forestall adds to its own (section 5).
pub(super) fn fetch_within(horizon: Position, round: &mut Round<'_>) {
    let cursor = round.cursor();
    let limit = limit(cursor, horizon);
    loop {
        let first = round.knowledge().missing().first();
        if first > limit {
            return;
        }
        let frame = match round.frame_beyond(limit) {
            None if first == cursor => round.any_frame(),
            frame => frame,
        };
        match frame {
            Some(frame) => round.fetch_at(first, frame),
            None => return,
        }
    }
}

impl Strategy for FixedHorizon {
    fn decide(&mut self, _now: Nanos, round: &mut Round<'_>) {
        fetch_within(self.horizon, round);
    }

    #[inline]
    fn decides(&self, knowledge: &Knowledge, _outstanding: &[u32]) -> bool {
        misses_within(self.horizon, knowledge)
    }
}

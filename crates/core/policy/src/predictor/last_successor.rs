//! Last successor: predicts that the block that followed a block last time will follow it again.
//!
//! Source: the baseline of T. M. Kroeger and D. D. E. Long, "Design and Implementation of a Predictive File Prefetching
//! Algorithm", USENIX 2001, section 2 (72 % of the next files predicted right in their traces). [`Successors`] also
//! implements `stable-successor`.
//!
//! Differences: blocks instead of files, because a level sees blocks. The order is that of each client's references, so
//! that interleaved processes do not hide each other's. With `depth` above 1 the chain is followed (the successor's
//! successor, and so on) until a block repeats, because one block ahead is too late on most devices.
//!
//! Cost: constant per block, plus `depth` lookups per request; about 50 bytes per block, for at most `entries` blocks,
//! the least recently used forgotten first. Not for references that never repeat: nothing is predicted on a first pass.

use headstart_types::{keys, KeyTable, Nanos};

use super::{family, name, places, FileBlock, CLIENTS, ENTRIES};
use crate::readahead::recent::Recent;
use crate::readahead::{Asked, Cached, Found, ReadAhead, Run};
use crate::row::PolicyRow;

/// Maximum length of a chain: beyond it blocks are fetched long before their time. A guess.
pub(super) const DEPTH_MAX: u32 = 128;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "last-successor",
    summary: "the block that followed this one the last time",
    source: "Kroeger and Long, USENIX 2001, section 2",
    keys: KeyTable::of::<LastSuccessorKeys>(),
    default_replacement: Some("lru"),
    family: family(&|keys, _| {
        let keys: &LastSuccessorKeys = keys.get();
        Ok(Box::new(Successors::new(keys.depth, 1, keys.entries as usize)))
    }),
};

keys! {
    /// Keys of `last-successor`.
    pub struct LastSuccessorKeys {
        /// Number of blocks to prefetch: the successor, its successor, and so on.
        #[schemars(range(min = 1, max = DEPTH_MAX))]
        pub depth: u32 = 1,
        /// Maximum number of blocks whose successors are remembered. The least recently used one is forgotten first.
        #[schemars(range(min = 1))]
        pub entries: u32 = ENTRIES,
    }
}

/// What is known about a block's successors.
#[derive(Debug, Clone, Copy, Default)]
struct Followed {
    /// The predicted successor.
    predicted: Option<FileBlock>,
    /// The last successor, and how many times in a row it has been the successor.
    last: Option<(FileBlock, u32)>,
}

/// Predicts successors that have been seen `stability` times in a row.
#[derive(Debug)]
pub struct Successors {
    depth: u32,
    stability: u32,
    followed: Recent<FileBlock, Followed>,
    /// For each client: its previous block.
    before: Recent<u32, Option<FileBlock>>,
}

impl Successors {
    /// Predicts `depth` blocks; a successor is adopted after `stability` occurrences in a row.
    #[must_use]
    pub fn new(depth: u32, stability: u32, entries: usize) -> Self {
        Self { depth, stability, followed: Recent::new(entries), before: Recent::new(CLIENTS) }
    }

    fn learn(&mut self, block: FileBlock, client: u32) {
        let Some(before) = self.before.get_or_default(client).replace(block) else { return };
        if before == block {
            return;
        }
        let followed = self.followed.get_or_default(before);
        let times = match followed.last {
            Some((last, times)) if last == block => times.saturating_add(1),
            _ => 1,
        };
        followed.last = Some((block, times));
        if times >= self.stability {
            followed.predicted = Some(block);
        }
    }
}

impl ReadAhead for Successors {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        places(asked).for_each(|block| self.learn(block, asked.client));
        let Some(mut block) = places(asked).last() else { return };
        let start = prefetch.len();
        for _ in 0..self.depth {
            let Some(next) = self.followed.peek(block).and_then(|followed| followed.predicted) else { break };
            let named = |run: &Run| (run.file, run.first) == next;
            if next.0 == asked.file && (asked.first..asked.end()).contains(&next.1)
                || prefetch[start..].iter().any(named)
            {
                break;
            }
            name(next, prefetch);
            block = next;
        }
    }

    fn remembered(&self) -> usize {
        self.followed.len()
    }
}

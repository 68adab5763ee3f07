//! One block lookahead: a reference to block i prefetches block i + 1.
//!
//! Source: A. J. Smith, "Cache Memories", ACM Computing Surveys 14(3), 1982, section 2.1, which names three moments:
//! *always* (at each reference), on a *miss*, and *tagged* (at the first reference to a block since it was fetched,
//! on demand or ahead); checked against the passage as net.arch quoted it in November 1984. Tagged prefetches a sequential scan as fully as always, with fewer look-ups.
//!
//! What differs: a request of several blocks is as many references, of which only the last names a block beyond it.
//! So the last block decides, and one block is prefetched at most for each request. A tagged block that was fetched
//! on demand counts as referenced at once, so its tag is spent by the reference that missed, as in the paper.
//! Cost: constant per request; no state at all. Not for fast devices, where one block ahead is always late, nor
//! (with `when = "always"` or `"miss"`) for random reads, where each costs a second block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use headstart_types::{keys, read_keys, KeyTable, Nanos};

use super::{Asked, BuildReadAhead, Cached, Found, Needs, ReadAhead, ReadsAhead, Run};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "obl",
    summary: "one block lookahead: always, on a miss, or tagged",
    source: "Smith, ACM Computing Surveys 14(3), 1982, section 2.1",
    keys: KeyTable::of::<OblKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        spares_random: false,
        needs: Needs::Nothing,
        build: BuildReadAhead::Apart(&|keys, _| {
            let keys: OblKeys = read_keys(keys)?;
            Ok(Box::new(Obl::new(keys.when)))
        }),
    }),
};

keys! {
    /// Keys of `obl`.
    pub struct OblKeys {
        /// When the next block is fetched.
        pub when: When = When::default(),
    }
}

/// When the next block is prefetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// At each reference.
    Always,
    /// When the reference misses.
    Miss,
    /// When the reference misses, and when it is the first to a prefetched block.
    #[default]
    Tagged,
}

/// One block lookahead.
#[derive(Debug, Clone, Copy, Default)]
pub struct Obl {
    when: When,
}

impl Obl {
    /// Prefetches the next block at these moments.
    #[must_use]
    pub fn new(when: When) -> Self {
        Self { when }
    }
}

impl ReadAhead for Obl {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        let last = found.last().copied().unwrap_or(Found::Absent);
        let now = match self.when {
            When::Always => true,
            When::Miss => last == Found::Absent,
            When::Tagged => !matches!(last, Found::Ready | Found::Unready),
        };
        let next = asked.end();
        if now && next > asked.first {
            prefetch.push(Run::between(asked.file, next, next.saturating_add(1)));
        }
    }
}

//! One block lookahead: a reference to block i prefetches block i + 1.
//!
//! Source: A. J. Smith, "Cache Memories", ACM Computing Surveys 14(3), 1982, section 2.1, which names three variants:
//! *always* (at each reference), on a *miss*, and *tagged* (at the first reference to a block since it was fetched, on
//! demand or ahead). Checked against the passage as quoted in net.arch in November 1984. Tagged prefetches a sequential
//! scan as completely as always, with fewer lookups.
//!
//! Differences: a request of several blocks counts as that many references, of which only the last names a block beyond
//! it. So the last block decides, and each request prefetches at most one block. A block that was fetched on demand
//! counts as referenced at once, so its tag is used up by the reference that missed, as in the paper. `when = "run"` is
//! the prefetcher that libCacheSim (aa0fc40) calls OBL, reproduced to its exact counts and none of Smith's three: the
//! next block is fetched when the last `confidence` references of the level are the preceding blocks in order; each
//! block is a request of its own.
//!
//! Cost: constant per request, `confidence` steps for `"run"`; no state except the last `confidence` references. Not
//! for fast devices, where one block ahead is always late, nor (with `when = "always"` or `"miss"`) for random reads,
//! where each costs a second block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use headstart_types::{keys, KeyError, KeyTable, Nanos};
use std::collections::VecDeque;

use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "obl",
    summary: "one block lookahead: always, on a miss, tagged, or in a run",
    source: "Smith, ACM Computing Surveys 14(3), 1982, section 2.1",
    keys: KeyTable::of::<OblKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        spares_random: false,
        ..ReadsAhead::new(&|keys, _| {
            let keys: &OblKeys = keys.get();
            Ok(Box::new(Obl { confidence: keys.confidence.unwrap_or(CONFIDENCE) as usize, ..Obl::new(keys.when) }))
        })
    }),
};

keys! {
    /// Keys of `obl`.
    pub struct OblKeys {
        /// When the next block is prefetched.
        pub when: When = When::default(),
        /// Number of consecutive references that form a run. Only with `when = "run"`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 1024), extend("x-absent" = "4"))]
        pub confidence: Option<u32> = None,
    }
    impl check = check;
}

/// libCacheSim's default.
const CONFIDENCE: u32 = 4;

fn check(keys: &OblKeys) -> Result<(), KeyError> {
    if keys.confidence.is_none() || keys.when == When::Run {
        return Ok(());
    }
    Err(KeyError::new("confidence", "only applies to runs", "when = \"run\", or no confidence"))
}

/// When the next block is prefetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// At each reference.
    Always,
    /// When the reference misses.
    Miss,
    /// When the reference misses, or is the first to a prefetched block.
    #[default]
    Tagged,
    /// When the last `confidence` references form a run of consecutive blocks.
    Run,
}

/// One block lookahead.
#[derive(Debug, Clone, Default)]
pub struct Obl {
    when: When,
    confidence: usize,
    /// The last references, for runs.
    last: VecDeque<(u32, u64)>,
}

impl Obl {
    /// Prefetches the next block according to `when`; a run has four references.
    #[must_use]
    pub fn new(when: When) -> Self {
        Self { when, confidence: CONFIDENCE as usize, last: VecDeque::new() }
    }

    /// Adds the references of a request; returns whether those before its last block form a run that it continues.
    fn is_run(&mut self, asked: &Asked) -> bool {
        let mut run = false;
        for index in asked.first..asked.end() {
            let is_before = |(back, last): (u64, &(u32, u64))| *last == (asked.file, index.wrapping_sub(back));
            run = self.last.len() == self.confidence && (1..).zip(self.last.iter().rev()).all(is_before);
            self.last.push_back((asked.file, index));
            if self.last.len() > self.confidence {
                self.last.pop_front();
            }
        }
        run
    }
}

impl ReadAhead for Obl {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        let last = found.last().copied().unwrap_or(Found::Absent);
        let now = match self.when {
            When::Always => true,
            When::Miss => last == Found::Absent,
            When::Tagged => !matches!(last, Found::Ready | Found::Unready),
            When::Run => self.is_run(asked),
        };
        let next = asked.end();
        if now && next > asked.first {
            prefetch.push(Run::between(asked.file, next, next.saturating_add(1)));
        }
    }

    fn order_max(&self) -> u32 {
        if self.when == When::Run {
            1
        } else {
            u32::MAX
        }
    }

    fn one_by_one(&self) -> bool {
        self.when == When::Run
    }

    fn remembered(&self) -> usize {
        self.last.len()
    }
}

//! Regular patterns: sequential portions of a file, local to a process or global to all, and the distances between
//! them.
//!
//! Source: D. Kotz and C. S. Ellis, "Prefetching in File Systems for MIMD Multiprocessors" (RAPID Transit). Its section
//! on access patterns distinguishes portions (runs of consecutive blocks) by regular or irregular length and distance,
//! seen by one process (local) or only in all processes' merged references (global). It prefetches into the next
//! portion only if length and distance are regular, and leaves detection "on the fly" to further work. This detector is
//! ours.
//!
//! ```text
//! in a portion        a request begins where the portion ends; in a global portion, up to `slack` blocks around its
//! end
//! sequential          after two requests in the portion, prefetch the next `degree` blocks up to its expected end
//! regular             if the last two portions had one length and one distance, these give the expected end, and the
//!                     rest of `degree` is taken from the portions after it
//! local before global a process that reads sequentially itself is not counted for the others
//! ```
//!
//! Cost: constant per request plus a run for each portion that `degree` reaches; about 150 bytes for each of `files`
//! open files, and for each of as many files, the least recently read forgotten first. Not for random references, where
//! it does nothing, nor for patterns that repeat without being regular: see `last-successor` and related predictors.

use headstart_types::{keys, KeyTable, Nanos};

use super::family_with;
use crate::readahead::recent::Recent;
use crate::readahead::{Asked, Cached, Found, ReadAhead, Run, FILES};
use crate::row::PolicyRow;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "patterns",
    summary: "sequential portions at regular distances, of one process or of all merged",
    source: "our detector for the patterns of Kotz and Ellis, RAPID Transit",
    keys: KeyTable::of::<PatternsKeys>(),
    default_replacement: Some("lru"),
    family: family_with(&|keys, _| Ok(Box::new(Patterns::new(keys.get()))), |_| true),
};

keys! {
    /// Keys of `patterns`.
    pub struct PatternsKeys {
        /// Number of blocks to prefetch ahead.
        #[schemars(range(min = 1, max = 65_536))]
        pub degree: u32 = 8,
        /// Number of blocks around the end of a global portion that still belong to the portion, because processes
        /// overtake each other. 0: only local portions are detected.
        #[schemars(range(max = 65_536))]
        pub slack: u32 = 8,
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

/// The portion being read, and what the previous ones had in common.
#[derive(Debug, Clone, Copy, Default)]
struct Portion {
    first: u64,
    /// One past the furthest block; 0 before the first request.
    end: u64,
    requests: u32,
    /// The previous portion's length in blocks, and the distance from its first block to this one's.
    last: Option<(u64, i64)>,
    /// Whether the two previous portions were alike.
    regular: bool,
}

impl Portion {
    /// Adds a request, which may begin up to `slack` blocks around the end.
    fn take(&mut self, asked: &Asked, slack: u64) {
        let near = asked.first >= self.end.saturating_sub(slack) && asked.first <= self.end.saturating_add(slack);
        if self.requests > 0 && near && asked.first >= self.first {
            self.end = self.end.max(asked.end());
            self.requests = self.requests.saturating_add(1);
            return;
        }
        if self.requests > 0 {
            let ended = (self.end - self.first, asked.first.wrapping_sub(self.first) as i64);
            self.regular = self.last == Some(ended);
            self.last = Some(ended);
        }
        (self.first, self.end, self.requests) = (asked.first, asked.end(), 1);
    }

    /// Names the next `degree` blocks as far as they can be predicted; returns whether there are any.
    fn predict(&self, file: u32, degree: u32, prefetch: &mut Vec<Run>) -> bool {
        let regular = self.last.filter(|(length, distance)| self.regular && *length > 0 && *distance != 0);
        let Some((length, distance)) = regular else {
            if self.requests > 1 {
                prefetch.push(Run::between(file, self.end, self.end.saturating_add(degree.into())));
            }
            return self.requests > 1;
        };
        let (mut first, mut next, mut left) = (self.first, self.end, u64::from(degree));
        while left > 0 {
            let end = first.saturating_add(length).min(next.saturating_add(left));
            if end > next {
                prefetch.push(Run::between(file, next, end));
                left -= end - next;
            }
            let Some(following) = first.checked_add_signed(distance) else { break };
            (first, next) = (following, following);
        }
        true
    }
}

/// The pattern detector.
#[derive(Debug)]
pub struct Patterns {
    degree: u32,
    slack: u32,
    local: Recent<(u32, u32), Portion>,
    global: Recent<u32, Portion>,
}

impl Patterns {
    /// A detector with these keys.
    #[must_use]
    pub fn new(keys: &PatternsKeys) -> Self {
        let (local, global) = (Recent::new(keys.files as usize), Recent::new(keys.files as usize));
        Self { degree: keys.degree, slack: keys.slack, local, global }
    }
}

impl ReadAhead for Patterns {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        let local = self.local.get_or_default((asked.file, asked.client));
        local.take(asked, 0);
        if local.predict(asked.file, self.degree, prefetch) || self.slack == 0 {
            return;
        }
        let global = self.global.get_or_default(asked.file);
        global.take(asked, self.slack.into());
        global.predict(asked.file, self.degree, prefetch);
    }

    fn remembered(&self) -> usize {
        self.local.len() + self.global.len()
    }
}

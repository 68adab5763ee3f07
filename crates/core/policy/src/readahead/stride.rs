//! Stride prediction: follows requests at a constant distance from each other, forwards and backwards.
//!
//! Source: J.-L. Baer and T.-F. Chen, "Effective Hardware-Based Data Prefetching for High-Performance Processors", IEEE
//! Transactions on Computers 44(5), 1995, the reference prediction table: an entry has the last address, the stride and
//! one of four states. From our reading; not checked against the article's text.
//!
//! ```text
//!             prediction right   prediction wrong
//! initial     steady             transient, new stride
//! transient   steady             none, new stride
//! steady      steady             initial, same stride
//! none        transient          none, new stride
//! ```
//!
//! Differences: an entry belongs to an open file (file and client), because a level sees no load instructions.
//! Addresses are first blocks of requests. Only the steady state prefetches (theirs also the transient one, where a
//! wrong guess costs a cache line, not a disk access), and it names the next `degree` requests, each as long as the
//! current one, where theirs looks ahead by the loop's speed.
//!
//! Cost: constant per request plus `degree` runs while steady; 60 bytes per open file, for at most `files`, the least
//! recently read forgotten first. Not for interleaved streams on one open file, which have no constant distance.

use headstart_types::{keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, FILES};
use crate::row::{Family, PolicyRow};

/// Maximum `degree`, so that a request cannot cause an almost endless prediction. A guess: more than useful.
const DEGREE_MAX: u32 = 65_536;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "stride",
    summary: "requests at a constant distance, predicted once two distances agree",
    source: "Baer and Chen, IEEE Transactions on Computers 44(5), 1995",
    keys: KeyTable::of::<StrideKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead::new(&|keys, _| {
        let keys: &StrideKeys = keys.get();
        let degree = keys.degree;
        Ok(Box::new(Stride::new(degree, keys.files as usize)))
    })),
};

keys! {
    /// Keys of `stride`.
    pub struct StrideKeys {
        /// Number of requests to prefetch ahead.
        #[schemars(range(min = 1, max = DEGREE_MAX))]
        pub degree: u32 = 4,
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Initial,
    Transient,
    Steady,
    None,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// First block of the last request; `None` before the first.
    last: Option<u64>,
    stride: i64,
    state: State,
}

impl Entry {
    fn take(&mut self, first: u64) {
        let Some(last) = self.last.replace(first) else { return };
        let distance = first.wrapping_sub(last) as i64;
        let right = distance == self.stride;
        self.state = match (self.state, right) {
            (State::Initial | State::Transient | State::Steady, true) => State::Steady,
            (State::None, true) | (State::Initial, false) => State::Transient,
            (State::Steady, false) => {
                self.state = State::Initial;
                return;
            }
            (State::Transient | State::None, false) => State::None,
        };
        self.stride = distance;
    }
}

/// The `stride` read-ahead.
#[derive(Debug)]
pub struct Stride {
    degree: u32,
    files: Recent<(u32, u32), Entry>,
}

impl Stride {
    /// Prefetches `degree` requests ahead, with state for `files` open files.
    #[must_use]
    pub fn new(degree: u32, files: usize) -> Self {
        Self { degree, files: Recent::new(files) }
    }
}

impl ReadAhead for Stride {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        let entry = self.files.get_or_default((asked.file, asked.client));
        entry.take(asked.first);
        if entry.state != State::Steady || entry.stride == 0 {
            return;
        }
        let mut first = asked.first;
        for _ in 0..self.degree {
            let Some(next) = first.checked_add_signed(entry.stride) else { break };
            first = next;
            let run = Run::between(asked.file, first, first.saturating_add(u64::from(asked.count)));
            match prefetch.last_mut() {
                // A sequential stream becomes one run.
                Some(last) if last.end() == run.first => *last = Run::between(last.file, last.first, run.end()),
                _ => prefetch.push(run),
            }
        }
    }

    fn remembered(&self) -> usize {
        self.files.len()
    }
}

//! P-block read-ahead: each request, hit or miss, prefetches the P blocks after it.
//!
//! Source: zhang-pfc, section 2.2 (RA, with P = 4; "RA and Linux ... trigger prefetching on each hit and each miss"):
//! one block lookahead with a degree above one. Adaptive P after F. Dahlgren, M. Dubois and P. Stenström, "Fixed and
//! Adaptive Sequential Prefetching in Shared Memory Multiprocessors", ICPP 1993, on which M. K. Tcheun et al., ICPP
//! 1997, build: one P for all; of every 16 prefetched blocks the useful ones are counted; many raise P by one, few
//! lower it, down to none. With P = 0, misses whose predecessor is cached (which a prefetch would have hit) are counted
//! instead, and many of 16 misses set P to 1 again.
//!
//! From our reading; not checked against the articles' text. Differences: the two thresholds are keys. 12 and 8 of 16
//! are our setting; a program after the authors' article of 1995, by H. N. Bø, 2010, has the same two, and more that
//! are left out: below 3 it halves P, and at P = 0 more than 6 of 16 start again. A block counts as prefetched when it
//! is named and not cached, and as useful at its first reference. Tcheun's degree per stream is left out: `amp` and
//! `linux` keep one.
//!
//! Cost: constant per request if fixed, P lookups if adaptive; no state for files or streams. Not for random reads,
//! where each wastes P blocks (fixed), nor for mixtures, where one P must fit all (adaptive).

use headstart_types::{keys, KeyError, KeyTable, Nanos};

use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "ra",
    summary: "the P blocks after each request, P fixed or adaptive",
    source: "zhang-pfc, section 2.2; Dahlgren, Dubois and Stenström, ICPP 1993",
    keys: KeyTable::of::<RaKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        spares_random: false,
        ..ReadsAhead::new(&|keys, _| Ok(Box::new(keys.get::<RaKeys>().build())))
    }),
};

keys! {
    /// Keys of `ra`.
    pub struct RaKeys {
        /// P: number of blocks to prefetch after each request. With `adaptive`, the initial P.
        pub degree: u32 = 4,
        /// Whether P adapts, starting from `degree`.
        pub adaptive: bool = false,
        /// Number of prefetched blocks between two changes of P.
        #[schemars(range(min = 1))]
        pub period: u32 = 16,
        /// P grows by one if at least this many blocks of a period were used.
        pub high: u32 = 12,
        /// P shrinks by one if fewer blocks of a period were used.
        pub low: u32 = 8,
        /// Maximum P.
        #[schemars(range(min = 1))]
        pub max_degree: u32 = 64,
    }
    impl check = RaKeys::fit;
}

impl RaKeys {
    fn fit(&self) -> Result<(), KeyError> {
        if self.low > self.high {
            return Err(KeyError::new("low", format!("{} is above high", self.low), format!("at most {}", self.high)));
        }
        if self.adaptive && self.degree > self.max_degree {
            let allowed = format!("at most max_degree, {}", self.max_degree);
            return Err(KeyError::new("degree", format!("{} is above max_degree", self.degree), allowed));
        }
        Ok(())
    }

    fn build(&self) -> Ra {
        let adaptive = Adaptive { period: self.period, high: self.high, low: self.low, max_degree: self.max_degree };
        Ra::new(self.degree, self.adaptive.then_some(adaptive))
    }
}

/// Parameters of an adaptive P. All counts are blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptive {
    /// P changes after this many prefetched blocks (or misses, while P is 0); at least 1.
    pub period: u32,
    /// At least this many useful ones raise P by one.
    pub high: u32,
    /// Fewer useful ones than this lower P by one.
    pub low: u32,
    /// Maximum P.
    pub max_degree: u32,
}

/// P-block read-ahead.
#[derive(Debug, Clone)]
pub struct Ra {
    degree: u32,
    adaptive: Option<Adaptive>,
    /// Prefetched blocks in this period; misses while the degree is 0.
    seen: u32,
    /// Useful ones among those; misses that a prefetch would have avoided.
    useful: u32,
}

impl Ra {
    /// Prefetches `degree` blocks; with `adaptive`, that is the initial degree.
    #[must_use]
    pub fn new(degree: u32, adaptive: Option<Adaptive>) -> Self {
        Self { degree, adaptive, seen: 0, useful: 0 }
    }

    /// The current P.
    #[must_use]
    pub fn degree(&self) -> u32 {
        self.degree
    }

    fn adapt(&mut self, adaptive: Adaptive) {
        if self.seen < adaptive.period {
            return;
        }
        if self.useful >= adaptive.high {
            self.degree = (self.degree + 1).min(adaptive.max_degree);
        } else if self.useful < adaptive.low {
            self.degree = self.degree.saturating_sub(1);
        }
        (self.seen, self.useful) = (0, 0);
    }

    /// Counts the earlier prefetches that `asked` uses.
    fn count_uses(&mut self, asked: &Asked, found: &[Found], cached: &dyn Cached) {
        if self.degree > 0 {
            let used = |found: &&Found| matches!(found, Found::ReadyPrefetched | Found::UnreadyPrefetched);
            self.useful = self.useful.saturating_add(found.iter().filter(used).count() as u32);
        } else if found.first() == Some(&Found::Absent) {
            self.seen += 1;
            let before = asked.first.checked_sub(1);
            self.useful += u32::from(before.is_some_and(|before| cached.is_cached(asked.file, before)));
        }
    }
}

impl ReadAhead for Ra {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        if let Some(adaptive) = self.adaptive {
            self.count_uses(asked, found, cached);
            self.adapt(adaptive);
        }
        let run = Run::between(asked.file, asked.end(), asked.end().saturating_add(u64::from(self.degree)));
        if self.adaptive.is_some() {
            let fresh = (run.first..run.end()).filter(|index| !cached.is_cached(run.file, *index)).count();
            self.seen = self.seen.saturating_add(fresh as u32);
        }
        if run.count > 0 {
            prefetch.push(run);
        }
    }
}

//! Leap: follows the majority of the latest distances between requests.
//!
//! Source: H. Al Maruf and M. Chowdhury, "Effectively Prefetching Remote Memory with Leap", USENIX ATC 2020, section 3
//! and algorithms 1 and 2; written from our reading and not checked against its text.
//!
//! ```text
//! FindTrend         the majority (Boyer and Moore's vote, then a count) of the last history / splits distances; of
//!                   twice as many while there is none, up to `history`
//! PrefetchWindow    with hits on prefetched blocks since the last prefetch: hits + 1, rounded up to a power of two, at
//!                   most `window_max`; without: 1 if the request follows the trend, else 0; at least half the last
//!                   window
//! DoPrefetch        that many requests along the trend; without a majority along the last trend
//! ```
//!
//! Differences: state is kept per open file (file and client), not per process, because their pages share one address
//! space. Distances are those between the first blocks of requests, and a request of several blocks predicts requests
//! of the same length, where their faults are single pages. Leap prefetches at each fault that goes to remote memory;
//! here it prefetches at each request that misses.
//!
//! Cost: `history` steps per miss; 8 bytes per distance for each of `files` open files, the least recently read
//! forgotten first. Not for streams that alternate regularly, because no distance has a majority.

use headstart_types::{keys, KeyError, KeyTable, Nanos};
use std::collections::VecDeque;

use super::family_with;
use crate::readahead::recent::Recent;
use crate::readahead::{Asked, Cached, Found, ReadAhead, Run, FILES};
use crate::row::PolicyRow;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "leap",
    summary: "the majority of the latest distances, over growing windows",
    source: "Al Maruf and Chowdhury, USENIX ATC 2020",
    keys: KeyTable::of::<LeapKeys>(),
    default_replacement: Some("lru"),
    family: family_with(&|keys, _| Ok(Box::new(Leap::new(keys.get()))), |_| true),
};

keys! {
    /// Keys of `leap`.
    pub struct LeapKeys {
        /// Number of distances remembered for each file.
        #[schemars(range(min = 1, max = 4096))]
        pub history: u32 = 32,
        /// The majority vote starts with the latest `history / splits` distances. At most `history`.
        #[schemars(range(min = 1, max = 4096))]
        pub splits: u32 = 8,
        /// Maximum number of requests to prefetch ahead.
        #[schemars(range(min = 1, max = 4096))]
        pub window_max: u32 = 8,
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
    impl check = check;
}

fn check(keys: &LeapKeys) -> Result<(), KeyError> {
    if keys.splits <= keys.history {
        return Ok(());
    }
    let problem = format!("{} is above history, {}", keys.splits, keys.history);
    Err(KeyError::new("splits", problem, format!("at most {}", keys.history)))
}

/// The majority among the first `count` distances, latest first; missing distances count as votes for none.
fn majority(distances: &VecDeque<i64>, count: usize) -> Option<i64> {
    let (mut candidate, mut lead) = (0, 0usize);
    for distance in distances.iter().take(count) {
        if lead == 0 {
            (candidate, lead) = (*distance, 1);
        } else if *distance == candidate {
            lead += 1;
        } else {
            lead -= 1;
        }
    }
    let votes = distances.iter().take(count).filter(|distance| **distance == candidate).count();
    (votes > count / 2).then_some(candidate)
}

#[derive(Debug, Default)]
struct Stream {
    /// First block of the last request.
    last: Option<u64>,
    /// Latest first.
    distances: VecDeque<i64>,
    trend: Option<i64>,
    /// Requests that found a prefetched block since the last prefetch.
    hits: u32,
    window: u32,
}

/// The Leap predictor.
#[derive(Debug)]
pub struct Leap {
    keys: LeapKeys,
    files: Recent<(u32, u32), Stream>,
}

impl Leap {
    /// A predictor with these keys.
    #[must_use]
    pub fn new(keys: &LeapKeys) -> Self {
        Self { files: Recent::new(keys.files as usize), keys: keys.clone() }
    }
}

impl Stream {
    fn find_trend(&self, keys: &LeapKeys) -> Option<i64> {
        let mut count = (keys.history / keys.splits) as usize;
        loop {
            let trend = majority(&self.distances, count);
            if trend.is_some() || count >= keys.history as usize {
                return trend;
            }
            count = (2 * count).min(keys.history as usize);
        }
    }

    fn next_window(&mut self, follows: bool, keys: &LeapKeys) -> u32 {
        let wanted = match self.hits {
            0 => u32::from(follows),
            hits => hits.saturating_add(1).checked_next_power_of_two().unwrap_or(keys.window_max).min(keys.window_max),
        };
        self.hits = 0;
        self.window = wanted.max(self.window / 2);
        self.window
    }
}

impl ReadAhead for Leap {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        let stream = self.files.get_or_default((asked.file, asked.client));
        let distance = stream.last.replace(asked.first).map(|last| asked.first.wrapping_sub(last) as i64);
        let Some(distance) = distance else { return };
        stream.distances.push_front(distance);
        stream.distances.truncate(self.keys.history as usize);
        let is_used = |found: &Found| matches!(found, Found::ReadyPrefetched | Found::UnreadyPrefetched);
        stream.hits = stream.hits.saturating_add(u32::from(found.iter().any(is_used)));
        if !found.contains(&Found::Absent) {
            return;
        }
        let trend = stream.find_trend(&self.keys);
        let window = stream.next_window(trend.or(stream.trend) == Some(distance), &self.keys);
        stream.trend = trend.or(stream.trend);
        let Some(step) = stream.trend.filter(|step| *step != 0) else { return };
        let mut first = asked.first;
        for _ in 0..window {
            let Some(next) = first.checked_add_signed(step) else { break };
            first = next;
            prefetch.push(Run::between(asked.file, first, first.saturating_add(asked.count.into())));
        }
    }

    fn remembered(&self) -> usize {
        self.files.values().map(|stream| 1 + stream.distances.len()).sum()
    }
}

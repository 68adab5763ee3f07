//! How far `headstart store` reads ahead of a reader that disclosed its order, and what it evicts for that; the policy
//! `headstart-store` does the same in the simulator.
//!
//! An entry displaces only entries that are used later (Cao, Felten, Karlin and Li, SIGMETRICS 1995, rules 1 to 4). Entries
//! that are fetched early still take room from others, so no more are fetched than are needed to hide the source's time.
//! For each reader these are the entries that it reads, in batches, in twice the time within which nearly all answers begin:
//! they are *near*. Their number grows while reads have to wait, so that a slow source can catch up. Until the reader's
//! rate is known, it is twice the number of concurrent requests. An entry further ahead is fetched if it displaces nothing,
//! or only an entry that would hardly stay until its own use. Each, the near entries and those further ahead, take at most half
//! of the room, as do orders that have no reader yet. This uses the time in which readers find all they need.

use std::collections::VecDeque;

use headstart_types::Nanos;

/// Reads from which a reader's place and rate are known: more than workers read out of order at a time would need, and
/// one stray read in between moves nothing. A guess.
pub const RECENT: usize = 64;
/// What is at least near the front of a reader whose rate is known, in entries. A guess.
const NEAR_MIN: u64 = 8;
/// A read in time takes back this part of an entry. A guess: late reads are remembered for some epochs of a short loop.
const WIDENED_PARTS: u64 = 128;
/// After about so many evictions, the nearest one of before is forgotten. A guess.
const HORIZON_EVICTIONS: f64 = 256.0;
/// Answers after which the time of nearly all of them is known, and is found anew.
const ANSWERS: usize = 64;
/// Answers of which it is found: what is slow for a while is forgotten.
const ANSWERS_MAX: usize = 256;

/// Entries that are near the front of a reader whose rate is not known, for so many requests at a time.
#[must_use]
pub fn near_at_first(requests: usize) -> u64 {
    2 * requests as u64
}

/// Whether entries that were fetched ahead and are unused take half of the room: then no entry is fetched that is far
/// ahead, or of an order that has no reader yet.
#[must_use]
pub fn is_full(ahead: u64, room: u64) -> bool {
    ahead >= room / 2
}

/// Times to the first bytes of the last answers. How long an answer then goes on depends on what else is under way, so
/// that must not decide about more.
#[derive(Debug, Default)]
pub struct Answers {
    last: VecDeque<Nanos>,
    added: usize,
}

impl Answers {
    /// An answer began after `took`. Returns the time within which nearly all begin, if it was found anew.
    pub fn begins(&mut self, took: Nanos) -> Option<Nanos> {
        self.last.push_back(took);
        if self.last.len() > ANSWERS_MAX {
            self.last.pop_front();
        }
        self.added += 1;
        if !self.added.is_multiple_of(ANSWERS) {
            return None;
        }
        let mut sorted: Vec<Nanos> = self.last.iter().copied().collect();
        let nearly_all = sorted.len() * 99 / 100;
        Some(*sorted.select_nth_unstable(nearly_all - 1).1)
    }
}

/// How a reader goes through its order.
#[derive(Debug, Default)]
pub struct Pace {
    reads: u64,
    begun: Option<Nanos>,
    last: Nanos,
    /// Reads within the time of a response, since when: batches are read at once.
    burst: u64,
    burst_since: Nanos,
    /// The largest burst of late.
    burst_most: u64,
    /// What late reads have added to what is near, in parts of an entry.
    widened: u64,
}

impl Pace {
    /// An entry is read at `now`; nearly all answers begin within `response`.
    pub fn has_read(&mut self, now: Nanos, response: Nanos) {
        if now.0 > self.burst_since.0.saturating_add(response.0) {
            let most = self.burst_most();
            self.burst_most = (most - most / 8).max(self.burst);
            (self.burst_since, self.burst) = (now, 0);
        }
        self.burst += 1;
        self.begun.get_or_insert(now);
        self.last = now;
        self.reads += 1;
    }

    fn burst_most(&self) -> u64 {
        self.burst_most.max(self.burst)
    }

    /// What had to be waited for widens what is near by two entries, up to three times what is read in the time of
    /// a response; each other read takes a part of an entry back.
    pub fn was(&mut self, is_late: bool) {
        self.widened = if is_late {
            (self.widened + 2 * WIDENED_PARTS).min(3 * self.burst_most() * WIDENED_PARTS)
        } else {
            self.widened.saturating_sub(1)
        };
    }

    /// Reads a second, once there are some.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let passed = self.last.0.saturating_sub(self.begun?.0);
        (self.reads >= RECENT as u64 / 2 && passed > 0).then(|| self.reads as f64 * 1e9 / passed as f64)
    }

    /// Entries that are near the front: those read in twice the time of a response, and more while reads are late; or
    /// `at_first` as long as the rate is not known. At most half of the `room`: the rest keeps what is read again. With
    /// entries in `parts`, everything but `at_first` is in parts.
    #[must_use]
    pub fn near(&self, at_first: u64, parts: u64, room: u64) -> u64 {
        match self.rate() {
            Some(_) => {
                let most = 2 * self.burst_most() + self.widened / WIDENED_PARTS;
                most.min(room / 2).max(NEAR_MIN * parts)
            }
            None => at_first * parts,
        }
    }
}

/// How far off the next use is of what has to leave: the least of late, in seconds.
#[derive(Debug)]
pub struct Horizon(f64);

impl Default for Horizon {
    fn default() -> Self {
        Self(f64::MAX)
    }
}

impl Horizon {
    /// Whether what is used `off` seconds from now (`None`: not that one knows) may leave for what is used in `wanted`
    /// seconds: only if it is used later and, for what is not near, if it would hardly stay until then.
    #[must_use]
    pub fn may_displace(&self, off: Option<f64>, wanted: f64, is_near: bool) -> bool {
        off.map_or(is_near, |off| off > wanted && (is_near || off > 2.0 * self.0))
    }

    /// What is used `off` seconds from now had to leave for what is needed now or is near.
    pub fn displaced(&mut self, off: f64) {
        self.0 = off.min(self.0 + (off - self.0) / HORIZON_EVICTIONS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slow_for_a_while_is_forgotten() {
        let mut answers = Answers::default();
        let mut found = |times: std::ops::Range<u64>| times.filter_map(|took| answers.begins(Nanos(took))).last();
        assert_eq!(found(0..63), None);
        assert_eq!(found(63..64), Some(Nanos(62)), "63 of 64");
        assert_eq!(found(1000..1064), Some(Nanos(1061)), "126 of 128");
        assert_eq!(found(0..256), Some(Nanos(252)), "253 of 256");
    }

    #[test]
    fn what_is_near_takes_at_most_half_of_the_room() {
        let mut pace = Pace::default();
        assert_eq!(pace.near(10, 4, 16), 40, "the rate is not known");
        // 100 reads within the time of a response: 200 are near.
        (1..=100).for_each(|at| pace.has_read(Nanos(at), Nanos(1_000)));
        assert_eq!([1_000, 300, 40, 0].map(|room| pace.near(10, 1, room)), [200, 150, 20, NEAR_MIN]);
        // A late read adds two, and a read in time takes a part of one back.
        pace.was(true);
        assert_eq!(pace.near(10, 1, 1_000), 202);
        pace.was(false);
        assert_eq!(pace.near(10, 1, 1_000), 201);
    }

    #[test]
    fn far_ahead_only_what_would_hardly_stay_gives_way() {
        let mut horizon = Horizon::default();
        assert!(horizon.may_displace(Some(9.0), 8.0, true) && !horizon.may_displace(Some(8.0), 8.0, true));
        assert!(!horizon.may_displace(Some(1e9), 8.0, false), "nothing had to leave yet");
        assert!(horizon.may_displace(None, 8.0, true) && !horizon.may_displace(None, 8.0, false));
        horizon.displaced(10.0);
        assert!(horizon.may_displace(Some(20.5), 8.0, false) && !horizon.may_displace(Some(20.0), 8.0, false));
        horizon.displaced(266.0);
        assert!(!horizon.may_displace(Some(22.0), 8.0, false), "a part of 256 further");
    }
}

//! Detects that prefetched blocks are evicted before they are used, and reduces the depth of prefetching then.
//!
//! Source of the idea: li07, section 7: "adaptively reduce the prefetching depth when increased memory contention is
//! detected and reinstate competitive prefetching when memory pressure is released". The paper leaves open how; this is
//! ours. The sign of contention is a block that was prefetched, evicted unused, and is fetched again. Eviction without
//! use alone is no sign: a stream that ends leaves its surplus to be evicted however much memory there is, and the
//! competitive depth accounts for that. A period is as many requested blocks as there are frames: it takes that long
//! until the effect of deeper prefetching has passed. If more than half as many blocks are fetched again, the depth is
//! halved, down to a sixteenth, and a new period begins, in which it is not halved again; any other period gives a
//! sixteenth back.
//!
//! A block fetched again costs its transfer time. At half the depth there are twice as many switches, which at the
//! competitive depth take as long as all transfers: that is more expensive until as many blocks are fetched again as
//! are requested. The half was found by scanning (1/8 to 3/2) on Two-Rand-0 with 64 clients, One-Rand-10 and index
//! search with 16, in 2 to 96 MiB: it takes at most 0.3 % more time than a depth that does not shrink, and up to 3 %
//! less; 1/4 takes up to 2 % more and 5 % less. Halving at the first such block of a period took up to 35 % more.
//!
//! Cost: constant per block. Memory: a name per frame.

use super::recent::Recent;
use super::{Asked, Found, Run};

/// The full depth, in sixteenths.
const WHOLE: u64 = 16;

/// One in this many requested blocks may be fetched again.
const AGAIN_MAX: u64 = 2;

/// Contention for the frames of a level.
#[derive(Debug)]
pub(super) struct Pressure {
    /// Blocks that were evicted unused and have not been fetched since.
    gone: Recent<(u32, u64), ()>,
    /// Number of requested blocks that make a period.
    period: u64,
    /// Blocks left to be requested in this period.
    left: u64,
    /// Blocks of this period that had been prefetched and evicted unused, and were fetched again.
    again: u64,
    /// Whether the depth has been halved at the start of this period.
    halved: bool,
    /// The current depth in sixteenths of the full one.
    share: u64,
}

impl Pressure {
    /// For a level of `frames` frames.
    pub fn new(frames: u32) -> Self {
        let period = u64::from(frames.max(1));
        Self { gone: Recent::new(frames as usize), period, left: period, again: 0, halved: false, share: WHOLE }
    }

    /// Called when a block has left the cache.
    pub fn evicted(&mut self, file: u32, index: u64, unused: bool) {
        if unused {
            self.gone.get_or_default((file, index));
        }
    }

    /// Handles a request that has been looked up; `prefetch` is what it makes the level fetch.
    pub fn asked(&mut self, asked: &Asked, found: &[Found], prefetch: &[Run]) {
        for (index, found) in (asked.first..asked.end()).zip(found) {
            self.fetched(asked.file, index, found.is_hit());
        }
        for run in prefetch {
            (run.first..run.end()).for_each(|index| self.fetched(run.file, index, false));
        }
        if !self.halved && self.again * AGAIN_MAX > self.period {
            self.share = (self.share / 2).max(1);
            (self.halved, self.left) = (true, self.period);
        }
        self.left = self.left.saturating_sub(u64::from(asked.count));
        if self.left == 0 {
            self.share = (self.share + u64::from(!self.halved)).min(WHOLE);
            (self.halved, self.left, self.again) = (false, self.period, 0);
        }
    }

    /// Called for a block that is fetched or present.
    fn fetched(&mut self, file: u32, index: u64, is_there: bool) {
        if self.gone.len() > 0 && self.gone.remove((file, index)).is_some() && !is_there {
            self.again += 1;
        }
    }

    /// The reduced depth, at least one block.
    pub fn of(&self, depth: u64) -> u64 {
        (depth.saturating_mul(self.share) / WHOLE).max(1)
    }

    /// Number of blocks remembered.
    pub fn remembered(&self) -> usize {
        self.gone.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pressure: &mut Pressure, first: u64, count: u32, found: Found) {
        pressure.asked(
            &Asked { file: 1, first, count, client: 0, ends_inside: false },
            &vec![found; count as usize],
            &[],
        );
    }

    #[test]
    fn what_is_fetched_again_halves_the_depth_once_a_period() {
        let mut pressure = Pressure::new(100);
        (0..90).for_each(|index| pressure.evicted(1, index, index < 60));
        // Used before it went; another file's.
        ask(&mut pressure, 80, 1, Found::Absent);
        pressure.asked(&Asked { file: 2, first: 0, count: 1, client: 0, ends_inside: false }, &[Found::Absent], &[]);
        assert_eq!((pressure.of(160), pressure.remembered()), (160, 60));
        // 50 of 100: 20 asked for, and 30 prefetched again; one that came back some other way; one more.
        let asked = Asked { file: 1, first: 0, count: 20, client: 0, ends_inside: false };
        pressure.asked(&asked, &[Found::Absent; 20], &[Run::between(1, 20, 50)]);
        ask(&mut pressure, 50, 1, Found::Ready);
        assert_eq!((pressure.of(160), pressure.remembered()), (160, 9));
        ask(&mut pressure, 51, 1, Found::Absent);
        assert_eq!((pressure.of(160), pressure.remembered()), (80, 8));
        // 100 more asked for, 60 of them fetched again: a further halving only after that, and nothing back.
        (100..160).for_each(|index| pressure.evicted(1, index, true));
        ask(&mut pressure, 100, 60, Found::Absent);
        ask(&mut pressure, 1000, 39, Found::Ready);
        assert_eq!(pressure.of(160), 80);
        (100..160).for_each(|index| pressure.evicted(1, index, true));
        ask(&mut pressure, 100, 60, Found::Absent);
        assert_eq!(pressure.of(160), 40);
    }

    #[test]
    fn quiet_periods_give_it_back() {
        let mut pressure = Pressure::new(10);
        (0..6).for_each(|index| pressure.evicted(1, index, true));
        ask(&mut pressure, 0, 6, Found::Absent);
        assert_eq!(pressure.of(160), 80);
        // The period of the halving gives nothing, each of the next eight a sixteenth.
        let depths: Vec<u64> = (0..10)
            .map(|_| {
                ask(&mut pressure, 50, 10, Found::Ready);
                pressure.of(160)
            })
            .collect();
        assert_eq!(depths, [80, 90, 100, 110, 120, 130, 140, 150, 160, 160]);
    }

    #[test]
    fn a_sixteenth_and_a_block_always_stay() {
        let mut pressure = Pressure::new(1);
        for index in 0..20 {
            pressure.evicted(1, index, true);
            ask(&mut pressure, index, 1, Found::Absent);
        }
        assert_eq!((pressure.of(160), pressure.of(3)), (10, 1));
    }
}

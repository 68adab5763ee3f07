//! Whether prefetched blocks are evicted before they are used, and how much less deep to prefetch then.
//!
//! Source of the idea: li07, section 7: "adaptively reduce the prefetching depth when increased memory contention is
//! detected and reinstate competitive prefetching when memory pressure is released". The paper leaves open how; this is
//! ours. The sign of contention is a block that was prefetched, evicted unused, and then asked for. That a block is
//! evicted unused is none by itself: a stream that ends leaves what it had too much to be evicted, however much memory
//! there is, and the competitive depth has reckoned with that. At a sign the depth is halved, down to a sixteenth, once in
//! as many blocks asked for as there are frames: so long it takes until what the deeper prefetching did is gone. Each
//! such period without a sign gives a sixteenth back.
//! Cost: constant per block. Memory: a name for each frame.

use super::recent::Recent;
use super::{Asked, Found};

/// The whole depth.
const WHOLE: u64 = 16;

/// Contention for the frames of a level.
#[derive(Debug)]
pub(super) struct Pressure {
    /// Blocks that were evicted unused and have not been asked for since.
    gone: Recent<(u32, u64), ()>,
    /// Blocks asked for make a period.
    period: u64,
    /// Of this period, still to be asked for.
    left: u64,
    /// A sign has been seen in this period.
    seen: bool,
    /// Sixteenths of the depth.
    share: u64,
}

impl Pressure {
    /// In a level of `frames` frames.
    pub fn new(frames: u32) -> Self {
        let period = u64::from(frames.max(1));
        Self { gone: Recent::new(frames as usize), period, left: period, seen: false, share: WHOLE }
    }

    /// A block has left the cache.
    pub fn evicted(&mut self, file: u32, index: u64, unused: bool) {
        if unused {
            self.gone.get_or_default((file, index));
        }
    }

    /// A request has been looked up.
    pub fn asked(&mut self, asked: &Asked, found: &[Found]) {
        for (index, found) in (asked.first..asked.end()).zip(found) {
            let was_gone = self.gone.len() > 0 && self.gone.remove((asked.file, index)).is_some();
            if was_gone && !found.is_hit() && !self.seen {
                self.share = (self.share / 2).max(1);
                (self.seen, self.left) = (true, self.period);
            }
        }
        self.left = self.left.saturating_sub(u64::from(asked.count));
        if self.left == 0 {
            self.share = (self.share + u64::from(!self.seen)).min(WHOLE);
            (self.seen, self.left) = (false, self.period);
        }
    }

    /// What is left of a depth, at least one block.
    pub fn of(&self, depth: u64) -> u64 {
        (depth.saturating_mul(self.share) / WHOLE).max(1)
    }

    /// Blocks in mind.
    pub fn remembered(&self) -> usize {
        self.gone.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pressure: &mut Pressure, first: u64, count: u32, found: Found) {
        pressure.asked(&Asked { file: 1, first, count, client: 0 }, &vec![found; count as usize]);
    }

    #[test]
    fn what_is_evicted_unused_and_asked_for_halves_the_depth_once_a_period() {
        let mut pressure = Pressure::new(100);
        (0..50).for_each(|index| pressure.evicted(1, index, index < 40));
        assert_eq!(pressure.of(160), 160);
        // Used before it went; another file's.
        ask(&mut pressure, 45, 1, Found::Absent);
        pressure.asked(&Asked { file: 2, first: 0, count: 1, client: 0 }, &[Found::Absent]);
        assert_eq!((pressure.of(160), pressure.remembered()), (160, 40));
        // Two signs: one halving. It came back some other way: no sign.
        ask(&mut pressure, 0, 2, Found::Absent);
        assert_eq!((pressure.of(160), pressure.remembered()), (80, 38));
        ask(&mut pressure, 2, 1, Found::Ready);
        // The rest of 100 asked for, a sign among them: a further halving only after that, and then no quiet period.
        ask(&mut pressure, 3, 1, Found::Absent);
        ask(&mut pressure, 1000, 96, Found::Ready);
        assert_eq!(pressure.of(160), 80);
        ask(&mut pressure, 4, 1, Found::Absent);
        assert_eq!(pressure.of(160), 40);
    }

    #[test]
    fn quiet_periods_give_it_back() {
        let mut pressure = Pressure::new(10);
        pressure.evicted(1, 0, true);
        ask(&mut pressure, 0, 1, Found::Absent);
        assert_eq!(pressure.of(160), 80);
        // The period of the sign gives nothing, each of the next eight a sixteenth.
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
